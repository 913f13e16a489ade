"""Takes, ratings, and the folder that they go to."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import (
    AudioError,
    DataError,
    ModelError,
    RecipeMismatchError,
    SynthesisError,
    UnknownNameError,
    UsageError,
)
from squtr.harness.cli.rating import normalized, rate_of
from squtr.harness.protocols import Transcript
from squtr.loaders.audio import decode_audio, pcm_sha256
from squtr.loaders.quality.decisions import passes_error_rate
from squtr.loaders.records import SAMPLE_RATE, Query
from squtr.loaders.synthesis.candidates import RatedTake, Rating, Take, best_take, plan_takes, rate_takes, speak_takes
from squtr.loaders.synthesis.speaking import choose_voice
from squtr.loaders.synthesis.speech_folder import SpeechFolder, SpeechRow, _file_name
from squtr.loaders.synthesis.synthesizing import Speaking, choose_voices, synthesize

from .speech_for_tests import HummingSynthesizer, ListTranscriber, as_it_is, queries, rating, word_rate

QUERY = Query("q1", "tiny", "en", "what is the answer")


def take(value: float = 0.1) -> Take:
    return Take("a", 0, np.full(10, value, dtype=np.float32))


def test_plan_by_seed_keeps_the_voice() -> None:
    plan = plan_takes(QUERY, ["b", "a", "c"], 3, vary="seed", seed=1)
    assert {voice for voice, _ in plan} == {choose_voice(QUERY, ["a", "b", "c"], 1)}
    assert len({seed for _, seed in plan}) == 3
    assert plan == plan_takes(QUERY, ["c", "b", "a"], 3, vary="seed", seed=1)
    # Fewer takes are the first of more, so raising the number keeps what was there.
    assert plan[:2] == plan_takes(QUERY, ["a", "b", "c"], 2, vary="seed", seed=1)
    assert plan != plan_takes(QUERY, ["a", "b", "c"], 3, vary="seed", seed=2)


def test_plan_by_voice_starts_with_the_keyed_voice() -> None:
    plan = plan_takes(QUERY, ["a", "b", "c", "d"], 3, vary="voice")
    assert plan[0][0] == choose_voice(QUERY, ["a", "b", "c", "d"])
    assert len({voice for voice, _ in plan}) == 3
    assert len(plan_takes(QUERY, ["a", "b"], 3, vary="voice")) == 2
    with pytest.raises(UsageError, match="number of candidates is 0"):
        plan_takes(QUERY, ["a"], 0, vary="seed")
    with pytest.raises(UsageError, match="no voice"):
        plan_takes(QUERY, [], 1, vary="voice")


def test_first_voice_is_uniform() -> None:
    voices = list("abcd")
    drawn = Counter(plan_takes(Query(f"q{i}", "s", "en", "?"), voices, 1, vary="voice")[0][0] for i in range(2000))
    # 500 each; five standard deviations of a binomial are 97.
    assert all(abs(drawn[voice] - 500) < 97 for voice in voices)


@given(st.lists(st.one_of(st.just(math.nan), st.floats(0, 2)), min_size=1, max_size=6))
def test_best_take_is_the_first_of_the_lowest(rates: list[float]) -> None:
    best = best_take([RatedTake(take(), rate) for rate in rates])
    known = [rate for rate in rates if not math.isnan(rate)]
    if known:
        assert rates[best] == min(known)
        assert min(known) not in rates[:best]
    else:
        assert best == 0


def test_takes_that_fail_or_repeat_are_left_out() -> None:
    engine = HummingSynthesizer()
    takes = speak_takes(engine, QUERY, QUERY.text, [("a", 1), ("a", 1), ("b", 1)])
    assert [t.voice for t in takes] == ["a", "b"]
    assert all(abs(np.abs(t.samples).max() - 0.7) < 1e-6 for t in takes)
    with pytest.raises(SynthesisError, match=r"query 'q1' of 'tiny' cannot be spoken.*unspeakable"):
        speak_takes(engine, QUERY, "unspeakable", [("a", 1), ("b", 1)])


def test_rates_of_several_queries_in_one_call() -> None:
    transcriber = ListTranscriber(["one two", "one three", Transcript("", "out of memory"), "5 pounds"])
    rated = rate_takes(
        [[take(0.1), take(0.2)], [], [take(0.3), take(0.4)]],
        ["one two", "nothing", "£5"],
        "en",
        [Rating(transcriber, "listed", word_rate, as_it_is)],
    )
    assert transcriber.calls == [4]
    assert [[r.error_rate for r in row] for row in rated[:2]] == [[0.0, 0.5], []]
    assert math.isnan(rated[2][0].error_rate)
    assert rated[2][0].error == "out of memory"
    # What is written counts, not the words that the engine got.
    assert rated[2][1].error_rate == 1.0


READ_WRONG = [
    ("en", "10^6 bacteria", "106 bacteria"),
    ("en", "how many hours does it take for one cell to grow to 10^6 bacteria in a warm and rich broth", "how many "
     "hours does it take for one cell to grow to 106 bacteria in a warm and rich broth"),
    ("en", "a $5M deal", "a 5 dollars M deal"),
    ("en", "is 1,250 enough for a family of four in a small town", "is 1.250 enough for a family of four in a town"),
    ("zh", "1㎡", "一"),
    ("zh", "血压120/80正常吗", "血压正常吗"),
    ("zh", "请问在家里量出来的血压是120/80的话算不算正常", "请问在家里量出来的血压是128的话算不算正常"),
    ("es", "¿cuánto son 2,5 kilos de arroz integral en el mercado?", "¿cuánto son 25 kilos de arroz integral en el "
     "mercado?"),
]  # fmt: skip
READ_RIGHT = [
    ("en", "a $5M deal", "a $5 million deal"),
    ("en", "a 5 kg parcel", "a five kilogram parcel"),
    ("en", "call 1-800-555-0199 today", "Call 1-800-555-0199 today."),
    ("en", "is 50% of 1,234 enough", "is fifty percent of 1234 enough?"),
    ("en", "at 7:05 on the 1st of May", "at 7.05 on the first of May"),
    ("zh", "血压120/80正常吗", "血压120比80正常吗"),
    ("zh", "我想买一个1㎡左右的书桌放在家里的窗边", "我想买一个一平方米左右的书桌放在家里的窗边"),
    ("zh", "在1993-1996期间", "在一九九三到一九九六期间"),
    ("zh", "37.5℃发烧吗", "三十七点五摄氏度发烧吗"),
    ("zh", "2个人", "两个人"),
    ("es", "¿son 1.234 € al año?", "¿son mil doscientos treinta y cuatro euros al año?"),
]


@pytest.mark.parametrize(("language", "written", "transcript"), READ_WRONG)
def test_what_was_read_wrong_is_not_passed(language: str, written: str, transcript: str) -> None:
    assert not passes(language, written, transcript)


@pytest.mark.parametrize(("language", "written", "transcript"), READ_RIGHT)
def test_what_was_read_right_is_passed(language: str, written: str, transcript: str) -> None:
    assert passes(language, written, transcript)


def passes(language: str, written: str, transcript: str) -> bool:
    by = Rating(ListTranscriber([transcript]), "listed", rate_of, normalized)
    ((rated,),) = rate_takes([[take()]], [written], language, [by])
    return passes_error_rate(rated.error_rate) and not rated.missed


def test_of_two_transcribers_the_worse_rate_counts() -> None:
    first = Rating(ListTranscriber(["one two", "one two", "one two"]), "first", word_rate, as_it_is)
    second = Rating(ListTranscriber(["one three", "one two", Transcript("", "broken")]), "second", word_rate, as_it_is)
    (rated,) = rate_takes([[take(0.1), take(0.2), take(0.3)]], ["one two"], "en", [first, second])
    assert [r.rates for r in rated[:2]] == [(0.0, 0.5), (0.0, 0.0)]
    assert [r.error_rate for r in rated[:2]] == [0.5, 0.0]
    assert (rated[0].transcript, rated[2].error) == ("one three", "broken")
    assert math.isnan(rated[2].error_rate)
    assert best_take(rated) == 1


def test_a_take_that_misses_a_number_comes_after_one_that_does_not() -> None:
    assert best_take([RatedTake(take(), 0.1, missed=("6",)), RatedTake(take(), 0.2)]) == 1
    with pytest.raises(UsageError, match="without a transcriber"):
        rate_takes([[take()]], ["one"], "en", [])


def test_a_transcriber_that_loses_clips_is_an_error() -> None:
    class Lossy(ListTranscriber):
        def transcribe(self, clips: object, *, language: str) -> list[Transcript]:
            return []

    with pytest.raises(ModelError, match="returned 0 transcripts for 1 clips"):
        rate_takes([[take()]], ["a"], "en", [Rating(Lossy([]), "lossy", word_rate, as_it_is)])


def speaking(*answers: str | Transcript, n: int = 3, engine: HummingSynthesizer | None = None) -> Speaking:
    return Speaking(engine or HummingSynthesizer(), [rating(*answers)] if answers else (), {}, n, "seed")


def test_the_lowest_rate_is_kept_and_stored(tmp_path: Path) -> None:
    (query,) = queries(1)
    wrong, right = "something else", query.text
    engine = HummingSynthesizer()
    (row,) = synthesize([query], SpeechFolder(tmp_path), speaking(wrong, right, right, engine=engine))
    assert row.rates == [1.0, 0.0, 0.0]
    assert row.tts_error_rate == 0.0
    assert row.seed == engine.asked[1][2]
    assert row.transcriber == "list"
    content = (tmp_path / row.file).read_bytes()
    samples, rate = decode_audio(content, "clip")
    assert rate == SAMPLE_RATE
    assert samples.size / rate == pytest.approx(row.duration_s, abs=1e-3)
    assert row.sha256 == pcm_sha256(content, "clip")


def test_without_a_transcriber_one_take_is_made(tmp_path: Path) -> None:
    engine = HummingSynthesizer()
    (row,) = synthesize(queries(1), SpeechFolder(tmp_path), speaking(engine=engine))
    assert (len(engine.asked), row.tts_error_rate, row.transcriber, row.candidates) == (1, None, "", 1)


def test_spoken_form_is_given_and_stored(tmp_path: Path) -> None:
    pytest.importorskip("num2words")
    query = Query("q1", "tiny", "en", "Is 5 kg heavy?")
    engine = HummingSynthesizer()
    (row,) = synthesize([query], SpeechFolder(tmp_path / "words"), speaking(engine=engine))
    assert row.text == "Is 5 kg heavy?"
    assert engine.asked[0][0] == row.spoken_text == "Is five kilograms heavy?"
    as_written = Speaking(engine, in_words=False)
    (row,) = synthesize([query], SpeechFolder(tmp_path / "written"), as_written)
    assert engine.asked[-1][0] == row.spoken_text == "Is 5 kg heavy?"


def test_what_cannot_be_spoken_or_heard_has_a_row(tmp_path: Path) -> None:
    spoken = [
        Query("mute", "tiny", "en", "?!"),
        Query("bad", "tiny", "en", "unspeakable words"),
        Query("deaf", "tiny", "en", "some words"),
        Query("sign", "tiny", "en", "a coin of 5¢"),
    ]
    rows = synthesize(spoken, SpeechFolder(tmp_path), speaking(Transcript("", "broken"), n=1))
    assert "nothing to say in '?!'" in rows[0].failure
    assert "unspeakable" in rows[1].failure
    assert rows[3].failure == "no rule says how ¢ is read in 'a coin of 5¢'."
    assert (rows[2].failure, rows[2].tts_error_rate, rows[2].transcript_error) == ("", None, "broken")


def test_a_clip_that_was_not_transcribed_is_tried_again(tmp_path: Path) -> None:
    query = Query("q1", "tiny", "en", "some words")
    (failed,) = synthesize([query], SpeechFolder(tmp_path / "again"), speaking(Transcript("", "no answer"), n=1))
    assert (failed.transcript_error, failed.tts_error_rate) == ("no answer", None)
    (again,) = synthesize([query], SpeechFolder(tmp_path / "again"), speaking("some words", n=1))
    (right,) = synthesize([query], SpeechFolder(tmp_path / "right"), speaking("some words", n=1))
    assert again == right
    assert again.tts_error_rate == 0.0


def test_a_stopped_run_continues_to_the_same_bytes(tmp_path: Path) -> None:
    wanted = queries(10)
    whole = SpeechFolder(tmp_path / "whole")
    synthesize(wanted, whole, speaking())

    class Stops(HummingSynthesizer):
        def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0):  # type: ignore[no-untyped-def]
            if len(self.asked) == 6:
                raise KeyboardInterrupt
            return super().synthesize(text, voice=voice, language=language, seed=seed)

    with pytest.raises(KeyboardInterrupt):
        synthesize(wanted, SpeechFolder(tmp_path / "stopped"), speaking(engine=Stops()))
    journal = tmp_path / "stopped" / "journal.jsonl"
    # Killed while it wrote a line, too.
    journal.write_bytes(journal.read_bytes() + b'{"_id": "q4", "subs')
    rest = HummingSynthesizer()
    told: list[int] = []
    synthesize(wanted, SpeechFolder(tmp_path / "stopped"), speaking(engine=rest), told.append)
    assert len(rest.asked) == 6
    assert sum(told) == 10
    for path in sorted(p.relative_to(whole.root) for p in whole.root.rglob("*") if p.is_file()):
        assert (whole.root / path).read_bytes() == (tmp_path / "stopped" / path).read_bytes(), path


def test_only_what_changed_is_spoken_again(tmp_path: Path) -> None:
    first = queries(3)
    synthesize(first, SpeechFolder(tmp_path), speaking())
    changed = [first[0], Query("q1", "tiny", "en", "another text"), first[2]]
    (tmp_path / SpeechFolder(tmp_path).rows()["tiny", "q2"].file).unlink()
    engine = HummingSynthesizer()
    rows = synthesize(changed, SpeechFolder(tmp_path), speaking(engine=engine))
    assert [text for text, _, _ in engine.asked] == ["another text", first[2].text]
    assert [row.text for row in rows] == [query.text for query in changed]
    assert SpeechFolder(tmp_path).rows()["tiny", "q1"].text == "another text"


def test_other_settings_need_another_folder(tmp_path: Path) -> None:
    synthesize(queries(1), SpeechFolder(tmp_path), speaking())
    with pytest.raises(RecipeMismatchError, match="synthesizer"):
        synthesize(queries(1), SpeechFolder(tmp_path), speaking(engine=HummingSynthesizer("2")))
    with pytest.raises(RecipeMismatchError, match="seed = 0, now it is 1"):
        synthesize(
            queries(1), SpeechFolder(tmp_path), Speaking(HummingSynthesizer(), candidates=3, vary="seed", seed=1)
        )
    with pytest.raises(RecipeMismatchError, match="en = "):
        synthesize(queries(1), SpeechFolder(tmp_path), Speaking(HummingSynthesizer(), (), {"en": ["a"]}, 3, "seed"))
    # Another language is no other setting.
    synthesize(queries(1, "es", "otra"), SpeechFolder(tmp_path), speaking())
    assert len(SpeechFolder(tmp_path).rows()) == 2


def test_broken_journals_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no synthesized speech"):
        SpeechFolder(tmp_path).rows()
    synthesize(queries(1), SpeechFolder(tmp_path), speaking())
    journal = tmp_path / "journal.jsonl"
    journal.write_text("{}\n" + journal.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(DataError, match=r"journal.jsonl, line 1: Field required"):
        SpeechFolder(tmp_path).rows()
    (tmp_path / "synthesis.json").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match=r"synthesis.json is no JSON object"):
        synthesize(queries(1), SpeechFolder(tmp_path), speaking())


def test_a_clip_outside_the_folder_is_refused(tmp_path: Path) -> None:
    row = SpeechRow(_id="q", subset="s", language="en", text="t", spoken_text="t", file="../x.flac")
    with pytest.raises(AudioError, match="outside"):
        SpeechFolder(tmp_path).clip(row)


@given(st.lists(st.text(max_size=130), unique=True, max_size=20))
def test_file_names_are_safe_and_differ(ids: list[str]) -> None:
    names = [_file_name(text) for text in ids]
    # Also where the file system does not tell capitals apart.
    assert len({name.lower() for name in names}) == len(ids)
    assert all(name and "/" not in name and "." not in name and len(name.encode()) <= 100 for name in names)


def test_voices_are_picked_by_name() -> None:
    engine = HummingSynthesizer()
    assert choose_voices(engine, [], ["en"]) == {"en": ["a", "b", "c"]}
    assert choose_voices(engine, ["c", "a"], ["en", "es"]) == {"en": ["a", "c"], "es": ["a", "c"]}
    with pytest.raises(UnknownNameError, match="unknown voice of hum for en: 'aa'"):
        choose_voices(engine, ["aa"], ["en"])


def test_the_index_names_files_that_json_can_carry(tmp_path: Path) -> None:
    odd = Query("../ä/ B", "tiny", "en", "what is it")
    (row,) = synthesize([odd], SpeechFolder(tmp_path), speaking())
    assert json.loads(row.line())["_id"] == "../ä/ B"
    assert (tmp_path / row.file).is_file()
    assert (tmp_path / row.file).resolve().is_relative_to(tmp_path.resolve())
