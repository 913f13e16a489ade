"""A set of questions as the harness reads it: questions in order, audio by id, coverage.

    data = QuestionData("mini")                # the embedded set; or a folder, see `QuestionData`
    for question in data.questions("mcqa"):    # Question: audios, question, options, answer, labels, …
        if data.has(question): ...             # all its audio is there; else data.coverage().missing says why not
            audio = data.audio(question.audios[0])          # a path, or a file's bytes
            for window in windows(audio, 30.0, 1.0): ...    # long audio piece by piece

What lies in a folder is found out from it: a set that `squtr build` wrote (`manifest.json`), a published repository
with its audio, as `squtr fetch questions` leaves it, or a table of one's own (`questions.jsonl`, `audio/`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ...errors import DataError, unknown_name
from ..home import data_folder
from ..jsonl import read_object
from ..shards import replace_file
from ..sources.digests import KeptDigests
from ..sources.published_questions import PUBLISHED_QUESTIONS
from .audio_folder import AudioFolder, find_audio_folder
from .fields import row_of
from .manifest import QUESTIONS, is_built_set
from .question import CONFIGS, Question, in_config
from .reading import TABLES, find_table, read_questions
from .statuses import AudioStatus, Coverage, Status, coverage_of, read_statuses
from .windows import AudioFile, Facts, facts

MINI = "mini"
MINI_FOLDER = Path(__file__).resolve().parent.parent / "data" / "questions_mini"
ABOUT, TAUGHT = "about.json", "fields.json"
LANGUAGE = "es"
"""That of a set which does not state its language."""


class QuestionStore(Protocol):
    """Where questions and audio lie: plain files, or a built set."""

    name: str
    benchmark: str
    license: str
    language: str

    def questions(self) -> Sequence[Question]: ...

    def audio(self, id_: str) -> AudioFile: ...

    def statuses(self) -> Mapping[str, AudioStatus]: ...

    def present(self) -> frozenset[str]: ...

    def digest(self) -> str:
        """The sha256 of what the set is."""
        ...


class QuestionData:
    """A set of questions with its audio.

    `folder` is "mini", or a folder (see the module); `audio` another folder of audio for plain files; `extra` further
    spellings of fields (see `fields`). Raises `DataError` for a folder that is none of the kinds, or a broken table.
    """

    def __init__(
        self, folder: Path | str = "mini", *, audio: Path | str = "", extra: Mapping[str, str] | None = None
    ) -> None:
        self.folder = MINI_FOLDER if folder == MINI else Path(folder).expanduser()
        self._audio = Path(audio).expanduser() if str(audio) else None
        self._extra = dict(extra or {})
        if not self.folder.is_dir():
            raise DataError(
                f"{folder} is no folder of questions.", hint='Give a folder, or "mini" for the embedded set.'
            )

    @cached_property
    def _store(self) -> QuestionStore:
        if is_built_set(self.folder):
            from .built import BuiltStore

            return BuiltStore(self.folder)
        return FileStore(self.folder, self._audio, self._extra)

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def benchmark(self) -> str:
        """The benchmark whose data this is; "" for a set of one's own."""
        return self._store.benchmark

    @property
    def language(self) -> str:
        return self._store.language

    @property
    def license(self) -> str:
        """SPDX identifiers with remarks; "unknown" where none is stated."""
        return self._store.license

    @cached_property
    def _questions(self) -> tuple[Question, ...]:
        return tuple(self._with_duration(question) for question in self._store.questions())

    def questions(self, config: str = "all") -> tuple[Question, ...]:
        """The questions of a config, in order, those without audio too. Raises `UnknownNameError`, `DataError`."""
        if config not in CONFIGS:
            raise unknown_name("config of questions", config, CONFIGS)
        return tuple(question for question in self._questions if in_config(question, config))

    @cached_property
    def _status(self) -> dict[str, Status]:
        known = {id_: status.status for id_, status in self._store.statuses().items()}
        present = self._store.present()
        # A file that is there counts, whoever put it there; a status "ok" without its file is missing.
        found: dict[str, Status] = {id_: status for id_, status in known.items() if status != "ok"}
        return found | dict.fromkeys(present, "ok")

    def status(self, audio: str) -> Status:
        """Whether a clip is there, and if not, why."""
        return self._status.get(audio, "missing")

    def question_status(self, question: Question) -> Status:
        """ "ok", or the status of the first of its clips that is missing."""
        return next((status for status in map(self.status, question.audios) if status != "ok"), "ok")

    def has(self, question: Question, *, spoken: bool = False) -> bool:
        """Whether every clip of a question is there; with `spoken` also the spoken question."""
        wanted = question.all_audios if spoken else question.audios
        return (not spoken or question.spoken) and all(self.status(audio) == "ok" for audio in wanted)

    def coverage(self, config: str = "all") -> Coverage:
        """How many questions of a config have their audio, and why others do not; "spoken" counts the spoken ones'."""
        return coverage_of(self.questions(config), self._status, spoken=config == "spoken")

    def audio(self, id_: str) -> AudioFile:
        """The audio with this id: the path of a file, or (in a built set) a file's bytes. Raises `AudioError`."""
        return self._store.audio(id_)

    def audio_facts(self, id_: str) -> Facts:
        return facts(self.audio(id_), f"the audio {id_!r}")

    @cached_property
    def manifest_sha256(self) -> str:
        """What identifies the set: of a built one the sha256 of its manifest, else that of its questions and files."""
        return self._store.digest()

    @property
    def revision(self) -> str:
        return self.manifest_sha256[:16]

    def _with_duration(self, question: Question) -> Question:
        """The question with the length of its audio from the files, where the table does not say it."""
        if not math.isnan(question.duration_s) or not self.has(question):
            return question
        lengths = tuple(round(self.audio_facts(audio).duration_s, 3) for audio in question.audios)
        return replace(question, duration_s=round(math.fsum(lengths), 3), audio_durations_s=lengths)


