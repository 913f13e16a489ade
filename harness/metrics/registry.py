"""Metrics as objects, by mteb's names (`ndcg_at_10`; `nDCG@10` parses too) or `module:ATTRIBUTE`.

`METRICS_VERSION` stands in every result: it is raised when the same input would give another value of any metric here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Literal

from ...errors import UsageError, unknown_name

METRICS_VERSION: Final = "1"

Better = Literal["higher", "lower", ""]
Scale = Literal["share", "unit", "signed"]
"""`share`: shown in percent; `unit`: in [0, 1], shown as it is; `signed`: a share that may be below 0."""

Found = Sequence[tuple[int, int]]
"""The relevant hits of one query as (rank from 1, grade), ranks ascending."""
RankingScore = Callable[[int, Found, Sequence[int]], float]
"""(cut-off, relevant hits up to it, all positive grades descending) to the value of one query."""


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics that differ in their parameter only; `score` is a ranking metric's for one query and cut-off."""

    name: str
    label: str
    better: Better
    scale: Scale = "unit"
    score: RankingScore | None = None
    macro: bool = False
    """Whether there is a variant `_macro`: the mean of the items' own rates."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: a family, its cut-off (ranking metrics), whether it is the macro variant, the kind of item.

    >>> metric = parse_metric("ndcg_at_10")
    >>> metric.name, metric.label, metric.better, metric.depth
    ('ndcg_at_10', 'nDCG@10', 'higher', 10)
    >>> parse_metric("mcqa_accuracy").label, parse_metric("wer_macro").label
    ('MCQA accuracy', 'WER (macro)')
    """

    family: Family
    cut_off: int | None = None
    macro: bool = False
    kind: str = ""

    @property
    def name(self) -> str:
        """As it stands in results and on the command line."""
        prefix = f"{self.kind}_" if self.kind else ""
        cut_off = "" if self.cut_off is None else f"_at_{self.cut_off}"
        return f"{prefix}{self.family.name}{cut_off}{'_macro' if self.macro else ''}"

    @property
    def label(self) -> str:
        """As tables show it."""
        cut_off = "" if self.cut_off is None else f"@{self.cut_off}"
        prefix = f"{KINDS[self.kind]} " if self.kind else ""
        return f"{prefix}{self.family.label}{cut_off}{' (macro)' if self.macro else ''}"

    @property
    def better(self) -> Better:
        """The direction, "" where neither is better."""
        return self.family.better

    @property
    def scale(self) -> Scale:
        return self.family.scale

    @property
    def depth(self) -> int:
        """How many documents of a ranking it looks at, 0 for other metrics."""
        return self.cut_off or 0

    @property
    def is_ranking(self) -> bool:
        return self.family.score is not None

    def loss(self, value: float, baseline: float) -> float:
        """What `value` loses against `baseline`: positive is worse.

        >>> parse_metric("wer").loss(0.3, 0.1), parse_metric("mrr_at_10").loss(0.25, 0.5)
        (0.19999999999999998, 0.25)
        """
        return value - baseline if self.better == "lower" else baseline - value


KINDS: Mapping[str, str] = {"mcqa": "MCQA", "aif": "Instruction"}
"""Kinds of item that have scores of their own, as a prefix of a metric's name: multiple choice, instructions."""


def _dcg(gains: Iterable[tuple[int, float]]) -> float:
    """Of (rank, gain)."""
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in gains)


def _ndcg(k: int, found: Found, judged: Sequence[int]) -> float:
    return _dcg(found) / _dcg(enumerate(judged[:k], start=1))


def _ndcg_exp(k: int, found: Found, judged: Sequence[int]) -> float:
    ideal = _dcg((rank, 2.0**grade - 1) for rank, grade in enumerate(judged[:k], start=1))
    return _dcg((rank, 2.0**grade - 1) for rank, grade in found) / ideal


