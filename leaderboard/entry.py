"""A row of the leaderboard: one system on one version of a benchmark and one data set, all its configs together.

A stored file is one result, of one config. `from_result` makes an entry of it, `merge` joins those of a system:

    merge(from_result(result) for result in results) -> list[Entry]

Entries are plain values that survive JSON: `to_json` and `from_json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from ..errors import DataError
from ..harness.results.comparable import aspects as aspects_of
from ..harness.results.comparable import has_words
from ..harness.results.envelope import Loss, Result, Score

Who = Literal["self-reported", "re-scored", "published"]
"""Who vouches for the numbers: the submitter; the submitter's own per-item records, scored again; a paper."""

ROLES = ("front_end", "transcriber", "rewriter", "encoder", "retriever", "answerer")
_AUDIO_ROLES = ("transcriber", "encoder", "answerer")
HUB = "https://huggingface.co"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a system. `parameters` and `open_weights` are None where nobody stated them; `link` is https or ""."""

    role: str
    name: str
    revision: str = ""
    link: str = ""
    parameters: int | None = None
    open_weights: bool | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a config's result covers: `n` of `n_total` items (pairs, questions) of `subsets`, in one language."""

    n: int
    n_total: int
    partial: bool
    language: str
    condition: str
    subsets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One system on one version of a benchmark and one data set.

    What has `config` as its key has one value for each config that was evaluated: `scores[config][metric]`,
    `by_subset[config][subset][metric]`, `losses[config][baseline][metric]`, `failures[config][name]` (counts),
    `failed_by_subset[config][subset]` (where any did),
    `timing[config][name]` (`rtfx` in seconds of audio per second, memory in MB, energy in J, stages in s),
    `coverage[config]`, `normalizers[config]` (name and version; "" without words), `self_checks[config]` (the verdict),
    `sources[config]` (path of the stored file), `hashes[config]` (of its content), `who_by_config[config]`.

    `aspects` is what must be equal for two entries to share a table (see `difference`). `components[role]` is the full
    specification of a part. `errata` maps "config/metric" or "config/subset/metric" to a sentence about that number.
    `ranked` is false for what is shown outside the ranking. `superseded` are older stored files of the same config.
    """

    id: str
    task: str
    benchmark: str
    benchmark_version: str
    system: str
    kind: str
    who: Who
    main_metric: str
    scores: Mapping[str, Mapping[str, Score]]
    coverage: Mapping[str, Coverage]
    aspects: Mapping[str, str] = field(default_factory=dict)
    by_subset: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)
    losses: Mapping[str, Mapping[str, Mapping[str, Loss]]] = field(default_factory=dict)
    failures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    failed_by_subset: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    timing: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    components: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    models: tuple[Model, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    normalizers: Mapping[str, str] = field(default_factory=dict)
    hardware: Mapping[str, str] = field(default_factory=dict)
    self_checks: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    source_version: str = ""
    revision: str = ""
    manifest_sha256: str = ""
    squtr_version: str = ""
    date: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    who_by_config: Mapping[str, Who] = field(default_factory=dict)
    superseded: tuple[str, ...] = ()
    errata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ranked: bool = True

    @property
    def configs(self) -> tuple[str, ...]:
        """The configs that were evaluated, in order of their names."""
        return tuple(sorted(self.scores))

    @property
    def partial(self) -> bool:
        """Whether it covers only a part of the items: it then stands beside no full entry."""
        return any(covered.partial for covered in self.coverage.values())


def difference(a: Entry, b: Entry) -> str:
    """Why two entries may not share a table, as a clause; "" if they may.

    Error rates need equal normalizers too: see `same_words`.
    """
    if a.benchmark != b.benchmark or a.benchmark_version != b.benchmark_version:
        return (
            f"the benchmark is {a.benchmark} {a.benchmark_version} on one side and "
            f"{b.benchmark} {b.benchmark_version} on the other"
        )
    for name in dict.fromkeys((*a.aspects, *b.aspects)):
        if a.aspects.get(name) != b.aspects.get(name):
            return f"the {name} is {a.aspects.get(name, '')!r} on one side and {b.aspects.get(name, '')!r} on the other"
    return "" if a.partial == b.partial else "one side covers all items and the other a part"


def same_words(a: Entry, b: Entry, config: str) -> bool:
    """Whether the error rates of a config may be compared: both have words, normalized by the same version."""
    ours = a.normalizers.get(config, "")
    return bool(ours) and ours == b.normalizers.get(config, "")


def content_sha256(value: Any) -> str:
    """The sha256 of canonical JSON: keys sorted, no blanks, UTF-8. The same for a result however its file is laid out.

    >>> content_sha256({"b": 1, "a": "ä"}) == content_sha256({"a": "ä", "b": 1})
    True
    """
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def from_result(
    result: Result,
    *,
    who: Who = "self-reported",
    date: str = "",
    path: str = "",
    content: str = "",
    about: Iterable[Model] = (),
) -> Entry:
    """The entry of one result, of any task.

    `date` (ISO 8601) is when it was submitted, `path` where the file is stored, `content` the sha256 of what it holds,
    `about` what the submitter says about the system's models.
    """
    data, system = result.data, result.system
    config = result.key[1]
    subsets = result.by_group.get("subset", [])
    failed = {group.label: group.counts["failed"] for group in subsets if group.counts.get("failed")}
    # Data that was built with a part of the queries is as partial as an evaluation of a part.
    partial = data.partial or limit_of(data.recipe) > 0
    components = {role: dict(system.components[role]) for role in ROLES if role in system.components}
    models = _models(components, about)
    if system.parameters is not None:
        models = tuple(
            replace(model, parameters=system.parameters) if model.role in _AUDIO_ROLES and model.parameters is None
            else model
            for model in models
        )  # fmt: skip
    timing: dict[str, float | None] = {f"{stage}_s": seconds for stage, seconds in result.timing.stages.items()}
    plain = result.timing.model_dump(exclude={"stages", "latency", "isolated", "processes"})
    timing |= {name: value for name, value in plain.items() if value is not None}
    timing["processes"] = float(result.timing.processes)
    for prefix, block in (("latency", result.timing.latency), ("isolated", result.timing.isolated)):
        if block is not None:
            numbers = block.model_dump(exclude={"device"})
            timing |= {f"{prefix}_{name}": float(value) for name, value in numbers.items() if value is not None}
    return _entry(
        task=result.task,
        benchmark=result.benchmark,
        benchmark_version=result.benchmark_version,
        system=system.name,
        kind=system.kind,
        who=who,
        main_metric=result.main_metric,
        scores={config: result.scores},
        coverage={config: Coverage(data.n, data.n_total, partial, data.language, data.condition, tuple(data.subsets))},
        aspects=aspects_of(result, words=False),
        by_subset={config: {group.label: group.scores for group in subsets}},
        losses={config: result.losses},
        failures={config: result.failures},
        failed_by_subset={config: failed} if failed else {},
        timing={config: timing},
        components=components,
        models=models,
        settings={**system.settings, "normalizer": system.normalizer, "seed": result.seed},
        normalizers={config: f"{system.normalizer} {system.normalizer_version}" if has_words(result) else ""},
        hardware={config: result.environment.hardware},
        self_checks={config: system.self_check.verdict},
        source=data.source,
        source_version=data.source_version,
        revision=data.revision,
        manifest_sha256=data.manifest_sha256,
        squtr_version=result.squtr_version,
        date=date,
        sources={config: path} if path else {},
        hashes={config: content or content_sha256(result.model_dump(mode="json"))},
        who_by_config={config: who},
        # A text-only baseline is a reference, and no competitor.
        ranked=not system.reference,
        notes=("A text-only baseline: a reference, not ranked.",) if system.reference else (),
    )


def limit_of(recipe: Mapping[str, object]) -> int:
    """How many queries of each subset a recipe takes, 0 for all."""
    limit = recipe.get("limit", 0)
    return limit if isinstance(limit, int) and limit > 0 else 0


def merge(entries: Iterable[Entry]) -> list[Entry]:
    """Join the entries of each system, sorted by benchmark, system and id.

    Two belong together if benchmark, data, system name, kind and settings are the same, neither names another component
    in the same role, and both are whole or both partial. (A typed query needs no transcriber: the result of a cascade
    under `text` has none, and belongs to all cascades with its name and retriever.) Of several results for one config
    the newest counts, by date, then by hash; the others are listed in `superseded`.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_base_key(entry), []).append(entry)
    found: list[Entry] = []
    for group in groups.values():
        # The most complete first, so that what lacks a part finds what it belongs to.
        most = sorted(group, key=lambda entry: (-len(entry.components), entry.id))
        bundles: list[tuple[dict[str, Mapping[str, Any]], list[Entry]]] = []
        for entry in most:
            homes = [bundle for bundle in bundles if _fits(bundle[0], entry.components)]
            if not homes:
                bundles.append((dict(entry.components), [entry]))
            for _, members in homes:
                members.append(entry)
        found += [_joined(members) for _, members in bundles]
    return sorted(found, key=lambda entry: (entry.benchmark, entry.benchmark_version, entry.system, entry.id))


