"""Fetching sound: every refusal has its status, a stopped run continues, missing sound is coverage."""

from __future__ import annotations

import inspect
import io
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, FetchError, MissingExtraError, SqutrWarning, StorageError
from squtr.harness.cli import main
from squtr.loaders.questions.data import QuestionData
from squtr.loaders.questions.fetching import Wanted, fetch_audio, fetch_table, to_flac, wanted_of
from squtr.loaders.questions.fields import question_of
from squtr.loaders.questions.statuses import AudioStatus, read_statuses, write_status
from squtr.loaders.questions.windows import RATE
from squtr.loaders.questions.yt_dlp import YtDlp, find_ffmpeg, status_of
from squtr.loaders.sources.published_questions import PUBLISHED_QUESTIONS

from . import ytdlp_for_tests as fake
from .questions_for_tests import PUBLISHED, tone
from .web_for_tests import Web, serve

SAID = {
    "private": "[youtube] abc: Private video. Sign in if you've been granted access to this video",
    "removed": "[youtube] abc: Video unavailable. This video has been removed by the uploader",
    "geo_blocked": "[youtube] abc: The uploader has not made this video available in your country",
    "failed": "[youtube] abc: Sign in to confirm you're not a bot.",
}

ESCUCHA = PUBLISHED_QUESTIONS["escucha"]


def encoded(seconds: float, rate: int = RATE, channels: int = 1, format: str = "WAV") -> bytes:
    samples = np.repeat(
        (0.3 * np.sin(2 * np.pi * 220 * np.arange(round(seconds * rate)) / rate))[:, None], channels, axis=1
    )
    buffer = io.BytesIO()
    soundfile.write(buffer, samples.astype(np.float32), rate, format=format)
    return buffer.getvalue()


def answer(url: str, stem: Path, _: dict[str, Any]) -> Path:
    """What the fake site gives: the address's last part says what."""
    name = url.rpartition("/")[2]
    if name in SAID:
        raise fake.ExtractorError(SAID[name])
    if name == "georestricted":
        raise fake.GeoRestrictedError("not here")
    path = stem.with_name(f"{stem.name}.wav")
    path.write_bytes(b"no sound" if name == "broken" else encoded(float(name)))
    return path


@pytest.fixture
def site() -> Iterator[list[str]]:
    with fake.installed(answer) as asked:
        yield asked


def wanted(name: str, expected: float = math.nan) -> Wanted:
    return Wanted(f"id-{name}", f"https://example.org/{name}", expected)


def test_what_yt_dlp_warns_of_is_shown(tmp_path: Path) -> None:
    def warned(url: str, stem: Path, options: dict[str, Any]) -> Path:
        options["logger"].warning("\x1b[0;33mWARNING:\x1b[0m [youtube] 2: Some formats may be missing")
        return answer(url, stem, options)

    shown = r"^yt-dlp warns: \[youtube\] 2: Some formats may be missing$"
    with fake.installed(warned), pytest.warns(SqutrWarning, match=shown):
        fetch_audio([wanted("2")], tmp_path, YtDlp())


def test_every_outcome_has_its_status(site: list[str], tmp_path: Path) -> None:
    sounds = [wanted("2", 2.0), wanted("3", 30.0), *map(wanted, SAID), wanted("georestricted"), wanted("broken")]
    report = fetch_audio(sounds, tmp_path, YtDlp())
    found = {id_.removeprefix("id-"): status.status for id_, status in report.statuses.items()}
    assert found == {
        "2": "ok",
        "3": "wrong_duration",
        **{name: name for name in SAID},
        "georestricted": "geo_blocked",
        "broken": "failed",
    }
    assert report.new == ["id-2"]
    assert report.counts["geo_blocked"] == 2
    assert read_statuses(tmp_path) == dict(sorted(report.statuses.items()))
    assert report.statuses["id-private"].reason == SAID["private"]
    assert report.statuses["id-2"].tool == "yt-dlp 2026.10.26"
    assert soundfile.info(tmp_path / "audio" / "id-2.flac").samplerate == RATE
    # What has another length is kept apart, for a person to decide.
    assert [path.name for path in (tmp_path / "other_length").iterdir()] == ["id-3.flac"]
    assert [path.name for path in (tmp_path / "audio").iterdir()] == ["id-2.flac"]


