"""The whole way: answerers × configs → results.

A question is asked once per answerer and way of asking, whatever configs it is in. Replies are kept by content as they
come, by one process or many, so an evaluation that was killed continues; an answerer that fails does not lose the
others.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ... import __version__
from ...errors import DataError, ModelError, SqutrError, StorageError, UsageError
from ...loaders.questions.data import QuestionData
from ...loaders.questions.question import CONFIGS, Question
from ...loaders.questions.statuses import coverage_of
from ..tasks.understanding.answers.accuracy import check_edges
from ..tasks.understanding.answers.labels import DURATION_EDGES_S
from ..evaluation.environment import environment
from ..metering import Meter
from ..processes import Alone, Processes
from ..progress import Progress
from ..protocols import Reply
from ..results.old import Environment
from .answerers import NamedAnswerer, check_answerers, with_controls
from .answering import Answered, Sounds, Tools, answer_all
from ..tasks.understanding.prompting import LANGUAGE, Ask, asks_of
from ..tasks.understanding.judging import Judges, judge_replies
from ..tasks.understanding.prompts import PROMPTS, PROMPTS_VERSION
from .results import (
    SECONDS_SCHEMA,
    AnswererInfo,
    Asking,
    AskRecord,
    Control,
    DataInfo,
    Failures,
    Result,
    Timing,
    asks_table,
    write_record,
)
from ..tasks.understanding.samples import keep_samples
from ..tasks.understanding.scoring import Statistics, overall, paired, right, rows_of, score, verifiers_of

CONTROLS = ("text-only", "shuffled")
SHUFFLED_ORDERS = 2
_MOST_ERRORS = 5


@dataclass(frozen=True, slots=True)
class Options:
    """How to evaluate.

    `permutations` is in how many orders of its options a question is asked. `controls` are of `CONTROLS`: "text-only"
    asks every answerer's reader without the sound too, "shuffled" asks once more with the options in another order.
    `spoken` asks the spoken versions too. `limit` (0: all) takes the first questions of every config: such results are
    marked partial. `strict` fails a config in which any ask failed. `seed` and `resamples` are those of intervals, and
    `seed` of the orders. `samples` questions keep their sound for the report's players.
    `duration_edges_s` are the edges of the duration bins.
    """

    permutations: int = 1
    controls: tuple[str, ...] = ()
    spoken: bool = True
    limit: int = 0
    strict: bool = False
    samples: int = 12
    seed: int = 0
    resamples: int = 1000
    duration_edges_s: tuple[float, ...] = DURATION_EDGES_S

    def __post_init__(self) -> None:
        if self.permutations < 1 or self.limit < 0 or self.resamples < 1 or self.samples < 0:
            raise UsageError(
                f"{self.permutations} permutations, limit {self.limit}, {self.resamples} resamples, "
                f"{self.samples} samples.",
                hint="Give at least 1, 0, 1 and 0.",
            )
        wrong = next((name for name in self.controls if name not in CONTROLS), None)
        if wrong is not None:
            raise UsageError(f"unknown control {wrong!r}.", hint=f"Known: {', '.join(CONTROLS)}.")
        check_edges(self.duration_edges_s)

    @property
    def orders(self) -> int:
        """In how many orders a question is asked, the control included."""
        return max(self.permutations, SHUFFLED_ORDERS if "shuffled" in self.controls else 1)

    @property
    def part(self) -> str:
        """The folder of partial results below `out`; "" for full ones."""
        return f"partial-first-{self.limit}" if self.limit else ""

    @property
    def statistics(self) -> Statistics:
        """How intervals are made."""
        return Statistics(self.seed, self.resamples, self.duration_edges_s)


@dataclass(frozen=True, slots=True)
class AnswererFailure:
    """An answerer that could not be evaluated on a config ("" for all of them), and why."""

    answerer: str
    config: str
    error: SqutrError


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation gave. Only the main process holds records. `out` is where results were written."""

    records: list[AskRecord]
    failures: list[AnswererFailure] = field(default_factory=list)
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class _Made:
    """What was asked of whom, and what came of it, by the answerers' names."""

    plan: _Plan
    options: Options
    everyone: Sequence[NamedAnswerer]
    place: Environment
    processes: int
    answered: dict[str, Answered] = field(default_factory=dict)
    measured: dict[str, Meter] = field(default_factory=dict)
    marked: dict[str, Judges] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is asked: questions by config, every ask once, and why some have no sound."""

    data: QuestionData
    questions: Mapping[str, tuple[Question, ...]]
    totals: Mapping[str, int]
    asks: tuple[Ask, ...]
    missing: Mapping[str, str]

    def of(self, config: str) -> list[Ask]:
        ids = {question.id for question in self.questions[config]}
        return [ask for ask in self.asks if ask.question.id in ids]


def run_evaluation(
    answerers: Sequence[NamedAnswerer],
    data: QuestionData,
    *,
    configs: Sequence[str] | None = None,
    out: Path | None = None,
    cache: Path | None = None,
    options: Options | None = None,
    judges: Sequence[NamedAnswerer] = (),
    progress: Progress | None = None,
    processes: Processes | None = None,
) -> Evaluation:
    """Evaluate every answerer on every config (None: `all`, which holds every question).

    With `out`, results are written there. With `cache`, replies are kept in that folder. `judges` mark the replies to
    questions that are flagged as open-ended. Raises `UsageError` for wrong names, `DataError` for a set without
    questions, `StorageError` if the disk refuses. What fails otherwise fails its answerer only, and is listed.
    """
    chosen = options or Options()
    group = processes or Alone()
    if group.size > 1 and cache is None:
        raise UsageError("several processes need a cache.", hint="Leave --no-cache out.")
    everyone = check_answerers(answerers)
    if "text-only" in chosen.controls:
        everyone = with_controls(everyone)
    unfit = next((one for one in everyone if not one.answerer.supports(LANGUAGE)), None)
    if unfit is not None:
        raise UsageError(f"{unfit.name} was not made for Spanish.", hint="Give another answerer.")
    plan = _plan(data, configs, chosen)
    target = out / chosen.part if out is not None and chosen.part else out
    evaluation = Evaluation([], out=target)
    tools = Tools(cache, group, progress if group.rank == 0 else None)
    made = _answered(everyone, plan, tools, chosen, evaluation)
    if judges:
        _judge(made, judges, tools, evaluation)
    if group.rank == 0:
        for one in everyone:
            for config in plan.questions if one.name in made.answered else ():
                try:
                    record = _record(made, one, config)
                except StorageError:
                    raise
                except SqutrError as error:
                    evaluation.failures.append(AnswererFailure(one.name, config, error))
                    continue
                if target is not None:
                    write_record(target, record)
                evaluation.records.append(record)
        if target is not None and evaluation.records:
            keep_samples(target, plan.data, [ask.question for ask in plan.asks], chosen.samples)
    return evaluation


def _answered(
    everyone: Sequence[NamedAnswerer], plan: _Plan, tools: Tools, options: Options, evaluation: Evaluation
) -> _Made:
    """Ask everyone everything. An answerer that fails as a whole is listed."""
    sounds = Sounds(plan.data)
    made = _Made(plan, options, everyone, environment(), tools.processes.size)
    for one in everyone:
        asks = [ask for ask in plan.asks if ask.id not in plan.missing and (one.uses_audio or not ask.spoken)]
        with Meter() as meter:
            try:
                made.answered[one.name] = answer_all(one.answerer, asks, sounds, tools, name=one.name)
            except StorageError:
                raise
            except SqutrError as error:
                evaluation.failures.append(AnswererFailure(one.name, "", error))
        made.measured[one.name] = meter
    sounds.save()
    return made


def _plan(data: QuestionData, configs: Sequence[str] | None, options: Options) -> _Plan:
    names = list(dict.fromkeys(configs or ["all"]))
    questions = {name: data.questions(name) for name in names}
    empty = next((name for name, found in questions.items() if not found), None)
    if empty is not None:
        raise DataError(f"{data.name} has no questions in the config {empty!r}.", hint=f"Known: {', '.join(CONFIGS)}.")
    totals = {name: len(found) for name, found in questions.items()}
    if options.limit:
        questions = {name: found[: options.limit] for name, found in questions.items()}
    every = {question.id: question for found in questions.values() for question in found}
    for question in every.values():
        if question.kind == "aif":
            verifiers_of(question)
    asks = asks_of(list(every.values()), permutations=options.orders, spoken=options.spoken, seed=options.seed)
    missing = {
        ask.id: next(data.status(audio) for audio in ask.audios if data.status(audio) != "ok")
        for ask in asks
        if any(data.status(audio) != "ok" for audio in ask.audios)
    }
    return _Plan(data, questions, totals, tuple(asks), dict(missing))


def _judge(made: _Made, judges: Sequence[NamedAnswerer], tools: Tools, evaluation: Evaluation) -> None:
    """Have all replies marked. A judge that fails as a whole is listed, and marks nothing more."""
    plan = made.plan
    asks = [
        ask
        for ask in plan.asks
        if ask.question.open_ended and ask.order is None and not ask.spoken and ask.id not in plan.missing
    ]
    failed: set[str] = set()
    for one in made.everyone:
        if one.name not in made.answered or not asks:
            continue
        left = [judge for judge in judges if judge.name not in failed]
        made.marked[one.name], failures = judge_replies(left, asks, made.answered[one.name].replies, tools)
        for name, error in failures.items():
            failed.add(name)
            evaluation.failures.append(AnswererFailure(f"judge {name}", "", error))


def _record(made: _Made, one: NamedAnswerer, config: str) -> AskRecord:
    plan, options = made.plan, made.options
    replies = made.answered[one.name].replies
    statistics = options.statistics
    every = [ask for ask in plan.of(config) if one.uses_audio or not ask.spoken]
    main = _orders(every, options.permutations)
    missing = frozenset(plan.missing)
    asked = [ask for ask in every if ask.id not in missing]
    failed = [ask for ask in asked if (reply := replies.get(ask.key)) is None or reply.error]
    if options.strict and failed:
        reply = replies.get(failed[0].key)
        raise ModelError(
            f"{one.name} failed on {len(failed)} of {len(asked)} questions of {config}, first on {failed[0].id!r}: "
            f"{reply.error if reply is not None else 'no reply'}.",
            hint="Leave --strict out to count such questions as wrong.",
        )
    scored = score(main, missing, replies, statistics)
    answerer = one.answerer.spec
    ready = hasattr(one.answerer, "reply_of")
    asking = Asking(
        prompts_version=PROMPTS_VERSION,
        prompts=dict(PROMPTS),
        permutations=options.permutations,
        order_seed=options.seed,
        spoken=any(ask.spoken for ask in main),
    )
    info = AnswererInfo(
        name=one.name,
        role="ready" if ready else "control" if one.is_control else "answerer",
        spec=answerer.as_dict(),
    )
    found = _data_info(plan, config, options)
    judged = made.marked.get(one.name)
    rows = rows_of(every, plan.missing, replies, made.answered[one.name].sounds)
    result = Result(
        squtr_version=__version__,
        inputs_sha256=_inputs(found, info, asking, options, rows),
        data=found,
        answerer=info,
        asking=asking,
        overall=overall(scored, statistics),
        mcqa=scored.mcqa,
        aif=scored.aif,
        controls=_controls(made, one, every),
        open_ended=None if judged is None else judged.block(plan.of(config), statistics),
        failures=_failures(asked, replies),
        timing=_timing(one, asked, replies, made.measured[one.name], made.processes),
        environment=made.place,
        duration_edges_s=list(options.duration_edges_s),
        seed=options.seed,
        resamples=options.resamples,
    )
    columns = [
        [ask.question.id for ask in asked],
        [ask.spoken for ask in asked],
        [ask.letters for ask in asked],
        [_seconds(replies, ask) for ask in asked],
    ]
    arrays = [pa.array(column, entry.type) for column, entry in zip(columns, SECONDS_SCHEMA, strict=True)]
    return AskRecord(result, asks_table(rows), pa.Table.from_arrays(arrays, schema=SECONDS_SCHEMA))


def _orders(asks: Sequence[Ask], most: int) -> list[Ask]:
    """The asks in the first `most` orders of each item."""
    seen: Counter[str] = Counter()
    found = []
    for ask in asks:
        seen[ask.id] += 1
        if seen[ask.id] <= most:
            found.append(ask)
    return found


def _data_info(plan: _Plan, config: str, options: Options) -> DataInfo:
    data, questions = plan.data, plan.questions[config]
    coverage = coverage_of(
        questions, {audio: data.status(audio) for question in questions for audio in question.all_audios}
    )
    return DataInfo(
        name=data.name,
        revision=data.revision,
        license=data.license,
        config=config,
        language=LANGUAGE,
        n=len(questions),
        n_total=plan.totals[config],
        partial=bool(options.limit) and len(questions) < plan.totals[config],
        missing_audio={str(status): n for status, n in coverage.by_status.items()},
        coverage=coverage.share if questions else None,
        audio_s=round(coverage.seconds, 3),
        manifest_sha256=data.manifest_sha256,
    )


def _controls(made: _Made, one: NamedAnswerer, asks: Sequence[Ask]) -> dict[str, Control]:
    found: dict[str, Control] = {}
    answered, missing, statistics = made.answered, made.plan.missing, made.options.statistics
    text_only = None if one.is_control or not one.uses_audio else _control_of(one, made.everyone)
    own_order = [ask for ask in asks if ask.order is None and not ask.spoken and ask.id not in missing]
    replies = answered[one.name].replies

    def items(kind: Literal["mcqa", "aif"], which: Sequence[Ask], of: Mapping[Any, Reply]) -> dict[str, float]:
        return {ask.id: right(ask, of.get(ask.key)) for ask in which if ask.question.kind == kind}

    if text_only is not None and text_only.name in answered:
        theirs = answered[text_only.name].replies
        found["text_only"] = Control(
            name=text_only.name,
            mcqa=paired(items("mcqa", own_order, replies), items("mcqa", own_order, theirs), statistics),
            aif=paired(items("aif", own_order, replies), items("aif", own_order, theirs), statistics),
        )
    if "shuffled" in made.options.controls and not hasattr(one.answerer, "reply_of"):
        second = {ask.id: ask for ask in reversed(asks) if ask.order is not None and ask.id not in missing}
        found["shuffled"] = Control(
            name="the same options in another order",
            mcqa=paired(items("mcqa", own_order, replies), items("mcqa", list(second.values()), replies), statistics),
            aif=None,
        )
    return found


def _control_of(one: NamedAnswerer, everyone: Sequence[NamedAnswerer]) -> NamedAnswerer | None:
    """The text-only control of an answerer among `everyone`."""
    if hasattr(one.answerer, "reply_of"):
        return None
    wanted = one.text_only().answerer.spec.fingerprint
    return next((other for other in everyone if other.answerer.spec.fingerprint == wanted), None)


def _failures(asks: Sequence[Ask], replies: Mapping[Any, Reply]) -> Failures:
    given = [replies.get(ask.key) or Reply("", error="no reply") for ask in asks]
    errors = Counter(reply.error for reply in given if reply.error)
    return Failures(
        n=len(given),
        failed=sum(errors.values()),
        truncated=sum(reply.truncated for reply in given),
        audio_truncated=sum(reply.audio_truncated for reply in given),
        empty=sum(not reply.error and not reply.text.strip() for reply in given),
        errors=dict(errors.most_common(_MOST_ERRORS)),
    )


def _timing(
    one: NamedAnswerer, asks: Sequence[Ask], replies: Mapping[Any, Reply], meter: Meter, processes: int
) -> Timing:
    taken = math.fsum(_seconds(replies, ask) for ask in asks)
    heard = math.fsum(ask.question.duration_s for ask in asks if ask.question.duration_s >= 0) if one.uses_audio else 0.0
    return Timing(
        answer_s=taken,
        audio_s=heard,
        rtfx=heard / taken if taken and heard else None,
        peak_memory_mb=meter.peak_memory_mb,
        peak_gpu_memory_mb=meter.peak_gpu_memory_mb,
        energy_j=meter.energy_j,
        processes=processes,
    )


def _seconds(replies: Mapping[Any, Reply], ask: Ask) -> float:
    reply = replies.get(ask.key)
    return 0.0 if reply is None else reply.seconds


def _inputs(
    data: DataInfo, info: AnswererInfo, asking: Asking, options: Options, rows: Sequence[Mapping[str, Any]]
) -> str:
    said = [[row["id"], row["spoken"], row["order"], row["reply"], row["error"], row["audio_sha256"]] for row in rows]
    content = [data.model_dump(), info.model_dump(), asking.model_dump(), asdict(options), said, __version__]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
