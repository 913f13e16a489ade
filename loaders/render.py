"""The one pure function through which every row is rendered, whatever builds, streams or mixes it.

Level policy, the same in all conditions: an audible DC offset is subtracted from the speech, a RIR has unit energy,
noise is set against the speech as it is (reverberant, if there is a RIR), and one joint gain brings the peak down to
0.9 where it would pass it. Nothing is normalized beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .audio import check_samples, encode_flac
from .conditions import Condition
from .conditions.rir import RirStep
from .conditions.step import Signal, Step, StepContext, Utterance
from .mixing import level_recording, limit_peak
from .records import CleanSpeech, Query, Row, SpokenQuery, Take

_DECIMALS = 6


def render(query: Query, speech: CleanSpeech, condition: Condition, context: StepContext) -> SpokenQuery:
    """The row of `query` under `condition`, with its FLAC bytes: the same arguments always give the same bytes.

    Raises `UsageError` for a bank that `context` lacks, `AudioError` naming the query, noise or RIR that is unusable.
    """
    return render_rows_of(query, speech, [(condition, [Row(query)])], context)[0][0]


def render_all(
    take: Take, speech: CleanSpeech, conditions: Iterable[Condition], context: StepContext
) -> list[list[SpokenQuery]]:
    """The rows of an utterance under each condition: those of `render`, but what is prepared serves all of them."""
    rows = [
        (condition, take.rows(reverb=condition.needs("rirs"), noise=condition.needs("noise")))
        for condition in conditions
    ]
    return render_rows_of(take.query, speech, rows, context)


def render_rows_of(
    query: Query, speech: CleanSpeech, rows: Sequence[tuple[Condition, Sequence[Row]]], context: StepContext
) -> list[list[SpokenQuery]]:
    """These rows of the utterance `query` by condition."""
    rendering = _Rendering(query, speech, context, [condition for condition, _ in rows])
    return [[rendering.row(condition, row) for row in of_condition] for condition, of_condition in rows]


class _Rendering:
    """One utterance: what a beginning of steps gives is kept where several conditions share it."""

    def __init__(
        self, query: Query, speech: CleanSpeech, context: StepContext, conditions: Sequence[Condition]
    ) -> None:
        self._speech, self._context = speech, context
        name = f"the speech of query {query.id!r} ({query.subset})"
        leveled = level_recording(check_samples(speech.samples, name), context.sample_rate)
        dry = Signal(leveled.samples, context.sample_rate)
        dry.kept("leveled", lambda: leveled)
        self._utterance = Utterance(query, dry, name)
        beginnings = [condition.steps[:end] for condition in conditions for end in range(1, len(condition.steps))]
        self._shared = set(beginnings)
        self._signals: dict[tuple[str, int, tuple[Step, ...]], Signal] = {}

    def row(self, condition: Condition, row: Row) -> SpokenQuery:
        query = row.query
        utterance = replace(self._utterance, rir_id=row.rir_id, draw=row.draw)
        signal = self._signal(condition.steps, utterance)
        samples, gain_db = limit_peak(signal.samples)
        columns = dict(signal.columns)
        extra = {name: columns.pop(name) for name in [*columns] if name not in SpokenQuery.__dataclass_fields__}
        return SpokenQuery(
            id=query.id,
            utterance_id=query.utterance,
            query_id=query.cluster,
            subset=query.subset,
            language=query.language,
            text=query.text,
            audio=encode_flac(samples, f"{utterance.name} under {condition.name}", signal.rate),
            duration_s=samples.size / signal.rate,
            condition=condition.name,
            gain_db=round(signal.gain_db + gain_db, _DECIMALS),
            speaker=self._speech.speaker,
            voice=self._speech.voice,
            tts_error_rate=self._speech.tts_error_rate,
            tts_takes=self._speech.tts_takes,
            tts_transcriber=self._speech.tts_transcriber,
            seed=self._context.seed,
            extra=extra,
            **columns,
        )

    def _signal(self, steps: tuple[Step, ...], utterance: Utterance) -> Signal:
        """The signal behind these steps."""
        if not steps:
            return utterance.dry
        # The room is the same for all draws.
        draw = 0 if all(isinstance(step, RirStep) for step in steps) else utterance.draw
        kept = self._signals.get((utterance.rir_id, draw, steps))
        if kept is not None:
            return kept
        signal = steps[-1].apply(self._signal(steps[:-1], utterance), utterance, self._context)
        if steps in self._shared:
            self._signals[utterance.rir_id, draw, steps] = signal
        return signal
