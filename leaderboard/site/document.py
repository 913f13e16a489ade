"""The board as one JSON object, which the page carries: compact, bounded, and safe to show.

Numbers of tables are whole hundred-thousandths, in columns; null where there is none. Specifications of parts, which
many systems share, stand once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ...harness.benchmarks import BENCHMARKS
from ...harness.metrics.registry import metric_of
from ...harness.results.envelope import Score
from ..entry import ROLES, Entry, content_sha256
from ..ranking import lower_is_better
from .order import Ranker, RecordRanker, Standing
from .tables import Group, Row, Table, condition_order, known_condition, plain

UNIT = 100_000
"""Numbers of tables are stored as multiples of 1 / UNIT: the page shows three or four places."""
_DEEPEST = 6
_MOST_ITEMS = 200
_LONGEST_VALUE = 2000


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the results lie: the data set `ORG/NAME` on the Hub and its address, or "" for a local folder."""

    name: str = ""
    address: str = ""


def document(
    found: Sequence[Group],
    made: Sequence[Table],
    *,
    ranker: Ranker | None = None,
    pairs: Mapping[str, Any] | None = None,
    steady: Sequence[Mapping[str, Any]] = (),
    first: int = 0,
    origin: Origin | None = None,
    squtr_version: str = "",
) -> dict[str, Any]:
    """The object that the page reads. The same entries give the same object: it holds no time of its own.

    `pairs` are the paired tests by table (see `pairs.py`), of the `first` systems of each; `steady` is `steadiness`.
    """
    place, ranker = origin or Origin(), ranker or RecordRanker()
    entries = [(number, entry) for number, group in enumerate(found) for entry in group.entries]
    index = {(number, entry.id): at for at, (number, entry) in enumerate(entries)}
    parts = _Parts()
    systems = [_system(number, entry, parts) for number, entry in entries]
    conditions = sorted({table.place.condition for table in made}, key=condition_order)
    return {
        "squtr": squtr_version,
        "unit": UNIT,
        "updated": max((entry.date for _, entry in entries), default="")[:10],
        "results": {"name": plain(place.name), "url": safe_link(place.address)},
        "conditions": [plain(condition) for condition in conditions],
        # The steps of those that are made of known ones: the page has words for steps.
        "steps": {name: parsed.described() for name in conditions if (parsed := known_condition(name))},
        "lower": sorted({table.metric for table in made if lower_is_better(table.metric)}),
        "groups": [_group(group) for group in found],
        "parts": parts.found,
        "systems": systems,
        "tables": [_table(table, index, ranker) for table in made],
        "pairs": dict(pairs or {}),
        "steady": [
            {
                **{name: plain(one[name]) for name in ("language", "metric")},
                "group": one["group"],
                "systems": [index[one["group"], id_] for id_ in one["systems"]],
                "sigma": [[_whole(number) for number in own] for own in one["sigma"]],
                "snr": list(one["snr"]),
            }
            for one in steady
        ],
        "tested": first,
    }


