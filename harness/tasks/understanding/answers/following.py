"""Scores of replies to instructions that programs can check, strict and loose, as IFEval defines them.

Zhou et al., Instruction-Following Evaluation for Large Language Models, arXiv 2311.07911, section 3:

- prompt level: the share of items all of whose instructions are followed; instruction level: the share of instructions
  that are followed;
- strict: the reply as it is; loose: an instruction is followed if one of eight forms of the reply follows it, without
  its first line, its last, both, and each of these without asterisks.

Reasoning blocks are no part of a reply. A reply that is missing follows nothing; an item whose audio is missing is not
scored and lowers `coverage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .....errors import DataError
from ....metrics.statistics import Floats, Method, Statistic, bootstrap_interval
from ....metrics.summaries import Summary, plain, plain_interval
from .accuracy import check_edges, wilson_interval
from .items import Reply, cluster_labels, join_replies
from .labels import DURATION_EDGES_S, ItemLabels, breakdowns_of
from .reply_text import strip_reasoning
from .verifiers.registry import VERIFIERS, VERIFIERS_VERSION, Verifier


@dataclass(frozen=True, slots=True)
class AifItem:
    """A question whose reply must follow `verifiers` (at least one)."""

    id: str
    verifiers: tuple[Verifier, ...]
    labels: ItemLabels = field(default_factory=ItemLabels)
    missing_audio: bool = False


def loose_forms(reply: str) -> list[str]:
    """The eight forms of a reply that loose scoring tries, the reply itself first; those that are blank are left out.

    >>> loose_forms("Claro:\\n**uno**")
    ['Claro:\\n**uno**', 'Claro:\\nuno', '**uno**', 'uno', 'Claro:']
    """
    lines = reply.split("\n")
    cut = [reply, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    forms = [form for each in cut for form in (each, each.replace("*", ""))]
    return list(dict.fromkeys(form for form in forms if form.strip()))


def follow(verifiers: Sequence[Verifier], reply: str | None) -> tuple[list[bool], list[bool]]:
    """For each instruction whether `reply` follows it, strictly and loosely.

    >>> from .verifiers.registry import load_verifier
    >>> follow([load_verifier("uppercase"), load_verifier("title")], "Aquí va:\\nHOLA")
    ([False, False], [True, False])
    """
    replied = strip_reasoning(reply) if reply is not None else ""
    strict = [verifier.follows(replied) for verifier in verifiers]
    forms = loose_forms(replied)[1:]
    loose = [
        ok or any(verifier.follows(form) for form in forms) for ok, verifier in zip(strict, verifiers, strict=True)
    ]
    return strict, loose


# Columns of an item: all followed strictly, loosely, 1; instructions followed strictly, loosely, and how many.
_LEVELS = {"prompt_strict": (0, 2), "prompt_loose": (1, 2), "instruction_strict": (3, 5), "instruction_loose": (4, 5)}


def _share(part: int, whole: int) -> Statistic:
    return lambda sums: np.asarray(sums[..., part] / sums[..., whole])


def _scores(table: Floats, clusters: Sequence[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    sums = table.sum(axis=0)
    values: dict[str, Any] = {}
    intervals: dict[str, Any] = {}
    for name, (part, whole) in _LEVELS.items():
        values[name] = plain(float(sums[part] / sums[whole])) if sums[whole] else None
        intervals[name] = plain_interval(bootstrap_interval(table, _share(part, whole), clusters, **options))
    intervals["prompt_strict_wilson"] = plain_interval(wilson_interval(float(sums[0]), len(table)))
    return {**values, "n": len(table), "n_instructions": int(sums[5]), "intervals": intervals}


def summarize_aif(
    items: Sequence[AifItem],
    replies: Sequence[Reply],
    *,
    duration_edges_s: Sequence[float] = DURATION_EDGES_S,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> Summary:
    """All scores of `replies` to `items`, joined by id, as one JSON object, and a row per item.

    `accuracy` is `prompt_strict` under the name that multiple choice has too; `verifiers` has the instruction-level
    scores of each kind. Raises `DataError` as `join_replies` does, for an item without verifiers, and without items.

    >>> from .verifiers.registry import load_verifier
    >>> item = AifItem("a", (load_verifier("uppercase"), load_verifier("no_commas")))
    >>> found = summarize_aif([item], [Reply("a", "Hola")]).scores
    >>> found["prompt_strict"], found["instruction_strict"], found["n"], found["n_instructions"]
    (0.0, 0.5, 1, 2)
    """
    if not items:
        raise DataError("there are no items.", hint="Give at least one.")
    check_edges(duration_edges_s)
    empty = next((item.id for item in items if not item.verifiers), None)
    if empty is not None:
        raise DataError(f"item {empty!r} has no verifiers.", hint="Give at least one.")
    joined, missing = join_replies(items, replies)
    ordered = next((reply for reply in replies if reply.order is not None), None)
    if ordered is not None:
        raise DataError(f"the reply to {ordered.id!r} has an `order`.", hint="Instructions have no options to order.")
    replied = {item.id: joined[item.id][0].text if joined[item.id] else None for item in items}
    followed = {item.id: follow(item.verifiers, replied[item.id]) for item in items}
    covered = [item for item in items if item.id not in missing]
    rows = {id_: _row(strict, loose) for id_, (strict, loose) in followed.items()}
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "method": method}

    def scores_of(own: Sequence[AifItem]) -> dict[str, Any]:
        ids = [item.id for item in own if item.id not in missing]
        table = np.array([rows[id_] for id_ in ids]).reshape(-1, 6)
        return {**_scores(table, cluster_labels(clusters, ids), options), "missing_audio": len(own) - len(ids)}

    scores = scores_of(items)
    breakdowns = breakdowns_of([item.labels for item in items], duration_edges_s=duration_edges_s)
    return Summary(
        {
            "accuracy": scores["prompt_strict"],
            **scores,
            "missing_replies": sum(replied[item.id] is None for item in covered),
            "coverage": len(covered) / len(items),
            "verifiers": _by_verifier(covered, followed),
            "breakdowns": {
                breakdown: {name: scores_of([items[place] for place in places]) for name, places in slices.items()}
                for breakdown, slices in breakdowns.items()
            },
            "verifiers_version": VERIFIERS_VERSION,
            "seed": seed,
            "resamples": resamples,
        },
        _columns(items, replied, followed, missing),
    )


def _row(strict: Sequence[bool], loose: Sequence[bool]) -> list[float]:
    return [float(all(strict)), float(all(loose)), 1.0, float(sum(strict)), float(sum(loose)), float(len(strict))]


def _by_verifier(
    items: Sequence[AifItem], followed: Mapping[str, tuple[list[bool], list[bool]]]
) -> dict[str, dict[str, Any]]:
    """By kind of instruction, in the order of the table: how often it was followed, and how often it was asked for."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    for item in items:
        for verifier, *both in zip(item.verifiers, *followed[item.id], strict=True):
            found.setdefault(verifier.id, []).append((both[0], both[1]))
    return {
        id_: {
            "strict": sum(strict for strict, _ in found[id_]) / len(found[id_]),
            "loose": sum(loose for _, loose in found[id_]) / len(found[id_]),
            "n": len(found[id_]),
            "strict_wilson": plain_interval(wilson_interval(sum(s for s, _ in found[id_]), len(found[id_]))),
        }
        for id_ in VERIFIERS
        if id_ in found
    }


