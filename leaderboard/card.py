"""The section of a model card about results: a table with intervals, how they were made, and whom to cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DataError
from ..harness.benchmarks import BENCHMARKS
from ..harness.metrics.registry import metric_of
from ..harness.results.envelope import Score
from .entry import Entry
from .markdown import plain
from .published import citation

_HARDLY_KNOWN = "–"
_TASKS: Mapping[str, tuple[str, str]] = {
    "retrieval": ("text-retrieval", "Retrieval with spoken queries"),
    "recognition": ("automatic-speech-recognition", "Speech recognition"),
    "understanding": ("audio-text-to-text", "Questions about audio"),
}
"""The Hub's name of a task, and words for it."""


def card_section(entries: Sequence[Entry]) -> str:
    """The section in Markdown. Names and settings of the results are shown as they are, never as markup.

    Raises `DataError` if there is no entry.
    """
    if not entries:
        raise DataError("there is no result to show.", hint="Name a result, or the folder of an evaluation.")
    parts = [_section(entry) for entry in entries]
    cited = [
        f"```bibtex\n{text}\n```" for name in dict.fromkeys(e.benchmark for e in entries) if (text := citation(name))
    ]
    return "\n".join([*parts, *(["### Citation", "", "\n\n".join(cited), ""] if cited else [])])


def _section(entry: Entry) -> str:
    title = _title(entry)
    lines = [f"## Results on {title}: {plain(entry.system)}", "", *_table(entry), ""]
    if entry.partial:
        lines += ["These results cover a part of the items only, and are not comparable with complete results.", ""]
    bounded = any(score.bounds for scores in entry.scores.values() for score in scores.values())
    lines += [
        "Values are followed by their 95 % intervals (bootstrap over items). Error rates, accuracies and losses are "
        "ratios: 0.05 is 5 %."
        + (
            " Where items failed, an error rate is of the others, with the rate if the failed had no error, and if all "
            "their words were deleted."
            if bounded
            else ""
        ),
        "",
        "### How to reproduce",
        "",
        *_how(entry),
        "",
    ]
    return "\n".join(lines)


def _title(entry: Entry) -> str:
    row = BENCHMARKS.get(entry.benchmark)
    return plain(row.title.partition(":")[0] if row else entry.benchmark)


def _metrics(entry: Entry) -> list[str]:
    """The benchmark's metrics, the main one first, as far as the entry has them."""
    row = BENCHMARKS.get(entry.benchmark)
    known = {name for scores in entry.scores.values() for name in scores}
    listed = [name for name in dict.fromkeys((entry.main_metric, *(row.metrics if row else ()))) if name in known]
    kinds = [name for name in sorted(known) if name.endswith(("_accuracy", "_accuracy_corrected", "_prompt_strict"))]
    return list(dict.fromkeys((*listed, *kinds)))


def _table(entry: Entry) -> list[str]:
    found = _metrics(entry)
    baselines = sorted({baseline for losses in entry.losses.values() for baseline in losses})
    any_failed = any(counts.get("failed", 0) for counts in entry.failures.values())
    main = metric_of(entry.main_metric)
    heads = [
        "config",
        *(plain(metric_of(name).label) for name in found),
        *(f"{plain(main.label)} loss against {plain(baseline)}" for baseline in baselines),
        "n",
        *(["failed"] if any_failed else []),
    ]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for config in entry.configs:
        scores, losses, covered = entry.scores[config], entry.losses.get(config, {}), entry.coverage[config]
        cells = [plain(config), *(_cell(scores.get(name)) for name in found)]
        for baseline in baselines:
            loss = losses.get(baseline, {}).get(entry.main_metric)
            cells.append(_cell(loss.absolute if loss else None))
        cells.append(str(covered.n) if covered.n == covered.n_total else f"{covered.n} of {covered.n_total}")
        if any_failed:
            cells.append(str(entry.failures.get(config, {}).get("failed", 0)))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cell(score: Score | None) -> str:
    if score is None or score.value is None:
        return _HARDLY_KNOWN
    # Brackets would be a link in Markdown if a parenthesis followed; a comma and blanks are not.
    found = f"{score.value:.4f}"
    if score.low is not None and score.high is not None:
        found += f" ({score.low:.4f} to {score.high:.4f})"
    if score.bounds is not None:
        found += f" of {score.n}, {score.bounds[0]:.4f} to {score.bounds[1]:.4f} with the failed"
    return found


