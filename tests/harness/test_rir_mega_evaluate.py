"""The evaluation of rir_mega: every clip once, right scores, counted failures, kept work, right effects."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import DataError, ModelError, UnknownNameError, UsageError
from squtr.harness.evaluation.evaluate import EvaluationFailed
from squtr.harness.metrics.change_point import change_point
from squtr.harness.metrics.error_counts import count_errors
from squtr.harness.protocols import Transcript
from squtr.harness.report.rir_mega import summary_table, write_report
from squtr.harness.rir_mega.arms import PairArms
from squtr.harness.rir_mega.evaluate import Options, evaluate_rir_mega, run_evaluation
from squtr.harness.rir_mega.recognizers import Recognizer, check_recognizers, load_recognizers
from squtr.harness.rir_mega.results import PairRecord, is_rir_mega, read_records, result_path, write_record
from squtr.loaders.audio import decode_audio
from squtr.loaders.records import SpokenQuery
from squtr.loaders.rir_mega.data import Arm, RirMegaData, spoken_arm
from squtr.loaders.rir_mega.opening import open_pairs
from squtr.loaders.rir_mega.rows import PairRow

from .groups_for_tests import Crew
from .rir_mega_runs_for_tests import (
    Halver,
    TableTranscriber,
    build_data,
    halved,
    in_rooms,
    key_of,
    recognizer,
    truth,
)

QUICK = Options(normalizer="default", resamples=100, permutations=300)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RirMegaData:
    return RirMegaData(build_data(tmp_path_factory.mktemp("rir_mega")))


@pytest.fixture(scope="module")
def lossy(data: RirMegaData) -> dict[str, str | Transcript]:
    return in_rooms(data, threshold_s=0.4, slope=2.0)


def only(evaluation_records: list[PairRecord]) -> PairRecord:
    (record,) = evaluation_records
    return record


def test_a_perfect_recognizer_loses_nothing(data: RirMegaData) -> None:
    clean, reverb = truth(data)
    result = only(run_evaluation([recognizer({**clean, **reverb})], data, options=QUICK).records).result
    for rates in result.rates.values():
        assert rates.clean.value == rates.reverb.value == rates.delta.absolute.value == 0
        assert rates.delta.p_value == 1
        assert rates.delta.relative.value is None
    assert result.onset.threshold_s is None
    assert result.onset.significant_from_s is None
    assert result.spread.within_utterances.value == 0
    assert result.data.n == data.splits["test"] == result.data.n_total
    assert not result.data.partial


def test_every_clip_is_heard_once_and_a_clean_one_once_per_utterance(data: RirMegaData) -> None:
    clean, reverb = truth(data)
    ear = TableTranscriber({**clean, **reverb})
    run_evaluation([Recognizer(ear)], data, options=QUICK)
    assert sorted(ear.heard) == sorted([*clean, *reverb])
    utterances = {pair.utterance_id for pair in data.pairs("test")}
    assert len(clean) == len(utterances) == len(reverb) / 2


def test_scores_agree_with_a_recomputation(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    record = only(run_evaluation([recognizer(lossy)], data, options=QUICK).records)
    result, rows = record.result, record.pairs.to_pylist()
    assert [row["id"] for row in rows] == data.sample_ids("test")
    errors = {"clean": 0, "reverb": 0}
    length = 0
    for row in rows:
        for arm in errors:
            counts = count_errors(row["text"].split(), row[f"{arm}_transcript"].split())
            errors[arm] += counts.errors
            assert row[f"{arm}_word_errors"] == counts.errors
            assert row[f"{arm}_word_substitutions"] == counts.substitutions
        assert row["delta_word_errors"] == row["reverb_word_errors"] - row["clean_word_errors"]
        length += len(row["text"].split())
    wer = result.rates["wer"]
    assert wer.clean.value == errors["clean"] / length == 0
    assert wer.reverb.value == errors["reverb"] / length
    assert wer.delta.absolute.value == pytest.approx((errors["reverb"] - errors["clean"]) / length)
    # Only words were replaced.
    assert result.kinds["word"]["substitutions"].change.value == pytest.approx(wer.delta.absolute.value)
    assert result.kinds["word"]["deletions"].change.value == 0
    assert result.other_normalizers["raw"]["wer"].reverb.value == wer.reverb.value


def test_bins_map_and_onset_follow_from_the_records(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    record = only(run_evaluation([recognizer(lossy)], data, options=QUICK).records)
    result, rows = record.result, record.pairs.to_pylist()
    edges = data.edges["rt60_s"]
    for row in rows:
        assert row["rt60_bin"] == data.bin_of("rt60_s", row["rt60_s"])
        assert row["drr_bin"] == data.bin_of("drr_db", row["drr_db"])
    assert [b.number for b in result.by_rt60] == sorted({row["rt60_bin"] for row in rows})
    assert [(b.low, b.high) for b in result.by_rt60] == [(None, edges[0]), (edges[0], edges[1]), (edges[1], None)]
    for found in result.by_rt60:
        own = [row for row in rows if row["rt60_bin"] == found.number]
        assert (found.pairs, found.rooms) == (len(own), len({row["rir_id"] for row in own}))
        lost = sum(row["delta_word_errors"] for row in own) / sum(row["word_reference_length"] for row in own)
        assert found.rates["wer"].delta.absolute.value == pytest.approx(lost)
    assert sum(cell.pairs for cell in result.map) == len(rows)
    for cell in result.map:
        own = [row for row in rows if (row["rt60_bin"], row["drr_bin"]) == (cell.rt60, cell.drr)]
        assert cell.pairs == len(own)
        assert cell.rates.reverb.value == pytest.approx(
            sum(r["reverb_word_errors"] for r in own) / sum(r["word_reference_length"] for r in own)
        )
    again = change_point(
        [row["rt60_s"] for row in rows],
        [row["delta_word_errors"] for row in rows],
        [row["word_reference_length"] for row in rows],
        [row["utterance_id"] for row in rows],
        resamples=100,
        permutations=300,
    )
    assert result.onset.threshold_s == pytest.approx(again.threshold)
    assert result.onset.p_value == again.p_value
    assert 0.25 < result.onset.threshold_s < 0.55
    # The driest bin loses nothing, the most reverberant one a lot.
    assert result.onset.significant_from_s in edges


def test_failures_are_counted_never_words(data: RirMegaData) -> None:
    clean, reverb = truth(data)
    pairs = list(data.pairs("test"))
    broken = key_of(decode_audio(pairs[0].reverb_audio, "r")[0])
    silent = key_of(decode_audio(pairs[1].reverb_audio, "r")[0])
    looping = key_of(decode_audio(pairs[2].clean_audio, "c")[0])
    table = {**clean, **reverb, broken: Transcript("", error="cannot decode"), silent: Transcript("")}
    table[looping] = Transcript("one " * 20, loop=True, truncated=True)
    record = only(run_evaluation([recognizer(table)], data, options=QUICK).records)
    result = record.result
    assert result.failures["reverb"].model_dump() == {
        "n": len(pairs), "undecodable": 1, "loops": 0, "truncated": 0, "empty": 1, "hallucinations": 0,
    }  # fmt: skip
    assert (result.failures["clean"].loops, result.failures["clean"].truncated) == (1, 1)
    assert result.failures["clean"].n == len(pairs) / 2
    # The pair that could not be decoded is in no rate, of either arm.
    assert result.rates["wer"].clean.n == result.rates["wer"].delta.absolute.n == len(pairs) - 1
    row = record.pairs.to_pylist()[0]
    assert (row["reverb_error"], row["reverb_transcript"]) == ("cannot decode", "")
    assert math.isnan(row["reverb_word_errors"])
    assert math.isnan(row["delta_word_errors"])
    assert row["clean_word_errors"] == 0
    strict = run_evaluation([recognizer(table)], data, options=replace(QUICK, strict=True))
    assert strict.records == []
    assert "1 reverb clips failed" in strict.failures[0].error.message


def test_a_front_end_is_compared_with_none(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    ear = TableTranscriber(halved(data, lossy))
    plain, behind = Recognizer(ear), Recognizer(ear, Halver())
    assert behind.name == "halver | table"
    records = run_evaluation([plain, behind], data, options=QUICK).records
    without, with_ = (record.result for record in records)
    assert without.effect is None
    effect = with_.effect
    assert effect is not None
    assert with_.rates["wer"].reverb.value == 0
    assert effect.reverb["wer"].absolute.value == pytest.approx(-without.rates["wer"].reverb.value)
    assert effect.reverb["wer"].relative.value == -1
    assert effect.clean["wer"].absolute.value == 0
    assert effect.delta["wer"].absolute.value == pytest.approx(-without.rates["wer"].delta.absolute.value)
    by_bin = {b.number: b.rates["wer"].reverb.value for b in without.by_rt60}
    assert {n: d.absolute.value for n, d in effect.by_rt60.items()} == pytest.approx({n: -v for n, v in by_bin.items()})
    assert effect.seconds_per_second is not None
    assert with_.timing.front_end_s is not None
    # Alone, there is nothing to compare it with.
    assert only(run_evaluation([behind], data, options=QUICK).records).result.effect is None


def test_the_clean_arm_goes_through_the_front_end_too(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    ear = TableTranscriber(lossy)  # knows no halved sound
    behind = run_evaluation([Recognizer(ear, Halver())], data, options=QUICK).records[0].result
    assert behind.rates["wer"].clean.value is not None
    assert behind.rates["wer"].clean.value > 0.5


def test_what_is_written_is_read_again_and_kept(
    data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path
) -> None:
    record = only(run_evaluation([recognizer(lossy)], data, out=tmp_path, options=QUICK).records)
    path = result_path(tmp_path, "table", "en_test")
    assert is_rir_mega(path)
    (read,) = read_records(tmp_path)
    assert read.result == record.result
    assert str(read.pairs.to_pylist()) == str(record.pairs.to_pylist())
    assert json.loads(path.read_text())["benchmark"] == "rir_mega"
    before = path.stat().st_mtime_ns
    run_evaluation([recognizer(lossy)], data, out=tmp_path, options=QUICK)
    assert path.stat().st_mtime_ns == before
    # Other settings, other scores: written again.
    run_evaluation([recognizer(lossy)], data, out=tmp_path, options=replace(QUICK, seed=1))
    assert path.stat().st_mtime_ns > before
    samples = sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "samples").rglob("*.*"))
    assert len({s.split("/")[1] for s in samples}) >= 3
    assert {s.rsplit("/", 1)[1] for s in samples} == {"clean.flac", "reverb.flac", "room.json"}
    room = json.loads(next((tmp_path / "samples").rglob("room.json")).read_text())
    assert room["decay_db"][0] == 0
    assert room["rt60_s"] > 0


def test_killed_and_continued(data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path) -> None:
    killed = TableTranscriber(lossy)
    utterances = len({pair.utterance_id for pair in data.pairs("test")})
    killed.fail_after = utterances
    with pytest.raises(KeyboardInterrupt):
        run_evaluation([Recognizer(killed)], data, cache=tmp_path, options=QUICK)
    again = TableTranscriber(lossy)
    continued = run_evaluation([Recognizer(again)], data, cache=tmp_path, options=QUICK).records[0]
    assert len(again.heard) == data.splits["test"]
    whole = run_evaluation([recognizer(lossy)], data, options=QUICK).records[0]
    assert continued.result.inputs_sha256 == whole.result.inputs_sha256
    assert str(continued.pairs.to_pylist()) == str(whole.pairs.to_pylist())


@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_the_work_and_find_the_same(
    data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path, size: int
) -> None:
    whole = run_evaluation([recognizer(lossy)], data, options=QUICK).records[0]
    ears = [TableTranscriber(lossy) for _ in range(size)]

    def work(member: object) -> list[PairRecord]:
        rank = member.rank  # type: ignore[attr-defined]
        found = run_evaluation(
            [Recognizer(ears[rank])],
            data,
            cache=tmp_path,
            options=QUICK,
            processes=member,
            out=tmp_path / "run",  # type: ignore[arg-type]
        )
        return found.records

    found = Crew(size).run(work)
    assert [len(records) for records in found] == [1] + [0] * (size - 1)
    assert found[0][0].result.rates == whole.result.rates
    heard = [key for ear in ears for key in ear.heard]
    assert len(heard) == len(set(heard)) == data.splits["test"] * 3 / 2
    assert found[0][0].result.timing.processes == size


def test_several_processes_need_a_cache(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    class Two:
        rank, size = 0, 2

    with pytest.raises(UsageError, match="need a cache"):
        run_evaluation([recognizer(lossy)], data, processes=Two())  # type: ignore[arg-type]


def test_one_recognizer_that_fails_does_not_lose_the_other(
    data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path
) -> None:
    class Broken(TableTranscriber):
        def transcribe(self, clips: object, *, language: str) -> list[Transcript]:
            raise ValueError("not today")

    done = run_evaluation([recognizer(lossy), Recognizer(Broken({}, "broken"))], data, out=tmp_path, options=QUICK)
    assert [record.result.system.name for record in done.records] == ["table"]
    assert [(f.system, f.config) for f in done.failures] == [("broken", "en_test")]
    assert "not today" in str(done.failures[0].error)
    with pytest.raises(EvaluationFailed, match="1 run failed, 1 did not"):
        evaluate_rir_mega([recognizer(lossy), Recognizer(Broken({}, "broken"))], data=data, resamples=10)
    with pytest.raises(ModelError, match="not today"):
        evaluate_rir_mega(Recognizer(Broken({}, "broken")), data=data, resamples=10)


def test_a_front_end_that_fails_loses_nothing_else(
    data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path
) -> None:
    class Torn(Halver):
        def enhance(self, clips: object) -> list[np.ndarray]:
            raise RuntimeError("torn")

    ear = TableTranscriber(lossy)
    done = run_evaluation([Recognizer(ear), Recognizer(ear, Torn())], data, out=tmp_path, options=QUICK)
    assert [r.result.system.name for r in done.records] == ["table"]
    assert "torn" in str(done.failures[0].error)
    assert list((tmp_path / "samples").rglob("reverb.flac"))
    assert not list((tmp_path / "samples").rglob("halver.flac"))


def test_a_front_end_is_scored_where_its_plain_recognizer_fails(data: RirMegaData) -> None:
    clean, reverb = truth(data)

    class Picky(TableTranscriber):
        def transcribe(self, clips: list[np.ndarray], *, language: str) -> list[Transcript]:
            if any(key_of(clip) in reverb for clip in clips):
                raise ValueError("too loud")
            return super().transcribe(clips, language=language)

    ear = Picky(halved(data, {**clean, **reverb}))
    done = run_evaluation([Recognizer(ear), Recognizer(ear, Halver())], data, options=QUICK)
    assert [f.system for f in done.failures] == ["table"]
    (record,) = done.records
    assert record.result.system.name == "halver | table"
    assert record.result.effect is None


def test_a_part_takes_whole_utterances_and_lies_apart(
    data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path
) -> None:
    done = run_evaluation([recognizer(lossy)], data, out=tmp_path, options=replace(QUICK, limit=7))
    assert done.out == tmp_path / "partial-first-7"
    result = done.records[0].result
    assert (result.data.n, result.data.utterances, result.data.partial) == (8, 4, True)
    assert result.data.n_total == data.splits["test"]
    half = run_evaluation([recognizer(lossy)], data, options=replace(QUICK, fraction=0.5)).records[0].result
    assert half.data.utterances == math.ceil(0.5 * len({p.utterance_id for p in data.pairs("test")}))


def test_what_the_arms_hold(data: RirMegaData) -> None:
    arms = PairArms(data)
    cells = [("en", "clean"), ("en", "reverb")]
    for cell in cells:
        spoken = list(arms.spoken(*cell))
        assert [q.id for q in spoken] == [q.id for q in arms.expected(cell)]
        assert [q.text for q in spoken] == [q.text for q in arms.expected(cell)]
        middle = list(arms.spoken(*cell, start=3, stop=5))
        assert [q.audio for q in middle] == [q.audio for q in spoken[3:5]]
    by_id = {pair.sample_id: pair for pair in data.pairs("test")}
    for query in arms.spoken("en", "reverb"):
        assert query.audio == by_id[query.id].reverb_audio
    with pytest.raises(UnknownNameError, match="unknown split 'train'"):
        PairArms(data, split="train")
    with pytest.raises(UsageError, match="fraction 0"):
        PairArms(data, fraction=0.0)
    with pytest.raises(UnknownNameError, match="cell"):
        next(arms.spoken("en", "loud"))


def test_an_utterance_with_two_texts_is_refused(data: RirMegaData) -> None:
    class Twisted:
        splits, edges = data.splits, data.edges

        def pairs(self, split: str, start: int = 0, stop: int | None = None) -> object:
            for i, pair in enumerate(data.pairs(split, start, stop)):
                yield replace(pair, text=f"{pair.text} {i}")

    with pytest.raises(DataError, match="has two texts"):
        PairArms(Twisted())  # type: ignore[arg-type]


def test_ready_transcripts(data: RirMegaData, tmp_path: Path) -> None:
    lines = []
    for pair in data.pairs("test"):
        lines.append({"id": pair.sample_id, "condition": "reverb", "text": pair.text if pair.rt60_s < 0.4 else "no"})
    clean = {pair.utterance_id: pair.text for pair in data.pairs("test")}
    lines += [{"id": id_, "condition": "clean", "text": text} for id_, text in clean.items()]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (made,) = load_recognizers([f"mine=transcripts:{tmp_path / 'mine.jsonl'}"], ["spectral-gate"])
    result = only(run_evaluation([made], data, options=QUICK).records).result
    assert result.system.name == "mine"
    assert result.rates["wer"].clean.value == 0
    assert result.rates["wer"].reverb.value > 0
    assert result.arm_timing == {}
    assert result.timing.rtfx is None


def test_recognizers_are_written_as_transcribers_with_and_without_front_ends() -> None:
    made = load_recognizers(["whisper-tiny.en", "other=whisper-base"], ["spectral-gate", "none"])
    assert [one.name for one in made] == [
        "whisper-tiny.en", "spectral gate | whisper-tiny.en", "other", "spectral gate | other",
    ]  # fmt: skip
    assert made[1].listener is made[0].listener
    with pytest.raises(UsageError, match="two recognizers are called 'whisper-base'"):
        load_recognizers(["whisper-base", "faster-whisper:whisper-base"])
    with pytest.raises(UnknownNameError, match="Did you mean"):
        load_recognizers(["whisper-bass"])
    with pytest.raises(UnknownNameError, match="front end"):
        load_recognizers(["whisper-base"], ["wep"])
    with pytest.raises(UsageError, match="no letter or digit"):
        check_recognizers([recognizer({}, "!!!")])
    with pytest.raises(UsageError, match="no transcriber"):
        check_recognizers([])


def test_the_published_settings_are_recorded() -> None:
    (made,) = load_recognizers(["whisper-tiny.en"], preset="whisper-rir-mega")
    settings = made.transcriber.spec.settings
    assert (settings["beam_size"], settings["best_of"], settings["compute_type"]) == (5, 5, "float32")
    assert made.preset == "whisper-rir-mega"
    with pytest.raises(UsageError, match="cannot decode as"):
        load_recognizers(["ctc:org/model"], preset="whisper-rir-mega")


def test_options_are_checked(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    with pytest.raises(UsageError, match="0 resamples"):
        Options(resamples=0)
    with pytest.raises(UsageError, match="unexpected keyword argument 'dept'"):
        evaluate_rir_mega(recognizer(lossy), data=data, dept=1)
    with pytest.raises(UnknownNameError, match="normalizer"):
        run_evaluation([recognizer(lossy)], data, options=Options(normalizer="wisper"))

    class German(TableTranscriber):
        def supports(self, language: str) -> bool:
            return language == "de"

    with pytest.raises(DataError, match="no transcriber supports en"):
        run_evaluation([Recognizer(German({}))], data)


def test_parameters_are_counted_from_the_weights(
    data: RirMegaData, lossy: dict[str, str | Transcript], tmp_path: Path
) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [3, 5], "data_offsets": [0, 60]}, "__metadata__": {}}).encode()
    content = np.uint64(len(header)).tobytes() + header + bytes(60)
    (tmp_path / "model.safetensors").write_bytes(content)
    ear = TableTranscriber(lossy, weights=tmp_path)
    result = only(run_evaluation([Recognizer(ear)], data, options=QUICK).records).result
    assert result.system.parameters == 15


def test_a_class_of_ones_own_is_timed_alone(data: RirMegaData, lossy: dict[str, str | Transcript]) -> None:
    done = run_evaluation([recognizer(lossy)], data, options=replace(QUICK, latency=3))
    result = done.records[0].result
    assert result.timing.latency is not None
    assert result.timing.latency.n == 3
    assert result.measured is not None
    assert result.measured.peak_memory_mb > 10


class TwoLanguages:
    """The same pairs, every third utterance in Chinese."""

    manifest_sha256, revision = "", "two"

    def __init__(self, data: RirMegaData) -> None:
        self._data, self.splits, self.edges, self.strata = data, data.splits, data.edges, data.strata
        self.recipe = {**data.recipe, "subsets": {"a": "en", "b": "zh"}}

    @staticmethod
    def _language(utterance_id: str) -> str:
        return "zh" if int(utterance_id[-2:]) % 3 == 0 else "en"

    def pairs(self, split: str, start: int = 0, stop: int | None = None) -> Iterator[PairRow]:
        for pair in self._data.pairs(split, start, stop):
            chinese = self._language(pair.utterance_id) == "zh"
            yield replace(pair, language="zh", text="银行利率四十") if chinese else pair

    def arm(self, split: str, arm: Arm, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        return (spoken_arm(pair, arm) for pair in self.pairs(split, start, stop))


def test_languages_are_apart_and_chinese_is_counted_by_character(data: RirMegaData) -> None:
    both = TwoLanguages(data)

    class Bilingual(TableTranscriber):
        def supports(self, language: str) -> bool:
            return True

    table: dict[str, str | Transcript] = {}
    for pair in both.pairs("test"):
        table[key_of(decode_audio(pair.clean_audio, "c")[0])] = pair.text
        table[key_of(decode_audio(pair.reverb_audio, "r")[0])] = pair.text[:-1] if pair.language == "zh" else pair.text
    done = run_evaluation([Recognizer(Bilingual(table)), recognizer(table, "english")], both, options=QUICK)
    found = {(r.result.system.name, r.result.data.config): r for r in done.records}
    assert set(found) == {("table", "en_test"), ("table", "zh_test"), ("english", "en_test")}
    english, chinese = (found["table", config].result for config in ("en_test", "zh_test"))
    assert english.data.n + chinese.data.n == data.splits["test"]
    assert (english.main_metric, chinese.main_metric) == ("wer", "cer")
    assert "wer" not in chinese.rates
    assert set(chinese.kinds) == {"char"}
    assert english.rates["wer"].delta.absolute.value == 0
    assert chinese.rates["cer"].delta.absolute.value == pytest.approx(1 / 6)
    assert chinese.kinds["char"]["deletions"].change.value == pytest.approx(1 / 6)
    row = found["table", "zh_test"].pairs.to_pylist()[0]
    assert math.isnan(row["word_reference_length"])
    assert row["char_reference_length"] == 6
    # The whisper normalizer is for English: elsewhere it is the standard one.
    auto = run_evaluation([Recognizer(Bilingual(table))], both, options=replace(QUICK, normalizer="auto")).records
    assert {r.result.data.language: r.result.system.normalizer for r in auto} == {"en": "whisper", "zh": "default"}
    assert len(summary_table(done.records).split("\n\n")) == 2


def test_the_published_set_has_bins_of_the_publishers_values(data: RirMegaData, tmp_path: Path) -> None:
    rows = []
    for i, pair in enumerate(data.pairs("test")):
        for arm, content in (("clean", pair.clean_audio), ("reverb", pair.reverb_audio)):
            (tmp_path / f"{arm}-{i}.flac").write_bytes(content)
        known = {"rir_RT60_T30_s": 0.2 + 0.02 * i, "rir_DRR_dB": -float(i)} if i else {}
        row = {"sample_id": f"s{i:03d}", "text_ref": pair.text, "utterance_id": pair.utterance_id, "split": "test"}
        rows.append({**row, "clean": f"clean-{i}.flac", "reverb": f"reverb-{i}.flac", **known})
    (tmp_path / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    clean, reverb = truth(data)
    wrong = {key: f"{text} more" for key, text in reverb.items()}
    record = only(run_evaluation([recognizer({**clean, **wrong})], open_pairs(str(tmp_path)), options=QUICK).records)
    result = record.result
    assert set(result.data.edges) == {"source_rt60_s", "source_drr_db"}
    assert result.by_rt60[-1].known is False
    assert result.by_rt60[-1].pairs == 1
    assert sum(b.pairs for b in result.by_rt60) == len(rows)
    assert result.kinds["word"]["insertions"].change.value == pytest.approx(result.main.delta.absolute.value)
    assert record.pairs.to_pylist()[1]["source_rt60_s"] == pytest.approx(0.22)
    page = write_report(_written(tmp_path / "run", record), tmp_path / "r.html").read_text(encoding="utf-8")
    assert "RT60 and DRR are the publisher" in page
    assert "not known" in page


def _written(folder: Path, record: PairRecord) -> Path:
    write_record(folder, record)
    return folder
