"""Noise added at an exact level: `low_noise`, `medium_noise`, `high_noise`, and any level as `snr_<dB>`.

What is drawn for an utterance depends on the seed, its subset, its id and the number of the draw alone:

- the noise: first a family, uniformly, then one of its noises, uniformly, so that a family's size does not matter;
- where in it the clip begins, uniformly, until the stretch is not silent where the clean speech is active (at most
  `QUIET_RANGE_DB` below the noise's own level).

Both are the same at every level and with every RIR: the dry speech decides, and only the level changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UsageError
from ..audio import check_samples
from ..banks.protocols import NoiseBank, NoiseInfo
from ..keyed import keyed_index
from ..mixing import LeveledSpeech, level_noise, mean_square, mix, noise_segment
from ..records import Samples
from .step import ADDED, Signal, StepContext, StepKind, Utterance, noise_key

NAMED_LEVELS_DB: Mapping[str, float] = {"low_noise": 20.0, "medium_noise": 10.0, "high_noise": 0.0}
"""The published levels (SQuTR, arXiv 2602.12783, section 3.3)."""
LOWEST_SNR_DB, HIGHEST_SNR_DB = -60.0, 100.0

QUIET_RANGE_DB = 40.0
"""A stretch of noise further than this below the noise's own level counts as silent."""
DRAWS = 32
"""How often a beginning is drawn before the loudest place of the noise is taken."""

_LEVEL = re.compile(r"snr_(-?\d+(?:\.\d+)?)")
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The noise of one utterance, whole, and where in it the utterance's segment begins."""

    info: NoiseInfo
    samples: Samples
    offset: int


@dataclass(frozen=True, slots=True)
class NoiseStep:
    """Noise at `snr_db` against the speech as it arrives here, with its reverberation."""

    snr_db: float

    def as_dict(self) -> dict[str, Any]:
        return {"step": KIND.name, "snr_db": self.snr_db}

    def apply(self, signal: Signal, utterance: Utterance, context: StepContext) -> Signal:
        drawn = utterance.dry.kept(f"noise drawn {utterance.draw}", lambda: _draw(utterance, context))
        offset_s = drawn.offset / context.sample_rate
        speech = signal.leveled
        noise = signal.kept(
            f"noise {utterance.draw}",
            lambda: level_noise(noise_segment(drawn.samples, drawn.offset, signal.samples.size), speech),
        )
        mixture = mix(
            speech,
            noise,
            self.snr_db,
            level=context.level,
            speech_name=utterance.name,
            noise_name=f"the noise {drawn.info.id!r} from {offset_s:.3f} s",
        )
        columns = {
            "snr_db": self.snr_db,
            "snr_active_db": round(mixture.snr_active_db, _DECIMALS),
            "noise_id": drawn.info.id,
            "noise_family": drawn.info.family,
            "noise_offset_s": offset_s,
        }
        return signal.passed_on(mixture.samples, columns, gain_db=mixture.gain_db)


def _draw(utterance: Utterance, context: StepContext) -> _Drawn:
    bank = context.noise_bank(utterance.query)
    info = draw_noise(utterance.key(), bank, context.seed)
    noise = context.read_noise(bank, info.id)
    power = context.cache.noise_power.get(
        noise_key(bank, info.id), lambda: mean_square(check_samples(noise, f"the noise {info.id!r}"))
    )
    offset = draw_offset(utterance.key(), noise, power, utterance.dry.leveled, context.seed)
    return _Drawn(info, noise, offset)


def draw_noise(key: Sequence[str], bank: NoiseBank, seed: int) -> NoiseInfo:
    """The noise of an utterance with this key (subset, id, and the number of a further draw).

    First a family is drawn, then one of its noises, both uniformly.
    """
    families: dict[str, list[NoiseInfo]] = {}
    for info in bank.noises():
        families.setdefault(info.family, []).append(info)
    names = sorted(families)
    family = names[keyed_index(len(names), seed, "noise", *key, "family")]
    members = families[family]
    return members[keyed_index(len(members), seed, "noise", *key, "member")]


def draw_offset(key: Sequence[str], noise: Samples, power: float, speech: LeveledSpeech, seed: int) -> int:
    """Where in (N,) `noise` of mean square `power` the segment for clean `speech` begins, in samples.

    Uniform over the places where the clip fits without wrapping (over all if the noise is shorter than the clip).
    """
    length = speech.samples.size
    places = noise.size - length + 1 if noise.size > length else noise.size
    least = power * 10.0 ** (-QUIET_RANGE_DB / 10.0)
    for draw in range(DRAWS):
        offset = keyed_index(places, seed, "noise", *key, "offset", str(draw))
        segment = noise_segment(noise, offset, length)
        if mean_square(segment[speech.start : speech.stop]) >= least:
            return offset
    # A noise that is silent nearly everywhere: its loudest sample goes to the middle of the speech.
    loudest = int(np.argmax(np.abs(noise)))
    return (loudest - (speech.start + speech.stop) // 2) % int(noise.size)


def parse_noise(text: str) -> NoiseStep:
    """The step of a named level, or of `snr_<dB>`. Raises `UsageError`."""
    if text in NAMED_LEVELS_DB:
        return NoiseStep(NAMED_LEVELS_DB[text])
    match = _LEVEL.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a level of noise.", hint="Write snr_<dB>, for example snr_5.")
    level = float(match[1]) + 0.0  # turns -0.0 into 0.0
    if not LOWEST_SNR_DB <= level <= HIGHEST_SNR_DB:
        raise UsageError(
            f"the level of {text!r} is out of range.",
            hint=f"It must lie between {LOWEST_SNR_DB:g} and {HIGHEST_SNR_DB:g} dB.",
        )
    if f"{level:g}" != match[1]:
        raise UsageError(f"{text!r} is not in its shortest form.", hint=f"Write snr_{level:g}.")
    return NoiseStep(level)


KIND = StepKind(
    name="noise",
    order=ADDED,
    pattern=rf"{'|'.join(NAMED_LEVELS_DB)}|{_LEVEL.pattern}",
    parse=parse_noise,
    bank="noise",
    columns={
        "snr_db": "float64",
        "snr_active_db": "float64",
        "noise_id": "string",
        "noise_family": "string",
        "noise_offset_s": "float64",
    },
    examples=("snr_5",),
)