def to_json(entry: Entry) -> dict[str, Any]:
    """As a JSON object."""
    value: dict[str, Any] = _ADAPTER.dump_python(entry, mode="json")
    return value


def from_json(value: Mapping[str, Any]) -> Entry:
    """What `to_json` wrote. Raises `DataError` naming the field."""
    try:
        return _ADAPTER.validate_python(dict(value))
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"this is no entry: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error


def hub_link(name: str) -> str:
    """The address of a model on the Hub, "" for what cannot be its name there.

    >>> hub_link("openai/whisper-base"), hub_link("../../etc"), hub_link("whisper-base")
    ('https://huggingface.co/openai/whisper-base', '', '')
    """
    valid = _HUB_NAME.fullmatch(name) and ".." not in name and "--" not in name
    return f"{HUB}/{name}" if valid else ""


_ADAPTER = TypeAdapter(Entry)


def _entry(**fields: Any) -> Entry:
    entry = Entry(id="", **fields)
    return replace(entry, id=_identity(entry))


def _identity(entry: Entry) -> str:
    """What stays the same when configs are added, so that links to an entry stay good."""
    parts = {role: _spec_key(spec) for role, spec in entry.components.items()}
    return content_sha256([_base_key(entry), parts])[:16]


def _base_key(entry: Entry) -> str:
    # Under `text` there are no n best transcripts, nor a script to fold: these settings follow the transcriber. What a
    # threshold was fitted to differs by language.
    settings = {
        name: value
        for name, value in entry.settings.items()
        if name not in {"n_best", "n_best_fusion", "script_folding", "preset", "route", "seed", "normalizer"}
    }
    return content_sha256(
        [
            entry.benchmark,
            entry.benchmark_version,
            entry.system,
            entry.kind,
            entry.ranked,
            entry.who == "published",
            dict(entry.aspects),
            settings,
            entry.partial,
        ]
    )


