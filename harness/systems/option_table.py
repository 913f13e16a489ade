"""Every backend with its options, as Markdown: what docs/systems.md shows, made from the constructors themselves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..components import BackendSpec
from ..components.seen_with import seen_with_table
from ..components.transcribers.funasr_models import FAMILIES
from ..components.transcribers.funasr_models import REFUSED as REFUSED_CLASSES
from ..components.transcribers.presets import PRESETS
from ..components.transcribers.transformers_models import ARCHITECTURES
from ..components.transcribers.transformers_models import REFUSED as REFUSED_TYPES
from .building import constructors_of, options_of
from .entries import Role
from .short_form import TABLES

BEGIN = "<!-- options: begin (written by scripts/write_option_tables.py) -->"
END = "<!-- options: end -->"

_TITLES: Mapping[Role, str] = {
    "transcriber": "Transcribers",
    "rewriter": "Rewriters",
    "retriever": "Retrievers",
    "encoder": "Encoders of audio and text",
    "front_end": "Front ends",
    "answerer": "Answerers",
}


def option_tables() -> str:
    """All backends by role: how each is written, what its class says, and its options with types and defaults."""
    lines = [line for role, title in _TITLES.items() for line in _role(role, title)]
    return "\n".join([*lines, *_speech_models(), *_seen_with(), *_presets()]).rstrip() + "\n"


def with_tables(page: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN!r} or {END!r}")
    return f"{before}{BEGIN}\n\n{option_tables()}\n{END}{after}"


def _role(role: Role, title: str) -> Iterator[str]:
    yield from (f"### {title}", "")
    for row in TABLES[role].values():
        yield from _backend(role, row)


def _backend(role: Role, row: BackendSpec) -> Iterator[str]:
    constructors = constructors_of(role, row.name)
    yield from (f"#### `{row.name}:<model>`" if row.takes_model else f"#### `{row.name}`", "")
    yield from (inspect.getdoc(constructors[0]) or "", "")
    if row.extra:
        yield from (f"Needs `pip install 'squtr[{row.extra}]'`.", "")
    options = options_of(constructors)
    if not options:
        yield from ("No options.", "")
        return
    yield from ("| option | type | default |", "|---|---|---|")
    for name, option in options.items():
        yield f"| `{name}` | {option.type_name} | {'required' if option.required else _shown(option.default)} |"
    yield ""


def _speech_models() -> Iterator[str]:
    yield from ("### Models that `transformers` and `funasr` run", "")
    yield from ("| `transformers`: model type | how it is told what to write | languages |", "|---|---|---|")
    yield "| `whisper` | tokens of language and task | its own |"
    for name, row in ARCHITECTURES.items():
        yield f"| `{name}` | {row.asked}{f', `{row.argument}`' if row.argument else ''} | {_codes(row.languages)} |"
    yield from ("", "| `funasr`: class | clips in a batch | languages that it is told |", "|---|---|---|")
    for name, family in FAMILIES.items():
        yield f"| `{name}` | {family.batches} | {_codes(family.languages, 'none')} |"
    yield from ("", "Refused, with the reason:", "", "| backend | model type or class | |", "|---|---|---|")
    for backend, refused in (("transformers", REFUSED_TYPES), ("funasr", REFUSED_CLASSES)):
        for why in sorted(set(refused.values())):
            names = ", ".join(f"`{name}`" for name, reason in refused.items() if reason == why)
            yield f"| `{backend}` | {names} | {why} |"
    yield ""


def _codes(languages: Iterable[str], none: str = "those of `languages`") -> str:
    return ", ".join(sorted(languages)) or none


def _seen_with() -> Iterator[str]:
    yield from ("### Seen with", "")
    yield "What each backend was tried with in the tests. Random weights show that calls, shapes and prompts are right,"
    yield "not that a trained model outputs what it should: `squtr check` shows that, on your machine."
    yield from ("", *seen_with_table(), "")


def _presets() -> Iterator[str]:
    yield from ("### Presets", "", "| preset | backend | options | from |", "|---|---|---|---|")
    for preset in PRESETS.values():
        for backend, options in preset.options.items():
            written = ", ".join(f"`{name}: {json.dumps(value)}`" for name, value in options.items())
            yield f"| `{preset.name}` | `{backend}` | {written} | {preset.source} |"
    yield ""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"`{text}`"
