"""From what was heard to a record: scores, effect of the front end, failures, timing, and where it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ... import __version__
from ...errors import DataError, ModelError, SqutrError
from ...loaders.keyed import RECIPE_VERSION
from ...loaders.rir_mega.recipe import RIR_MEGA_VERSION
from ..components.parameter_count import parameter_count
from ..evaluation.listeners import Heard, Listened
from ..metrics.paired_arms import Draws
from ..results.old import Environment, Timing
from ..results.files import result_path
from ..text.normalizers import Normalizer, load_normalizer
from . import scoring
from .arms import CLEAN, REVERB, PairArms
from .recognizers import Recognizer
from .results import SECONDS_SCHEMA, ArmTiming, DataInfo, PairRecord, Result, SystemInfo, pairs_table, read_record
from .scoring import HeardPairs, ScoredPairs

BENCHMARK_VERSION = f"{RECIPE_VERSION}-{RIR_MEGA_VERSION}"
AUTO = "auto"
RAW = "raw"


@dataclass(frozen=True, slots=True)
class Settings:
    """What does not change within an evaluation. `strict` fails a config in which any clip failed."""

    draws: Draws
    normalizer: str
    environment: Environment
    processes: int = 1
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """What the evaluation's own meters said of listening, all recognizers together."""

    peak_memory_mb: float | None
    peak_gpu_memory_mb: float | None
    energy_j: float | None


@dataclass(frozen=True, slots=True)
class Made:
    """What was heard, by the listeners' keys, and the costs."""

    arms: PairArms
    listened: Mapping[str, Listened]
    settings: Settings
    cost: Cost

    def heard(self, recognizer: Recognizer, language: str) -> HeardPairs:
        """What a recognizer heard. Raises why it failed, or with `strict` that a clip did."""
        listened = self.listened[recognizer.ear.key]
        cells: dict[str, list[Heard]] = {}
        for arm in (CLEAN, REVERB):
            if (language, arm) in listened.failed:
                raise listened.failed[language, arm]
            cells[arm] = listened.cells[language, arm]
            wrong = [h for h in cells[arm] if h.transcript.error] if self.settings.strict else []
            if wrong:
                first = wrong[0]
                raise ModelError(
                    f"{len(wrong)} {arm} clips failed, the first is {first.query.id!r}: {first.transcript.error}.",
                    hint="Mend them, or leave --strict out: they are then counted, and their pairs are left out.",
                )
        return HeardPairs.of(language, self.arms.pairs(language), cells[CLEAN], cells[REVERB])


def normalizer_for(name: str, language: str) -> Normalizer:
    """The text normalizer: `auto` is `whisper` for English and `default` elsewhere."""
    if name == AUTO:
        name = "whisper" if language.partition("-")[0] == "en" else "default"
    return load_normalizer(name, language)


def config_of(language: str, split: str) -> str:
    """The name of a config."""
    return f"{language}_{split}"


def record(
    made: Made, recognizer: Recognizer, language: str, *, plain: bool, out: Path | None
) -> tuple[PairRecord, bool]:
    """The record of a recognizer on a language, and whether `out` held it already, made from the same inputs.

    `plain`: the same transcriber was heard without the front end too, and is what the front end is compared with.
    """
    arms, settings = made.arms, made.settings
    heard = made.heard(recognizer, language)
    config = config_of(language, arms.split)
    normalizer = normalizer_for(settings.normalizer, language)
    baseline = _heard_without_front_end(made, recognizer, language) if plain else None
    digest = inputs_sha256(made, recognizer, normalizer, heard, baseline)
    kept = kept_record(out, recognizer.name, config, digest)
    if kept is not None:
        return kept, True
    scored = ScoredPairs(heard, normalizer)
    draws = settings.draws
    by_rt60 = scoring.bins_of(scored, arms.rt60, draws)
    timing, by_arm = timing_of(made, recognizer, heard)
    taken = [t.front_end_s for t in by_arm.values()]
    heard_s = sum(t.audio_s for t in by_arm.values())
    others = [name for name in (RAW,) if name != normalizer.name]
    result = Result(
        benchmark_version=BENCHMARK_VERSION,
        squtr_version=__version__,
        inputs_sha256=digest,
        data=data_info(arms, language),
        system=SystemInfo(
            name=recognizer.name,
            front_end=None if recognizer.front_end is None else recognizer.front_end.spec.as_dict(),
            transcriber=recognizer.transcriber.spec.as_dict(),
            preset=recognizer.preset,
            parameters=parameter_count(recognizer.transcriber),
            normalizer=normalizer.name,
            normalizer_version=normalizer.version,
        ),
        main_metric=scoring.main_metric(language),
        rates=scoring.all_rates(scored, draws),
        other_normalizers={
            name: scoring.all_rates(ScoredPairs(heard, load_normalizer(name, language)), draws, macro=False)
            for name in others
        },
        kinds=scoring.all_kinds(scored, draws),
        spread=scoring.spread_of(scored, draws),
        by_rt60=by_rt60,
        by_drr=scoring.bins_of(scored, arms.drr, draws),
        map=scoring.map_of(scored, arms.rt60, arms.drr, draws),
        onset=scoring.onset_of(scored, arms.rt60, by_rt60, draws),
        effect=None
        if baseline is None
        else scoring.effect_of(
            scored,
            ScoredPairs(baseline, normalizer),
            rt60=arms.rt60,
            drr=arms.drr,
            draws=draws,
            seconds_per_second=sum(taken) / heard_s if heard_s else None,
        ),
        failures=scoring.failures_of(scored),
        timing=timing,
        arm_timing=by_arm,
        environment=settings.environment,
        seed=draws.seed,
        resamples=draws.resamples,
    )
    rows = scoring.pair_rows(scored, arms.rt60, arms.drr)
    return PairRecord(result, pairs_table(rows), seconds_of(recognizer, heard)), False


