"""The recorded banks that squtr knows by name: what they are, under which license, and where their files come from.

A bank lies in `$SQUTR_HOME/banks/<name>`, where `squtr fetch` puts it. Nothing here is downloaded when a bank is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import DataError, unknown_name
from ..home import squtr_home

Kind = Literal["noise", "rirs"]
KINDS: tuple[Kind, ...] = ("noise", "rirs")

DEMAND_ENVIRONMENTS = (
    "DKITCHEN", "DLIVING", "DWASHING", "NFIELD", "NPARK", "NRIVER", "OHALLWAY", "OMEETING",
    "PCAFETER", "PRESTO", "PSTATION", "SCAFE", "SPSQUARE", "STRAFFIC", "TBUS", "TMETRO",
)  # fmt: skip
"""The 16 environments of DEMAND that SQuTR uses (arXiv 2602.12783, section 3.3); OOFFICE and TCAR are not among
them."""
DEMAND_CHANNELS = 16

_DEMAND_16K_MD5 = {
    "DKITCHEN": "7ffbf52d7f4699f96927846103dc8788", "DLIVING": "46741384d9e434a0bd8b3ec1830b6052",
    "DWASHING": "7e5ee9437ce9409c5f9a779b6212a240", "NFIELD": "a740046c6f4e174e16f5d568aaec5024",
    "NPARK": "80f1385a34d7f1705758926b57f138ce", "NRIVER": "54264db61d3fe073fb81f2e40e0d19b5",
    "OHALLWAY": "fe918bbb0e63e73d09ba7f4843ef33f1", "OMEETING": "62f7cfe7fe6d30b7d8a215fe37c2dfd2",
    "PCAFETER": "99927d148128254141a9417d051510bb", "PRESTO": "b98d2e6854eeebb397f29a8ad7457092",
    "PSTATION": "d7448009f6c2aeb6ba570375df1750a3", "SPSQUARE": "205d0e7b8fe74504a2f8d252fc414b9e",
    "STRAFFIC": "2efa87262f272bbf9ba578088e81939c", "TBUS": "706b11b0d8504f9f3b3f3211e91b3863",
    "TMETRO": "95daf4df678e13b120e14211e6d89571",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download. `checksum` is `md5:…` or `sha256:…` as its publisher states it, "" where none is known."""

    name: str
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class BankSpec:
    """A row of the catalog.

    `target` is module (relative to this package) and class. `layout` says where files lie below the bank's folder.
    `variants` are choices of files of which one is fetched, the first unless another is asked for. They lie at
    `base_url` + name + `url_suffix`; of an archive only what lies below `keep` is unpacked, without its first `strip`
    folders. A bank on the Hub has `repository` and `revision` instead. `license` is an SPDX identifier or "unknown";
    `license_note` says where its publishers contradict each other.
    """

    name: str
    kind: Kind
    title: str
    license: str
    license_note: str
    homepage: str
    target: str
    layout: str
    variants: Mapping[str, tuple[RemoteFile, ...]]
    base_url: str = ""
    url_suffix: str = ""
    keep: str = ""
    strip: int = 0
    repository: str = ""
    revision: str = ""

    @property
    def label(self) -> str:
        return f"the {'noise' if self.kind == 'noise' else 'room'} bank {self.name!r}"

    def files(self, variant: str = "") -> tuple[RemoteFile, ...]:
        if not variant:
            return next(iter(self.variants.values()), ())
        if variant not in self.variants:
            raise unknown_name(f"variant of {self.label}:", variant, self.variants)
        return self.variants[variant]

    def url(self, file: RemoteFile, base: str = "") -> str:
        """Where `file` is downloaded from; `base` replaces the publisher's place."""
        return f"{base.rstrip('/')}/{file.name}" if base else f"{self.base_url}{file.name}{self.url_suffix}"


