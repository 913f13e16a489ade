"""Retrieval: spoken queries to ranked documents, against the same queries clean and typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from ....loaders.keyed import RECIPE_VERSION
from ...evaluation.cells import infer_cells
from ...evaluation.rewriting import Spoken, rewrite_cells
from ...evaluation.task import Forecast, Output, Request, Run, RunFailure, Summary
from ...evaluation.tools import Tools, keep_nothing
from ...results.envelope import TEXT_CONDITION, TRANSCRIPT_FLAGS, DataInfo, Isolated, Latency, SystemInfo, Timing
from ...text.normalizers import load_normalizer
from .columns import items_schema
from .fitting import fit_thresholds
from .forecast import forecast
from .latency import run_latency
from .outputs import Stages, output_of
from .plan import RetrievalPlan, main_metric, normalizer_of, retrieval_plan
from .scoring import records_table, score_subset
from .search import search_all
from .settings import Settings
from .summary import Scored
from .timing import run_timing


def _spoken(plan: RetrievalPlan, tools: Tools) -> Spoken:
    outputs = infer_cells(plan, tools)
    return Spoken(outputs, rewrite_cells(plan, outputs, tools))


class RetrievalTask:
    name = "retrieval"
    version = "1"

    def plan(self, request: Request) -> RetrievalPlan:
        return retrieval_plan(request)

    def infer(self, plan: RetrievalPlan, tools: Tools) -> Stages:
        settings = Settings.of(plan.request)
        sources = [(plan, _spoken(plan, tools))]
        if plan.fitting is not None:
            # Held-out clips are kept for no player, and their rows are others than those that are scored.
            sources.append(
                (plan.fitting, _spoken(plan.fitting, replace(tools, keeper=lambda _: keep_nothing, shared={})))
            )
        searched = search_all(sources, settings.depth, tools)
        for own, spoken in sources[1:]:
            held_out = Stages(spoken, searched, settings.depth, tools)
            fit_thresholds(plan, own, held_out, main_metric(settings.metrics))
        return Stages(sources[0][1], searched, settings.depth, tools)

    def extra_failures(self, plan: RetrievalPlan, inferred: Stages) -> Sequence[RunFailure]:
        return ()

    def forecast(self, plan: RetrievalPlan, tools: Tools) -> Sequence[Forecast]:
        return forecast(plan, Settings.of(plan.request).depth, tools)

    def output(self, plan: RetrievalPlan, inferred: Stages, run: Run) -> Output:
        return output_of(plan, inferred, run)

    def score(self, plan: RetrievalPlan, run: Run, output: Output) -> Scored:
        system, condition = plan.system(run.system), plan.condition(run.config)
        metrics = Settings.of(plan.request).metrics
        return {
            subset: score_subset(
                rows,
                plan.qrels(subset),
                language=plan.language(subset),
                condition=condition,
                normalizer=normalizer_of(plan.request, system, plan.language(subset)),
                metrics=metrics,
                rewritten=_is_rewritten(plan, run),
            )
            for subset, rows in output.content.items()
        }

    def without_items(self, scored: Scored) -> Scored:
        return {subset: own.without_items() for subset, own in scored.items()}

    def summarize(
        self, plan: RetrievalPlan, inferred: Stages, run: Run, scored: Scored, baselines: Mapping[str, Scored]
    ) -> Summary:
        settings = Settings.of(plan.request)
        statistics = settings.statistics
        values = {subset: own.values for subset, own in scored.items()}
        rows = [row for own in scored.values() for row in own.rows]
        return Summary(
            main_metric=main_metric(settings.metrics).name,
            scores=statistics.scores(values),
            items=records_table(rows, items_schema(settings.metrics, rewritten=_is_rewritten(plan, run))),
            by_group=statistics.groups(scored, baselines, plan.request.benchmark.groups, plan.data.edges),
            losses={
                name: statistics.losses(values, {subset: own.values for subset, own in baseline.items()})
                for name, baseline in baselines.items()
            },
            failures=_failures(rows, scored),
        )

    def data_info(self, plan: RetrievalPlan, run: Run) -> DataInfo:
        return plan.data_info(run.config)

    def system_info(self, plan: RetrievalPlan, run: Run) -> SystemInfo:
        system, condition = plan.system(run.system), plan.condition(run.config)
        language = plan.language(plan.configs[run.config][0][0])
        name = normalizer_of(plan.request, system, language)
        spoken = condition != TEXT_CONDITION
        several = system.n_best > 1 and spoken
        fitted = plan.fitting_of(system, language) if spoken else None
        route = {} if fitted is None else {"route": {**asdict(fitted), "dev_fraction": plan.options.dev_fraction}}
        return SystemInfo(
            kind=system.kind,
            name=system.name,
            components={
                role: spec
                for role, spec in system.components(language).items()
                if spoken or role not in ("front_end", "transcriber", "rewriter")
            },
            settings={
                "n_best": system.n_best if several else 1,
                "n_best_fusion": system.n_best_fusion if several else "",
                "script_folding": system.folding(language) if system.kind == "cascade" else "none",
                "depth": Settings.of(plan.request).depth,
                "preset": system.preset,
                **route,
            },
            normalizer=name,
            normalizer_version=load_normalizer(name, language).version if name else "",
        )

    def settings(self, plan: RetrievalPlan, run: Run) -> Mapping[str, Any]:
        subsets, condition = plan.configs[run.config]
        return {
            "recipe_version": RECIPE_VERSION,
            "system": plan.system(run.system).as_dict(),
            "metrics": [metric.name for metric in Settings.of(plan.request).metrics],
            "groups": list(plan.request.benchmark.groups),
            "judgments": [[subset, plan.total((subset, condition)), plan.qrels(subset)] for subset in subsets],
        }

    def timing(self, plan: RetrievalPlan, inferred: Stages, run: Run, tools: Tools) -> tuple[Timing, pa.Table | None]:
        return run_timing(plan, inferred, run)

    def latency(
        self, plan: RetrievalPlan, inferred: Stages, run: Run, tools: Tools
    ) -> tuple[Latency | None, Isolated | None]:
        return run_latency(plan, inferred, run), None

    def write_samples(self, plan: RetrievalPlan, inferred: Stages, target: Any) -> None:
        """They were kept while the clips were read."""


def _is_rewritten(plan: RetrievalPlan, run: Run) -> bool:
    return plan.system(run.system).rewriter is not None and plan.condition(run.config) != TEXT_CONDITION


def _failures(rows: Sequence[Mapping[str, Any]], scored: Scored) -> dict[str, int]:
    """Counts of what went wrong; no failure is turned into text. `missing` queries retrieved nothing and scored 0."""
    return {
        "failed": sum(bool(row["error"]) for row in rows),
        **{name: sum(name in row["flags"] for row in rows) for name in TRANSCRIPT_FLAGS},
        "missing": sum(own.missing for own in scored.values()),
        "no_relevant": sum(own.no_relevant for own in scored.values()),
        "unjudged": sum(own.unjudged for own in scored.values()),
    }
