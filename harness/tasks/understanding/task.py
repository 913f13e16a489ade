"""The task as the evaluation sees it: prompts in, replies out, scored against options and instructions."""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from ....errors import DataError, SqutrError, StorageError, UsageError, unknown_name
from ....loaders.questions.data import QuestionData
from ....loaders.questions.question import CONFIGS, Question
from ....loaders.questions.statuses import coverage_of
from ...components.answerers.files import RepliesFile
from ...evaluation.cells import take_in
from ...evaluation.inference import AudioModel
from ...evaluation.options import Options
from ...evaluation.outage import failed_tail, stopped
from ...evaluation.record import sha256_of
from ...evaluation.task import Forecast, Output, Request, Run, RunFailure, Summary
from ...evaluation.tools import Tools
from ...metrics.registry import parse_metric
from ...protocols import FrontEnd, Reply, Transcriber
from ...results.envelope import (
    REPLY_FLAGS,
    SECONDS_SCHEMA,
    DataInfo,
    Isolated,
    Latency,
    Loss,
    SystemInfo,
    Timing,
    items_table,
)
from ...systems.system import System, check_systems, with_text_only_baselines
from .audio import QuestionAudio
from .details import Comparison, UnderstandingDetails
from .items import SCHEMA, is_right, item_rows, verifiers_of
from .judging import Judged, judge_replies
from .prompting import Prompt, prompts_of
from .prompts import LANGUAGES, PROMPTS, PROMPTS_VERSION
from .replies import Answered, Inferred, answer, transcribe, uses_audio
from .samples import keep_samples
from .scoring import Scored, Statistics, loss_of, paired, score

BASELINES = ("text-only", "shuffled")
SHUFFLED_ORDERS = 2
MAIN_METRIC = "accuracy"
_MOST_ERRORS = 5


