"""The benchmark's data as the harness reads it: questions in order, sound by id, coverage.

    data = QuestionData("mini")                 # the embedded set; or a folder, see `QuestionData`
    for question in data.questions("mcqa"):    # Question: audios, question, options, answer, labels, …
        if data.has(question): ...             # every sound is there; else data.coverage().missing says why not
            sound = data.audio(question.audios[0])          # a path, or a file's bytes
            for window in windows(sound, 30.0, 1.0): ...    # long sound piece by piece

What lies in a folder is found out from it: a set that `squtr build escucha` wrote (`manifest.json`), the published
repository with its sound (`data/tsv/ESCUCHA.json` or `.tsv`, `audio/`, as `squtr fetch escucha` leaves it), or a table
of one's own (`questions.jsonl`, `audio/`).
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
from ..home import escucha_folder
from ..manifest import benchmark_of
from ..shards import replace_file
from ..sources.digests import KeptDigests, stream_sha256
from .audio_folder import AudioFolder, find_audio_folder
from .fields import row_of
from .manifest import ESCUCHA
from .question import CONFIGS, Question, in_config
from .reading import find_table, read_questions
from .statuses import AudioStatus, Coverage, Status, coverage_of, read_statuses
from .windows import AudioFile, Facts, facts

MINI = ("mini", "escucha_mini")
MINI_FOLDER = Path(__file__).resolve().parent.parent / "data" / "escucha_mini"
ABOUT, TAUGHT = "about.json", "fields.json"


class QuestionStore(Protocol):
    """Where questions and sound lie: plain files, or a built set."""

    name: str
    license: str

    def questions(self) -> Sequence[Question]:
        """All questions, in order."""
        ...

    def audio(self, id_: str) -> AudioFile:
        """A sound by id. Raises `AudioError`."""
        ...

    def statuses(self) -> Mapping[str, AudioStatus]:
        """What is known of sounds that were fetched, by id."""
        ...

    def present(self) -> frozenset[str]:
        """The ids of the sounds that are there."""
        ...

    def digest(self) -> str:
        """The sha256 of what the set is."""
        ...


class QuestionData:
    """A set of questions with its sound.

    `folder` is "mini", or a folder (see the module); `audio` another folder of sound for plain files; `extra` further
    spellings of fields (see `fields`). Raises `DataError` for a folder that is none of the kinds, or a broken table.
    """

    def __init__(
        self, folder: Path | str = "mini", *, audio: Path | str = "", extra: Mapping[str, str] | None = None
    ) -> None:
        named_mini = isinstance(folder, str) and folder in MINI
        self.folder = MINI_FOLDER if named_mini else Path(folder).expanduser()
        self._audio = Path(audio).expanduser() if str(audio) else None
        self._extra = dict(extra or {})
        if not self.folder.is_dir():
            raise DataError(
                f"{folder} is no folder of questions.", hint='Give a folder, or "mini" for the embedded set.'
            )

    @cached_property
    def _store(self) -> QuestionStore:
        if benchmark_of(self.folder):
            from .built import BuiltStore

            return BuiltStore(self.folder)
        return FileStore(self.folder, self._audio, self._extra)

    @property
    def name(self) -> str:
        """What tables call the set."""
        return self._store.name

    @property
    def license(self) -> str:
        """SPDX identifiers with remarks; "unknown" where none is stated."""
        return self._store.license

    @cached_property
    def _questions(self) -> tuple[Question, ...]:
        return tuple(self._with_duration(question) for question in self._store.questions())

    def questions(self, config: str = "all") -> tuple[Question, ...]:
        """The questions of a config, in order, those without sound too. Raises `UnknownNameError`, `DataError`."""
        if config not in CONFIGS:
            raise unknown_name("config of escucha:", config, CONFIGS)
        return tuple(question for question in self._questions if in_config(question, config))

    @cached_property
    def _status(self) -> dict[str, Status]:
        known = {id_: status.status for id_, status in self._store.statuses().items()}
        present = self._store.present()
        # A file that is there counts, whoever put it there; a status "ok" without its file is missing.
        found: dict[str, Status] = {id_: status for id_, status in known.items() if status != "ok"}
        return found | dict.fromkeys(present, "ok")

    def status(self, audio: str) -> Status:
        """Whether a sound is there, and if not, why."""
        return self._status.get(audio, "missing")

    def has(self, question: Question, *, spoken: bool = False) -> bool:
        """Whether every sound of a question is there; with `spoken` also the spoken question."""
        wanted = question.all_audios if spoken else question.audios
        return (not spoken or question.spoken) and all(self.status(audio) == "ok" for audio in wanted)

    def coverage(self, config: str = "all") -> Coverage:
        """How many questions of a config can be asked, and why the others cannot; "spoken" asks them aloud."""
        return coverage_of(self.questions(config), self._status, spoken=config == "spoken")

    def audio(self, id_: str) -> AudioFile:
        """The sound with this id: the path of a file, or (in a built set) a file's bytes. Raises `AudioError`."""
        return self._store.audio(id_)

    def audio_facts(self, id_: str) -> Facts:
        """Length in s, sample rate in Hz and channels of a sound, from its header."""
        return facts(self.audio(id_), f"the sound {id_!r}")

    @cached_property
    def manifest_sha256(self) -> str:
        """What identifies the set: of a built one the sha256 of its manifest, else that of its questions and files."""
        return self._store.digest()

    @property
    def revision(self) -> str:
        """The first 16 digits of `manifest_sha256`."""
        return self.manifest_sha256[:16]

    def _with_duration(self, question: Question) -> Question:
        """The question with the length of its sound from the files, where the table does not say it."""
        if not math.isnan(question.duration_s) or not self.has(question):
            return question
        lengths = tuple(round(self.audio_facts(audio).duration_s, 3) for audio in question.audios)
        return replace(question, duration_s=round(math.fsum(lengths), 3), audio_durations_s=lengths)


