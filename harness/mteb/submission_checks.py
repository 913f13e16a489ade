"""Results in mteb's layout, read for a submission: every file checked, and what is missing from them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import DataError, MissingExtraError, UsageError
from ...loaders.hub.evaluation_file import SPLIT, control_name, task_name
from ..results.envelope import TEXT_CONDITION
from .catalog import ORIGINALS, language_of
from .exchange import MAIN_METRIC, META_NAME
from .versions import installed_version, load_bridge

SETTINGS_NAME = "run_settings.jsonl"
PUBLISHED_CONDITIONS = ("clean", "low_noise", "medium_noise", "high_noise")

_SHARES = re.compile(r"(?:ndcg|map|mrr|recall|precision|hit_rate)_at_\d+|main_score|accuracy")
_ERROR_RATES = re.compile(r"(?:wer|cer)(?:_macro)?")
_COUNTS = ("undecodable_queries", "queries_without_hits")
_TOLERANCE = 1e-9
_REPLACE = "Evaluate again, or remove the file."


@dataclass(frozen=True, slots=True)
class Cell:
    """One condition of a task: its main score, over how many queries, and how many could not be decoded (None: not
    stated). `partial`: only a part of the data's queries was evaluated."""

    score: float
    n: int
    undecodable: int | None
    partial: bool


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The results of a model on a task of this benchmark, by condition."""

    name: str
    subset: str
    language: str
    revision: str
    mteb_version: str
    cells: Mapping[str, Cell]

    @property
    def spoken(self) -> bool:
        return TEXT_CONDITION not in self.cells


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder `<organization>__<model>/<revision>`; `covered` are the tasks and subsets with run settings."""

    place: Path
    name: str
    revision: str
    meta: Mapping[str, Any]
    tasks: Sequence[TaskFile]
    covered: frozenset[tuple[str, str]] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_mteb(self) -> bool:
        """Whether mteb computed all of it and says with which settings, as upstream's own check wants."""
        wanted = {(task.name, f"{task.subset}_{condition}") for task in self.tasks for condition in task.cells}
        return wanted <= self.covered and all(task.mteb_version for task in self.tasks)


def read_model(place: Path) -> ModelFolder:
    """Read and check a model's folder. Raises `DataError` that names the file and what is wrong with it."""
    meta = _json(place / META_NAME)
    name, revision = meta.get("name"), meta.get("revision")
    wanted = (str(name).replace("/", "__").replace(" ", "_"), str(revision))
    if not name or not revision or wanted != (place.parent.name, place.name):
        raise DataError(
            f"{place / META_NAME} is of {name!r}, revision {revision!r}, which is not what its folders are called.",
            hint="Evaluate again, or put the results where they belong: <organization>__<model>/<revision>.",
        )
    tasks = [_task(path, _json(path)) for path in sorted(place.glob("*.json")) if path.name != META_NAME]
    covered, versions = _settings(place / SETTINGS_NAME)
    return ModelFolder(place, str(name), str(revision), meta, tasks, frozenset(covered), versions)


def is_of_benchmark(content: Any) -> bool:
    """Whether a file's content is a result on a task of this benchmark, going by its subsets' names."""
    if not isinstance(content, dict) or not isinstance(content.get("scores"), dict):
        return False
    entries = [entry for group in content["scores"].values() if isinstance(group, list) for entry in group]
    return bool(entries) and all(
        isinstance(entry, dict) and _expected_name(str(entry.get("hf_subset", ""))) == content.get("task_name")
        for entry in entries
    )


def missing_from(model: ModelFolder, known: Mapping[str, Sequence[str]]) -> list[str]:
    """What keeps a model's results from being whole, a sentence each; [] for nothing.

    A task is whole with every condition that the model's other tasks, its data (`known`, by subset) and the published
    subset have, on as many queries each. Typed controls are there for all subsets or for none.
    """
    spoken = [task for task in model.tasks if task.spoken]
    everywhere = dict.fromkeys(condition for task in spoken for condition in task.cells)
    found: list[str] = []
    for task in spoken:
        published = PUBLISHED_CONDITIONS if task.subset in ORIGINALS else ()
        wanted = dict.fromkeys((*everywhere, *known.get(task.subset, ()), *published))
        absent = [condition for condition in wanted if condition not in task.cells]
        if absent:
            found.append(f"{task.name} of {model.name} lacks the conditions {', '.join(absent)}.")
    controls = {task.subset for task in model.tasks if not task.spoken}
    if controls:
        absent = [control_name(task.subset) for task in spoken if task.subset not in controls]
        if absent:
            found.append(f"{model.name} lacks the typed controls {', '.join(absent)}.")
    for subset in dict.fromkeys(task.subset for task in model.tasks):
        cells = {
            f"{subset}_{c}": cell for task in model.tasks if task.subset == subset for c, cell in task.cells.items()
        }
        counts = {config: cell.n for config, cell in cells.items()}
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{config} {n}" for config, n in counts.items())
            found.append(f"{model.name} was evaluated on different numbers of queries: {shown}.")
        found += [f"{config} of {model.name} is partial: {c.n} queries." for config, c in cells.items() if c.partial]
        found += [
            f"{config} of {model.name} failed: none of its {c.n} queries could be decoded."
            for config, c in cells.items()
            if c.undecodable == c.n
        ]
    return found


