"""Score transcripts, rankings or answers that lie in files, with the scores that `squtr evaluate` uses.

`squtr score wer` compares transcripts with references, `squtr score ranking` a ranking with judgments, `squtr score
mcqa` replies with the right options, `squtr score aif` replies with instructions. Items are joined by id, never by
line. `squtr score wer --help` and its like show their options.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import score_answers
from .common import Extend, note, say, say_json

if TYPE_CHECKING:
    from ..metrics.summaries import Summary

EXAMPLE = """example:
  squtr score wer refs.jsonl hyps.jsonl --language zh
  squtr score ranking qrels.trec run.trec --metrics ndcg_at_10 recall_at_100
  squtr score mcqa items.jsonl replies.jsonl
  squtr score aif items.jsonl replies.jsonl --json
"""
_WER_EXAMPLE = """example:
  squtr score wer refs.jsonl hyps.jsonl --language zh --json
  squtr score wer text hyp.trn --language en --unit char --per-item items.jsonl

files:
  JSONL {"id": …, "text": …}; TSV id, tab, text; Kaldi id, blank, text; TRN text (id);
  CTM file channel start duration word, joined by file; Parquet with columns id, text

scores:
  wer, cer     Σ errors / Σ reference length, over words and over characters (blanks are no characters)
  …_macro      the mean of the utterances' own rates; an empty reference has none
  mer          match error rate, errors / (hits + errors), in the chosen unit
  substitutions, deletions, insertions, reference_length: counts in the chosen unit
  loops, hallucinations (words unrelated to the reference), empty: transcripts, as in docs/metrics.md
  With --unit mixed, mixed and mixed_macro count Chinese characters and words of other scripts.
"""
_RANKING_EXAMPLE = """example:
  squtr score ranking qrels.trec run.trec
  squtr score ranking qrels/test.tsv run.jsonl --metrics ndcg_at_10 mrr_at_10 --per-item items.jsonl --json

files:
  TREC qrels (query 0 document grade) and runs (query Q0 document rank score tag); or query-id, corpus-id, score as
  BEIR's TSV with these names in the first line, as JSONL or as Parquet. The scores order, not the ranks.

metrics:
  <family>_at_<k>: ndcg (linear gain), ndcg_exp (2^grade - 1), mrr, recall, map, precision, hit_rate; nDCG@10 is
  another way to write ndcg_at_10, and module:ATTRIBUTE a metric of your own
