"""Fetching a cataloged bank: download, check, unpack, record. What is there already is not fetched again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import FetchError, HubError, StorageError
from .catalog import BankSpec, RemoteFile, bank_folder
from .download import Download, check_file, download
from .unpack import is_archive, unpack

RECORD = "fetched.json"
"""In the bank's folder: what was fetched from where, with its sha256."""
HUB_PATTERNS = ("*.wav", "*.flac", "*.csv", "*.parquet", "*.md", "LICENSE*")

Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that are there, and the bytes there will be (0 if not known)."""


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file that was fetched. `checked` is the checksum it was compared with ("" if none was known); `unpacked` are
    the files that came out of it, with their sizes."""

    name: str
    url: str
    bytes: int
    sha256: str
    checked: str
    unpacked: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fetched:
    folder: Path
    files: tuple[FetchedFile, ...]
    new: tuple[str, ...]


def where_from(spec: BankSpec, folder: Path, variant: str = "", base_url: str = "") -> str:
    """What to get from where and where to put it, one line per file, for someone who downloads by other means."""
    if spec.repository:
        return (
            f"Get the data set {spec.repository} at the commit {spec.revision} ({spec.homepage})\n"
            f"and put its files into {folder}"
        )
    lines = [f"Get these files ({spec.homepage}) and put them into {folder}, packed as they are:"]
    for file in spec.files(variant):
        lines.append(f"  {spec.url(file, base_url)}{f'  {file.checksum}' if file.checksum else ''}")
    return "\n".join(lines)


def fetch_bank(
    spec: BankSpec,
    folder: Path | None = None,
    *,
    variant: str = "",
    base_url: str = "",
    progress: Progress | None = None,
    **download_options: Any,
) -> Fetched:
    """Bring the files of a bank into `folder` (None: where the bank is looked for).

    `base_url` is another place that holds the same files. An archive that someone put into the folder is used instead
    of a download, and stays there; one that was downloaded is removed when it is unpacked. A call that was stopped is
    continued by the next. Raises `FetchError` with `where_from` as hint when a file cannot be had, `IntegrityError`,
    `StorageError`, and `UnknownNameError` for an unknown variant.
    """
    folder = folder or bank_folder(spec.name)
    if spec.repository:
        return _fetch_repository(spec, folder, base_url)
    files = spec.files(variant)
    record = _read_record(folder)
    there = {file.name: record[file.name] for file in files if _is_there(record.get(file.name), folder)}
    new = [file for file in files if file.name not in there]
    for file in new:
        there[file.name] = _fetch_file(
            spec, file, folder, url=spec.url(file, base_url), progress=progress, options=download_options
        )
        # After each, so that a stopped call loses nothing.
        _write_record(spec, folder, [there[file.name] for file in files if file.name in there])
    return Fetched(folder, tuple(there[file.name] for file in files), tuple(file.name for file in new))


def _fetch_file(
    spec: BankSpec, file: RemoteFile, folder: Path, *, url: str, progress: Progress | None, options: Mapping[str, Any]
) -> FetchedFile:
    given = folder / file.name
    aside = folder / ".downloads" / file.name
    if given.is_file():
        sha256, checked = check_file(given, file.checksum, str(given))
        got, archive = Download("", given.stat().st_size, sha256, checked), given
    else:

        def show(done: int, total: int) -> None:
            if progress is not None:
                progress(file.name, done, total)

        try:
            got = download(url, aside, checksum=file.checksum, progress=show, **options)
        except FetchError as error:
            raise FetchError(error.message, hint=_else(spec, folder, url, file)) from error
        archive = aside
    if not is_archive(file.name):
        if archive is aside:
            aside.replace(given)
            _tidy(aside.parent)
        return FetchedFile(file.name, got.url, got.bytes, got.sha256, got.checked, {file.name: got.bytes})
    unpacked = unpack(archive, folder, keep=spec.keep, strip=spec.strip)
    if archive is aside:
        aside.unlink()
        _tidy(aside.parent)
    return FetchedFile(file.name, got.url, got.bytes, got.sha256, got.checked, unpacked)


def _else(spec: BankSpec, folder: Path, url: str, file: RemoteFile) -> str:
    return (
        f"Run the command again when there is a network, or get {url} by other means, put it into {folder} as "
        f"{file.name} and run the command again; see {spec.homepage}."
    )


def _fetch_repository(spec: BankSpec, folder: Path, base_url: str) -> Fetched:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        huggingface_hub.snapshot_download(
            spec.repository,
            repo_type="dataset",
            revision=spec.revision,
            local_dir=folder,
            allow_patterns=list(HUB_PATTERNS),
            endpoint=base_url or None,
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise HubError(
            f"{spec.repository} cannot be fetched from the Hub: {reason.rstrip('.')}.",
            hint=f"Run the command again when there is a network, or get the data set by other means and put its files "
            f"into {folder}; see {spec.homepage}.",
        ) from error
    return Fetched(folder, (), (spec.repository,))


def _is_there(fetched: FetchedFile | None, folder: Path) -> bool:
    try:
        return fetched is not None and all(
            (folder / name).stat().st_size == size for name, size in fetched.unpacked.items()
        )
    except OSError:
        return False


def _read_record(folder: Path) -> dict[str, FetchedFile]:
    """What is recorded, by name; nothing if there is no record or it cannot be read."""
    try:
        content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return {row["name"]: FetchedFile(**row) for row in content["files"]}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _write_record(spec: BankSpec, folder: Path, files: Sequence[FetchedFile]) -> None:
    content = {"bank": spec.name, "license": spec.license, "files": [asdict(file) for file in files]}
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, prefix=".", suffix=".tmp", delete=False, encoding="utf-8"
        ) as out:
            json.dump(content, out, ensure_ascii=False, indent=1)
        Path(out.name).replace(folder / RECORD)
    except OSError as error:
        raise StorageError(f"{folder / RECORD} cannot be written: {error}.", hint="Check permissions.") from error


def _tidy(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # Other downloads are still in it.
        return
