"""What the page shows, taken from entries: groups that may share tables, and one table for each place and metric.

A place is a language or a subset, under a condition. A group holds entries of one benchmark, version and data, so
that what differs in these never meets.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...errors import UnknownNameError, UsageError
from ...harness.benchmarks import BENCHMARKS
from ...harness.metrics.registry import metric_of
from ...harness.results.envelope import TEXT_CONDITION, Loss, Score
from ...loaders.conditions import Condition, parse_condition
from ..entry import Coverage, Entry
from ..ranking import lower_is_better

_LONGEST = 300


@lru_cache(maxsize=100_000)
def plain(text: str, longest: int = _LONGEST) -> str:
    """`text` without characters that have no look of their own or turn the direction of what follows, and cut short.

    Each of these becomes U+FFFD, so that two names that differ never look the same.

    >>> plain("a\\u202eb\\x00c"), plain("x" * 9, 4)
    ('a\\ufffdb\\ufffdc', 'xxx…')
    """
    shown = "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} else c for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def condition_order(condition: str) -> tuple[int, float, str]:
    """The key that sorts conditions from the typed query to the hardest.

    >>> sorted(["reverb", "snr_-5", "text", "high_noise", "clean"], key=condition_order)
    ['text', 'clean', 'high_noise', 'snr_-5', 'reverb']
    """
    if condition == TEXT_CONDITION:
        return 0, 0.0, condition
    parsed = known_condition(condition)
    if parsed is None:
        return 3, 0.0, condition
    return (2 if parsed.reverb else 1), (-math.inf if parsed.snr_db is None else -parsed.snr_db), condition


def known_condition(name: str) -> Condition | None:
    """The condition called `name`, None for what is not made of known steps: a part of a set, or somebody's own."""
    try:
        return parse_condition(name)
    except (UnknownNameError, UsageError):
        return None


@dataclass(frozen=True, slots=True)
class Place:
    """A language (`subset` is "") or a subset, under a condition."""

    language: str
    subset: str
    condition: str


@dataclass(frozen=True, slots=True)
class Row:
    """A system in a table: its score there, its losses by baseline, how its text was normalized, the erratum, and how
    many items failed (None where nobody says)."""

    entry: Entry
    config: str
    score: Score
    losses: Mapping[str, Loss] = field(default_factory=dict)
    erratum: str = ""
    failed: int | None = None

    @property
    def normalizer(self) -> str:
        """The normalizer behind an error rate."""
        return self.entry.normalizers.get(self.config, "")

    @property
    def in_order(self) -> bool:
        """Whether it has a rank: it covers all items and is not shown outside the ranking."""
        covered = self.entry.coverage.get(self.config)
        return self.entry.ranked and not self.entry.partial and not (covered and covered.partial)


@dataclass(frozen=True, slots=True)
class Table:
    """The systems of a group at one place, by one metric, in the order of their ids."""

    group: int
    place: Place
    metric: str
    rows: tuple[Row, ...]

    @property
    def baselines(self) -> tuple[str, ...]:
        """Against what losses are known."""
        known = {name for row in self.rows for name in row.losses}
        return tuple(sorted(known, key=condition_order))


@dataclass(frozen=True, slots=True)
class Group:
    """Entries of one benchmark, version and data. `metrics` starts with the one that the benchmark is about."""

    benchmark: str
    version: str
    source: str
    aspects: Mapping[str, str]
    entries: tuple[Entry, ...]
    metrics: tuple[str, ...]

    @property
    def published(self) -> bool:
        """Whether its numbers come from papers."""
        return self.entries[0].who == "published"


