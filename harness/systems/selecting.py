"""A part of the systems that are written somewhere: by name, and by what is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ...errors import MissingExtraError, nearest, unknown_name
from .entries import ComponentEntry, Role, SystemEntry, chain_name, entries_of
from .short_form import CLASS, TABLES
from .system import ROLES

NAME = "name"
_MODULES: Mapping[str, str] = {
    "asr": "faster_whisper", "funasr": "funasr", "mteb": "mteb", "openai": "openai", "openai-whisper": "whisper",
    "torch": "transformers",
}  # fmt: skip
"""What an extra must bring. `qwen-asr` is not here: by the form of the weights, `torch` may do."""


def name_of(entry: SystemEntry) -> str:
    """What a system is called by how it is written: its name, else the names of its components.

    >>> from .short_form import parse_short_form
    >>> name_of(parse_short_form("whisper-base + dense:intfloat/e5-small")), name_of(parse_short_form("a=whisper-base"))
    ('whisper-base + e5-small', 'a')
    """
    if entry.name:
        return entry.name
    names = {role: _part_name(written) for role in ROLES if (written := entries_of(getattr(entry, role)))}
    return chain_name(names, text_only=entry.text_only, n_best=entry.n_best)


def selected(entries: Sequence[SystemEntry], patterns: Sequence[str]) -> list[SystemEntry]:
    """The systems whose names match a pattern (`* + BM25`; case does not matter), all without patterns.

    Raises `UnknownNameError` for a pattern that no name matches.
    """
    if not patterns:
        return list(entries)
    names = [name_of(entry) for entry in entries]
    chosen: set[int] = set()
    for pattern in patterns:
        matched = {i for i, name in enumerate(names) if fnmatchcase(name.lower(), pattern.lower())}
        if not matched:
            guess = nearest(pattern, names)
            near = sorted(names, key=lambda name: name != guess)
            raise unknown_name("name of a system", pattern, near[:12])
        chosen |= matched
    return [entry for i, entry in enumerate(entries) if i in chosen]


def check_installed(entries: Sequence[SystemEntry]) -> None:
    """Raise `MissingExtraError` if a system needs an extra that is not installed; it names the systems and the line."""
    lacking: dict[str, list[str]] = {}
    for entry in entries:
        for extra in {extra for role, part in components_of(entry) if (extra := _missing(role, part))}:
            lacking.setdefault(extra, []).append(name_of(entry))
    if lacking:
        which = "; ".join(f"squtr[{extra}] by {_few(names)}" for extra, names in sorted(lacking.items()))
        raise MissingExtraError(
            f"not installed, but needed: {which}.",
            hint=f"Run: pip install 'squtr[{','.join(sorted(lacking))}]', or take others with --only 'PATTERN'.",
        )


def components_of(entry: SystemEntry) -> Iterator[tuple[Role, ComponentEntry]]:
    """Every component of a system with its role, those of all languages and the parts of retrievers included."""
    for role in ROLES:
        stack = list(entries_of(getattr(entry, role)))
        while stack:
            part = stack.pop()
            yield role, part
            stack += part.parts


def _missing(role: Role, part: ComponentEntry) -> str:
    if part.backend == CLASS:
        return ""
    extra = TABLES[role][part.backend].extra
    module = _MODULES.get(extra, "")
    return extra if module and importlib.util.find_spec(module) is None else ""


def _few(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _part_name(written: Sequence[ComponentEntry]) -> str:
    return " / ".join(dict.fromkeys(map(component_name, written)))


def component_name(part: ComponentEntry) -> str:
    """What a component is called by how it is written: its option `name`, else its model or backend."""
    given = part.options.get(NAME)
    if isinstance(given, str) and given:
        return given
    if part.parts:
        return f"{part.backend}({', '.join(map(component_name, part.parts))})"
    return part.model.rstrip("/").rpartition("/")[2] or part.backend
