"""The short form of a system, for the command line.

    [<front end> |] <transcriber> + <retriever>      [<front end> |] <encoder>      [<front end> |] <transcriber>
    <transcriber> + <rewriter> + <retriever>         <transcriber> + <rewriter>
    transcripts:mine.jsonl + <retriever>             trec:mine.run                  replies:mine.jsonl
    <answerer>      <transcriber> + llm:<model>      text-only + llm:<model>        NAME=<any of these>

A retriever is a component, `rrf(…)` or `score(…)` of several, and `> rerank:<model>` behind any of these, or
`route(confidence < 0.6 ? <retriever> : <retriever>)`, which chooses by the transcriber's confidence. In place of a
component, `{en: whisper-base, zh: funasr:paraformer-zh}` is one for each language. Names and paths hold no blank.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...errors import UsageError, nearest, unknown_name
from ..components import (
    ANSWERERS,
    AUDIO_TEXT_ENCODERS,
    FRONT_ENDS,
    RETRIEVERS,
    REWRITERS,
    TRANSCRIBERS,
    USUAL_TRANSCRIBERS,
    BackendSpec,
)
from ..components.user_classes import find_user_class
from .entries import LANGUAGE, ROLE_NAMES, ROUTE, ComponentEntry, Role, SystemEntry, Written

FORMS = "For example: 'faster-whisper:whisper-base + bm25'."
_FUSIONS = ("rrf", "score")
_ROUTE = "route(confidence < 0.6 ? dense:multilingual-e5-small : bm25)"
_TOKEN = re.compile(r"\s*([(),>]|[^\s(),>]+)")

TABLES: Mapping[Role, Mapping[str, BackendSpec]] = {
    "transcriber": TRANSCRIBERS,
    "rewriter": REWRITERS,
    "retriever": RETRIEVERS,
    "front_end": FRONT_ENDS,
    "encoder": AUDIO_TEXT_ENCODERS,
    "answerer": ANSWERERS,
}
TEXT_ONLY = "text-only"
AUTO = "auto"
_NAMED = re.compile(r"\s*([^=:/\\+|(]+)=(.+)", re.DOTALL)
CLASS = "class"


def parse_short_form(text: str) -> SystemEntry:
    """The system written in the short form.

    Raises `UsageError` for another form and `UnknownNameError` for a component that no table knows.

    >>> entry = parse_short_form("wpe | whisper-base + rrf(bm25, dense:all-minilm-l6-v2)")
    >>> entry.front_end.backend, entry.transcriber.backend, entry.transcriber.model
    ('wpe', 'faster-whisper', 'whisper-base')
    >>> [part.backend for part in entry.retriever.parts]
    ['bm25', 'dense']
    """
    named = _NAMED.fullmatch(text)
    if named:
        return replace(parse_short_form(named[2].strip()), name=named[1].strip())
    front, rest = _front_end(text)
    parts = [part.strip() for part in _split(rest, "+")]
    if len(parts) == 1 and (alone := _alone(parts[0], front)) is not None:
        return alone
    rewriter: Written | None = None
    if len(parts) == 3 or (len(parts) == 2 and _all(parts[1], _is_rewriter)):
        rewriter = _written("rewriter", parts.pop(1)) if parts[1] else None
    if not all(parts) or len(parts) not in ((1, 2) if rewriter is not None else (2,)):
        raise _malformed(text, parts)
    if parts[0] == TEXT_ONLY:
        return SystemEntry(answerer=_written("answerer", parts[1]), text_only=True, front_end=front)
    chain: dict[str, Any] = {"transcriber": _written("transcriber", parts[0]), "rewriter": rewriter}
    if len(parts) == 2:
        last: Role = "answerer" if _all(parts[1], _is_answerer) else "retriever"
        chain[last] = _written(last, parts[1])
    return SystemEntry(**chain, front_end=front)


def _all(text: str, is_one: Callable[[str], bool]) -> bool:
    return all(is_one(one) for one in _texts(text))


def _is_rewriter(text: str) -> bool:
    backend = text.partition(":")[0]
    return backend in REWRITERS or (backend == CLASS and " " not in text and class_role(text) == "rewriter")


def _is_answerer(text: str) -> bool:
    backend = text.partition(":")[0]
    own_class = backend == CLASS and " " not in text
    return backend in ANSWERERS or (own_class and class_role(text) == "answerer")


def _by_language(text: str) -> dict[str, str] | None:
    """The components of `{en: a, zh: b}` by language; None for another text."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    # A comma inside parentheses, as in rrf(a, b), is the component's own.
    pairs = [pair.partition(":") for pair in re.split(r",(?![^()]*\))", text[1:-1])]
    found = {language.strip(): component.strip() for language, _, component in pairs}
    if len(found) < len(pairs) or not all(LANGUAGE.fullmatch(code) and found[code] for code in found):
        raise UsageError(
            f"{text!r} is not written as one component per language.",
            hint="For example: '{en: whisper-base, zh: funasr:paraformer-zh} + bm25'.",
        )
    return found


