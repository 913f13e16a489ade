"""From how a system is written to its components: each distinct one is made once."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ...errors import SqutrError, UsageError, unknown_name
from ..components import Role as LoadRole
from ..components import load
from ..components.user_classes import find_user_class
from .caches import Caches
from .entries import ROLE_NAMES, ROUTE, ROUTED, ComponentEntry, Role, SystemEntry, chain_name, entries_of
from .options import TRUST, Option, accepts, checked_options, component_options, shown
from .short_form import CLASS, TABLES
from .system import ROLES, System, shown_name

NAME = "name"
"""An option of any component: what tables call it, where its backend has no such option itself."""

_METHODS: Mapping[Role, tuple[str, ...]] = {
    "transcriber": ("transcribe", "transcripts"),
    "rewriter": ("rewrite",),
    "retriever": ("search", "hits"),
    "front_end": ("enhance",),
    "encoder": ("encode_audio",),
    "answerer": ("answer", "reply_of"),
}
_LOADED_AS: Mapping[Role, LoadRole] = {
    "transcriber": "transcriber",
    "rewriter": "rewriter",
    "retriever": "retriever",
    "front_end": "front_end",
    "encoder": "audio_text_encoder",
    "answerer": "answerer",
}
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options that go before those of a file: `options` for every component that has them, and some by role."""

    options: Mapping[str, Any] = field(default_factory=dict)
    transcriber: Mapping[str, Any] = field(default_factory=dict)
    rewriter: Mapping[str, Any] = field(default_factory=dict)
    retriever: Mapping[str, Any] = field(default_factory=dict)
    front_end: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)
    answerer: Mapping[str, Any] = field(default_factory=dict)
    trust_remote_code: bool = False

    def with_transcriber(self, options: Mapping[str, Any]) -> Overrides:
        """These, with more options for transcribers."""
        return replace(self, transcriber={**self.transcriber, **options})

    def of(self, role: Role) -> dict[str, Any]:
        """What a component of this role is given if it has it."""
        return {**self.options, **getattr(self, role)}


@dataclass(frozen=True, slots=True)
class MadeComponent:
    """A component, how it is written with presets and overrides in it, and what tables call it ("": its own name)."""

    component: Any
    entry: ComponentEntry
    label: str


class Builder:
    """Makes systems; equal components are one object. With `cache`, retrievers keep encoded corpora there."""

    def __init__(self, *, cache: Path | None = None, overrides: Overrides | None = None) -> None:
        self._caches = Caches(cache)
        self._overrides = overrides or Overrides()
        self._made: dict[str, object] = {}
        self._used: set[str] = set()
        self._known: set[str] = set()

    def system(self, entry: SystemEntry) -> System:
        origins: list[tuple[object, ComponentEntry]] = []
        labels: dict[Role, str] = {}

        def one(role: Role, written: ComponentEntry) -> Any:
            # They are told how many transcripts the system works with, unless they say otherwise.
            n_best = entry.n_best if role in ("transcriber", "rewriter") and entry.n_best > 1 else None
            found = self.component(role, written, n_best=n_best)
            origins.append((found.component, found.entry))
            if found.label:
                labels[role] = found.label
            return found.component

        components: dict[str, Any] = {}
        for role in ROLES:
            written = getattr(entry, role)
            if isinstance(written, Mapping):
                components[role] = {language: one(role, own) for language, own in written.items()}
            elif written is not None:
                components[role] = one(role, written)
        presets = {written.preset for written in entries_of(entry.transcriber)}
        return _placed(
            entry.place,
            lambda: System(
                **components,
                text_only=entry.text_only,
                templates=entry.templates,
                script=entry.script,
                normalizer=entry.normalizer,
                n_best=entry.n_best,
                n_best_fusion=entry.n_best_fusion,
                display_name=entry.name or _labeled(entry, components, labels),
                preset=presets.pop() if len(presets) == 1 else "",
                origins=tuple(origins),
            ),
        )

    def component(self, role: Role, entry: ComponentEntry, *, n_best: int | None = None) -> MadeComponent:
        """The component that is written so. `n_best` is for one that has the option and is not told it otherwise."""
        return _placed(entry.place, lambda: self._component(role, entry, n_best))

    @property
    def used(self) -> frozenset[str]:
        """The overrides that some component made so far has as an option."""
        return frozenset(self._used)

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self._known)

    def check_used(self) -> None:
        """Raise `UsageError` for an override that no component made so far has as an option."""
        given = self._overrides
        for name in {**given.options, **{name: None for role in ROLES for name in given.of(role)}}:
            if name not in self._used:
                raise unknown_name("option of these systems:", name, self._known)

    def _component(self, role: Role, entry: ComponentEntry, n_best: int | None) -> MadeComponent:
        parts = [self.component("retriever", part) for part in entry.parts]
        wiring = _wiring(entry, [part.component for part in parts])
        if any(part.label for part in parts):
            raise UsageError(f"a part of {entry.backend} has no name of its own.", hint="Name the whole.")
        own = entry.backend == CLASS
        constructors = [_user_class(role, entry)] if own else constructors_of(role, entry.backend)
        known = options_of(constructors, positional=own)
        self._known |= set(known)
        options = {**preset_options(entry), **entry.options}
        if n_best is not None and "n_best" in known:
            options.setdefault("n_best", n_best)
            # A beam narrower than that has not so many hypotheses.
            if "beam_size" in known:
                options.setdefault("beam_size", n_best)
        overridden = {name: value for name, value in self._overrides.of(role).items() if name in known}
        self._used |= set(overridden)
        options |= overridden
        label = "" if NAME in known else options.pop(NAME, "")
        if not isinstance(label, str):
            raise UsageError(f"the name {shown(label)} of a component is no text.", hint="Put it in quotes.")
        complete = replace(entry, options=options, parts=tuple(part.entry for part in parts))
        key = json.dumps([role, replace(complete, preset="").as_dict()], sort_keys=True, default=str)
        if key not in self._made:

            def place(name: str) -> str:
                return f"{entry.place}.{name}" if entry.place and name not in overridden else ""

            # A user's class may take what its signature does not tell; it is asked itself.
            arguments = checked_options(entry.backend, known, options, place, open_=own)
            arguments |= wiring
            if self._overrides.trust_remote_code and any(accepts(c, TRUST) for c in constructors):
                arguments[TRUST] = True
            arguments |= self._caches.of(constructors[0])
            written = f"{entry.backend}:{entry.model}" if entry.model else entry.backend
            self._made[key] = load(_LOADED_AS[role], written, **arguments)
        return MadeComponent(self._made[key], complete, label)


