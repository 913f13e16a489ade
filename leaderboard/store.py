"""Where results are kept: a folder, or a data set on the Hub with the same layout (see `stored`).

Nothing is ever overwritten. In a folder a file is written to a temporary name and linked to its own, which fails if
there is one; on the Hub a commit names its parent. The JSON comes last, so a result that can be seen is whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ..errors import DataError, StorageError
from ..harness.tasks.verification import load_verifier
from ..loaders.hub.repository import Repository, is_repository
from .entry import Entry, from_result, merge
from .stored import FOLDER, inside, items_path, parse_path, read_stored
from .validate import Validation, records_of, validate_file


@dataclass(frozen=True, slots=True)
class Store:
    """What a store holds: one entry per system (see `entry.merge`), and where the records of its configs lie.

    `tables` maps an entry's id and a config to the validation that found the table, `problems` are sentences about
    files that were left out.
    """

    folder: Path
    entries: tuple[Entry, ...]
    tables: Mapping[tuple[str, str], Validation]
    problems: tuple[str, ...]

    def numbers(self, entry: Entry, config: str) -> pa.Table | None:
        """The records of an entry's config that ranks and tests need, None if it has none; texts as dictionaries."""
        found = self.tables.get((entry.id, config))
        if found is None or found.items is None or found.result is None:
            return None
        schema = load_verifier(found.result.task).schema(found.result)
        numeric = [field.name for field in schema if not pa.types.is_string(field.type)]
        plain = [name for name in numeric if not pa.types.is_list(schema.field(name).type)]
        keys = [
            name for name in ("id", "subset", "cluster", "order", "kind", "text", "question") if name in schema.names
        ]
        return records_of(found, found.items, columns=[*keys, *plain])


def is_folder(place: str) -> bool:
    """Whether a place is a folder and not a repository: what exists, or looks like a path.

    >>> is_folder("./results"), is_folder("org/squtr-results"), is_folder("/tmp/x")
    (True, False, True)
    """
    return Path(place).is_dir() or place.startswith((".", "/", "~")) or not is_repository(place)


def read_store(
    place: str | Path, *, revision: str = "main", rescore: bool = True, repository: Repository | None = None
) -> Store:
    """Read all results of a folder, or of a data set ORG/NAME on the Hub.

    A file that cannot be read or does not hold is left out, and named in `problems`: a bad file hides no other.
    With `rescore` the records are read, and an entry counts as `re-scored` if they give its scores; without, what has
    records is still called self-reported. Raises `DataError` if the place is no folder, `HubError` for the Hub.
    """
    if not isinstance(place, Path) and not is_folder(place):
        folder = (repository or Repository(place)).download(revision=revision, only=[f"{FOLDER}/**"])
        # A data set without results yet leaves no folder: it holds none.
    else:
        folder = Path(place).expanduser()
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist.", hint="Name a folder, or a data set on the Hub as ORG/NAME.")
    problems: list[str] = []
    singles: list[Entry] = []
    tables: dict[str, Validation] = {}
    for path in sorted((folder / FOLDER).glob("*/*/*.json")):
        name = path.relative_to(folder).as_posix()
        if parse_path(name) is None:
            problems.append(f"{name} is no place for a result.")
            continue
        validation = validate_file(path, records=rescore)
        if not validation.ok or validation.stored is None or validation.result is None:
            first = next(iter(validation.errors), None)
            problems.append(f"{name}: {first.message if first else 'it is not a stored result.'}")
            continue
        stored = validation.stored
        singles.append(
            from_result(
                validation.result,
                who=validation.who,
                date=stored.submitted,
                path=name,
                content=stored.measured_sha256,
                about=[about.as_model() for about in stored.about],
            )
        )
        if validation.items is not None:
            tables[name] = validation
    entries = merge(singles)
    found = {
        (entry.id, config): tables[source]
        for entry in entries
        for config, source in entry.sources.items()
        if source in tables
    }
    return Store(folder, tuple(entries), found, tuple(problems))


def stored_hashes(folder: Path) -> dict[str, str]:
    """The paths of the results in a folder by the hash in their names."""
    found = {}
    for path in sorted((folder / FOLDER).glob("*/*/*.json")):
        name = path.relative_to(folder).as_posix()
        named = parse_path(name)
        if named is not None:
            found[named.hash] = name
    return found


def add_files(folder: Path, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Add results to a folder, tables first; returns what was added. What is there with the same content stays.

    Raises `DataError` for a path that is no place for a result, or has another content; `StorageError` if the disk
    refuses.
    """
    places = {path: inside(folder, path) for path in files}
    added = []
    for path in sorted(files, key=lambda path: (path.endswith(".json"), path)):
        if _add(places[path], files[path]):
            added.append(path)
    return tuple(added)


def _add(path: Path, content: bytes) -> bool:
    """Create a file that was not there, or nothing. Whoever comes second loses, never the one who was first."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        try:
            _create(path, temporary, content)
        except FileExistsError:
            if path.read_bytes() == content:
                return False
            raise DataError(
                f"{path} is there already, with another content.",
                hint="Results are never overwritten: submit it again.",
            ) from None
        return True
    except OSError as error:
        if isinstance(error, DataError):
            raise
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}.", hint="Free space or choose another folder."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _create(path: Path, temporary: Path, content: bytes) -> None:
    """Give a finished file its name, if nothing has it. Raises `FileExistsError`."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links.
        with path.open("xb") as file:
            file.write(content)


__all__ = ["Store", "add_files", "is_folder", "items_path", "read_store", "read_stored", "stored_hashes"]