def _how(entry: Entry) -> list[str]:
    lines = [
        f"- benchmark: {plain(entry.benchmark)} {plain(entry.benchmark_version)}, squtr {plain(entry.squtr_version)}",
        f"- data: {plain(f'{entry.source} {entry.source_version}'.strip())}, revision {plain(entry.revision)}",
    ]
    for role, spec in entry.components.items():
        lines.append(f"- {role.replace('_', ' ')}: {_component(spec)}")
    shown = {name: value for name, value in entry.settings.items() if value not in (None, "", [], {})}
    if shown:
        lines.append(
            "- settings: " + ", ".join(f"{plain(name)} {plain(str(value), 80)}" for name, value in shown.items())
        )
    normalizers = dict.fromkeys(name for name in entry.normalizers.values() if name)
    if normalizers:
        lines.append(f"- text normalizer: {', '.join(map(plain, normalizers))}")
    if entry.self_checks:
        lines.append(f"- self-check: {', '.join(map(plain, dict.fromkeys(entry.self_checks.values())))}")
    hardware = dict.fromkeys(entry.hardware.values())
    speeds = [times["rtfx"] for times in entry.timing.values() if times.get("rtfx")]
    if hardware:
        fast = f", {min(filter(None, speeds)):.3g} s of audio per second at least" if speeds else ""
        lines.append(f"- hardware: {', '.join(map(plain, hardware))}{fast}")
    lines += [
        "",
        "```console",
        f"pip install squtr=={_safe_version(entry.squtr_version)}",
        "squtr evaluate SYSTEM --data DATA --out run   # with the settings above",
        "squtr validate run",
        "```",
    ]
    return lines


def _safe_version(version: str) -> str:
    return "".join(char for char in version[:40] if char.isascii() and (char.isalnum() or char in ".+"))


def _component(spec: Mapping[str, Any]) -> str:
    parts = [plain(str(spec.get("model") or spec.get("name") or _HARDLY_KNOWN))]
    if spec.get("revision"):
        parts.append(f"revision {plain(str(spec['revision']), 64)}")
    settings = spec.get("settings")
    if isinstance(settings, Mapping) and settings:
        parts.append(", ".join(f"{plain(str(key))} {plain(str(value), 120)}" for key, value in settings.items()))
    return "; ".join(parts)


def _named(metric: str, score: Score) -> str:
    """The label of a metric; of an error rate that leaves failed items out with what that leaves open."""
    label = metric_of(metric).label
    if score.bounds is None:
        return label
    return f"{label} of {score.n} items, {score.bounds[0]:.4f} to {score.bounds[1]:.4f} with the failed"


def model_index(entries: Sequence[Entry], *, data_set: str = "") -> str:
    """The metadata of a model card about these results, as YAML: `model-index`, as the Hub reads it.

    `data_set` is the benchmark's name on the Hub; without it the benchmark's own name stands there. Raises `DataError`
    if there is no entry.
    """
    import yaml

    if not entries:
        raise DataError("there is no result to show.", hint="Name a result, or the folder of an evaluation.")
    models = []
    for entry in entries:
        kind, words = _TASKS.get(entry.task, ("other", entry.task))
        results = []
        for config in entry.configs:
            metrics = [
                {"type": name, "value": score.value, "name": _named(name, score)}
                for name in _metrics(entry)
                if (score := entry.scores[config].get(name)) is not None and score.value is not None
            ]
            if metrics:
                title = _title(entry)
                about = {
                    "type": data_set or entry.benchmark,
                    "name": f"{title} ({config})",
                    "config": config,
                    "split": "test",
                }
                results.append({"task": {"type": kind, "name": words}, "dataset": about, "metrics": metrics})
        models.append({"name": entry.system, "results": results})
    text: str = yaml.safe_dump({"model-index": models}, allow_unicode=True, sort_keys=False, width=120)
    return text