def test_a_second_run_asks_for_what_may_go_better_only(site: list[str], tmp_path: Path) -> None:
    sounds = [wanted("2"), wanted("private"), wanted("failed")]
    fetch_audio(sounds, tmp_path, YtDlp())
    site.clear()
    report = fetch_audio(sounds, tmp_path, YtDlp())
    assert [url.rpartition("/")[2] for url in site] == ["failed"]
    assert report.new == [] and report.statuses["id-failed"].attempts == 2
    site.clear()
    fetch_audio(sounds, tmp_path, YtDlp(), again=True)
    assert [url.rpartition("/")[2] for url in site] == ["private", "failed"]
    # Another address, or a file that went, is another matter.
    (tmp_path / "audio" / "id-2.flac").unlink()
    site.clear()
    fetch_audio([wanted("2"), Wanted("id-private", "https://example.org/1", math.nan)], tmp_path, YtDlp())
    assert len(site) == 2
    assert statuses_in(tmp_path) == {"id-2": "ok", "id-failed": "failed", "id-private": "ok"}


def statuses_in(folder: Path) -> dict[str, str]:
    return {id_: status.status for id_, status in read_statuses(folder).items()}


def test_a_run_that_stops_keeps_what_it_has(tmp_path: Path) -> None:
    def stopping(url: str, stem: Path, options: dict[str, Any]) -> Path:
        if url.endswith("/3"):
            raise KeyboardInterrupt
        return answer(url, stem, options)

    sounds = [wanted("2"), wanted("3"), wanted("4")]
    with fake.installed(stopping), pytest.raises(KeyboardInterrupt):
        fetch_audio(sounds, tmp_path, YtDlp())
    assert statuses_in(tmp_path) == {"id-2": "ok"}
    with fake.installed(answer) as asked:
        fetch_audio(sounds, tmp_path, YtDlp())
    assert [url.rpartition("/")[2] for url in asked] == ["3", "4"]


def test_ten_failures_in_a_row_end_the_run(site: list[str], tmp_path: Path) -> None:
    sounds = [Wanted(f"s{number}", "https://example.org/failed", math.nan) for number in range(20)]
    with pytest.raises(FetchError, match="ten audio files in a row"):
        fetch_audio(sounds, tmp_path, YtDlp())
    assert len(site) == 10
    site.clear()
    mixed = [sound for pair in zip(sounds, [wanted("private")] * 20, strict=True) for sound in pair]
    assert len(fetch_audio(mixed, tmp_path, YtDlp()).statuses) == 21