CATALOG: dict[str, BankSpec] = {
    spec.name: spec
    for spec in (
        BankSpec(
            name="demand",
            kind="noise",
            title="DEMAND: 16 environments, 16 channels each, 5 minutes (Thiemann, Ito and Vincent, 2013)",
            license="CC-BY-SA-3.0",
            license_note="The authors' text says CC BY-SA 3.0, the page on Zenodo CC BY 4.0: the stricter counts.",
            homepage="https://zenodo.org/records/1227121",
            target="..noise.demand:DemandNoises",
            layout="<ENVIRONMENT>/ch01.wav to ch16.wav, for example SCAFE/ch07.wav",
            # 48 kHz first: speech at 24 kHz reaches up to 12 kHz, and so must noise. SCAFE is published at 48 kHz only.
            variants={
                "48k": tuple(RemoteFile(f"{name}_48k.zip") for name in DEMAND_ENVIRONMENTS),
                "16k": tuple(
                    RemoteFile(f"{name}_16k.zip", f"md5:{_DEMAND_16K_MD5[name]}")
                    if name in _DEMAND_16K_MD5
                    else RemoteFile(f"{name}_48k.zip")
                    for name in DEMAND_ENVIRONMENTS
                ),
            },
            base_url="https://zenodo.org/records/1227121/files/",
            url_suffix="?download=1",
        ),
        BankSpec(
            name="noisex",
            kind="noise",
            title="NOISEX-92, speech babble: 100 people in a canteen (Varga and Steeneken, 1993)",
            license="unknown",
            license_note="Distributed for research; no license is stated.",
            homepage="http://spib.linse.ufsc.br/noise.html",
            target="..noise.noisex:NoisexBabble",
            layout="babble.mat as published (19.98 kHz), or babble.wav",
            variants={"babble": (RemoteFile("babble.mat"),)},
            base_url="http://spib.linse.ufsc.br/data/noise/",
        ),
        BankSpec(
            name="musan",
            kind="noise",
            title="MUSAN, its noise part: technical and ambient sounds (Snyder, Chen and Povey, 2015)",
            license="CC-BY-4.0",
            license_note="The corpus is under CC BY 4.0; its LICENSE files name each sound's author and terms.",
            homepage="https://www.openslr.org/17/",
            target="..noise.musan:MusanNoises",
            layout="noise/free-sound/*.wav and noise/sound-bible/*.wav",
            variants={"all": (RemoteFile("musan.tar.gz", "md5:0c472d4fc0c5141eca47ad1ffeb2a7df"),)},
            base_url="https://www.openslr.org/resources/17/",
            keep="musan/noise/",
            strip=1,
        ),
        BankSpec(
            name="rir_mega",
            kind="rirs",
            title="RIR-Mega: simulated impulse responses with metadata (Goswami, 2025, arXiv 2510.18917)",
            license="CC-BY-NC-4.0",
            license_note="The Hub says CC BY-NC 4.0, the page on Zenodo CC BY 4.0: the stricter counts.",
            homepage="https://huggingface.co/datasets/mandipgoswami/rirmega",
            target="..rirs.rir_mega:RirMegaRirs",
            layout="the repository as it is: rir_*.wav in any folder, and metadata.csv",
            variants={},
            repository="mandipgoswami/rirmega",
            revision="fb74c5af633869568a4e104d213f11c4633a0763",
        ),
    )
}


def bank_folder(name: str) -> Path:
    """Where the files of the cataloged bank `name` lie. Not created."""
    return squtr_home() / "banks" / name


def not_fetched(spec: BankSpec, folder: Path, lacks: str) -> DataError:
    """The error for a bank whose files are not there; `lacks` says what is missing, "" if everything."""
    asked = "" if folder == bank_folder(spec.name) else f" --to {folder}"
    return DataError(
        f"{spec.label} {lacks or 'has not been fetched'}.",
        hint=f"Run `squtr fetch {spec.kind} {spec.name}{asked}`, or put its files into {folder} as {spec.layout}.",
    )