"""


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="wer|ranking|mcqa|aif", title="what to score")
    wer = _subcommand(kinds, "wer", "error rates of transcripts", _WER_EXAMPLE)
    wer.add_argument("references", type=Path, metavar="REFS", help="references")
    wer.add_argument("hypotheses", type=Path, metavar="HYPS", help="hypotheses; the same ids")
    wer.add_argument("--language", required=True, metavar="LANG", help="code of the language, for example en, zh, es")
    wer.add_argument(
        "--normalizer", default="default", metavar="NAME", help="default, raw, whisper or squtr-compat (default)"
    )
    add_normalizer_options(wer)
    wer.add_argument("--unit", metavar="UNIT", help="word, char or mixed (char where words are not separated, or word)")
    wer.add_argument(
        "--format",
        default="auto",
        metavar="NAME",
        help="auto, jsonl, tsv, kaldi, trn, ctm or parquet, of both files (auto)",
    )
    _add_missing(
        wer, "an utterance without a hypothesis, or the reverse: error, or count (left out, with bounds) (error)"
    )
    ranking = _subcommand(kinds, "ranking", "ranking metrics of a run", _RANKING_EXAMPLE)
    _add_missing(
        ranking, "a query without a ranking, or a run whose documents have no judgment at all: error, or count (0)"
    )
    ranking.add_argument("qrels", type=Path, metavar="QRELS", help="judgments")
    ranking.add_argument("run", type=Path, metavar="RUN", help="the ranking")
    ranking.add_argument(
        "--metrics", action=Extend, nargs="+", metavar="METRIC", help="metrics (ndcg_at_10 mrr_at_10 recall_at_10)"
    )  # fmt: skip
    ranking.add_argument(
        "--on-bad", default="refuse", metavar="WHAT", help="bad judgments: refuse, or skip (left out, counted) (refuse)"
    )
    ranking.add_argument(
        "--ignore-identical-ids", action="store_true", help="drop the document that has the query's own id"
    )
    ranking.add_argument(
        "--format", default="auto", metavar="NAME", help="auto, trec, tsv, jsonl or parquet, of both files (auto)"
    )
    mcqa = _subcommand(kinds, "mcqa", "accuracy of multiple-choice replies", score_answers.MCQA_EXAMPLE)
    aif = _subcommand(kinds, "aif", "how well replies follow instructions", score_answers.AIF_EXAMPLE)
    for each in (mcqa, aif):
        score_answers.add_options(each)
        _add_missing(each, "a question without a reply: error, or count (wrong) (error)")
    for each in (wer, ranking, mcqa, aif):
        add_statistics_options(each)
        each.add_argument("--per-item", type=Path, metavar="FILE", help="write scores per item: .jsonl, .tsv, .parquet")
        each.add_argument("--json", action="store_true", help="print one JSON object")


def _subcommand(
    kinds: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return kinds.add_parser(
        name,
        help=summary,
        description=f"Print {summary}, with 95 % intervals.",
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_missing(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--missing", default="error", choices=("error", "count"), help=words)


def add_normalizer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--script", default="fold", metavar="HOW", help="Chinese: fold, or strict: traditional is not simplified (fold)"
    )
    parser.add_argument("--erhua", default="keep", metavar="HOW", help="Chinese: keep, or drop 儿 of 花儿 (keep)")
    parser.add_argument(
        "--interjections", default="keep", metavar="HOW", help="Chinese: keep, or drop 呃, 嗯 and the like (keep)"
    )
    parser.add_argument("--accents", default="keep", metavar="HOW", help="Spanish: keep, or fold á to a, not ñ (keep)")


def normalizer_from(arguments: argparse.Namespace) -> Any:
    from ..text.normalizers import load_normalizer

    return load_normalizer(
        arguments.normalizer,
        arguments.language,
        script=arguments.script,
        accents=arguments.accents,
        erhua=arguments.erhua,
        interjections=arguments.interjections,
    )


def add_statistics_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clusters", type=Path, metavar="FILE", help="id and label (a speaker): what is resampled together (none)"
    )
    parser.add_argument("--method", default="percentile", metavar="NAME", help="percentile or bca (percentile)")
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of everything random (0)")


def statistics_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Clusters, seed, resamples and method. Raises `UsageError`, `DataError`."""
    from ...errors import UsageError, unknown_name
    from ..score_files import read_texts

    if arguments.method not in ("percentile", "bca"):
        raise unknown_name("method", arguments.method, ("percentile", "bca"))
    if arguments.resamples < 1 or arguments.seed < 0:
        raise UsageError(
            f"{arguments.resamples} resamples, seed {arguments.seed}.", hint="Give at least 1, and a seed from 0."
        )
    return {
        "clusters": read_texts(arguments.clusters, remark=note) if arguments.clusters else None,
        "seed": arguments.seed,
        "resamples": arguments.resamples,
        "method": arguments.method,
    }


def run(arguments: argparse.Namespace) -> int:
    from ..score_files.items import items_format, write_items

    if arguments.per_item is not None:
        items_format(arguments.per_item)
    found, title = _KINDS[arguments.kind](arguments)
    if arguments.per_item is not None:
        write_items(arguments.per_item, found.items)
    if arguments.json:
        say_json(found.scores)
        return 0
    say(title)
    for line in (*_table(found.scores), *score_answers.more_tables(found.scores)):
        say(line)
    if arguments.per_item is not None:
        say(f"Items: {arguments.per_item}")
    return 0


