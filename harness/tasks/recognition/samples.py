"""A few items for the report's players: an utterance under every condition, after each front end, and its RIR."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ....errors import AudioError, DataError, ModelError
from ....loaders.audio import decode_audio, encode_flac, resample
from ....loaders.keyed import keyed_seed
from ....loaders.records import SpokenQuery
from ....loaders.rirs.measured import DECAY_STEP_S
from ...components.checked import enhance
from ...evaluation.groups import binned_column
from ...evaluation.plan import SpeechPlan
from ...protocols import FrontEnd
from ...results.envelope import finite
from ...results.files import file_name, write_atomically
from .scoring import CLEAN

RIR_FILE = "rir.json"


@dataclass(frozen=True, slots=True)
class SampleRir:
    """The RIR of an item, and its decay in dB every `step_s` from the direct path on ([]: not known).

    Numbers are null where they are not known.
    """

    row_id: str
    subset: str
    rir_id: str
    rt60_s: float | None
    drr_db: float | None
    decay_db: list[float]
    step_s: float


def sample_folder(folder: Path, subset: str, row_id: str) -> Path:
    """Where the files of an item lie below a folder of runs."""
    return folder / "samples" / file_name(subset) / file_name(row_id)


def read_rir(path: Path) -> SampleRir:
    """The RIR of an item. Raises `DataError` for a file that is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        if set(content) != {field.name for field in fields(SampleRir)}:
            raise ValueError(f"it has the fields {sorted(content)}")
        return SampleRir(**content)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint="Run the evaluation again.") from error


def chosen_rows(rows: Sequence[SpokenQuery], column: str, count: int, seed: int) -> list[SpokenQuery]:
    """At most `count` rows, each of another utterance: from dry to reverberant one of each of equal groups by `column`.

    Where no value is known they are drawn from groups in the order of the data.
    """
    known = [row for row in rows if math.isfinite(getattr(row, column))]
    ordered = sorted(known, key=lambda row: getattr(row, column)) or list(rows)
    number = min(count, len(ordered))
    cuts = [len(ordered) * k // number for k in range(number + 1)] if number else []
    chosen: dict[str, SpokenQuery] = {}
    for first, last in itertools.pairwise(cuts):
        # Another utterance each time, where there is one.
        drawn = sorted(
            ordered[first:last], key=lambda row: (row.utterance_id in chosen, keyed_seed(seed, "sample", row.id))
        )
        chosen.setdefault(drawn[0].utterance_id, drawn[0])
    return list(chosen.values())


def write_samples(folder: Path, plan: SpeechPlan, rows: Mapping[tuple[str, str], Sequence[SpokenQuery]]) -> None:
    """Write the clips of a few items per subset below `folder`; `rows` are those of every cell, without audio.

    A clip that cannot be decoded or enhanced is left out. Raises `StorageError` if the disk refuses.
    """
    options, edges = plan.options, plan.data.edges
    front_ends: dict[str, FrontEnd] = {
        one.front_end.spec.name: one.front_end  # type: ignore[union-attr, misc]
        for system in plan.systems
        for one in system.distinct
        if one.front_end is not None
    }
    decays = _decays(plan)
    columns = {name: binned_column(name, edges) for name in ("rt60_s", "drr_db")}
    for subset in dict.fromkeys(subset for subset, _ in rows):
        cells = {condition: own for (other, condition), own in rows.items() if other == subset}
        # Those of a condition with RIRs first: an utterance with several of them has several rows there.
        most = max(cells.values(), key=lambda own: (any(row.rir_id for row in own), len(own)))
        for item in chosen_rows(most, columns["rt60_s"], options.samples, options.seed):
            place = sample_folder(folder, subset, item.id)
            for condition, own in cells.items():
                position = _position(own, item)
                if position is None:
                    continue
                (row,) = plan.data.spoken(subset, condition, start=position, stop=position + 1)
                write_atomically(place / f"{condition}.flac", row.audio)
                for name, front_end in front_ends.items() if condition != CLEAN else ():
                    if content := _enhanced(row.audio, front_end):
                        write_atomically(place / f"{condition}.{file_name(name)}.flac", content)
            if item.rir_id:
                known = {name: finite(getattr(item, column)) for name, column in columns.items()}
                rir = SampleRir(
                    item.id, subset, item.rir_id, **known, decay_db=decays.get(item.rir_id, []), step_s=DECAY_STEP_S
                )
                write_atomically(place / RIR_FILE, json.dumps(asdict(rir), ensure_ascii=False).encode("utf-8"))


def _position(rows: Sequence[SpokenQuery], item: SpokenQuery) -> int | None:
    """Where an item is among the rows of a condition: its own row, or that of its utterance."""
    places = {row.id: place for place, row in enumerate(rows)}
    return places.get(item.id, places.get(item.utterance_id))


def _decays(plan: SpeechPlan) -> dict[str, list[float]]:
    """The decay curves of the data's RIRs, by id; only built data has them."""
    table: Sequence[Mapping[str, Any]] = getattr(plan.request.data, "rirs", list)()
    return {
        rir["rir_id"]: [round(float(level), 2) for level in rir["decay_db"] if math.isfinite(level)] for rir in table
    }


def _enhanced(audio: bytes, front_end: FrontEnd) -> bytes | None:
    """The clip after a front end, as FLAC at its own rate; None where it fails."""
    try:
        samples, rate = decode_audio(audio, "a sample clip")
        (clip,) = enhance(front_end, [resample(samples, rate, front_end.sample_rate)])
        return encode_flac(clip, "a sample clip", front_end.sample_rate)
    except (AudioError, ModelError):
        # A front end that does not work has failed its systems already.
        return None