@dataclass(frozen=True, slots=True)
class UnderstandingPlan:
    """What is asked: questions by config, every prompt once, and why some have no audio (by the id of an item)."""

    request: Request
    systems: tuple[System, ...]
    questions: Mapping[str, tuple[Question, ...]]
    totals: Mapping[str, int]
    prompts: tuple[Prompt, ...]
    missing: Mapping[str, str]
    statistics: Statistics

    @property
    def data(self) -> QuestionData:
        return cast(QuestionData, self.request.data)

    @property
    def options(self) -> Options:
        return self.request.options

    @property
    def runs(self) -> Sequence[Run]:
        """Text-only baselines first."""
        ordered = sorted(self.systems, key=lambda system: not system.text_only)
        return [Run(system.name, config) for system in ordered for config in self.questions]

    def system(self, name: str) -> System:
        return next(system for system in self.systems if system.name == name)

    def baselines(self, run: Run) -> Mapping[str, Run]:
        own = self.system(run.system)
        if not uses_audio(own) or own.is_precomputed:
            return {}
        wanted = own.text_only_baseline().fingerprint
        other = next((system for system in self.systems if system.fingerprint == wanted), None)
        return {} if other is None else {"text-only": Run(other.name, run.config)}

    def language_of(self, config: str) -> str:
        return self.data.language

    def without(self, left_out: Collection[Run]) -> UnderstandingPlan:
        """The same without the systems of these runs: all configs are in one language."""
        names = {run.system for run in left_out}
        return replace(self, systems=tuple(system for system in self.systems if system.name not in names))

    def prompts_for(self, run: Run) -> list[Prompt]:
        """The prompts of a config for a system; what needs audio is not put to one that has none."""
        ids = {question.id for question in self.questions[run.config]}
        spoken = uses_audio(self.system(run.system))
        return [one for one in self.prompts if one.question.id in ids and (spoken or not one.spoken)]


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of a run, with its replies; a baseline keeps only which prompts were answered right."""

    scored: Scored
    answered: Answered | None
    right: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class UnderstandingTask:
    name = "understanding"
    version = "1"

    def plan(self, request: Request) -> UnderstandingPlan:
        """Raises `UsageError` for systems that answer nothing, `DataError` for a set without questions."""
        data, options = cast(QuestionData, request.data), request.options
        _check_options(options)
        for metric in options.metrics:
            parse_metric(metric)
        systems = list(check_systems(request.systems))
        for system in [*systems, *request.judges]:
            if system.kind != "answerer":
                raise UsageError(
                    f"{system.name} gives no answers.",
                    hint="For example: 'chat:MODEL', 'whisper-base + llm:MODEL', 'text-only + llm:MODEL'.",
                )
        deaf = next((one for one in systems if not (uses_audio(one) or one.text_only or one.is_precomputed)), None)
        if deaf is not None:
            raise UsageError(
                f"{deaf.name} answers text alone: it would be asked about audio that it is not given.",
                hint=f"Put a transcriber before it ('whisper-base + {deaf.name}'), or write 'text-only + {deaf.name}'.",
            )
        busy = next((one for one in request.judges if one.transcriber is not None or one.front_end is not None), None)
        if busy is not None:
            raise UsageError(
                f"the judge {busy.name} has a transcriber, and reads replies alone.",
                hint="Write a judge as its answerer: 'llm:MODEL', 'chat-server:MODEL'.",
            )
        if data.language not in LANGUAGES:
            raise UsageError(
                f"{data.name} is in {data.language!r}, for which there are no prompts.",
                hint=f"There are prompts in {', '.join(LANGUAGES)}.",
            )
        if "text-only" in options.baselines:
            systems = with_text_only_baselines(systems)
        unfit = next((system for system in systems if not system.supports(data.language)), None)
        if unfit is not None:
            raise UsageError(f"{unfit.name} does not support {data.language!r}.", hint="Give another system.")
        questions = {name: data.questions(name) for name in _expanded(request.configs)}
        empty = next((name for name, found in questions.items() if not found), None)
        if empty is not None:
            raise DataError(
                f"{data.name} has no questions in the config {empty!r}.", hint=f"Known: {', '.join(CONFIGS)}."
            )
        totals = {name: len(found) for name, found in questions.items()}
        if options.partial:
            questions = {name: _part(found, options) for name, found in questions.items()}
        every = list({question.id: question for found in questions.values() for question in found}.values())
        for question in every:
            if question.kind == "aif":
                verifiers_of(question)
        orders = max(options.option_orders, SHUFFLED_ORDERS if "shuffled" in options.baselines else 1)
        prompts = prompts_of(every, data.language, orders=orders, spoken=options.spoken, seed=options.seed)
        statuses = {one.id: [data.status(audio) for audio in one.audios] for one in prompts}
        missing: dict[str, str] = {
            id_: next(status for status in own if status != "ok") for id_, own in statuses.items() if set(own) - {"ok"}
        }
        return UnderstandingPlan(
            request,
            tuple(systems),
            questions,
            totals,
            tuple(prompts),
            missing,
            Statistics(options.seed, options.resamples),
        )

    def infer(self, plan: UnderstandingPlan, tools: Tools) -> Inferred:
        """Transcripts once per transcriber, replies once per answerer and prompt; then the judges' marks."""
        audio = QuestionAudio(plan.data)
        found = Inferred()
        transcripts: dict[str, Any] = {}
        for system in plan.systems:
            prompts = [
                one for one in plan.prompts if one.id not in plan.missing and (uses_audio(system) or not one.spoken)
            ]
            try:
                own: Mapping[str, Any] = {}
                if system.transcriber is not None and not system.text_only:
                    model = AudioModel(cast(Transcriber, system.transcriber), cast(FrontEnd | None, system.front_end))
                    if model.key not in transcripts:
                        transcripts[model.key] = self._transcribed(plan, model, audio, tools)
                    own = transcripts[model.key]
                replies = answer(system, prompts, audio, own, tools)
                tail = {}
                if plan.options.max_failed < 1 and not isinstance(system.answerer, RepliesFile):
                    tail = failed_tail([(key, reply.error) for key, reply in replies.items()])
                found.answered[system.name] = Answered(replies, own, tail)
            except StorageError:
                raise
            except SqutrError as error:
                found.failed[system.name] = error
        take_in(tools)
        if tools.processes.rank == 0:
            names = {a for one in plan.prompts if one.id not in plan.missing for a in one.audios}
            found.digests = {name: audio.digest(name) for name in sorted(names)}
        audio.save()
        self._judge(plan, found, tools)
        return found

    def _transcribed(
        self, plan: UnderstandingPlan, model: AudioModel, audio: QuestionAudio, tools: Tools
    ) -> Mapping[str, Any]:
        lengths: dict[str, float] = {}
        for one in plan.prompts:
            if one.id not in plan.missing:
                known = dict(zip(one.question.audios, one.question.audio_durations_s, strict=False))
                lengths |= {a: known.get(a, 0.0) for a in one.audios if a not in lengths}
        return transcribe(model, lengths, audio, plan.data.language, tools)

    def _judge(self, plan: UnderstandingPlan, found: Inferred, tools: Tools) -> None:
        """Have all replies to open-ended items marked. A judge that fails as a whole marks nothing more."""
        judged: dict[str, Judged] = {}
        failed: dict[str, SqutrError] = {}
        prompts = [
            one
            for one in plan.prompts
            if one.question.open_ended and one.order is None and not one.spoken and one.id not in plan.missing
        ]
        for name, own in found.answered.items():
            left = [judge for judge in plan.request.judges if judge.name not in failed]
            if prompts and left:
                judged[name], failures = judge_replies(left, prompts, own.replies, tools, plan.options.max_failed)
                failed |= failures
        found.judged = (judged, failed)

    def extra_failures(self, plan: UnderstandingPlan, inferred: Inferred) -> Sequence[RunFailure]:
        return [RunFailure(f"judge {name}", "", error) for name, error in inferred.judged[1].items()]

    def output(self, plan: UnderstandingPlan, inferred: Inferred, run: Run) -> Output:
        if run.system in inferred.failed:
            raise inferred.failed[run.system]
        own = inferred.answered[run.system]
        prompts = [one for one in plan.prompts_for(run) if one.id not in plan.missing]
        failed: dict[str, str] = {}
        content: list[object] = []
        for one in prompts:
            reply = own.replies.get(one.key) or Reply("", error="no reply")
            if reply.error:
                order = "" if one.order is None else f" (options in the order {one.order})"
                failed[f"{one.id}{order}"] = reply.error
            texts = [own.transcripts[a].text for a in one.audios if a in own.transcripts]
            shas = [inferred.digests.get(a, "") for a in one.audios]
            content.append([*one.key, reply.text, reply.error, texts, shas])
        answerer: object = plan.system(run.system).answerer
        if isinstance(answerer, RepliesFile):
            answerer.refuse_missing([one.id for one in prompts if one.key not in own.replies], len(prompts))
        if any(one.key in own.tail for one in prompts):
            raise stopped(run.system, own.tail)
        judged = inferred.judged[0].get(run.system)
        marks = {} if judged is None else {name: dict(own) for name, own in judged.marks.items()}
        return Output(sha256_of(content, dict(plan.missing), marks), len(prompts), failed, own)

    def score(self, plan: UnderstandingPlan, run: Run, output: Output) -> RunScores:
        own = cast(Answered, output.content)
        main = _first_orders(plan.prompts_for(run), plan.options.option_orders)
        right = {
            kind: {
                one.id: is_right(one, own.replies)
                for one in plan.prompts_for(run)
                if one.question.kind == kind and one.order is None and not one.spoken and one.id not in plan.missing
            }
            for kind in ("mcqa", "aif")
        }
        return RunScores(score(main, plan.missing, own.replies, plan.statistics), own, right)

    def without_items(self, scored: RunScores) -> RunScores:
        return RunScores(scored.scored, None, scored.right)

    def summarize(
        self,
        plan: UnderstandingPlan,
        inferred: Inferred,
        run: Run,
        scored: RunScores,
        baselines: Mapping[str, RunScores],
    ) -> Summary:
        own = scored.answered or inferred.answered[run.system]
        prompts = plan.prompts_for(run)
        asked = [one for one in prompts if one.id not in plan.missing]
        replies = [own.replies.get(one.key) or Reply("", error="no reply") for one in asked]
        errors = Counter(reply.error for reply in replies if reply.error)
        compared = self._comparisons(plan, run, own, scored, baselines)
        judged = inferred.judged[0].get(run.system)
        found, info = scored.scored, self.data_info(plan, run)
        details = UnderstandingDetails(
            prompts_version=PROMPTS_VERSION,
            prompts=dict(PROMPTS),
            option_orders=plan.options.option_orders,
            spoken=any(one.spoken for one in prompts),
            coverage=1 - sum(info.missing_audio.values()) / info.n if info.n else None,
            mcqa=found.mcqa,
            aif=found.aif,
            baselines=compared,
            open_ended=None if judged is None else judged.block(prompts, plan.statistics),
            errors=dict(errors.most_common(_MOST_ERRORS)),
            duration_edges_s=list(plan.statistics.duration_edges_s),
        )
        texts = {audio: transcript.text for audio, transcript in own.transcripts.items()}
        rows = item_rows(
            prompts, plan.missing, own.replies, digests=inferred.digests, transcripts=texts, subset=plan.data.name
        )
        return Summary(
            main_metric=plan.options.metrics[0] if plan.options.metrics else MAIN_METRIC,
            scores=found.scores,
            items=items_table(rows, SCHEMA),
            by_group={breakdown: list(groups.values()) for breakdown, groups in found.groups.items()},
            losses={name: _losses(comparison) for name, comparison in compared.items()},
            failures={
                "failed": sum(errors.values()),
                **{flag: sum(flag in row["flags"] for row in rows) for flag in REPLY_FLAGS},
                "missing_audio": sum(info.missing_audio.values()),
            },
            details=details.model_dump(mode="json"),
        )

    def _comparisons(
        self, plan: UnderstandingPlan, run: Run, own: Answered, scored: RunScores, baselines: Mapping[str, RunScores]
    ) -> dict[str, Comparison]:
        found = {
            name: Comparison(
                name=plan.baselines(run)[name].system,
                mcqa=paired(scored.right["mcqa"], baseline.right["mcqa"], plan.statistics),
                aif=paired(scored.right["aif"], baseline.right["aif"], plan.statistics),
            )
            for name, baseline in baselines.items()
        }
        if "shuffled" in plan.options.baselines and not plan.system(run.system).is_precomputed:
            others = [o for o in plan.prompts_for(run) if o.order is not None and o.id not in plan.missing]
            second = {one.id: is_right(one, own.replies) for one in reversed(others)}
            found["shuffled"] = Comparison(
                name="the same options in another order",
                mcqa=paired(scored.right["mcqa"], second, plan.statistics),
                aif=None,
            )
        return found

    def data_info(self, plan: UnderstandingPlan, run: Run) -> DataInfo:
        data, questions = plan.data, plan.questions[run.config]
        statuses = {audio: data.status(audio) for question in questions for audio in question.all_audios}
        coverage = coverage_of(questions, statuses)
        return DataInfo(
            source=data.name,
            source_version="",
            revision=data.revision,
            license=data.license,
            config=run.config,
            language=data.language,
            condition="clean",
            subsets=[data.name],
            n=len(questions),
            n_total=plan.totals[run.config],
            clusters=len(questions),
            partial=plan.options.partial and len(questions) < plan.totals[run.config],
            audio_s=round(coverage.seconds, 3),
            missing_audio={str(status): n for status, n in coverage.by_status.items()},
            manifest_sha256=data.manifest_sha256,
            recipe={},
        )

    def system_info(self, plan: UnderstandingPlan, run: Run) -> SystemInfo:
        system, options = plan.system(run.system), plan.options
        return SystemInfo(
            kind="answerer",
            name=system.name,
            components=system.components(plan.data.language),
            settings={
                "text_only": system.text_only,
                "templates": dict(system.templates),
                "prompts_version": PROMPTS_VERSION,
                "option_orders": options.option_orders,
                "order_seed": options.seed,
                "spoken": options.spoken,
            },
            reference=system.text_only,
        )

    def settings(self, plan: UnderstandingPlan, run: Run) -> Mapping[str, Any]:
        return {
            "prompts": dict(PROMPTS),
            "baselines": list(plan.options.baselines),
            "metrics": list(plan.options.metrics),
            "duration_edges_s": list(plan.statistics.duration_edges_s),
            "judges": [judge.as_dict() for judge in plan.request.judges],
        }

    def timing(
        self, plan: UnderstandingPlan, inferred: Inferred, run: Run, tools: Tools
    ) -> tuple[Timing, pa.Table | None]:
        own, system = inferred.answered[run.system], plan.system(run.system)
        prompts = [one for one in plan.prompts_for(run) if one.id not in plan.missing]
        # What fails at once is not fast.
        done = [one for one in prompts if one.key in own.replies and not own.replies[one.key].error]
        used = {audio for one in done for audio in one.audios if audio in own.transcripts}
        transcribed = math.fsum(own.transcripts[audio].seconds for audio in used)
        front_end = math.fsum(own.transcripts[audio].front_end_seconds for audio in used)
        per_prompt = math.fsum(own.transcripts[a].seconds + own.transcripts[a].front_end_seconds
                               for one in done for a in one.audios if a in own.transcripts)  # fmt: skip
        taken = math.fsum(own.replies[one.key].seconds for one in done)
        audio_s = 0.0
        if uses_audio(system):
            audio_s = math.fsum(one.question.duration_s for one in done if one.question.duration_s >= 0)
        stages = {"answer": taken - per_prompt}
        if own.transcripts:
            stages = {"transcribe": transcribed, **stages}
            if system.front_end is not None:
                stages = {"front_end": front_end, **stages}
        columns = [
            [one.id for one in prompts],
            [plan.data.name] * len(prompts),
            [own.replies[one.key].seconds if one.key in own.replies else 0.0 for one in prompts],
            [0.0] * len(prompts),
            [one.question.duration_s for one in prompts],
        ]
        arrays = [pa.array(column, entry.type) for column, entry in zip(columns, SECONDS_SCHEMA, strict=True)]
        timing = Timing(stages=stages, audio_s=audio_s or None, rtfx=audio_s / taken if taken and audio_s else None)
        return timing, pa.Table.from_arrays(arrays, schema=SECONDS_SCHEMA)

    def latency(
        self, plan: UnderstandingPlan, inferred: Inferred, run: Run, tools: Tools
    ) -> tuple[Latency | None, Isolated | None]:
        raise UsageError("answers are not timed one at a time.", hint="Leave --latency out.")

    def forecast(self, plan: UnderstandingPlan, tools: Tools) -> list[Forecast]:
        return [
            Forecast("answer", system.name, config, len(plan.prompts_for(Run(system.name, config))), 0, math.nan, "")
            for system in plan.systems
            for config in plan.questions
        ]

    def write_samples(self, plan: UnderstandingPlan, inferred: Inferred, target: Path) -> None:
        if plan.options.samples:
            every = [one.question for one in plan.prompts]
            keep_samples(target, plan.data, every, SAMPLES_EACH * plan.options.samples)


