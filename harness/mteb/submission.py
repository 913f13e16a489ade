"""A submission of results to a repository in mteb's layout: the folder, checked, and the text of the pull request.

    <folder>/results/<organization>__<model>/<revision>/<Task>.json, model_meta.json, run_settings.jsonl
    <folder>/pull-request.md

Nothing is sent here: `loaders.hub.repository` opens a pull request on the Hub; for GitHub there are the commands.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import DataError, StorageError, UsageError, unknown_name
from ..results.envelope import Result, read_result
from ..results.files import write_atomically
from .exchange import META_NAME, export_mteb
from .submission_checks import SETTINGS_NAME, ModelFolder, check_with_mteb, is_of_benchmark, missing_from, read_model
from .submission_text import BODY_NAME, UPSTREAM, body_of, github_commands, title_of
from .versions import installed_version, load_bridge

RESULTS = "results"


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission: `files` by path (`results/…`), `open_points` in the way of mteb's repository, the `skipped`."""

    folder: Path
    title: str
    body: str
    files: Mapping[str, bytes]
    models: tuple[str, ...]
    tasks: int
    open_points: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def body_path(self) -> Path:
        return self.folder / BODY_NAME

    def github_commands(self, repository: str = UPSTREAM) -> list[str]:
        """What to run to open the pull request on GitHub."""
        return github_commands(self.folder, self.files, self.title, repository)


