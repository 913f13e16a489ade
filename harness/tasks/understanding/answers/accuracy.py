"""Scores of multiple-choice replies: accuracy, corrected for chance, with intervals, over all items and in slices.

With n scored items, k_i options in item i, and an item's score in [0, 1] (the mean over the orders that it was asked
in, mostly one):

- `accuracy`: the mean score; a reply that was not parsed and one that is missing score 0;
- `unparsed`: the share of replies that chose nothing, missing ones among them, so that
  accuracy = accuracy_parsed · (1 − unparsed);
- `accuracy_parsed`: right choices / choices;
- `chance`: mean(1 / k_i), what a system that draws an option gets; it is that of the slice's own items;
- `accuracy_corrected`: (accuracy − chance) / (1 − chance), 0 for drawing, 1 for all right.

An item whose audio is missing is not scored: it lowers `coverage`, never the accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from .....errors import DataError, UsageError
from ....metrics.comparison import compare
from ....metrics.statistics import Floats, Interval, Method, bootstrap_interval, mean_interval
from ....metrics.summaries import Summary, plain, plain_interval
from .items import Reply, cluster_labels, join_replies
from .labels import DURATION_EDGES_S, ItemLabels, breakdowns_of
from .option_text import LETTERS, Options
from .parsing import PARSER_VERSION, Parsed, parse_reply
from .position import PositionBias, Shown, position_bias


@dataclass(frozen=True, slots=True)
class McqaItem:
    """A question with `options`; `answer` is the place of the right one, `spoken_of` the written question's id."""

    id: str
    options: tuple[str, ...]
    answer: int
    labels: ItemLabels = field(default_factory=ItemLabels)
    missing_audio: bool = False
    spoken_of: str = ""


def answer_index(answer: str, options: Sequence[str]) -> int:
    """The place of an answer that is written as an option's text, or as its letter. Raises `DataError`.

    >>> answer_index("Sevilla", ["Madrid", "Sevilla"]), answer_index("b", ["Madrid", "Sevilla"])
    (1, 1)
    >>> answer_index("A", ["B", "A"])
    Traceback (most recent call last):
    ...
    squtr.errors.DataError: the answer 'A' is the text of option B and the letter of option A. Give the other form.
    """
    known = Options(options)
    by_text = known.index(answer)
    letter = answer.strip().upper()
    by_letter = LETTERS.index(letter) if len(letter) == 1 and letter in LETTERS[: len(options)] else None
    if by_text is not None and by_letter not in (None, by_text):
        raise DataError(
            f"the answer {answer!r} is the text of option {LETTERS[by_text]} and the letter of option {letter}.",
            hint="Give the other form.",
        )
    index = by_text if by_text is not None else by_letter
    if index is None:
        raise DataError(
            f"the answer {answer!r} is none of the {len(options)} options.",
            hint=f"Give an option's text, or its letter (A to {LETTERS[len(options) - 1]}).",
        )
    return index


@dataclass(frozen=True, slots=True)
class Mark:
    """One reply, read: `parsed` None if there is none; `chosen` is the item's own option, `shown` where it stood."""

    order: tuple[int, ...] | None
    parsed: Parsed | None
    chosen: int | None
    shown: Shown
    right: bool


def mark(item: McqaItem, reply: Reply | None) -> Mark:
    """Read one reply (None: there is none). Raises `DataError` for an order that is not one of the item's options.

    >>> marked = mark(McqaItem("q", ("Madrid", "Sevilla"), 0), Reply("q", "B", order=(1, 0)))
    >>> marked.chosen, marked.right
    (0, True)
    """
    size = len(item.options)
    order = reply.order if reply is not None else None
    places = tuple(range(size)) if order is None else order
    if sorted(places) != list(range(size)):
        raise DataError(
            f"item {item.id!r}: the order {list(places)} is not one of {size} options.",
            hint=f"Give each of 0 to {size - 1} once.",
        )
    right_place = places.index(item.answer)
    if reply is None or reply.text is None:
        return Mark(order, None, None, Shown(size, right_place, None), False)
    parsed = parse_reply(reply.text, [item.options[place] for place in places])
    chosen = None if parsed.index is None else places[parsed.index]
    return Mark(order, parsed, chosen, Shown(size, right_place, parsed.index), chosen == item.answer)


def wilson_interval(successes: float, n: int, *, confidence: float = 0.95) -> Interval:
    """Interval of a share (Wilson, Journal of the American Statistical Association 22(158), 1927); NaN if n is 0.

    Unlike the bootstrap it has a width where all of a few items are right, or none.

    >>> found = wilson_interval(18, 18)
    >>> round(found.low, 4), round(found.high, 4)
    (0.8241, 1.0)
    """
    if n == 0:
        return Interval(math.nan, math.nan)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


