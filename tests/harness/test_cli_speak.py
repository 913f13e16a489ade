"""speak, synthesize and review from the shell, with an engine that hums and, where installed, the real ones."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main, rating, speak, synthesize
from squtr.harness.cli.rating import normalized, rate_of
from squtr.harness.cli.selected import selected_lines
from squtr.harness.protocols import ComponentSpec, Transcript
from squtr.harness.results.envelope import SystemInfo
from squtr.loaders.records import Samples
from squtr.loaders.sources import load_source
from squtr.loaders.sources.joined import origins_of
from squtr.loaders.sources.recorded import Recordings
from squtr.loaders.synthesis import SYNTHESIZERS, SynthesizerBackend, backends
from squtr.loaders.synthesis.candidates import Rating

from ..loaders.speech_for_tests import HummingSynthesizer, ListTranscriber

needs_espeak = pytest.mark.skipif(
    importlib.util.find_spec("espeakng_loader") is None, reason="squtr[espeak] is not installed"
)


class Hum(HummingSynthesizer):
    """As the table of engines makes it."""

    def __init__(self, *, version: str = "1") -> None:
        super().__init__(version)


@pytest.fixture
def hum(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SynthesizerBackend("hum", "-:-", "nothing to install", ("en", "es", "zh"), "hums", candidates=3, vary="seed")
    monkeypatch.setitem(SYNTHESIZERS, "hum", spec)
    load = backends.load_synthesizer
    monkeypatch.setattr(
        rating, "load_synthesizer", lambda name, **options: Hum(**options) if name == "hum" else load(name, **options)
    )


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"q{i}", "text": f"what is number {'abcd'[i]} of 5 apples"} for i in range(4)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "An apple."}\n', encoding="utf-8")
    lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td1\t1" for i in range(4))]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def listen(monkeypatch: pytest.MonkeyPatch, answers: Sequence[str | Transcript]) -> ListTranscriber:
    transcriber = ListTranscriber(answers)
    for command in (speak, synthesize):
        monkeypatch.setattr(command, "ratings_from", lambda *_: (Rating(transcriber, "listed", rate_of, normalized),))
    return transcriber


@pytest.mark.usefixtures("hum")
def test_speak_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "q.wav"
    assert main(["speak", "It is 5 now", "--language", "en", "--engine", "hum", "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    samples, rate = soundfile.read(out)
    assert rate == said["sample_rate"] == 24_000
    assert samples.size / rate == pytest.approx(said["duration_s"], abs=1e-3)
    assert np.abs(samples).max() == pytest.approx(0.7, abs=1e-3)
    assert (said["spoken_text"], said["voice"] in "abc", said["tts_error_rate"], said["gate"]) == (
        "It is five now",
        True,
        None,
        [],
    )
    again = tmp_path / "q.flac"
    line = ["speak", "It is 5 now", "--language", "en", "--engine", "hum", "--out", str(again), "--no-spoken-form"]
    assert main([*line, "--voice", "b"]) == 0
    assert "q.flac: " in capsys.readouterr().out
    assert soundfile.info(again).format == "FLAC"


@pytest.mark.usefixtures("hum")
def test_speak_keeps_the_take_that_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listen(monkeypatch, ["it is late", "it is five now", "it is 5 now"])
    line = ["speak", "It is 5 now", "--language", "en", "--engine", "hum", "--candidates", "3"]
    assert main([*line, "--transcriber", "any", "--out", str(tmp_path / "q.wav"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["candidates"], said["tts_error_rate"], said["transcript"], said["transcriber"]) == (
        3,
        0.0,
        "it is five now",
        "listed",
    )


@pytest.mark.usefixtures("hum")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["speak", "a", "--language", "en", "--engine", "kokoru", "--out", "q.wav"], "Did you mean 'kokoro'"),
        (
            ["speak", "a", "--language", "en", "--engine", "hum", "--voice", "bb", "--out", "q.wav"],
            "unknown voice of hum",
        ),
        (["speak", "a", "--language", "en", "--engine", "hum", "--out", "q.mp3"], "neither .wav nor .flac"),
        (["speak", "--language", "en", "--engine", "hum"], "the text or --out is missing"),
        (["speak", "a", "--language", "xx", "--engine", "hum", "--out", "q.wav"], "does not speak 'xx'"),
        (
            ["speak", "a", "--language", "en", "--engine", "hum", "--out", "q.wav", "--candidates", "2"],
            "cannot be compared without a transcriber",
        ),
        (
            ["speak", "a", "--language", "en", "--engine", "hum", "--engine-option", "speed", "--out", "q.wav"],
            "Write KEY=VALUE",
        ),
        (["synthesize", "--source", "mini", "--engine", "hum", "--candidates", "0", "--out", "o"], "candidates is 0"),
        (["synthesize", "--source", "mini", "--engine", "hum", "--on", "rey", "--out", "o"], "Did you mean 'ray'"),
        (["synthesize", "--source", "mini", "--engine", "hum", "--actors", "2", "--out", "o"], "only Ray has actors"),
        (["synthesize", "--source", "minni", "--engine", "hum", "--out", "o"], "Did you mean 'mini'"),
        (["synthesize", "--source", "mini", "--engine", "hum", "--limit", "-1", "--out", "o"], "the limit is -1"),
        (
            ["synthesize", "--source", "mini", "--engine", "hum", "--judges", "m,https://x.org/v1,NO_KEY_HERE",
             "--out", "o"],
            "NO_KEY_HERE is not set",
        ),
        (["review", ".", "--limit", "-1"], "the limit is -1"),
    ],
)  # fmt: skip
def test_bad_usage(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("hum")
def test_synthesize_then_read_then_review(
    beir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "clips"
    texts = [f"what is number {'abcd'[i]} of five apples" for i in range(4)]
    # Three takes each; the last query is never understood.
    transcriber = listen(monkeypatch, [t for text in texts[:3] for t in ("noise", text, text)] + ["noise"] * 3)
    line = ["synthesize", "--source", f"beir:{beir}?language=en", "--engine", "hum", "--out", str(out)]
    assert main([*line, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["total"]["accepted"], report["reasons"]) == (3, {"error_rate": 1})
    assert transcriber.calls == [12]
    assert json.loads((out / "quality.json").read_text(encoding="utf-8"))["total"] == report["total"]

    source = load_source(f"beir:{beir}?language=en&speech={out}&missing=skip")
    queries = source.queries("texts")
    assert [query.id for query in queries] == ["q0", "q1", "q2"]
    clean = source.speech(queries[0])
    assert (clean.tts_error_rate, clean.speaker[:4]) == (0.0, "hum/")

    # Nothing is spoken or heard twice.
    before = (out / "journal.jsonl").read_bytes()
    assert main(line) == 0
    assert transcriber.calls == [12]
    assert (out / "journal.jsonl").read_bytes() == before
    assert "Wrote 3 of 4 queries" in capsys.readouterr().out
    # Other settings do not mix.
    assert main([*line, "--seed", "1"]) == 1
    assert "was spoken with seed = 0" in capsys.readouterr().err

    assert main(["review", str(out), "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["clips"], Path(page["page"]).is_file()) == (4, True)
    rows = {row["_id"]: row for row in map(json.loads, before.decode().splitlines())}
    marks = [
        {"_id": id_, "subset": "texts", "sha256": rows[id_]["sha256"], "mark": mark, "comment": ""}
        for id_, mark in (("q3", "accept"), ("q0", "reject"))
    ]
    saved = tmp_path / "marks.json"
    marks.append({"_id": "q1", "subset": "texts", "sha256": "old", "mark": "reject", "comment": ""})
    saved.write_text(json.dumps({"schema": "squtr-review/1", "marks": marks}), encoding="utf-8")
    assert main(["review", str(out), "--marks", str(saved)]) == 0
    said = capsys.readouterr()
    assert "Applied 2 marks: 1 accepted, 1 rejected by hand." in said.out
    assert "texts/q1 is for a clip that is no longer there" in said.err
    source = load_source(f"beir:{beir}?language=en&speech={out}&missing=skip")
    assert [query.id for query in source.queries("texts")] == ["q1", "q2", "q3"]
    # Marks survive another synthesis.
    assert main(line) == 0
    assert "Wrote 3 of 4" in capsys.readouterr().out


@pytest.mark.usefixtures("hum")
def test_a_review_keeps_the_limit_of_the_synthesis(
    beir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listen(monkeypatch, [])
    out = tmp_path / "clips"
    line = ["synthesize", "--source", f"beir:{beir}?language=en", "--engine", "hum", "--out", str(out)]
    assert main([*line, "--max-error-rate", "1"]) == 0
    capsys.readouterr()
    saved = tmp_path / "marks.json"
    saved.write_text('{"schema": "squtr-review/1", "marks": []}', encoding="utf-8")
    assert main(["review", str(out), "--marks", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["accepted"] == 4
    # Nothing understood and nothing accepted is a failure.
    assert main(line) == 1
    assert "no query was accepted" in capsys.readouterr().err


@pytest.mark.usefixtures("hum")
def test_subsets_of_several_runs_are_in_one_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["synthesize", "--source", "mini", "--engine", "hum", "--transcriber", "none", "--out", str(tmp_path / "o")]
    assert main([*line, "--languages", "en", "--limit", "2"]) == 0
    capsys.readouterr()
    assert main([*line, "--languages", "es", "--limit", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {name: counts["queries"] for name, counts in report["subsets"].items()} == {"mini-en": 2, "mini-es": 1}
    assert report["total"]["unmeasured"] == 3


def test_folders_without_speech(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(tmp_path)]) == 1
    assert "holds neither synthesized speech nor questions" in capsys.readouterr().err


class Echo:
    """A transcriber that fails on silence."""

    spec = ComponentSpec("transcriber", "echo", "Echo", revision="1")
    sample_rate = 16_000

    def supports(self, language: str) -> bool:
        return language == "en"

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        return [Transcript(f" {language} ") if clip.any() else Transcript("", error="silence") for clip in clips]


def test_a_transcriber_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squtr.harness.components.load_transcriber", lambda name, **_: Echo())
    assert rating.ratings_from(["none"], 0, ["zh"]) == ()
    (made,) = rating.ratings_from(["echo"], 2, ["en"])
    assert made.error_rate("It’s five.", "it's 5", "en") == 0.0
    assert made.error_rate("你好吗", "你好", "zh") == pytest.approx(1 / 3)
    with pytest.raises(UsageError, match="not made for 'zh'"):
        rating.ratings_from(["echo"], 0, ["zh"])
    with pytest.raises(UsageError, match="of one family"):
        rating.ratings_from(["echo", "echo"], 0, ["en"])
    with pytest.raises(UsageError, match="none and others"):
        rating.ratings_from(["echo", "none"], 0, ["en"])


@needs_espeak
def test_espeak_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["speak", "How much is 5 km?", "--language", "en", "--engine", "espeak", "--json"]
    assert main([*line, "--out", str(tmp_path / "a.wav"), "--voice", "en-us+f3"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["spoken_text"], said["gate"]) == ("How much is five kilometers?", [])
    assert main([*line, "--list-voices"]) == 0
    assert "en-us+f3" in json.loads(capsys.readouterr().out)
    assert main(["speak", "你好", "--language", "zh", "--engine", "espeak", "--out", str(tmp_path / "b.wav")]) == 2
    assert "Use --engine kokoro --language zh" in capsys.readouterr().err


@pytest.mark.usefixtures("hum")
def test_the_selection_is_told_where_the_speech_is_read(
    beir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = load_source(f"beir:{beir}?language=en").queries("texts")
    # Three takes of each query; of the last one none is understood.
    listen(monkeypatch, [text for query in kept[:3] for text in [query.text] * 3] + ["no idea"] * 3)
    out = tmp_path / "clips"
    line = ["synthesize", "--source", f"beir:{beir}?language=en", "--engine", "hum", "--out", str(out)]
    assert main(line) == 0
    assert "selection: the best of up to 3 takes of hum by listed, error rate at most 0.3" in capsys.readouterr().out
    spoken: Any = load_source(f"beir:{beir}?language=en&speech={out}&missing=skip")
    assert {key: spoken.selection[key] for key in ("engine", "candidates", "transcribers", "accepted", "lost")} == {
        "engine": "hum",
        "candidates": 3,
        "transcribers": ["listed"],
        "accepted": 3,
        "lost": {"error_rate": 1},
    }
    (origin,) = origins_of(spoken, ["texts"])
    assert json.loads(origin.selection) == spoken.selection
    (out / "quality.json").write_text('{"selection": []}', encoding="utf-8")
    with pytest.raises(DataError, match=r"quality.json: selection is no object"):
        _ = Recordings(out).selection


def test_a_system_that_selected_its_own_test_is_told() -> None:
    chosen = {"transcribers": ["faster-whisper:whisper-base@0"], "accepted": 3, "queries": 4}
    recipe = {"sources": [{"name": "beir:a+clips", "selection": json.dumps(chosen)}, {"name": "mini"}]}

    def system(backend: str, name: str) -> SystemInfo:
        spec = {"backend": backend, "name": name, "kind": "transcriber"}
        return SystemInfo(kind="cascade", name=f"{name} + bm25", components={"transcriber": spec})

    same, kin = system("faster-whisper", "whisper-base"), system("hf", "whisper-large-v3")
    lines = selected_lines(recipe, [same, kin, system("funasr", "sensevoice-small")])
    assert len(lines) == 2
    assert "whisper-base + bm25 is the transcriber that chose the speech of beir:a+clips" in lines[0]
    assert "(3 of 4 queries)" in lines[0]
    assert "whisper-large-v3 + bm25 is of the family of the transcriber faster-whisper:whisper-base" in lines[1]
    assert selected_lines({"sources": [{"name": "mini"}]}, [same]) == []
