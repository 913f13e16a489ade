"""The parser of multiple-choice replies: real-world forms, hostile ones, and what must never change an answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.tasks.understanding.answers.parsing import Parsed, parse_reply

CITIES = ("Madrid", "Barcelona", "Sevilla", "Barcelona y Sevilla")
YES_NO = ("Sí", "No")
TRUE_FALSE = ("Verdadero", "Falso")
MOODS = ("Está enfadado", "Está contento", "Está triste", "No se puede saber")
LIKES = ("Le gusta el fútbol", "No le gusta el fútbol", "Le gusta el tenis", "No habla de deportes")
NUMBERS = ("2", "3", "3,5", "30")
ACCENTS = ("papa", "papá", "ano", "año")
MANY = tuple(f"palabra{n}" for n in range(1, 16))
NONE_OF = ("Madrid", "Barcelona", "Todas las anteriores", "Ninguna de las anteriores")

B_OF_CITIES = [
    # Letters in the usual forms.
    *("B", "b", "(b)", "(B)", "B)", "b)", "b.", "B.", "B:", "[B]", "{B}", '"B"', "'B'", "«B»", "“B”", "`B`", " B \n"),
    *("**B**", "*B*", "__B__", "***B***", "**B)**", "**B.**", "**(B)**", "- B", "* B", "• B", "> B", "# B", "B!", "B?"),
    *("Ｂ", "Ⓑ", "⒝", "𝐁", "🅱️", "\ufeffB", "B\u200b", "<b>B</b>", "<p>B</p>", "$B$", r"\(B\)", "B\r\n"),
    # Letter and text.
    *(
        "B) Barcelona",
        "B. Barcelona",
        "(B) Barcelona",
        "B: Barcelona",
        "B - Barcelona",
        "B – Barcelona",
        "b) barcelona.",
    ),
    *(
        "**B) Barcelona**",
        "**B.** Barcelona",
        "B) **Barcelona**",
        "B Barcelona",
        "Barcelona (B)",
        "Opción B: Barcelona",
    ),
    # Words before the letter.
    *("Opción B", "opción b", "La opción B", "la opción (b)", "Opción: B", "OPCIÓN B", "Option B", "Alternativa B"),
    *("La B", "la b", "Es la B", "La letra B", "Inciso b)", "literal b", "Respuesta B", "La respuesta es la B"),
    *("La respuesta correcta es B", "La respuesta correcta es la opción B.", "La respuesta correcta es: **B**"),
    *(
        "Respuesta: B",
        "Respuesta correcta: b)",
        "Respuesta: (B) Barcelona",
        "Answer: B",
        "The answer is B.",
        "ANSWER: B",
    ),
    *(
        "The correct answer is (B) Barcelona.",
        "Correct option: B",
        "Mi respuesta es la B",
        "Solución: B",
        "La correcta es B",
    ),
    *(
        "Elijo la B",
        "Me quedo con la B.",
        "Escojo la opción B",
        "Selecciono B",
        "I choose B",
        "I'd go with B",
        "Sería la B",
    ),
    *("La opción que mejor describe lo que se oye es la B.", "La opción B es la correcta.", "La B es correcta"),
    *(
        "B es la respuesta correcta",
        "Creo que es la B",
        "Diría que es la opción B.",
        "Sin duda, la B",
        "No hay duda: B",
    ),
    *("No cabe duda de que es la B.", "Por lo tanto, B.", "El hablante lo dice. Por tanto, la B", "Claramente la B."),
    # Ordinals.
    *("la segunda", "La segunda.", "segunda opción", "La segunda opción", "la opción segunda", "Es la segunda opción"),
    *(
        "La respuesta es la segunda",
        "2.ª opción",
        "La 2ª",
        "opción 2",
        "Option 2",
        "opción número 2",
        "la segunda alternativa",
    ),
    *("The second option", "the second one", "2nd option", "Second.", "El segundo", "La segunda es la correcta."),
    # Texts.
    *(
        "Barcelona",
        "barcelona",
        "BARCELONA",
        "Barcelona.",
        "«Barcelona»",
        "**Barcelona**",
        "bárcelona",
        "  Barcelona  ",
    ),
    *("La respuesta es Barcelona.", "Respuesta: Barcelona", "El hablante vive en Barcelona.", "Vive en **Barcelona**."),
    *("Barcelona, porque lo dice al principio.", "Barcelona. El hablante lo dice al principio."),
    # JSON.
    *('{"answer": "B"}', '{"respuesta": "B"}', '{"respuesta": "Barcelona"}', '{"Respuesta": "b)"}', '["B"]'),
    *(
        '```json\n{"answer": "B"}\n```',
        '```\n{"answer": "B"}\n```',
        'Aquí está:\n```json\n{"opción": "B"}\n```\nSaludos.',
    ),
    *(
        '{"razonamiento": "Habla de Madrid y de Sevilla", "respuesta": "B"}',
        '{"answer": {"letter": "B", "text": "Barcelona"}}',
    ),
    *(
        '{"answer": ["B"]}',
        "{'answer': 'B'}",
        '{"respuesta_final": "Opción B"}',
        '[{"answer": "B"}]',
        '{"answer": "B) Barcelona"}',
    ),
    *('{"final_answer": "La segunda"}', '{"id": 3, "answer": "B", "confidence": 0.4}'),
    # Final markers.
    *(
        "Respuesta final: B",
        "RESPUESTA FINAL: B",
        "**Respuesta final:** B",
        "**Respuesta final: B**",
        "Respuesta final:\nB",
    ),
    *(
        "## Respuesta final\n\n**B**",
        "Final answer: B",
        "The final answer is **B**.",
        r"\boxed{B}",
        r"$\boxed{\text{B}}$",
    ),
    *(r"Por tanto, la respuesta es $\boxed{\textbf{(B)}}$.", "<answer>B</answer>", "<answer>\nB. Barcelona\n</answer>"),
    *("<respuesta>B</respuesta>", "<answer>B", r"\boxed{Barcelona}"),
    "Primero pensé en la A.\nRespuesta: A no encaja.\nRespuesta final: B",
    "Respuesta: A. Espera, no.\n\n**Respuesta final: B**",
    # Reasoning that is not part of the answer.
    "<think>Podría ser la A… no, la C.</think>B",
    "<think>\nA\n</think>\n\nLa respuesta es la B.",
    "la A no, la C tampoco</think>\n\nB",
    "<think>a<think>b</think>c</think>B",
    "<thinking>Madrid</thinking> Barcelona",
    "[THINK]La A…[/THINK]B",
    "◁think▷Madrid◁/think▷Barcelona",
    "<|channel|>analysis<|message|>Maybe A<|end|><|start|>assistant<|channel|>final<|message|>B",
    "analysisThe user asks; maybe A.assistantfinalB",
    "B<|im_end|>",
    "B</s>",
    "<THINK>A</THINK>B<|endoftext|>",
    # With reasons.
    "B, porque el hablante lo dice.",
    "B porque las demás son incorrectas",
    "La respuesta es B porque las otras opciones son incorrectas.",
    "B) Barcelona. El hablante nació en Madrid, pero vive en Barcelona.",
    "B. Porque dice que vive allí desde niño.",
    "La respuesta correcta es B) Barcelona. El hablante dice que no vive en Madrid.",
    "Es la B, no la A",
    "La B, no la A ni la C.",
    "No, es la B",
    "No es la A, sino la B.",
    "No es Madrid, es Barcelona.",
    "No es Madrid. Es Barcelona.",
    "No vive en Madrid sino en Barcelona",
    "Barcelona, no Madrid.",
    "Barcelona en lugar de Madrid",
    "Descarto la A. Descarto la C. La opción correcta es la B.",
    "La opción A es incorrecta. La opción B es correcta. La opción C es incorrecta.",
    "A: no. B: sí. C: no. D: no.",
    "La A queda descartada, así que la B.",
    "Incorrectas: A, C y D.\nCorrecta: B",
    "A veces habla de Madrid, pero la respuesta es la B.",
    "La opción A, que habla de Madrid, es incorrecta. Es la B.",
    "¿Cuál es la respuesta correcta? La B.",
    "¿Es la A? No. Es la B.",
    "Si fuera la A, lo diría antes. Es la B.",
    "Sí, la B.",
    "Bueno, la opción B.",
    # As models write them.
    "La opción correcta es la letra B.",
    "La respuesta correcta sería la B",
    "Respuesta: opción B) Barcelona",
    "Respuesta correcta: **B. Barcelona**\n\n**Explicación:** Nació en Madrid pero vive en Barcelona.",
    "La respuesta es (B).",
    "Option (B)",
    "the answer is option B",
    "Based on the audio, the correct answer is:\n\n**B) Barcelona**",
    "De acuerdo con el audio, la opción correcta es:\n\n**B**",
    "B\n\nExplicación: en el audio se oye que vive en Barcelona, no en Madrid.",
    "Según el audio, el hablante vive en Barcelona (opción B).",
    "Respuesta B.",
    "La respuesta a la pregunta es la B",
    "La respuesta a esta pregunta es: B",
    "Considero que la respuesta correcta es la B) Barcelona.",
    "En el audio se escucha que vive en Barcelona, por lo que la respuesta correcta es la B.",
    "La opción B: Barcelona",
    "Es la opción B, Barcelona",
    "El hablante vive en Barcelona, opción B",
    "opción **B**",
    'Opción "B"',
    "Opción «B»",
    "Mi elección: B",
    "Letra: B",
    "letra b",
    "La opción que corresponde es la B",
    "La alternativa correcta es la B",
    "La alternativa B es la correcta",
    "Me inclino por la B",
    "La correcta sería B",
    "B is correct",
    "B is the correct answer because",
    "I think it's B",
    "It's B",
    "It is B.",
    "I believe the answer is B",
    "So the answer is B",
    "Therefore, B",
    "Answer = B",
    "answer: (b)",
    "ANSWER: **B**",
    "The best answer is B",
    "Choice B",
    "Choose B",
    "Select B",
    "Respondo: B",
    "Contesto: la B",
    "Marcaría la B",
    "La b)",
    "b) Barcelona, ya que",
    "(b) Barcelona.",
    "B.-",
    "B.- Barcelona",
    "B— Barcelona",
    "B → Barcelona",
    "B = Barcelona",
    "Barcelona.\n",
    "¡Barcelona!",
    "Rta: B",
    "Resp.: B",
    "Respuesta = B",
    "Solución correcta: B",
    "Mi respuesta final es la B.",
    "Mi respuesta es: B",
    "respuesta_final: B",
    "Respuesta Final - B",
    "La respuesta final es \\boxed{B}",
    "**Respuesta correcta:** Opción B",
    "**Respuesta:** la segunda opción",
    "La opción número 2",
    "la opción dos",
    "La segunda de las opciones",
    "SEGUNDA OPCIÓN",
    "Option two",
    "Barcelona es la respuesta correcta.",
    "Barcelona es la correcta",
    "La ciudad es Barcelona",
    "vive en barcelona",
    "La ciudad mencionada es “Barcelona”.",
    "<answer>Opción B</answer>",
    "<answer>(B) Barcelona</answer>\n",
    "Answer:\nB",
    "Answer:\n\nB) Barcelona\n\nExplanation: Madrid is mentioned.",
    '{"answer":"B","explanation":"No es Madrid"}',
    '{"choice": "B"}',
    '{"letra": "b", "texto": "Barcelona"}',
    '{"opcion_correcta": "B"}',
    '{"response": "B"}',
    '{"output": "B"}',
    '{"answer_letter":"B"}',
    "answer: B\nconfidence: 0.8",
    "```\nB\n```",
    "```B```",
    "`B) Barcelona`",
    "| B |",
    "La respuesta correcta es la **B**: *Barcelona*.",
    "Correcto, es la B.",
    "Efectivamente, la B",
    "Vale: B",
    "Claro. La respuesta es la B",
    "La persona dice claramente que vive en Barcelona",
    "Entonces la respuesta es B.",
    "Entonces es la B.",
    "Así que es la B",
    "Por descarte, la B",
    "Por eliminación, es la B.",
    "Solo puede ser la B",
    "Tiene que ser la B",
    "Debe de ser la B",
    "Podría ser la B",
    "Quizá la B",
    "Probablemente B",
    "Yo diría B",
    "Yo diría que B.",
    "Voy con la B",
    "Escogería la opción B.",
    "Opto por B",
    "La opción correcta, según lo que se oye, es la B.",
    "La respuesta correcta, por tanto, es B",
    "La respuesta que se ajusta al audio es la B.",
    "La opción más adecuada es la B",
    "La opción más probable sería la B)",
    # The question or the options again, then the answer.
    "A) Madrid\nB) Barcelona\nC) Sevilla\nD) Barcelona y Sevilla\n\nRespuesta: B",
    "A) Madrid\nB) Barcelona\nC) Sevilla\nD) Barcelona y Sevilla\n\nB",
    "Madrid\nBarcelona\nSevilla\nBarcelona y Sevilla\n\nBarcelona",
    "Las opciones son A, B, C y D. La correcta es la B.",
    "Las opciones son Madrid, Barcelona, Sevilla y Barcelona y Sevilla. El hablante vive en Barcelona.",
    "¿Dónde vive el hablante?\nA) Madrid B) Barcelona C) Sevilla D) Barcelona y Sevilla\nRespuesta: B) Barcelona",
    "A) Madrid ❌\nB) Barcelona ✅\nC) Sevilla ❌\nD) Barcelona y Sevilla ❌",
    "~~A~~ B",
    "### Análisis\nEl hablante menciona su ciudad.\n\n### Respuesta\nB",
    "Transcripción: «hola, vivo en la ciudad condal».\n\n**Respuesta: B. Barcelona**",
    "Respuesta:\n\n- **B) Barcelona**",
    "Respuesta (una sola letra): B",
    "1. El hablante dice que trabaja.\n2. Vive en la costa.\n\nPor lo tanto, la respuesta correcta es la **opción B**.",
]

NOT_AN_ANSWER = [
    # Spanish words that look like letters.
    *("A veces duda, o quizá no.", "O quizá no lo dice.", "A mi juicio no se sabe", "Y entonces calla.", "E incluso"),
    *(
        "A menudo",
        "A la pregunta no responde",
        "La respuesta a la pregunta no se dice",
        "la opción a elegir no está clara",
    ),
    *(
        "Respuesta a la pregunta: desconocida",
        "Respuesta: A veces",
        "A VECES HABLA DE OTRA COSA",
        "La a final se alarga",
    ),
    *("opción a considerar", "una opción o alternativa", "El niño(a) llora", "hablante(s)", "D. José vive en Valencia"),
    *("Dice: a ver", "Va a casa", "y/o", "el plan B", "la vitamina C", "hepatitis B", "la clase C del tren", "grupo A"),
    *("El hablante A habla con el hablante B", "La persona B se ríe", "e-mail", "Habla de la A-6"),
    # Negations.
    *(
        "No es la B",
        "no es la opción B",
        "No creo que sea la B",
        "La B no",
        "La B no es correcta",
        "B es incorrecta",
        "B no",
    ),
    *(
        "La opción B es falsa",
        "La B queda descartada",
        "Descarto la B",
        "Ni la A ni la B",
        "No es Barcelona",
        "Barcelona no",
    ),
    *(
        "La respuesta no es la B",
        "Respuesta: no es la B",
        "No puede ser la opción B",
        "Nunca la B",
        "It is not B",
        "Not B",
    ),
    *(
        "Cualquiera menos la B",
        "Todas excepto la B",
        "La opción B, que habla de Barcelona, es incorrecta",
        "B: incorrecta",
    ),
    *(
        "Descarto A, B y C",
        "B ❌",
        "La opción B, aunque plausible, es incorrecta.",
        "Tampoco la B",
        "the answer isn't B",
    ),
    # Questions and suppositions.
    *("¿Es la B?", "¿La B o la C?", "¿Será Barcelona?", "Si fuera la B, lo diría.", "Could it be option B?"),
    # Lists of all options.
    *(
        "A, B, C o D",
        "A) Madrid\nB) Barcelona\nC) Sevilla\nD) Barcelona y Sevilla",
        "A/B/C/D",
        "Las opciones son A, B, C y D.",
    ),
    *("a) Madrid b) Barcelona c) Sevilla d) Barcelona y Sevilla", "Madrid, Barcelona, Sevilla, Barcelona y Sevilla"),
    *("Responde con la letra: A, B, C o D", "Respuesta: A, B, C o D"),
    # Letters that the item does not have, numbers, other texts.
    *(
        "E",
        "F)",
        "La respuesta es la E",
        "Opción Z",
        "\\boxed{H}",
        '{"answer": "E"}',
        '{"answer": 1}',
        '{"answer": null}',
    ),
    *(
        "2",
        "1",
        "La quinta opción",
        "opción 7",
        "0",
        "Valencia",
        "Barcelon",
        "Barcelonas",
        "Madrileño",
        "madri",
        "Ninguna",
    ),
    *('{"answer": ""}', "{}", "[]", "...", "—", "No lo sé.", "Ninguna de ellas"),
    *(
        "Lo siento, no puedo escuchar audio.",
        "Respuesta: ninguna. La opción B no convence",
        "Respuesta final: no lo sé. La B no está mal",
    ),
    *(
        "A.M. López",
        "B.C.",
        "Hablante A: hola. Hablante B: adiós.",
        "Persona A saluda",
        "A las 5 sale el tren",
        "La be",
    ),
    *(
        "La respuesta es a las tres",
        "El hablante pregunta si vive en Madrid",
        "¿Vive en Madrid?",
        "nadie vive en Madrid",
    ),
    *(
        "La opción más larga",
        "La respuesta es clara",
        "A no ser que llueva",
        "El grupo sanguíneo es A",
        "Es A positivo",
    ),
    *(
        "vitamina B",
        "ABCD",
        "AB",
        "BB",
        "B2",
        "option BC",
        "A B C D",
        "U",
        "y",
        "E.",
        "O.",
        "o",
        "de la a a la z",
        "[B-roll]",
    ),
    *(
        "A, B, C y D son correctas",
        "Choose A, B, C or D",
        "Answer: None",
        "The letter A is mentioned",
        "A man speaks",
        "I am",
    ),
    *("La C no, la D tampoco, la A tampoco, la B tampoco", "I cannot process audio.", "Dice que NO vive en Madrid"),
    "Respuesta: ninguna de las opciones; se oye una voz de mujer y la letra B de una matrícula",
    "Respuesta final: no se puede saber.\n\nAunque en Barcelona suele llover.",
]

AMBIGUOUS = [
    *("A: Hola, ¿cómo estás?\nB: Bien, gracias.", "A) Análisis: …\nB) Conclusión: …", "A. Un hombre\nB. Una mujer"),
    *("1) Madrid\n2) Sevilla", "La respuesta es B o tal vez C", "Respuesta: B/C", "las opciones a y b", "a,b,c"),
    *(
        "A o B",
        "A y B",
        "A, B",
        "A/C",
        "A/B",
        "La A o la C",
        "Las opciones A y C son correctas",
        "Respuesta: A y C",
        "Madrid o Sevilla",
    ),
    *(
        "Madrid\nSevilla",
        "B) Madrid",
        "B. Madrid",
        "Opción B: Madrid",
        "(A) Barcelona",
        '{"answer": ["A", "B"]}',
        "A\nB",
    ),
    *('{"letra": "A", "respuesta": "Barcelona"}', r"\boxed{A} \boxed{B}", "Respuesta final: A\nRespuesta final: B"),
    *(
        "Respuesta: A\nRespuesta: B",
        "La respuesta es A. No, la respuesta es B.",
        "Answer: A or B",
        "La primera o la segunda",
    ),
    *(
        "Podría ser Madrid o podría ser Sevilla.",
        "Entre la A y la B",
        "B\n\nRespuesta: C",
        "A: sí. B: sí.",
        "<answer>A y B</answer>",
    ),
    *(
        '{"answer": "A"} {"answer": "B"}',
        "Unos hablan de Madrid. Otros hablan de Sevilla.",
        "La A y la B son verdaderas",
    ),
]


@pytest.mark.parametrize("reply", B_OF_CITIES)
def test_replies_that_choose_the_second_option(reply: str) -> None:
    found = parse_reply(reply, CITIES)
    assert (found.index, found.status) == (1, "parsed"), found


@pytest.mark.parametrize("reply", NOT_AN_ANSWER)
def test_replies_that_choose_nothing(reply: str) -> None:
    found = parse_reply(reply, CITIES)
    assert (found.index, found.status) == (None, "absent"), found


@pytest.mark.parametrize("reply", AMBIGUOUS)
def test_replies_that_name_several_options(reply: str) -> None:
    found = parse_reply(reply, CITIES)
    assert (found.index, found.status) == (None, "ambiguous"), found


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " ",
        "\n\t",
        "\u200b",
        "<think>A",
        "<think>B</think>",
        "<think>The answer is B",
        "<|im_end|>",
        "[THINK]B",
        "</s>",
    ],
)
def test_empty_replies(reply: str) -> None:
    assert parse_reply(reply, CITIES) == Parsed(None, "nothing", "empty")


OTHER_ITEMS: list[tuple[str, Sequence[str], int | None]] = [
    # The longest option wins over one that it contains.
    ("Barcelona y Sevilla", CITIES, 3),
    ("Habla de Barcelona y Sevilla.", CITIES, 3),
    ("La respuesta es Barcelona y Sevilla", CITIES, 3),
    ("Barcelona, Sevilla", CITIES, None),
    ("El hablante dice que no le gusta el fútbol.", LIKES, 1),
    ("le gusta el futbol", LIKES, 0),
    ("No le gusta el fútbol", LIKES, 1),
    ("No le gusta el tenis", LIKES, None),
    ("Dice que le gusta el tenis y que no le gusta el fútbol", LIKES, None),
    # Yes and no as words and as answers.
    ("Sí", YES_NO, 0),
    ("Si", YES_NO, 0),
    ("si.", YES_NO, 0),
    ("No", YES_NO, 1),
    ("No.", YES_NO, 1),
    ("No, el hablante no lo menciona.", YES_NO, 1),
    ("Sí, porque lo dice.", YES_NO, 0),
    ("Respuesta: No", YES_NO, 1),
    ("La respuesta es «no».", YES_NO, 1),
    ("B) No", YES_NO, 1),
    ("A) No", YES_NO, None),
    ("No se menciona nada.", YES_NO, None),
    ("No lo sé", YES_NO, None),
    ("Si lo dice, no se oye.", YES_NO, None),
    ("No puedo escuchar el audio.", YES_NO, None),
    ("Lo siento, no puedo ayudar.", YES_NO, None),
    ("No, lo siento, no puedo ayudar con eso.", YES_NO, None),
    ("Sí o no", YES_NO, None),
    ("Sí y no", YES_NO, None),
    ("Yes", ("Yes", "No"), 0),
    # True and false.
    ("Falso", TRUE_FALSE, 1),
    ("Es falso.", TRUE_FALSE, 1),
    ("B: Falso", TRUE_FALSE, 1),
    ("B) Falso", TRUE_FALSE, 1),
    ("La afirmación es verdadero", TRUE_FALSE, 0),
    ("A es falso", TRUE_FALSE, None),
    # Options that deny, options about options.
    ("No se puede saber", MOODS, 3),
    ("no se puede saber con el audio", MOODS, 3),
    ("El hablante está contento, no está triste.", MOODS, 1),
    ("ESTA CONTENTO", MOODS, 1),
    ("D. No se puede saber", MOODS, 3),
    ("Ninguna de las anteriores", NONE_OF, 3),
    ("Respuesta: ninguna de las anteriores.", NONE_OF, 3),
    ("Respuesta: ninguna", NONE_OF, None),
    ("La última", NONE_OF, 3),
    ("La penúltima opción", NONE_OF, 2),
    ("the last option", NONE_OF, 3),
    # Numbers are whole numbers, and an option's text goes before its place.
    ("3", NUMBERS, 1),
    ("3,5", NUMBERS, 2),
    ("30", NUMBERS, 3),
    ("Hay 3 personas", NUMBERS, 1),
    ("300", NUMBERS, None),
    ("Entre 2 y 3", NUMBERS, None),
    ("2-3", NUMBERS, None),
    ("opción 2", NUMBERS, None),
    ("Opción B", NUMBERS, 1),
    ("3 %", ("3", "3 %"), 1),
    ("-3", ("3", "-3"), 1),
    ('{"answer": 3}', NUMBERS, 1),
    ('{"answer": 7}', NUMBERS, None),
    ("COVID19", ("19", "20"), None),
    # Accents, ñ and punctuation tell options apart when they must.
    ("papá", ACCENTS, 1),
    ("papa", ACCENTS, 0),
    ("PAPÁ", ACCENTS, 1),
    ("Es su papá.", ACCENTS, 1),
    ("año", ACCENTS, 3),
    ("ano", ACCENTS, 2),
    ("El an\u0303o", ACCENTS, 3),
    ("Espana", ("España", "Francia"), 0),
    ("No, quiero", ("No, quiero", "No quiero"), 0),
    ("no quiero", ("No, quiero", "No quiero"), 1),
    ("¿Vienes?", ("Vienes.", "¿Vienes?"), 1),
    ("franco española", ("franco-española", "italiana"), 0),
    ("EEUU", ("EE. UU.", "EEUU"), 1),
    ("+", ("+", "-"), 0),
    # A letter that is a Spanish word, alone.
    ("a", CITIES, 0),
    ("La respuesta es a", CITIES, 0),
    ("La respuesta es la a.", CITIES, 0),
    ("a) Madrid", CITIES, 0),
    ("A porque lo dice", CITIES, 0),
    ("La opción A describe mejor el tono.", CITIES, 0),
    ("la opción a es correcta", CITIES, 0),
    ("A Madrid", CITIES, 0),
    ("A Madrid se fue", CITIES, 0),
    # Letters as texts, many options.
    ("B", ("B", "A"), None),
    ("La respuesta es B", ("B", "A"), None),
    ("La O", MANY, 14),
    ("O", MANY, 14),
    ("O quizá la palabra", MANY, None),
    ("E)", MANY, 4),
    ("palabra1", MANY, 0),
    ("palabra15", MANY, 14),
    ("la décima", MANY, 9),
    # Options about order, speakers, hours.
    ("El segundo", ("El segundo audio", "El primer audio"), None),
    ("El segundo audio", ("El segundo audio", "El primer audio"), 0),
    ("La segunda opción", ("El segundo audio", "El primer audio"), 1),
    ("B", ("El segundo audio", "El primer audio"), 1),
    ("En el primer audio", ("El segundo audio", "El primer audio"), 1),
    ("Hablante B", ("Hablante B", "Hablante A"), 0),
    ("Respuesta: el hablante A", ("Hablante B", "Hablante A"), 1),
    ("A las 5", ("A las 10", "A las 5"), 1),
    ("Llega a las 5.", ("A las 10", "A las 5"), 1),
    ("Ninguno", ("Ambos", "Ninguno"), 1),
    ("Respuesta: ninguno", ("Ambos", "Ninguno"), 1),
    # Words that only look like denials.
    ("Hay más o menos 3 personas", NUMBERS, 1),
    ("Vive exclusivamente en Madrid", CITIES, 0),
    ("No me cabe la menor duda de que es Madrid", CITIES, 0),
    ("No solo lo dice: vive en Madrid", CITIES, 0),
    ("Sí, vive en Madrid", CITIES, 0),
    # What is said of a place or a time is no choice of an option.
    ("La segunda vez que habla está enfadada", CITIES, None),
    ("En segundo lugar, menciona un tren.", CITIES, None),
    ("La tercera persona se ríe", CITIES, None),
    ("Segundo, el hablante duda.", CITIES, None),
    ("Mi primera respuesta era otra", CITIES, None),
    ("La primera respuesta del entrevistado es larga", CITIES, None),
    ("Son las 2 de la tarde", CITIES, None),
]


@pytest.mark.parametrize(("reply", "options", "index"), OTHER_ITEMS, ids=[row[0] for row in OTHER_ITEMS])
def test_other_items(reply: str, options: Sequence[str], index: int | None) -> None:
    found = parse_reply(reply, options)
    assert found.index == index, found
    assert (found.status == "parsed") == (index is not None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), DataError),
        (("uno",), DataError),
        (("uno", " "), DataError),
        (("uno", "dos", " uno "), DataError),
        (("an\u0303o", "año"), DataError),
        (tuple(f"n{n}" for n in range(27)), UsageError),
    ],
)
def test_options_that_are_none(options: Sequence[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_reply("A", options)


@pytest.mark.parametrize("reply", B_OF_CITIES)
def test_case_never_makes_it_another_answer(reply: str) -> None:
    for other in (reply.lower(), reply.upper(), reply.swapcase()):
        assert parse_reply(other, CITIES).index in (1, None), other


@pytest.mark.parametrize("reply", [*NOT_AN_ANSWER, *AMBIGUOUS])
def test_case_never_makes_it_an_answer(reply: str) -> None:
    assert parse_reply(reply.lower(), CITIES).index is None
    assert parse_reply(reply.upper(), CITIES).index is None


BY_TEXT = (
    "{}",
    "{}.",
    "Respuesta: {}",
    "La respuesta es {}.",
    "Respuesta final: {}",
    "<answer>{}</answer>",
    "Dice {}, claro.",
)
BY_LETTER = (
    "{}",
    "({})",
    "{}.",
    "{})",
    "La respuesta es la {}.",
    "Opción {}",
    "Respuesta final: {}",
    "Answer: {}",
    "La {}",
)
BY_ORDINAL = ("La {}", "la {} opción", "Respuesta: la {}.", "Respuesta final: la {} opción", "Es la {} opción.")
ORDINALS = ("primera", "segunda", "tercera", "cuarta")
DECORATED = (
    "{}",
    " {} ",
    "\n\n{}\n",
    "**{}**",
    "\t{}\r\n",
    "<think>Madrid, la A o la C…</think>\n{}",
    "_{}_",
    "> {}",
    "- {}",
)
places = st.integers(0, 3)
orders = st.permutations(range(4))
cases = st.sampled_from([str, str.lower, str.upper])


@given(st.sampled_from(BY_TEXT), places, orders, st.sampled_from(DECORATED), cases)
def test_texts_move_with_their_options(template, place, order, decorated, case) -> None:  # type: ignore[no-untyped-def]
    said = case(template.format(CITIES[place]))
    found = parse_reply(decorated.format(said), [CITIES[index] for index in order])
    assert found.index == order.index(place), found


@given(st.sampled_from(BY_LETTER), places, orders, st.sampled_from(DECORATED), cases)
def test_letters_name_places(template, place, order, decorated, case) -> None:  # type: ignore[no-untyped-def]
    said = case(template.format("ABCD"[place]))
    assert parse_reply(decorated.format(said), [CITIES[index] for index in order]).index == place


@given(st.sampled_from(BY_ORDINAL), places, orders, st.sampled_from(DECORATED), cases)
def test_ordinals_name_places(template, place, order, decorated, case) -> None:  # type: ignore[no-untyped-def]
    said = case(template.format(ORDINALS[place]))
    assert parse_reply(decorated.format(said), [CITIES[index] for index in order]).index == place


WORDS = (
    "no",
    "es",
    "la",
    "respuesta",
    "¿",
    "?",
    ".",
    ",",
    ":",
    "\n",
    "y",
    "o",
    "que",
    "vive en",
    "sino",
    "**",
    "«",
    "»",
)
MORE = ("A", "B", "(c)", "opción", "{", '"answer"', "}", "segunda", "<think>", "</think>", "\\boxed{")


@given(st.lists(st.sampled_from((*CITIES, *WORDS)), max_size=12).map(" ".join), orders)
def test_any_prose_of_texts_moves_with_its_options(reply: str, order: list[int]) -> None:
    here = parse_reply(reply, CITIES)
    there = parse_reply(reply, [CITIES[index] for index in order])
    assert (here.status, here.index) == (there.status, None if there.index is None else order[there.index])


@given(st.text(max_size=200) | st.lists(st.sampled_from((*CITIES, *WORDS, *MORE)), max_size=15).map(" ".join))
def test_any_text_is_read(reply: str) -> None:
    found = parse_reply(reply, CITIES)
    assert (found.index is not None) == (found.status == "parsed")
    assert found.index is None or 0 <= found.index < 4
    if "think" not in reply:
        assert parse_reply(f"<think>A. {reply}</think>{reply}", CITIES) == found


LONG = (
    *(
        "(",
        "A, ",
        "no ",
        "Madrid ",
        "la opción que ",
        "<think>",
        "{",
        "**",
        "es la ",
        "¿",
        '{"answer": ',
        "a\n",
        "y ",
        "\n",
    ),
    *(
        "Respuesta: ",
        "Madrid, Sevilla. ",
        "**B** o ",
        "no Madrid. Sevilla. ",
        "Madrid no. ",
        " ",
        "B) ",
        "\\boxed{",
        "```",
        "_",
    ),
)


@pytest.mark.parametrize("piece", LONG)
def test_long_replies_are_read_quickly(piece: str) -> None:
    start = time.process_time()
    parse_reply(piece * (30_000 // len(piece)) + "x", CITIES)
    assert time.process_time() - start < 10
