"""Submitting results to a leaderboard: checked first, shown, and sent only when asked to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..errors import DataError, UsageError
from ..harness.metrics.registry import metric_of
from ..harness.results.envelope import Result
from ..loaders.hub.repository import Repository, Sent
from .findings import Finding, between, number
from .markdown import plain
from .records import LIMITS
from .store import add_files, is_folder, stored_hashes
from .stored import FOLDER, About, StoredResult, make_stored, parse_path
from .validate import Validation, records_of, validate_files

_MOST_NAMED = 3
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Parcel:
    """One result on its way: what is stored, the content of its table, and what was found about it."""

    stored: StoredResult
    items: bytes | None
    validation: Validation

    @property
    def files(self) -> dict[str, bytes]:
        """Content by path in the store."""
        path = self.stored.path
        found = {path: self.stored.as_bytes()}
        return found if self.items is None else {path.removesuffix(".json") + ".parquet": self.items, **found}

    @property
    def hash(self) -> str:
        """What the name of its file ends with."""
        named = parse_path(self.stored.path)
        return named.hash if named else ""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to be sent, in one pull request."""

    parcels: tuple[Parcel, ...]

    @property
    def files(self) -> dict[str, bytes]:
        """Content by path in the store."""
        return {path: content for parcel in self.parcels for path, content in parcel.files.items()}

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(dict.fromkeys(parcel.stored.system for parcel in self.parcels))

    @property
    def warnings(self) -> list[tuple[Parcel, Finding]]:
        """What someone should look at before merging."""
        return [
            (parcel, finding)
            for parcel in self.parcels
            for finding in parcel.validation.findings
            if finding.level == "warning"
        ]

    @property
    def digest(self) -> str:
        """Of all that was measured, whenever it is sent."""
        return hashlib.sha256("\n".join(sorted(parcel.hash for parcel in self.parcels)).encode()).hexdigest()[:8]

    @property
    def title(self) -> str:
        """Of the pull request. It ends with the digest, by which an open one is found again."""
        named = ", ".join(self.systems[:_MOST_NAMED])
        more = f" and {len(self.systems) - _MOST_NAMED} more" if len(self.systems) > _MOST_NAMED else ""
        count = f"{len(self.parcels)} result{'s' if len(self.parcels) != 1 else ''}"
        return f"Add {count} of {named[:150]}{more} ({self.digest})"

    @property
    def description(self) -> str:
        """Of the pull request, in Markdown."""
        lines = ["| system | config | main score | n | records |", "|---|---|---|---|---|"]
        for parcel in self.parcels[:_MOST_ROWS]:
            stored = parcel.stored
            items = "re-scored" if parcel.validation.who == "re-scored" else "none"
            name, value, n = main_score(parcel.validation.result)
            lines.append(f"| {plain(stored.system)} | {plain(stored.config)} | {name} {value} | {n} | {items} |")
        if len(self.parcels) > _MOST_ROWS:
            lines.append(f"| and {len(self.parcels) - _MOST_ROWS} more | | | | |")
        notes = list(dict.fromkeys(parcel.stored.note for parcel in self.parcels if parcel.stored.note))
        lines += ["", *(plain(note) for note in notes)] if notes else []
        warned = self.warnings
        if warned:
            lines += ["", f"{len(warned)} warning{'s' if len(warned) != 1 else ''}:", ""]
            lines += [
                f"- {plain(parcel.stored.system)}, {plain(parcel.stored.config)}: {plain(finding.where)}: "
                f"{plain(finding.message)}"
                for parcel, finding in warned[:20]
            ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a submission: paths added and already there, and the pull request (None for a folder)."""

    place: str
    added: tuple[str, ...]
    there: tuple[str, ...]
    request: Sent | None = None


def find_results(paths: Iterable[Path]) -> list[Path]:
    """The results in files and folders; a folder is what `squtr evaluate --out` wrote, or its `results/`.

    Raises `DataError` for a path that is not there or holds none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inner = path / FOLDER if (path / FOLDER).is_dir() else path
            own = [file for file in sorted(inner.rglob("*.json")) if not file.name.startswith(".")]
            if not own:
                raise DataError(f"{path} holds no results.", hint="Run `squtr evaluate` with --out on it first.")
            found |= dict.fromkeys(own)
        elif path.is_file():
            found[path] = None
        else:
            raise DataError(f"{path} does not exist.", hint="Name results (JSON), or the folder of an evaluation.")
    return list(found)


def prepare(
    paths: Iterable[Path],
    *,
    records: bool = True,
    about: Sequence[About] = (),
    note: str = "",
    now: datetime | None = None,
) -> tuple[Submission, list[Validation]]:
    """Check results and make of them what is stored.

    Returns the submission (of those that hold) and all validations. `records=False` leaves the tables at home: the
    numbers then stand as reported. Raises `DataError` if nothing is there.
    """
    moment = now or datetime.now(UTC)
    validations = validate_files(find_results(paths))
    parcels: dict[str, Parcel] = {}
    for validation in validations:
        if not validation.ok:
            continue
        table = validation.items if records and validation.who == "re-scored" else None
        parcel = _pack(validation, table, about, note, moment)
        parcels.setdefault(parcel.hash, parcel)
    return Submission(tuple(parcels.values())), validations


def _pack(validation: Validation, table: Path | None, about: Sequence[About], note: str, moment: datetime) -> Parcel:
    result = validation.document
    if validation.stored is not None:
        about, note = about or validation.stored.about, note or validation.stored.note
    content, rows = None, 0
    if table is not None:
        if table.stat().st_size > LIMITS.file_bytes:
            raise DataError(f"{table} is too large to submit.", hint="Submit without it: --no-records.")
        content = table.read_bytes()
        rows = records_of(validation, table, columns=["id"]).num_rows
    stored = make_stored(result, content, rows, about=about, note=note, now=moment)
    return Parcel(stored, content, validation)


def send(
    submission: Submission,
    place: str,
    *,
    direct: bool = False,
    repository: Repository | None = None,
    waiting: Callable[[str], None] | None = None,
) -> Delivery:
    """Send a submission to a folder, or to a data set ORG/NAME on the Hub as a pull request (`direct`: as a commit).

    What the store has, and what an open pull request of the same results offers, is not sent again. Raises `UsageError`
    if there is nothing to send, `HubError` if the Hub refuses, `DataError` and `StorageError` for a folder.
    """
    if not submission.parcels:
        raise UsageError("there is no result to send.", hint="Mend what was found, then submit again.")
    if repository is None and is_folder(place):
        folder = Path(place).expanduser()
        known = stored_hashes(folder)
        files, there = _lacking(submission, known)
        return Delivery(place, add_files(folder, files), there)
    target = repository or Repository(place, waiting=waiting)
    listed = {named.hash: path for path in target.tree() if (named := parse_path(path)) and named.kind == "json"}
    files, there = _lacking(submission, listed)
    if not files:
        return Delivery(place, (), there)
    if direct:
        sent = target.commit(files, title=submission.title)
        return Delivery(place, sent.added, there, sent)
    for request in target.requests():
        if request.title == submission.title:
            offered = {named.hash for path in target.tree(request.revision) if (named := parse_path(path))}
            if {parcel.hash for parcel in submission.parcels} <= offered:
                return Delivery(place, (), there, Sent(target.name, request.url, request.revision, (), opened=False))
    sent = target.propose(files, title=submission.title, description=submission.description)
    return Delivery(place, sent.added, there, sent)


def _lacking(submission: Submission, known: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    lacking = [parcel for parcel in submission.parcels if parcel.hash not in known]
    files = {path: content for parcel in lacking for path, content in parcel.files.items()}
    return files, tuple(known[parcel.hash] for parcel in submission.parcels if parcel.hash in known)


def main_score(result: Result | None) -> tuple[str, str, int]:
    """Name, value with interval (and bounds where items failed), and n of a result's main score."""
    if result is None or result.main_metric not in result.scores:
        return "", "", 0
    score = result.main
    interval = (
        f" [{number(score.low)}, {number(score.high)}]" if score.low is not None and score.high is not None else ""
    )
    failed = f", {between(score.bounds)} with the failed" if score.bounds is not None else ""
    return metric_of(result.main_metric).label, f"{number(score.value)}{interval}{failed}", score.n
