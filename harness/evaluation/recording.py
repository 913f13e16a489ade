"""From the stages' output to a run: scores, failures, timing, and where it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ... import __version__
from ...errors import DataError, ModelError, SqutrError
from ...loaders.keyed import RECIPE_VERSION
from ...loaders.records import Query
from ..protocols import PrecomputedRun
from ..results.old import (
    SECONDS_SCHEMA,
    TEXT_CONDITION,
    DataInfo,
    Environment,
    Failures,
    Result,
    RunRecord,
    SystemInfo,
    Timing,
    items_table,
    read_record,
    run_path,
)
from ..systems.system import Cascade, EndToEnd, RunOnly, System
from ..text.normalizers import load_normalizer
from .asking import ranking_of, search_texts
from .demands import Need, all_needs, end_to_end_key, searcher_of
from .hearing import sentences
from .listeners import Heard, Listened, Tools, listener_of
from .plan import Cell, Plan
from .scoring import Answered, SubsetScores, losses, score_subset, summarize
from .searching import Searched, check_hits
from .store import Ranking

BASELINES = ("clean", TEXT_CONDITION)
NOTHING = Ranking.of((), 0.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """What does not change within an evaluation. `strict` fails a config in which any query failed."""

    depth: int
    resamples: int
    seed: int
    environment: Environment
    partial: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What the stages made."""

    plan: Plan
    listened: Mapping[str, Listened]
    searched: Searched
    tools: Tools


