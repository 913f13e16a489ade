"""The prompts, in Spanish. The published benchmark gives only one of its own: these are ours.

Only "Contesta a la pregunta en el audio", and that the spoken question is the last audio, are the authors' (ESCUCHA,
arXiv 2607.17812). A change of any text needs a new `PROMPTS_VERSION`: results hold both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....errors import UsageError
from ...protocols import AnswerRequest

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
"""Every text, by what it is for. A single clip has no name."""
LANGUAGES = ("es",)
"""The languages that there are prompts in."""
TEMPLATES: Mapping[str, str] = {
    "transcript": "Transcripción automática del audio: «{text}»",
    "named_transcript": "{name} (transcripción automática): «{text}»",
    "no_transcript": "(no se ha entendido nada)",
    "text_only_note": "(El audio no está disponible. Responde de todos modos; si hay opciones, elige la más probable.)",
}
"""What stands before the prompt in place of the audio: transcripts for an LLM, a note for the text-only baseline."""
LETTERS = "ABCDEFGHIJ"
_QUOTES = str.maketrans({"«": "‹", "»": "›"})


def prompt_of(
    kind: str, question: str, options: Sequence[str] = (), *, comparative: bool = False, spoken: bool = False
) -> str:
    """The prompt of a question of `kind` "mcqa" or "aif"; the text of a spoken question is not in it.

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
        letters = PROMPTS["letters" if len(options) == 2 else "letters_many"]
        fields |= {"options": "\n".join(listed), "letters": _filled(letters, first="A", last=LETTERS[len(options) - 1])}
    return _filled(template, **fields)


def with_transcripts(
    request: AnswerRequest, texts: Sequence[str], names: Sequence[str], templates: Mapping[str, str] = TEMPLATES
) -> AnswerRequest:
    """The request with transcripts before its prompt in place of its clips, one text and one name for each clip.

    Angle quotes within a transcript become single ones.
    """
    lines = []
    for name, text in zip(names, texts, strict=True):
        shown = " ".join(text.split()).translate(_QUOTES) or templates["no_transcript"]
        template = templates["named_transcript" if name else "transcript"]
        lines.append(template.replace("{name}", name.rstrip(":")).replace("{text}", shown))
    prompt = "\n".join([*lines, "", request.prompt]) if lines else request.prompt
    return replace(request, prompt=prompt, audios=(), audio_names=(), transcripts=tuple(texts))


def without_audio(request: AnswerRequest, templates: Mapping[str, str] = TEMPLATES) -> AnswerRequest:
    """The request of the text-only baseline: no clips, and a note before the prompt that says so."""
    note = templates["text_only_note"]
    prompt = f"{note}\n\n{request.prompt}" if note else request.prompt
    return replace(request, prompt=prompt, audios=(), audio_names=(), transcripts=())


def audio_names(kind: str, clips: int, *, spoken: bool) -> tuple[str, ...]:
    """What is written before each of `clips` clips, and before the spoken question behind them.

    >>> audio_names("mcqa", 1, spoken=False), audio_names("mcqa", 2, spoken=True)
    (('',), ('Audio 1:', 'Audio 2:', 'Pregunta:'))
    """
    numbered = [_filled(PROMPTS["audio_numbered"], number=str(i + 1)) for i in range(clips)]
    names = numbered if clips > 1 else [PROMPTS["audio"] if spoken else ""] * clips
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
