"""Results in the layout of `mteb`'s own results, and back. Nothing here needs `mteb`.

results/<organization>__<model>/<revision>/model_meta.json
results/<organization>__<model>/<revision>/<Task>.json
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ... import __version__
from ...errors import DataError, UsageError, unknown_name
from ...loaders.hub.evaluation_file import SPLIT, control_name, task_name
from ..metrics.registry import METRICS_VERSION
from ..results.envelope import (
    TEXT_CONDITION,
    DataInfo,
    Environment,
    Group,
    Loss,
    Result,
    RunRecord,
    Score,
    SystemInfo,
    Timing,
    item_schema,
    items_table,
    read_result,
    write_run,
)
from ..results.files import write_atomically
from .catalog import BENCHMARK, language_of, language_tag
from .meta import COMPOSITES, ORGANISATION, Description, model_fields, system_settings

META_NAME = "model_meta.json"
MAIN_METRIC = "ndcg_at_10"
BASELINES = ("clean", TEXT_CONDITION)


def export_mteb(folder: Path, out: Path, *, systems: Sequence[str] = (), partial: bool = False) -> list[Path]:
    """Write the results below `folder` (what `squtr evaluate --out` wrote) into `out` in mteb's layout.

    `systems` chooses some by name. With `partial`, results of a part of the data are written too, and marked
    (`partial` is true). Returns the paths written. Raises `DataError` if there are none, if a result is of a part of
    the data only, was imported, or contradicts another of the same system on one subset and condition;
    `UnknownNameError` for a system that is not there.
    """
    by_system: dict[str, list[Result]] = {}
    for path, result in _measured(folder):
        if systems and result.system.name not in systems:
            by_system.setdefault(result.system.name, [])
            continue
        if result.data.partial and not partial:
            raise DataError(
                f"{path} is of {result.data.n} of {result.data.n_total} queries.",
                hint="Evaluate all of them: mteb has no results of a part.",
            )
        by_system.setdefault(result.system.name, []).append(result)
    for name in systems:
        if name not in by_system:
            raise unknown_name("system", name, by_system)
    by_system = {name: results for name, results in by_system.items() if results}
    written: list[Path] = []
    for results in by_system.values():
        fields = model_fields(describe(results))
        place = out / "results" / str(fields["name"]).replace("/", "__").replace(" ", "_") / str(fields["revision"])
        written.append(
            _write(place / META_NAME, fields | {"is_cross_encoder": "cross-encoder" in fields["model_type"]})
        )
        for name, task in _tasks(results).items():
            written.append(_write(place / f"{name}.json", task))
    return written


def _measured(folder: Path) -> Iterator[tuple[Path, Result]]:
    paths = sorted((folder / "results").glob("*/*.json"))
    if not paths:
        parts = sorted(path.name for path in folder.glob("partial-*") if (path / "results").is_dir())
        hint = "Run `squtr evaluate` with --out on that folder first."
        if parts:
            hint = f"It has partial ones in {', '.join(parts)}: give that folder."
        raise DataError(f"{folder} holds no results.", hint=hint)
    for path in paths:
        result = read_result(path)
        if result.origin == "imported":
            raise DataError(
                f"{path} was imported: it is another tool's result.", hint="Use the folder that it was imported from."
            )
        yield path, result


def describe(results: Sequence[Result]) -> Description:
    """A system as its results describe it."""
    # Under `text` nothing is transcribed, so the other results say more.
    telling = next((r for r in results if r.data.condition != TEXT_CONDITION), results[0])
    system = telling.system
    components = system.components
    spoken = [r for r in results if r.data.condition != TEXT_CONDITION and system.kind == "cascade"]
    n_best = int(system.settings.get("n_best", 1))
    fuses = n_best > 1 or components.get("retriever", {}).get("backend") in COMPOSITES
    return Description(
        system.name,
        components,
        list(dict.fromkeys(result.data.language for result in results)),
        audio=any(result.data.condition != TEXT_CONDITION for result in results),
        settings=system_settings(
            scripts={r.data.language: str(r.system.settings.get("script_folding", "none")) for r in spoken},
            n_best=n_best,
            n_best_fusion=str(system.settings.get("n_best_fusion", "")),
            depth=int(system.settings.get("depth", 0)) if fuses else 0,
        ),
    )


def _tasks(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, tuple[dict[str, Any], Result]]] = {}
    for result in results:
        for subset in result.data.subsets:
            config = f"{subset}_{result.data.condition}"
            name = (control_name if result.data.condition == TEXT_CONDITION else task_name)(subset)
            entry = _entry(config, result, _scores_of(result, subset))
            known = entries.setdefault(name, {}).setdefault(config, (entry, result))
            if known[0] != entry:
                raise DataError(
                    f"{result.system.name} has two different results on {config}: in {known[1].data.config} and in"
                    f" {result.data.config}.",
                    hint="Remove one of them.",
                )
    tasks: dict[str, dict[str, Any]] = {}
    for name, found in entries.items():
        revisions = {result.data.revision for _, result in found.values()}
        if len(revisions) > 1:
            raise DataError(
                f"the results on {name} are of different data ({', '.join(sorted(revisions))}).",
                hint="Evaluate all conditions on the same data.",
            )
        tasks[name] = {
            "dataset_revision": revisions.pop(),
            "task_name": name,
            "mteb_version": None,
            "scores": {SPLIT: [entry for entry, _ in found.values()]},
            "evaluation_time": _seconds([result for _, result in found.values()]),
            "kg_co2_emissions": None,
            "date": None,
        }
    return tasks


def _scores_of(result: Result, subset: str) -> Mapping[str, Score]:
    group = result.group("subset", subset)
    if group is None and result.data.subsets != [subset]:
        raise DataError(
            f"the result of {result.system.name} on {result.data.config} says nothing about {subset} alone.",
            hint="Run the evaluation again.",
        )
    return result.scores if group is None else group.scores


def _entry(config: str, result: Result, scores: Mapping[str, Score]) -> dict[str, Any]:
    main = scores.get(MAIN_METRIC)
    if main is None or main.value is None:
        raise DataError(
            f"the result of {result.system.name} on {result.data.config} has no {MAIN_METRIC} for {config}.",
            hint="Only results of retrieval can be exported.",
        )
    return {
        **{name: score.value for name, score in scores.items() if score.value is not None},
        "main_score": main.value,
        "n_queries": main.n,
        **_failed(result),
        **({"partial": True} if result.data.partial else {}),
        "hf_subset": config,
        "languages": [language_tag(result.data.language)],
    }


def _failed(result: Result) -> dict[str, int]:
    """How many queries could not be decoded and found nothing, where the result says it of this subset."""
    failures = result.failures
    counts = {"undecodable_queries": failures.get("failed", 0), "queries_without_hits": failures.get("missing", 0)}
    return {name: n for name, n in counts.items() if len(result.data.subsets) == 1 or not n}


def _seconds(results: Sequence[Result]) -> float | None:
    # A result on several subsets stands behind several entries, and counts once.
    distinct = {id(result): result for result in results}.values()
    known = [seconds for result in distinct for seconds in result.timing.stages.values()]
    return math.fsum(known) if known else None


def _write(path: Path, content: Mapping[str, Any]) -> Path:
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(path, text.encode("utf-8") + b"\n")
    return path


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import found: the runs written, and the names of tasks that are not of this benchmark."""

    paths: tuple[Path, ...]
    skipped: tuple[str, ...]