@dataclass(frozen=True, slots=True)
class Cost:
    """What the evaluation's own meters said, of all its stages."""

    peak_memory_mb: float | None
    peak_gpu_memory_mb: float | None
    energy_j: float | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The runs of one system, one per config that did not fail, and the failures by config. `kept` were read."""

    records: list[RunRecord]
    failed: dict[str, SqutrError]
    kept: frozenset[str]


def record_system(made: Made, system: System, settings: Settings, cost: Cost, out: Path | None) -> Recorded:
    """Score one system on its configs. A run that `out` holds already, from the same inputs, is read, not scored.

    One config is worked on at a time: the queries of all, with all that was found, would take too much memory.
    """
    plan = made.plan
    contents: dict[str, str] = {}
    failed: dict[str, SqutrError] = {}
    for config in plan.runnable[system.name]:
        try:
            answers = _answers(made, system, config, settings.depth)
            if settings.strict:
                _refuse_failures(answers, config)
            contents[config] = _content_sha256(answers)
        except SqutrError as error:
            failed[config] = error
    bare: dict[str, dict[str, SubsetScores]] = {}

    def scores(config: str) -> dict[str, SubsetScores]:
        scored = _score(plan, system, config, _answers(made, system, config, settings.depth))
        bare[config] = {subset: replace(s, rows=[], words={}, characters={}) for subset, s in scored.items()}
        return scored

    records: list[RunRecord] = []
    read: set[str] = set()
    for config in contents:
        try:
            baselines = [name for name in _baselines(plan, config) if name in contents]
            digest = _inputs_sha256(plan, system, config, [contents[c] for c in (config, *baselines)], settings)
            kept = _kept(out, system, config, digest)
            if kept is not None:
                records.append(kept)
                read.add(config)
                continue
            compared = {plan.configs[name][1]: bare[name] if name in bare else scores(name) for name in baselines}
            record = _record(
                made,
                system,
                config,
                scored=scores(config),
                baselines=compared,
                settings=settings,
                cost=cost,
                digest=digest,
            )
            records.append(record)
        except SqutrError as error:
            failed[config] = error
    return Recorded(records, failed, frozenset(read))


def _baselines(plan: Plan, config: str) -> list[str]:
    """The configs that a config is compared with, as far as they are evaluated."""
    condition = plan.configs[config][1]
    names = [f"{config.partition('_')[0]}_{b}" for b in BASELINES if condition not in {b, TEXT_CONDITION}]
    return [name for name in names if name in plan.configs]


def _answers(made: Made, system: System, config: str, depth: int) -> dict[str, list[Answered]]:
    """What the system found for every query of a config, by subset. Raises why a stage failed on it."""
    return {cell[0]: _answered(made, system, cell, depth) for cell in made.plan.cells_of(config)}


def _kept(out: Path | None, system: System, config: str, digest: str) -> RunRecord | None:
    """The run that `out` holds of the same inputs, None if there is none."""
    if out is None:
        return None
    try:
        record = read_record(run_path(out, system.name, config))
    except DataError:
        # Missing, damaged or of another version: it is scored and written again.
        return None
    return record if record.result.inputs_sha256 == digest else None


def _refuse_failures(answers: Mapping[str, Sequence[Answered]], config: str) -> None:
    wrong = [a for part in answers.values() for a in part if a.error]
    if wrong:
        raise ModelError(
            f"{len(wrong)} queries of {config} failed, the first is {wrong[0].query.id!r}: {wrong[0].error}.",
            hint="Mend them, or leave --strict out: they are then counted and score 0.",
        )


def _answered(made: Made, system: System, cell: Cell, depth: int) -> list[Answered]:
    """What the system found for every query of a cell, in query order. Raises why a stage failed on it."""
    plan, (subset, condition) = made.plan, cell
    queries = plan.queries[subset]
    if condition == TEXT_CONDITION and not isinstance(system, RunOnly) and searcher_of(system, made.tools):
        found = _rankings(made, system, subset, depth)
        return [Answered(q, None, "", None, "", q.text, found[q.text]) for q in queries]
    ranked = (
        system.run if isinstance(system, RunOnly) else system.precomputed_run if isinstance(system, Cascade) else None
    )
    if condition == TEXT_CONDITION and ranked is not None:
        ready = _ready_rankings(ranked, cell, queries, depth)
        return [Answered(q, None, "", None, "", q.text, r) for q, r in zip(queries, ready, strict=True)]
    heard = _heard(made, system, cell)
    if ranked is not None:
        transcribed = isinstance(system, Cascade)
        return [
            Answered(q, h.query, h.audio_sha256, h.transcript if transcribed else None, h.transcript.error,
                     h.transcript.text, r)
            for q, h, r in zip(queries, heard, _ready_rankings(ranked, cell, queries, depth), strict=True)
        ]  # fmt: skip
    if isinstance(system, EndToEnd):
        sounds = _sound_rankings(made, system, subset, depth)
        return [
            Answered(q, h.query, h.audio_sha256, None, h.transcript.error, "",
                     NOTHING if h.transcript.error else sounds[h.audio_sha256])
            for q, h in zip(queries, heard, strict=True)
        ]  # fmt: skip
    if not isinstance(system, Cascade):
        raise ModelError(f"{system.name} can answer no spoken query.")
    language = plan.data.subsets[subset]
    found = _rankings(made, system, subset, depth)
    answers = []
    for q, h in zip(queries, heard, strict=True):
        asked = search_texts(system, h.transcript, language)
        ranking = ranking_of(system, asked, found, depth)
        answers.append(Answered(q, h.query, h.audio_sha256, h.transcript, h.transcript.error, asked.texts[0], ranking))
    return answers


def _ready_rankings(run: PrecomputedRun, cell: Cell, queries: Sequence[Query], depth: int) -> list[Ranking]:
    """What a ready run holds for these queries."""
    with sentences(f"reading {run.spec.name} of {' under '.join(cell)}"):
        found = list(run.hits(*cell, [query.id for query in queries], k=depth))
        for query, hits in zip(queries, found, strict=False):
            check_hits(hits, query.id)
    if len(found) != len(queries):
        raise ModelError(f"{run.spec.name} gave {len(found)} rankings for {len(queries)} queries.")
    return [Ranking.of(hits[:depth], 0.0) for hits in found]


def _heard(made: Made, system: System, cell: Cell) -> list[Heard]:
    listened = made.listened[listener_of(system).key]
    if cell in listened.failed:
        raise listened.failed[cell]
    return listened.cells[cell]


def _rankings(made: Made, system: System, subset: str, depth: int) -> Mapping[str, Ranking]:
    """The rankings of texts. Raises why the retriever failed on the subset."""
    retriever = searcher_of(system, made.tools)
    if retriever is None:
        raise ModelError(f"{system.name} searches no texts.")
    return _found(made, Need(retriever, depth).key, subset)


def _sound_rankings(made: Made, system: EndToEnd, subset: str, depth: int) -> Mapping[str, Ranking]:
    return _found(made, end_to_end_key(system, depth), subset)


def _found(made: Made, key: tuple[str, int], subset: str) -> Mapping[str, Ranking]:
    if (key, subset) in made.searched.failed:
        raise made.searched.failed[key, subset]
    return made.searched.rankings.get(key, {}).get(subset, {})


def _score(
    plan: Plan, system: System, config: str, answers: Mapping[str, Sequence[Answered]]
) -> dict[str, SubsetScores]:
    return {
        subset: score_subset(
            answers[subset],
            plan.qrels[subset],
            language=plan.data.subsets[subset],
            condition=plan.configs[config][1],
            normalizer_name=normalizer_of(system),
        )
        for subset in plan.configs[config][0]
    }


def normalizer_of(system: System) -> str:
    """The text normalizer of a system's error rates; systems without words have the default one, unused."""
    return system.normalizer if isinstance(system, Cascade) else "default"


