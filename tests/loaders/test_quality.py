"""The gate, stage 1, decisions, marks, the report and the review page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import AudioError, DataError, ModelError, UnknownNameError, UsageError
from squtr.loaders.audio import encode_flac, resample
from squtr.loaders.quality.decisions import Decision, QualityLimits, decide, passes_error_rate, write_decisions
from squtr.loaders.quality.judges import Clip
from squtr.loaders.quality.measures import ClipMeasures, gate, measure_clip
from squtr.loaders.quality.report import REASONS, quality_report, quality_table
from squtr.loaders.quality.review import write_review
from squtr.loaders.quality.review_marks import MARKS, Mark, add_marks, read_marks_file
from squtr.loaders.quality.verdicts import JudgeError, Opinion, Verdict, judged, parse_verdict
from squtr.loaders.records import Query, Samples
from squtr.loaders.sources.recorded import Recordings
from squtr.loaders.synthesis.speech_folder import SpeechFolder
from squtr.loaders.synthesis.synthesizing import Speaking, synthesize

from .speech_for_tests import HummingSynthesizer, hum, queries, rating

TEXT = "what is the answer to the question"


def reasons(samples: Samples, text: str = TEXT, language: str = "en") -> tuple[str, ...]:
    return gate(measure_clip(samples, text), language)


def test_good_speech_passes_the_gate() -> None:
    measures = measure_clip(hum(TEXT), TEXT)
    assert gate(measures, "en") == ()
    assert measures.active_s == pytest.approx(measures.duration_s, rel=0.15)
    assert measures.rate == pytest.approx(28 / measures.active_s)
    assert measures.bandwidth_hz > 11_000
    # The one sample at the peak is no clipping.
    assert measures.clipped_share == 0.0


def test_what_is_broken_on_purpose_is_named() -> None:
    good = hum(TEXT)
    assert "clipped" in reasons(np.clip(good * 6, -0.5, 0.5))
    assert "cut_end" in reasons(good[: good.size // 2])
    assert "cut_end" in reasons(np.pad(good[: good.size // 2], (0, 3000)))
    assert "cut_start" in reasons(good[good.size // 2 :])
    assert "silence" in reasons(np.pad(good, (48_000, 48_000)))
    assert "dc" in reasons(good * 0.5 + 0.1)
    assert "narrow_band" in reasons(resample(resample(good, 24_000, 8_000), 8_000, 24_000))
    assert "too_fast" in reasons(good[::4].copy())
    assert "too_slow" in reasons(np.repeat(good, 4))
    assert reasons(np.zeros(1000, dtype=np.float32)) == ("silent",)
    assert reasons(np.zeros(0, dtype=np.float32)) == ("silent",)


def test_an_engine_that_ends_softly_is_held_to_it() -> None:
    measures = replace(measure_clip(hum(TEXT), TEXT), end_db=-14.0)
    assert gate(measures, "en") == gate(measures, "en", engine="espeak") == ()
    assert gate(measures, "en", engine="kokoro") == ("cut_end",)


def test_rates_are_of_the_language_and_not_of_one_word() -> None:
    chinese = "什么时候可以退货呢请告诉我"
    clip = hum(chinese, seconds_per_unit=0.2)
    assert reasons(clip, chinese, "zh") == ()
    assert "too_slow" in reasons(clip, chinese, "en")
    assert reasons(clip, chinese, "ja") == ()
    assert "too_slow" not in reasons(np.repeat(hum("NBA"), 3), "NBA")


@given(st.floats(0.001, 1.0))
def test_measures_do_not_depend_on_the_level(gain: float) -> None:
    good = hum(TEXT)
    one, other = measure_clip(good, TEXT), measure_clip((good * np.float32(gain)).astype(np.float32), TEXT)
    for name in ClipMeasures.__slots__:
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-3, abs=1e-4), name


def test_stage_one_is_strict_above_the_limit() -> None:
    assert passes_error_rate(0.30)
    assert passes_error_rate(3 / 10)
    assert not passes_error_rate(math.nextafter(0.30, 1))
    assert not passes_error_rate(math.nan)


def verdict(score: float = 4.5, *, fatal: bool = False, artifacts: tuple[str, ...] = ()) -> Verdict:
    return Verdict.model_validate(
        {
            "analysis_trace": {
                "text_alignment": "Exact Match",
                "detected_artifacts": artifacts,
                "prosody_assessment": "Natural",
            },
            "fatal_error_flag": fatal,
            "reasoning_summary": "fine",
            "final_quality_score": score,
        }
    )


@pytest.mark.parametrize(
    ("opinions", "status", "why"),
    [
        ([], "accepted", ()),
        ([verdict(4.0), verdict(5.0)], "accepted", ()),
        ([verdict(3.9), verdict(5.0)], "rejected", ("judge_score",)),
        ([verdict(5.0), verdict(5.0, fatal=True)], "rejected", ("judge_fatal",)),
        ([verdict(4.5, artifacts=("Truncation",)), verdict()], "flagged", ("judge_inconsistent",)),
        ([verdict(2.0, artifacts=("Truncation",)), verdict()], "rejected", ("judge_score",)),
        ([verdict(2.1, artifacts=("truncated end",)), verdict()], "rejected", ("judge_score", "judge_inconsistent")),
        ([verdict(4.5, artifacts=("None",)), verdict()], "accepted", ()),
        ([verdict(), JudgeError("no answer")], "flagged", ("judge_error",)),
        ([verdict(1.0), JudgeError("no answer")], "rejected", ("judge_score", "judge_error")),
        ([JudgeError("a"), JudgeError("b")], "flagged", ("judge_error",)),
    ],
)
def test_two_judges_decide(opinions: list[Opinion], status: str, why: tuple[str, ...]) -> None:
    assert judged(opinions) == (status, why)


def reply(**changes: object) -> str:
    return json.dumps({**verdict().model_dump(mode="json"), **changes})


def test_the_json_alone_is_a_verdict() -> None:
    assert parse_verdict(reply()) == verdict()
    assert parse_verdict(f"```json\n{reply()}\n```") == verdict()
    assert parse_verdict(reply(final_quality_score=5)) == verdict(5.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "4.5",
        f"Here it is: {reply()}",
        reply()[:-1],
        reply(final_quality_score="4.5"),
        reply(final_quality_score=0.9),
        reply(final_quality_score=5.1),
        reply(final_quality_score=None),
        reply(final_quality_score=True),
        reply(fatal_error_flag="false"),
        reply(fatal_error_flag=0),
        reply(reasoning_summary=None),
        reply(analysis_trace={}),
        reply(analysis_trace={"text_alignment": "Yes", "detected_artifacts": [], "prosody_assessment": "Natural"}),
        reply(final_quality_score=float("nan")),
    ],
)
def test_anything_else_is_an_error_and_never_a_score(text: str) -> None:
    opinion = parse_verdict(text)
    assert isinstance(opinion, JudgeError)
    assert opinion.reason.startswith("the reply is not the JSON")
    assert judged([opinion]) == ("flagged", ("judge_error",))


class ListJudge:
    """Gives opinions by query text; remembers what it got."""

    def __init__(self, name: str, opinions: dict[str, Opinion] | None = None, fallback: Opinion | None = None) -> None:
        self.name = name
        self.opinions = opinions or {}
        self.fallback = fallback or verdict()
        self.got: list[str] = []

    def judge(self, clip: Clip) -> Opinion:
        self.got.append(clip.text)
        return self.opinions.get(clip.text, self.fallback)


@pytest.fixture
def folder(tmp_path: Path) -> SpeechFolder:
    """Six queries: q0 to q3 are understood well, q4 badly, q5 cannot be spoken."""
    wanted = [*queries(5), Query("q5", "tiny", "en", "unspeakable")]
    answers = [query.text for query in wanted[:4]] + ["something else"]
    synthesize(wanted, SpeechFolder(tmp_path / "speech"), Speaking(HummingSynthesizer(), [rating(*answers)]))
    return SpeechFolder(tmp_path / "speech")


def status_of(decisions: list[Decision]) -> dict[str, tuple[str, str]]:
    return {decision.row.id: (decision.status, decision.stage) for decision in decisions}


def test_stages_in_order(folder: SpeechFolder) -> None:
    texts = [query.text for query in queries(5)]
    cut = folder.rows()["tiny", "q3"]
    folder.clip(cut).write_bytes(encode_flac(hum(cut.text)[:5000], "cut"))
    one = ListJudge("one", {texts[1]: verdict(3.0)})
    two = ListJudge("two", {texts[2]: JudgeError("no answer")})
    decisions = decide(folder, judges=[one, two])
    assert status_of(decisions) == {
        "q0": ("accepted", ""),
        "q1": ("rejected", "judges"),
        "q2": ("flagged", "judges"),
        "q3": ("rejected", "gate"),
        "q4": ("rejected", "error_rate"),
        "q5": ("rejected", "speaking"),
    }
    # Judges get what passed the gate and stage 1, nothing else.
    assert sorted(one.got) == sorted(two.got) == sorted(texts[:3])
    write_decisions(folder, decisions)
    assert [row.id for row in Recordings(folder.root).rows] == ["q0"]
    rejected = [json.loads(line) for line in (folder.root / "rejected.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["_id"]: row["reasons"][0] for row in rejected} == {
        "q1": "judge_score",
        "q2": "judge_error",
        "q3": "cut_end",
        "q4": "error_rate",
        "q5": "not_spoken",
    }
    # Without judges at hand, what they said counts.
    assert status_of(decide(folder)) == status_of(decisions)


def test_the_limit_of_stage_one_can_be_chosen(folder: SpeechFolder) -> None:
    assert status_of(decide(folder, limits=QualityLimits(error_rate=1.0)))["q4"] == ("accepted", "")
    assert status_of(decide(folder, limits=QualityLimits(error_rate=0.0)))["q0"] == ("accepted", "")


def test_missing_and_foreign_clips(folder: SpeechFolder) -> None:
    folder.clip(folder.rows()["tiny", "q0"]).unlink()
    folder.clip(folder.rows()["tiny", "q1"]).write_bytes(b"not sound")
    assert [d.reasons for d in decide(folder)[:2]] == [("unreadable",)] * 2
    folder.clip(folder.rows()["tiny", "q2"]).write_bytes(encode_flac(hum("x"), "x", 16_000))
    with pytest.raises(AudioError, match=r"q2.flac of query 'q2' has 16000 Hz"):
        decide(folder)


def test_judges_with_one_name_and_judges_that_refuse(folder: SpeechFolder) -> None:
    with pytest.raises(UsageError, match="same name"):
        decide(folder, judges=[ListJudge("one"), ListJudge("one")])

    class Refused(ListJudge):
        def judge(self, clip: Clip) -> Opinion:
            raise ModelError("the judge was refused.")

    with pytest.raises(ModelError, match="refused"):
        decide(folder, judges=[Refused("one")])


def test_the_report_counts_everything(folder: SpeechFolder) -> None:
    texts = [query.text for query in queries(5)]
    one = ListJudge("one", {texts[1]: verdict(4.5, artifacts=("Truncation",)), texts[2]: JudgeError("no answer")})
    report = quality_report(decide(folder, judges=[one, ListJudge("two")]))
    json.dumps(report, allow_nan=False)
    assert report["total"] == report["subsets"]["tiny"]
    total = report["total"]
    assert (total["queries"], total["accepted"], total["rejected"], total["flagged"]) == (6, 2, 2, 2)
    assert total["mean_error_rate"] == pytest.approx(0.2)
    assert total["mean_error_rate_accepted"] == 0.0
    assert report["reasons"] == {"judge_inconsistent": 1, "judge_error": 1, "error_rate": 1, "not_spoken": 1}
    judge = report["judges"]["one"]
    assert (judge["asked"], judge["verdicts"], judge["errors"], judge["inconsistent"]) == (4, 3, 1, 1)
    assert judge["error_reasons"] == {"no answer": 1}
    assert judge["mean_score"] == 4.5  # the error is no score
    assert set(report["reasons"]) <= set(REASONS)
    table = quality_table(report, most=2)
    assert "not understood by the transcriber (error_rate)" in table
    assert "judge one: 3 verdicts, mean 4.50, 1 errors, 1 inconsistent" in table
    assert "and 2 more in quality.json" in table


class Page(HTMLParser):
    """The attributes of what matters on the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_the_review_page_is_self_contained(folder: SpeechFolder, tmp_path: Path) -> None:
    page = write_review(folder, decide(folder), tmp_path / "review.html")
    assert (page.clips, page.left_out) == (5, 0)
    text = page.path.read_text(encoding="utf-8")
    parsed = Page(text)
    cards = parsed.all("article")
    assert [card["data-id"] for card in cards] == ["q4", "q0", "q1", "q2", "q3"]  # first what needs a decision
    assert [card["data-status"] for card in cards] == ["rejected"] + ["accepted"] * 4
    assert all(str(sound["src"]).startswith("data:audio/flac;base64,") for sound in parsed.all("audio"))
    assert "http" not in "".join(str(value) for _, attributes in parsed.found for value in attributes.values())
    assert not parsed.all("link")
    assert "default-src 'none'" in str(parsed.all("meta")[1]["content"])


