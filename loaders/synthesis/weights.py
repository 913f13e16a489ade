"""Finding weights: joined from installed packages into the cache, or from the Hub at a pinned revision."""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...errors import IntegrityError, ModelError, StorageError
from ..manifest import file_sha256


def package_file(package: str, relative: str) -> Path | None:
    """The file `relative` inside an installed package, without importing it; None if either is missing."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / relative
    return path if path.is_file() else None


def join_parts(parts: Sequence[Path], target: Path, sha256: str) -> Path:
    """`target`, joined from `parts` unless it is there, with that sha256. Raises `IntegrityError`, `StorageError`."""
    if target.is_file() and file_sha256(target) == sha256:
        return target
    digest = hashlib.sha256()
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as out:
            temporary = Path(out.name)
            for part in parts:
                with part.open("rb") as source:
                    while block := source.read(1 << 20):
                        digest.update(block)
                        out.write(block)
        if digest.hexdigest() != sha256:
            raise IntegrityError(
                f"{len(parts)} parts from {parts[0].parent} do not make {target.name}: sha256 {digest.hexdigest()}.",
                hint="Install the packages that carry them again.",
            )
        temporary.replace(target)
        temporary = None
    except OSError as error:
        raise StorageError(
            f"{target} cannot be written: {error}.", hint="Set SQUTR_HOME to a folder with space."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return target


def hub_file(repository: str, filename: str, revision: str, *, sha256: str = "") -> Path:
    """A file of a repository, through the Hub's cache. Raises `ModelError`, `IntegrityError` for another sha256."""
    import huggingface_hub
    from huggingface_hub import errors as hub_errors

    failures = (
        OSError,  # no network, no space, most of the Hub's own errors
        ValueError,  # a malformed name
        hub_errors.HTTPError,  # type: ignore[attr-defined]  # the transport's base class, not listed as exported
    )
    try:
        path = Path(huggingface_hub.hf_hub_download(repository, filename, revision=revision))
    except failures as error:
        raise ModelError(
            f"{filename} of {repository} cannot be fetched from the Hub: {error}.",
            hint="Check the network, or give a local path.",
        ) from error
    if sha256 and file_sha256(path) != sha256:
        raise IntegrityError(
            f"{path} is not {filename} of {repository} at {revision}.", hint="Delete it and try again."
        )
    return path
