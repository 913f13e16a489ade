"""Comparing a result with what follows from its records (see `harness.tasks.verification`)."""

from __future__ import annotations

from collections.abc import Mapping

from ..harness.results.envelope import Result, Score
from ..harness.tasks.verification import Recomputed
from .findings import Findings, between, close, number

_SURE = 100
"""From how many items on the width of an interval is compared with the spread of the records."""


def compare_with_records(result: Result, found: Recomputed, findings: Findings) -> None:
    """Note every score and count that does not follow from the records, and every interval of an unlikely width."""
    for where, message in found.problems:
        findings.error(where, message)
    _compare("scores", result.scores, found.scores, findings)
    for breakdown, groups in found.by_group.items():
        ours = {group.label: group.scores for group in result.by_group.get(breakdown, [])}
        for label in dict.fromkeys((*ours, *groups)):
            _compare(f"by_group.{breakdown}.{label}", ours.get(label, {}), groups.get(label, {}), findings)
    for name, count in found.failures.items():
        if result.failures.get(name, 0) != count:
            given = result.failures.get(name, 0)
            findings.error(f"failures.{name}", f"the result says {given}, its records give {count}")
    for metric, error in found.errors.items():
        score = result.scores.get(metric)
        if score is None or score.n < _SURE or score.low is None or score.high is None or error is None or error < 1e-6:
            continue
        ratio = (score.high - score.low) / (2 * 1.96 * error)
        if not 0.5 <= ratio <= 2:
            findings.error(
                f"scores.{metric}",
                f"the interval from {number(score.low)} to {number(score.high)} is {ratio:.2g} times as wide as the "
                "records say",
            )


def _compare(where: str, given: Mapping[str, Score], found: Mapping[str, Score], findings: Findings) -> None:
    for name, b in found.items():
        a = given.get(name)
        if a is None:
            findings.error(f"{where}.{name}", "this score is not in the result, but follows from the records")
            continue
        same = a.value is b.value is None or (a.value is not None and b.value is not None and close(a.value, b.value))
        if not same:
            findings.error(f"{where}.{name}", f"the result says {number(a.value)}, its records give {number(b.value)}")
        if (a.bounds is None) != (b.bounds is None) or not all(
            close(x, y) for x, y in zip(a.bounds or (), b.bounds or (), strict=True)
        ):
            findings.error(
                f"{where}.{name}.bounds",
                f"the result says {between(a.bounds)} with the failed items, its records give {between(b.bounds)}",
            )
        if a.n != b.n:
            findings.error(f"{where}.{name}", f"the result says n = {a.n}, its records give {b.n}")
