"""What must hold for the numbers of a result, whatever its task and whoever computed them."""

from __future__ import annotations

import math
import re

from ..errors import UnknownNameError
from ..harness.benchmarks import BENCHMARKS
from ..harness.metrics.registry import METRICS_VERSION, Metric, parse_metric
from ..harness.results.envelope import Loss, Result, Score
from ..harness.tasks.verification import load_verifier
from .entry import limit_of
from .findings import Findings, between, close, number
from .published import PUBLISHED_SUBSETS
from .strict_json import shown

_CONDITION = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9.-]+)*", re.ASCII)
_CONFIG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
_SUBSET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+){0,3}(?:(?:a|b|rc|\.dev|\.post)\d+)*(?:\+[A-Za-z0-9.]+)?", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TOLERANCE = 1e-9
_GAIN = 0.02
_FASTEST = 100_000.0
_FEW = 0.05
"""Up to this share of failed items an evaluation is taken for good."""


def check_result(result: Result, findings: Findings) -> None:
    """Note whatever cannot be, or is hard to believe, in the summary of a run."""
    _check_versions(result, findings)
    _check_self_check(result, findings)
    _check_data(result, findings)
    _check_scores(result, findings)
    _check_losses(result, findings)
    _check_failures(result, findings)
    _check_timing(result, findings)
    for where, message in load_verifier(result.task).summary_problems(result):
        findings.error(where, message)


def _check_versions(result: Result, findings: Findings) -> None:
    row = BENCHMARKS.get(result.benchmark)
    if row is None or row.task != result.task:
        known = ", ".join(name for name, other in BENCHMARKS.items() if other.task == result.task)
        findings.error(
            "benchmark",
            f"{shown(result.benchmark)} is no benchmark of the task {shown(result.task)}, whose benchmarks are {known}",
        )
    elif row.version != result.benchmark_version:
        findings.error(
            "benchmark_version",
            f"{result.benchmark} {shown(result.benchmark_version)} is not taken here, only {row.version}: its numbers "
            "cannot stand beside the others",
        )
    if result.metrics_version != METRICS_VERSION:
        findings.error("metrics_version", f"{shown(result.metrics_version)} is not {METRICS_VERSION}")
    if not _VERSION.fullmatch(result.squtr_version):
        findings.error("squtr_version", f"{shown(result.squtr_version)} is no version")
    if result.origin == "measured" and not _HEX.fullmatch(result.inputs_sha256):
        findings.error("inputs_sha256", f"{shown(result.inputs_sha256)} is no sha256, and a measured result has one")
    if result.origin == "imported":
        findings.warn("origin", "the scores were computed by another tool and cannot be scored again")


def _check_self_check(result: Result, findings: Findings) -> None:
    """What failed is never scored. What nobody checked is taken, and the page says so."""
    check = result.system.self_check
    if check.verdict == "failed":
        broken = next(one for one in check.components if one.verdict == "failed")
        findings.error("system.self_check", f"{shown(broken.name)} failed its self-check, and what fails is not scored")
    for one in check.components:
        if one.fingerprint and one.role not in result.system.components:
            findings.error("system.self_check", f"{shown(one.role)} was checked, but the system has none")


def _check_data(result: Result, findings: Findings) -> None:
    data = result.data
    if not _LANGUAGE.fullmatch(data.language):
        findings.error("data.language", f"{shown(data.language)} is no language tag")
    if not _CONDITION.fullmatch(data.condition):
        findings.error("data.condition", f"{shown(data.condition)} is no condition")
    if not _CONFIG.fullmatch(data.config):
        findings.error("data.config", f"{shown(data.config)} is no config")
    elif problem := load_verifier(result.task).config_problem(data):
        findings.error("data.config", f"{shown(data.config)} is not its config: {shown(problem, 300)[1:-1]}")
    if not data.subsets or len(set(data.subsets)) != len(data.subsets):
        findings.error("data.subsets", "there is no subset, or one is named twice")
    for subset in data.subsets:
        if not _SUBSET.fullmatch(subset):
            findings.error("data.subsets", f"{shown(subset)} is no name of a subset")
    if data.manifest_sha256 and not _HEX.fullmatch(data.manifest_sha256):
        findings.error("data.manifest_sha256", f"{shown(data.manifest_sha256)} is no sha256")
    if not 1 <= data.clusters <= max(1, data.n):
        findings.error("data.clusters", f"{data.clusters} clusters of {data.n} items")
    _check_coverage(result, findings)