def as_json(value: Any) -> str:
    """JSON that may stand inside `<script>`: no `<`, and no line end that old parsers trip over."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def safe_link(address: str) -> str:
    """`address` if it is an https address without user name, else "".

    >>> safe_link("https://huggingface.co/a/b"), safe_link("javascript:alert(1)"), safe_link("https://a@evil.example")
    ('https://huggingface.co/a/b', '', '')
    """
    if any(c <= " " or c in '<>"\\' or ord(c) > 0x7E for c in address):
        return ""
    try:
        parsed = urlsplit(address)
        valid = parsed.scheme == "https" and bool(parsed.hostname) and "@" not in parsed.netloc
    except ValueError:
        return ""
    return address if valid else ""


@dataclass(slots=True)
class _Parts:
    """Specifications, each once."""

    found: list[Any] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)

    def place(self, spec: Mapping[str, Any]) -> int:
        shown = _shown(spec)
        key = json.dumps(shown, sort_keys=True, ensure_ascii=False)
        if key not in self.at:
            self.at[key] = len(self.found)
            self.found.append(shown)
        return self.at[key]


def _shown(value: Any, depth: int = 0) -> Any:
    """A value of a specification, harmless and of bounded size."""
    if isinstance(value, Mapping):
        if depth >= _DEEPEST:
            return "…"
        return {plain(str(key)): _shown(inner, depth + 1) for key, inner in _first(sorted(value.items(), key=_name))}
    if isinstance(value, list | tuple):
        return "…" if depth >= _DEEPEST else [_shown(inner, depth + 1) for inner in _first(value)]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if abs(value) < 2**53 and math.isfinite(value) else str(value)
    return plain(str(value), _LONGEST_VALUE)


def _name(pair: tuple[Any, Any]) -> str:
    return str(pair[0])


def _first(values: Iterable[Any]) -> list[Any]:
    return list(values)[:_MOST_ITEMS]


def _group(group: Group) -> dict[str, Any]:
    title = BENCHMARKS[group.benchmark].title if group.benchmark in BENCHMARKS else group.benchmark
    return {
        # In addresses: links stay good when groups come and go.
        "id": content_sha256([group.benchmark, group.version, group.published, sorted(group.aspects.items())])[:8],
        "benchmark": plain(group.benchmark),
        "version": plain(group.version),
        "source": plain(group.source),
        "aspects": {plain(name): plain(value, _LONGEST_VALUE) for name, value in sorted(group.aspects.items())},
        "metrics": [plain(name) for name in group.metrics],
        "title": plain(title),
        # What stands before the colon of a title is the name.
        "name": plain(title.partition(":")[0]),
        "labels": {plain(name): plain(metric_of(name).label) for name in group.metrics},
    }


def _system(number: int, entry: Entry, parts: _Parts) -> dict[str, Any]:
    models = [
        {
            "role": plain(model.role),
            "name": plain(model.name),
            "revision": plain(model.revision),
            "link": safe_link(model.link),
            "parameters": model.parameters,
            "open": model.open_weights,
        }
        for model in sorted(entry.models, key=lambda model: (_role_order(model.role), model.name))
    ]
    counted = [model.parameters for model in entry.models]
    known = [model.open_weights for model in entry.models]
    value: dict[str, Any] = {
        "id": entry.id,
        "group": number,
        "name": plain(entry.system),
        "kind": plain(entry.kind),
        "who": entry.who,
        "date": plain(entry.date)[:10],
        "partial": entry.partial,
        "ranked": entry.ranked,
        "models": models,
        # A sum is known only where every part is.
        "parameters": sum(n for n in counted if n is not None) if counted and None not in counted else None,
        "open": (all(known) if None not in known else (False if False in known else None)) if known else None,
        "parts": {role: parts.place(spec) for role, spec in sorted(entry.components.items())},
        "settings": _shown(entry.settings),
        "data": {
            "source": plain(entry.source),
            "source_version": plain(entry.source_version),
            "revision": plain(entry.revision),
            "manifest_sha256": plain(entry.manifest_sha256),
            "squtr_version": plain(entry.squtr_version),
        },
        "configs": {plain(config): _config(entry, config) for config in entry.configs},
        "errata": {plain(name): plain(text, _LONGEST_VALUE) for name, text in sorted(entry.errata.items())},
        "notes": [plain(note, _LONGEST_VALUE) for note in entry.notes],
        "superseded": [plain(path) for path in entry.superseded],
    }
    return {key: content for key, content in value.items() if content not in ({}, [], "")}


def _role_order(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES)


def _config(entry: Entry, config: str) -> dict[str, Any]:
    covered = entry.coverage.get(config)
    value = {
        "n": covered.n if covered else None,
        "total": covered.n_total if covered else None,
        "failures": {plain(name): count for name, count in sorted(entry.failures.get(config, {}).items())},
        "timing": {
            plain(name): _rounded(number)
            for name, number in sorted(entry.timing.get(config, {}).items())
            if number is not None and math.isfinite(number)
        },
        "normalizer": plain(entry.normalizers.get(config, "")),
        "hardware": plain(entry.hardware.get(config, "")),
        "self_check": plain(entry.self_checks.get(config, "")),
        "file": plain(entry.sources.get(config, "")),
        "hash": plain(entry.hashes.get(config, ""))[:16],
        "who": entry.who_by_config.get(config, entry.who),
    }
    return {key: content for key, content in value.items() if content not in ({}, "", None)}


def _rounded(number: float) -> float:
    return float(f"{number:.5g}")


def _table(table: Table, index: Mapping[tuple[int, str], int], ranker: Ranker) -> dict[str, Any]:
    rows = table.rows
    value: dict[str, Any] = {
        "group": table.group,
        "language": plain(table.place.language),
        "subset": plain(table.place.subset),
        "condition": plain(table.place.condition),
        "metric": plain(table.metric),
        "systems": [index[table.group, row.entry.id] for row in rows],
        **_columns([row.score for row in rows]),
        "n": _together([row.score.n for row in rows]),
        **({"failed": _together([row.failed for row in rows])} if any(row.failed for row in rows) else {}),
        **_rank_columns(rows, ranker(table, "")),
    }
    if lower_is_better(table.metric):
        value["normalizer"] = _together([plain(row.normalizer) for row in rows])
    errata = {str(at): plain(row.erratum, _LONGEST_VALUE) for at, row in enumerate(rows) if row.erratum}
    if errata:
        value["errata"] = errata
    losses = {baseline: _losses(table, baseline, ranker) for baseline in table.baselines}
    if losses:
        value["loss"] = losses
    return value


def _losses(table: Table, baseline: str, ranker: Ranker) -> dict[str, Any]:
    own = [row.losses.get(baseline) for row in table.rows]
    # Where items failed, a loss is over those that have a transcript on both sides.
    paired = any(loss.absolute.bounds for loss in own if loss)
    return {
        **_columns([loss.absolute if loss else None for loss in own]),
        **({"n": [loss.absolute.n if loss else None for loss in own]} if paired else {}),
        "relative": [_whole(loss.relative.value if loss else None) for loss in own],
        **_rank_columns(table.rows, ranker(table, baseline)),
    }


def _columns(scores: Sequence[Score | None]) -> dict[str, Any]:
    found: dict[str, Any] = {"value": [_whole(score.value if score else None) for score in scores]}
    for name in ("low", "high"):
        column = [_whole(getattr(score, name) if score else None) for score in scores]
        if any(number is not None for number in column):
            found[name] = column
    if any(score.bounds for score in scores if score):
        ends = [score.bounds or (None, None) if score else (None, None) for score in scores]
        found |= {name: [_whole(end[at]) for end in ends] for at, name in enumerate(("least", "most"))}
    return found


def _rank_columns(rows: Sequence[Row], ranks: Mapping[str, Standing]) -> dict[str, Any]:
    own = [ranks.get(row.entry.id) for row in rows]
    if not any(own):
        return {}
    found = {"position": [one.position if one else None for one in own]}
    if any(one.rank is not None for one in own if one):
        found |= {
            "rank": [one.rank if one else None for one in own],
            "best": [one.low if one else None for one in own],
            "worst": [one.high if one else None for one in own],
        }
    return found


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value * UNIT)


def _together(values: Sequence[Any]) -> Any:
    """One value where all are the same, else the list."""
    return values[0] if values and len(set(values)) == 1 else list(values)