def _wer(arguments: argparse.Namespace) -> tuple[Summary, str]:
    from ...errors import DataError, unknown_name
    from ..metrics.error_counts import UNITS, count_texts_array, default_unit
    from ..metrics.failed_items import rate_bounds
    from ..metrics.summaries import summarize_recognition
    from ..score_files import read_texts

    if arguments.unit is not None and arguments.unit not in UNITS:
        raise unknown_name("unit", arguments.unit, UNITS)
    normalizer = normalizer_from(arguments)
    references = read_texts(arguments.references, arguments.format, remark=note)
    hypotheses = read_texts(arguments.hypotheses, arguments.format, remark=note)
    counted: dict[str, Any] = {}
    lengths: list[float] = []
    if arguments.missing == "count":
        absent = [text for id_, text in references.items() if id_ not in hypotheses]
        counted = {"missing": len(absent), "unknown": sum(id_ not in references for id_ in hypotheses)}
        if len(absent) == len(references):
            raise DataError(f"{arguments.hypotheses} has none of the {len(references)} ids.", hint="Check the ids.")
        unit = arguments.unit or default_unit(arguments.language)
        normal = [normalizer(text) for text in absent]
        lengths = count_texts_array(normal, [""] * len(normal), unit=unit, language=arguments.language)[:, 3].tolist()
        references = {id_: text for id_, text in references.items() if id_ in hypotheses}
        hypotheses = {id_: hypotheses[id_] for id_ in references}
    found = summarize_recognition(
        references,
        hypotheses,
        language=arguments.language,
        normalizer=normalizer,
        unit=arguments.unit,
        **statistics_from(arguments),
    )
    if counted:
        errors = [sum(row[kind] for kind in ("substitutions", "deletions", "insertions")) for row in found.items]
        known = [float(row["reference_length"]) for row in found.items]
        bounds = rate_bounds([*errors, *[math.nan] * len(lengths)], [*known, *lengths])
        found = replace(found, scores={**counted, "bounds_with_missing": bounds and list(bounds), **found.scores})
    title = f"{len(references)} utterances, language {arguments.language}, unit {found.scores['unit']}, "
    return found, title + f"normalizer {normalizer.name} {normalizer.version}"


def _ranking(arguments: argparse.Namespace) -> tuple[Summary, str]:
    from ...errors import DataError
    from ...loaders.sources.rules import Collected, check_on_bad
    from ..metrics.ranking import DEFAULT_METRICS
    from ..metrics.registry import parse_metric
    from ..metrics.summaries import summarize_ranking
    from ..score_files import read_qrels, read_run

    metrics = list(dict.fromkeys(arguments.metrics or DEFAULT_METRICS))
    for name in metrics:
        parse_metric(name)
    bad = Collected()
    qrels: dict[str, dict[str, int]] = {}
    with bad.table():
        qrels = read_qrels(arguments.qrels, arguments.format, remark=note, bad=bad)
    if check_on_bad(arguments.on_bad) == "refuse" or not qrels:
        bad.refuse(str(arguments.qrels))
    for entry in bad.left_out:
        note(f"squtr: left out: {entry}.")
    run = read_run(arguments.run, arguments.format, remark=note)
    judged = {document for grades in qrels.values() for document in grades}
    found = summarize_ranking(
        qrels, run, metrics, ignore_identical_ids=arguments.ignore_identical_ids, **statistics_from(arguments)
    )
    scores = found.scores
    if scores["missing"] and (arguments.missing == "error" or scores["missing"] == scores["n_queries"]):
        raise DataError(
            f"{scores['missing']} of {scores['n_queries']} queries have no ranking in {arguments.run}.",
            hint="Check the ids, or count them as 0: --missing count.",
        )
    if arguments.missing == "error" and not judged & {document for hits in run.values() for document, _ in hits}:
        raise DataError(
            f"none of the documents in {arguments.run} is judged in {arguments.qrels}.",
            hint="Check the ids, or score it so: --missing count.",
        )
    if bad.count:
        found = replace(found, scores={**scores, "left_out": dict(bad.counts)})
    return found, f"{scores['n_queries']} queries with a relevant document"


def _answers(arguments: argparse.Namespace) -> tuple[Summary, str]:
    return score_answers.summarize(arguments, statistics_from(arguments))


_KINDS: dict[str, Callable[[argparse.Namespace], tuple[Summary, str]]] = {
    "wer": _wer,
    "ranking": _ranking,
    "mcqa": _answers,
    "aif": _answers,
}
_NOT_IN_THE_TABLE = {
    "left_out",
    *score_answers.IN_OTHER_TABLES,
    *("intervals", "unit", "language", "normalizer", "normalizer_version", "seed", "resamples", "n", "n_queries"),
}


def _table(scores: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in scores.items():
        if name in _NOT_IN_THE_TABLE:
            continue
        if isinstance(value, list):
            lines.append(f"  {name:<18} [{', '.join(f'{one:.4f}' for one in value)}]")
            continue
        if not isinstance(value, float):
            if value is not None:
                lines.append(f"  {name:<18} {value:>8}")
            continue
        bounds = scores["intervals"].get(name)
        shown = f"  [{bounds['low']:.4f}, {bounds['high']:.4f}]" if bounds else ""
        lines.append(f"  {name:<18} {value:>8.4f}{shown}")
    return lines