# Columns of an item: its score, the share of its replies that were parsed, 1 / options, 1.
_STATISTICS: Mapping[str, Callable[[Floats], Floats]] = {
    "accuracy": lambda sums: np.asarray(sums[..., 0] / sums[..., 3]),
    "accuracy_parsed": lambda sums: np.asarray(sums[..., 0] / sums[..., 1]),
    "chance": lambda sums: np.asarray(sums[..., 2] / sums[..., 3]),
    "accuracy_corrected": lambda sums: np.asarray((sums[..., 0] - sums[..., 2]) / (sums[..., 3] - sums[..., 2])),
    "unparsed": lambda sums: np.asarray((sums[..., 3] - sums[..., 1]) / sums[..., 3]),
}


def _scores(table: Floats, clusters: Sequence[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    sums = table.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {name: plain(float(statistic(sums))) for name, statistic in _STATISTICS.items()}
    intervals = {
        name: plain_interval(bootstrap_interval(table, statistic, clusters, **options))
        for name, statistic in _STATISTICS.items()
        if name != "chance"
    }
    intervals["accuracy_wilson"] = plain_interval(wilson_interval(float(sums[0]), len(table)))
    return {**values, "n": len(table), "intervals": intervals}


def summarize_mcqa(
    items: Sequence[McqaItem],
    replies: Sequence[Reply],
    *,
    duration_edges_s: Sequence[float] = DURATION_EDGES_S,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> Summary:
    """All scores of `replies` to `items`, joined by id, as one JSON object, and a row per item.

    A spoken version whose written question is there counts in the paired comparison `spoken` only. Several orders give
    `consistency` (how often two orders choose the same option), `consistent` (items with the same option in all) and
    `accuracy_all_orders` (CircularEval of MMBench, arXiv 2307.06281). `clusters` maps ids to what is drawn together.

    Raises `DataError` as `join_replies` and `mark` do, and if there are no items.

    >>> items = [McqaItem("a", ("uno", "dos", "tres", "cuatro"), 1), McqaItem("b", ("sí", "no"), 0)]
    >>> found = summarize_mcqa(items, [Reply("a", "La B"), Reply("b", "Quién sabe")]).scores
    >>> found["accuracy"], found["accuracy_parsed"], found["chance"], found["unparsed"], found["n"]
    (0.5, 1.0, 0.375, 0.5, 2)
    >>> found["accuracy_corrected"]
    0.2
    """
    if not items:
        raise DataError("there are no items.", hint="Give at least one.")
    check_edges(duration_edges_s)
    joined, missing = join_replies(items, replies)
    ids = {item.id for item in items}
    marks = {item.id: [mark(item, reply) for reply in joined[item.id]] or [mark(item, None)] for item in items}
    paired = [item for item in items if item.spoken_of in ids]
    main = [item for item in items if item.spoken_of not in ids]
    covered = [item for item in main if item.id not in missing]
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "method": method}
    rows = {item.id: _row(item, marks[item.id]) for item in items}
    table = np.array([rows[item.id] for item in covered]).reshape(-1, 4)
    labels = cluster_labels(clusters, [item.id for item in covered])
    scores = _scores(table, labels, options)
    intervals: dict[str, Any] = scores.pop("intervals")
    statuses = [_status(each) for item in covered for each in marks[item.id]]
    scores |= {
        **{name: statuses.count(name) for name in ("ambiguous", "absent", "empty")},
        "missing_replies": statuses.count("missing_reply"),
        "missing_audio": len(main) - len(covered),
        "coverage": len(covered) / len(main) if main else None,
    }
    orders = _consistency(covered, marks, labels, options)
    intervals |= orders.pop("intervals")
    scores |= orders
    scores["intervals"] = intervals
    scores["position_bias"] = _bias(covered, marks, labels, options)
    scores["spoken"] = _spoken(paired, rows, missing, clusters, options)
    breakdowns = breakdowns_of(
        [item.labels for item in main],
        options=[len(item.options) for item in main],
        spoken=[bool(item.spoken_of) for item in main],
        duration_edges_s=duration_edges_s,
    )
    scores["breakdowns"] = {
        breakdown: {
            name: _slice([main[place] for place in places], rows, missing, clusters, options)
            for name, places in slices.items()
        }
        for breakdown, slices in breakdowns.items()
    }
    scores |= {"parser_version": PARSER_VERSION, "seed": seed, "resamples": resamples}
    return Summary(scores, _columns(items, marks, missing))


def check_edges(edges: Sequence[float]) -> None:
    if not edges or list(edges) != sorted(set(edges)) or not all(map(math.isfinite, edges)):
        raise UsageError(f"the duration edges are {list(edges)}.", hint="Give rising numbers of seconds.")


def _row(item: McqaItem, marks: Sequence[Mark]) -> list[float]:
    n = len(marks)
    right = sum(each.right for each in marks) / n
    parsed = sum(each.chosen is not None for each in marks) / n
    return [right, parsed, 1 / len(item.options), 1.0]


def _status(each: Mark) -> str:
    return "missing_reply" if each.parsed is None else each.parsed.status


def _slice(
    items: Sequence[McqaItem],
    rows: Mapping[str, list[float]],
    missing: set[str],
    clusters: Mapping[str, str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    ids = [item.id for item in items if item.id not in missing]
    table = np.array([rows[id_] for id_ in ids]).reshape(-1, 4)
    return {**_scores(table, cluster_labels(clusters, ids), options), "missing_audio": len(items) - len(ids)}


def _consistency(
    items: Sequence[McqaItem],
    marks: Mapping[str, Sequence[Mark]],
    labels: Sequence[str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    asked = [place for place, item in enumerate(items) if len(marks[item.id]) > 1]
    own = None if labels is None else [labels[place] for place in asked]
    values: dict[str, list[float]] = {"consistency": [], "consistent": [], "accuracy_all_orders": []}
    for place in asked:
        choices = [each.chosen for each in marks[items[place].id]]
        counts = [choices.count(option) for option in {choice for choice in choices if choice is not None}]
        pairs = len(choices) * (len(choices) - 1)
        values["consistency"].append(sum(count * (count - 1) for count in counts) / pairs)
        values["consistent"].append(float(counts == [len(choices)]))
        values["accuracy_all_orders"].append(float(all(each.right for each in marks[items[place].id])))
    means = {name: math.fsum(each) / len(each) if each else None for name, each in values.items()}
    intervals = {name: plain_interval(mean_interval(each, own, **options)) for name, each in values.items()}
    return {**means, "n_orders": len(asked), "intervals": intervals}


def _bias(
    items: Sequence[McqaItem],
    marks: Mapping[str, Sequence[Mark]],
    labels: Sequence[str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any] | None:
    shown = [each.shown for item in items for each in marks[item.id]]
    if not shown:
        return None
    # The replies of one item in several orders are drawn together.
    groups = [labels[i] if labels is not None else item.id for i, item in enumerate(items) for _ in marks[item.id]]
    several = labels is not None or len(set(groups)) < len(groups)
    found: PositionBias = position_bias(shown, groups if several else None, **options)
    return {
        "chosen": found.chosen,
        "right": found.right,
        "recall": {letter: plain(value) for letter, value in found.recall.items()},
        "rstd": plain(found.rstd),
        "rstd_interval": plain_interval(found.rstd_interval),
        "chi_square": plain(found.chi_square),
        "degrees_of_freedom": found.degrees_of_freedom,
        "p_value": plain(found.p_value),
        "n_wrong": found.n_wrong,
    }


def _spoken(
    paired: Sequence[McqaItem],
    rows: Mapping[str, list[float]],
    missing: set[str],
    clusters: Mapping[str, str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any] | None:
    both = [item for item in paired if item.id not in missing and item.spoken_of not in missing]
    if not both:
        return None
    cluster_labels(clusters, [item.id for item in both])
    spoken = {item.id: rows[item.id][0] for item in both}
    written = {item.id: rows[item.spoken_of][0] for item in both}
    found = compare(spoken, written, clusters=clusters, **options)
    return {
        "accuracy_spoken": math.fsum(spoken.values()) / len(both),
        "accuracy_written": math.fsum(written.values()) / len(both),
        "difference": found.difference,
        "interval": plain_interval(found.interval),
        "p_value": found.p_value,
        "n": len(both),
        "missing_audio": len(paired) - len(both),
    }


def _columns(
    items: Sequence[McqaItem], marks: Mapping[str, Sequence[Mark]], missing: set[str]
) -> dict[str, Sequence[Any]]:
    """`parsed`: the letter of the item's own option that was chosen, None for none; one per order, blanks between."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("id", "parsed", "correct", "answer", "status", "how", "orders")
    }
    for item in items:
        own = marks[item.id]
        gone = item.id in missing
        letters = ["-" if each.chosen is None else LETTERS[each.chosen] for each in own]
        share = sum(each.right for each in own) / len(own)
        columns["id"].append(item.id)
        columns["parsed"].append(None if gone or letters == ["-"] else " ".join(letters))
        columns["correct"].append(None if gone else int(share) if share in (0, 1) else share)
        columns["answer"].append(LETTERS[item.answer])
        columns["status"].append("missing_audio" if gone else " ".join(map(_status, own)))
        columns["how"].append("" if gone else " ".join(each.parsed.how if each.parsed else "" for each in own).strip())
        columns["orders"].append(len(own))
    return dict(columns)