def _texts(text: str) -> list[str]:
    return list((_by_language(text) or {"": text}).values())


def _written(role: Role, text: str) -> Written:
    def one(component: str) -> ComponentEntry:
        return parse_retriever(component) if role == "retriever" else parse_component(role, component)

    table = _by_language(text)
    return one(text) if table is None else {language: one(component) for language, component in table.items()}


def _split(text: str, operator: str) -> list[str]:
    spaced = re.split(rf"(?:^|\s)\{operator}(?:\s|$)", text)
    return spaced if len(spaced) > 1 else text.split(operator)


def _front_end(text: str) -> tuple[Written | None, str]:
    parts = _split(text, "|")
    if len(parts) == 1:
        return None, text
    if len(parts) > 2:
        raise UsageError(
            f"the system {text!r} has {len(parts) - 1} front ends.",
            hint="One is possible: 'wpe | whisper-base + bm25'.",
        )
    if not parts[0].strip():
        raise UsageError(
            f"the system {text!r} has nothing before '|'.", hint="For example: 'wpe | whisper-base + bm25'."
        )
    return _written("front_end", parts[0].strip()), parts[1]


def _alone(text: str, front: Written | None) -> SystemEntry | None:
    """A system of one component, or of one for each language; None if it is none that can stand alone."""
    roles = {_role_alone(one) for one in _texts(text)}
    role = roles.pop()
    if roles or role is None:
        return None
    alone: dict[str, Any] = {role: _written(role, text)}
    return SystemEntry(**alone, front_end=front)


def _role_alone(text: str) -> Role | None:
    backend = text.partition(":")[0]
    if backend == "trec":
        return "retriever"
    if backend == CLASS:
        return class_role(text)
    if backend in AUDIO_TEXT_ENCODERS:
        return "encoder"
    if backend in ANSWERERS:
        return "answerer"
    return "transcriber" if backend in TRANSCRIBERS or text in USUAL_TRANSCRIBERS else None


def class_role(text: str) -> Role:
    """The role of a user's class by its methods: an encoder, a rewriter, an answerer, or else a transcriber."""
    found = find_user_class(text.partition(":")[2])
    if hasattr(found, "encode_audio"):
        return "encoder"
    if hasattr(found, "rewrite"):
        return "rewriter"
    return "answerer" if hasattr(found, "answer") or hasattr(found, "reply_of") else "transcriber"


def _malformed(text: str, parts: list[str]) -> UsageError:
    hint = FORMS
    if len(parts) == 1 and parts[0]:
        word = parts[0].partition(":")[0]
        guess = nearest(word, [*AUDIO_TEXT_ENCODERS, *ANSWERERS, *TRANSCRIBERS, *USUAL_TRANSCRIBERS, "trec"])
        if word in RETRIEVERS or parts[0].partition("(")[0] in (*_FUSIONS, ROUTE):
            hint = f"For example: 'whisper-base + {parts[0]}'."
        elif guess:
            hint = f"Did you mean {guess + parts[0][len(word) :]!r}? {FORMS}"
    return UsageError(f"the system {text!r} is not written as '<transcriber> + <retriever>'.", hint=hint)


def parse_component(role: Role, text: str) -> ComponentEntry:
    """The component written `<backend>` or `<backend>:<model>`; a known transcriber's name stands for its backend.

    Raises `UnknownNameError` that suggests the nearest, `UsageError` for a missing model or one too many.

    >>> parse_component("retriever", "dense:./my-encoder").model
    './my-encoder'
    >>> parse_component("retriever", "bm52")
    Traceback (most recent call last):
    ...
    squtr.errors.UnknownNameError: unknown retriever 'bm52'. Did you mean 'bm25'? ...
    """
    if any(character.isspace() for character in text):
        raise UsageError(
            f"the {ROLE_NAMES[role]} {text!r} holds a blank.",
            hint="In the short form, names and paths hold none; a spec file takes any.",
        )
    usual = USUAL_TRANSCRIBERS.get(text) if role == "transcriber" else None
    backend, _, model = (f"{usual}:{text}" if usual else text).partition(":")
    return checked_component(role, ComponentEntry(backend, model), text)


