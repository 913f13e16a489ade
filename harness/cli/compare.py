"""Compare two systems on the same items: paired tests, Holm's correction over all metrics, intervals, what n allows.

A and B are per-item files that `squtr score --per-item` wrote (or your own: a field `id` and one number per metric),
results (.json), or folders of one system's results. A difference is A - B. Results of other data, of another number of
items, of a part of the items against all of them, or with other normalizers are not compared. Error rates are of the
items that have a transcript on both sides: n says how many, and how many that leaves out. Of speech recognition, what a
condition changes against `clean` is compared too (delta_wer); items of one utterance are drawn together.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Extend, note, say, say_json
from .score import add_statistics_options, statistics_from

if TYPE_CHECKING:
    from ..metrics.compare_items import MetricComparison

EXAMPLE = """example:
  squtr compare a.items.jsonl b.items.jsonl
  squtr compare run/results/whisper-base+BM25 run/results/whisper-small+BM25 --metrics ndcg_at_10 wer --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="one system: a per-item file, a result, or a results folder")
    parser.add_argument("b", type=Path, metavar="B", help="the other")
    parser.add_argument(
        "--metrics", action=Extend, nargs="+", metavar="METRIC", help="metrics to compare (all that both have)"
    )
    parser.add_argument(
        "--on", default="all", metavar="IDS", help="all: other ids are an error; intersection: what both have (all)"
    )
    parser.add_argument(
        "--permutations", type=int, default=10_000, metavar="N", help="random sign flips where n is large (10000)"
    )
    add_statistics_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    from ...errors import unknown_name
    from ..metrics.compare_items import compare_items, correct, metric_names
    from ..score_files.sides import pair_sides, read_side

    if arguments.on not in ("all", "intersection"):
        raise unknown_name("value of --on", arguments.on, ("all", "intersection"))
    options = statistics_from(arguments) | {"permutations": arguments.permutations}
    labels = options.pop("clusters")
    a, b = read_side(arguments.a, remark=note), read_side(arguments.b, remark=note)
    names: list[str] = []
    found: list[MetricComparison] = []
    pairs = pair_sides(a, b, intersection=arguments.on == "intersection")
    known = {name: metric_names(left.items, right.items) for name, left, right in pairs}
    for metric in arguments.metrics or ():
        if not any(metric in own for own in known.values()):
            raise unknown_name("metric", metric, {m for own in known.values() for m in own})
    for name, left, right in pairs:
        # Typed queries have no error rate: a metric is compared where it applies.
        metrics = None if arguments.metrics is None else [m for m in arguments.metrics if m in known[name]]
        if metrics == []:
            continue
        subsets = None if left.subsets is None or right.subsets is None else left.subsets
        # The utterances, where several items share one, unless labels are given.
        clusters = left.clusters
        if labels is not None:
            # Of runs, a label may be given for the id alone.
            plain = {id_: id_.partition("/")[2] if subsets else id_ for id_ in left.items}
            given = {i: labels.get(i, labels.get(short)) for i, short in plain.items()}
            clusters = {i: label for i, label in given.items() if label is not None}
        rows = compare_items(
            left.items, right.items, metrics, subsets=subsets, clusters=clusters, on=arguments.on, **options
        )
        names += [name] * len(rows)
        found += rows
    # One family: all metrics of all configs.
    found = correct(found)
    if arguments.json:
        say_json(
            {
                "a": str(arguments.a),
                "b": str(arguments.b),
                "on": arguments.on,
                "comparisons": [_object(name, one) for name, one in zip(names, found, strict=True)],
                "permutations": arguments.permutations,
                **{key: value for key, value in options.items() if key in ("seed", "resamples", "method")},
            }
        )
        return 0
    say(f"A: {arguments.a}\nB: {arguments.b}")
    for line in _table(names, found):
        say(line)
    say("p: two-sided sign-flip test, paired by id; Holm: corrected over all rows;")
    say("detectable: the difference that a test at 0.05 finds with power 0.8 at this n.")
    if any(one.left_out for one in found):
        say("n (-k): k items have the metric on one side only (they failed on the other), and are in neither value.")
    return 0


def _object(name: str, one: MetricComparison) -> dict[str, Any]:
    from ..metrics.summaries import plain, plain_interval

    test = one.comparison
    return {
        "config": name,
        "metric": one.metric,
        "a": plain(one.a),
        "b": plain(one.b),
        "difference": plain(test.difference),
        "interval": plain_interval(test.interval),
        "p_value": plain(test.p_value),
        "p_holm": plain(one.p_holm),
        "exact": test.exact,
        "minimum_detectable": plain(test.minimum_detectable),
        "n": test.n,
        "left_out": one.left_out,
    }


def _table(names: list[str], found: list[MetricComparison]) -> list[str]:
    head = ("metric", "n", "A", "B", "A - B", "95 % interval", "p", "Holm", "detectable")
    rows: list[tuple[str, ...]] = []
    for one in found:
        test, bounds = one.comparison, one.comparison.interval
        known = bounds.low == bounds.low and bounds.high == bounds.high
        rows.append(
            (
                one.metric,
                str(test.n) + (f" (-{one.left_out})" if one.left_out else ""),
                f"{one.a:.4f}",
                f"{one.b:.4f}",
                f"{test.difference:+.4f}",
                f"[{bounds.low:+.4f}, {bounds.high:+.4f}]" if known else "-",
                f"{test.p_value:.4f}",
                f"{one.p_holm:.4f}",
                "-" if test.minimum_detectable != test.minimum_detectable else f"{test.minimum_detectable:.4f}",
            )
        )
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(head, widths, strict=True)).rstrip()]
    last = ""
    for name, row in zip(names, rows, strict=True):
        if name != last:
            lines.append(name)
            last = name
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return lines
