"""The embedded bank of noises: made by code from a keyed seed, so that nothing has to be downloaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ...errors import unknown_name
from ..banks.decoded import kept_by_code, memory_cost
from ..banks.protocols import NoiseInfo
from ..keyed import keyed_rng
from ..lru import LruCache
from ..records import SAMPLE_RATE, Samples
from .babble import babble
from .textures import Signal, kitchen, pink, speech_shaped, traffic

DURATION_S = 30
VARIANTS = 4
RMS = 0.1
TALKERS = (6, 8, 10, 12)
"""Talkers in the variants of `babble`."""

Maker = Callable[[np.random.Generator, int, int], Signal]
MAKERS: dict[str, Maker] = {
    "babble": lambda rng, samples, variant: babble(rng, samples, TALKERS[variant % len(TALKERS)]),
    "kitchen": lambda rng, samples, variant: kitchen(rng, samples),
    "pink": lambda rng, samples, variant: pink(rng, samples),
    "speech_shaped": lambda rng, samples, variant: speech_shaped(rng, samples),
    "traffic": lambda rng, samples, variant: traffic(rng, samples),
}
"""Family to what makes its noises, sorted by name."""


_HERE = Path(__file__)
_CODE = (_HERE, _HERE.with_name("babble.py"), _HERE.with_name("textures.py"), _HERE.parent.with_name("keyed.py"))
_PACKAGES = ("numpy", "scipy")


class SyntheticNoises:
    """Five families with four variants of 30 s each, mono at 24 kHz, RMS 0.1, circular (no seam where they loop).

    Each noise is made when it is first read on a machine, and kept in `$SQUTR_HOME/decoded` (58 MB for all 20) by what
    decides its samples; where that cannot be written, it is kept in the instance alone.

    >>> SyntheticNoises().noises()[0]
    NoiseInfo(id='synthetic_babble_v01', family='babble')
    """

    name = "synthetic"
    version = "1"
    license = "CC0-1.0"

    def __init__(self) -> None:
        self._infos = tuple(
            NoiseInfo(f"synthetic_{family}_v{variant + 1:02d}", family)
            for family in MAKERS
            for variant in range(VARIANTS)
        )
        self._made: LruCache[str, Samples] = LruCache(len(self._infos) * DURATION_S * SAMPLE_RATE * 4, memory_cost)

    def noises(self) -> Sequence[NoiseInfo]:
        return self._infos

    def read(self, noise_id: str) -> Samples:
        number = {info.id: index for index, info in enumerate(self._infos)}.get(noise_id)
        if number is None:
            raise unknown_name("noise", noise_id, [info.id for info in self._infos])

        def make() -> Samples:
            return self._make(noise_id, number)

        return self._made.get(noise_id, lambda: kept_by_code(noise_id, _CODE, _PACKAGES, make))

    def _make(self, noise_id: str, number: int) -> Samples:
        rng = keyed_rng(0, "synthetic noise", self.version, noise_id)
        signal = MAKERS[self._infos[number].family](rng, DURATION_S * SAMPLE_RATE, number % VARIANTS)
        signal -= signal.mean()
        signal *= RMS / math.sqrt(float(np.square(signal).mean()))
        samples: Samples = signal.astype(np.float32)
        samples.flags.writeable = False
        return samples
