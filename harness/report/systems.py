"""What each system is made of: its components as a tree, each with its weights and every setting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..results.envelope import SystemInfo
from ..results.self_check import NOT_CHECKED
from .formats import parameter_words
from .sections import Section

Spec = Mapping[str, Any]
"""The JSON of a component."""

KINDS = {
    "cascade": "cascade",
    "end-to-end": "end-to-end",
    "run": "precomputed run",
    "transcriber": "transcriber",
    "answerer": "answerer",
}
ROLES = {
    "front_end": "Front end",
    "transcriber": "Transcriber",
    "rewriter": "Rewriter",
    "encoder": "Encoder of audio and text",
    "retriever": "Retriever",
    "answerer": "Answerer",
}
_REVISION_SHOWN, _LONGEST_SHOWN = 12, 40


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    origin: Sequence[tuple[str, str, str]]
    settings: Sequence[tuple[str, str]]
    parts: Sequence[Component]


@dataclass(frozen=True, slots=True)
class Card:
    """A system; `places` are the sections that it is in, where another system has the same name."""

    name: str
    kind: str
    places: str
    components: Sequence[tuple[str, Component]]
    settings: Sequence[tuple[str, str]]


def self_check_lines(systems: Sequence[SystemInfo]) -> list[str]:
    """What a reader of the scores must know of how the systems were checked; nothing where all passed."""
    shown: dict[str, None] = {}
    for info in systems:
        check = info.self_check
        if check.verdict == NOT_CHECKED:
            shown[f"Self-check: {info.name} was not checked."] = None
        elif check.verdict not in {"passed", "precomputed"}:
            shown[f"Self-check: {info.name} is {check.words}."] = None
    return list(shown)


def component_name(spec: Spec | None) -> str:
    return "" if spec is None else str(spec.get("name") or spec.get("model") or spec.get("backend") or "")


def is_component(value: object) -> bool:
    return isinstance(value, Mapping) and "backend" in value and "kind" in value


def parts_of(spec: Spec) -> list[Spec]:
    """The components that a component is made of, in order; [] for a simple one."""
    found: list[Spec] = []
    for value in (spec.get("settings") or {}).values():
        if is_component(value):
            found.append(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            found.extend(part for part in value if is_component(part))
    return found


def _plain_settings(spec: Spec) -> dict[str, Any]:
    return {
        name: value
        for name, value in sorted((spec.get("settings") or {}).items())
        if not is_component(value)
        and not (isinstance(value, Sequence) and not isinstance(value, str) and any(map(is_component, value)))
    }


def described(spec: Spec) -> str:
    """A component in words, the parts of a composite inside it.

    >>> bm25 = {"kind": "retriever", "backend": "bm25", "name": "BM25", "settings": {}}
    >>> described({"kind": "retriever", "backend": "rerank", "model": "org/judge", "settings": {"first": bm25}})
    'reranker judge over BM25'
    """
    parts = parts_of(spec)
    if not parts:
        return component_name(spec)
    inner = [f"({described(part)})" if parts_of(part) else described(part) for part in parts]
    if len(parts) == 1:
        return f"{_own_name(spec)} over {inner[0]}"
    return f"{_own_name(spec)} of {', '.join(inner[:-1])} and {inner[-1]}"


def _own_name(spec: Spec) -> str:
    backend, model = str(spec.get("backend", "")), str(spec.get("model", ""))
    if backend == "rerank":
        return f"reranker {model.rpartition('/')[2]}".strip()
    return backend or component_name(spec)


def system_cards(sections: Sequence[Section]) -> list[Card]:
    seen: dict[str, list[tuple[Section, SystemInfo]]] = {}
    for section in sections:
        for system in section.systems:
            info = system.info
            # How a language's words are treated does not make another system.
            content = {"name": info.name, "kind": info.kind, "components": info.components}
            seen.setdefault(json.dumps(content, sort_keys=True), []).append((section, info))
    names = [where[0][1].name for where in seen.values()]
    return [_card(where, apart=names.count(where[0][1].name) > 1) for where in seen.values()]


def _card(where: Sequence[tuple[Section, SystemInfo]], *, apart: bool) -> Card:
    info = where[0][1]
    places = ", ".join(dict.fromkeys(section.title for section, _ in where)) if apart else ""
    components = [(ROLES.get(role, role), component(info.components[role])) for role in _roles(info)]
    kind = KINDS[info.kind] + (", text only" if info.reference else "")
    return Card(info.name, kind, places, components, _settings(where))


def _roles(info: SystemInfo) -> list[str]:
    known = [role for role in ROLES if role in info.components]
    return known + [role for role in info.components if role not in ROLES]


def _settings(where: Sequence[tuple[Section, SystemInfo]]) -> list[tuple[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for section, info in where:
        own = {name: value for name, value in info.settings.items() if value not in (None, "", False, [], {})}
        if info.normalizer:
            own["normalizer"] = f"{info.normalizer} {info.normalizer_version}"
        own["self-check"] = info.self_check.words
        if info.parameters is not None:
            own["parameters"] = parameter_words(info.parameters)
        for name, value in own.items():
            found.setdefault(name, {})[section.title] = shown(value)
    return [
        (
            name.replace("_", " "),
            next(iter(values.values()))
            if len(set(values.values())) == 1
            else ", ".join(f"{value} ({title})" for title, value in values.items()),
        )
        for name, values in found.items()
    ]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_REVISION_SHOWN]}…"


def component(spec: Spec) -> Component:
    parts = parts_of(spec)
    own = component_name(spec)
    model, revision = str(spec.get("model") or ""), str(spec.get("revision") or "")
    origin = [("engine", str(spec["backend"]), "")] if spec.get("backend") else []
    if model and model != own:
        origin.append(("weights", model, ""))
    if revision:
        short = revision if len(revision) <= _REVISION_SHOWN else f"{revision[:_REVISION_SHOWN]}…"
        origin.append(("revision", short, revision))
    settings = [(key, shown(value)) for key, value in _plain_settings(spec).items()]
    return Component(described(spec) if parts else own, origin, settings, [component(part) for part in parts])


def shown(value: object) -> str:
    """A setting as it reads best: a text with its outer blanks visible, anything else as JSON."""
    if isinstance(value, str) and value and value == value.strip():
        return value
    if isinstance(value, Mapping) and value and all(isinstance(one, str) for one in value.values()):
        return ", ".join(f"{key} {_short(one)}" for key, one in value.items())
    return json.dumps(value, ensure_ascii=False)