def prepare_mteb_submission(
    folder: Path, out: Path, *, systems: Sequence[str] = (), allow_partial: bool = False
) -> Submission:
    """Prepare results (of `squtr evaluate --out` or mteb's own) for a repository in mteb's layout, in `out`.

    Every file is checked, also by mteb if that is installed. What is not whole (conditions missing, a part of the data,
    a run in which every query failed) is refused unless `allow_partial`, and then told in the text. Raises `DataError`
    for what is wrong with the results, or if `out` holds others, `UnknownNameError` for a `systems` that is not there.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist.", hint="Check the path.")
    if out.resolve() in {folder.resolve(), (folder / RESULTS).resolve()}:
        raise UsageError(f"{out} holds the results themselves.", hint="Choose another folder with --out.")
    with _scratch() as scratch:
        staged = Path(scratch)
        source = folder / RESULTS if (folder / RESULTS).is_dir() else folder
        theirs = sorted({path.parent for path in source.glob(f"*/*/{META_NAME}")})
        known: dict[str, list[str]] = {}
        skipped: list[str] = []
        data: list[str] = []
        sources: set[str] = set()
        versions = {"squtr": __version__}
        if theirs:
            skipped = _copy(theirs, staged, systems)
        else:
            export_mteb(folder, staged, systems=systems, partial=True)  # what is partial is found below
            results = [read_result(path) for path in sorted(source.glob("*/*.json"))]
            chosen = [result for result in results if not systems or result.system.name in systems]
            known, data, versions = _known(chosen), _data(chosen), _versions(chosen)
            sources = {_source(result) for result in chosen}
        models = [read_model(path.parent) for path in sorted((staged / RESULTS).glob(f"*/*/{META_NAME}"))]
        for model in models:
            versions |= model.versions
        missing = [sentence for model in models for sentence in missing_from(model, known)]
        if missing and not allow_partial:
            more = f" (and {len(missing) - 1} more such findings)" if len(missing) > 1 else ""
            raise DataError(
                f"{missing[0].rstrip('.')}{more}.",
                hint="Evaluate what is missing, or submit all the same with --allow-partial: the text then says so.",
            )
        unloaded = check_with_mteb(models)
        unknown_tasks, obstacles = _obstacles(models, unloaded)
        points = [*obstacles, *missing]
        title = title_of(models)
        revisions = sorted({task.revision for model in models for task in model.tasks})
        body = body_of(
            models,
            data=data or [f"revision {revision}" for revision in revisions],
            source=sources.pop() if len(sources) == 1 else "",
            versions=versions,
            unknown_tasks=unknown_tasks,
            open_points=points,
        )
        files = {path.relative_to(staged).as_posix(): path.read_bytes() for path in sorted(staged.rglob("*.json*"))}
    _write(out, files, body)
    return Submission(
        out,
        title,
        body,
        files,
        tuple(model.name for model in models),
        sum(len(model.tasks) for model in models),
        tuple(points),
        tuple(skipped),
    )


def _scratch() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="squtr-submit-")
    except OSError as error:
        raise StorageError(
            f"no temporary folder can be made: {error.strerror or error}.",
            hint="Free space, or set TMPDIR to another disk.",
        ) from error


def _copy(places: Sequence[Path], staged: Path, systems: Sequence[str]) -> list[str]:
    """Copy what is of this benchmark; returns the names of what is not."""
    skipped: dict[str, None] = {}
    names: dict[str, None] = {}
    copied = 0
    for place in places:
        name = place.parent.name.replace("__", "/")
        names[name] = None
        if systems and name not in systems:
            continue
        tasks = {path: _content(path) for path in sorted(place.glob("*.json")) if path.name != META_NAME}
        kept = [path for path, content in tasks.items() if is_of_benchmark(content)]
        skipped |= dict.fromkeys(path.stem for path in tasks if path not in kept)
        if (place / "experiments").is_dir():
            skipped[f"the experiments of {name}"] = None
        if not kept:
            continue
        copied += len(kept)
        there = staged / RESULTS / place.parent.name / place.name
        for path in (*kept, place / META_NAME):
            write_atomically(there / path.name, path.read_bytes())
        settings = place / SETTINGS_NAME
        if settings.is_file():
            lines = settings.read_text(encoding="utf-8").splitlines()
            own = [line for line in lines if _task_of(line) in {path.stem for path in kept}]
            write_atomically(there / SETTINGS_NAME, ("\n".join(own) + "\n").encode("utf-8"))
    for name in systems:
        if name not in names:
            raise unknown_name("model", name, names)
    if not copied:
        detail = f": only {', '.join(skipped)}" if skipped else ""
        raise DataError(
            f"{places[0].parent.parent} holds no results of this benchmark{detail}.", hint="Check the path."
        )
    return list(skipped)


def _content(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}.", hint="Replace or remove it.") from error


def _task_of(line: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    return str(entry.get("task")) if isinstance(entry, dict) else ""


def _known(results: Sequence[Result]) -> dict[str, list[str]]:
    known: dict[str, dict[str, None]] = {}
    for result in results:
        for subset in result.data.subsets:
            known.setdefault(subset, {}).update(dict.fromkeys(map(str, result.data.recipe.get("conditions") or ())))
    return {subset: list(conditions) for subset, conditions in known.items()}


def _source(result: Result) -> str:
    """What was read, without the folders of this machine."""
    source = result.data.source
    return Path(source).name if Path(source).is_absolute() else source


def _data(results: Sequence[Result]) -> list[str]:
    detail = []
    for result in results:
        license = f", license: {result.data.license}" if result.data.license else ""
        detail.append(f"{_source(result)}, revision {result.data.revision}{license}")
    return list(dict.fromkeys(detail))


def _versions(results: Sequence[Result]) -> dict[str, str]:
    versions: dict[str, dict[str, None]] = {}
    for result in results:
        ran = {"squtr": result.squtr_version, "Python": result.environment.python, **result.environment.packages}
        for name, version in ran.items():
            versions.setdefault(name, {})[version] = None
    return {name: " and ".join(several) for name, several in versions.items()}


def _obstacles(models: Sequence[ModelFolder], unloaded: str) -> tuple[list[str] | None, list[str]]:
    """The tasks that mteb's registry lacks (None: not looked up), and what stands in the way of its own repository."""
    points = []
    unknown: list[str] | None = None
    if unloaded:
        points.append(f"The files were not loaded with mteb, and its registry not looked up: {unloaded}.")
    else:
        tasks = list(dict.fromkeys(task.name for model in models for task in model.tasks))
        unknown, strangers = load_bridge().unknown_to_registry(tasks, [model.name for model in models])
        if unknown:
            points.append(
                f"mteb {installed_version()} does not have the tasks {', '.join(unknown)} in its registry: they have to"
                " be accepted there before their results are."
            )
        if strangers:
            points.append(
                f"mteb {installed_version()} does not have the models {', '.join(strangers)} in its registry."
            )
    ours = [model.name for model in models if not model.of_mteb]
    if ours:
        points.append(
            f"The scores of {', '.join(ours)} were not computed by mteb, or lack its {SETTINGS_NAME}: its repository"
            " takes only scores that mteb 2 computed. Run mteb.evaluate on squtr.mteb_model(…) and submit that folder."
        )
    local = sorted({path for model in models for path in _local_paths(model.meta.get("loader_kwargs"))})
    if local:
        points.append(f"The metadata names folders of one machine: {', '.join(local)}.")
    return unknown, points


def _local_paths(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.startswith(("/", "~", "file:")) else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [path for one in inner for path in _local_paths(one)]


def _write(out: Path, files: Mapping[str, bytes], body: str) -> None:
    """Write the folder. Raises `DataError` if it holds results that are not of this submission."""
    there = sorted(path for path in (out / RESULTS).rglob("*") if path.is_file())
    others = [path for path in there if path.relative_to(out).as_posix() not in files]
    if others:
        raise DataError(f"{others[0]} is not of this submission.", hint="Choose an empty folder with --out.")
    for path, content in files.items():
        write_atomically(out / path, content)
    write_atomically(out / BODY_NAME, body.encode("utf-8"))