class FileStore:
    def __init__(self, folder: Path, audio: Path | None, extra: Mapping[str, str]) -> None:
        table = find_table(folder)
        if table is None:
            raise DataError(
                f"{folder} holds no questions.",
                hint="Give a folder with questions.jsonl and audio/, a published repository with its audio (see `squtr "
                "fetch questions`), or one that `squtr build` wrote.",
            )
        self._table, self._folder, self._extra = table, folder, {**read_taught(folder), **extra}
        self._clips = AudioFolder(audio or find_audio_folder(folder))
        about = _object(folder / ABOUT)
        place = table.relative_to(folder).as_posix()
        published = next((row for row in PUBLISHED_QUESTIONS.values() if place in row.tables), None)
        self.name = str(about.get("name") or (published.name if published else folder.resolve().name))
        self.benchmark = published.name if published else ""
        self.license = str(about.get("license") or (published.license if published else "unknown"))
        self.language = str(about.get("language") or (published.language if published else LANGUAGE))

    def questions(self) -> Sequence[Question]:
        return read_questions(self._table, extra=self._extra)

    def audio(self, id_: str) -> Path:
        return self._clips.path(id_)

    def present(self) -> frozenset[str]:
        return frozenset(self._clips.files) if self._clips.folder.is_dir() else frozenset()

    def statuses(self) -> Mapping[str, AudioStatus]:
        return read_statuses(self._folder)

    def digest(self) -> str:
        """The sha256 over all questions as we write them, and over the files of the clips they name."""
        digest = hashlib.sha256()
        kept = KeptDigests(self._clips.folder)
        questions = self.questions()
        for question in questions:
            digest.update(json.dumps(row_of(question), ensure_ascii=False, sort_keys=True).encode("utf-8") + b"\n")
        present = self.present()
        for id_ in sorted({audio for question in questions for audio in question.all_audios} & present):
            digest.update(f"{len(id_)}:{id_}={kept.sha256(id_, self.audio(id_))}\n".encode())
        kept.save()
        return digest.hexdigest()


def read_taught(folder: Path) -> dict[str, str]:
    """The spellings of fields that were taught for this folder, `fields.json`; {} if there are none."""
    return {str(spelling): str(field) for spelling, field in _object(folder / TAUGHT).items()}


def write_taught(folder: Path, extra: Mapping[str, str]) -> None:
    """Keep spellings of fields beside the table, so that everything that reads the folder knows them."""
    content = json.dumps({**read_taught(folder), **extra}, ensure_ascii=False, indent=1, sort_keys=True)
    replace_file(folder / TAUGHT, (content + "\n").encode("utf-8"))


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} if there is no file."""
    return read_object(path) if path.is_file() else {}


def find_set(folder: Path) -> bool:
    return is_built_set(folder) or find_table(folder) is not None


def names_questions(source: str) -> bool:
    """Whether a source is a published set of questions, a table, or a folder with one (and no name of speech)."""
    path = Path(source).expanduser()
    return (
        source in PUBLISHED_QUESTIONS
        or (path.suffix.lower() in TABLES and path.is_file())
        or find_table(path) is not None
    )


def table_of(source: str) -> tuple[Path, Path]:
    """The table of questions that a source names, and its folder (see `open_questions`). Raises `DataError`."""
    path = Path(source).expanduser()
    if path.suffix.lower() in TABLES:
        return path, path.parent
    folder = MINI_FOLDER if source == MINI else data_folder(source) if source in PUBLISHED_QUESTIONS else path
    table = find_table(folder)
    if table is None:
        raise DataError(f"{folder} holds no table of questions.", hint="Give the table, or fetch one.")
    return table, folder


def open_questions(source: str | None) -> QuestionData:
    """The set that a source names: "mini", a published set that was fetched, a folder, or None for what was built.

    What was built lies in `$SQUTR_HOME/questions`. Raises `DataError` that says how to get what is not there.
    """
    if source is not None and source not in PUBLISHED_QUESTIONS:
        return QuestionData(source)
    folder = data_folder(source or QUESTIONS)
    if not find_set(folder):
        raise DataError(
            f"no questions lie in {folder}.",
            hint=f"Run `squtr fetch questions {source}`."
            if source
            else 'Build your own with `squtr build`, or name a source: "mini" for the embedded set, a folder, or what '
            f"`squtr fetch questions` fetched ({', '.join(PUBLISHED_QUESTIONS)}).",
        )
    return QuestionData(folder)