def test_the_review_page_quotes_what_it_shows(tmp_path: Path) -> None:
    evil = '</script><img src=x onerror="alert(1)">'
    wanted = [Query(evil, "tiny", "en", f"say {evil} now")]
    folder = SpeechFolder(tmp_path / "speech")
    synthesize(wanted, folder, Speaking(HummingSynthesizer()))
    (mark,) = [
        Mark(_id=row.id, subset="tiny", sha256=row.sha256, mark="", comment=evil) for row in folder.rows().values()
    ]
    add_marks(folder.root, [mark], folder.rows())
    parsed = Page(write_review(folder, decide(folder), tmp_path / "review.html").path.read_text(encoding="utf-8"))
    assert not parsed.all("img")
    assert parsed.all("article")[0]["data-id"] == evil


def test_the_review_page_has_limits(folder: SpeechFolder, tmp_path: Path) -> None:
    decisions = decide(folder)
    assert write_review(folder, decisions, tmp_path / "a.html", show="rejected").clips == 1
    some = write_review(folder, decisions, tmp_path / "b.html", limit=2)
    assert (some.clips, some.left_out) == (2, 3)
    assert "3 more clips are not on this page" in some.path.read_text(encoding="utf-8")
    small = write_review(folder, decisions, tmp_path / "c.html", max_bytes=1)
    assert (small.clips, small.left_out) == (0, 5)
    with pytest.raises(UnknownNameError, match="Did you mean 'rejected'"):
        write_review(folder, decisions, tmp_path / "d.html", show="reject")


