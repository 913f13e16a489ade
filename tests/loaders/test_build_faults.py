"""What is wrong with a source is told at once, and the build goes on when it was mended."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, RecipeMismatchError, SqutrWarning, StorageError
from squtr.loaders import build as build_module
from squtr.loaders.build import build, count_clips
from squtr.loaders.doctor import examine
from squtr.loaders.faults import SHOWN, Fault, Faults
from squtr.loaders.manifest import MANIFEST_NAME, file_sha256, read_manifest
from squtr.loaders.questions.build import QuestionRecipe, build_set
from squtr.loaders.questions.checks import examine_set
from squtr.loaders.questions.question import Question
from squtr.loaders.recipe import OpenedRecipe, open_recipe

from .collections_for_tests import make_collection
from .rirs_for_tests import make_rooms, make_speech

RATE = 16_000


def good(path: Path) -> np.ndarray:
    samples, _ = soundfile.read(path)
    return np.asarray(samples)


def write(path: Path, samples: np.ndarray) -> None:
    soundfile.write(path, samples, RATE, format="WAV", subtype="FLOAT")


def cut_wav(path: Path) -> None:
    soundfile.write(path, good(path), RATE, format="WAV", subtype="PCM_16")
    path.write_bytes(path.read_bytes()[:-400])


BREAK: dict[str, tuple[Callable[[Path], object], str]] = {
    "silent": (lambda path: write(path, np.zeros(RATE)), "is silent"),
    "empty": (lambda path: path.write_bytes(b""), "cannot be read as audio"),
    "no samples": (lambda path: write(path, np.zeros(0)), "has no samples"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:2000]), "cannot be read as audio"),
    "cut WAV": (cut_wav, "is cut off"),
    "stereo": (lambda path: write(path, np.stack([good(path)] * 2, axis=1)), "has 2 channels"),
    "NaN": (lambda path: write(path, np.append(good(path), np.nan)), "holds NaN"),
    "DC": (lambda path: write(path, np.full(RATE, 0.5)), "is a constant 0.5"),
    "scaled up": (lambda path: write(path, good(path) * 32768), "where full scale is 1"),
    "scaled down": (lambda path: write(path, good(path) / 32768 * 2), "weaker than 16 bits"),
    "gone": (lambda path: path.unlink(), "does not exist"),
    "unreadable": (lambda path: (path.unlink(), path.symlink_to("/proc/self/mem")), "cannot be read"),
}


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    return make_speech(tmp_path / "speech", len(BREAK))


def opened(speech: Path, **options: object) -> OpenedRecipe:
    """Small banks: those made by code take seconds."""
    for name in ("noise", "rirs"):
        bank = speech.parent / f"small-{name}"
        options.setdefault(name, str(bank if bank.exists() else make_rooms(bank, 2)))
    return open_recipe(f"recorded:{speech}", **{"conditions": ["clean", "high_noise", "reverb"], **options})


def built(source: OpenedRecipe, out: Path) -> dict[str, str]:
    build(source, out)
    return digests(out)


def digests(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): file_sha256(p) for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_all_faults_are_told_at_once(speech: Path, tmp_path: Path) -> None:
    for number, (spoil, _) in enumerate(BREAK.values()):
        spoil(speech / f"u{number:02d}.flac")
    source, told = opened(speech), []
    with pytest.raises(AudioError) as raised:
        build(source, tmp_path / "data", progress=told.append)
    lines = raised.value.message.splitlines()
    assert lines[0] == f"{len(BREAK)} faults in recorded:speech and its banks:"
    for number, ((_, words), line) in enumerate(zip(BREAK.values(), lines[1:], strict=True)):
        assert f"u{number:02d}.flac of query 'u{number:02d}'" in line
        assert words in line
    assert "run the same command again" in raised.value.hint
    assert sum(told) == count_clips(source)
    assert not list((tmp_path / "data").rglob("*.parquet*"))


def test_the_first_fault_is_told_when_it_is_found(speech: Path, tmp_path: Path) -> None:
    for name in ("u02", "u05"):
        BREAK["silent"][0](speech / f"{name}.flac")
    with pytest.warns(SqutrWarning) as warned, pytest.raises(AudioError, match="2 faults"):
        build(opened(speech), tmp_path / "data")
    told = [str(one.message).partition(" is silent") for one in warned if issubclass(one.category, SqutrWarning)]
    assert [before for before, words, _ in told if words] == ["the recording u02.flac of query 'u02'"]


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_a_mended_source_continues(speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "ROWS_PER_SHARD", 4)
    never_failed = built(opened(speech), tmp_path / "whole")
    whole = (speech / "u05.flac").read_bytes()
    BREAK["silent"][0](speech / "u05.flac")
    out = tmp_path / "data"
    with pytest.raises(AudioError, match="u05"):
        build(opened(speech), out)
    held = {path: path.stat().st_mtime_ns for path in out.rglob("queries/**/*.parquet")}
    assert len(held) == 6
    (speech / "u05.flac").write_bytes(whole)
    assert built(opened(speech), out) == never_failed
    assert {path: path.stat().st_mtime_ns for path in held} == held


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_what_changed_is_made_again(speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "ROWS_PER_SHARD", 4)
    noise = make_rooms(tmp_path / "noise", 3)
    whole = (speech / "u05.flac").read_bytes()
    BREAK["silent"][0](speech / "u05.flac")
    out = tmp_path / "data"
    with pytest.raises(AudioError, match="u05"):
        build(opened(speech, noise=str(noise)), out)
    (speech / "u05.flac").write_bytes(whole)
    # Of a finished shard too, and a noise: what needs neither stays.
    write(speech / "u09.flac", good(speech / "u09.flac")[::-1])
    write(noise / "r01.wav", good(noise / "r01.wav")[::-1])
    held = {path: path.stat().st_mtime_ns for path in out.rglob("queries/**/*.parquet")}
    mended = opened(speech, noise=str(noise))
    assert built(mended, out) == built(mended, tmp_path / "whole")
    kept = {path.relative_to(out).as_posix() for path, time in held.items() if path.stat().st_mtime_ns == time}
    assert kept == {f"queries/en/speech/{name}/test-00000-of-00003.parquet" for name in ("clean", "reverb")}


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_what_became_wrong_is_told(speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "ROWS_PER_SHARD", 4)
    never_failed = built(opened(speech), tmp_path / "whole")
    whole = {name: (speech / f"{name}.flac").read_bytes() for name in ("u05", "u01")}
    for broken in whole:
        BREAK["silent"][0](speech / f"{broken}.flac")
        with pytest.raises(AudioError) as raised:
            build(opened(speech), tmp_path / "data")
        assert f"'{broken}'" in str(raised.value)
    for name, content in whole.items():
        (speech / f"{name}.flac").write_bytes(content)
    assert built(opened(speech), tmp_path / "data") == never_failed


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_a_failed_attempt_claims_nothing(speech: Path, tmp_path: Path) -> None:
    BREAK["silent"][0](speech / "u05.flac")
    out = tmp_path / "data"
    with pytest.raises(AudioError):
        build(opened(speech), out)
    (speech / "u05.flac").unlink()
    table = speech / "manifest.jsonl"
    table.write_text("".join(line for line in table.read_text().splitlines(keepends=True) if "u05" not in line))
    corrected = opened(speech, seed=3, conditions=["clean"])
    assert built(corrected, out) == built(corrected, tmp_path / "whole")


def test_a_finished_shard_claims_the_folder(speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "ROWS_PER_SHARD", 4)

    def stop(_: int) -> None:
        if list((tmp_path / "data").rglob("*.parquet")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(opened(speech), tmp_path / "data", progress=stop)
    before = digests(tmp_path / "data")
    with pytest.raises(RecipeMismatchError, match="seed 0 there, 3 here"):
        build(opened(speech, seed=3), tmp_path / "data")
    assert digests(tmp_path / "data") == before


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
@pytest.mark.parametrize("fault", ["gone", "stereo", "wrong noise"])
def test_texts_alone_claim_nothing(tmp_path: Path, fault: str) -> None:
    """Corpus and judgments were finished when the first clip failed; the corrected command differs in everything."""
    root, other = make_collection(tmp_path / "tiny", queries=2), make_collection(tmp_path / "other", queries=3)
    out, noise = tmp_path / "data", make_rooms(tmp_path / "noise", 2)
    if fault == "wrong noise":
        for path in noise.glob("*.wav"):
            BREAK["silent"][0](path)
    else:
        BREAK[fault][0](root / "speech/en/q1.flac")
    with pytest.raises(AudioError):
        build(open_recipe(str(root), conditions=["snr_5"], languages=["en"], noise=str(noise)), out)
    assert list(out.rglob("*.parquet"))
    corrected = open_recipe(str(other), conditions=["clean"], seed=3, languages=["zh"])
    assert built(corrected, out) == built(corrected, tmp_path / "whole")


def test_a_failed_set_of_questions_claims_nothing(speech: Path, tmp_path: Path) -> None:
    out, question = tmp_path / "data", Question("q", "mcqa", ("clip",), "Sí?", ("Sí", "No"), "No")
    gone = QuestionRecipe("set", "CC0-1.0", "es", (question,), {"clip": speech / "gone.flac"}, {}, {})
    with pytest.raises((OSError, DataError)):
        build_set(gone, out)
    assert built(opened(speech, conditions=["clean"]), out)


def test_another_kind_of_set_that_failed_claims_nothing(speech: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        build(opened(speech), out, progress=lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    assert build_set(QuestionRecipe("set", "CC0-1.0", "es", (), {}, {}, {}), out).complete


def test_a_complete_folder_is_not_taken_over(speech: Path, tmp_path: Path) -> None:
    before = built(opened(speech, conditions=["clean"]), tmp_path / "data")
    write(speech / "u05.flac", good(speech / "u05.flac")[::-1])
    with pytest.raises(RecipeMismatchError, match="sources"):
        build(opened(speech, conditions=["clean"]), tmp_path / "data")
    assert digests(tmp_path / "data") == before


def test_what_killed_builds_left_is_removed(speech: Path, tmp_path: Path) -> None:
    source, out = opened(speech, conditions=["clean"]), tmp_path / "data"
    (out / "queries/en/speech/clean").mkdir(parents=True)
    (out / "queries/en/speech/clean/.test-00000-of-00001.parquet.ab_1cd2e").write_bytes(b"half")
    (out / ".manifest.json.0123abcd").write_bytes(b"{")
    with pytest.raises(RecipeMismatchError, match="not made by"):
        build(source, out)
    never_failed = built(source, tmp_path / "whole")
    (out / MANIFEST_NAME).write_bytes(read_manifest(tmp_path / "whole").model_copy(
        update={"complete": False, "shards": []}).to_json())  # fmt: skip
    (out / ".README.md.0123abcd").write_bytes(b"half")
    (out / ".mine").write_bytes(b"a file of the user")
    assert built(source, out) == never_failed | {".mine": file_sha256(out / ".mine")}


def test_what_killed_builds_left_in_a_complete_folder(speech: Path, tmp_path: Path) -> None:
    source, out = opened(speech, conditions=["clean"]), tmp_path / "data"
    whole = built(source, out)
    left = "queries/en/speech/clean/.test-00000-of-00001.parquet.ab_1cd2e"
    (out / left).write_bytes(b"half")
    (out / ".README.md.0123abcd").write_bytes(b"half")
    (finding,) = examine(out, sample=0).findings
    assert finding.kind == "leftover"
    assert "2 temporary files of a build that was killed" in finding.message
    assert "the same build removes them" in finding.message
    with pytest.raises(RecipeMismatchError, match="seed 0 there, 3 here"):
        build(opened(speech, conditions=["clean"], seed=3), out)
    assert built(source, out) == whole
    assert examine(out, sample=0).healthy


def test_what_killed_builds_left_in_a_set_of_questions(speech: Path, tmp_path: Path) -> None:
    out, question = tmp_path / "data", Question("q", "mcqa", ("clip",), "Sí?", ("Sí", "No"), "No")
    recipe = QuestionRecipe("set", "CC0-1.0", "es", (question,), {"clip": speech / "u01.flac"}, {}, {})
    build_set(recipe, out)
    whole = digests(out)
    shard = next(out.rglob("*.parquet"))
    (shard.parent / f".{shard.name}.ab_1cd2e").write_bytes(b"half")
    assert {finding.kind for finding in examine_set(out).findings} == {"leftover"}
    build_set(recipe, out)
    assert digests(out) == whole
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.warns(SqutrWarning, match="1 shard was damaged and made again"):
        build_set(recipe, out)
    assert digests(out) == whole


def test_a_build_that_was_killed_before_its_manifest_claims_nothing(speech: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/.manifest.json.0123abcd").write_bytes(b"{")
    assert ".manifest.json.0123abcd" not in built(opened(speech, conditions=["clean"]), tmp_path / "data")


def test_a_second_build_of_the_folder_is_refused(speech: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    out.mkdir()
    descriptor = os.open(out, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(StorageError, match="another process builds into"):
            build(opened(speech, conditions=["clean"]), out)
    finally:
        os.close(descriptor)
    build(opened(speech, conditions=["clean"]), out)


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_banks_are_told_with_the_speech(speech: Path, tmp_path: Path) -> None:
    noise, rirs = make_rooms(tmp_path / "noise", 2), make_rooms(tmp_path / "rirs", 2)
    for path in (noise / "r00.wav", noise / "r01.wav", rirs / "r00.wav", rirs / "r01.wav"):
        BREAK["silent"][0](path)
    BREAK["NaN"][0](speech / "u03.flac")
    with pytest.raises(AudioError) as raised:
        build(opened(speech, noise=str(noise), rirs=str(rirs)), tmp_path / "data")
    assert raised.value.message.startswith("5 faults")
    for words in ("noise/r00", "noise/r01", "rirs/r00", "rirs/r01", "u03.flac"):
        assert raised.value.message.count(words) == 1


def test_all_rirs_of_a_plan_are_told_before_it(speech: Path, tmp_path: Path) -> None:
    rirs = make_rooms(tmp_path / "rirs", 6)
    for number in (1, 4):
        BREAK["silent"][0](rirs / f"r{number:02d}.wav")
    with pytest.raises(AudioError, match="2 faults in the RIR bank rirs") as raised:
        opened(speech, conditions=["clean", "reverb"], rirs=str(rirs), stratify="rt60")
    assert "r01.wav" in raised.value.message
    assert "r04.wav" in raised.value.message


def test_texts_are_told_at_once(speech: Path) -> None:
    rows = [json.loads(line) for line in (speech / "manifest.jsonl").read_text().splitlines()]
    rows[1]["text"] = " "
    rows[3]["id"] = "u02"
    del rows[4]["language"]
    rows[6]["text"] = ""
    rows[6]["id"] = ""
    rows[7]["tts_error_rate"] = "0,25"
    (speech / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"line 7: 'u06.flac' has neither id nor text") as raised:
        opened(speech)
    assert "line 8: tts_error_rate is '0,25'" in raised.value.message
    rows[6] |= {"text": "seven", "id": "u06"}
    del rows[7]["tts_error_rate"]
    (speech / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"line 2: 'u01.flac' has no text") as raised:
        opened(speech)
    assert "line 4: the id 'u02' occurs twice" in raised.value.message
    assert "line 5: 'u04.flac' has no language" in raised.value.message


@pytest.mark.filterwarnings("ignore::squtr.errors.SqutrWarning")
def test_queries_without_a_recording_are_told_at_once(tmp_path: Path) -> None:
    speech = make_speech(tmp_path / "speech", 2)
    rows = [{"file": "u00.flac", "id": "nobody", "subset": "mini-en"}]
    (speech / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_recipe(f"mini?speech={speech}", conditions=["clean"], subsets=["mini-en"])
    count = len(source.queries("mini-en"))
    with pytest.raises(AudioError, match=rf"^{count} faults in ") as raised:
        build(source, tmp_path / "data")
    assert raised.value.message.endswith(f"and {count - SHOWN} more.")


def test_many_faults_are_counted() -> None:
    faults = Faults()
    faults.add(Fault(f"file {number} is silent.", audio=True) for number in (*range(1_025), 0, 1))
    with pytest.raises(AudioError) as raised:
        faults.refuse("my-voice", hint="Mend them.")
    lines = str(raised.value).splitlines()
    assert lines[:2] == ["1,025 faults in my-voice:", "  file 0 is silent."]
    assert lines[SHOWN:] == ["  file 19 is silent.", "  and 1,005 more.", "Mend them."]
    one = Faults()
    one.add([Fault("file 0 is silent.", "Record it again.")])
    with pytest.raises(DataError, match=r"^file 0 is silent\. Record it again\.$"):
        one.refuse("my-voice")