def _spec_key(spec: Mapping[str, Any]) -> str:
    return content_sha256(dict(spec))


def _fits(a: Mapping[str, Mapping[str, Any]], b: Mapping[str, Mapping[str, Any]]) -> bool:
    return all(_spec_key(a[role]) == _spec_key(b[role]) for role in set(a) & set(b))


def _when(entry: Entry) -> datetime:
    try:
        moment = datetime.fromisoformat(entry.date)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_BY_CONFIG = (
    "scores", "coverage", "by_subset", "losses", "failures", "failed_by_subset", "timing", "normalizers", "hardware",
    "self_checks", "sources", "hashes", "who_by_config",
)  # fmt: skip


def _joined(members: list[Entry]) -> Entry:
    oldest_first = sorted(members, key=lambda entry: (_when(entry), sorted(entry.hashes.values())))
    fields: dict[str, Any] = {name: {} for name in _BY_CONFIG}
    superseded: dict[str, None] = dict.fromkeys(path for entry in oldest_first for path in entry.superseded)
    components: dict[str, Mapping[str, Any]] = {}
    models: dict[tuple[str, str], Model] = {}
    errata: dict[str, str] = {}
    for entry in oldest_first:
        for config in entry.scores:
            before, now = fields["sources"].get(config, ""), entry.sources.get(config, "")
            if before and before != now:
                superseded[before] = None
            for name in _BY_CONFIG:
                fields[name].pop(config, None)
                if config in (own := getattr(entry, name)):
                    fields[name][config] = own[config]
        components |= entry.components
        models |= {(model.role, model.name): model for model in entry.models}
        errata |= entry.errata
    newest = oldest_first[-1]
    full = max(oldest_first, key=lambda entry: len(entry.components))
    who: Who = newest.who
    if who != "published":
        every = set(fields["who_by_config"].values())
        who = "re-scored" if every == {"re-scored"} else "self-reported"
    joined = replace(
        newest,
        **fields,
        who=who,
        settings=full.settings,
        components={role: components[role] for role in sorted(components)},
        models=tuple(models.values()),
        superseded=tuple(superseded),
        errata=errata,
        notes=tuple(dict.fromkeys(note for entry in oldest_first for note in entry.notes)),
        ranked=all(entry.ranked for entry in members),
    )
    return replace(joined, id=_identity(joined))


def _models(components: Mapping[str, Mapping[str, Any]], about: Iterable[Model]) -> tuple[Model, ...]:
    """What the specifications say about the models, completed by what the submitter says of the same role."""
    stated: dict[str, Model] = {}
    for model in about:
        before = stated.get(model.role)
        stated[model.role] = _completed(before, model) if before else model
    found = []
    for role, spec in components.items():
        name = str(spec.get("model") or spec.get("name") or "")
        own = Model(role, name, str(spec.get("revision") or ""), hub_link(name))
        found.append(_completed(own, stated[role]) if role in stated else own)
    return tuple(found)


def _completed(own: Model, stated: Model) -> Model:
    return replace(
        own,
        link=stated.link or own.link,
        parameters=stated.parameters if stated.parameters is not None else own.parameters,
        open_weights=stated.open_weights if stated.open_weights is not None else own.open_weights,
    )
