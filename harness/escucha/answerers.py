"""Answerers by what a user writes: a short form, or a YAML file.

    chat:Qwen/Qwen2-Audio-7B-Instruct        a model that hears
    chat-server:gpt-audio                    the same behind a URL
    whisper-base + llm:Qwen/Qwen3-4B         a cascade: a transcriber and a reader
    whisper-base + embedder:multilingual-e5-small
    text-only + llm:Qwen/Qwen3-4B            the control: the reader without the sound
    replies:people.jsonl                     replies that were made elsewhere
    class:my_module:MyAnswerer
    NAME=whisper-base + llm:…                what tables call it

A file holds one answerer or a list under `answerers:`; each is a short form, or a mapping of `backend`, `model` and the
backend's options, or of `transcriber` and `reader`, or of `text_only`, always with `name` if wanted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ...errors import UsageError, unknown_name
from ..components import ANSWERERS, load_answerer
from ..components.answerers.text_only import TextOnlyAnswerer
from ..protocols import Answerer, Transcriber
from ..results.files import file_name
from ..systems.building import Builder, Overrides
from ..systems.entries import ComponentEntry
from ..systems.options import TRUST, accepts, checked_options, component_options
from ..systems.plain_yaml import read_plain
from ..systems.short_form import parse_component

TEXT_ONLY = "text-only"
_SUFFIXES = (".yaml", ".yml", ".json")
_NAMED = re.compile(r"([^=:/\\+]+)=(.+)")
_COMBINING = ("cascade", TEXT_ONLY)


@dataclass(frozen=True, slots=True)
class NamedAnswerer:
    """An answerer, and what tables call it."""

    name: str
    answerer: Answerer

    @property
    def is_control(self) -> bool:
        """Whether it is a text-only control."""
        return isinstance(self.answerer, TextOnlyAnswerer)

    @property
    def uses_audio(self) -> bool:
        """Whether it is given sound."""
        return bool(getattr(self.answerer, "uses_audio", True))

    def text_only(self) -> NamedAnswerer:
        """Its control: its reader without the sound. Raises `UsageError` for ready replies."""
        if hasattr(self.answerer, "reply_of"):
            raise UsageError(
                f"{self.name} was made elsewhere and cannot be asked without sound.",
                hint="Leave the control text-only out, or evaluate ready replies alone.",
            )
        control = TextOnlyAnswerer(llm=self.answerer)
        return NamedAnswerer(control.spec.name, control)


@dataclass
class _Maker:
    """Makes answerers. `options` go to every component that has them, and go before those of a file."""

    options: Mapping[str, Any]
    trust: bool
    used: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    def written(self, text: str, name: str = "") -> NamedAnswerer:
        """The answerer of a short form."""
        named = _NAMED.fullmatch(text)
        if named:
            name, text = named[1].strip(), named[2]
        parts = [part.strip() for part in re.split(r"\s\+\s", text.strip())]
        if len(parts) > 2 or not all(parts):
            raise UsageError(
                f"the answerer {text!r} is not written as '<transcriber> + <reader>'.",
                hint="For example: 'whisper-base + llm:MODEL', 'text-only + llm:MODEL', 'chat:MODEL'.",
            )
        if len(parts) == 1:
            return self._named(name, self._component(parts[0], {}))
        reader = self._component(parts[1], {})
        if parts[0] == TEXT_ONLY:
            return self._named(name, load_answerer(TEXT_ONLY, llm=reader))
        return self._named(name, self._cascade(parse_component("transcriber", parts[0]), reader, {}))

    def mapping(self, value: Any, place: str) -> NamedAnswerer:
        """The answerer of a file's entry."""
        if isinstance(value, str):
            return self.written(value)
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise UsageError(
                f"{place} is no answerer.", hint="Write a short form, or a mapping with backend and model."
            )
        fields = dict(value)
        name = _text(fields.pop("name", ""), "name", place)
        if "text_only" in fields:
            reader = self.mapping(fields.pop("text_only"), f"{place}.text_only").answerer
            return self._named(name, self._made(TEXT_ONLY, fields, place, llm=reader))
        if "transcriber" in fields or "reader" in fields:
            reader = self.mapping(fields.pop("reader", None), f"{place}.reader").answerer
            entry = _transcriber_entry(fields.pop("transcriber", None), f"{place}.transcriber")
            return self._named(name, self._cascade(entry, reader, fields, place))
        backend = _text(fields.pop("backend", ""), "backend", place)
        model = _text(fields.pop("model", ""), "model", place)
        return self._named(name, self._component(f"{backend}:{model}" if model else backend, fields, place))

    def _component(self, text: str, options: Mapping[str, Any], place: str = "") -> Answerer:
        backend = text.partition(":")[0]
        if backend == "class":
            return load_answerer(text, **options)
        if backend in _COMBINING:
            raise UsageError(
                f"{backend!r} needs a reader.",
                hint=f"Write '{'text-only' if backend == TEXT_ONLY else 'whisper-base'} + llm:MODEL'.",
            )
        if backend not in ANSWERERS:
            choices = [f"{row.name}:<model>" for row in ANSWERERS.values() if row.takes_model]
            raise unknown_name("answerer", text, [*choices, "<transcriber> + <reader>", "text-only + <reader>"])
        return self._made(text, options, place)

    def _cascade(
        self, entry: ComponentEntry, reader: Answerer, options: Mapping[str, Any], place: str = ""
    ) -> Answerer:
        builder = Builder(overrides=Overrides(options=self.options, trust_remote_code=self.trust))
        made = builder.component("transcriber", entry)
        self.used |= builder.used
        self.known |= builder.known
        if not hasattr(made.component, "transcribe"):
            raise UsageError(
                f"{entry.backend} has transcripts by the id of a query, not by sound.", hint="Give a transcriber."
            )
        return self._made("cascade", options, place, transcriber=cast(Transcriber, made.component), llm=reader)

    def _made(self, text: str, options: Mapping[str, Any], place: str, **parts: Any) -> Answerer:
        backend = text.partition(":")[0]
        constructor = ANSWERERS[backend].constructors()[0]
        known = component_options(constructor)
        self.known |= set(known)
        overridden = {name: value for name, value in self.options.items() if name in known}
        self.used |= set(overridden)
        arguments = checked_options(
            backend, known, {**options, **overridden}, lambda name: f"{place}.{name}" if place else ""
        )
        if self.trust and accepts(constructor, TRUST):
            arguments[TRUST] = True
        return load_answerer(text, **arguments, **parts)

    def _named(self, name: str, answerer: Answerer) -> NamedAnswerer:
        return NamedAnswerer(name or answerer.spec.name, answerer)