def groups(entries: Iterable[Entry]) -> list[Group]:
    """The groups in the order of the benchmarks, those with most entries first; published numbers last."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        apart = entry.who == "published"
        key = json.dumps([entry.benchmark, entry.benchmark_version, apart, sorted(entry.aspects.items())])
        found.setdefault(key, []).append(entry)
    made = [_group(sorted(own, key=lambda entry: entry.id)) for own in found.values()]
    order = list(BENCHMARKS)
    return sorted(
        made,
        key=lambda g: (
            g.published,
            order.index(g.benchmark) if g.benchmark in order else len(order),
            g.benchmark,
            _descending(g.version),
            -sum(entry.ranked and not entry.partial for entry in g.entries),
            sorted(g.aspects.items()),
        ),
    )


def _descending(version: str) -> tuple[int, ...]:
    return tuple(-int(part) for part in re.findall(r"\d+", version))


def _group(entries: Sequence[Entry]) -> Group:
    first = entries[0]
    row = BENCHMARKS.get(first.benchmark)
    main = list(dict.fromkeys((first.main_metric, *(row.metrics if row else ()))))
    # What has no direction is no merit of a system, and a Wilson interval is the same value again.
    known = {
        metric
        for entry in entries
        for scores in (*entry.scores.values(), *(own for losses in entry.losses.values() for own in losses.values()))
        for metric in scores
        if metric_of(metric).better and not metric.endswith("_wilson")
    }
    metrics = sorted(known, key=lambda name: (main.index(name) if name in main else len(main), name))
    # The version of published numbers names the paper, and so does their source.
    parts = () if first.who == "published" else (first.source, first.source_version)
    source = " ".join(part for part in parts if part)
    return Group(first.benchmark, first.benchmark_version, source, dict(first.aspects), tuple(entries), tuple(metrics))


def place_of(config: str, covered: Coverage) -> Place:
    """Where a config belongs.

    >>> place_of("en_clean", Coverage(1, 1, False, "en", "clean", ("fiqa",)))
    Place(language='en', subset='', condition='clean')
    >>> place_of("fiqa_clean", Coverage(1, 1, False, "en", "clean", ("fiqa",)))
    Place(language='en', subset='fiqa', condition='clean')
    >>> place_of("en_test", Coverage(1, 1, False, "en", "reverb"))
    Place(language='en', subset='', condition='en_test')
    """
    head = config.removesuffix(f"_{covered.condition}")
    if not covered.condition or head == config:
        # Not named by a condition: the config is what there is to choose.
        return Place(covered.language, "", config)
    return Place(covered.language, "" if head == covered.language else head, covered.condition)


def tables(found: Sequence[Group]) -> list[Table]:
    """Every table of the groups, in the order in which the page offers them."""
    made: list[Table] = []
    for number, group in enumerate(found):
        order = {metric: at for at, metric in enumerate(group.metrics)}
        rows: dict[tuple[Place, str], dict[str, Row]] = {}
        for entry in group.entries:
            for place, metric, row in _rows(entry):
                if metric in order:
                    rows.setdefault((place, metric), {}).setdefault(entry.id, row)
        for place, metric in sorted(
            rows, key=lambda key: (key[0].language, key[0].subset, condition_order(key[0].condition), order[key[1]])
        ):
            own = rows[place, metric]
            made.append(Table(number, place, metric, tuple(own[id_] for id_ in sorted(own))))
    return made


def _rows(entry: Entry) -> Iterable[tuple[Place, str, Row]]:
    """The rows of an entry: those of its configs first, then what its configs say of their subsets."""
    configs = [config for config in entry.configs if config in entry.coverage]
    for config in configs:
        place, failed = place_of(config, entry.coverage[config]), entry.failures.get(config, {}).get("failed")
        for metric, score in entry.scores[config].items():
            losses = {
                baseline: by_metric[metric]
                for baseline, by_metric in entry.losses.get(config, {}).items()
                if metric in by_metric
            }
            yield place, metric, Row(entry, config, score, losses, entry.errata.get(f"{config}/{metric}", ""), failed)
        # Papers give some losses without the score.
        known = entry.losses.get(config, {})
        for metric in dict.fromkeys(name for by_metric in known.values() for name in by_metric):
            if metric not in entry.scores[config]:
                losses = {baseline: by_metric[metric] for baseline, by_metric in known.items() if metric in by_metric}
                none = Score(value=None, n=next(iter(losses.values())).absolute.n)
                yield place, metric, Row(entry, config, none, losses, entry.errata.get(f"{config}/{metric}", ""))
    at = {place_of(config, entry.coverage[config]): config for config in configs}
    for config in configs:
        place, counted = place_of(config, entry.coverage[config]), "failed" in entry.failures.get(config, {})
        if place.subset:
            continue
        for subset, scores in entry.by_subset.get(config, {}).items():
            for metric, score in scores.items():
                losses = {}
                for baseline in entry.losses.get(config, {}):
                    other = at.get(Place(place.language, "", baseline))
                    if baseline == place.condition or other is None:
                        continue
                    before = entry.by_subset.get(other, {}).get(subset, {}).get(metric)
                    loss = before and _loss(before, score, metric)
                    if loss:
                        losses[baseline] = loss
                erratum = entry.errata.get(f"{config}/{subset}/{metric}", "")
                yield (
                    Place(place.language, subset, place.condition),
                    metric,
                    Row(
                        entry,
                        config,
                        score,
                        losses,
                        erratum,
                        entry.failed_by_subset.get(config, {}).get(subset, 0) if counted else None,
                    ),
                )


def _loss(before: Score, now: Score, metric: str) -> Loss | None:
    """A subset's loss from its two scores. Results store no interval of it. None where they are over other items."""
    if before.value is None or now.value is None or before.n != now.n or before.bounds or now.bounds:
        return None
    lost = now.value - before.value if lower_is_better(metric) else before.value - now.value
    relative = lost / before.value if before.value else None
    return Loss(absolute=Score(value=lost, n=now.n), relative=Score(value=relative, n=now.n))