def test_a_status_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_status(tmp_path, AudioStatus(id="x", status="private"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError):
        write_status(tmp_path, AudioStatus(id="x", status="ok"))
    monkeypatch.undo()
    assert statuses_in(tmp_path) == {"x": "private"}
    assert [path.name for path in (tmp_path / "status").iterdir()] == ["x.json"]
    (tmp_path / "status" / "y.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"y\.json is no status"):
        read_statuses(tmp_path)


def test_a_disk_that_refuses_is_no_status(site: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("squtr.loaders.questions.fetching.to_flac", full)
    with pytest.raises(StorageError, match="No space left"):
        fetch_audio([wanted("2")], tmp_path, YtDlp())
    assert read_statuses(tmp_path) == {}


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("This video is no longer available because the YouTube account associated has been terminated.", "removed"),
        ("Video unavailable. This video contains content from X, who has blocked it in your country", "geo_blocked"),
        ("This video is not available from your location due to geo restriction", "geo_blocked"),
        ("Join this channel to get access to members-only content", "private"),
        ("This video is only available for registered users. Use --cookies", "private"),
        ("HTTP Error 410: Gone", "removed"),
        ("HTTP Error 403: Forbidden", "failed"),
        ("HTTP Error 503: Service Unavailable", "failed"),
        ("Unable to download webpage: <urlopen error timed out>", "failed"),
    ],
)
def test_what_sites_say_is_understood(message: str, status: str) -> None:
    assert status_of(message) == status


def test_without_ytdlp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(MissingExtraError, match=r"squtr\[questions\]"):
        YtDlp()


def test_the_fake_has_the_signatures_of_the_real_one() -> None:
    real = pytest.importorskip("yt_dlp")
    made = fake.module(answer, [])
    for name in ("__init__", "extract_info", "close", "__enter__", "__exit__"):
        theirs = list(inspect.signature(getattr(real.YoutubeDL, name)).parameters)
        assert list(inspect.signature(getattr(made.YoutubeDL, name)).parameters) == theirs
    for name in ("YoutubeDLError", "ExtractorError", "GeoRestrictedError", "DownloadError"):
        error = getattr(real.utils, name)
        theirs = list(inspect.signature(error.__init__).parameters)
        assert list(inspect.signature(getattr(fake, name).__init__).parameters) == theirs
        assert issubclass(error, real.utils.YoutubeDLError)
    assert isinstance(real.version.__version__, str)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve() as running:
        yield running


def test_the_real_program_fetches_from_a_server(web: Web, tmp_path: Path) -> None:
    pytest.importorskip("yt_dlp")
    web.files |= {"a.wav": encoded(2.0, 44_100, 2), "b.mp3": encoded(2.0, 24_000, format="MP3")}
    sounds = [
        Wanted("a", web.url("a.wav"), 2.0),
        Wanted("b", web.url("b.mp3"), 2.0),
        Wanted("gone", web.url("gone.wav"), 2.0),
        Wanted("other", web.url("a.wav"), 20.0),
    ]
    seen: list[tuple[str, int, int]] = []
    report = fetch_audio(sounds, tmp_path, YtDlp(), on_bytes=lambda *state: seen.append(state))
    assert statuses_in(tmp_path) == {"a": "ok", "b": "ok", "gone": "removed", "other": "wrong_duration"}
    assert "404" in report.statuses["gone"].reason
    assert {id_ for id_, _, _ in seen} >= {"a", "b"}
    samples, rate = soundfile.read(tmp_path / "audio" / "a.flac")
    assert (rate, samples.ndim) == (RATE, 1)
    expected = tone(2.0)
    assert np.corrcoef(samples[: expected.size], expected)[0, 1] > 0.999
    web.asked.clear()
    assert fetch_audio(sounds, tmp_path, YtDlp()).new == []
    assert web.asked == []


def test_the_real_program_continues_a_file(web: Web, tmp_path: Path) -> None:
    pytest.importorskip("yt_dlp")
    content = encoded(3.0)
    web.files["a.wav"] = content
    sound = [Wanted("a", web.url("a.wav"), 3.0)]
    impatient = YtDlp({"retries": 0, "extractor_retries": 0})
    # The page is asked for first, to see what it is; then the file, of which a part comes.
    web.breaks = [len(content), 40_000]
    assert fetch_audio(sound, tmp_path, impatient).statuses["a"].status == "failed"
    (part,) = (tmp_path / "parts" / "a").iterdir()
    assert 0 < part.stat().st_size < len(content)
    web.asked.clear()
    assert fetch_audio(sound, tmp_path, impatient).statuses["a"].status == "ok"
    assert any(asked.startswith("bytes=") and asked != "bytes=0-" for _, asked in web.asked)
    assert soundfile.info(tmp_path / "audio" / "a.flac").frames == 3 * RATE
    assert not (tmp_path / "parts" / "a").exists()


def test_local_files_are_not_fetched(tmp_path: Path) -> None:
    pytest.importorskip("yt_dlp")
    secret = tmp_path / "secret.wav"
    secret.write_bytes(encoded(1.0))
    report = fetch_audio([Wanted("a", secret.as_uri(), math.nan)], tmp_path / "out", YtDlp())
    assert report.statuses["a"].status == "failed"


@pytest.mark.parametrize(("rate", "channels", "format"), [(16_000, 1, "FLAC"), (8_000, 1, "WAV"), (48_000, 2, "OGG")])
def test_any_sound_becomes_mono_at_16_khz(tmp_path: Path, rate: int, channels: int, format: str) -> None:
    source = tmp_path / f"x.{format.lower()}"
    source.write_bytes(encoded(1.5, rate, channels, format))
    to_flac(source, tmp_path / "y")
    info = soundfile.info(tmp_path / "y")
    assert (info.format, info.samplerate, info.channels) == ("FLAC", RATE, 1)
    assert info.frames == pytest.approx(1.5 * RATE, abs=RATE * 0.02)


def test_long_sound_is_converted_without_seams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "x.wav"
    source.write_bytes(encoded(3.0, 44_100))
    to_flac(source, tmp_path / "whole")
    monkeypatch.setattr("squtr.loaders.questions.fetching.CHUNK_S", 0.37)
    to_flac(source, tmp_path / "pieces")
    whole, pieces = (soundfile.read(tmp_path / name, dtype="int16")[0] for name in ("whole", "pieces"))
    assert np.abs(whole.astype(int) - pieces).max() <= 1


def test_other_formats_go_to_ffmpeg(tmp_path: Path) -> None:
    source = tmp_path / "x.m4a"
    source.write_bytes(b"no sound")
    with pytest.raises(MissingExtraError, match="ffmpeg"):
        to_flac(source, tmp_path / "y", "")
    ffmpeg = find_ffmpeg()
    if not ffmpeg:
        pytest.skip("ffmpeg is not installed")
    with pytest.raises(AudioError, match="cannot be converted"):
        to_flac(source, tmp_path / "y", ffmpeg)
    (tmp_path / "z.wav").write_bytes(encoded(2.0, 44_100, 2))
    command = [ffmpeg, "-y", "-v", "error", "-i", str(tmp_path / "z.wav"), "-c:a", "aac", str(source)]
    subprocess.run(command, check=True)
    to_flac(source, tmp_path / "y", ffmpeg)
    info = soundfile.info(tmp_path / "y")
    assert (info.format, info.samplerate, info.channels) == ("FLAC", RATE, 1)
    assert info.duration == pytest.approx(2.0, abs=0.1)


def test_what_is_wanted_is_said_once() -> None:
    one = question_of(PUBLISHED, "row")
    pair = question_of({**PUBLISHED, "id": "p", "audio_path": ["x", "y"], "url": ["https://x", "https://y"],
                        "is_comparative": True, "duration": [1.0, 2.0]}, "row")  # fmt: skip
    again = question_of({**PUBLISHED, "id": "q", "audio_path": "y", "url": "https://y", "duration": ""}, "row")
    assert [(w.id, w.url, w.expected_s) for w in wanted_of([one, pair, again])] == [
        ("esc_0001", "https://example.org/watch?v=1", 86.2),
        ("x", "https://x", 1.0),
        ("y", "https://y", 2.0),
    ]
    other = question_of({**PUBLISHED, "id": "r", "audio_path": "y", "url": "https://z"}, "row")
    with pytest.raises(DataError, match="'y' has the address 'https://z'"):
        wanted_of([pair, other])


def test_the_table_is_fetched_where_it_is(web: Web, tmp_path: Path) -> None:
    web.files["data/tsv/ESCUCHA.tsv"] = b"id\n"
    assert fetch_table(tmp_path, ESCUCHA, None, web.address) == tmp_path / "data/tsv/ESCUCHA.tsv"
    web.files.clear()
    assert fetch_table(tmp_path, ESCUCHA, None, web.address) == tmp_path / "data/tsv/ESCUCHA.tsv"
    with pytest.raises(FetchError, match="ferugit/ESCUCHA"):
        fetch_table(tmp_path / "other", ESCUCHA, None, web.address)
    mine = tmp_path / "mine.json"
    mine.write_text("[]", encoding="utf-8")
    assert fetch_table(tmp_path / "mine", None, mine) == tmp_path / "mine" / "questions.json"
    with pytest.raises(DataError, match="another table"):
        fetch_table(tmp_path, None, mine)


def test_the_command_fetches_and_counts_what_is_missing(
    web: Web, site: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    rows = [
        {**PUBLISHED, "id": name, "audio_path": name, "url": f"https://example.org/{name}", "duration": seconds}
        for name, seconds in (("2", 2.0), ("3", 9.0), ("private", 4.0))
    ]
    web.files["data/tsv/ESCUCHA.json"] = json.dumps(rows).encode()
    assert main(["fetch", "questions", "escucha", "--url", web.address, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["audio"] == {"ok": 1, "private": 1, "wrong_duration": 1}
    assert (told["items"], told["covered"]) == (3, 1)
    assert told["missing"]["private"] == {"audio": "private", "status": "private"}
    data = QuestionData(tmp_path / "escucha")
    assert data.coverage().by_status == {"private": 1, "wrong_duration": 1}
    assert len(data.questions()) == 3
    with pytest.raises(AudioError, match="'private' is not in"):
        data.audio("private")
    # A field that is not known is taught once, and known to all who read the folder.
    (tmp_path / "escucha/data/tsv/ESCUCHA.json").write_text(json.dumps([{**row, "nota": "x"} for row in rows]))
    assert main(["fetch", "questions", "escucha"]) == 1
    assert "the field 'nota' is not known" in capsys.readouterr().err
    assert main(["fetch", "questions", "escucha", "--field", "nota=-"]) == 0
    capsys.readouterr()
    assert len(QuestionData(tmp_path / "escucha").questions()) == 3
    assert main(["fetch", "questions", "escucha"]) == 0
    assert "1 of 3 questions have their audio; 0 files are new." in capsys.readouterr().out
