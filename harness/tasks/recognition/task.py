"""Speech recognition: the same utterances under several conditions, transcribed and compared with their references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from ....errors import UsageError
from ....loaders.keyed import RECIPE_VERSION
from ....loaders.records import SpokenQuery
from ...components.parameter_count import parameter_count
from ...evaluation.cells import infer_cells
from ...evaluation.forecast import forecast_inference
from ...evaluation.groups import binned_column
from ...evaluation.inference import AudioModel, Cell, Inferred, model_of
from ...evaluation.plan import SpeechPlan, make_plan
from ...evaluation.record import sha256_of
from ...evaluation.rewriting import Spoken, forecast_rewriting, rewrite_cells, rewriting_stage
from ...evaluation.task import Forecast, Output, Request, Run, RunFailure, Summary
from ...evaluation.timing import drawn_rows, inference_timing, seconds_table
from ...evaluation.tools import Tools, keep_nothing
from ...metrics.flags import repeats_itself
from ...metrics.paired_conditions import Draws
from ...results.envelope import (
    TEXT_CONDITION,
    TRANSCRIPT_FLAGS,
    DataInfo,
    Isolated,
    Latency,
    SystemInfo,
    Timing,
    items_table,
)
from ...systems.system import System
from ...text.normalizers import load_normalizer
from .analysis import details_of
from .items import SCHEMA, item_rows
from .measuring import decoded, measure
from .samples import write_samples
from .scoring import CLEAN, NO_FRONT_END, Pairing, Scored, Statistics, rate_metrics, score_rows

_PLAIN_CLEAN = "no-front-end clean"
_ACOUSTIC = ("snr_db", "noise_id", "noise_family", "rir_id", "room_id", "rt60_s", "drr_db", "source_rt60_s",
             "source_drr_db", "stratum", "speaker")  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecognitionPlan(SpeechPlan):
    """What is transcribed."""

    def baselines(self, run: Run) -> Mapping[str, Run]:
        """`clean`, the system without its front end, and that under `clean`, as far as they are evaluated."""
        found = SpeechPlan.baselines(self, run)
        clean = {CLEAN: found[CLEAN]} if CLEAN in found else {}
        system = self.system(run.system)
        if system.front_end is None:
            return clean
        wanted = system.without_front_end().fingerprint
        plain = next((other for other in self.systems if other.fingerprint == wanted), None)
        if plain is None or run.config not in self.runnable[plain.name]:
            return clean
        baselines = {**clean, NO_FRONT_END: Run(plain.name, run.config)}
        if clean:
            baselines[_PLAIN_CLEAN] = Run(plain.name, clean[CLEAN].config)
        return baselines

    def statistics(self, config: str) -> Statistics:
        """What is computed of a config. Raises `UsageError` for metrics that do not apply."""
        names, options = self.options.metrics or self.request.benchmark.metrics, self.options
        draws = Draws(options.seed, options.resamples, options.permutations)
        return Statistics(rate_metrics(names, self.language_of(config)), draws)

    def normalizer(self, run: Run) -> str:
        """The name of the text normalizer: that of the options, the system's own, or the benchmark's."""
        own = self.options.normalizer or self.system(run.system).normalizer
        return own or self.request.benchmark.normalizer_of(self.language_of(run.config))

    def model(self, run: Run) -> Any:
        """What infers for a run."""
        return model_of(self.system(run.system), self.language_of(run.config))


@dataclass(frozen=True, slots=True)
class Transcribed:
    """What is known of the clips, and the rows of every cell without audio."""

    spoken: Spoken
    rows: Mapping[Cell, Sequence[SpokenQuery]]

    def of(self, plan: RecognitionPlan, run: Run) -> list[Inferred]:
        """The rows of a run with their transcripts. Raises why the model or the rewriter failed on them."""
        system = plan.system(run.system)
        return [one for cell in plan.cells_of(run.config) for one in self.spoken.rows(plan, system, cell)]

    def hypotheses(self, plan: RecognitionPlan, run: Run) -> list[Inferred]:
        """The same, with what a rewriter made of a transcript in its place."""
        return [_hypothesis(one) for one in self.of(plan, run)]


class RecognitionTask:
    """Speech to text."""

    name = "recognition"
    version = "1"

    def plan(self, request: Request) -> RecognitionPlan:
        """Raises `UsageError` for systems that are no transcribers, `DataError` if none supports a language."""
        request.options.refuse(
            "depth", "dev_fraction", "option_orders", "baselines", "spoken", where="speech recognition"
        )
        for system in request.systems:
            if system.kind != "transcriber":
                raise UsageError(f"{system.name} is not a transcriber alone.", hint=_hint(system))
            if system.rewriter is not None and request.options.latency:
                raise UsageError(
                    f"{system.name} has a rewriter, and only transcribers are timed alone.", hint="Leave --latency out."
                )
        made = make_plan(request)
        plan = RecognitionPlan(request, made.data, made.configs, made.runnable)
        for config in plan.configs:
            if plan.condition(config) == TEXT_CONDITION:
                raise UsageError(f"{config} has no audio to transcribe.", hint="Leave it out.")
            plan.statistics(config)
            for run in plan.runs:
                load_normalizer(plan.normalizer(run), plan.language_of(run.config))
        return plan

    def infer(self, plan: RecognitionPlan, tools: Tools) -> Transcribed:
        """Transcribe every clip once per transcriber. Clips for players are chosen when their RIRs are known."""
        outputs = infer_cells(plan, replace(tools, keeper=lambda _: keep_nothing))
        spoken = Spoken(outputs, rewrite_cells(plan, outputs, tools))
        rows = {cell: [one.row for one in own] for found in outputs.values() for cell, own in found.cells.items()}
        return Transcribed(spoken, rows)

    def extra_failures(self, plan: RecognitionPlan, inferred: Transcribed) -> Sequence[RunFailure]:
        return ()

    def forecast(self, plan: RecognitionPlan, tools: Tools) -> Sequence[Forecast]:
        lines, outputs = forecast_inference(plan, tools)
        return [*lines, *forecast_rewriting(plan, outputs, tools)[0]]

    def output(self, plan: RecognitionPlan, inferred: Transcribed, run: Run) -> Output:
        rows = inferred.hypotheses(plan, run)
        content = [
            [
                [one.row.id, one.row.utterance_id, one.row.text, *(str(getattr(one.row, name)) for name in _ACOUSTIC)],
                [one.audio_sha256, one.transcript.text, one.transcript.error],
                [one.transcript.loop, one.transcript.truncated],
            ]
            for one in rows
        ]
        failed = {one.row.id: one.transcript.error for one in rows if one.transcript.error}
        return Output(sha256_of(content), len(rows), failed, rows)

    def score(self, plan: RecognitionPlan, run: Run, output: Output) -> Scored:
        return score_rows(output.content, plan.normalizer(run), plan.language_of(run.config))

    def without_items(self, scored: Scored) -> Scored:
        return scored.without_items()

    def summarize(
        self, plan: RecognitionPlan, inferred: Transcribed, run: Run, scored: Scored, baselines: Mapping[str, Scored]
    ) -> Summary:
        statistics, edges = plan.statistics(run.config), plan.data.edges
        pairings = {name: Pairing(scored, baselines[name]) for name in (CLEAN, NO_FRONT_END) if name in baselines}
        groups = statistics.groups(scored, pairings, plan.request.benchmark.groups, edges)
        timing = _timing(plan, inferred, run)
        details = details_of(
            scored,
            pairings,
            baselines.get(_PLAIN_CLEAN),
            groups=groups,
            column=binned_column("rt60_s", edges),
            front_end_cost=timing.stages["front_end"] / timing.audio_s
            if timing.audio_s and "front_end" in timing.stages
            else None,
            statistics=statistics,
        )
        flagged = {flag: sum(getattr(own, flag, False) for own in scored.flags) for flag in TRANSCRIPT_FLAGS}
        return Summary(
            main_metric=statistics.metrics[0].name,
            scores=statistics.scores(scored),
            items=items_table(item_rows(scored), SCHEMA),
            by_group=groups,
            losses={name: statistics.losses(pairing) for name, pairing in pairings.items()},
            failures={"failed": int((~scored.decoded).sum()), **flagged},
            details=details.model_dump(mode="json"),
        )

    def data_info(self, plan: RecognitionPlan, run: Run) -> DataInfo:
        return plan.data_info(run.config)

    def system_info(self, plan: RecognitionPlan, run: Run) -> SystemInfo:
        system, language = plan.system(run.system), plan.language_of(run.config)
        name = plan.normalizer(run)
        return SystemInfo(
            kind=system.kind,
            name=system.name,
            components=system.components(language),
            settings={"preset": system.preset},
            parameters=parameter_count(cast(Any, system.for_language(language).transcriber)),
            normalizer=name,
            normalizer_version=load_normalizer(name, language).version,
        )

    def settings(self, plan: RecognitionPlan, run: Run) -> Mapping[str, Any]:
        """The system, the metrics and the breakdowns."""
        return {
            "recipe_version": RECIPE_VERSION,
            "system": plan.system(run.system).as_dict(),
            "metrics": [metric.name for metric in plan.statistics(run.config).metrics],
            "groups": list(plan.request.benchmark.groups),
        }

    def timing(
        self, plan: RecognitionPlan, inferred: Transcribed, run: Run, tools: Tools
    ) -> tuple[Timing, pa.Table | None]:
        timed = isinstance(plan.model(run), AudioModel)
        return _timing(plan, inferred, run), seconds_table(inferred.of(plan, run)) if timed else None

    def latency(
        self, plan: RecognitionPlan, inferred: Transcribed, run: Run, tools: Tools
    ) -> tuple[Latency | None, Isolated | None]:
        """One subset stands for the config."""
        subset, condition = plan.cells_of(run.config)[0]
        clips = decoded(drawn_rows(plan, subset, condition)) if isinstance(plan.model(run), AudioModel) else ()
        return measure(plan.system(run.system), plan.language(subset), clips, plan.options.max_failed)

    def write_samples(self, plan: RecognitionPlan, inferred: Transcribed, target: Path) -> None:
        write_samples(target, plan, inferred.rows)


def _timing(plan: RecognitionPlan, inferred: Transcribed, run: Run) -> Timing:
    """Nothing of precomputed transcripts."""
    model = plan.model(run)
    if not isinstance(model, AudioModel):
        return Timing()
    rows = inferred.of(plan, run)
    timing = inference_timing(model, inferred.spoken.outputs[model.key], rows)
    return timing.model_copy(update={"stages": timing.stages | rewriting_stage(plan.system(run.system), rows)})


def _hypothesis(one: Inferred) -> Inferred:
    """With a rewriter, its text is what the system recognized: a failed one is a failure, and no transcript."""
    if one.rewritten is None:
        return one
    text = one.rewritten.text
    return replace(one, transcript=replace(one.transcript, text=text, error=one.error, loop=repeats_itself(text)))


def _hint(system: System) -> str:
    """What to give instead."""
    if system.kind == "cascade":
        name = system.distinct[0].components("")["transcriber"].get("name", "TRANSCRIBER")
        return f"Speech recognition takes the transcriber alone: {name!r}."
    return "For example: whisper-base."
