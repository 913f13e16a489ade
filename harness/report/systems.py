"""What each system is made of: its components as a tree, each with its weights and every setting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..results.old import SystemInfo
from .data import Section, component_name
from .formats import escape, plural

Spec = Mapping[str, Any]
"""The JSON of a component."""

KINDS = {"cascade": "cascade", "end-to-end": "end-to-end", "run": "ready ranking"}
_ROLES = (
    ("front_end", "Front end"),
    ("transcriber", "Transcriber"),
    ("encoder", "Encoder of sound and text"),
    ("retriever", "Retriever"),
)
_FUSIONS = {"rrf": "by reciprocal rank", "score": "by score"}
_REVISION_SHOWN = 12


def is_component(value: object) -> bool:
    """Whether a setting is a component of its own."""
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


def plain_settings(spec: Spec) -> dict[str, Any]:
    """The settings that are not components."""
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
        return component_name(dict(spec))
    inner = [f"({described(part)})" if parts_of(part) else described(part) for part in parts]
    if len(parts) == 1:
        return f"{_own_name(spec)} over {inner[0]}"
    return f"{_own_name(spec)} of {', '.join(inner[:-1])} and {inner[-1]}"


def _own_name(spec: Spec) -> str:
    """The name of a composite without that of its parts."""
    backend, model = str(spec.get("backend", "")), str(spec.get("model", ""))
    if backend == "rerank":
        return f"reranker {model.rpartition('/')[2]}".strip()
    return backend or component_name(dict(spec))


def system_cards(sections: Sequence[Section]) -> str:
    """A card for each distinct system, in the order of the report."""
    seen: dict[str, list[tuple[Section, SystemInfo]]] = {}
    for section in sections:
        for system in section.systems:
            info = system.info
            # How a language's words are treated does not make another system.
            content = info.model_copy(update={"script_folding": "", "normalizer": "", "normalizer_version": ""})
            key = json.dumps(content.model_dump(mode="json"), sort_keys=True)
            seen.setdefault(key, []).append((section, info))
    names = [where[0][1].name for where in seen.values()]
    cards = [_card(where, apart=names.count(where[0][1].name) > 1) for where in seen.values()]
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(where: Sequence[tuple[Section, SystemInfo]], *, apart: bool) -> str:
    """`where` lists the sections that the system is in; `apart`: another system has the same name."""
    info = where[0][1]
    places = f" in {escape(', '.join(dict.fromkeys(section.title for section, _ in where)))}" if apart else ""
    rows = [
        f'<li><span class="role">{words}</span>{component_html(spec)}</li>'
        for role, words in _ROLES
        if (spec := getattr(info, role)) is not None
    ]
    return (
        f'<article class="card"><h3>{escape(info.name)} <small>{KINDS[info.kind]}{places}</small></h3>'
        f'<ul class="tree">{"".join(rows)}</ul><p class="note">{" ".join(_search(info) + _words(where))}</p></article>'
    )


def _search(info: SystemInfo) -> list[str]:
    """How it searches, in sentences."""
    said = []
    if info.n_best > 1:
        fusion = _FUSIONS.get(info.n_best_fusion, info.n_best_fusion)
        said.append(f"It searches with each of the {info.n_best} best transcripts and fuses their rankings {fusion}.")
    elif info.transcriber is not None:
        said.append("It searches with the best transcript.")
    if info.depth:
        said.append(f"It retrieves {plural(info.depth, 'document')}.")
    return [escape(sentence) for sentence in said]


def _words(where: Sequence[tuple[Section, SystemInfo]]) -> list[str]:
    """How its words are treated before search and before errors are counted, by language where that differs."""
    said = []
    worded = [(section.title, info) for section, info in where if info.transcriber is not None and info.normalizer]
    for what, values in (
        ("Script folding", [(title, info.script_folding) for title, info in worded]),
        ("Normalizer", [(title, f"{info.normalizer} {info.normalizer_version}") for title, info in worded]),
    ):
        distinct = set(dict(values).values())
        if len(distinct) == 1:
            said.append(f"{what}: {distinct.pop()}.")
        elif distinct:
            said.append(f"{what}: {', '.join(f'{value} ({title})' for title, value in values)}.")
    return [escape(sentence) for sentence in said]


def component_html(spec: Spec) -> str:
    """A component with its weights, its settings and its parts."""
    parts = parts_of(spec)
    name = described(spec) if parts else component_name(dict(spec))
    origin = [f"engine {escape(str(spec.get('backend', '')))}"] if spec.get("backend") else []
    model, revision = str(spec.get("model") or ""), str(spec.get("revision") or "")
    if model and model != component_name(dict(spec)):
        origin.append(f"weights {escape(model)}")
    if revision:
        shown = revision if len(revision) <= _REVISION_SHOWN else f"{revision[:_REVISION_SHOWN]}…"
        origin.append(f'revision <span title="{escape(revision)}">{escape(shown)}</span>')
    settings = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(_shown(value))}</dd></div>"
        for key, value in plain_settings(spec).items()
    )
    below = "".join(f"<li>{component_html(part)}</li>" for part in parts)
    return (
        f"<b>{escape(name)}</b> <small>{', '.join(origin)}</small>"
        + (f'<dl class="settings">{settings}</dl>' if settings else "")
        + (f"<ul>{below}</ul>" if below else "")
    )


def _shown(value: object) -> str:
    """A setting as it reads best: a text with its outer blanks visible, anything else as JSON."""
    if isinstance(value, str) and value and value == value.strip():
        return value
    return json.dumps(value, ensure_ascii=False)