def _heard_without_front_end(made: Made, recognizer: Recognizer, language: str) -> HeardPairs | None:
    """What the same transcriber heard without the front end; None where that failed, which is said of it alone."""
    try:
        return made.heard(recognizer.plain, language)
    except SqutrError:
        return None


def kept_record(out: Path | None, system: str, config: str, digest: str) -> PairRecord | None:
    """The record that `out` holds of the same inputs, None if there is none."""
    if out is None:
        return None
    try:
        found = read_record(result_path(out, system, config))
    except DataError:
        # Missing, damaged or of another version: it is scored and written again.
        return None
    return found if found.result.inputs_sha256 == digest else None


def data_info(arms: PairArms, language: str) -> DataInfo:
    """What was read."""
    data, pairs = arms.pair_data, arms.pairs(language)
    recipe = dict(data.recipe)
    licenses = (recipe.get(f"{part}_license") for part in ("speech", "rooms", "noise"))
    return DataInfo(
        speech=str(recipe.get("speech", "")),
        speech_version=str(recipe.get("speech_version") or recipe.get("source_version") or ""),
        rooms=str(recipe.get("rooms", "")),
        rooms_version=str(recipe.get("rooms_version") or recipe.get("source_version") or ""),
        license="; ".join(dict.fromkeys(str(license) for license in licenses if license)),
        revision=data.revision,
        config=config_of(language, arms.split),
        language=language,
        split=arms.split,
        n=len(pairs),
        n_total=arms.totals[language],
        utterances=len({pair.utterance_id for pair in pairs}),
        responses=len({pair.rir_id for pair in pairs}),
        rooms_used=len({pair.room_id for pair in pairs}),
        partial=arms.partial,
        edges={bins.column: list(bins.edges) for bins in (arms.rt60, arms.drr)},
        manifest_sha256=data.manifest_sha256,
        recipe=recipe,
    )


def inputs_sha256(
    made: Made, recognizer: Recognizer, normalizer: Normalizer, heard: HeardPairs, baseline: HeardPairs | None
) -> str:
    """The digest of all that the scores follow from: data, recognizer, transcripts, settings, versions."""
    arms, settings = made.arms, made.settings
    digest = hashlib.sha256()
    for value in (
        [__version__, BENCHMARK_VERSION, arms.pair_data.revision, arms.pair_data.manifest_sha256],
        [arms.split, arms.partial, arms.totals, list(arms.rt60.edges), list(arms.drr.edges)],
        [recognizer.as_dict(), normalizer.name, normalizer.version, asdict(settings.draws)],
        [asdict(pair) for pair in heard.pairs],
    ):
        digest.update(_json(value))
    for side in (heard, baseline):
        for name, arm in side.arms.items() if side is not None else ():
            for h in arm:
                t = h.transcript
                digest.update(_json([name, h.query.id, h.audio_sha256, t.text, t.error, t.loop, t.truncated]))
    return digest.hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def _distinct(heard: Sequence[Heard]) -> list[Heard]:
    """Each clip once: an utterance's clean clip belongs to all its pairs."""
    return list({h.query.id: h for h in heard}.values())


def timing_of(made: Made, recognizer: Recognizer, heard: HeardPairs) -> tuple[Timing, dict[str, ArmTiming]]:
    """What hearing took, whole and by arm; nothing of ready transcripts."""
    costs = asdict(made.cost)
    if recognizer.listener is None:
        return Timing(**costs, processes=made.settings.processes), {}
    by_arm = {}
    for arm, side in heard.arms.items():
        clips = _distinct(side)
        audio_s = sum(h.query.duration_s for h in clips)
        transcribe_s = sum(h.transcript.seconds for h in clips)
        front_end_s = sum(h.transcript.front_end_seconds for h in clips)
        taken = transcribe_s + front_end_s
        by_arm[arm] = ArmTiming(
            audio_s=audio_s,
            transcribe_s=transcribe_s,
            front_end_s=front_end_s,
            rtfx=audio_s / taken if taken else None,
        )
    audio_s = sum(t.audio_s for t in by_arm.values())
    transcribe_s = sum(t.transcribe_s for t in by_arm.values())
    front_end_s = sum(t.front_end_s for t in by_arm.values())
    listened = made.listened[recognizer.ear.key]
    whole = Timing(
        front_end_s=None if recognizer.front_end is None else front_end_s,
        transcribe_s=transcribe_s,
        audio_s=audio_s,
        rtfx=audio_s / (transcribe_s + front_end_s) if transcribe_s + front_end_s else None,
        waiting_share=listened.waiting_s / listened.seconds if listened.seconds else None,
        **costs,
        processes=made.settings.processes,
    )
    return whole, by_arm


def seconds_of(recognizer: Recognizer, heard: HeardPairs) -> pa.Table | None:
    """What hearing each clip took, None of ready transcripts."""
    if recognizer.listener is None:
        return None
    rows: list[dict[str, Any]] = [
        {
            "id": h.query.id,
            "arm": arm,
            "seconds": h.transcript.seconds,
            "front_end_seconds": h.transcript.front_end_seconds,
            "duration_s": h.query.duration_s,
        }
        for arm, side in heard.arms.items()
        for h in _distinct(side)
    ]
    return pa.Table.from_pylist(rows, schema=SECONDS_SCHEMA)