def checked_component(role: Role, entry: ComponentEntry, written: str) -> ComponentEntry:
    """`entry`, if its backend exists in this role and takes a model if and only if one is given."""
    name = ROLE_NAMES[role]
    if entry.backend == CLASS:
        if not entry.model:
            raise UsageError(f"the {name} {written!r} names no class.", hint="Write class:<module>:<Class>.")
        return entry
    table = TABLES[role]
    row = table.get(entry.backend)
    if row is None:
        for other, rows in TABLES.items():
            if other != role and entry.backend in rows:
                raise UsageError(
                    f"{written!r} is a component of another kind ({ROLE_NAMES[other]}) where a {name} is expected.",
                    hint="Write '<front end> | <transcriber> + <retriever>'. " + FORMS,
                )
        choices = [f"{r.name}:<model>" if r.takes_model else r.name for r in table.values()]
        choices += list(USUAL_TRANSCRIBERS) if role == "transcriber" else []
        # The nearest is looked for by what was written before the colon, so that a long model does not hide it.
        error = unknown_name(name, written, [*choices, "class:<module>:<Class>"])
        others: Mapping[Role, Iterable[str]] = {"transcriber": USUAL_TRANSCRIBERS, "retriever": ANSWERERS}
        guess = nearest(entry.backend, [*table, *others.get(role, ())])
        hint = error.hint[error.hint.index("Known:") :]
        raise type(error)(error.message, hint=f"Did you mean {guess!r}? {hint}" if guess else hint)
    if row.takes_model and not entry.model:
        raise UsageError(f"the {name} {written!r} needs a model.", hint=f"Write {entry.backend}:<model>.")
    if entry.model and not row.takes_model:
        raise UsageError(
            f"the {name} {entry.backend!r} takes no model, but {written!r} gives one.", hint=f"Write {entry.backend}."
        )
    return entry


def parse_retriever(text: str) -> ComponentEntry:
    """A retriever: a component, `rrf(a, b)` or `score(a, b)`, each with `> rerank:<model>` behind it if wanted, or
    `route(confidence < 0.6 ? a : b)`.

    >>> parse_retriever("rrf(bm25, dense:m) > rerank:r").as_dict()["parts"][0]["method"]
    'rrf'
    """
    tokens = [match[1] for match in _TOKEN.finditer(text)]
    parser = _Parser(text, tokens)
    entry = parser.retriever()
    if parser.next is not None:
        raise parser.error(f"{parser.next!r} is too much")
    return entry


class _Parser:
    """Parses a retriever from its tokens, from left to right."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text, self._tokens, self._at = text, tokens, 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def error(self, reason: str) -> UsageError:
        return UsageError(
            f"the retriever {self._text!r} cannot be read: {reason}.",
            hint="For example: 'bm25', 'rrf(bm25, dense:multilingual-e5-small)', 'bm25 > rerank:<model>'.",
        )

    def _take(self, wanted: str = "") -> str:
        word = self.next
        if word is None:
            raise self.error(f"{wanted!r} is missing at its end" if wanted else "something is missing at its end")
        if (wanted and word != wanted) or (not wanted and word in "(),>"):
            raise self.error(f"{word!r} stands where {repr(wanted) if wanted else 'a retriever'} is expected")
        self._at += 1
        return word

    def retriever(self) -> ComponentEntry:
        entry = self._stage()
        while self.next == ">":
            self._take(">")
            reranker = parse_component("retriever", self._take())
            if reranker.backend != "rerank":
                raise self.error(f"{reranker.backend!r} is no reranker")
            entry = ComponentEntry("rerank", reranker.model, parts=(entry,))
        return entry

    def _stage(self) -> ComponentEntry:
        word = self._take()
        if self.next != "(":
            entry = parse_component("retriever", word)
            if entry.backend in ("hybrid", "rerank", ROUTE):
                raise self.error(f"{word!r} stands alone")
            return entry
        if word == ROUTE:
            return self._route()
        if word not in _FUSIONS:
            raise unknown_name("way to combine retrievers", word, (*_FUSIONS, ROUTE))
        self._take("(")
        parts = [self.retriever()]
        while self.next == ",":
            self._take(",")
            parts.append(self.retriever())
        self._take(")")
        if len(parts) < 2:
            raise self.error(f"{word}(…) combines at least two")
        return ComponentEntry("hybrid", parts=tuple(parts), options={"method": word})

    def _route(self) -> ComponentEntry:
        for word in ("(", "confidence", "<"):
            self._fixed(word)
        threshold: str | float = self._take()
        if threshold != AUTO:
            try:
                threshold = float(threshold)
            except ValueError:
                raise self._no_route(f"{threshold!r} is no threshold") from None
        self._fixed("?")
        below = self.retriever()
        self._fixed(":")
        parts = (below, self.retriever())
        self._take(")")
        return ComponentEntry(ROUTE, parts=parts, options={"threshold": threshold})

    def _fixed(self, word: str) -> None:
        if self.next != word:
            raise self._no_route(f"{self.next or 'its end'!r} stands where {word!r} is expected")
        self._at += 1

    def _no_route(self, reason: str) -> UsageError:
        return UsageError(
            f"the retriever {self._text!r} cannot be read: {reason}.", hint=f"With its blanks: '{_ROUTE}'."
        )
