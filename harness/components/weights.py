"""Where weights come from: a local path, then an installed package that carries them, then the Hub.

`PACKAGED_WEIGHTS` lists the Python packages that are known to carry weights, with the sha256 of every file. A package
whose weights are whole is used in place; weights that a package splits are joined into the cache (`squtr_home()`).
Nothing is imported from those packages: their files are found through the metadata of the installation.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from ...errors import IntegrityError, ModelError, StorageError, UsageError, unknown_name
from ...loaders.home import squtr_home
from .packaged_weights import PACKAGED_WEIGHTS, Carrier, PackagedFile, PackagedWeights, weights_digest

__all__ = [
    "PACKAGED_WEIGHTS",
    "Carrier",
    "FoundWeights",
    "Origin",
    "PackagedFile",
    "PackagedWeights",
    "find_weights",
    "local_revision",
    "squtr_home",
]

Origin = Literal["path", "package", "hub"]
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BLOCK = 1 << 20
_STAMP = ".checked.json"
_STALE_S = 3600.0
_OTHER_FORMATS = (
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.tflite",
    "*.gguf",
    "*.fp32*",
    "onnx/*",
    "openvino/*",
    "coreml/*",
)
"""Copies of the same weights for other engines, which are not fetched."""


@dataclass(frozen=True, slots=True)
class FoundWeights:
    """Weights on this machine.

    `path` is a folder (or the file that was given as a path). `revision` is a commit for the Hub and otherwise
    `sha256:<hex>` over the names and contents of all files, so that a path and a package with the same files agree.
    `model` names them for results: a repository, or the name of the folder, never a full path.
    """

    path: Path
    origin: Origin
    revision: str
    model: str


def find_weights(name_or_path_or_repo: str | Path, *, revision: str | None = None) -> FoundWeights:
    """Weights on this machine, fetched from the Hub only if neither a path nor a package has them.

    A name of `PACKAGED_WEIGHTS` is always that name, even where the working folder holds a folder of the same name:
    write `./name` for the folder. Anything else that exists is a path. `revision` is a commit, branch or tag on the
    Hub; a package is passed over unless its own revision is the one asked for.

    Raises `ModelError` that says what was tried, `IntegrityError` for a package with other bytes than expected,
    `StorageError` if the cache cannot be written, `UnknownNameError` for a name that nothing knows, `UsageError` for a
    `revision` of a path.
    """
    row = PACKAGED_WEIGHTS.get(str(name_or_path_or_repo)) if isinstance(name_or_path_or_repo, str) else None
    if row is None:
        path = _as_path(name_or_path_or_repo)
        if path is not None:
            if revision is not None:
                raise UsageError(
                    f"the local weights {path} cannot have revision {revision!r}.", hint="Leave the revision out."
                )
            return FoundWeights(path, "path", local_revision(path), path.resolve().name)
        repository = str(name_or_path_or_repo)
        if not _REPOSITORY.fullmatch(repository):
            raise unknown_name("weights", repository, PACKAGED_WEIGHTS)
        return _from_hub(repository, revision, tried=[], hint="")
    if revision not in (None, row.revision):
        tried = [f"the packages hold revision {row.revision}"]
    else:
        missing = [carrier for carrier in row.carriers if _installed(carrier) is None]
        if not missing:
            return FoundWeights(_from_packages(row), "package", row.revision, row.hub or row.carriers[0].requirement)
        tried = [f"package {carrier.name} is not installed" for carrier in missing]
    hint = f"Run: {row.install}"
    if not row.hub:
        raise ModelError(f"the weights {row.name!r} were not found: {'; '.join(tried)}.", hint=hint)
    return _from_hub(row.hub, revision, tried=tried, hint=hint)


def local_revision(path: Path) -> str:
    """`sha256:<hex>` over names and contents of a file, or of all files in a folder but hidden ones and `*.md`.

    Raises `ModelError` for a path that holds no file or cannot be read.
    """
    try:
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        root = path.parent if path.is_file() else path
        hashes: dict[str, str] = {}
        for file in files:
            relative = file.relative_to(root)
            if not any(part.startswith(".") for part in relative.parts) and file.suffix != ".md":
                hashes[relative.as_posix()] = _sha256([file])
    except OSError as error:
        raise ModelError(f"the weights {path} cannot be read: {error}.") from error
    if not hashes:
        raise ModelError(f"the folder {path} holds no weights.", hint="Give the folder that holds the model's files.")
    return weights_digest(hashes)


def _sha256(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for block in _blocks(files):
        digest.update(block)
    return digest.hexdigest()


def _blocks(files: list[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                yield block


def _as_path(name: str | Path) -> Path | None:
    """`name` as a path if it is one: it exists, or it is written so that it can be nothing else."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    if isinstance(name, Path) or path.is_absolute() or re.match(r"\.{0,2}[\\/]|~|\.{1,2}$", name):
        raise ModelError(f"there are no weights at {name}.", hint="Check the path.")
    return None


def _installed(carrier: Carrier) -> metadata.Distribution | None:
    try:
        return metadata.distribution(carrier.name)
    except metadata.PackageNotFoundError:
        return None


