"""The text of a pull request with results, and the commands that open it on GitHub."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import __version__
from ...loaders.conditions import STANDARD_CONDITIONS, TEXT
from ..components import AUDIO_TEXT_ENCODERS, FRONT_ENDS, RETRIEVERS, TRANSCRIBERS, BackendSpec
from .catalog import condition_label
from .meta import COMPOSITES
from .submission_checks import ModelFolder

UPSTREAM = "embeddings-benchmark/results"

BODY_NAME = "pull-request.md"
_ROLES = ("front_end", "transcriber", "encoder", "retriever")
_TABLES: Mapping[str, Mapping[str, BackendSpec]] = {
    "front_end": FRONT_ENDS, "transcriber": TRANSCRIBERS, "encoder": AUDIO_TEXT_ENCODERS, "retriever": RETRIEVERS,
}  # fmt: skip
_CHECKLIST = (
    "The model is described where everybody can read it (paper, report or model card):",
    "`mteb` has an implementation of the model, or a pull request adds one:",
    "Weights or an API are open to everybody:",
    "Nothing that is evaluated here was trained on, or it is stated here what was:",
)


def title_of(models: Sequence[ModelFolder]) -> str:
    """One line."""
    names = [model.name for model in models]
    shown = ", ".join(names[:2]) + (f" (+{len(names) - 2} more)" if len(names) > 2 else "")
    return f"Add results on SQuTR for {shown}"


def body_of(
    models: Sequence[ModelFolder],
    *,
    data: Sequence[str],
    source: str,
    versions: Mapping[str, str],
    unknown_tasks: Sequence[str] | None,
    open_points: Sequence[str],
) -> str:
    """Markdown; `source` names the data ("": unknown), `unknown_tasks` what mteb's registry lacks (None: unknown)."""
    parts = [
        "## What was evaluated\n\n" + "\n".join(line for model in models for line in _about(model)),
        "Data: " + ("; ".join(data) or "see the revisions in the files") + ".",
        "## nDCG@10\n\n" + _table(models),
        "`text` is the typed query, the upper bound; n is the number of queries. Queries that could not be decoded or"
        " found nothing score 0 and count.",
        "## Tasks\n\n" + _about_tasks(unknown_tasks),
        "## Versions\n\n" + ", ".join(f"{name} {detail}" for name, detail in sorted(versions.items())) + ".",
        "## How to reproduce\n\n" + "\n\n".join(_reproduction(model, source) for model in models),
    ]
    if open_points:
        parts.append("## What is open\n\n" + "\n".join(f"- {point}" for point in open_points))
    parts.append(
        "## To be filled in by who submits\n\n" + "\n".join(f"- [ ] {line}" for line in _CHECKLIST)
    )  # fmt: skip
    return "\n\n".join(parts) + "\n"


def github_commands(folder: Path, files: Mapping[str, bytes], title: str, repository: str = UPSTREAM) -> list[str]:
    """Shell commands for a person: fork, commit the files of a prepared folder, open the pull request."""
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(path.encode() + b"\0" + content)
    branch = f"squtr-{digest.hexdigest()[:8]}"
    name = repository.rpartition("/")[2]
    there = folder.resolve()
    places = sorted({path.rpartition("/")[0] for path in files})
    return [
        shlex.join(["gh", "repo", "fork", repository, "--clone", "--", "--depth", "1"]),
        shlex.join(["cd", name]),
        shlex.join(["git", "switch", "--create", branch]),
        shlex.join(["cp", "-r", f"{there}/results", "."]),
        shlex.join(["git", "add", *places]),
        shlex.join(["git", "commit", "-m", title]),
        shlex.join(["git", "push", "--set-upstream", "origin", branch]),
        shlex.join(["gh", "pr", "create", "--repo", repository, "--base", "main"])
        + f' --head "$(gh api user --jq .login):{branch}" '
        + shlex.join(["--title", title, "--body-file", f"{there}/{BODY_NAME}"]),
    ]


def _about(model: ModelFolder) -> list[str]:
    lines = [f"- `{model.name}`, revision `{model.revision}`"]
    for role, spec in _components(model).items():
        named = spec.get("model") or spec.get("name")
        revision = f", revision `{spec['revision']}`" if spec.get("revision") else ""
        lines.append(f"  - {role.replace('_', ' ')}: {spec.get('backend')} `{named}`{revision}")
    return lines


