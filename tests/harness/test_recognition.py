"""The recognition task: every clip once, right scores, counted failures, kept work, right losses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import DataError, ModelError, UnknownNameError, UsageError
from squtr.harness.benchmarks import benchmark
from squtr.harness.evaluate import benchmark_of
from squtr.harness.evaluate import evaluate as squtr_evaluate
from squtr.harness.evaluation.run import EvaluationFailed
from squtr.harness.metrics.change_point import change_point
from squtr.harness.metrics.error_counts import count_errors
from squtr.harness.protocols import Transcript
from squtr.harness.results.envelope import Result, RunRecord, read_runs
from squtr.harness.systems import System, load_systems
from squtr.harness.tasks.recognition.details import RecognitionDetails
from squtr.harness.tasks.recognition.samples import RIR_FILE, read_rir, sample_folder
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe

from ..loaders.rirs_for_tests import make_speech
from .groups_for_tests import Crew
from .recognition_runs_for_tests import (
    QUICK,
    Halver,
    TableTranscriber,
    Words,
    build_data,
    by_config,
    evaluate,
    halved,
    in_rooms,
    key_of,
    rows_of,
    system,
    truth,
)

CONFIGS = ["en_clean", "en_reverb"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> BuiltData:
    return build_data(tmp_path_factory.mktemp("recognition"))


@pytest.fixture(scope="module")
def lossy(data: BuiltData) -> Words:
    return in_rooms(data, threshold_s=0.4, slope=2.0)


@pytest.fixture(scope="module")
def records(data: BuiltData, lossy: Words) -> Mapping[str, RunRecord]:
    return by_config(evaluate([system(lossy)], data).records)


def details(result: Result) -> RecognitionDetails:
    return RecognitionDetails.model_validate(result.details)


def utterances(data: BuiltData) -> set[str]:
    return {query.id for subset in data.subsets for query in data.queries(subset)}


def pairs(data: BuiltData) -> int:
    return sum(len(data.rows(subset, "reverb")) for subset in data.subsets)


def errors(row: Mapping[str, Any]) -> float:
    return float(sum(row[f"word_{kind}"] for kind in ("substitutions", "deletions", "insertions")))


def test_without_errors_nothing_is_lost(data: BuiltData) -> None:
    clean, reverb = truth(data)
    found = by_config(evaluate([system({**clean, **reverb})], data).records)
    assert list(found) == CONFIGS
    result = found["en_reverb"].result
    for score in [*found["en_clean"].result.scores.values(), *result.scores.values()]:
        assert score.value == 0
    for loss in result.losses["clean"].values():
        assert (loss.absolute.value, loss.p_value, loss.relative.value) == (0, 1, None)
    assert set(result.scores) == set(result.losses["clean"]) == {"wer", "wer_macro", "cer", "cer_macro"}
    point, spread = details(result).change_point, details(result).spread
    assert point is not None
    assert spread is not None
    assert (point.threshold_s, point.significant_from_s, spread.within_utterances.value) == (None, None, 0)
    assert (result.task, result.benchmark, result.main_metric) == ("recognition", "rir_mega", "wer")
    assert (result.data.n, result.data.n_total, result.data.clusters) == (pairs(data), pairs(data), pairs(data) / 2)
    assert not result.data.partial
    assert found["en_clean"].result.losses == {}
    assert details(found["en_clean"].result).change_point is None


def test_every_clip_is_transcribed_once_and_a_clean_one_once_per_utterance(data: BuiltData) -> None:
    clean, reverb = truth(data)
    transcriber = TableTranscriber({**clean, **reverb})
    evaluate([System(transcriber=transcriber), System(transcriber=transcriber, display_name="again")], data)
    assert sorted(transcriber.clips) == sorted([*clean, *reverb])
    assert len(clean) == len(utterances(data)) == len(reverb) / 2


def test_scores_agree_with_a_recomputation(data: BuiltData, records: Mapping[str, RunRecord]) -> None:
    clean = {row["id"]: row for row in records["en_clean"].items.to_pylist()}
    rows, result = records["en_reverb"].items.to_pylist(), records["en_reverb"].result
    assert [row["id"] for row in rows] == [row.id for subset in data.subsets for row in data.rows(subset, "reverb")]
    more = length = 0
    for row in rows:
        counts = count_errors(row["text"].split(), row["transcript"].split())
        assert errors(row) == counts.errors
        assert row["id"] == f"{row['cluster']}@{row['rir_id']}"
        more += counts.errors - errors(clean[row["cluster"]])
        length += counts.reference_length
        assert row["word_reference_length"] == counts.reference_length
    assert records["en_clean"].result.scores["wer"].value == 0
    assert result.scores["wer"].value == result.losses["clean"]["wer"].absolute.value == more / length > 0
    found = details(result)
    # Only words were replaced.
    assert found.kinds["word"]["substitutions"].rate.value == pytest.approx(more / length)
    change = found.kinds["word"]["deletions"].change
    assert change is not None
    assert change.value == 0
    raw = found.other_normalizers["raw"]["wer"]
    assert raw.rate.value == result.scores["wer"].value
    assert raw.loss == result.losses["clean"]["wer"]


def test_groups_map_and_change_point_follow_from_the_records(data: BuiltData, records: Mapping[str, RunRecord]) -> None:
    rows, result = records["en_reverb"].items.to_pylist(), records["en_reverb"].result
    edges = data.edges["rt60_s"]
    groups = result.by_group["rt60_s"]
    assert [(g.low, g.high) for g in groups] == [(None, edges[0]), (edges[0], edges[1]), (edges[1], None)]
    for group in groups:
        own = [r for r in rows if (group.low or 0) < r["rt60_s"] <= (group.high or math.inf)]
        assert (group.n, group.counts["rirs"]) == (len(own), len({row["rir_id"] for row in own}))
        rate = sum(map(errors, own)) / sum(row["word_reference_length"] for row in own)
        assert group.scores["wer"].value == pytest.approx(rate)
        # Clean transcripts are right: all of it is lost.
        loss = group.losses["clean"]["wer"]
        assert loss.absolute.value == pytest.approx(rate)
        assert loss.p_value is not None
        assert loss.p_holm is not None
        assert loss.p_holm >= loss.p_value
    cells = result.by_group["rt60_s|drr_db"]
    assert sum(cell.n for cell in cells) == len(rows)
    for group in result.by_group["drr_db"]:
        assert sum(cell.n for cell in cells if cell.label.endswith(f"|{group.label}")) == group.n
    again = change_point(
        [row["rt60_s"] for row in rows],
        [errors(row) for row in rows],
        [row["word_reference_length"] for row in rows],
        [row["cluster"] for row in rows],
        **QUICK,
    )
    point = details(result).change_point
    assert point is not None
    assert point.threshold_s == pytest.approx(again.threshold)
    assert point.p_value == again.p_value
    assert 0.25 < again.threshold < 0.55
    # The driest bin loses nothing, the most reverberant one a lot.
    assert point.significant_from_s in edges


def test_failures_are_counted_and_never_turned_into_text(data: BuiltData) -> None:
    clean, reverb = truth(data)
    keys = list(reverb)
    table: Words = {**clean, **reverb, keys[0]: Transcript("", error="cannot decode"), keys[1]: Transcript("")}
    table[list(clean)[1]] = Transcript("one " * 20, loop=True, truncated=True)
    table[list(clean)[2]] = Transcript("thanks for watching and see you next time")
    table[list(clean)[3]] = Transcript(f"{clean[list(clean)[3]]} \ufffd")
    found = by_config(evaluate([system(table)], data).records)
    result = found["en_reverb"].result
    assert result.failures == {
        "failed": 1,
        "loop": 0,
        "truncated": 0,
        "empty": 1,
        "hallucination": 0,
        "invalid_text": 0,
    }
    own = found["en_clean"].result.failures
    assert (own["loop"], own["truncated"], own["failed"]) == (1, 1, 0)
    assert (own["hallucination"], own["invalid_text"]) == (1, 1)
    assert [row["flags"] for row in found["en_clean"].items.to_pylist()[1:4]] == [
        ["loop", "truncated"],
        ["hallucination"],
        ["invalid_text"],
    ]
    # What could not be decoded is in no rate, and in no loss.
    assert result.data.n == len(reverb)
    assert result.scores["wer"].n == result.losses["clean"]["wer"].absolute.n == len(reverb) - 1
    row = found["en_reverb"].items.to_pylist()[0]
    assert (row["error"], row["transcript"], row["flags"]) == ("cannot decode", "", [])
    assert math.isnan(row["word_substitutions"])
    assert found["en_reverb"].items.to_pylist()[1]["flags"] == ["empty"]
    strict = evaluate([system(table)], data, strict=True)
    assert [record.result.data.config for record in strict.records] == ["en_clean"]
    assert "1 of" in strict.failures[0].error.message
    assert "cannot decode" in strict.failures[0].error.message


def test_a_front_end_is_compared_with_none(data: BuiltData, lossy: Words) -> None:
    transcriber = TableTranscriber(halved(data, lossy))
    plain, behind = System(transcriber=transcriber), System(transcriber=transcriber, front_end=Halver())
    found = evaluate([plain, behind], data).records
    without, with_ = by_config(found)["en_reverb"].result, by_config(found, "halver | table")["en_reverb"].result
    assert set(without.losses) == {"clean"}
    assert set(with_.losses) == {"clean", "no-front-end"}
    effect = with_.losses["no-front-end"]["wer"]
    assert with_.scores["wer"].value == 0
    # A loss below 0 is a gain.
    assert effect.absolute.value == pytest.approx(-without.scores["wer"].value)
    assert effect.relative.value == -1
    clean = by_config(found, "halver | table")["en_clean"].result
    assert set(clean.losses) == {"no-front-end"}
    assert clean.losses["no-front-end"]["wer"].absolute.value == 0
    change = details(with_).loss_change["wer"].absolute.value
    assert change == pytest.approx(-without.losses["clean"]["wer"].absolute.value)
    assert [g.losses["no-front-end"]["wer"].absolute.value for g in with_.by_group["rt60_s"]] == pytest.approx(
        [-(g.scores["wer"].value or 0) for g in without.by_group["rt60_s"]]
    )
    assert details(with_).front_end_cost is not None
    assert details(without).front_end_cost is None
    assert with_.timing.stages["front_end"] > 0
    # Alone, there is nothing to compare it with.
    alone = by_config(evaluate([behind], data).records, "halver | table")["en_reverb"].result
    assert set(alone.losses) == {"clean"}
    assert details(alone).loss_change == {}


def test_clean_clips_go_through_the_front_end_too(data: BuiltData, lossy: Words) -> None:
    # The table knows no halved clip.
    done = evaluate([system(lossy, front_end=Halver())], data, configs=["en_clean"])
    value = done.records[0].result.scores["wer"].value
    assert value is not None
    assert value > 0.5


def test_what_is_written_is_read_again_and_kept(data: BuiltData, lossy: Words, tmp_path: Path) -> None:
    first = evaluate([system(lossy)], data, out=tmp_path)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*.json")}
    assert [path.name for path in sorted(written)] == ["en_clean.json", "en_reverb.json"]
    again = evaluate([system(lossy)], data, out=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert [r.result for r in again.records] == [r.result for r in first.records]
    assert [r.result.key for r in read_runs(tmp_path)] == [r.result.key for r in first.records]
    other = evaluate([system(lossy)], data, out=tmp_path, seed=1)
    assert other.records[1].result.inputs_sha256 != first.records[1].result.inputs_sha256


def test_a_killed_evaluation_continues(data: BuiltData, lossy: Words, tmp_path: Path) -> None:
    killed = TableTranscriber(lossy)
    killed.fail_after = len(utterances(data))
    with pytest.raises(KeyboardInterrupt):
        evaluate([System(transcriber=killed)], data, cache=tmp_path)
    again = TableTranscriber(lossy)
    continued = evaluate([System(transcriber=again)], data, cache=tmp_path).records
    assert len(again.clips) == pairs(data)
    whole = evaluate([system(lossy)], data).records
    assert [r.result.inputs_sha256 for r in continued] == [r.result.inputs_sha256 for r in whole]
    assert [str(r.items.to_pylist()) for r in continued] == [str(r.items.to_pylist()) for r in whole]


@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_the_work_and_find_the_same(
    data: BuiltData, lossy: Words, records: Mapping[str, RunRecord], tmp_path: Path, size: int
) -> None:
    transcribers = [TableTranscriber(lossy) for _ in range(size)]

    def work(member: Any) -> list[RunRecord]:
        one = System(transcriber=transcribers[member.rank])
        return evaluate([one], data, cache=tmp_path, processes=member, out=tmp_path / "run").records

    found = Crew(size).run(work)
    assert [len(own) for own in found] == [2] + [0] * (size - 1)
    for record in found[0]:
        assert record.result.scores == records[record.result.data.config].result.scores
        assert record.result.timing.processes == size
    clips = [key for one in transcribers for key in one.clips]
    assert len(clips) == len(set(clips)) == pairs(data) * 3 / 2


def test_one_system_that_fails_does_not_lose_the_other(data: BuiltData, lossy: Words, tmp_path: Path) -> None:
    class Broken(TableTranscriber):
        def transcribe(self, clips: object, *, language: str) -> list[Transcript]:
            raise ValueError("not today")

    both = [system(lossy), System(transcriber=Broken({}, "broken"))]
    done = evaluate(both, data, out=tmp_path)
    assert {record.result.system.name for record in done.records} == {"table"}
    assert [(f.system, f.config) for f in done.failures] == [("broken", config) for config in CONFIGS]
    assert "not today" in str(done.failures[0].error)
    with pytest.raises(EvaluationFailed, match="2 runs failed, 2 did not"):
        squtr_evaluate(both, data=data, resamples=10, self_check=False)
    with pytest.raises(ModelError, match="not today"):
        squtr_evaluate(both[1], data=data, configs=["en_clean"], resamples=10, self_check=False)


def test_a_front_end_that_fails_loses_nothing_else(data: BuiltData, lossy: Words, tmp_path: Path) -> None:
    class Torn(Halver):
        def enhance(self, clips: object) -> list[np.ndarray]:
            raise RuntimeError("torn")

    done = evaluate([system(lossy), system(lossy, front_end=Torn())], data, out=tmp_path)
    assert {r.result.system.name for r in done.records} == {"table"}
    assert "torn" in str(done.failures[0].error)
    assert list((tmp_path / "samples").rglob("reverb.flac"))
    assert not list((tmp_path / "samples").rglob("*.halver.flac"))


def test_a_front_end_is_scored_where_the_system_without_it_fails(data: BuiltData) -> None:
    clean, reverb = truth(data)

    class Picky(TableTranscriber):
        def transcribe(self, clips: Any, *, language: str) -> list[Transcript]:
            if any(key_of(clip) in reverb for clip in clips):
                raise ValueError("too loud")
            return super().transcribe(clips, language=language)

    transcriber = Picky(halved(data, {**clean, **reverb}))
    done = evaluate([System(transcriber=transcriber), System(transcriber=transcriber, front_end=Halver())], data)
    assert [(f.system, f.config) for f in done.failures] == [("table", "en_reverb")]
    result = by_config(done.records, "halver | table")["en_reverb"].result
    assert set(result.losses) == {"clean"}


def test_a_part_takes_whole_utterances_and_has_a_folder_of_its_own(
    data: BuiltData, lossy: Words, tmp_path: Path
) -> None:
    done = evaluate([system(lossy)], data, out=tmp_path, limit=7)
    assert done.out == tmp_path / "partial-first-7"
    result = by_config(done.records)["en_reverb"].result
    assert (result.data.n, result.data.clusters, result.data.partial) == (14, 7, True)
    assert result.data.n_total == pairs(data)
    half = by_config(evaluate([system(lossy)], data, fraction=0.5).records)["en_clean"].result
    assert half.data.clusters == half.data.n == math.ceil(0.5 * len(utterances(data)))


def test_samples_go_from_dry_to_reverberant(data: BuiltData, lossy: Words, tmp_path: Path) -> None:
    evaluate([system(lossy), system(lossy, front_end=Halver())], data, out=tmp_path, samples=3)
    (subset,) = data.subsets
    rirs = [read_rir(path) for path in (tmp_path / "samples").rglob(RIR_FILE)]
    assert len(rirs) == 3
    reverberation = sorted(rir.rt60_s or 0.0 for rir in rirs)
    edges = data.edges["rt60_s"]
    assert reverberation[0] <= edges[0] < edges[1] < reverberation[-1]
    content = {(row.condition, row.id): row.audio for row, _ in rows_of(data)}
    for rir in rirs:
        place = sample_folder(tmp_path, subset, rir.row_id)
        assert {path.name for path in place.iterdir()} == {
            "clean.flac", "reverb.flac", "reverb.halver.flac", RIR_FILE,
        }  # fmt: skip
        assert (place / "reverb.flac").read_bytes() == content["reverb", rir.row_id]
        assert (place / "clean.flac").read_bytes() == content["clean", rir.row_id.partition("@")[0]]
        assert rir.decay_db[0] == 0
    bad = tmp_path / RIR_FILE
    bad.write_text('{"rir_id": "x"}')
    with pytest.raises(DataError, match="it has the fields"):
        read_rir(bad)


def test_precomputed_transcripts(data: BuiltData, tmp_path: Path) -> None:
    lines = [
        {"id": row.id, "condition": row.condition, "text": "no" if row.rir_id and row.rt60_s >= 0.4 else row.text}
        for row, _ in rows_of(data)
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (made,) = load_systems([f"mine=transcripts:{tmp_path / 'mine.jsonl'}"])
    found = by_config(evaluate([made], data, latency=2).records, "mine")
    value = found["en_reverb"].result.losses["clean"]["wer"].absolute.value
    assert value is not None
    assert value > 0
    timing = found["en_reverb"].result.timing
    assert (timing.stages, timing.rtfx, timing.latency, timing.isolated) == ({}, None, None, None)


def test_what_cannot_be_evaluated_is_refused(data: BuiltData, lossy: Words) -> None:
    (cascade,) = load_systems(["whisper-base + bm25"])
    with pytest.raises(UsageError) as refused:
        evaluate([cascade], data)
    assert refused.value.hint == "Speech recognition takes the transcriber alone: 'whisper-base'."
    with pytest.raises(UsageError, match="en_text has no audio"):
        evaluate([system(lossy)], data, configs=["en_text"])
    with pytest.raises(UsageError, match="ndcg_at_10 does not apply to speech recognition"):
        evaluate([system(lossy)], data, metrics=["wer", "ndcg_at_10"])
    with pytest.raises(UnknownNameError, match="normalizer"):
        evaluate([system(lossy)], data, normalizer="wisper")
    with pytest.raises(UsageError, match="--depth does not apply"):
        evaluate([system(lossy)], data, depth=10)

    class German(TableTranscriber):
        def supports(self, language: str) -> bool:
            return language == "de"

    with pytest.raises(DataError, match="no system supports"):
        evaluate([System(transcriber=German({}))], data)


def test_metrics_and_normalizers_are_chosen(data: BuiltData, lossy: Words) -> None:
    result = by_config(evaluate([system(lossy)], data, normalizer="", metrics=["cer_macro"]).records)[
        "en_reverb"
    ].result
    assert result.main_metric == "cer_macro"
    assert set(result.scores) == set(result.losses["clean"]) == {"cer_macro"}
    # Groups have corpus rates.
    assert {name for group in result.by_group["rt60_s"] for name in group.scores} == {"cer"}
    # English has the benchmark's normalizer, unless the system has one of its own.
    assert result.system.normalizer == "whisper"
    own = evaluate([system(lossy, normalizer="raw")], data, normalizer="").records[0].result
    assert own.system.normalizer == "raw"
    assert details(own).other_normalizers == {}


def test_preset_and_parameters_are_recorded(data: BuiltData, lossy: Words, tmp_path: Path) -> None:
    (made,) = load_systems(["whisper-tiny.en"], preset="whisper-rir-mega")
    assert made.preset == "whisper-rir-mega"
    header = json.dumps({"a": {"dtype": "F32", "shape": [3, 5], "data_offsets": [0, 60]}, "__metadata__": {}}).encode()
    (tmp_path / "model.safetensors").write_bytes(np.uint64(len(header)).tobytes() + header + bytes(60))
    one = System(transcriber=TableTranscriber(lossy, weights=tmp_path), preset="mine")
    result = evaluate([one], data).records[0].result
    assert result.system.parameters == 15
    assert result.system.settings["preset"] == "mine"


def test_latency_of_a_class_of_ones_own(data: BuiltData, lossy: Words) -> None:
    for record in evaluate([system(lossy)], data, latency=3).records:
        timing = record.result.timing
        assert timing.latency is not None
        assert timing.isolated is not None
        assert timing.latency.n == 3
        assert timing.isolated.peak_memory_mb > 10


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> BuiltData:
    """Recordings in English and Chinese, under noise and in simulated rooms, made for no benchmark."""
    folder = tmp_path_factory.mktemp("recordings")
    speech = make_speech(folder / "speech", 12, rate=16_000)
    rows = [json.loads(line) for line in (speech / "manifest.jsonl").read_text().splitlines()]
    for row in rows[::3]:
        row |= {"language": "zh", "text": "银行利率四十"}
    (speech / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    conditions = ["clean", "low_noise", "reverb", "reverb_snr_0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQUTR_HOME", str(folder / "home"))
        build(open_recipe(f"recorded:{speech}", conditions=conditions, sample_rate=16_000), folder / "data", workers=1)
    return BuiltData(folder / "data")


class Bilingual(TableTranscriber):
    def supports(self, language: str) -> bool:
        return language in ("en", "zh")


def test_any_recordings_under_any_conditions(recordings: BuiltData) -> None:
    row = benchmark_of(recordings)
    assert (row.name, row.task) == ("recognition", "recognition")
    table: Words = {}
    for spoken, samples in rows_of(recordings):
        lost = spoken.condition in ("low_noise", "reverb_snr_0")
        table[key_of(samples)] = spoken.text[:-1] if lost and spoken.language == "zh" else spoken.text
        if lost and spoken.language == "en":
            table[key_of(samples)] = f"{spoken.text} more"
    both = System(transcriber=Bilingual(table))
    found = by_config(evaluate([both, system(table, "english")], recordings, row).records)
    languages = ("en", "zh")
    assert set(found) == {f"{language}_{c}" for language in languages for c in recordings.conditions}
    english, chinese = found["en_low_noise"].result, found["zh_low_noise"].result
    assert english.data.n + chinese.data.n == 12
    assert (english.main_metric, chinese.main_metric) == ("wer", "cer")
    assert set(chinese.scores) == {"cer", "cer_macro"}
    assert set(details(chinese).kinds) == {"char"}
    assert chinese.losses["clean"]["cer"].absolute.value == pytest.approx(1 / 6)
    change = details(english).kinds["word"]["insertions"].change
    assert change is not None
    assert change.value == pytest.approx(english.losses["clean"]["wer"].absolute.value)
    item = found["zh_low_noise"].items.to_pylist()[0]
    assert math.isnan(item["word_reference_length"])
    assert item["char_reference_length"] == 6
    # Breakdowns follow the condition: noise has families, a room RT60.
    assert sum(group.n for group in english.by_group["noise_family"]) == english.data.n
    assert "rt60_s" not in english.by_group
    assert details(english).spread is None
    room = found["en_reverb_snr_0"].result
    assert {"noise_family", "rt60_s", "drr_db", "speaker"} <= set(room.by_group)
    assert found["en_reverb"].result.losses["clean"]["wer"].absolute.value == 0
    point = details(room).change_point
    assert point is not None
    assert point.n == room.data.n


def test_a_row_without_a_clean_partner_is_an_error(data: BuiltData, lossy: Words) -> None:
    class Torn:
        """The same data, one utterance missing where it is clean."""

        def __getattr__(self, name: str) -> Any:
            return getattr(data, name)

        def rows(self, subset: str, condition: str) -> Any:
            rows = data.rows(subset, condition)
            return rows[:-1] if condition == "clean" else rows

        def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Any:
            end = len(self.rows(subset, condition))
            return data.spoken(subset, condition, start=start, stop=end if stop is None else min(stop, end))

    done = evaluate([system(lossy)], Torn())
    assert [(f.system, f.config) for f in done.failures] == [("table", "en_reverb")]
    assert "no partner" in done.failures[0].error.message


def test_a_benchmark_names_any_column(data: BuiltData, lossy: Words) -> None:
    row = replace(benchmark("recognition"), groups=("room_id", "duration_s"))
    result = by_config(evaluate([system(lossy)], data, row).records)["en_reverb"].result
    assert set(result.by_group) == {"room_id", "duration_s"}
    assert sum(group.n for group in result.by_group["room_id"]) == result.data.n