def _check_coverage(result: Result, findings: Findings) -> None:
    data = result.data
    if data.n < 1 or data.n_total < data.n:
        findings.error("data.n", f"{data.n} of {data.n_total} items is no coverage")
    elif data.partial != (data.n < data.n_total) and result.origin == "measured":
        findings.error("data.partial", f"{data.n} of {data.n_total} items, and partial is {str(data.partial).lower()}")
    published = PUBLISHED_SUBSETS.get(result.benchmark, {})
    known = [published[subset].queries for subset in data.subsets if subset in published]
    limit = limit_of(data.recipe)
    if limit:
        findings.warn(
            "data.recipe.limit", f"the data has {limit} queries of each subset, so the result is listed separately"
        )
    elif known and len(known) == len(data.subsets) and data.n_total != sum(known):
        # Other sources may cut the same collections in another way; the benchmark's own is what was published.
        note = findings.error if data.source == BENCHMARKS[result.benchmark].source else findings.warn
        note("data.n_total", f"{' + '.join(data.subsets)} has {sum(known)} queries, the result says {data.n_total}")
    for subset in data.subsets:
        if subset in published and published[subset].language != data.language:
            language = published[subset].language
            findings.error("data.language", f"{subset} is in {language}, the result says {shown(data.language)}")


def check_score(where: str, score: Score, findings: Findings, *, least: float, most: float) -> None:
    """Note a value or bounds out of range, an interval that does not hold its value, or a count that cannot be."""
    if score.bounds is not None and not least - _TOLERANCE <= score.bounds[0] <= score.bounds[1] <= most + _TOLERANCE:
        findings.error(f"{where}.bounds", f"{between(score.bounds)} is outside [{number(least)}, {number(most)}]")
    if score.n < 0:
        findings.error(where, f"n is {score.n}")
    if score.value is None:
        if score.low is not None or score.high is not None:
            findings.error(where, "an undefined value has an interval")
        return
    if not least - _TOLERANCE <= score.value <= most + _TOLERANCE:
        findings.error(where, f"{number(score.value)} is outside [{number(least)}, {number(most)}]")
    if (score.low is None) != (score.high is None):
        findings.error(where, "the interval has one end only")
    if score.low is None or score.high is None:
        return
    room = _TOLERANCE * max(1.0, abs(score.value))
    if not score.low - room <= score.value <= score.high + room:
        ends = f"from {number(score.low)} to {number(score.high)}"
        findings.error(where, f"the interval {ends} does not hold the value {number(score.value)}")
    for end in (score.low, score.high):
        if not least - _TOLERANCE <= end <= most + _TOLERANCE:
            findings.error(where, f"the interval reaches {number(end)}, outside [{number(least)}, {number(most)}]")


def _known_metric(name: str) -> Metric | None:
    try:
        return parse_metric(name) if ":" not in name else None
    except UnknownNameError:
        return None


def _range(metric: Metric) -> tuple[float, float]:
    """The least and the largest value of a metric."""
    if metric.scale == "signed":
        return -math.inf, 1.0
    return 0.0, math.inf if metric.better == "lower" and metric.family.macro else 1.0


def _check_scores(result: Result, findings: Findings) -> None:
    if result.main_metric not in result.scores:
        findings.error("main_metric", f"{shown(result.main_metric)} is not among the scores")
    blocks = [("scores", result.scores, result.data.n)]
    for breakdown, groups in result.by_group.items():
        for group in groups:
            if not 0 <= group.n <= result.data.n:
                findings.error(f"by_group.{shown(breakdown)[1:-1]}", f"a group has {group.n} of {result.data.n} items")
            blocks.append((f"by_group.{shown(breakdown)[1:-1]}.{shown(group.label)[1:-1]}", group.scores, group.n))
    subsets = [group.label for group in result.by_group.get("subset", [])]
    if subsets and set(subsets) != set(result.data.subsets):
        findings.error("by_group.subset", f"it has {shown(sorted(subsets))}, the data {shown(result.data.subsets)}")
    for where, scores, n in blocks:
        for name, score in scores.items():
            metric = _known_metric(name)
            if metric is None:
                findings.error(where, f"{shown(name)} is no metric that is known here")
                continue
            least, most = _range(metric)
            check_score(f"{where}.{name}", score, findings, least=least, most=most)
            if score.n > n:
                findings.error(f"{where}.{name}", f"n is {score.n}, there are {n} items")
            if result.origin == "measured":
                _check_bounds(f"{where}.{name}", metric, score, n, findings)


def _check_bounds(where: str, metric: Metric, score: Score, n: int, findings: Findings) -> None:
    """Note an error rate that leaves items out without saying what they could make of it, or bounds that cannot be."""
    is_rate, left_out = metric.better == "lower" and metric.family.macro, n - score.n
    if score.bounds is None:
        # A mean of the items' own rates leaves those without a reference out, too.
        if is_rate and not metric.macro and left_out > 0 and score.value is not None:
            findings.error(f"{where}.bounds", f"{left_out} of {n} items are not in the rate, and there are no bounds")
        return
    if not is_rate or left_out < 1:
        findings.error(f"{where}.bounds", "only error rates that leave failed items out have bounds")
    if score.value is None:
        return
    low, high = score.bounds
    # All words deleted is a rate of 1: a rate below comes up towards it, one above comes down.
    if low > score.value + _TOLERANCE or not (
        min(score.value, 1.0) - _TOLERANCE <= high <= max(score.value, 1.0) + _TOLERANCE
    ):
        findings.error(f"{where}.bounds", f"{between(score.bounds)} does not hold the value {number(score.value)}")


