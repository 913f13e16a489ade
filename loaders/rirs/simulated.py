"""The embedded bank of rooms: shoeboxes simulated by the image method, drawn by the keyed rule.

pyroomacoustics finds the image sources and what the walls leave of them (Allen and Berkley, J. Acoust. Soc. Am. 65(4),
1979). Their sum is made here: its own is in float32 and changes in the last digits with the number of threads, and the
bytes of a data set must not.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import unknown_name
from ..banks.decoded import kept_by_code, memory_cost
from ..keyed import keyed_rng
from ..lru import LruCache
from ..records import SAMPLE_RATE, Samples
from ..rir_measures import measure_rir

ROOMS = 24
SHORTEST_RT60_S, LONGEST_RT60_S = 0.2, 1.2
SPEED_OF_SOUND = 343.0
"""In m/s, dry air at 20 °C."""

RT60_TOLERANCE = 0.02
_OVERSAMPLING = 8
_REFERENCE_DB = 0.5
"""Mean loss per reflection in the one simulation; every other absorption is a power of it."""
_LEAD_SAMPLES = 64
_HIGHPASS_HZ = 50.0
_REACH_SHARE, _REACH_S = 0.8, 0.08
"""A response lasts this share of its reverberation time and this much more: long enough to follow the decay over 45 dB,
and no longer, because the number of images grows with the cube."""


_HERE = Path(__file__)
_CODE = (_HERE, *(_HERE.parent.with_name(f"{name}.py") for name in ("keyed", "mixing", "reverb", "rir_measures")))
_PACKAGES = ("numpy", "pyroomacoustics", "scipy")


class SimulatedRirs:
    """24 rectangular rooms with reverberation times spread evenly (in logarithm) from 0.2 to 1.2 s.

    Size, proportions, source, microphone and the absorption of each wall are drawn; a room with a longer target is
    larger on average. The absorption is then scaled, the same for all frequencies, until the T30 that we measure lies
    within 2 % of the target. The direct path falls on a whole sample. Each room is made when it is first read on a
    machine, and kept in `$SQUTR_HOME/decoded` (where that cannot be written, in the instance alone).

    >>> SimulatedRirs().rirs()[0]
    'simulated_room_01'
    """

    name = "simulated"
    version = "1"
    license = "CC0-1.0"

    def __init__(self) -> None:
        self._ids = tuple(f"simulated_room_{number:02d}" for number in range(1, ROOMS + 1))
        self._made: LruCache[str, Samples] = LruCache(64 * 2**20, memory_cost)
        self._simulating = threading.Lock()

    def rirs(self) -> Sequence[str]:
        return self._ids

    def target_rt60(self, rir_id: str) -> float:
        """The reverberation time in s that the room was made for. Raises `UnknownNameError`."""
        if rir_id not in self._ids:
            raise unknown_name("room", rir_id, self._ids)
        share = self._ids.index(rir_id) / (ROOMS - 1)
        return float(SHORTEST_RT60_S * (LONGEST_RT60_S / SHORTEST_RT60_S) ** share)

    def read(self, rir_id: str) -> Samples:
        def make() -> Samples:
            return self._make(rir_id)

        if rir_id not in self._ids:
            raise unknown_name("room", rir_id, self._ids)
        return self._made.get(rir_id, lambda: kept_by_code(rir_id, _CODE, _PACKAGES, make))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), ())

    def _make(self, rir_id: str) -> Samples:
        target = self.target_rt60(rir_id)
        rng = keyed_rng(0, "simulated room", self.version, rir_id)
        size, source, microphone = _draw_geometry(rng, target)
        losses = _REFERENCE_DB * rng.uniform(0.5, 1.5, 6)
        # One after the other: the images of one large room take 150 MB.
        with self._simulating:
            delays, attenuation_db, distances = _images(size, source, microphone, losses, target)
            samples = _fit(delays, attenuation_db, distances, target, rir_id)
        samples.flags.writeable = False
        return samples


def _draw_geometry(
    rng: np.random.Generator, target: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Size (3,), source (3,) and microphone (3,) in m; the way from source to microphone is a whole number of
    samples."""
    # From about 35 m³ at 0.2 s to about 600 m³ at 1.2 s.
    volume = 35.0 * (target / SHORTEST_RT60_S) ** 1.6 * 2.0 ** rng.uniform(-0.3, 0.3)
    height = min(5.0, max(2.4, 2.6 * (volume / 50.0) ** 0.25 * rng.uniform(0.93, 1.07)))
    ratio = rng.uniform(1.1, 1.7)
    width = math.sqrt(volume / height / ratio)
    size = np.array([ratio * width, width, height])
    step = SPEED_OF_SOUND / SAMPLE_RATE
    while True:
        source = np.array([*rng.uniform(0.6, size[:2] - 0.6), rng.uniform(1.2, 1.8)])
        microphone = np.array([*rng.uniform(0.5, size[:2] - 0.5), rng.uniform(0.8, 1.6)])
        away = microphone - source
        distance = math.sqrt(float(np.square(away).sum()))
        if 0.6 <= distance <= 4.0:
            return size, source, source + away * (math.floor(distance / step) * step / distance)