class FileStore:
    """A table of questions and a folder of sound files."""

    def __init__(self, folder: Path, audio: Path | None, extra: Mapping[str, str]) -> None:
        table = find_table(folder)
        if table is None:
            raise DataError(
                f"{folder} holds no questions.",
                hint="Give a folder with questions.jsonl and audio/, the published repository with its sound (see "
                "`squtr fetch escucha`), or one that `squtr build escucha` wrote.",
            )
        self._table, self._folder, self._extra = table, folder, {**read_taught(folder), **extra}
        self._sounds = AudioFolder(audio or find_audio_folder(folder))
        about = _object(folder / ABOUT)
        self.name = str(about.get("name") or (ESCUCHA if "ESCUCHA" in table.name else folder.resolve().name))
        self.license = str(about.get("license") or "unknown")

    def questions(self) -> Sequence[Question]:
        """All questions of the table."""
        return read_questions(self._table, extra=self._extra)

    def audio(self, id_: str) -> Path:
        """The file of a sound."""
        return self._sounds.path(id_)

    def present(self) -> frozenset[str]:
        """The sounds that are there; none where the folder does not exist."""
        return frozenset(self._sounds.files) if self._sounds.folder.is_dir() else frozenset()

    def statuses(self) -> Mapping[str, AudioStatus]:
        """What `squtr fetch escucha` wrote."""
        return read_statuses(self._folder)

    def digest(self) -> str:
        """The sha256 over all questions as we write them, and over the files of the sounds they name."""
        digest = hashlib.sha256()
        kept = KeptDigests(self._sounds.folder)
        questions = self.questions()
        for question in questions:
            digest.update(json.dumps(row_of(question), ensure_ascii=False, sort_keys=True).encode("utf-8") + b"\n")
        present = self.present()
        for id_ in sorted({audio for question in questions for audio in question.all_audios} & present):
            path = self.audio(id_)

            def make(path: Path = path) -> str:
                with path.open("rb") as stream:
                    return stream_sha256(stream)

            digest.update(f"{len(id_)}:{id_}={kept.get(id_, path, 'sha256', make)}\n".encode())
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
    if not path.is_file():
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not JSON: {error}.", hint="Mend the file.") from error
    if not isinstance(about, dict):
        raise DataError(f"{path} is no JSON object.", hint="Mend the file.")
    return about


def find_set(folder: Path) -> bool:
    """Whether a folder holds a built set or a table of questions."""
    return benchmark_of(folder) == ESCUCHA or find_table(folder) is not None


def default_data() -> QuestionData:
    """What was built or fetched into `$SQUTR_HOME/escucha`. Raises `DataError` that says how to get it."""
    folder = escucha_folder()
    if not find_set(folder):
        raise DataError(
            f"no questions lie in {folder}.",
            hint="Run `squtr fetch escucha`, build your own with `squtr build escucha`, or name a source: "
            'load_dataset("squtr", "escucha", source="escucha_mini") for the embedded set.',
        )
    return QuestionData(folder)


def open_data(source: str | None) -> QuestionData:
    """The set that a source names: None for what lies in `$SQUTR_HOME`, "mini" or "escucha_mini", or a folder."""
    if source is None:
        return default_data()
    return QuestionData("mini" if source in MINI else source)