def mark_for(folder: SpeechFolder, id_: str, mark: str, comment: str = "") -> Mark:
    return Mark(_id=id_, subset="tiny", sha256=folder.rows()["tiny", id_].sha256, mark=mark, comment=comment)  # type: ignore[arg-type]


def test_marks_overrule_and_are_undone(folder: SpeechFolder) -> None:
    marks = [
        mark_for(folder, "q4", "accept"),
        mark_for(folder, "q0", "reject", "coughs"),
        mark_for(folder, "q1", "", "odd"),
    ]
    kept, stale = add_marks(folder.root, marks, folder.rows())
    assert (len(kept), stale) == (3, [])
    decisions = {decision.row.id: decision for decision in decide(folder)}
    assert (decisions["q4"].status, decisions["q4"].marked) == ("accepted", True)
    assert (decisions["q0"].status, decisions["q0"].reasons, decisions["q0"].comment) == (
        "rejected",
        ("review_rejected",),
        "coughs",
    )
    assert (decisions["q1"].status, decisions["q1"].comment, decisions["q1"].marked) == ("accepted", "odd", False)
    write_decisions(folder, list(decisions.values()))
    assert [row.id for row in Recordings(folder.root).rows] == ["q1", "q2", "q3", "q4"]
    # A later mark replaces the earlier one; the others stay.
    add_marks(folder.root, [mark_for(folder, "q0", "")], folder.rows())
    again = status_of(decide(folder))
    assert (again["q0"], again["q4"]) == (("accepted", ""), ("accepted", ""))