def _components(model: ModelFolder) -> dict[str, Mapping[str, Any]]:
    settings = model.meta.get("loader_kwargs")
    found = settings.get("components") if isinstance(settings, dict) else None
    return {role: found[role] for role in _ROLES if isinstance(found, dict) and isinstance(found.get(role), dict)}


def _table(models: Sequence[ModelFolder]) -> str:
    there = dict.fromkeys(c for model in models for task in model.tasks for c in task.cells)
    conditions = [*(c for c in STANDARD_CONDITIONS if c in there)]
    conditions += [c for c in there if c not in {*conditions, TEXT}] + [c for c in (TEXT,) if c in there]
    rows = [["model", "data", "n", *map(condition_label, conditions)]]
    for model in models:
        for subset in dict.fromkeys(task.subset for task in model.tasks):
            cells = {c: cell for task in model.tasks if task.subset == subset for c, cell in task.cells.items()}
            counts = "/".join(map(str, dict.fromkeys(cell.n for cell in cells.values())))
            scores = [f"{cells[c].score:.4f}" if c in cells else "–" for c in conditions]
            rows.append([f"`{model.name}`", subset, counts, *scores])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---|---|" + "---:|" * (len(rows[0]) - 2), *lines[1:]])


def _about_tasks(unknown: Sequence[str] | None) -> str:
    detail = (
        f"Spoken query to written passage (`a2t`), made by `squtr.mteb_tasks` of squtr {__version__}: a task per"
        " subset, whose subsets in `mteb` are the acoustic conditions, and a typed control (`…Text`)."
    )
    if unknown is None:
        return f"{detail} Whether `mteb`'s registry has them was not looked up."
    if unknown:
        return f"{detail} These are squtr's own and not in `mteb`'s registry: {', '.join(unknown)}."
    return f"{detail} `mteb`'s registry has them."


def _reproduction(model: ModelFolder, source: str) -> str:
    subsets = list(dict.fromkeys(task.subset for task in model.tasks))
    conditions = list(dict.fromkeys(c for task in model.tasks for c in task.cells))
    components = _components(model)
    written = short_form(components)
    note = "" if source else "\n\n`DATA` is the data of the revision above."
    if components and not written:
        note += "\n\nThe components are those in `model_meta.json` (`loader_kwargs`)."
    if model.of_mteb or not components:
        made = f"mteb.get_model({model.name!r}, {model.revision!r})"
        if components:
            made = f"squtr.mteb_model({written!r})" if written else "squtr.mteb_model(system)"
        spoken = [condition for condition in conditions if condition != TEXT]
        return (
            "```python\nimport mteb\nimport squtr\n\n"
            f"model = {made}\n"
            f"tasks = squtr.mteb_tasks(data={source or 'DATA'!r}, subsets={subsets}, conditions={spoken})\n"
            f'mteb.evaluate(model, tasks, cache=mteb.ResultCache("results"))\n```{note}'
        )
    configs = " ".join(f"{subset}_{condition}" for subset in subsets for condition in conditions)
    system = shlex.quote(written or "SYSTEM")
    return (
        f"```\nsqutr evaluate {system} --data {shlex.quote(source or 'DATA')} --configs {configs} --out run\n```{note}"
    )


def short_form(components: Mapping[str, Mapping[str, Any]]) -> str:
    """A system in the short form of squtr, if its parts can be written so; "" for any other.

    >>> whisper = {"backend": "faster-whisper", "model": "whisper-base"}
    >>> short_form({"transcriber": whisper, "retriever": {"backend": "bm25", "model": ""}})
    'faster-whisper:whisper-base + bm25'
    >>> short_form({"front_end": {"backend": "wpe"}, "encoder": {"backend": "clap", "model": "org/clap"}})
    'wpe | clap:org/clap'
    """
    if set(components) - {"front_end"} not in ({"transcriber", "retriever"}, {"encoder"}):
        return ""
    parts: dict[str, str] = {}
    for role, spec in components.items():
        backend, model = str(spec.get("backend")), str(spec.get("model") or "")
        row = _TABLES[role].get(backend)
        if row is None or backend in COMPOSITES or (row.takes_model and not model):
            return ""
        if row.takes_model and (Path(model).is_absolute() or any(sign.isspace() for sign in model)):
            return ""
        parts[role] = f"{backend}:{model}" if row.takes_model else backend
    front = f"{parts.pop('front_end')} | " if "front_end" in parts else ""
    return front + " + ".join(parts[role] for role in _ROLES if role in parts)
