"""What is asked, in Spanish. The published benchmark does not give its prompts but one: these are ours.

Only "Contesta a la pregunta en el audio", and that the spoken question is the last sound, are the authors' (ESCUCHA,
arXiv 2607.17812). A change of any text needs a new `PROMPTS_VERSION`: results hold both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....errors import UsageError

PROMPTS_VERSION = "es-1"

PROMPTS: Mapping[str, str] = {
    "mcqa": "Escucha el audio y responde a la pregunta.\n\nPregunta: {question}\n\nOpciones:\n{options}\n\n{letters}",
    "mcqa_comparative": (
        "Escucha los dos audios y responde a la pregunta.\n\nPregunta: {question}\n\nOpciones:\n{options}\n\n{letters}"
    ),
    "mcqa_spoken": "Contesta a la pregunta en el audio.\n\nOpciones:\n{options}\n\n{letters}",
    "aif": "Escucha el audio y sigue la instrucción.\n\nInstrucción: {question}",
    "aif_comparative": "Escucha los dos audios y sigue la instrucción.\n\nInstrucción: {question}",
    "aif_spoken": "Sigue la instrucción que se da en el último audio.",
    "option": "{letter}) {text}",
    "letters": "Responde solo con la letra de la opción correcta ({first} o {last}).",
    "letters_many": "Responde solo con la letra de la opción correcta ({first}-{last}).",
    "audio": "Audio:",
    "audio_numbered": "Audio {number}:",
    "spoken_question": "Pregunta:",
    "spoken_instruction": "Instrucción:",
}
"""Every text, by what it is for. A single sound beside no other has no name."""
LETTERS = "ABCDEFGHIJ"


def prompt_of(
    kind: str, question: str, options: Sequence[str] = (), *, comparative: bool = False, spoken: bool = False
) -> str:
    """What is written to the answerer for a question of `kind` "mcqa" or "aif"; a spoken one is not written.

    >>> print(prompt_of("mcqa", "¿Quién habla?", ["Ana", "Luis"]))
    Escucha el audio y responde a la pregunta.
    <BLANKLINE>
    Pregunta: ¿Quién habla?
    <BLANKLINE>
    Opciones:
    A) Ana
    B) Luis
    <BLANKLINE>
    Responde solo con la letra de la opción correcta (A o B).
    >>> prompt_of("aif", "", spoken=True)
    'Sigue la instrucción que se da en el último audio.'
    """
    if kind not in ("mcqa", "aif"):
        raise UsageError(f"there is no prompt for questions of kind {kind!r}.", hint="Known: mcqa, aif.")
    template = PROMPTS[f"{kind}_spoken" if spoken else f"{kind}_comparative" if comparative else kind]
    fields = {"question": question.strip(), "options": "", "letters": ""}
    if kind == "mcqa":
        listed = [_filled(PROMPTS["option"], letter=LETTERS[i], text=text.strip()) for i, text in enumerate(options)]
        asked = PROMPTS["letters" if len(options) == 2 else "letters_many"]
        fields |= {
            "options": "\n".join(listed),
            "letters": _filled(asked, first="A", last=LETTERS[len(options) - 1]),
        }
    return _filled(template, **fields)


def audio_names(kind: str, sounds: int, *, spoken: bool) -> tuple[str, ...]:
    """What is written before each of `sounds` clips, and before the spoken question behind them.

    >>> audio_names("mcqa", 1, spoken=False), audio_names("mcqa", 2, spoken=True)
    (('',), ('Audio 1:', 'Audio 2:', 'Pregunta:'))
    """
    numbered = [_filled(PROMPTS["audio_numbered"], number=str(i + 1)) for i in range(sounds)]
    names = numbered if sounds > 1 else [PROMPTS["audio"] if spoken else ""] * sounds
    last = PROMPTS["spoken_question" if kind == "mcqa" else "spoken_instruction"]
    return (*names, last) if spoken else tuple(names)


def _filled(template: str, **fields: str) -> str:
    """The template with its fields; what they hold is never read as a field itself."""
    parts: list[str] = []
    at = 0
    while (start := template.find("{", at)) >= 0:
        end = template.index("}", start)
        parts += [template[at:start], fields[template[start + 1 : end]]]
        at = end + 1
    return "".join([*parts, template[at:]])