def _inputs_sha256(plan: Plan, system: System, config: str, contents: Sequence[str], settings: Settings) -> str:
    """The digest of all that a config's scores follow from; `contents` are its own answers and its baselines'."""
    data, subsets = plan.data, plan.configs[config][0]
    return _sha256(
        [__version__, RECIPE_VERSION, data.revision, data.manifest_sha256, _described(system, config, plan)],
        [settings.depth, settings.resamples, settings.seed, settings.partial],
        [[subset, plan.total(subset), plan.qrels[subset]] for subset in subsets],
        contents,
    )


def _content_sha256(answers: Mapping[str, Sequence[Answered]]) -> str:
    """The digest of what was asked, heard and found."""
    digest = hashlib.sha256()
    for subset, part in answers.items():
        digest.update(_json([subset, len(part)]))
        for a in part:
            t = a.transcript
            transcript = None if t is None else (t.text, t.loop, t.truncated)
            digest.update(_json([a.query.id, a.query.text, a.audio_sha256, transcript, a.error, a.search_text]))
            digest.update(a.ranking.content)
    return digest.hexdigest()


def _sha256(*values: object) -> str:
    return hashlib.sha256(b"".join(map(_json, values))).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def _described(system: System, config: str, plan: Plan) -> dict[str, Any]:
    language = plan.data.subsets[plan.configs[config][0][0]]
    normalizer = load_normalizer(normalizer_of(system), language)
    return {**system.as_dict(), "normalizer_version": normalizer.version}


def _record(
    made: Made,
    system: System,
    config: str,
    *,
    scored: Mapping[str, SubsetScores],
    baselines: Mapping[str, Mapping[str, SubsetScores]],
    settings: Settings,
    cost: Cost,
    digest: str,
) -> RunRecord:
    plan = made.plan
    subsets, condition = plan.configs[config]
    rows = [row for subset in subsets for row in scored[subset].rows]
    language = plan.data.subsets[subsets[0]]
    recipe = dict(plan.data.recipe)
    seed, resamples = settings.seed, settings.resamples
    seconds = _seconds(made, system, config)
    result = Result(
        benchmark_version=RECIPE_VERSION,
        squtr_version=__version__,
        inputs_sha256=digest,
        data=DataInfo(
            source=recipe["source"],
            source_version=recipe["source_version"],
            revision=plan.data.revision,
            license=recipe["license"],
            config=config,
            language=language,
            condition=condition,
            subsets=list(subsets),
            n=len(rows),
            n_total=sum(plan.total(subset) for subset in subsets),
            partial=settings.partial,
            manifest_sha256=plan.data.manifest_sha256,
            recipe=recipe,
        ),
        system=_system_info(system, language, condition, settings.depth),
        scores=summarize(scored, seed=seed, resamples=resamples),
        by_subset={s: summarize({s: scored[s]}, seed=seed, resamples=resamples) for s in subsets},
        losses={b: losses(scored, base, seed=seed, resamples=resamples) for b, base in baselines.items()},
        failures=_failures(rows, scored),
        timing=_timing(made, system, config, settings.depth, cost),
        environment=settings.environment,
        seed=seed,
    )
    return RunRecord(result, items_table(rows), seconds)


def _system_info(system: System, language: str, condition: str, depth: int) -> SystemInfo:
    normalizer = load_normalizer(normalizer_of(system), language)
    heard = condition != TEXT_CONDITION
    front_end = None if isinstance(system, RunOnly) else system.front_end
    cascade = system if isinstance(system, Cascade) else None
    many = cascade is not None and cascade.n_best > 1 and heard
    retriever = cascade.retriever if cascade else system.run if isinstance(system, RunOnly) else None
    return SystemInfo(
        kind="cascade" if cascade else "end-to-end" if isinstance(system, EndToEnd) else "run",
        name=system.name,
        front_end=front_end.spec.as_dict() if front_end is not None and heard else None,
        transcriber=cascade.transcriber.spec.as_dict() if cascade and heard else None,
        encoder=system.encoder.spec.as_dict() if isinstance(system, EndToEnd) else None,
        retriever=retriever.spec.as_dict() if retriever is not None else None,
        n_best=cascade.n_best if cascade and many else 1,
        n_best_fusion=cascade.n_best_fusion if cascade and many else "",
        normalizer=normalizer.name,
        normalizer_version=normalizer.version,
        script_folding=cascade.folding(language) if cascade else "none",
        depth=depth,
    )