SAMPLES_EACH = 6
"""Questions kept for each of `Options.samples`: questions are as different as the subsets of other data."""


def _check_options(options: Options) -> None:
    wrong = next((name for name in options.baselines if name not in BASELINES), None)
    if wrong is not None:
        raise unknown_name("baseline", wrong, BASELINES)
    if options.latency:
        raise UsageError("answers are not timed one at a time.", hint="Leave --latency out.")
    options.refuse("depth", "normalizer", "dev_fraction", where="questions")


def _expanded(configs: Sequence[str] | None) -> list[str]:
    """The configs that these names and patterns mean; every question without any."""
    found: dict[str, None] = {}
    for name in configs or ["all"]:
        matched = fnmatch.filter(CONFIGS, name)
        if not matched:
            raise unknown_name("config", name, CONFIGS)
        found |= dict.fromkeys(matched)
    return list(found)


def _part(questions: Sequence[Question], options: Options) -> tuple[Question, ...]:
    most = math.ceil(len(questions) * options.fraction)
    return tuple(questions[: min(most, options.limit or most)])


def _first_orders(prompts: Sequence[Prompt], most: int) -> list[Prompt]:
    """The prompts in the first `most` orders of each item."""
    seen: Counter[str] = Counter()
    found = []
    for one in prompts:
        seen[one.id] += 1
        if seen[one.id] <= most:
            found.append(one)
    return found


def _losses(comparison: Comparison) -> dict[str, Loss]:
    sides = {"mcqa_accuracy": comparison.mcqa, "aif_prompt_strict": comparison.aif}
    return {name: loss_of(side) for name, side in sides.items() if side is not None}