def load_answerers(
    written: Sequence[str], *, options: Mapping[str, Any] | None = None, trust_remote_code: bool = False
) -> list[NamedAnswerer]:
    """The answerers of several short forms and files, in order (see the module).

    `options` go to every component that has them. Raises `UsageError` for what cannot be, for two of one name and for
    an option that no component has, `UnknownNameError` for a component that no table knows.
    """
    maker = _Maker(options or {}, trust_remote_code)
    found: list[NamedAnswerer] = []
    for text in written:
        if text.lower().endswith(_SUFFIXES) and " + " not in text and ":" not in text:
            value = read_plain(Path(text))
            listed = value["answerers"] if isinstance(value, dict) and set(value) == {"answerers"} else [value]
            if not isinstance(listed, list):
                raise UsageError(f"{text}: answerers is no list.", hint="Write one entry per line, with - before it.")
            found += [maker.mapping(one, f"{text}: answerers[{i}]") for i, one in enumerate(listed)]
        else:
            found.append(maker.written(text))
    unused = next((name for name in options or {} if name not in maker.used), None)
    if unused is not None:
        raise unknown_name("option of these answerers:", unused, maker.known)
    return check_answerers(found)


def check_answerers(answerers: Sequence[NamedAnswerer]) -> list[NamedAnswerer]:
    """`answerers`, if there are any and their names differ: a name is a row of a table and a folder of results."""
    if not answerers:
        raise UsageError("no answerer is given.", hint="For example: 'whisper-base + embedder:multilingual-e5-small'.")
    seen: dict[str, str] = {}
    for one in answerers:
        folder = file_name(one.name)
        if not folder:
            raise UsageError(f"the name {one.name!r} has no letter or digit.", hint="Give another name.")
        if folder in seen:
            raise UsageError(f"two answerers are called {one.name!r}.", hint="Name one of them: 'other=chat:MODEL'.")
        seen[folder] = one.name
    return list(answerers)


def with_controls(answerers: Sequence[NamedAnswerer]) -> list[NamedAnswerer]:
    """`answerers`, with the text-only control behind each that hears; a control that several share is there once."""
    found = list(answerers)
    fingerprints = {one.answerer.spec.fingerprint for one in found}
    for one in answerers:
        if one.is_control or not one.uses_audio or hasattr(one.answerer, "reply_of"):
            continue
        control = one.text_only()
        if control.answerer.spec.fingerprint not in fingerprints:
            fingerprints.add(control.answerer.spec.fingerprint)
            found.append(control)
    return check_answerers(found)


def _text(value: Any, field_name: str, place: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{place}: the {field_name} is no text.", hint="Put it in quotes.")
    return value


def _transcriber_entry(value: Any, place: str) -> ComponentEntry:
    if isinstance(value, str):
        return parse_component("transcriber", value)
    if not isinstance(value, dict) or not isinstance(value.get("backend"), str):
        raise UsageError(f"{place} is no transcriber.", hint="Write a short form, or a mapping with backend and model.")
    fields = dict(value)
    backend, model = fields.pop("backend"), _text(fields.pop("model", ""), "model", place)
    preset = _text(fields.pop("preset", ""), "preset", place)
    checked = parse_component("transcriber", f"{backend}:{model}" if model else backend)
    return ComponentEntry(checked.backend, checked.model, preset=preset, options=fields, place=place)