def _failures(rows: Sequence[Mapping[str, Any]], scored: Mapping[str, SubsetScores]) -> Failures:
    def total(column: str) -> int:
        return sum(bool(row[column]) for row in rows)

    return Failures(
        undecodable=total("error"),
        loops=total("loop"),
        truncated=total("truncated"),
        empty=total("empty"),
        hallucinations=total("hallucination"),
        missing=sum(s.ranking.missing for s in scored.values()),
        no_relevant=sum(s.ranking.no_relevant for s in scored.values()),
        unjudged=sum(s.ranking.unjudged for s in scored.values()),
    )


def _listens(system: System, condition: str) -> bool:
    """Whether the system hears sound under this condition."""
    if condition == TEXT_CONDITION or isinstance(system, RunOnly):
        return False
    return isinstance(system, EndToEnd) or system.listener is not None


def _seconds(made: Made, system: System, config: str) -> pa.Table | None:
    """What hearing each query took, None where nothing was heard."""
    if not _listens(system, made.plan.configs[config][1]):
        return None
    heard = [h for cell in made.plan.cells_of(config) for h in _heard(made, system, cell)]
    columns = [
        [h.query.id for h in heard],
        [h.query.subset for h in heard],
        [h.transcript.seconds for h in heard],
        [h.transcript.front_end_seconds for h in heard],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SECONDS_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SECONDS_SCHEMA)


def _timing(made: Made, system: System, config: str, depth: int, cost: Cost) -> Timing:
    condition = made.plan.configs[config][1]
    front_end_s = transcribe_s = audio_s = rtfx = waiting = None
    if _listens(system, condition):
        heard = [h for cell in made.plan.cells_of(config) for h in _heard(made, system, cell)]
        transcribe_s = sum(h.transcript.seconds for h in heard)
        audio_s = sum(h.query.duration_s for h in heard)
        front_end_s = sum(h.transcript.front_end_seconds for h in heard)
        taken = transcribe_s + front_end_s
        rtfx = audio_s / taken if taken else None
        if isinstance(system, RunOnly) or system.front_end is None:
            front_end_s = None
        listened = made.listened[listener_of(system).key]
        waiting = listened.waiting_s / listened.seconds if listened.seconds else None
    search_s, index_s = _searching_s(made, system, config, depth)
    return Timing(
        front_end_s=front_end_s,
        transcribe_s=transcribe_s,
        index_s=index_s,
        search_s=search_s,
        audio_s=audio_s,
        rtfx=rtfx,
        waiting_share=waiting,
        **asdict(cost),
        processes=made.tools.processes.size,
    )


def _searching_s(made: Made, system: System, config: str, depth: int) -> tuple[float | None, float | None]:
    """The seconds that a run's distinct searches took, and those that indexing took; parts of a retriever count too."""
    retriever = searcher_of(system, made.tools)
    if retriever is None:
        return None, None
    subsets, condition = made.plan.configs[config]
    needs = all_needs(Need(retriever, depth))
    search_s = index_s = 0.0
    for subset in subsets:
        if isinstance(system, EndToEnd) and condition != TEXT_CONDITION:
            found = _sound_rankings(made, system, subset, depth)
            sounds = {h.audio_sha256 for h in _heard(made, system, (subset, condition)) if not h.transcript.error}
            search_s += sum(found[sound].seconds for sound in sounds)
            index_s += made.searched.index_s.get((Need(retriever, depth).key, subset), 0.0)
            continue
        texts = _run_texts(made, system, (subset, condition))
        for need in needs:
            found = _found(made, need.key, subset)
            search_s += sum(found[text].seconds for text in texts)
            index_s += made.searched.index_s.get((need.key, subset), 0.0)
    return search_s, index_s


def _run_texts(made: Made, system: System, cell: Cell) -> set[str]:
    subset, condition = cell
    if condition == TEXT_CONDITION:
        return {query.text for query in made.plan.queries[subset]}
    if not isinstance(system, Cascade):
        return set()
    language = made.plan.data.subsets[subset]
    return {text for h in _heard(made, system, cell) for text in search_texts(system, h.transcript, language).texts}
