"""Every verifier with Spanish text that passes, that just fails, and that tries to slip through."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError
from squtr.harness.tasks.understanding.answers.verifiers.registry import IFEVAL_NAMES, VERIFIERS, load_verifier
from squtr.harness.tasks.understanding.answers.verifiers.text import occurrences, paragraphs, sentences, words

PASSES, JUST_FAILS, HOSTILE = "passes", "just fails", "hostile"
PROMPT = "¿Qué dice el Sr. Núñez?"
SIXTEEN = "Esta es una frase bastante larga que el hablante dice con calma en la radio cada lunes por la mañana."

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords", {"keywords": ["año", "canción"]}, PASSES, "Este AÑO suena la canción."),
    ("keywords", {"keywords": ["mal de ojo"]}, PASSES, "Teme el mal  de\nojo."),
    ("keywords", {"keywords": ["cancion"], "fold_accents": True}, PASSES, "La canción."),
    ("keywords", {"keywords": ["niño"]}, PASSES, "El nin\u0303o."),
    ("keywords", {"keywords": ["¿por qué?"]}, PASSES, "Dijo: «¿Por qué?»"),
    ("keywords", {"keywords": ["radio"]}, PASSES, "Una **radio**, _radio_."),
    ("keywords", {"keywords": ["año", "canción"]}, JUST_FAILS, "Este año suena la cancion."),
    ("keywords", {"keywords": ["sol"]}, HOSTILE, "Girasoles, solar, consolar."),
    ("keywords", {"keywords": ["año"]}, HOSTILE, "El ano. Los años. Antaño."),
    ("keywords", {"keywords": ["a.c"]}, HOSTILE, "abc"),
    ("keyword_frequency", {"keyword": "mar", "count": 2, "relation": "exactly"}, PASSES, "El mar, la Mar."),
    ("keyword_frequency", {"keyword": "mar", "count": 3}, JUST_FAILS, "El mar, la mar."),
    ("keyword_frequency", {"keyword": "mar", "count": 2}, HOSTILE, "El mar, Marta, amar, marino."),
    ("keyword_frequency", {"keyword": "no", "count": 1, "relation": "less than"}, HOSTILE, ""),
    ("forbidden_words", {"keywords": ["guerra", "política"]}, PASSES, "Habla de guerrilleros y políticas."),
    ("forbidden_words", {"keywords": ["guerra"]}, JUST_FAILS, "Habla de la Guerra."),
    ("forbidden_words", {"keywords": ["papá"]}, HOSTILE, "Su papa\u0301 canta."),
    ("forbidden_words", {"keywords": ["sol"]}, HOSTILE, "**SOL**"),
    ("forbidden_words", {"keywords": ["guerra"]}, HOSTILE, "…"),
    ("letter_frequency", {"letter": "ñ", "count": 2, "relation": "exactly"}, PASSES, "Ñandú, nin\u0303o."),
    ("letter_frequency", {"letter": "a", "count": 4, "relation": "exactly"}, PASSES, "Mañana, más."),
    ("letter_frequency", {"letter": "á", "count": 1, "relation": "exactly"}, PASSES, "Mañana, más."),
    ("letter_frequency", {"letter": "n", "count": 1, "relation": "exactly"}, JUST_FAILS, "Mañana no."),
    ("letter_frequency", {"letter": "n", "count": 1, "relation": "at least"}, HOSTILE, "ñ Ñ ñ"),
    ("words", {"count": 5, "relation": "exactly"}, PASSES, "¿Qué tal, señor Núñez-Ruiz? —Bien."),
    ("words", {"count": 4, "relation": "at most"}, PASSES, "- Son 3,5 % más -"),
    ("words", {"count": 10, "relation": "around"}, PASSES, "uno dos tres cuatro cinco seis siete ocho nueve"),
    ("words", {"count": 2, "relation": "between", "upper": 3}, PASSES, "uno dos tres"),
    ("words", {"count": 3, "relation": "more than"}, PASSES, "uno dos tres cuatro"),
    ("words", {"count": 3, "relation": "less than"}, JUST_FAILS, "uno dos tres"),
    ("words", {"count": 10, "relation": "around"}, JUST_FAILS, "uno dos tres cuatro cinco seis siete ocho"),
    ("words", {"count": 5, "relation": "at least"}, HOSTILE, "uno … — * dos # !!! ¿?"),
    ("words", {"count": 5, "relation": "at most"}, HOSTILE, "   \n"),
    (
        "sentences",
        {"count": 2, "relation": "exactly"},
        PASSES,
        "El Sr. Ruiz vive en EE. UU. desde 1999. Gana 3.500,5 €.",
    ),
    ("sentences", {"count": 3, "relation": "exactly"}, PASSES, "¡Hola! ¿Qué tal? Bien…"),
    ("sentences", {"count": 1, "relation": "exactly"}, PASSES, "¿Vienes?, preguntó; y calló… del todo."),
    ("sentences", {"count": 2, "relation": "exactly"}, PASSES, "Llegó a las 3 p. m. Se fue a las 5 p. m. en punto."),
    ("sentences", {"count": 2, "relation": "exactly"}, PASSES, "Dice que no. Luego calla."),
    ("sentences", {"count": 2, "relation": "exactly"}, JUST_FAILS, "Una. Dos. Tres."),
    (
        "sentences",
        {"count": 4, "relation": "at least"},
        HOSTILE,
        "El Dr. J. L. Ruiz, p. ej., vive en la Av. de América. !!! … ¿?",
    ),
    ("lines", {"count": 2, "relation": "exactly"}, PASSES, "Uno\n\n---\nDos"),
    ("lines", {"count": 2, "relation": "exactly"}, JUST_FAILS, "Uno"),
    ("lines", {"count": 3, "relation": "at least"}, HOSTILE, "Uno\n\n***\n \n—\n"),
    ("paragraphs", {"count": 2}, PASSES, "Uno.\nSigue.\r\n\r\nDos."),
    ("paragraphs", {"count": 2, "separator": "***"}, PASSES, "Uno.\n\nSigue. *** Dos."),
    ("paragraphs", {"count": 2}, JUST_FAILS, "Uno.\nDos."),
    ("paragraphs", {"count": 3}, HOSTILE, "Uno.\n\n***\n\nDos.\n\n \n\n…"),
    ("paragraph_first_word", {"paragraph": 2, "first_word": "además"}, PASSES, "Uno.\n\n¡Además, dos!"),
    ("paragraph_first_word", {"paragraph": 2, "first_word": "además"}, JUST_FAILS, "Uno.\n\nDos además."),
    ("paragraph_first_word", {"paragraph": 1, "first_word": "además", "count": 1}, JUST_FAILS, "Además.\n\nDos."),
    ("paragraph_first_word", {"paragraph": 3, "first_word": "uno"}, HOSTILE, "Uno.\n\nUno."),
    ("one_of", {"options": ["Sí", "No"]}, PASSES, "**¡sí!**"),
    ("one_of", {"options": ["Mi respuesta es sí."], "contained": True}, PASSES, "Claro: mi respuesta es sí."),
    ("one_of", {"options": ["Sí", "No"]}, JUST_FAILS, "Si."),
    ("one_of", {"options": ["Sí", "No"]}, HOSTILE, "Sí y no."),
    ("language", {"language": "es"}, PASSES, "El hablante cuenta que su abuela cocinaba muy bien los domingos."),
    ("language", {"language": "en"}, PASSES, "The speaker says that her grandmother used to cook on Sundays."),
    ("language", {"language": "es"}, JUST_FAILS, "O falante conta que a sua avó cozinhava muito bem aos domingos."),
    (
        "language",
        {"language": "es"},
        HOSTILE,
        f"{SIXTEEN} {SIXTEEN} Then the speaker says that she was very happy when they came to see her at the house.",
    ),
    ("language", {"language": "es"}, HOSTILE, "123 456"),
    ("bullets", {"count": 3}, PASSES, "Lista:\n- uno\n* dos\n  • tres"),
    ("bullets", {"count": 3}, JUST_FAILS, "- uno\n- dos"),
    ("bullets", {"count": 3}, HOSTILE, "**uno**\n---\n-5 grados\n- \n* \n- uno"),
    ("numbered_list", {"count": 2}, PASSES, "1. Uno\n2) Dos"),
    ("numbered_list", {"count": 2}, JUST_FAILS, "1. Uno"),
    ("numbered_list", {"count": 2}, HOSTILE, "1.5 millones\n2.\n3,5 %\n1. Uno"),
    ("highlights", {"count": 2}, PASSES, "Un *día* y **otro más**."),
    ("highlights", {"count": 2}, JUST_FAILS, "Un *día* y otro más."),
    ("highlights", {"count": 2}, HOSTILE, "* uno\n* dos\n**  ** ****** 3 * 4 * 5 *…*"),
    ("title", {}, PASSES, "<<La niña y el ñandú>>\nÉrase…"),
    ("title", {}, JUST_FAILS, "<La niña>\nÉrase…"),
    ("title", {}, HOSTILE, "<< >> <<…>> «La niña» <<La\nniña>>"),
    ("sections", {"count": 2}, PASSES, "Sección 1\nUno.\n\n**SECCIÓN 2:** Dos."),
    ("sections", {"count": 2, "marker": "Parte"}, PASSES, "# Parte I\nUno.\n# Parte II\nDos."),
    ("sections", {"count": 3}, JUST_FAILS, "Sección 1\nUno.\n\nSección 2\nDos."),
    (
        "sections",
        {"count": 3},
        HOSTILE,
        "Sección 1\nVer sección 2 y sección 3.\nSección 1\nOtra vez.\nSección 2\n\nIntersección 3\n",
    ),
    ("json", {"keys": ["año"]}, PASSES, '{"an\u0303o": 2026, "ciudad": "Cádiz"}'),
    ("json", {}, PASSES, '```json\n[{"a": 1}]\n```'),
    ("json", {}, JUST_FAILS, 'Aquí va: {"a": 1}'),
    ("json", {"keys": ["año", "mes"]}, JUST_FAILS, '{"año": 2026}'),
    ("json", {}, HOSTILE, '{"a": NaN}'),
    ("json", {}, HOSTILE, '"hola"'),
    ("json", {}, HOSTILE, "{'a': 1}"),
    ("json", {"keys": ["a"]}, HOSTILE, '["a"]'),
    ("json", {}, HOSTILE, "[" * 100_000 + "1"),
    ("placeholders", {"count": 2}, PASSES, "Hola, [nombre]: nos vemos en [dirección]."),
    ("placeholders", {"count": 2}, JUST_FAILS, "Hola, [nombre]."),
    ("placeholders", {"count": 2}, HOSTILE, "[ ] [x] [] [enlace](http://a.es) [[…]] [no\ncerrado] [uno]"),
    ("postscript", {}, PASSES, "Un saludo.\n\nP. D.: Trae pan."),
    ("postscript", {}, PASSES, "Un saludo.\n**P.D.** Trae pan."),
    ("postscript", {"marker": "P.S."}, PASSES, "Un saludo.\n\nP. S. Trae pan."),
    ("postscript", {}, JUST_FAILS, "Un saludo.\n\nP. D."),
    ("postscript", {"marker": "P. D."}, JUST_FAILS, "Un saludo.\n\nP. S. Trae pan."),
    ("postscript", {}, HOSTILE, "P. D.: Trae pan.\n\nUn saludo."),
    ("postscript", {}, HOSTILE, "Vive en el piso P. D. Núñez lo sabe. PDF: adjunto."),
    ("postscript", {}, HOSTILE, "P. D. Trae pan."),
    ("uppercase", {}, PASSES, "¿QUÉ HACE EL NIÑO EN LA 2.ª PLANTA?"),
    ("uppercase", {}, JUST_FAILS, "¿QUÉ HACE EL NIñO?"),
    ("uppercase", {}, HOSTILE, "123 ¡!"),
    ("lowercase", {}, PASSES, "¿qué hace el niño en la 2.ª planta?"),
    ("lowercase", {}, JUST_FAILS, "¿qué hace el niÑo?"),
    ("lowercase", {}, HOSTILE, "123 …"),
    ("title_case", {}, PASSES, "El Niño de la Capa Ñoña\n¿Qué Tal?"),
    ("title_case", {"small_words": False}, PASSES, "El Niño De La Capa"),
    ("title_case", {}, JUST_FAILS, "El Niño de la capa"),
    ("title_case", {}, HOSTILE, "EL NIÑO"),
    ("title_case", {}, HOSTILE, "de la Capa"),
    ("capital_words", {"count": 2, "relation": "exactly"}, PASSES, "La ONU y la UNESCO. A veces, Y más."),
    ("capital_words", {"count": 2}, JUST_FAILS, "La ONU y la Unesco."),
    ("capital_words", {"count": 2}, HOSTILE, "A Y O 1999 ÉL"),
    ("quotation", {}, PASSES, "«Dijo “hola” y se fue»"),
    ("quotation", {}, PASSES, ' "Hola."\n'),
    ("quotation", {}, PASSES, "“¿Qué?”"),
    ("quotation", {}, JUST_FAILS, "«Hola»."),
    ("quotation", {}, HOSTILE, "«Hola» dijo «adiós»"),
    ("quotation", {}, HOSTILE, '"Hola" dijo "adiós"'),
    ("quotation", {}, HOSTILE, '"'),
    ("quotation", {}, HOSTILE, "«Hola”"),
    ("start_phrase", {"phrase": "En mi opinión"}, PASSES, "**En mi  opinión**, sí."),
    ("start_phrase", {"phrase": "¿Sabes?"}, PASSES, "¿SABES? No."),
    ("start_phrase", {"phrase": "En mi opinión"}, JUST_FAILS, "Pues en mi opinión, sí."),
    ("start_phrase", {"phrase": "Sol"}, HOSTILE, "Solar."),
    ("end_phrase", {"phrase": "¿Algo más?"}, PASSES, "Es todo.\n\n«¿Algo más?»"),
    ("end_phrase", {"phrase": "fin"}, PASSES, "Y este es el fin."),
    ("end_phrase", {"phrase": "¿Algo más?"}, JUST_FAILS, "¿Algo más? Adiós."),
    ("end_phrase", {"phrase": "fin"}, HOSTILE, "Vio un serafin"),
    ("end_phrase", {"phrase": "año"}, HOSTILE, "Cumple un ano"),
    ("repeat_prompt", {"prompt": PROMPT}, PASSES, f"{PROMPT.upper()}\nDice que sí."),
    ("repeat_prompt", {"prompt": PROMPT}, JUST_FAILS, f"{PROMPT}\n…"),
    ("repeat_prompt", {"prompt": PROMPT}, HOSTILE, "¿Qué dice el Sr. Nunez?\nDice que sí."),
    ("repeat_prompt", {"prompt": "Di tu nombre"}, HOSTILE, "Di tu nombrecito"),
    ("two_answers", {}, PASSES, "Una.\n******\nOtra."),
    ("two_answers", {}, JUST_FAILS, "Una.\n*****\nOtra."),
    ("two_answers", {}, HOSTILE, "Una.****** una"),
    ("two_answers", {}, HOSTILE, "Una.******…"),
    ("two_answers", {}, HOSTILE, "Una.******Dos.******Tres."),
    ("no_commas", {}, PASSES, "Son 3.5 metros; sí: largos."),
    ("no_commas", {}, JUST_FAILS, "Son 3,5 metros."),
    ("no_commas", {}, HOSTILE, "Sí，largos、muchos"),
    ("no_commas", {}, HOSTILE, "\u200b"),
    ("question_marks", {"count": 2}, PASSES, "¿Quién? ¿¿Cómo?? Nadie."),
    ("question_marks", {"count": 2}, JUST_FAILS, "¿Quién? Cómo?"),
    ("question_marks", {"count": 1}, HOSTILE, "¿…? Nadie."),
    ("exclamation_marks", {}, PASSES, "¡Ay!"),
    ("exclamation_marks", {}, JUST_FAILS, "Ay!"),
    ("exclamation_marks", {}, HOSTILE, "¡! Ay"),
    ("accented_words", {"count": 2, "relation": "exactly"}, PASSES, "Él canta a\u0301gil, señor pingüino."),
    ("accented_words", {"count": 2}, JUST_FAILS, "Él canta agil."),
    ("accented_words", {"count": 2}, HOSTILE, "Señor pingüino, ñandú."),
]


@pytest.mark.parametrize(("id_", "arguments", "kind", "reply"), CASES, ids=lambda value: str(value)[:30])
def test_spanish_text(id_: str, arguments: dict[str, Any], kind: str, reply: str) -> None:
    assert load_verifier(id_, arguments).follows(reply) == (kind == PASSES)


@pytest.mark.parametrize("id_", VERIFIERS)
def test_every_verifier_has_each_kind_of_text(id_: str) -> None:
    assert {kind for own, _, kind, _ in CASES if own == id_} == {PASSES, JUST_FAILS, HOSTILE}


def arguments_of(id_: str) -> dict[str, Any]:
    return next(arguments for own, arguments, _, _ in CASES if own == id_)


@pytest.mark.parametrize("id_", VERIFIERS)
@pytest.mark.parametrize("reply", ["", " \n", "…", "\u200b\ufeff", "¿?", "***", "{}"])
def test_an_empty_reply_follows_nothing(id_: str, reply: str) -> None:
    assert not load_verifier(id_, arguments_of(id_)).follows(reply)


@pytest.mark.parametrize(("id_", "arguments", "kind", "reply"), CASES, ids=lambda value: str(value)[:30])
def test_composed_and_decomposed_text_are_the_same(id_: str, arguments: dict[str, Any], kind: str, reply: str) -> None:
    for form in ("NFC", "NFD"):
        other = {
            name: unicodedata.normalize(form, value) if isinstance(value, str) and name != "relation" else value
            for name, value in arguments.items()
        }
        assert load_verifier(id_, other).follows(unicodedata.normalize(form, reply)) == (kind == PASSES)


@given(st.sampled_from(sorted(VERIFIERS)), st.text(max_size=80))
def test_any_reply_can_be_checked(id_: str, reply: str) -> None:
    if id_ == "language":
        return  # It is the library's.
    verifier = load_verifier(id_, arguments_of(id_))
    assert verifier.follows(reply) in (True, False)
    assert verifier.follows(reply) == verifier.follows(reply)


@given(st.text(max_size=60), st.integers(0, 12))
def test_relations_agree_with_each_other(reply: str, count: int) -> None:
    def follows(relation: str, **more: Any) -> bool:
        return load_verifier("words", {"count": count, "relation": relation, **more}).follows(reply)

    found = len(words(reply))
    if not any(char.isalnum() for char in reply):
        assert not any(map(follows, ("at least", "at most", "less than", "more than", "exactly", "around")))
        return
    assert follows("at least") == (found >= count) != follows("less than")
    assert follows("more than") == (found > count) != follows("at most")
    assert follows("exactly") == (found == count) == follows("between", upper=count)


@pytest.mark.parametrize(
    ("id_", "arguments", "said"),
    [
        (
            "words",
            {},
            "verifier 'words': count: Field required; relation: Field required. It takes count, relation, upper",
        ),
        ("words", {"count": "3", "relation": "at most"}, "count: Input should be a valid integer"),
        ("words", {"count": True, "relation": "at most"}, "count: Input should be a valid integer"),
        ("words", {"count": 3, "relation": "mas de"}, "relation: Input should be 'at least'"),
        ("words", {"count": -1, "relation": "at most"}, "count: Input should be greater than or equal to 0"),
        ("words", {"count": 3, "relation": "between"}, "`upper` goes with the relation"),
        ("words", {"count": 3, "relation": "between", "upper": 2}, "`upper` is 2, below `count`"),
        ("words", {"count": 3, "relation": "at most", "upper": 4}, "`upper` goes with the relation"),
        ("keywords", {"keywords": []}, "keywords: List should have at least 1 item"),
        ("keywords", {"keywords": "año"}, "keywords: Input should be a valid list"),
        ("keywords", {"keywords": [" "]}, "keywords.0: String should have at least 1 character"),
        ("title", {"text": "x"}, "text: Extra inputs are not permitted. It takes no arguments."),
        ("letter_frequency", {"letter": "ab", "count": 1, "relation": "exactly"}, "`letter` is 'ab', not one letter"),
        ("paragraph_first_word", {"paragraph": 3, "first_word": "y", "count": 2}, "`paragraph` is 3, but `count` 2"),
        ("language", {"language": "español"}, "language: String should match pattern"),
        ("keywords:frequency", {"keyword": "sol", "frequency": 2, "count": 2}, "'count' is given twice"),
    ],
)
def test_wrong_arguments_are_named(id_: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as error:
        load_verifier(id_, arguments)
    assert said in str(error.value)
    assert id_ in str(error.value)


def test_unknown_verifiers_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown verifier 'bulets'\. Did you mean 'bullets'\?"):
        load_verifier("bulets")
    with pytest.raises(UnknownNameError, match=r"Known: .*language:response_language"):
        load_verifier("multi-turn:constrained_start")
    with pytest.raises(UnknownNameError, match="language of replies 'xx'"):
        load_verifier("language", {"language": "xx"}).follows("hola")


IFEVAL = {
    "keywords:existence": ({"keywords": ["sol"]}, "El sol.", "La luna."),
    "keywords:frequency": ({"keyword": "sol", "frequency": 2, "relation": "less than"}, "Un sol.", "Sol, sol."),
    "keywords:forbidden_words": ({"forbidden_words": ["sol"]}, "La luna.", "El sol."),
    "keywords:letter_frequency": ({"letter": "n", "let_frequency": 2, "let_relation": "at least"}, "nun", "no"),
    "language:response_language": ({"language": "es"}, "Hoy hace muy buen día en Sevilla.", "It is a fine day today."),
    "length_constraints:number_words": ({"num_words": 2, "relation": "less than"}, "Uno.", "Uno dos."),
    "length_constraints:number_sentences": ({"num_sentences": 2, "relation": "at least"}, "Uno. Dos.", "Uno."),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "Uno\n***\nDos", "Uno\n\nDos"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "dos"},
        "Uno\n\nDos",
        "Uno\n\nTres",
    ),
    "detectable_content:number_placeholders": ({"num_placeholders": 1}, "[nombre]", "nombre"),
    "detectable_content:postscript": ({"postscript_marker": "P.P.S"}, "Adiós.\nP.P.S Más.", "Adiós.\nP.S. Más."),
    "detectable_format:number_bullet_lists": ({"num_bullets": 1}, "* uno", "* uno\n* dos"),
    "detectable_format:constrained_response": ({}, "My answer is yes.", "Yes."),
    "detectable_format:number_highlighted_sections": ({"num_highlights": 1}, "*uno*", "uno"),
    "detectable_format:multiple_sections": (
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\nUno\nSECTION 2\nDos",
        "SECTION 1\nUno",
    ),
    "detectable_format:json_format": ({}, '{"a": 1}', "a: 1"),
    "detectable_format:title": ({}, "<<uno>>", "uno"),
    "combination:two_responses": ({}, "uno******dos", "uno dos"),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Di uno."}, "Di uno. Uno.", "Uno."),
    "startend:end_checker": ({"end_phrase": "fin"}, "El fin", "Fin de eso"),
    "startend:quotation": ({}, '"uno"', "uno"),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "less than"},
        "Un OVNI",
        "OVNI ONU",
    ),
    "change_case:english_capital": ({}, "UNO", "Uno"),
    "change_case:english_lowercase": ({}, "uno", "Uno"),
    "punctuation:no_comma": ({}, "uno", "uno, dos"),
}


@pytest.mark.parametrize("name", IFEVAL_NAMES)
def test_ifeval_names(name: str) -> None:
    arguments, follows, not_so = IFEVAL[name]
    # Its data has all argument names in every row, null where they do not apply.
    verifier = load_verifier(name, {**arguments, "no_such_argument": None})
    assert verifier.id == IFEVAL_NAMES[name].id in VERIFIERS
    assert verifier.follows(follows)
    assert not verifier.follows(not_so)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nació en 1999. Murió en 2020.", 2),
        ("El 3.er piso es caro.", 1),
        ("Vive en la c/ Mayor, núm. 3, 2.º izq. Llama antes.", 1),
        ("Son las 10.30 h. Ya vienen.", 2),
        ("La D.ª Ana y D. José llegaron. Fin", 2),
        ("S. M. el Rey habló… Luego calló.", 2),
        ("En el año 44 a. C. murió César. Roma cambió.", 2),
        ("Murió en el año 44 a. C. Roma cambió.", 2),
        ("Había pan, vino, etc. También queso.", 2),
        ("Había pan, etc., y queso.", 1),
        ("«¡Calla!», gritó. «No quiero.» Y se fue.", 3),
        ("1. Uno\n2. Dos", 2),
        ("¡¿Qué?! No.", 2),
        ("Visita www.rae.es o escribe a ana@rae.es. Gracias.", 2),
        ("Título\n\nUna frase.", 2),
        ("RR. HH. y CC. AA. son siglas.", 1),
    ],
)
def test_sentences(text: str, found: int) -> None:
    assert len(sentences(text)) == found, sentences(text)


@given(
    st.lists(st.sampled_from(["uno", "Dos", "ñu", "Sr.", "3,5", "fin.", "¿qué?", "\n", "…", "*"]), max_size=20).map(
        " ".join
    )
)
def test_sentences_and_paragraphs_lose_no_word(text: str) -> None:
    assert [word for sentence in sentences(text) for word in words(sentence)] == words(text)
    assert [word for paragraph in paragraphs(text) for word in words(paragraph)] == words(text)


@given(st.sampled_from(["sol", "año", "canción", "mal de ojo"]), st.integers(0, 5))
def test_occurrences_are_counted(word: str, n: int) -> None:
    assert occurrences(f" x{word} " + f"{word.upper()}, " * n + f"{word}z", word) == n
