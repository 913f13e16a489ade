"""LibriSpeech (Panayotov et al., ICASSP 2015): read books with their transcripts, from the Hub or an unpacked folder.

    librispeech:test-clean                       the Hub, at the commit that squtr pins
    librispeech:test-clean@<commit>              the Hub, at another commit
    librispeech:LibriSpeech?part=test-clean      the unpacked archives of openslr.org/12
    librispeech:LibriSpeech/test-clean           the same

Below a folder, `<speaker>-<chapter>.trans.txt` holds a line `<utterance id> <TEXT>` per recording, which lies beside it
as `<utterance id>.flac`. Recordings alone: there is no corpus and nothing is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import AudioError, DataError, HubError, UsageError, unknown_name
from ..audio import Channel
from ..faults import Fault, Faults
from ..records import CleanSpeech, Query
from .clips import RecordingsAlone, read_speech
from .digests import files_version
from .names import COMMIT, SourceName, channel_suffix

if TYPE_CHECKING:
    import datasets

REPOSITORY = "openslr/librispeech_asr"
REVISION = "71cacbfb7e2354c4226d01e70d77d5fca3d04ba1"
"""The commit of the repository that is read unless another is named."""

PARTS = {
    "test-clean": "clean/test", "test-other": "other/test", "dev-clean": "clean/validation",
    "dev-other": "other/validation", "train-clean-100": "clean/train.100", "train-clean-360": "clean/train.360",
    "train-other-500": "other/train.500",
}  # fmt: skip
"""Name of a part to the folder of the repository that holds it."""

LICENSE = "CC-BY-4.0"
TRANSCRIPTS = ".trans.txt"


@dataclass(frozen=True, slots=True)
class Utterance:
    id: str
    speaker: str
    text: str


class _Store(Protocol):
    @property
    def version(self) -> str: ...

    def utterances(self) -> Sequence[Utterance]: ...

    def recording(self, id_: str) -> bytes | Path: ...


class LibriSpeechSource(RecordingsAlone):
    """One part of LibriSpeech as a source. A query is an utterance, its group the speaker; the subset is the part."""

    license = LICENSE

    def __init__(self, part: str, store: _Store, channel: Channel = None) -> None:
        if part not in PARTS:
            raise unknown_name("part of LibriSpeech:", part, PARTS)
        self._part, self._store, self._channel = part, store, channel

    @property
    def name(self) -> str:
        return f"librispeech:{self._part}"

    @property
    def version(self) -> str:
        return self._store.version + channel_suffix(self._channel)

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType({self._part: "en"})

    @cached_property
    def _queries(self) -> dict[str, tuple[Query, str]]:
        found: dict[str, tuple[Query, str]] = {}
        faults = Faults()
        for utterance in self._store.utterances():
            if utterance.id in found:
                message = f"{self.name} has the utterance {utterance.id!r} twice."
                faults.add([Fault(message, "Remove one.")])
            if not utterance.text:
                message = f"{self.name}: the utterance {utterance.id!r} has no text."
                faults.add([Fault(message, "Get the part again.")])
            query = Query(utterance.id, self._part, "en", utterance.text, utterance.speaker)
            found[utterance.id] = (query, utterance.speaker)
        faults.refuse(self.name)
        if not found:
            raise DataError(f"{self.name} has no utterances.", hint="Get the part again.")
        return found

    def queries(self, subset: str) -> Sequence[Query]:
        self.check(subset)
        return [query for query, _ in self._queries.values()]

    def speaker_of(self, query: Query) -> str:
        return query.group

    def speech_at(self, query: Query, rate: int) -> CleanSpeech:
        """Unchanged at 16 kHz, the rate that it was published at."""
        known = self._queries.get(query.id)
        if known is None:
            raise AudioError(f"{self.name} has no utterance {query.id!r}.", hint="Ask for one of its own.")
        name = f"the recording of utterance {query.id!r} of {self.name}"
        samples = read_speech(self._store.recording(query.id), name, rate, channel=self._channel)
        return CleanSpeech(samples, speaker=known[1])


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _files(self) -> dict[str, tuple[Utterance, Path]]:
        found: dict[str, tuple[Utterance, Path]] = {}
        faults = Faults()
        for path in sorted(self._folder.rglob(f"*{TRANSCRIPTS}")):
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise DataError(f"{path} cannot be read: {error}.", hint="Unpack the archive again.") from error
            for number, line in enumerate(lines, start=1):
                id_, _, text = line.strip().partition(" ")
                if not id_:
                    continue
                if id_ in found:
                    message = f"{path}, line {number}: the utterance {id_!r} occurs twice."
                    faults.add([Fault(message, "Remove one.")])
                utterance = Utterance(id_, id_.partition("-")[0], text.strip())
                found[id_] = (utterance, path.parent / f"{id_}.flac")
        faults.refuse(str(self._folder))
        if not found:
            raise DataError(
                f"{self._folder} holds no {TRANSCRIPTS} files.", hint="Unpack an archive of openslr.org/12 there."
            )
        return found

    @cached_property
    def version(self) -> str:
        names = {path.relative_to(self._folder).as_posix() for _, path in self._files.values() if path.is_file()}
        names |= {path.relative_to(self._folder).as_posix() for path in self._folder.rglob(f"*{TRANSCRIPTS}")}
        return files_version(self._folder, names)

    def utterances(self) -> Sequence[Utterance]:
        return [utterance for utterance, _ in self._files.values()]

    def recording(self, id_: str) -> Path:
        return self._files[id_][1]


class _Hub:
    """A part on the Hub. Only its own files are downloaded; rows are memory-mapped."""

    def __init__(self, repository: str, revision: str, part: str) -> None:
        self._repository, self.version, self._part = repository, revision, part
        self._table: datasets.Dataset | None = None
        self._positions: dict[str, int] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (_Hub, (self._repository, self.version, self._part))

    def _rows(self) -> datasets.Dataset:
        if self._table is None:
            import datasets
            from datasets.exceptions import DatasetsError

            try:
                loaded: Any = datasets.load_dataset(
                    self._repository,
                    # The split alone, not the config: its training part is 60 times as large.
                    data_files={"part": f"{PARTS[self._part]}/*.parquet"},
                    split="part",
                    revision=self.version,
                    verification_mode="no_checks",
                )
            except (DatasetsError, OSError, ValueError) as error:
                raise HubError(
                    f"{self._part} of {self._repository}@{self.version[:8]} cannot be loaded: {error}".rstrip(".")
                    + ".",
                    hint="Check the network, or unpack the archive of openslr.org/12 and write "
                    f"librispeech:LibriSpeech?part={self._part}.",
                ) from error
            missing = {"id", "audio", "text"} - set(loaded.column_names)
            if missing:
                raise DataError(
                    f"{self._repository} lacks the columns {', '.join(sorted(missing))}.", hint="Name another commit."
                )
            self._table = loaded.cast_column("audio", datasets.Audio(decode=False))
        return self._table

    def utterances(self) -> Sequence[Utterance]:
        rows = self._rows()
        ids = [str(id_) for id_ in rows["id"]]
        self._positions = {id_: number for number, id_ in enumerate(ids)}
        speakers = rows["speaker_id"] if "speaker_id" in rows.column_names else [id_.partition("-")[0] for id_ in ids]
        return [
            Utterance(id_, str(speaker), str(text).strip())
            for id_, speaker, text in zip(ids, speakers, rows["text"], strict=True)
        ]

    def recording(self, id_: str) -> bytes:
        if not self._positions:
            self.utterances()
        content: bytes | None = self._rows()[self._positions[id_]]["audio"]["bytes"]
        if content is None:
            raise AudioError(f"utterance {id_!r} of {self._repository} has no audio.", hint="Name another commit.")
        return content


def open_librispeech(name: SourceName) -> LibriSpeechSource:
    """`librispeech:PART[@COMMIT]`, or `librispeech:FOLDER?part=PART`. Raises `UsageError`, `UnknownNameError`."""
    part, _, revision = name.place.partition("@")
    if part in PARTS and not name.option("part"):
        if revision and not COMMIT.fullmatch(revision):
            raise UsageError(f"{revision!r} in {name.text!r} is no commit.", hint="Write its 40 digits.")
        return LibriSpeechSource(part, _Hub(REPOSITORY, revision or REVISION, part), name.channel)
    folder = name.folder()
    if not folder.is_dir():
        raise unknown_name("part of LibriSpeech, and no folder:", name.place, PARTS)
    wanted = name.option("part")
    if not wanted and folder.resolve().name in PARTS:
        return LibriSpeechSource(folder.resolve().name, _Folder(folder), name.channel)
    found = sorted(path.name for path in (*folder.iterdir(), *folder.glob("LibriSpeech/*")) if path.name in PARTS)
    if not wanted and len(found) != 1:
        held = f"holds {', '.join(found)}" if found else "holds no part of LibriSpeech"
        raise UsageError(f"{folder} {held}.", hint=f"Choose one: {name.text}?part=test-clean.")
    wanted = wanted or found[0]
    if wanted not in PARTS:
        raise unknown_name("part of LibriSpeech:", wanted, PARTS)
    for place in (folder / wanted, folder / "LibriSpeech" / wanted):
        if place.is_dir():
            return LibriSpeechSource(wanted, _Folder(place), name.channel)
    # A folder whose name is not the part's, with the transcripts in it.
    if any(folder.rglob(f"*{TRANSCRIPTS}")) and not found:
        return LibriSpeechSource(wanted, _Folder(folder), name.channel)
    raise DataError(f"{folder} has no part {wanted}.", hint=f"Unpack {wanted}.tar.gz of openslr.org/12 there.")
