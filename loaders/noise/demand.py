"""DEMAND: noise of 16 environments, recorded with 16 microphones each.

J. Thiemann, N. Ito and E. Vincent, "The Diverse Environments Multi-channel Acoustic Noise Database", Proc. Meetings on
Acoustics 19, 2013. All 16 channels of an environment are noises of its family; which one a query gets is drawn by key,
as everything else.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..banks.catalog import CATALOG, DEMAND_CHANNELS, DEMAND_ENVIRONMENTS, not_fetched
from ..banks.folder import FolderNoises
from ..banks.protocols import NoiseInfo
from ..banks.walk import walk_audio

_CHANNEL = re.compile(r"ch(\d\d)", re.IGNORECASE)


class DemandNoises(FolderNoises):
    """The bank `demand`: ids such as `demand_SCAFE_ch07`, family `SCAFE`; all 256 files have to be there.

    A file is known by its name and the folder that holds it, however deep (`SCAFE_48k/SCAFE/ch07.wav`).
    """

    name = "demand"

    def __init__(self, folder: Path, channel: int | None = None) -> None:
        super().__init__(folder, channel, CATALOG[self.name].license)

    def _find(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in walk_audio(self._folder):
            match = _CHANNEL.fullmatch(path.stem)
            environment = path.parent.name.upper()
            if match and environment in DEMAND_ENVIRONMENTS and 1 <= int(match[1]) <= DEMAND_CHANNELS:
                found.setdefault(f"demand_{environment}_ch{match[1]}", path)
        wanted = [f"demand_{e}_ch{n:02d}" for e in DEMAND_ENVIRONMENTS for n in range(1, DEMAND_CHANNELS + 1)]
        missing = [noise_id for noise_id in wanted if noise_id not in found]
        if missing:
            lacks = f"lacks {len(missing)} of its {len(wanted)} files, the first {missing[0]}" if found else ""
            raise not_fetched(CATALOG[self.name], self._folder, lacks)
        return dict(sorted(found.items()))

    def noises(self) -> tuple[NoiseInfo, ...]:
        if not self._infos:
            self._infos = tuple(NoiseInfo(noise_id, noise_id.split("_")[1]) for noise_id in self.files())
        return self._infos
