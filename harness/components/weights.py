"""Where weights come from: a local path, then an installed package that carries them, then the Hub."""

from __future__ import annotations

import errno
import hashlib
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...errors import READ_ONLY, ModelError, StorageError, UsageError, disk_hint, unknown_name
from ..protocols import Setting

PACKAGES = "harness.demo.packages"
"""The module below `squtr` that knows packages with weights: `NAMES`, and `look_up(name, revision)`."""

Origin = Literal["path", "package", "hub"]
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
OTHER_FORMATS = ("*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.fp32*", "onnx/*", "openvino/*", "coreml/*")


@dataclass(frozen=True, slots=True)
class FoundWeights:
    """Weights on this machine.

    `path` is a folder (or the file that was given as a path). `revision` is a commit for the Hub and otherwise
    `sha256:<hex>` over the names and contents of all files. `model` names them for results: a repository, a package, or
    the name of the folder, never a full path; `name` is the short form of it. `provenance` is what a spec says of
    packaged weights beside that: the packages, and the sha256 of each file that is used.
    """

    path: Path
    origin: Origin
    revision: str
    model: str
    name: str
    provenance: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PackagedLookup:
    """What is known of a name that packages carry: the weights or, where `found` is None, what was `tried`.

    `name` is the weights' own name, `hub` the repository that holds the same ("" for none), `hint` how to install them.
    """

    name: str
    found: FoundWeights | None
    tried: tuple[str, ...]
    hub: str
    hint: str


def find_weights(name_or_path_or_repo: str | Path, *, revision: str | None = None) -> FoundWeights:
    """Weights on this machine, fetched from the Hub only if neither a path nor a package has them.

    A packaged name is always that name: write `./name` for a folder. Anything else that exists is a path. `revision` is
    a commit, branch or tag on the Hub; a package of another revision is passed over.

    Raises `ModelError` that says what was tried, `IntegrityError` for a package with other bytes than expected,
    `StorageError`, `UnknownNameError` for a name that nothing knows, `UsageError` for a `revision` of a path.
    """
    # Relative to the package above `harness`, whatever that is called.
    packages: Any = importlib.import_module(f"...{PACKAGES}", __package__)
    text = name_or_path_or_repo if isinstance(name_or_path_or_repo, str) else ""
    known: PackagedLookup | None = packages.look_up(text, revision)
    if known is not None:
        if known.found is not None:
            return known.found
        if not known.hub:
            raise ModelError(f"the weights {known.name!r} were not found: {'; '.join(known.tried)}.", hint=known.hint)
        return _from_hub(known.hub, revision, name=known.name, tried=known.tried, hint=known.hint)
    path = _as_path(name_or_path_or_repo)
    if path is not None:
        if revision is not None:
            raise UsageError(
                f"the local weights {path} cannot have revision {revision!r}.", hint="Leave the revision out."
            )
        model = cached_repository(path) or path.resolve().name
        return FoundWeights(path, "path", local_revision(path), model, model.rpartition("/")[2])
    if not REPOSITORY.fullmatch(text):
        raise unknown_name("weights", text, packages.NAMES)
    return _from_hub(text, revision, name=text.rpartition("/")[2])


def cached_repository(path: Path) -> str:
    """The repository that a folder of the Hub's cache is a snapshot of, "" for any other folder.

    >>> cached_repository(Path("hub/models--intfloat--e5-base/snapshots/9f2c"))
    'intfloat/e5-base'
    """
    for candidate in (path, path.resolve()):
        parts = candidate.parts
        if len(parts) >= 3 and parts[-2] == "snapshots" and parts[-3].startswith("models--"):
            return "/".join(parts[-3].split("--")[1:])
    return ""


def published_name(model: str | Path) -> str:
    """What a model is called, in small letters, by which tables know published models: the last part of a repository's
    name or of a path, of a snapshot in the Hub's cache the repository's.

    Raises `UsageError` for another folder that is named by a commit: which prompts it needs would be a guess.

    >>> published_name("intfloat/E5-Base"), published_name("models--intfloat--e5-base/snapshots/9f2c/")
    ('e5-base', 'e5-base')
    """
    path = Path(model)
    # `.` and `..` have no name of their own; a link keeps the name that it was given.
    given = path.name if path.name not in ("", "..") else path.resolve().name
    name = (cached_repository(path).rpartition("/")[2] or given).lower()
    if _COMMIT.fullmatch(name):
        raise UsageError(
            f"the folder {model} is named by a commit: which model it is, and which prompts it needs, is not known.",
            hint="Name the folder as the model, or give the repository's name.",
        )
    # ModelScope writes a dot in a folder's name so.
    return name.replace("___", ".")


def weights_digest(hashes: Mapping[str, str]) -> str:
    """`sha256:<hex>` over a set of files, given the sha256 of each by name; the order does not matter.

    >>> weights_digest({"a": "00", "b": "11"}) == weights_digest({"b": "11", "a": "00"})
    True
    """
    listing = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(hashes.items()))
    return "sha256:" + hashlib.sha256(listing.encode("utf-8")).hexdigest()


def local_revision(path: Path) -> str:
    """`sha256:<hex>` over names and contents of a file, or of all files in a folder but hidden ones and `*.md`."""
    try:
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        root = path.parent if path.is_file() else path
        hashes: dict[str, str] = {}
        for file in files:
            relative = file.relative_to(root)
            if not any(part.startswith(".") for part in relative.parts) and file.suffix != ".md":
                with file.open("rb") as stream:
                    hashes[relative.as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"the weights {path} cannot be read: {error}.") from error
    if not hashes:
        raise ModelError(f"the folder {path} holds no weights.", hint="Give the folder that holds the model's files.")
    return weights_digest(hashes)


def _as_path(name: str | Path) -> Path | None:
    """`name` as a path if it is one: it exists, or it is written so that it can be nothing else."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    if isinstance(name, Path) or path.is_absolute() or re.match(r"\.{0,2}[\\/]|~|\.{1,2}$", name):
        raise ModelError(f"there are no weights at {name}.", hint="Check the path.")
    return None


def _from_hub(
    repository: str, revision: str | None, *, name: str, tried: Sequence[str] = (), hint: str = ""
) -> FoundWeights:
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
                ignore_patterns=[*OTHER_FORMATS, *_copies(repository, revision, failures)],
            )
        )
    except failures as error:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, *READ_ONLY}:
            raise StorageError(
                f"{repository} cannot be stored: {error.strerror}.",
                hint=disk_hint(error, error.filename or "the folder of weights", "set HF_HOME to another folder"),
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
    return FoundWeights(path, "hub", path.name, repository, name)


def _copies(repository: str, revision: str | None, failures: tuple[type[Exception], ...]) -> list[str]:
    """`pickled_copies` of a repository; [] without an answer."""
    import huggingface_hub

    try:
        return pickled_copies(huggingface_hub.list_repo_files(repository, revision=revision))
    except failures:
        return []


def pickled_copies(names: Sequence[str]) -> list[str]:
    """The files of weights that are pickled where their folder has safetensors too.

    By folder: the modules of one model may be saved in different formats.
    """
    folders = {name.rpartition("/")[0] for name in names if name.endswith(".safetensors")}
    return [name for name in names if name.endswith((".bin", ".pt", ".pth")) and name.rpartition("/")[0] in folders]
