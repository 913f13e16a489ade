"""A few pairs for the report's players: the clips, what each front end makes of them, and the room's decay."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import AudioError, DataError, ModelError
from ...loaders.audio import decode_audio, encode_flac, resample
from ...loaders.keyed import keyed_seed
from ...loaders.rir_mega.data import RirMegaData
from ...loaders.rir_mega.rooms import DECAY_STEP_S
from ..evaluation.hearing import sentences
from ..protocols import FrontEnd
from ..results.files import file_name, write_atomically
from .arms import CLEAN, REVERB, PairArms, PairInfo

ROOM_FILE = "room.json"


@dataclass(frozen=True, slots=True)
class SampleRoom:
    """What `room.json` says of a pair: its room, and the decay in dB every `step_s` from the direct path on ([]: not
    known). Numbers are null where they are not known."""

    sample_id: str
    language: str
    rir_id: str
    rt60_s: float | None
    drr_db: float | None
    decay_db: list[float]
    step_s: float


def chosen_pairs(arms: PairArms, language: str, count: int, seed: int) -> list[PairInfo]:
    """At most `count` pairs from dry to reverberant, each of another utterance: one of each of equal groups by RT60."""
    pairs = arms.pairs(language)
    known = sorted((p for p in pairs if math.isfinite(arms.rt60.value(p))), key=arms.rt60.value) or list(pairs)
    number = min(count, len(known))
    cuts = [len(known) * k // number for k in range(number + 1)] if number else []
    groups = [known[first:last] for first, last in itertools.pairwise(cuts)]
    chosen: dict[str, PairInfo] = {}
    for group in groups:
        # Another utterance each time, where there is one.
        drawn = sorted(group, key=lambda p: (p.utterance_id in chosen, keyed_seed(seed, "sample", p.sample_id)))
        chosen.setdefault(drawn[0].utterance_id, drawn[0])
    return list(chosen.values())


def sample_folder(folder: Path, sample_id: str) -> Path:
    """Where the files of a pair lie below a folder of results."""
    return folder / "samples" / file_name(sample_id)


def write_samples(
    folder: Path, arms: PairArms, language: str, pairs: Sequence[PairInfo], front_ends: Mapping[str, FrontEnd]
) -> None:
    """Write the clips of these pairs, what `front_ends` (by name) make of the reverberant ones, and the rooms.

    A clip that cannot be decoded or enhanced is left out. Raises `StorageError` if the disk refuses.
    """
    decays = _decays(arms, {pair.rir_id for pair in pairs})
    places = {pair.sample_id: pair.position for pair in arms.pairs(language)}
    order = {sample_id: i for i, sample_id in enumerate(places)}
    utterances = {query.id: i for i, query in enumerate(arms.expected((language, CLEAN)))}
    for pair in pairs:
        place = sample_folder(folder, pair.sample_id)
        for arm, at in ((CLEAN, utterances[pair.utterance_id]), (REVERB, order[pair.sample_id])):
            (query,) = arms.spoken(language, arm, start=at, stop=at + 1)
            write_atomically(place / f"{arm}.flac", query.audio)
        for name, front_end in front_ends.items():
            if content := _enhanced(query.audio, front_end):
                write_atomically(place / f"{file_name(name)}.flac", content)
        room = SampleRoom(
            pair.sample_id,
            language,
            pair.rir_id,
            _known(arms.rt60.value(pair)),
            _known(arms.drr.value(pair)),
            decays.get(pair.rir_id, []),
            DECAY_STEP_S,
        )
        write_atomically(place / ROOM_FILE, json.dumps(asdict(room), ensure_ascii=False).encode("utf-8"))


def read_room(path: Path) -> SampleRoom:
    """The room of a pair. Raises `DataError` for a file that is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        if set(content) != {field.name for field in fields(SampleRoom)}:
            raise ValueError(f"it has the fields {sorted(content)}")
        return SampleRoom(**content)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint="Run the evaluation again.") from error


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _decays(arms: PairArms, rir_ids: set[str]) -> dict[str, list[float]]:
    """The decay curves of these responses; published data has none."""
    if not isinstance(arms.pair_data, RirMegaData):
        return {}
    return {
        room["rir_id"]: [round(float(level), 2) for level in room["decay_db"] if math.isfinite(level)]
        for room in arms.pair_data.rooms(arms.split)
        if room["rir_id"] in rir_ids
    }


def _enhanced(audio: bytes, front_end: FrontEnd) -> bytes | None:
    """What a front end makes of a clip, as FLAC at its own rate; None where it cannot."""
    try:
        samples, rate = decode_audio(audio, "a sample clip")
        with sentences(f"{front_end.spec.name} on a sample clip"):
            (clip,) = front_end.enhance([resample(samples, rate, front_end.sample_rate)])
        return encode_flac(clip, "a sample clip", front_end.sample_rate)
    except (AudioError, ModelError):
        # A front end that does not work has failed its recognizers already.
        return None
