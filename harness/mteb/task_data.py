"""Where the tasks' data comes from: the Hub's layout (a repository or a built folder), or any `SpeechData`.

Queries have two columns, `id` and `audio` (or `text`); soundfile decodes the audio when a row is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ...errors import AudioError, DataError, HubError, unknown_name
from ...loaders.audio import decode_audio
from ...loaders.conditions import STANDARD_CONDITIONS, TEXT
from ...loaders.data import BuiltData, LiveData, SpeechData
from ...loaders.home import data_folder
from ...loaders.manifest import MANIFEST_NAME, Manifest, read_manifest
from ...loaders.origins import licenses
from ...loaders.recipe import open_recipe
from ...loaders.records import SAMPLE_RATE
from ...loaders.rows import ROWS_PER_TABLE, batches
from ..data import names_source, open_speech
from .workspace import Workspace, refused

if TYPE_CHECKING:
    from datasets import Dataset

_HUB = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_AUDIO = pa.schema([("id", pa.string()), ("audio", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))])


class TaskData(Protocol):
    @property
    def path(self) -> str:
        """Where it lies: a folder, a repository, a source's name."""
        ...

    @property
    def revision(self) -> str:
        """The commit of a repository, else the fingerprint of the recipe."""
        ...

    @property
    def licenses(self) -> Sequence[str]: ...

    @property
    def subsets(self) -> Mapping[str, str]: ...

    @property
    def conditions(self) -> Sequence[str]:
        """The conditions at hand, without `text`."""
        ...

    def corpus(self, subset: str) -> Dataset:
        """Columns `id`, `title`, `text`."""
        ...

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """Grades by query id and document id."""
        ...

    def spoken(self, subset: str, condition: str, workspace: Workspace) -> Dataset:
        """Columns `id` and `audio` (a file's bytes), in the order of the subset's queries."""
        ...

    def typed(self, subset: str) -> Dataset:
        """Columns `id` and `text`."""
        ...


def _refuse_several_rows(path: str, recipe: Mapping[str, Any]) -> None:
    """Raise `DataError` for data whose queries have several rows: mteb looks their judgments up by the row's id."""
    several = {"draws": "draws of noise", "rirs_per_utterance": "RIRs"}
    for key, what in several.items():
        if int(recipe.get(key, 1)) > 1:
            raise DataError(
                f"{path} has several {what} per utterance, and mteb has one row per query.",
                hint="Use squtr evaluate, or build a set with one.",
            )


class LayoutData:
    """A built folder, or its repository on the Hub, through its configs `<config>-queries` and its tables."""

    def __init__(self, path: str, manifest: Manifest, *, commit: str = "") -> None:
        _refuse_several_rows(path, manifest.recipe)
        self.path = path
        self.revision = commit or manifest.recipe_fingerprint
        self.licenses = licenses(manifest.recipe)
        self.subsets: Mapping[str, str] = manifest.subsets
        self.conditions: Sequence[str] = manifest.conditions
        self._commit = commit or None

    def _load(self, config: str) -> Dataset:
        import datasets

        try:
            loaded: Dataset = datasets.load_dataset(self.path, config, split="test", revision=self._commit)
        except ValueError as error:
            raise DataError(
                f"{self.path} has no config {config!r}: {_first_line(error)}.",
                hint="If an earlier squtr built it, run the same `squtr build` again: it writes the card anew.",
            ) from error
        except OSError as error:
            raise DataError(f"{self.path}: the config {config!r} cannot be read: {_first_line(error)}.") from error
        return loaded

    def corpus(self, subset: str) -> Dataset:
        return self._load(f"{subset}-corpus")

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        grades: dict[str, dict[str, int]] = {}
        for row in self._load(f"{subset}-qrels"):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
        return grades

    def spoken(self, subset: str, condition: str, workspace: Workspace) -> Dataset:
        del workspace  # `datasets` caches what it loads
        return self._load(f"{subset}_{condition}-queries").select_columns(["id", "audio"])

    def typed(self, subset: str) -> Dataset:
        return self._load(f"{subset}_{TEXT}-queries").select_columns(["id", "text"])


