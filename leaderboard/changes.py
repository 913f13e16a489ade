"""What a pull request does to a store: it may add results, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import DataError
from ..harness.results.comparable import aspects
from ..loaders.hub.repository import MAIN, Repository, Request
from .findings import Findings
from .records import file_sha256
from .stored import FOLDER, StoredResult, parse_path, read_stored
from .strict_json import shown
from .validate import Validation, cross_check, records_of, validate_file

MOST_FILES = 400
_LARGEST = 256 * 2**20
_HIDDEN = frozenset({".git", ".cache", ".gitattributes"})
"""What git and the Hub's client keep in a folder."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a pull request does: files added (where they lie, by path), paths changed and removed.

    `there` are the results that the store has, by path; a table may lie beside them or not.
    """

    added: Mapping[str, Path]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    there: Mapping[str, Path]
    refused: tuple[str, ...] = ()


def compare_folders(before: Path, after: Path) -> Change:
    """What differs between two copies of a store."""
    old, new = _files(before), _files(after)

    def differs(path: str) -> bool:
        a, b = old[path], new[path]
        return (
            a.is_symlink() != b.is_symlink() or a.stat().st_size != b.stat().st_size or file_sha256(a) != file_sha256(b)
        )

    return Change(
        added={path: file for path, file in new.items() if path not in old},
        changed=tuple(path for path in old if path in new and differs(path)),
        removed=tuple(path for path in old if path not in new),
        there={path: file for path, file in old.items() if _is_result(path)},
    )


def fetch_change(repository: Repository, request: Request, folder: Path) -> Change:
    """What a pull request on the Hub does; only what it adds and the numbers that are there are downloaded.

    The listings are compared first, so nothing large or out of place is fetched.
    """
    old, new = repository.tree(MAIN), repository.tree(request.revision)
    # A branch may be behind `main`: what came there meanwhile was not removed by it.
    base = repository.tree(repository.common_commit(request.revision))
    added = {path: entry for path, entry in new.items() if path not in base and path not in old}
    refused = tuple(path for path, entry in added.items() if parse_path(path) is None or entry.size > _LARGEST)
    wanted = [path for path in added if path not in refused][:MOST_FILES]
    theirs = repository.download(folder / "added", request.revision, only=wanted) if wanted else folder / "added"
    ours = repository.download(folder / "there", MAIN, only=[f"{FOLDER}/**/*.json"])
    there = {path: ours / path for path in old if _is_result(path) and (ours / path).is_file()}
    tables = _tables_to_compare([theirs / path for path in wanted if path.endswith(".json")], there, set(old))
    if tables:
        repository.download(folder / "there", MAIN, only=tables)
    return Change(
        added={path: theirs / path for path in wanted},
        changed=tuple(path for path, entry in new.items() if entry != base.get(path, old.get(path, entry))),
        removed=tuple(path for path in base if path not in new),
        there=there,
        refused=refused,
    )


def _tables_to_compare(added: Sequence[Path], there: Mapping[str, Path], known: set[str]) -> list[str]:
    """One stored table for each config that is added: whole results of a config have the same ids."""
    configs = {stored.config for path in added if (stored := _try_read(path)) is not None}
    found: dict[str, str] = {}
    for path, file in there.items():
        table = path.removesuffix(".json") + ".parquet"
        stored = _try_read(file) if table in known else None
        if stored is not None and stored.config in configs:
            found.setdefault(f"{stored.benchmark}/{stored.config}", table)
    return list(found.values())


def _try_read(path: Path) -> StoredResult | None:
    try:
        return read_stored(path)
    except DataError:
        return None


def validate_change(change: Change, *, records: bool = True) -> list[Validation]:
    """Look at what a change does to a store.

    Files may only be added, only at their places, and never changed or removed. The added results are validated, also
    against those that are there: their losses, their ids, and what they replace in the ranking.
    """
    notes = Findings(most=1000)
    for path in change.removed:
        notes.error(shown(path, 160), "the file was removed; results stay")
    for path in change.changed:
        notes.error(shown(path, 160), "the file was changed; a result is immutable, submit another")
    for path in (*change.refused, *(path for path in change.added if parse_path(path) is None)):
        what = (
            "the file is too large" if parse_path(path) else "only results are added, at results/<benchmark>/<system>/"
        )
        notes.error(shown(path, 160), what)
    if len(change.added) + len(change.refused) > MOST_FILES:
        notes.error(
            "", f"{len(change.added) + len(change.refused)} files are added at once, at most {MOST_FILES} are taken"
        )
    results = {}
    for path, file in change.added.items():
        named = parse_path(path)
        if file.is_symlink():
            notes.error(shown(path, 160), "it is a link, not a file")
        elif named is not None and named.kind == "json":
            results[path] = file
        elif named is not None and path.removesuffix(".parquet") + ".json" not in change.added:
            notes.error(path, "there is no result beside this table")
    if not results:
        notes.error("", "no result is added")
    there = [validate_file(file, records=False) for _, file in sorted(change.there.items())]
    checked = cross_check([validate_file(file, records=records) for file in results.values()], there)
    found = [_against_store(validation, there) for validation in checked]
    own = [Validation(Path(), tuple(notes.found), "self-reported")] if notes.found else []
    return [*own, *found]


def validate_request(repository: Repository, request: Request, *, records: bool = True) -> list[Validation]:
    """Look at a pull request on the Hub."""
    with tempfile.TemporaryDirectory(prefix="squtr-validate-") as scratch:
        folder = Path(scratch)
        found = validate_change(fetch_change(repository, request, folder), records=records)
        return [replace(validation, path=_shown_path(validation.path, folder)) for validation in found]


def _shown_path(path: Path, folder: Path) -> Path:
    """A path without the temporary folder."""
    return path.relative_to(folder / "added") if path.is_relative_to(folder / "added") else path


def _is_result(path: str) -> bool:
    named = parse_path(path)
    return named is not None and named.kind == "json"


def _files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their paths, links too."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_symlink() or path.is_file()}
    return {path.as_posix(): file for path, file in sorted(found.items()) if path.parts[0] not in _HIDDEN}


def _against_store(validation: Validation, there: Sequence[Validation]) -> Validation:
    """What a result means for those of its config that are stored."""
    findings = Findings(list(validation.findings))
    stored = validation.stored
    if stored is not None:
        for other in there:
            if (
                other.stored is None
                or other.stored.benchmark != stored.benchmark
                or other.stored.config != stored.config
            ):
                continue
            if other.stored.content_sha256 == stored.content_sha256:
                findings.error("", f"the same result is stored at {other.stored.path}")
            elif other.stored.system == stored.system:
                findings.warn(
                    "",
                    f"{shown(stored.system)} has a result for {stored.config} at {other.stored.path}; the newer counts",
                )
        _check_ids(validation, there, findings)
    return Validation(
        validation.path, tuple(findings.found), validation.who, validation.document, validation.result, stored,
        validation.items,
    )  # fmt: skip


def _check_ids(validation: Validation, there: Sequence[Validation], findings: Findings) -> None:
    """Whole results of one config on the same data are of the same queries."""
    result = validation.result
    if result is None or result.data.partial or validation.items is None:
        return
    same = [
        other
        for other in there
        if other.result is not None
        and other.items is not None
        and not other.result.data.partial
        and other.result.data.config == result.data.config
        and aspects(other.result, words=False) == aspects(result, words=False)
    ]
    if not same:
        return
    try:
        # One is enough: what is stored was compared with the others when it came.
        ours, theirs = _ids(validation), _ids(same[0])
    except DataError as error:
        findings.warn("items.id", str(error))
        return
    if ours != theirs:
        odd = sorted(ours ^ theirs)[0]
        findings.error(
            "items.id",
            f"its {len(ours)} items are not the {len(theirs)} of {same[0].path.name}: {shown(' '.join(odd))} is in "
            "one of them only",
        )


def _ids(validation: Validation) -> set[tuple[str, str]]:
    if validation.items is None:
        return set()
    table = records_of(validation, validation.items, columns=["subset", "id"])
    return set(zip(table["subset"].to_pylist(), table["id"].to_pylist(), strict=True))