def _average_precision(_: int, found: Found, judged: Sequence[int]) -> float:
    return math.fsum(nth / rank for nth, (rank, _) in enumerate(found, start=1)) / len(judged)


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        # Ranking metrics of one query, where something relevant was found up to the cut-off; else they are 0.
        Family("ndcg", "nDCG", "higher", score=_ndcg),
        Family("ndcg_exp", "nDCG (exp. gain)", "higher", score=_ndcg_exp),
        Family("mrr", "MRR", "higher", score=lambda k, found, judged: 1 / found[0][0]),
        Family("map", "MAP", "higher", score=_average_precision),
        Family("recall", "Recall", "higher", score=lambda k, found, judged: len(found) / len(judged)),
        Family("precision", "Precision", "higher", score=lambda k, found, judged: len(found) / k),
        Family("hit_rate", "Hit rate", "higher", score=lambda k, found, judged: 1.0),
        Family("wer", "WER", "lower", "share", macro=True),
        Family("cer", "CER", "lower", "share", macro=True),
        Family("wer_rewritten", "WER, rewritten", "lower", "share", macro=True),
        Family("cer_rewritten", "CER, rewritten", "lower", "share", macro=True),
        Family("mer", "MER", "lower", "share"),
        Family("accuracy", "accuracy", "higher", "share"),
        Family("accuracy_wilson", "accuracy (Wilson)", "higher", "share"),
        Family("accuracy_parsed", "accuracy of parsed replies", "higher", "share"),
        Family("accuracy_corrected", "accuracy corrected for chance", "higher", "signed"),
        Family("accuracy_all_orders", "accuracy in all orders", "higher", "share"),
        Family("chance", "chance", "", "share"),
        Family("unparsed", "unparsed", "lower", "share"),
        Family("consistency", "consistency", "higher", "share"),
        Family("consistent", "consistent items", "higher", "share"),
        Family("prompt_strict", "prompt level, strict", "higher", "share"),
        Family("prompt_strict_wilson", "prompt level, strict (Wilson)", "higher", "share"),
        Family("prompt_loose", "prompt level, loose", "higher", "share"),
        Family("instruction_strict", "instruction level, strict", "higher", "share"),
        Family("instruction_loose", "instruction level, loose", "higher", "share"),
    )
}

_CUT_OFF = re.compile(r"([a-z_]+)_at_([1-9]\d*)")
_SPOKEN = re.compile(r"([A-Za-z ]+)@([1-9]\d*)")
_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def parse_metric(name: str | Metric) -> Metric:
    """The metric of that name: mteb's (`ndcg_at_10`), as papers write it (`nDCG@10`), or `module:ATTRIBUTE`.

    Raises `UnknownNameError` that suggests the nearest, `UsageError` for an attribute that is no `Metric`.

    >>> parse_metric("nDCG@10").name, parse_metric("Recall@100").name, parse_metric("WER").name
    ('ndcg_at_10', 'recall_at_100', 'wer')
    """
    if isinstance(name, Metric):
        return name
    if _OWN.fullmatch(name):
        return _own_metric(name)
    metric = _known(name)
    if metric is None:
        metric = _known(name.lower())
    written = _SPOKEN.fullmatch(name)
    if metric is None and written:
        metric = _known(f"{written[1].strip().lower().replace(' ', '_')}_at_{written[2]}")
    if metric is None:
        choices = [f"{family.name}_at_10" if family.score else family.name for family in FAMILIES.values()]
        raise unknown_name("metric", name, choices)
    return metric


def metric_of(name: str) -> Metric:
    """As `parse_metric`; a name that is not known here is a metric of someone's own, without direction."""
    return _known(name) or Metric(Family(name, name, ""))


def _known(name: str) -> Metric | None:
    for kind in ("", *KINDS):
        prefix = f"{kind}_" if kind else ""
        if not name.startswith(prefix):
            continue
        rest = name.removeprefix(prefix)
        match = _CUT_OFF.fullmatch(rest)
        if match and match[1] in FAMILIES and FAMILIES[match[1]].score is not None:
            return Metric(FAMILIES[match[1]], int(match[2]), kind=kind)
        if rest in FAMILIES and FAMILIES[rest].score is None:
            return Metric(FAMILIES[rest], kind=kind)
        base = rest.removesuffix("_macro")
        if base != rest and base in FAMILIES and FAMILIES[base].macro:
            return Metric(FAMILIES[base], macro=True, kind=kind)
    return None


def _own_metric(name: str) -> Metric:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the metric {name} cannot be imported: {error}.", hint="Write module:ATTRIBUTE.") from error
    if not isinstance(found, Metric):
        raise UsageError(f"{name} is {type(found).__name__}, not a Metric.", hint="See harness/metrics/registry.py.")
    return found


def depth_of(metrics: Iterable[Metric]) -> int:
    """How many documents these metrics need, 0 if none of them is about rankings."""
    return max((metric.depth for metric in metrics), default=0)