def test_marks_for_other_clips_are_stale(folder: SpeechFolder) -> None:
    other = Mark(_id="q0", subset="tiny", sha256="0" * 64, mark="reject")
    unknown = Mark(_id="q9", subset="tiny", sha256="0" * 64, mark="reject")
    mute = Mark(_id="q5", subset="tiny", sha256="", mark="accept")
    kept, stale = add_marks(folder.root, [other, unknown, mute], folder.rows())
    assert (kept, stale) == ([], [other, unknown, mute])
    # A mark that was good when given does not outlive its clip.
    add_marks(folder.root, [mark_for(folder, "q0", "reject")], folder.rows())
    changed = [Query("q0", "tiny", "en", "a different question"), *queries(5)[1:]]
    fresh = SpeechFolder(folder.root)
    synthesize(changed, fresh, Speaking(HummingSynthesizer(), [rating("a different question")]))
    assert status_of(decide(fresh))["q0"] == ("accepted", "")


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"schema": "squtr-review/2", "marks": []}',
     '{"schema": "squtr-review/1", "marks": [{"_id": "a"}]}',
     '{"schema": "squtr-review/1", "marks": [{"_id": "a", "subset": "b", "sha256": "c", "mark": "maybe"}]}'],
)  # fmt: skip
def test_files_that_hold_no_marks(tmp_path: Path, content: str) -> None:
    path = tmp_path / "marks.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"marks.json is no file of marks"):
        read_marks_file(path)
    with pytest.raises(DataError, match="does not exist"):
        read_marks_file(tmp_path / MARKS)