def _check_losses(result: Result, findings: Findings) -> None:
    # With several orders of the options, an item's score is a mean, and a baseline may be the reply in its own order.
    exact = result.details.get("option_orders", 1) == 1
    for baseline, by_metric in result.losses.items():
        for name, loss in by_metric.items():
            where = f"losses.{shown(baseline)[1:-1]}.{shown(name)[1:-1]}"
            metric = _known_metric(name)
            if metric is None or not metric.better:
                findings.error(where, f"{shown(name)} has no direction, so there is no loss of it")
                continue
            score = result.scores.get(name)
            same = exact and score is not None and score.n == loss.absolute.n
            check_loss(where, loss, score if same else None, findings, metric=metric)
            lost = loss.absolute.value
            if lost is not None and lost < -_GAIN and baseline in {"clean", "text"}:
                findings.warn(where, f"it is {number(-lost)} better than under {baseline}")


def check_loss(where: str, loss: Loss, score: Score | None, findings: Findings, *, metric: Metric) -> None:
    """Note a loss that is not the difference of two scores that can be; `score` is that of the result, where known."""
    _, most = _range(metric)
    rising = metric.better == "lower"
    check_score(f"{where}.absolute", loss.absolute, findings, least=-most, most=most)
    check_score(f"{where}.relative", loss.relative, findings, least=-math.inf, most=math.inf if rising else 1.0)
    for name, p_value in (("p_value", loss.p_value), ("p_holm", loss.p_holm)):
        if p_value is not None and not 0 <= p_value <= 1:
            findings.error(f"{where}.{name}", f"{number(p_value)} is no probability")
    if loss.absolute.n != loss.relative.n:
        findings.error(where, "the absolute and the relative loss are of different numbers of items")
    if score is None or score.value is None or loss.absolute.value is None:
        return
    lost = loss.absolute.value
    baseline = score.value - lost if rising else score.value + lost
    if not -_TOLERANCE <= baseline <= most + _TOLERANCE:
        findings.error(
            where, f"a loss of {number(lost)} at {number(score.value)} means a baseline of {number(baseline)}"
        )
    relative = loss.relative.value
    if relative is None:
        if baseline > 1e-6:
            findings.error(f"{where}.relative", f"it is null, and the baseline is {number(baseline)}")
    elif not close(relative * baseline, lost, 1e-7):
        findings.error(
            f"{where}.relative", f"{number(relative)} of the baseline {number(baseline)} is not {number(lost)}"
        )


def _check_failures(result: Result, findings: Findings) -> None:
    n = result.data.n
    for name, count in result.failures.items():
        # One item may be prompted several times, and one query has many documents without judgment.
        if count < 0 or count > 100 * n:
            findings.error(f"failures.{shown(name)[1:-1]}", f"{count} of {n} items")
    failed = result.failures.get("failed", 0)
    for name, groups in result.by_group.items():
        counted = sum(group.counts.get("failed", 0) for group in groups)
        # Groups of other breakdowns may leave items out, or hold one twice.
        if name == "subset" and counted != failed and result.origin == "measured":
            findings.error("by_group.subset", f"the groups count {counted} failed items, the result {failed}")
    if failed > _FEW * n:
        findings.warn("failures.failed", f"{failed} of {n} items failed")


def _check_timing(result: Result, findings: Findings) -> None:
    timing = result.timing
    plain = timing.model_dump(exclude={"latency", "isolated", "stages"}) | dict(timing.stages)
    for name, value in plain.items():
        if value is not None and (not math.isfinite(value) or value < 0):
            findings.error(f"timing.{shown(name)[1:-1]}", f"{number(value)} is negative or not finite")
    if timing.rtfx is not None and timing.rtfx > _FASTEST:
        findings.error("timing.rtfx", f"{number(timing.rtfx)} seconds of audio per second is not to be believed")
    if timing.waiting_share is not None and timing.waiting_share > 1 + _TOLERANCE:
        findings.error("timing.waiting_share", f"{number(timing.waiting_share)} is no share")
    latency = timing.latency
    if latency is not None:
        rising = [latency.p50_s, latency.p90_s, latency.p95_s, latency.p99_s]
        if rising != sorted(rising) or rising[0] < 0 or latency.n < 1:
            findings.error("timing.latency", "the percentiles do not rise")
    if timing.processes < 1:
        findings.error("timing.processes", f"{timing.processes} processes")