def constructors_of(role: Role, backend: str) -> list[Callable[..., object]]:
    """What makes a backend's component, and after it what it passes options on to. Their modules are imported."""
    return TABLES[role][backend].constructors()


def options_of(constructors: Sequence[Callable[..., object]], *, positional: bool = False) -> dict[str, Option]:
    """The options of all these constructors; where two have one of the same name, the first counts."""
    known: dict[str, Option] = {}
    for constructor in constructors:
        for name, option in component_options(constructor, positional=positional).items():
            known.setdefault(name, option)
    return known


def _user_class(role: Role, entry: ComponentEntry) -> Callable[..., object]:
    """The user's class. One that a file names must be a class of such a component: nothing else is ever called."""
    found = find_user_class(entry.model)
    methods = _METHODS[role]
    if entry.place and not (inspect.isclass(found) and any(callable(getattr(found, m, None)) for m in methods)):
        raise UsageError(
            f"class:{entry.model} is no class with the method {' or '.join(methods)}.",
            hint=f"A spec file can name the class of a {ROLE_NAMES[role]}, and no other function or object.",
        )
    return found if callable(found) else _no_options


def _no_options() -> None:
    """Stands for an object that needs no call."""


def preset_options(entry: ComponentEntry) -> Mapping[str, Any]:
    """The options of a component's preset; {} without one."""
    if not entry.preset:
        return {}
    from ..components.transcribers.presets import preset

    return preset(entry.preset, entry.backend, entry.model)


def _wiring(entry: ComponentEntry, parts: list[object]) -> dict[str, Any]:
    """The parts as the constructor takes them."""
    fixed = [i for i, part in enumerate(parts) if not hasattr(part, "search")]
    if fixed:
        raise UsageError(
            f"{entry.backend} cannot combine a precomputed run (its part {fixed[0] + 1}), which takes ids, not texts.",
            hint="Combine retrievers, or use the precomputed run alone.",
        )
    if entry.backend == "hybrid":
        if len(parts) < 2:
            raise UsageError(
                f"a hybrid combines at least two retrievers, not {len(parts)}.", hint="List them under parts."
            )
        return {"parts": parts}
    if entry.backend == "rerank":
        if len(parts) != 1:
            raise UsageError(
                f"a reranker needs one retriever before it, not {len(parts)}.",
                hint="Write '<retriever> > rerank:<model>', or reranker: beside retriever: in a file.",
            )
        return {"first": parts[0]}
    if entry.backend == ROUTE:
        if len(parts) != len(ROUTED):
            raise UsageError(
                f"a route chooses from two retrievers, not {len(parts)}.", hint=f"Write {' and '.join(ROUTED)}."
            )
        return dict(zip(ROUTED, parts, strict=True))
    if parts:
        raise UsageError(f"{entry.backend} has no parts.", hint="Only hybrid, rerank and route have.")
    return {}


def _labeled(entry: SystemEntry, components: Mapping[str, Any], labels: Mapping[Role, str]) -> str:
    """What a system is called by the names that its components were given; "" if none was.

    The own name of a model is looked up with its weights: not where it was given another.
    """
    if not labels:
        return ""
    names = {role: labels.get(role) or shown_name(components[role]) for role in ROLES if role in components}
    return chain_name(names, text_only=entry.text_only, n_best=entry.n_best)


def _at(place: str, error: SqutrError) -> SqutrError:
    """`error`, with the place in the file before its message if it is not there yet."""
    if not place or error.message.startswith(place):
        return error
    return type(error)(f"{place}: {error.message}", hint=error.hint)


def _placed(place: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except SqutrError as error:
        if (placed := _at(place, error)) is error:
            raise
        raise placed from error
