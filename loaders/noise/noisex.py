"""NOISEX-92's speech babble: 100 people who talk in a canteen.

A. Varga and H. J. M. Steeneken, "Assessment for automatic speech recognition: II. NOISEX-92", Speech Communication
12(3), 1993. It is published as a MATLAB file of 235 s at 19.98 kHz.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import AudioError
from ..banks.catalog import CATALOG, not_fetched
from ..banks.folder import FolderNoises
from ..banks.protocols import NoiseInfo
from ..banks.walk import walk_audio
from ..records import Samples

RATE = 19_980
"""Sample rate of the published file, in Hz; the file itself does not say it."""


class NoisexBabble(FolderNoises):
    """The bank `noisex`: one noise, `noisex_babble`, family `BABBLE`."""

    name = "noisex"

    def __init__(self, folder: Path, channel: int | None = None) -> None:
        super().__init__(folder, channel, CATALOG[self.name].license)

    def _find(self) -> dict[str, Path]:
        published = self._folder / "babble.mat"
        if published.is_file():
            return {"noisex_babble": published}
        for path in walk_audio(self._folder):
            if path.stem.lower() == "babble":
                return {"noisex_babble": path}
        raise not_fetched(CATALOG[self.name], self._folder, "")

    def noises(self) -> tuple[NoiseInfo, ...]:
        return tuple(NoiseInfo(noise_id, "BABBLE") for noise_id in self.files())

    def _decode(self, path: Path, name: str) -> tuple[Samples, int]:
        if path.suffix.lower() != ".mat":
            return super()._decode(path, name)
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        try:
            variables = loadmat(path)
        except (MatReadError, OSError, ValueError, NotImplementedError, TypeError) as error:
            raise AudioError(f"{name} cannot be read as a MATLAB file: {error}.", hint="Fetch it again.") from error
        signals = [
            np.ravel(value)
            for key, value in variables.items()
            if not key.startswith("__") and isinstance(value, np.ndarray) and value.size == max(value.shape, default=0)
            and np.issubdtype(value.dtype, np.number) and not np.iscomplexobj(value) and value.size > 1
        ]  # fmt: skip
        if len(signals) != 1:
            raise AudioError(f"{name} holds {len(signals)} signals instead of one.", hint="Fetch it again.")
        # Whole numbers of 16 bits; the scale changes no level that is mixed.
        scale = 1.0 / 32768.0 if float(np.abs(signals[0]).max()) > 1.0 else 1.0
        return (signals[0] * scale).astype(np.float32), RATE