def _columns(
    items: Sequence[AifItem],
    replied: Mapping[str, str | None],
    followed: Mapping[str, tuple[list[bool], list[bool]]],
    missing: set[str],
) -> dict[str, Sequence[Any]]:
    """`correct` (0 or 1): all instructions are followed strictly; `failed` has the ids of the others."""
    names = ("id", "correct", "correct_loose", "instructions", "instructions_strict", "instructions_loose")
    columns: dict[str, list[Any]] = {name: [] for name in (*names, "failed", "failed_loose", "status")}
    for item in items:
        strict, loose = followed[item.id]
        gone = item.id in missing
        ids = [verifier.id for verifier in item.verifiers]
        columns["id"].append(item.id)
        columns["correct"].append(None if gone else int(all(strict)))
        columns["correct_loose"].append(None if gone else int(all(loose)))
        columns["instructions"].append(len(ids))
        columns["instructions_strict"].append(None if gone else sum(strict))
        columns["instructions_loose"].append(None if gone else sum(loose))
        for name, oks in (("failed", strict), ("failed_loose", loose)):
            wrong = [id_ for id_, ok in zip(ids, oks, strict=True) if not ok]
            columns[name].append("" if gone else " ".join(wrong))
        status = "missing_audio" if gone else "missing_reply" if replied[item.id] is None else "scored"
        columns["status"].append(status)
    return dict(columns)