def import_mteb(folder: Path, out: Path) -> Imported:
    """Read results in mteb's layout (`folder` or any folder above the tasks' files) and write them as runs into `out`.

    Aggregates only: no intervals, no records, losses as differences of means. Results of other tasks are skipped.
    Raises `DataError` naming the file if one cannot be read, and if no result is of this benchmark.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist.", hint="Check the path.")
    results: dict[tuple[str, str], Result] = {}
    skipped: dict[str, None] = {}
    origins: dict[tuple[str, str], Path] = {}
    for path, task in _task_files(folder):
        found = list(_results(path, task))
        if not found:
            skipped[str(task["task_name"])] = None
        for result in found:
            if result.key in results:
                raise DataError(
                    f"{path} and {origins[result.key]} are both about {result.system.name} on {result.data.config}.",
                    hint="Import one revision or experiment at a time.",
                )
            results[result.key], origins[result.key] = result, path
    if not results:
        detail = f": only {', '.join(skipped)}" if skipped else ""
        raise DataError(
            f"{folder} holds no results of this benchmark in mteb's layout{detail}.", hint="Check the path."
        )
    complete = [_with_losses(result, results) for result in results.values()]
    return Imported(
        tuple(write_run(out, RunRecord(r, items_table([], item_schema()))) for r in complete), tuple(skipped)
    )


def _task_files(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    # The folder of a `ResultCache` may hold a clone of everybody's results beside its own.
    own = folder / "results"
    for path in sorted((own if own.is_dir() else folder).rglob("*.json")):
        if path.name == META_NAME:
            continue
        content = _read(path)
        if isinstance(content, dict) and "task_name" in content and isinstance(content.get("scores"), dict):
            yield path, content


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}.", hint="Replace or remove it.") from error


def _results(path: Path, task: Mapping[str, Any]) -> Iterator[Result]:
    """A result per condition of a task; none for a task that is not of this benchmark."""
    meta_path = path.parent / META_NAME
    meta = _read(meta_path) if meta_path.is_file() else {}
    system = _system(path, meta if isinstance(meta, dict) else {})
    for split, entries in task["scores"].items():
        for entry in entries if isinstance(entries, list) else ():
            subset, _, condition = str(entry.get("hf_subset", "")).partition("_")
            expected = (control_name if condition == TEXT_CONDITION else task_name)(subset or "?")
            if split != SPLIT or not condition or expected != task["task_name"]:
                continue
            yield _result(path, task, entry, system)


def _result(path: Path, task: Mapping[str, Any], entry: Mapping[str, Any], system: SystemInfo) -> Result:
    subset, _, condition = str(entry["hf_subset"]).partition("_")
    n = _whole(path, entry, "n_queries")
    scores = {
        name: Score(value=_value(path, entry, name), n=n) for name in BENCHMARK.metrics if entry.get(name) is not None
    }
    if MAIN_METRIC not in scores:
        raise DataError(f"{path}: {entry['hf_subset']} has no {MAIN_METRIC}.", hint="Replace or remove the file.")
    try:
        language = language_of([str(tag) for tag in entry.get("languages") or ()])
    except UsageError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from error
    version = entry.get("mteb_version") or task.get("mteb_version")
    failures = {
        "failed": _whole(path, entry, "undecodable_queries"),
        "missing": _whole(path, entry, "queries_without_hits"),
    }
    return Result(
        task=BENCHMARK.task,
        task_version="",
        benchmark=BENCHMARK.name,
        # The names of tasks and conditions are those of this version; what data it was, the revision says.
        benchmark_version=BENCHMARK.version,
        metrics_version=METRICS_VERSION,
        squtr_version=__version__,
        origin="imported",
        data=DataInfo(
            source="mteb",
            source_version="",
            revision=str(task.get("dataset_revision") or ""),
            license="",
            config=f"{subset}_{condition}",
            language=language,
            condition=condition,
            subsets=[subset],
            n=n,
            n_total=n,
            clusters=n,
            partial=entry.get("partial") is True,
            manifest_sha256="",
            recipe={},
        ),
        system=system,
        main_metric=MAIN_METRIC,
        scores=scores,
        by_group={"subset": [Group(label=subset, n=n, clusters=n, scores=scores)]},
        failures=failures,
        timing=Timing(),
        environment=Environment(hardware="", threads=0, python="", packages={"mteb": str(version)} if version else {}),
        seed=0,
    )


def _value(path: Path, entry: Mapping[str, Any], name: str) -> float:
    value = entry[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{path}: {name} of {entry['hf_subset']} is {value!r}.", hint="Replace or remove the file.")
    return float(value)


def _whole(path: Path, entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DataError(f"{path}: {name} of {entry['hf_subset']} is {value!r}.", hint="Replace or remove the file.")
    return value


def _system(path: Path, meta: Mapping[str, Any]) -> SystemInfo:
    """The system behind a folder of results; one that squtr exported is put together from its components again."""
    folder = path.parent.parent.name.replace("__", "/")
    name, revision = str(meta.get("name") or folder), str(meta.get("revision") or path.parent.name)
    settings = meta.get("loader_kwargs") or {}
    components = settings.get("components") if isinstance(settings, dict) else None
    if not name.startswith(f"{ORGANISATION}/") or not isinstance(components, dict) or not components:
        audio = "audio" in (meta.get("modalities") or ())
        kind = "audio_text_encoder" if audio else "encoder"
        encoder = {"backend": "mteb", "kind": kind, "model": name, "name": name, "revision": revision, "settings": {}}
        return SystemInfo(kind="end-to-end", name=name, components={"encoder": encoder})
    kind_of: Literal["cascade", "run"] = "cascade" if "transcriber" in components else "run"
    return SystemInfo(
        kind="end-to-end" if "encoder" in components else kind_of,
        name=_shown(components) or name,
        components={role: components[role] for role in ROLES if isinstance(components.get(role), dict)},
        settings={"n_best": int(settings.get("n_best", 1)), "n_best_fusion": str(settings.get("n_best_fusion", ""))},
    )


ROLES = ("front_end", "transcriber", "rewriter", "encoder", "retriever")


def _shown(components: Mapping[str, Any]) -> str:
    names = {role: str(components[role].get("name", "")) for role in ROLES if isinstance(components.get(role), dict)}
    front = f"{names.pop('front_end')} | " if "front_end" in names else ""
    return front + " + ".join(filter(None, names.values()))


def _with_losses(result: Result, every: Mapping[tuple[str, str], Result]) -> Result:
    """`result` with what was lost against the baselines that are there, on the same data and as many queries."""
    losses: dict[str, dict[str, Loss]] = {}
    for baseline in BASELINES:
        if result.data.condition in {baseline, TEXT_CONDITION}:
            continue
        before = every.get((result.system.name, f"{result.data.subsets[0]}_{baseline}"))
        if before is None or (before.data.revision, before.data.n) != (result.data.revision, result.data.n):
            continue
        losses[baseline] = {
            name: _loss(before.scores[name], score)
            for name, score in result.scores.items()
            if name in before.scores and name.endswith("_at_10")
        }
    return result.model_copy(update={"losses": losses})


def _loss(before: Score, after: Score) -> Loss:
    high, low = before.value or 0.0, after.value or 0.0
    relative = 1 - low / high if high > 0 else None
    return Loss(absolute=Score(value=high - low, n=after.n), relative=Score(value=relative, n=after.n))
