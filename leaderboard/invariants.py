"""What must hold for the numbers of a result of `squtr`, whoever computed them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping

from ..harness.results.old import TEXT_CONDITION, Loss, Result, Score
from .entry import limit_of
from .findings import Findings, close, number
from .rescore import RANKING_METRICS, best_ndcg
from .strict_json import shown

VERSIONS: Mapping[str, frozenset[str]] = {"squtr": frozenset({"1"})}
"""The versions of a benchmark that this store takes. What is not here is another benchmark."""

PUBLISHED_QUERIES: Mapping[str, int] = {
    "fiqa": 648, "hotpotqa": 7405, "nq": 3452, "medicalretrieval": 1000, "duretrieval": 2000, "t2retrieval": 22812,
}  # fmt: skip
"""Queries of the published subsets: 37,317 in all (arXiv 2602.12783)."""
PUBLISHED_LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("fiqa", "hotpotqa", "nq"), "en"),
    **dict.fromkeys(("medicalretrieval", "duretrieval", "t2retrieval"), "zh"),
}

RELEASE = "release"
_LEVEL = r"snr_-?\d{1,3}(?:\.\d{1,3})?"
_CONDITION = re.compile(rf"text|clean|reverb|(?:reverb_)?(?:(?:low|medium|high)_noise|{_LEVEL})", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
_SUBSET = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+){0,3}(?:(?:a|b|rc|\.dev|\.post)\d+)*(?:\+[A-Za-z0-9.]+)?", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TOLERANCE = 1e-9
_RATES = ("wer", "wer_macro", "cer", "cer_macro")
_STRANGE_RATE = 5.0
_GAIN = 0.02
_FASTEST = 100_000.0


def check_result(result: Result, findings: Findings) -> None:
    """Note whatever cannot be, or is hard to believe, in the summary of a run."""
    _check_versions(result, findings)
    _check_data(result, findings)
    _check_scores(result, findings)
    _check_losses(result, findings)
    _check_failures(result, findings)
    _check_timing(result, findings)


def check_version(benchmark: str, version: str, known: Mapping[str, frozenset[str]], findings: Findings) -> None:
    """Note a version of the benchmark that this store does not take."""
    taken = known.get(benchmark, frozenset())
    if version not in taken:
        findings.error(
            "benchmark_version",
            f"{benchmark} {shown(version)} is not taken here, only {', '.join(sorted(taken)) or 'no version'}: its "
            "numbers cannot stand beside the others",
        )


def _check_versions(result: Result, findings: Findings) -> None:
    check_version(result.benchmark, result.benchmark_version, VERSIONS, findings)
    if not _VERSION.fullmatch(result.squtr_version):
        findings.error("squtr_version", f"{shown(result.squtr_version)} is no version")
    if result.origin == "measured" and not _HEX.fullmatch(result.inputs_sha256):
        findings.error("inputs_sha256", f"{shown(result.inputs_sha256)} is no sha256, and a measured result has one")
    if result.origin == "imported":
        findings.warn("origin", "the scores were computed by another tool and cannot be scored again")


def _check_data(result: Result, findings: Findings) -> None:
    data = result.data
    if not _LANGUAGE.fullmatch(data.language):
        findings.error("data.language", f"{shown(data.language)} is no language tag")
    if not _CONDITION.fullmatch(data.condition):
        findings.error("data.condition", f"{shown(data.condition)} is no condition")
    if not data.subsets or len(set(data.subsets)) != len(data.subsets):
        findings.error("data.subsets", "there is no subset, or one is named twice")
    for subset in data.subsets:
        if not _SUBSET.fullmatch(subset):
            findings.error("data.subsets", f"{shown(subset)} is no name of a subset")
    names = [f"{data.language}_{data.condition}", *([f"{data.subsets[0]}_{data.condition}"] if data.subsets else [])]
    if data.config not in names[: 1 if len(data.subsets) != 1 else 2]:
        findings.error("data.config", f"{shown(data.config)} is not the config of these subsets and this condition")
    if data.manifest_sha256 and not _HEX.fullmatch(data.manifest_sha256):
        findings.error("data.manifest_sha256", f"{shown(data.manifest_sha256)} is no sha256")
    _check_coverage(result, findings)


def _check_coverage(result: Result, findings: Findings) -> None:
    data = result.data
    if data.n < 1 or data.n_total < data.n:
        findings.error("data.n", f"{data.n} of {data.n_total} queries is no coverage")
    elif data.partial != (data.n < data.n_total) and result.origin == "measured":
        findings.error(
            "data.partial", f"{data.n} of {data.n_total} queries, and partial is {str(data.partial).lower()}"
        )
    known = [PUBLISHED_QUERIES[subset] for subset in data.subsets if subset in PUBLISHED_QUERIES]
    limit = limit_of(data.recipe)
    if limit:
        findings.warn(
            "data.recipe.limit", f"the data has {limit} queries of each subset, so the result is listed apart"
        )
    elif known and len(known) == len(data.subsets) and data.n_total != sum(known):
        # Other sources may cut the same collections in another way; the release is what was published.
        note = findings.error if data.source == RELEASE else findings.warn
        note("data.n_total", f"{' + '.join(data.subsets)} has {sum(known)} queries, the result says {data.n_total}")
    for subset in data.subsets:
        language = PUBLISHED_LANGUAGES.get(subset)
        if language and language != data.language:
            findings.error("data.language", f"{subset} is in {language}, the result says {shown(data.language)}")


def check_score(where: str, score: Score, findings: Findings, *, least: float, most: float) -> None:
    """Note a value outside its range, an interval that does not hold its value, or a count that cannot be."""
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


def _check_scores(result: Result, findings: Findings) -> None:
    if set(result.by_subset) != set(result.data.subsets):
        findings.error("by_subset", f"it has {shown(sorted(result.by_subset))}, the data {shown(result.data.subsets)}")
    for where, scores in (("scores", result.scores), *((f"by_subset.{s}", own) for s, own in result.by_subset.items())):
        _check_block(where, scores, result, findings)
    for metric in RANKING_METRICS:
        values = [own[metric].value for own in result.by_subset.values() if metric in own]
        whole = result.scores.get(metric)
        known = [value for value in values if value is not None]
        if whole and whole.value is not None and known and not close(whole.value, math.fsum(known) / len(known)):
            findings.error(
                f"scores.{metric}",
                f"{number(whole.value)} is not the mean of the subsets, {number(math.fsum(known) / len(known))}",
            )


def _check_block(where: str, scores: Mapping[str, Score], result: Result, findings: Findings) -> None:
    for name, score in scores.items():
        place = f"{where}.{name}"
        if name in RANKING_METRICS:
            check_score(place, score, findings, least=0.0, most=1.0)
        elif name in _RATES:
            check_score(place, score, findings, least=0.0, most=math.inf)
            if score.value is not None and score.value > _STRANGE_RATE:
                findings.warn(place, f"{number(score.value)} is more than {_STRANGE_RATE:.0f} errors per token")
            if result.data.condition == TEXT_CONDITION or result.system.kind == "end-to-end":
                findings.error(place, "there are no transcripts, so there is no error rate")
        else:
            findings.error(f"{where}", f"{shown(name)} is no metric of this benchmark")
        if score.n > result.data.n:
            findings.error(place, f"n is {score.n}, the result covers {result.data.n} queries")
    for metric in RANKING_METRICS:
        if metric not in scores:
            findings.error(where, f"{metric} is missing")
    _check_together(where, scores, findings)


def _check_together(where: str, scores: Mapping[str, Score], findings: Findings) -> None:
    """What the means of nDCG, MRR and recall allow each other."""
    found = {name: scores[name].value for name in RANKING_METRICS if name in scores}
    values = [value for value in found.values() if value is not None]
    if len(values) < len(RANKING_METRICS):
        return
    ndcg, mrr, recall = values
    if len({score.n for name, score in scores.items() if name in RANKING_METRICS}) > 1:
        findings.error(where, "nDCG, MRR and recall are of different numbers of queries")
    if (ndcg > _TOLERANCE) != (recall > _TOLERANCE) or (mrr > _TOLERANCE) != (recall > _TOLERANCE):
        findings.error(where, f"nDCG {number(ndcg)}, MRR {number(mrr)} and recall {number(recall)} exclude each other")
    # Where something was found among ten documents, MRR is at least 1/10, and recall at most 1.
    if recall > 10 * mrr + _TOLERANCE:
        findings.error(where, f"a recall of {number(recall)} needs an MRR of {number(recall / 10)}, not {number(mrr)}")
    most = mrr_bound(mrr)
    if ndcg > most + 1e-6:
        findings.error(where, f"an MRR of {number(mrr)} allows an nDCG of {number(most)}, not {number(ndcg)}")
    if ndcg > 1 - _TOLERANCE:
        findings.warn(where, "nDCG is 1: every query was answered perfectly")


def mrr_bound(mrr: float) -> float:
    """The highest mean nDCG@10 that a mean MRR@10 allows: the concave hull of (1/rank, `best_ndcg(rank)`) and (0, 0).

    >>> mrr_bound(1.0), mrr_bound(0.0), round(mrr_bound(0.5), 4)
    (1.0, 0.0, 0.8329)
    """
    points = [(0.0, 0.0), *((1 / rank, best_ndcg(rank)) for rank in range(10, 0, -1))]
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append((x, y))
    for (x0, y0), (x1, y1) in itertools.pairwise(hull):
        if x0 <= mrr <= x1:
            return y0 + (y1 - y0) * (mrr - x0) / (x1 - x0)
    return 1.0


def _check_losses(result: Result, findings: Findings) -> None:
    for baseline, by_metric in result.losses.items():
        if baseline not in ("clean", TEXT_CONDITION):
            findings.error("losses", f"{shown(baseline)} is no baseline, only clean and text are")
        for metric, loss in by_metric.items():
            where = f"losses.{shown(baseline)[1:-1]}.{shown(metric)[1:-1]}"
            if metric not in RANKING_METRICS:
                findings.error(where, f"{shown(metric)} is no ranking metric")
                continue
            check_loss(where, loss, result.scores.get(metric), findings, rising=False)
            lost = loss.absolute.value
            if lost is not None and lost < -_GAIN:
                findings.warn(where, f"it is {number(-lost)} better than under {baseline}")


def check_loss(where: str, loss: Loss, score: Score | None, findings: Findings, *, rising: bool) -> None:
    """Note a loss that is not the difference of two scores that can be.

    `score` is that of the condition. `rising`: more is worse, as with error rates.
    """
    most = math.inf if rising else 1.0
    check_score(f"{where}.absolute", loss.absolute, findings, least=-most, most=most)
    check_score(f"{where}.relative", loss.relative, findings, least=-math.inf, most=math.inf if rising else 1.0)
    if loss.absolute.n != loss.relative.n:
        findings.error(where, "the absolute and the relative loss are of different numbers of queries")
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
    for name, count in result.failures.model_dump().items():
        if count < 0 or (name != "unjudged" and count > n) or count > 10 * n:
            findings.error(f"failures.{name}", f"{count} of {n} queries")
    if result.failures.missing == n:
        findings.error("failures.missing", "no query found anything: the run failed")
    if result.failures.undecodable > n / 2:
        findings.warn("failures.undecodable", f"{result.failures.undecodable} of {n} queries could not be decoded")


def _check_timing(result: Result, findings: Findings) -> None:
    timing = result.timing
    for name, value in timing.model_dump(exclude={"latency"}).items():
        if value is not None and (not math.isfinite(value) or value < 0):
            findings.error(f"timing.{name}", f"{number(value)} is negative or not finite")
    if timing.rtfx is not None and timing.rtfx > _FASTEST:
        findings.error("timing.rtfx", f"{number(timing.rtfx)} seconds of sound per second is not to be believed")
    if timing.waiting_share is not None and timing.waiting_share > 1 + _TOLERANCE:
        findings.error("timing.waiting_share", f"{number(timing.waiting_share)} is no share")
    spent = (timing.transcribe_s or 0.0) + (timing.front_end_s or 0.0)
    if timing.rtfx and timing.audio_s and spent and not close(timing.rtfx, timing.audio_s / spent, 1e-6):
        findings.error(
            "timing.rtfx", f"{number(timing.rtfx)} is not {number(timing.audio_s)} s of sound in {number(spent)} s"
        )
    latency = timing.latency
    if latency is not None:
        rising = [latency.p50_s, latency.p90_s, latency.p95_s, latency.p99_s]
        if rising != sorted(rising) or rising[0] < 0 or latency.n < 1:
            findings.error("timing.latency", "the percentiles do not rise")
    if timing.processes < 1:
        findings.error("timing.processes", f"{timing.processes} processes")
