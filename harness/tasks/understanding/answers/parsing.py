r"""Which option a reply chose: a deterministic parser that never guesses.

What a reply says is looked for in this order, and the first that is there decides:

1. JSON with a field such as `answer` or `respuesta`;
2. final markers: `\boxed{B}`, `<answer>B</answer>`, "Respuesta final: B";
3. markers: "Respuesta: B", "La opción correcta es la segunda", "I choose B";
4. lines that are an answer and nothing else, and how the reply begins: "B) Madrid. Porque…";
5. prose that names one option only: "…por eso es la opción B", "…vive en Madrid".

Options are named by letter, by ordinal word or by their text (letter for letter but for accents, case, punctuation).
What is denied ("no es la B"), asked ("¿es la B?") or supposed ("si fuera la B"), a list of all options, a letter that
the item does not have, "A" and "O" as Spanish words: none of these is an answer. Nothing is ever chosen because it is
similar. Where several different options are named, the reply is ambiguous.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .mentions import Mention, Reading, first_sentence, is_shouted, marked_letters
from .option_text import LETTERS, Options
from .reply_text import plain_characters, skeleton, strip_reasoning

PARSER_VERSION = "1"
"""Changes whenever a reply may be read in another way; stored beside the scores."""

Status = Literal["parsed", "ambiguous", "absent", "empty"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """`index` (from 0) of the option chosen, None unless `status` is "parsed"; `how` says where it was found.

    `how` is "<where>/<named by>": json, final, marker, line, start or prose; letter, ordinal or text. An ambiguous
    reply has the letters instead ("marker/A,C"), an absent one what was there instead ("denied", "list", "nothing").
    """

    index: int | None
    how: str
    status: Status


def parse_reply(reply: str, options: Sequence[str]) -> Parsed:
    r"""Which of `options` (2 to 26 different texts) the reply chose.

    Statuses: "parsed"; "ambiguous", several different options are named; "absent", none is; "empty", nothing is left
    once reasoning blocks are removed. Raises `DataError` for options that are blank, equal or fewer than two.

    >>> cities = ["Madrid", "Barcelona", "Sevilla", "Barcelona y Sevilla"]
    >>> parse_reply("**B)** Barcelona", cities)
    Parsed(index=1, how='line/letter', status='parsed')
    >>> parse_reply("<think>A?</think> La respuesta es la segunda.", cities)
    Parsed(index=1, how='marker/ordinal', status='parsed')
    >>> parse_reply("Habla de Barcelona y Sevilla.", cities).index
    3
    >>> parse_reply("A veces duda, o quizá no.", cities)
    Parsed(index=None, how='nothing', status='absent')
    >>> parse_reply("La A o la C", cities)
    Parsed(index=None, how='line/A,C', status='ambiguous')
    """
    known = Options(options)
    text = plain_characters(strip_reasoning(reply)).strip()
    if not text:
        return Parsed(None, "nothing", "empty")
    whole = known.equal_to(text)
    if len(whole) == 1 and not _is_letter(text, known, whole):
        return Parsed(next(iter(whole)), "line/text", "parsed")
    return _Parser(known, text).parse()


def _is_letter(text: str, options: Options, whole: frozenset[int]) -> bool:
    """Whether `text` is the letter of another option than the one whose text it is."""
    letter = text.strip(" .()*").upper()
    return len(letter) == 1 and letter in LETTERS[: len(options)] and LETTERS.index(letter) not in whole


@dataclass(frozen=True, slots=True)
class _Found:
    indices: frozenset[int]
    kind: str


_NOTHING = _Found(frozenset(), "")

_FENCE = re.compile(r"```[\w-]*[ \t]*\n|\n?```")
_BRACED = re.compile(r"\{[^{}]{0,4000}\}")
_KEY = re.compile(
    r"(?:(?:la|the|my|mi|final|correct)?(?:respuesta|answer|opcion|option|choice|letra|letter|eleccion|seleccion|"
    r"solucion|alternativa|prediction|prediccion|resultado|result)(?:final|correcta|elegida|correct|id|letra|letter|"
    r"choice|option|text|texto|opcion|seleccionada)?)"
)
_HTML = re.compile(r"</?(?:b|strong|i|em|u|mark|code|span|small)(?:\s[^<>]*)?>", re.IGNORECASE)
_HTML_LINE = re.compile(r"</?(?:p|div|br|li|ul|ol|h[1-6]|center)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|rm|bf|textrm)\s*\{([^{}]*)\}")
_BOXED = re.compile(r"\\?\bf?boxed\s*\{([^{}]*)\}")
_TAGGED = re.compile(
    r"<(answer|respuesta|final_answer|respuesta_final|opcion|choice|option)>(.*?)(?:</\1>|$)", re.IGNORECASE | re.DOTALL
)
_BULLET = re.compile(r"^[ \t]*(?:(?:[-•–—>+·]|\*(?=\s)|#{1,6})[ \t]+)+", re.MULTILINE)

_ADJECTIVE = (
    r"(?:\s+(?:mas\s+)?(?:correcta|elegida|seleccionada|adecuada|apropiada|probable|acertada|valida|escogida))?"
)
_ASKED = r"(?:\s+(?:a|de|para)\s+(?:la|esta|su|tu)\s+(?:pregunta|cuestion)|\s+to\s+(?:the|this)\s+question)?"
_IS = (
    r"(?:\s*\([^()\n]{0,40}\))?\s*(?:(?:es|is|seria|would be|debe ser|tiene que ser|ha de ser|parece ser)"
    r"\b\s*:?|:|=|->|→)"
)
_FINAL = re.compile(
    r"\b(?:(?:respuesta|opcion|eleccion|seleccion|contestacion|solucion|decision)\s+(?:final|definitiva)"
    rf"|final\s+(?:answer|choice|decision|response|selection)){_ADJECTIVE}\b{_ASKED}"
    rf"(?:{_IS}|[ \t]*\n|\s[-–—]\s|\s*(?=⟦))"
)
_MARKER = re.compile(
    r"\b(?:(?:(?:correct|best|right)\s+)?(?:answer|option|choice)"
    rf"|(?:respuesta|opcion|alternativa|solucion|contestacion|eleccion){_ADJECTIVE}|la\s+(?:mas\s+)?correcta)\b{_ASKED}{_IS}"
    r"|\bla opcion que [^.\n?]{1,80}? es\b"
    r"|\b(?:elijo|elegiria|escojo|escogeria|selecciono|seleccionaria|marco|marcaria|me quedo con|me decanto por|"
    r"me inclino por|voto por|apuesto por|opto por|optaria por|choose|pick|select|i would choose|i would pick|"
    r"i['’]d (?:choose|pick|say|go with)|i(?: will|['’]ll)? go with|my (?:answer|choice|guess) is)\b\s*:?"
)
_CONCLUSION = re.compile(
    r"(?:^|(?<=[.;\n]))[ \t]*(?:por (?:lo )?tanto|por (?:eso|ende)|asi que|asi pues|en conclusion|entonces|luego|"
    r"therefore|thus|so|hence|in conclusion)\b\s*[,:]?|=>|⇒"
)
_REFUSAL = re.compile(
    r"[\W_]*(?:ningun\w*|no (?:se|lo|puedo|es posible|hay(?! (?:\w+ )?duda)|esta|sabria)\b|none|"
    r"i (?:do not|don['’]t|cannot|can['’]t)|"
    r"unknown|desconocid\w*|indeterminad\w*|n/a\b)"
)
_AFTER_ANSWER = re.compile(
    r"[\W_]*(?:(?:es|is|seria|parece)\s+)?(?:(?:la|the)\s+)?(?:(?:opcion|respuesta|alternativa|answer|option|choice)\s+)?"
    r"(?:(?:mas|most)\s+)?(?:correct[ao]?|adecuada|apropiada|probable|right|acertada|best|valida|verdadera)?"
    r"(?:\s+(?:answer|option|choice|opcion|respuesta))?[\W_]*"
)
_BEGINS = re.compile(
    r"[\W_]{0,3}(?:$|[.,;:)\]⟧\n–—]|\s-\s|\s*\(|\s+(?:porque|ya que|pues|puesto que|because|since|as)\b)"
)
_HONORIFIC = re.compile(
    r"[\W_]*d\.\s+(?!(?:el|la|los|las|un|una|en|porque|se|no|segun|al|de|por|es|the|because|it)\b)[a-z]"
)
_LABELLED = re.compile(r"^[^\w\n]*([a-z])\s*[).:\]⟧]|(?<=[.;!?]\s)[^\w\n]{0,8}([a-z])\s*[):⟧]", re.MULTILINE)

_LINE_LABEL = re.compile(r"^[^\w\n]*([a-z])[.:)⟧](?=\s)", re.MULTILINE)


class _Parser:
    def __init__(self, options: Options, text: str) -> None:
        self._options = options
        self._raw = text
        text = _HTML_LINE.sub("\n", _HTML.sub("", text))
        text = _BULLET.sub("", re.sub(r"\\[()\[\]]|\$", " ", _LATEX.sub(r"\1", _LATEX.sub(r"\1", text))))
        text = re.sub(r"[ \t]+(?=\n)|\n(?=\n{2})", "", _FENCE.sub("\n", text)).strip()
        self._text = marked_letters(text)
        self._bare = skeleton(self._text)
        self._shouted = is_shouted(self._text)
        self._denied = False

    def parse(self) -> Parsed:
        for where, find in (
            ("json", self._from_json),
            ("final", self._from_final_markers),
            ("marker", self._from_markers),
        ):
            found = find()
            if found is not None:
                return self._decide(where, found)
        lines = self._from_lines()
        if lines.indices:
            return self._decide("line", lines)
        start = self._from_start()
        if start is not None and start.indices:
            return self._decide("start", start)
        return self._decide("prose", self._from_prose())

    def _decide(self, where: str, found: _Found) -> Parsed:
        if len(found.indices) == 1:
            return Parsed(next(iter(found.indices)), f"{where}/{found.kind}", "parsed")
        if found.indices:
            named = ",".join(LETTERS[index] for index in sorted(found.indices))
            return Parsed(None, f"{where}/{named}", "ambiguous")
        return Parsed(None, found.kind or ("denied" if self._denied else "nothing"), "absent")

    def _read(self, text: str, *, lone: bool) -> Reading:
        return Reading(text, self._options, lone=lone, shouted=self._shouted)

    # Places

    def _from_json(self) -> _Found | None:
        found: list[_Found] = []
        for value in _json_values(self._raw):
            answers = list(_answers(value))
            if answers:
                found.append(_union(self._of_value(answer) for answer in answers))
        return _union(found) if found else None

    def _of_value(self, value: Any) -> _Found:
        if isinstance(value, list):
            return _union(self._of_value(member) for member in value)
        if isinstance(value, bool) or value is None or isinstance(value, dict):
            return _NOTHING
        if not isinstance(value, str):
            # A number is an option's text or nothing: counted from 0 or from 1?
            return _Found(self._options.equal_to(str(value)), "text")
        return self._of_content(value)

    def _of_content(self, text: str) -> _Found:
        """What stands behind a marker: the mentions that it begins with, or else those of its first sentence."""
        text = text if "⟦" in text else marked_letters(text)
        whole = self._options.equal_to(text.strip())
        reading = self._read(text, lone=True)
        standing = reading.standing()
        self._note(reading, standing)
        group, _ = reading.leading(standing)
        if not group and not _REFUSAL.match(reading.bare):
            end = first_sentence(reading.bare)
            group = [mention for mention in standing if mention.start < end]
        found = _named(group)
        if len(whole) == 1:
            return _union(
                [_Found(whole, "text"), _Found(found.indices, "text")] if found.indices else [_Found(whole, "text")]
            )
        return found

    def _from_final_markers(self) -> _Found | None:
        contents = [match[1] for match in _BOXED.finditer(self._text.replace("⟦", "").replace("⟧", ""))]
        contents += [match[2] for match in _TAGGED.finditer(self._raw)]
        contents += [content for _, content in self._contents(_FINAL)]
        contents = [content for content in contents if content.strip()]
        if not contents:
            return None
        return _union(self._of_content(content) for content in contents)

    def _from_markers(self) -> _Found | None:
        found, refused = [], False
        for at, content in self._contents(_MARKER):
            if _denies(self._bare, at):
                continue
            named = self._of_content(content)
            found.append(named)
            refused |= not named.indices and bool(_REFUSAL.match(skeleton(content)))
        together = _union(found)
        if together.indices:
            lines = self._from_lines()
            other = lines.indices - together.indices
            return _Found(together.indices | other if len(other) == 1 else together.indices, together.kind)
        return _Found(frozenset(), "refused") if refused else None

    def _contents(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
        """Where each marker is, and what stands behind it, as far as the next one."""
        markers = list(pattern.finditer(self._bare))
        for place, match in enumerate(markers):
            end = markers[place + 1].start() if place + 1 < len(markers) else len(self._text)
            yield match.start(), self._behind(match.end(), end)

    def _behind(self, at: int, end: int) -> str:
        match = re.compile(r"[^\n\w]*\w[^\n]*|[^\w]*\w[^\n]*").match(self._text, at, end)
        return match[0].strip() if match else ""

    def _from_lines(self) -> _Found:
        """Lines that are an answer and nothing else; a list of all options is none."""
        lines = [line for line in self._text.split("\n") if re.search(r"\w", line)]
        answers: list[_Found] = []
        for line in lines:
            answers.extend(self._of_line(line))
        for _, content in self._contents(_CONCLUSION):
            answers.extend(self._of_line(content))
        size = len(self._options)
        kept: list[_Found] = []
        at = 0
        while at < len(answers):
            run = answers[at : at + size]
            if (
                len(run) == size
                and len(frozenset().union(*(each.indices for each in run))) == size > 1
                and len(answers) >= size
            ):
                at += size
            else:
                kept.append(answers[at])
                at += 1
        return _union(kept)

    def _of_line(self, line: str) -> list[_Found]:
        whole = self._options.equal_to(line.strip())
        reading = self._read(line, lone=True)
        standing = reading.standing()
        self._note(reading, standing)
        group, end = reading.leading(standing)
        if group and _AFTER_ANSWER.fullmatch(reading.bare, end):
            return [_named(group)]
        return [_Found(whole, "text")] if len(whole) == 1 and not reading.mentions else []

    def _from_start(self) -> _Found | None:
        """The option that the reply begins with, before its reasons: "B) Madrid, porque…", "Madrid. El hablante…"."""
        reading = self._read(self._text, lone=True)
        standing = reading.standing()
        group, end = reading.leading(standing)
        if not group or not _BEGINS.match(reading.bare, end) or _HONORIFIC.match(reading.bare):
            return None
        named = _named(group)
        labels = {match.start(match.lastindex or 0) for match in _LABELLED.finditer(reading.bare)}
        others = {index for mention in standing if mention.start in labels for index in mention.indices}
        begun = {ord(label) - ord("a") for label in _LINE_LABEL.findall(reading.bare)}
        others |= {index for index in begun if index < len(self._options)} if len(begun) > 1 else set()
        if named.kind == "text":
            limit = first_sentence(reading.bare)
            others |= {index for mention in standing if mention.start < limit for index in mention.indices}
        return _Found(named.indices | others, named.kind)

    def _from_prose(self) -> _Found:
        reading = self._read(self._text, lone=False)
        standing = reading.standing()
        self._note(reading, standing)
        found = _named(standing)
        if not found.indices and reading.mentions and not self._denied:
            return _Found(frozenset(), "list")
        return found

    def _note(self, reading: Reading, standing: list[Mention]) -> None:
        self._denied |= reading.denied


def _union(found: Iterable[_Found]) -> _Found:
    kept = [each for each in found if each.indices]
    if not kept:
        return _NOTHING
    return _Found(frozenset().union(*(each.indices for each in kept)), kept[0].kind)


def _named(mentions: Sequence[Mention]) -> _Found:
    return _union(_Found(mention.indices, mention.kind) for mention in mentions)


def _denies(bare: str, at: int) -> bool:
    return bool(
        re.search(
            r"\b(?:ninguna|otra|no|not|esa|primera|segunda|any|each|cada)\s+(?:la\s+)?$", bare[max(0, at - 24) : at]
        )
    )


def _json_values(text: str) -> Iterator[Any]:
    """The JSON values in `text`: the whole, without a fence around it, or else every object in it."""
    try:
        value = json.loads(_FENCE.sub("", text).strip())
    except (ValueError, RecursionError):
        pass
    else:
        if isinstance(value, dict | list):
            yield value
            return
    for match in _BRACED.finditer(text):
        try:
            yield json.loads(match[0])
        except (ValueError, RecursionError):
            continue


def _answers(value: Any, depth: int = 0) -> Iterator[Any]:
    """What stands under a key that means an answer, also in nested objects."""
    if depth > 5:
        return
    if isinstance(value, list):
        if depth == 0 and len(value) == 1 and isinstance(value[0], str):
            yield value[0]
        for member in value:
            yield from _answers(member, depth + 1)
    if isinstance(value, dict):
        for key, member in value.items():
            named = re.sub(r"[\W_]", "", skeleton(plain_characters(str(key))))
            if _KEY.fullmatch(named) and not isinstance(member, dict):
                yield member
            else:
                yield from _answers(member, depth + 1)
