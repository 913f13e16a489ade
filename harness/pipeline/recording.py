"""From the stages' output to a run: scores, failures, timing, and where it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ... import __version__
from ...loaders.keyed import RECIPE_VERSION
from ..results import (
    TEXT_CONDITION,
    DataInfo,
    Environment,
    Failures,
    Result,
    RunRecord,
    SystemInfo,
    Timing,
    items_table,
)
from ..text.normalizers import load_normalizer
from .environment import peak_memory_mb
from .plan import Plan, fingerprint
from .scoring import Searched, SubsetScores, losses, score_subset, summarise
from .stages import AllHeard, Searches, cell_texts
from .system import Cascade

BASELINES = ("clean", TEXT_CONDITION)


@dataclass(frozen=True, slots=True)
class Settings:
    """What does not change within an evaluation."""

    depth: int
    resamples: int
    seed: int
    environment: Environment


def record_system(
    plan: Plan, system: Cascade, heard: AllHeard, searches: Mapping[str, Searches], settings: Settings
) -> list[RunRecord]:
    """The runs of one system, one per config."""
    found = searches[fingerprint(system.retriever)]
    runs = {name: _score_run(plan, system, name, heard, found) for name in plan.runnable[system.name]}
    return [
        _record(plan, system, name, runs, timing=_timing(plan, system, name, heard, found), settings=settings)
        for name in runs
    ]


def _score_run(
    plan: Plan, system: Cascade, config: str, heard: AllHeard, searches: Searches
) -> dict[str, SubsetScores]:
    subsets, condition = plan.configs[config]
    scored: dict[str, SubsetScores] = {}
    for subset in subsets:
        queries = plan.queries[subset]
        texts = cell_texts(plan, system, (subset, condition), heard)
        if condition == TEXT_CONDITION:
            searched = [
                Searched(q, None, "", None, text, searches.hits[subset, text])
                for q, text in zip(queries, texts, strict=True)
            ]
        else:
            cell = heard[fingerprint(system.transcriber)][subset, condition]
            searched = [
                Searched(q, h.query, h.audio_sha256, h.transcript, text, searches.hits[subset, text])
                for q, h, text in zip(queries, cell, texts, strict=True)
            ]
        scored[subset] = score_subset(
            searched,
            plan.qrels[subset],
            language=plan.data.subsets[subset],
            condition=condition,
            normalizer_name=system.normalizer,
        )
    return scored


def _record(
    plan: Plan,
    system: Cascade,
    config: str,
    runs: Mapping[str, Mapping[str, SubsetScores]],
    *,
    timing: Timing,
    settings: Settings,
) -> RunRecord:
    subsets, condition = plan.configs[config]
    scored, scope = runs[config], config.partition("_")[0]
    rows = [row for subset in subsets for row in scored[subset].rows]
    language = plan.data.subsets[subsets[0]]
    normalizer = load_normalizer(system.normalizer, language)
    recipe = dict(plan.data.recipe)
    baselines = [b for b in BASELINES if condition not in {b, TEXT_CONDITION} and f"{scope}_{b}" in runs]
    result = Result(
        benchmark_version=RECIPE_VERSION,
        squtr_version=__version__,
        data=DataInfo(
            source=recipe["source"],
            source_version=recipe["source_version"],
            revision=plan.data.revision,
            licence=recipe["licence"],
            config=config,
            language=language,
            condition=condition,
            subsets=list(subsets),
            n=len(rows),
            manifest_sha256=plan.data.manifest_sha256,
            recipe=recipe,
        ),
        system=SystemInfo(
            kind="cascade",
            name=system.name,
            transcriber=None if condition == TEXT_CONDITION else system.transcriber.spec.as_dict(),
            retriever=system.retriever.spec.as_dict(),
            normalizer=normalizer.name,
            normalizer_version=normalizer.version,
            script_folding=system.folding(language),
            depth=settings.depth,
        ),
        scores=summarise(scored, seed=settings.seed, resamples=settings.resamples),
        by_subset={s: summarise({s: scored[s]}, seed=settings.seed, resamples=settings.resamples) for s in subsets},
        losses={
            b: losses(scored, runs[f"{scope}_{b}"], seed=settings.seed, resamples=settings.resamples) for b in baselines
        },
        failures=_failures(rows, scored),
        timing=timing,
        environment=settings.environment,
        seed=settings.seed,
    )
    return RunRecord(result, items_table(rows))


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


def _timing(plan: Plan, system: Cascade, config: str, heard: AllHeard, searches: Searches) -> Timing:
    subsets, condition = plan.configs[config]
    transcribe_s = audio_s = rtfx = None
    search_s = 0.0
    for subset in subsets:
        # All conditions of a subset are searched together: a run's share is its share of the distinct texts.
        own = len(set(cell_texts(plan, system, (subset, condition), heard)))
        search_s += searches.search_s[subset] * own / searches.texts[subset]
    if condition != TEXT_CONDITION:
        cells = [heard[fingerprint(system.transcriber)][subset, condition] for subset in subsets]
        transcribe_s = sum(h.transcript.seconds for cell in cells for h in cell)
        audio_s = sum(h.query.duration_s for cell in cells for h in cell)
        rtfx = audio_s / transcribe_s if transcribe_s else None
    return Timing(
        transcribe_s=transcribe_s,
        index_s=sum(searches.index_s[subset] for subset in subsets),
        search_s=search_s,
        audio_s=audio_s,
        rtfx=rtfx,
        peak_memory_mb=peak_memory_mb(),
    )