def _images(
    size: NDArray[np.float64],
    source: NDArray[np.float64],
    microphone: NDArray[np.float64],
    losses_db: NDArray[np.float64],
    target: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Arrival times in samples, wall losses in dB and distances in m of all images that arrive in time."""
    import pyroomacoustics

    reach = SPEED_OF_SOUND * (_REACH_SHARE * target + _REACH_S)
    # An image of order n lies at least n / sqrt(Σ 1/size²) away.
    order = math.ceil(reach * math.sqrt(float(np.square(1.0 / size).sum())))
    names = ("west", "east", "south", "north", "floor", "ceiling")
    walls = {
        name: pyroomacoustics.Material(1.0 - 10.0 ** (-loss / 10.0))
        for name, loss in zip(names, losses_db, strict=True)
    }
    room = pyroomacoustics.ShoeBox(size, fs=SAMPLE_RATE, materials=walls, max_order=order, air_absorption=False)
    room.add_source(source)
    room.add_microphone(microphone)
    room.image_source_model()
    images = room.sources[0]
    distances = np.sqrt(np.square(images.images.astype(np.float64) - microphone[:, None]).sum(axis=0))
    near = distances <= reach
    distances = distances[near]
    attenuation_db = -20.0 * np.log10(np.abs(images.damping[0].astype(np.float64)[near]))
    return distances * (SAMPLE_RATE / SPEED_OF_SOUND), attenuation_db, distances


def _fit(
    delays: NDArray[np.float64],
    attenuation_db: NDArray[np.float64],
    distances: NDArray[np.float64],
    target: float,
    rir_id: str,
) -> Samples:
    """The (L,) float32 response whose measured RT60 is the target, found by the secant rule on the absorption."""
    # In a diffuse field (Eyring) the reverberation time is inverse to the loss per reflection: a good first step.
    centered = delays - delays.mean()
    decay = float((centered * attenuation_db).sum() / np.square(centered).sum()) * SAMPLE_RATE
    power = round(60.0 / target / decay, 4)
    for step in range(16):
        samples = _sum_images(delays, attenuation_db * power, distances)
        measured = measure_rir(samples, rir_id).rt60_s
        if math.isfinite(measured) and abs(measured / target - 1.0) <= RT60_TOLERANCE:
            break
        # Four digits: what differs between machines in the last digits of the measure does not reach the samples.
        # Damped after a while: the measure may jump where T30 gives way to T20.
        correction = measured / target if math.isfinite(measured) else 0.8
        power = round(power * correction ** (1.0 if step < 4 else 0.4), 4)
    return samples


def _sum_images(
    delays: NDArray[np.float64], attenuation_db: NDArray[np.float64], distances: NDArray[np.float64]
) -> Samples:
    """Sum of all images, each a band-limited pulse at its exact delay: on a finer grid, then brought to 24 kHz."""
    from scipy import fft

    amplitudes = 10.0 ** (attenuation_db / -20.0) / distances
    length = fft.next_fast_len(math.ceil(float(delays.max())) + 2 * _LEAD_SAMPLES, real=True)
    length += length % 2
    position = (delays + _LEAD_SAMPLES) * _OVERSAMPLING
    before = np.floor(position).astype(np.int64)
    fraction = position - before
    fine = np.bincount(before, amplitudes * (1.0 - fraction), length * _OVERSAMPLING)
    fine += np.bincount(before + 1, amplitudes * fraction, length * _OVERSAMPLING)
    spectrum = fft.rfft(fine)[: length // 2 + 1]
    # All images push the same way, so the lowest frequencies add up and outlast all others; no talker makes them.
    hz = np.arange(length // 2 + 1) * (SAMPLE_RATE / length)
    spectrum *= hz**4 / (hz**4 + _HIGHPASS_HZ**4)
    response: NDArray[np.float64] = fft.irfft(spectrum, length)
    return (response / float(np.abs(response).max())).astype(np.float32)