class PairedTaskData:
    """Any `SpeechData`: a recipe rendered on the fly, or a published release."""

    def __init__(self, data: SpeechData, path: str) -> None:
        _refuse_several_rows(path, data.recipe)
        self.path = path
        self.revision = data.revision
        self.licenses = licenses(data.recipe)
        self.subsets = data.subsets
        self.conditions = data.conditions
        self._data = data

    def corpus(self, subset: str) -> Dataset:
        import datasets

        documents = self._data.documents(subset)
        return datasets.Dataset.from_dict(
            {
                "id": [d.id for d in documents],
                "title": [d.title for d in documents],
                "text": [d.text for d in documents],
            }
        )

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        return self._data.qrels(subset)

    def spoken(self, subset: str, condition: str, workspace: Workspace) -> Dataset:
        """The spoken queries: rendered now, kept in the workspace and read from there as they are needed."""
        import datasets

        path = workspace.folder() / f"{subset}_{condition}.arrow"
        try:
            with pa.ipc.new_stream(path, _AUDIO) as stream:
                for batch in batches(self._data.spoken(subset, condition), ROWS_PER_TABLE):
                    # Without the file's name: it would tell the condition.
                    rows = [{"id": q.id, "audio": {"bytes": q.audio, "path": None}} for q in batch]
                    stream.write_table(pa.Table.from_pylist(rows, schema=_AUDIO))
        except OSError as error:
            raise refused(path.parent, error) from error
        audio = datasets.Audio(sampling_rate=SAMPLE_RATE, decode=False)
        return datasets.Dataset.from_file(str(path)).cast_column("audio", audio)

    def typed(self, subset: str) -> Dataset:
        import datasets

        queries = self._data.queries(subset)
        return datasets.Dataset.from_dict({"id": [q.id for q in queries], "text": [q.text for q in queries]})


def open_task_data(data: SpeechData | Path | str | None, conditions: Sequence[str] | None) -> TaskData:
    """What `mteb_tasks(data=…)` names, opened; `conditions` are asked of a source besides the standard ones."""
    if data is None:
        folder = data_folder()
        return (
            _built(folder) if (folder / MANIFEST_NAME).exists() else PairedTaskData(open_speech("release"), "release")
        )
    if not isinstance(data, str | Path):
        return PairedTaskData(data, "squtr")
    folder, name = Path(data).expanduser(), str(data)
    if (folder / MANIFEST_NAME).exists():
        return _built(folder)
    if isinstance(data, str) and names_source(data, "release"):
        return PairedTaskData(open_speech(data), data)
    repository = _HUB.fullmatch(name)
    if isinstance(data, str) and repository is not None and not folder.exists() and not name.startswith("."):
        return _on_the_hub(repository[1], repository[2] or "main")
    wanted = dict.fromkeys((*STANDARD_CONDITIONS, *(c for c in conditions or () if c != TEXT)))
    return PairedTaskData(LiveData(open_recipe(name, conditions=list(wanted))), name)


def _built(folder: Path) -> LayoutData:
    return LayoutData(str(folder), BuiltData(folder).manifest)


def _on_the_hub(repository: str, revision: str) -> LayoutData:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    client = HfApi(library_name="squtr")
    try:
        commit = revision
        if not _COMMIT.fullmatch(revision):
            commit = client.repo_info(repository, repo_type="dataset", revision=revision).sha or revision
        path = client.hf_hub_download(repository, MANIFEST_NAME, repo_type="dataset", revision=commit)
    except LocalEntryNotFoundError as error:
        raise HubError(f"{repository} cannot be reached on the Hub, and is not cached.") from error
    except EntryNotFoundError as error:
        raise DataError(
            f"{repository} on the Hub has no {MANIFEST_NAME}: squtr did not push it.",
            hint="Build a data set from it first (`squtr build --source …`), or name another repository.",
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise HubError(
            f"{repository} at {revision!r} cannot be read on the Hub: {_first_line(error)}.",
            hint="Check the name, the revision and your permissions (`hf auth login`).",
        ) from error
    manifest = read_manifest(Path(path).parent)
    return LayoutData(repository, manifest, commit=commit)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")


def chosen_conditions(data: TaskData, conditions: Sequence[str] | None) -> list[str]:
    if conditions is None:
        return list(data.conditions)
    for condition in conditions:
        if condition not in (*data.conditions, TEXT):
            raise unknown_name("condition", condition, (*data.conditions, TEXT))
    return [condition for condition in data.conditions if condition in conditions]


def audio_rows(files: Sequence[bytes]) -> Dataset:
    """Columns `id` (the position) and `audio` of these audio files."""
    import datasets

    rows = [{"id": str(i), "audio": {"bytes": file, "path": None}} for i, file in enumerate(files)]
    audio = datasets.Audio(sampling_rate=SAMPLE_RATE, decode=False)
    return datasets.Dataset(pa.Table.from_pylist(rows, schema=_AUDIO)).cast_column("audio", audio)


def decoded(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A file as mteb's models take it: `{"array": (T,) float32, "sampling_rate": Hz}`. Raises `AudioError`."""
    samples, rate = decode_audio(item["bytes"] or b"", name)
    return {"array": samples, "sampling_rate": rate}


def playable(queries: Dataset) -> list[int]:
    """The positions of the queries whose audio can be decoded and is not empty; all where there is no audio."""
    if "audio" not in queries.column_names:
        return list(range(len(queries)))
    import datasets

    found = []
    for i, row in enumerate(queries.cast_column("audio", datasets.Audio(sampling_rate=SAMPLE_RATE, decode=False))):
        try:
            clip = decoded(row["audio"], f"query {row['id']!r}")
        except AudioError:
            continue
        if len(clip["array"]):
            found.append(i)
    return found