def check_with_mteb(models: Sequence[ModelFolder]) -> str:
    """Load every file as mteb does; returns why that was not done, "" if it was. Raises `DataError` naming the file."""
    if not installed_version():
        return "mteb is not installed"
    try:
        bridge = load_bridge()
    except MissingExtraError as error:
        return error.message.rstrip(".")
    for model in models:
        for path in sorted(model.place.glob("*.json")):
            detail = bridge.refusal(path, meta=path.name == META_NAME)
            if detail:
                raise DataError(f"mteb refuses {path}: {detail}.", hint=_REPLACE)
    return ""


def _task(path: Path, content: Mapping[str, Any]) -> TaskFile:
    name, scores, revision = content.get("task_name"), content.get("scores"), content.get("dataset_revision")
    if name != path.stem:
        raise DataError(f"{path} is of the task {name!r}, not of the one that it is called after.", hint=_REPLACE)
    if not isinstance(scores, dict) or list(scores) != [SPLIT] or not isinstance(scores[SPLIT], list):
        raise DataError(f"{path} has no scores of the split {SPLIT!r}, or others too.", hint=_REPLACE)
    if not isinstance(revision, str) or not revision:
        raise DataError(f"{path} does not say which revision of the data it is of.", hint=_REPLACE)
    cells: dict[str, Cell] = {}
    subsets: dict[str, None] = {}
    languages: dict[str, None] = {}
    for entry in scores[SPLIT]:
        config = str(entry.get("hf_subset", "")) if isinstance(entry, dict) else ""
        subset, _, condition = config.partition("_")
        if not condition or _expected_name(config) != name:
            raise DataError(f"{path}: {config!r} is no subset of the task {name}.", hint=_REPLACE)
        if condition in cells:
            raise DataError(f"{path} has {config} twice.", hint=_REPLACE)
        cells[condition] = _cell(path, config, entry)
        subsets[subset] = None
        languages[_language(path, config, entry)] = None
    if len(subsets) != 1 or len(languages) != 1:
        raise DataError(f"{path} is about {len(subsets)} subsets in {len(languages)} languages.", hint=_REPLACE)
    version = content.get("mteb_version")
    (subset,), (language,) = subsets, languages
    return TaskFile(str(name), subset, language, revision, version if isinstance(version, str) else "", cells)


def _cell(path: Path, config: str, entry: Mapping[str, Any]) -> Cell:
    for name, value in entry.items():
        share, rate = _SHARES.fullmatch(name), _ERROR_RATES.fullmatch(name)
        if not share and not rate:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (share and value > 1 + _TOLERANCE):
            raise DataError(f"{path}: {name} of {config} is {value!r}.", hint=_REPLACE)
    main = entry.get("main_score")
    if main is None or entry.get(MAIN_METRIC) != main:
        raise DataError(
            f"{path}: the main score of {config} is {main!r}, its {MAIN_METRIC} {entry.get(MAIN_METRIC)!r}.",
            hint=_REPLACE,
        )
    counts = {name: entry.get(name) for name in ("n_queries", *_COUNTS)}
    for name, value in counts.items():
        least = 1 if name == "n_queries" else 0
        if value is None and name in _COUNTS:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least or value > (counts["n_queries"] or 0):
            raise DataError(f"{path}: {name} of {config} is {value!r}.", hint=_REPLACE)
    return Cell(float(main), int(entry["n_queries"]), counts["undecodable_queries"], entry.get("partial") is True)


def _language(path: Path, config: str, entry: Mapping[str, Any]) -> str:
    try:
        return language_of([str(tag) for tag in entry.get("languages") or ()])
    except UsageError as error:
        raise DataError(f"{path}: {config}: {error.message}", hint=error.hint) from error


def _expected_name(config: str) -> str:
    subset, _, condition = config.partition("_")
    return (control_name if condition == TEXT_CONDITION else task_name)(subset or "?")


def _settings(path: Path) -> tuple[set[tuple[str, str]], dict[str, str]]:
    """The tasks and subsets with run settings in a file that mteb wrote, and the versions in it; none without it."""
    covered: set[tuple[str, str]] = set()
    versions: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.is_file() else (), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            # Earlier versions of mteb write one split and one subset per line.
            if SPLIT in (entry.get("splits") or [entry["split"]]):
                covered |= {(entry["task"], subset) for subset in entry.get("subsets") or [entry["subset"]]}
            versions |= {name: str(detail) for name, detail in entry["version"].items() if detail}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}, line {number}, is no entry of mteb: {error}.", hint=_REPLACE) from error
    return covered, versions


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}.", hint=_REPLACE) from error
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no JSON object.", hint=_REPLACE)
    return content
