"""Where sets lie, what the harness reads of them, what is missing, and the configs behind the bare name."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import datasets
import pytest

import squtr
from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.questions.audio_folder import AudioFolder
from squtr.loaders.questions.build import QuestionRecipe, build_set
from squtr.loaders.questions.data import MINI_FOLDER, QuestionData, open_questions
from squtr.loaders.questions.fields import row_of
from squtr.loaders.questions.question import CONFIGS, Question
from squtr.loaders.questions.rows import COLUMNS
from squtr.loaders.questions.statuses import AudioStatus, write_status
from squtr.loaders.questions.windows import windows

from .questions_for_tests import ALL, PUBLISHED, SECONDS, write_rows, write_set, write_sounds


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "home"


def built(folder: Path, source: QuestionData, **statuses: str) -> QuestionData:
    files = AudioFolder(source.folder / "audio").files
    sounds = {id_: path for id_, path in files.items() if id_ not in statuses}
    build_set(QuestionRecipe("tiny", "CC0-1.0", "es", source.questions(), sounds, statuses, {}), folder)  # type: ignore[arg-type]
    return QuestionData(folder)


def lengths(question: Question) -> Question:
    """The question with the lengths of its sound."""
    each = tuple(SECONDS[audio] for audio in question.audios)
    return replace(question, duration_s=math.fsum(each), audio_durations_s=each)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    data = QuestionData(write_set(tmp_path / "tiny"))
    assert data.questions() == tuple(map(lengths, ALL))
    assert [q.id for q in data.questions("comparative")] == ["m2"]
    assert {config: len(data.questions(config)) for config in CONFIGS} == {
        "mcqa": 4, "aif": 1, "comparative": 1, "spoken": 1, "non_normative": 1, "all": 5,
    }  # fmt: skip
    assert data.name == "tiny" and data.license == "unknown"
    assert data.audio("clip-1") == tmp_path / "tiny" / "audio" / "clip-1.flac"
    assert data.audio_facts("clip-2").duration_s == 1.5
    with pytest.raises(UnknownNameError, match="Did you mean 'spoken'"):
        data.questions("spokn")


@pytest.mark.parametrize(("table", "audio"), [("json", "audio"), ("tsv", "data/audio")])
def test_the_published_layout(tmp_path: Path, table: str, audio: str) -> None:
    rows = [PUBLISHED, {**PUBLISHED, "id": "esc_0002", "audio_path": "esc_0002.wav", "url": "https://example.org/2"}]
    path = tmp_path / "data" / "tsv" / f"ESCUCHA.{table}"
    path.parent.mkdir(parents=True)
    if table == "json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        cells = [[json.dumps(v) if isinstance(v, list) else str(v) for v in row.values()] for row in rows]
        path.write_text("\n".join("\t".join(line) for line in [list(PUBLISHED), *cells]), encoding="utf-8")
    write_sounds(tmp_path / audio, {"esc_0001": 2.0}, "wav")
    data = QuestionData(tmp_path)
    assert data.name == "escucha"
    assert [question.duration_s for question in data.questions()] == [86.2, 86.2]
    assert data.questions()[0].options == ("La mujer", "El hombre", "Los dos", "Nadie")
    coverage = data.coverage()
    assert (coverage.items, coverage.covered) == (2, 1)
    assert coverage.missing == {"esc_0002": ("esc_0002", "missing")}


def test_missing_sound_is_coverage(tmp_path: Path) -> None:
    folder = write_set(tmp_path)
    (folder / "audio" / "clip-2.flac").unlink()
    (folder / "audio" / "pregunta-m3.flac").unlink()
    write_status(folder, AudioStatus(id="clip-2", status="removed"))
    write_status(folder, AudioStatus(id="clip-1", status="private"))
    write_status(folder, AudioStatus(id="pregunta-m3", status="ok"))
    data = QuestionData(folder)
    assert len(data.questions()) == 5
    # A file that is there counts whatever a status says; a status alone is no file.
    assert data.status("clip-1") == "ok" and data.status("pregunta-m3") == "missing"
    assert data.coverage().missing == {"m2": ("clip-2", "removed"), "a1": ("clip-2", "removed")}
    assert data.coverage("mcqa").covered == 3
    assert data.coverage("spoken").missing == {"m3": ("pregunta-m3", "missing")}
    spoken = data.questions("spoken")[0]
    assert data.has(spoken) and not data.has(spoken, spoken=True)
    assert math.isnan(data.questions("aif")[0].duration_s)
    assert data.coverage().seconds == pytest.approx(1.0 + 1.0 + 0.5)
    with pytest.raises(AudioError, match="'clip-2' is not in"):
        data.audio("clip-2")


def test_a_sound_in_another_format_is_pointed_at(tmp_path: Path) -> None:
    folder = write_set(tmp_path)
    (folder / "audio" / "clip-1.flac").rename(folder / "audio" / "clip-1.wv")
    data = QuestionData(folder)
    assert data.status("clip-1") == "missing"
    with pytest.raises(AudioError, match=r"ffmpeg -i clip-1\.wv"):
        data.audio("clip-1")


def test_two_files_with_one_id(tmp_path: Path) -> None:
    folder = write_set(tmp_path)
    write_sounds(folder / "audio" / "more", {"clip-1": 1.0}, "wav")
    with pytest.raises(DataError, match="the same id 'clip-1'"):
        QuestionData(folder).coverage()


def test_what_identifies_a_set(tmp_path: Path) -> None:
    first, second = (QuestionData(write_set(tmp_path / name)) for name in ("one", "two"))
    assert first.manifest_sha256 == second.manifest_sha256
    assert len(first.manifest_sha256) == 64 and first.revision == first.manifest_sha256[:16]
    write_sounds(tmp_path / "two" / "audio", {"clip-1": 1.1})
    assert QuestionData(tmp_path / "two").manifest_sha256 != first.manifest_sha256
    write_rows(tmp_path / "one" / "questions.jsonl", [row_of(question) for question in ALL[1:]])
    assert QuestionData(tmp_path / "one").manifest_sha256 != first.manifest_sha256


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no folder of questions"):
        QuestionData(tmp_path / "gone")
    with pytest.raises(DataError, match="holds no questions"):
        QuestionData(tmp_path).questions()


def test_a_built_set_is_the_same_as_its_files(tmp_path: Path) -> None:
    files = QuestionData(write_set(tmp_path / "tiny"))
    data = built(tmp_path / "built", files)
    assert data.questions() == files.questions()
    assert data.coverage() == files.coverage()
    for id_ in SECONDS:
        content = data.audio(id_)
        assert content == Path(files.audio(id_)).read_bytes()  # type: ignore[arg-type]
        assert sum(w.samples.size for w in windows(content, 0.3)) == round(SECONDS[id_] * 16_000)
    with pytest.raises(AudioError, match="'other' is not in"):
        data.audio("other")


def test_a_built_set_keeps_items_without_sound(tmp_path: Path) -> None:
    files = QuestionData(write_set(tmp_path / "tiny"))
    data = built(tmp_path / "built", files, **{"clip-2": "geo_blocked"})
    assert len(data.questions()) == 5
    assert data.coverage().missing == {"m2": ("clip-2", "geo_blocked"), "a1": ("clip-2", "geo_blocked")}
    rows = datasets.load_dataset(str(tmp_path / "built"), "all", split="test", cache_dir=str(tmp_path / "cache"))
    status = {row["id"]: row["audio_status"] for row in rows}
    assert status == {"m1": "ok", "m2": "geo_blocked", "m3": "ok", "m4": "ok", "a1": "geo_blocked"}
    assert "3 of 5 items is there" in (tmp_path / "built" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("config", ["questions", *(f"questions_{config}" for config in CONFIGS)])
def test_configs_behind_the_bare_name(home: Path, tmp_path: Path, config: str) -> None:
    files = QuestionData(write_set(tmp_path / "tiny"))
    built(tmp_path / "built", files)
    wanted = files.questions(config.removeprefix("questions").lstrip("_") or "all")
    for source in (tmp_path / "tiny", tmp_path / "built"):
        rows = squtr.load_dataset(config, source=str(source))
        assert rows.column_names == list(COLUMNS)
        assert [row["id"] for row in rows] == [question.id for question in wanted]
        for row, question in zip(rows, wanted, strict=True):
            assert row["audio"]["bytes"] == Path(files.audio(question.audios[0])).read_bytes()  # type: ignore[arg-type]
            assert bool(row["audio_2"]["bytes"]) == question.comparative
            assert bool(row["question_audio"]["bytes"]) == question.spoken
            assert (row["options"], row["answer"]) == (list(question.options), question.answer)
            assert json.loads(row["verifiers"]) == [dict(verifier) for verifier in question.verifiers]
            assert not any(value is None for value in row.values())
    plain = datasets.load_dataset("squtr", config, source=str(tmp_path / "tiny"), split="test", streaming=True)
    assert [row["id"] for row in plain] == [question.id for question in wanted]


def test_the_embedded_set_behind_the_bare_name(home: Path) -> None:
    rows = squtr.load_dataset("questions_spoken", source="mini")
    assert len(rows) == len(QuestionData("mini").questions("spoken"))
    assert rows[0]["audio"]["bytes"][:4] == b"fLaC"
    assert open_questions("mini").folder == MINI_FOLDER


def test_without_a_source_what_lies_at_home_is_read(home: Path) -> None:
    with pytest.raises(DataError, match="squtr build"):
        squtr.load_dataset("questions")
    write_set(home / "questions")
    assert len(squtr.load_dataset("questions")) == 5
    assert {"questions", "questions_aif"} <= set(datasets.get_dataset_config_names("squtr"))
    assert "zh_clean" not in datasets.get_dataset_config_names("squtr")


def test_wrong_names_and_options(home: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'questions_spoken'"):
        squtr.load_dataset("questions_spokn", source="mini")
    with pytest.raises(UsageError, match="takes no option limit"):
        squtr.load_dataset("questions", source="mini", limit=3)
    with pytest.raises(UsageError, match="takes no option noise"):
        squtr.load_dataset("questions", source="mini", noise="demand")


def test_the_example_of_the_documentation(home: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "understanding.md"
    code = page.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {}
    exec(code, names)
    assert names["question"].comparative  # type: ignore[attr-defined]
    assert names["window"].samples.size > 16_000  # type: ignore[attr-defined]
    mini = QuestionData("mini")
    counts = {config: len(mini.questions(config)) for config in CONFIGS}
    said = f"{counts['all']} questions over {len(mini._store.present())} clips (5 minutes): {counts['mcqa']} multiple"
    assert said in page.read_text(encoding="utf-8")
