"""What a run's inference took, and how items are drawn to be timed one at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from ...errors import ModelError
from ...loaders.keyed import keyed_seed
from ...loaders.records import SpokenQuery
from ..metering import percentiles
from ..results.envelope import SECONDS_SCHEMA, Latency, Timing
from .inference import AudioModel, Inferred, Outputs
from .plan import SpeechPlan


def inference_timing(model: AudioModel, outputs: Outputs, rows: Sequence[Inferred]) -> Timing:
    """Of the rows that did not fail: what fails at once is no fast model."""
    done = [one for one in rows if not one.transcript.error]
    inference = math.fsum(one.transcript.seconds for one in done)
    front_end = math.fsum(one.transcript.front_end_seconds for one in done)
    audio_s = math.fsum(one.row.duration_s for one in done)
    stages = {} if model.front_end is None else {"front_end": front_end}
    return Timing(
        stages={**stages, "encode" if model.encoder is not None else "transcribe": inference},
        audio_s=audio_s,
        rtfx=audio_s / (inference + front_end) if inference + front_end else None,
        waiting_share=outputs.waiting_s / outputs.seconds if outputs.seconds else None,
    )


def seconds_table(rows: Sequence[Inferred]) -> pa.Table:
    """The seconds of every row, as `SECONDS_SCHEMA`."""
    columns = [
        [one.row.id for one in rows],
        [one.row.subset for one in rows],
        [one.transcript.seconds for one in rows],
        [one.transcript.front_end_seconds for one in rows],
        [one.row.duration_s for one in rows],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SECONDS_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SECONDS_SCHEMA)


def drawn_rows(plan: SpeechPlan, subset: str, condition: str) -> list[SpokenQuery]:
    rows, options = plan.rows((subset, condition)), plan.options
    order = sorted(range(len(rows)), key=lambda i: keyed_seed(options.seed, "latency", subset, rows[i].id))
    taken = sorted(order[: options.latency])
    return [row for i in taken for row in plan.data.spoken(subset, condition, start=i, stop=i + 1)]


def latency_of(timed: Sequence[float | str], who: str, max_failed: float) -> Latency | None:
    """The latency of items from their seconds; a text says why one failed, and it is left out.

    None for no items. Raises `ModelError` if all of them failed, or a larger share than `max_failed`.
    """
    failed = [why for why in timed if isinstance(why, str)]
    if failed and (len(failed) > max_failed * len(timed) or len(failed) == len(timed)):
        raise ModelError(
            f"{len(failed)} of {len(timed)} items that were to be timed failed for {who}, the first because: "
            f"{failed[0].rstrip('.')}.",
            hint="Run the same command again when that is mended.",
        )
    seconds = [one for one in timed if not isinstance(one, str)]
    found = percentiles(seconds)
    if found is None:
        return None
    return Latency(n=len(seconds), p50_s=found["p50"], p90_s=found["p90"], p95_s=found["p95"], p99_s=found["p99"])
