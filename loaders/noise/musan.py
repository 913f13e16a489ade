"""The noise part of MUSAN (D. Snyder, G. Chen and D. Povey, arXiv 1510.08484): short technical and ambient sounds."""

from __future__ import annotations

from pathlib import Path

from ..banks.catalog import CATALOG, not_fetched
from ..banks.folder import FolderNoises
from ..banks.protocols import NoiseInfo
from ..banks.walk import walk_audio


class MusanNoises(FolderNoises):
    """The bank `musan`: ids such as `musan_noise-free-sound-0000`, one family, as its folders tell no kinds."""

    name = "musan"

    def __init__(self, folder: Path, channel: int | None = None) -> None:
        super().__init__(folder, channel, CATALOG[self.name].license)

    def _find(self) -> dict[str, Path]:
        # Speech and music lie beside the noise where the whole corpus was unpacked.
        found = {f"musan_{p.stem}": p for p in walk_audio(self._folder) if p.stem.startswith("noise-")}
        if not found:
            raise not_fetched(CATALOG[self.name], self._folder, "")
        return dict(sorted(found.items()))

    def noises(self) -> tuple[NoiseInfo, ...]:
        if not self._infos:
            self._infos = tuple(NoiseInfo(noise_id, "MUSAN") for noise_id in self.files())
        return self._infos