def _part(row: PackagedWeights, distribution_name: str, relative: str) -> Path:
    """The installed file, checked to exist."""
    distribution = metadata.distribution(distribution_name)
    file = Path(str(distribution.locate_file(relative)))
    if not file.is_file():
        raise IntegrityError(
            f"package {distribution_name} {distribution.version} lacks {relative}.",
            hint=f"Run: {row.install} --force-reinstall",
        )
    return file


def _from_packages(row: PackagedWeights) -> Path:
    sources = {file.name: [_part(row, *part) for part in file.parts] for file in row.files}
    if row.root:
        for file in row.files:
            _check(row, file, _sha256(sources[file.name]))
        first = row.files[0]
        return sources[first.name][0].parents[len(Path(first.name).parts) - 1]
    return _join(row, sources)


def _check(row: PackagedWeights, file: PackagedFile, found: str) -> None:
    if found != file.sha256:
        carriers = " and ".join(dict.fromkeys(name for name, _ in file.parts))
        raise IntegrityError(
            f"{file.name} of {row.name!r} from {carriers} has sha256 {found} instead of {file.sha256}.",
            hint=f"Run: {row.install} --force-reinstall",
        )


def _join(row: PackagedWeights, sources: Mapping[str, list[Path]]) -> Path:
    """Joins split files into the cache, once.

    Each file gets a temporary name, is hashed while it is written and renamed when it is right; a stamp follows last.
    Two processes that join at once write the same bytes and rename over each other, which does no harm.
    """
    folder = squtr_home() / "weights" / f"{row.name}-{row.revision.removeprefix('sha256:')[:12]}"
    if _stamped(row, folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder)
        needed = sum(file.size for file in row.files)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise OSError(errno.ENOSPC, f"{needed / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free")
        for file in row.files:
            _write(row, file, sources[file.name], folder / file.name)
        stamp = json.dumps({file.name: {"size": file.size, "sha256": file.sha256} for file in row.files}, indent=1)
        with _temporary(folder / _STAMP) as temporary:
            temporary.write_text(stamp, encoding="utf-8")
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"the weights {row.name!r} cannot be written to {folder}: {error.strerror or error}.",
            hint="Make room there, or set SQUTR_HOME to a folder with room.",
        ) from error
    return folder


def _stamped(row: PackagedWeights, folder: Path) -> bool:
    """The cheap check: the stamp says what the table says, and every file has its size."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        return stamp == {file.name: {"size": file.size, "sha256": file.sha256} for file in row.files} and all(
            (folder / file.name).stat().st_size == file.size for file in row.files
        )
    except (OSError, ValueError):
        return False


def _write(row: PackagedWeights, file: PackagedFile, parts: list[Path], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with _temporary(target) as temporary:
        with temporary.open("wb") as stream:
            for block in _blocks(parts):
                digest.update(block)
                stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
        _check(row, file, digest.hexdigest())


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """A name beside `target` that becomes `target` when the block ends well and is removed when it does not."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_stale(folder: Path) -> None:
    """Removes what a killed run left, but nothing that another process may be writing now."""
    for leftover in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _STALE_S:
                leftover.unlink()


def _from_hub(repository: str, revision: str | None, *, tried: list[str], hint: str) -> FoundWeights:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors

    failures = (
        OSError,  # no network, no space, most of the Hub's own errors
        ValueError,  # a malformed repository name
        hub_errors.HTTPError,  # type: ignore[attr-defined]  # the transport's base class, not listed as exported
        hub_errors.RevisionResolutionError,
        hub_errors.XetDownloadError,
    )
    try:
        path = Path(
            huggingface_hub.snapshot_download(
                repository,
                revision=revision,
                ignore_patterns=[*_OTHER_FORMATS, *_copies(repository, revision, failures)],
            )
        )
    except failures as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EACCES, errno.EDQUOT, errno.EROFS):
            raise StorageError(
                f"{repository} cannot be stored: {error.strerror}.", hint="Make room, or set HF_HOME to another folder."
            ) from error
        at = f" at revision {revision}" if revision else ""
        reason = " ".join(str(error).split()) or type(error).__name__
        tried = [
            *tried,
            f"the Hub repository {repository}{at} could not be had ({type(error).__name__}: {reason[:200]})",
        ]
        raise ModelError(
            f"no weights were found: {'; '.join(tried)}.",
            hint=hint or "Check the name and the network, or give the path of a local folder.",
        ) from error
    if not _COMMIT.fullmatch(path.name):
        raise ModelError(f"the Hub gave {repository} without a commit, at {path}.", hint="Give the folder as a path.")
    return FoundWeights(path, "hub", path.name, repository)


def _copies(repository: str, revision: str | None, failures: tuple[type[Exception], ...]) -> list[str]:
    """Patterns for the pickled copies of weights that a repository holds as safetensors too.

    Without an answer from the Hub there is nothing to leave out: the download decides from what is on the disk.
    """
    import huggingface_hub

    try:
        names = huggingface_hub.list_repo_files(repository, revision=revision)
    except failures:
        return []
    return ["*.bin", "*.pt", "*.pth"] if any(name.endswith(".safetensors") for name in names) else []
