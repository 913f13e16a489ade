"""Runs in which some items fail: of a transcriber that keeps its hard clips, and of one that drops them."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from squtr.harness.protocols import Transcript
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems import System
from squtr.loaders.data import BuiltData

from .evaluate_runs_for_tests import evaluate_runs
from .evaluation_for_tests import built, by_config, truth_of
from .fakes import LookupTranscriber, WordRetriever
from .recognition_runs_for_tests import QUICK, Words, build_data, key_of, rows_of, system, with_errors

FAILED = Transcript("", error="the server answered 500")
KEEPER, DROPPER = "keeper", "dropper"


def dropped(data: BuiltData, words: Words, wanted: Iterable[tuple[str, str]]) -> Words:
    """The same transcripts, without those of these ids and conditions."""
    gone = set(wanted)
    return words | {key_of(samples): FAILED for row, samples in rows_of(data) if (row.id, row.condition) in gone}


def recognition_runs(root: Path, out: Path | None = None) -> list[RunRecord]:
    """`keeper` and `dropper` under `clean` and `reverb`; the latter fails on one clean clip, and on four of its worst
    reverberant ones, which are not all wrong."""
    data = build_data(root)
    words = {key_of(s): with_errors(row.text, row.id, 0.6 if row.rir_id else 0.2) for row, s in rows_of(data)}
    kept = evaluate_runs([system(words, KEEPER)], data, normalizer="default", **QUICK)
    rates = {
        row["id"]: errors(row) / row["word_reference_length"] for row in by_config(kept)["en_reverb"].items.to_pylist()
    }
    worst = sorted((id_ for id_, rate in rates.items() if rate < 1), key=lambda id_: (-rates[id_], id_))
    clean = by_config(kept)["en_clean"].items.to_pylist()[0]["id"]
    wanted = [(clean, "clean"), *((id_, "reverb") for id_ in worst[:4])]
    systems = [system(words, KEEPER), system(dropped(data, words, wanted), DROPPER)]
    return evaluate_runs(systems, data, out=out, normalizer="default", **QUICK)


def retrieval_runs(root: Path, out: Path | None = None, *, rewriter: Any = None) -> list[RunRecord]:
    """The two before the same retriever, in two languages, under `clean`, `high_noise` and `text`; of six queries the
    latter fails on q1 under `clean`, on q0 and q2 under `high_noise`, which the other transcribes wrongly."""
    data = built(root, "clean", "high_noise", queries=6)
    truth = truth_of(data)
    wrong = {("q0", "high_noise"), ("q2", "high_noise"), ("q3", "clean"), ("q3", "high_noise")}
    gone = {("q1", "clean"), ("q0", "high_noise"), ("q2", "high_noise")}
    words: Words = {key: "blur" if (q.id, q.condition) in wrong else q.text for key, q in truth.items()}
    fewer: Words = {key: FAILED if (q.id, q.condition) in gone else words[key] for key, q in truth.items()}
    systems = [
        System(transcriber=LookupTranscriber(own, name), rewriter=rewriter, retriever=WordRetriever())
        for name, own in ((KEEPER, words), (DROPPER, fewer))
    ]
    return evaluate_runs(systems, data, out=out, resamples=50, samples=0)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Until the tests end."""
    found = tempfile.TemporaryDirectory(prefix="failed-runs-")
    root = Path(found.name)
    recognition_runs(root / "recognition", root / "recognition" / "run")
    retrieval_runs(root / "retrieval", root / "retrieval" / "run")
    return found


def failed_runs() -> dict[str, Path]:
    """The folders of both by task, made once: tests copy what they change."""
    return {name: Path(_folder().name) / name / "run" for name in ("recognition", "retrieval")}


def errors(row: dict[str, Any]) -> float:
    return float(row["word_substitutions"] + row["word_deletions"] + row["word_insertions"])


def of(records: Sequence[RunRecord], name: str, config: str) -> RunRecord:
    """The run of the system whose transcriber has this name."""
    found = [
        r for r in records
        if r.result.data.config == config and r.result.system.components.get("transcriber", {}).get("name") == name
    ]  # fmt: skip
    return found[0]
