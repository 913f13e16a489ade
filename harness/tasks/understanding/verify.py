"""What follows from the records of understanding."""

from __future__ import annotations

import math

import pyarrow as pa

from ....loaders.questions.question import CONFIGS
from ...results.columns import Columns
from ...results.envelope import REPLY_FLAGS, DataInfo, Result, Score
from ..verification import Problems, Recomputed, common_problems, flag_counts
from .items import SCHEMA

NULLABLE = frozenset(SCHEMA.names)
KINDS = {"mcqa": "mcqa_accuracy", "aif": "aif_prompt_strict"}
_TOLERANCE = 1e-7


def config_problem(data: DataInfo) -> str:
    """Configs are parts of the questions, whatever the language."""
    return "" if data.config in CONFIGS else f"questions have the configs {', '.join(CONFIGS)}"


def schema(result: Result) -> pa.Schema:
    return SCHEMA


def rows(result: Result) -> int | None:
    """One for each prompt: how many depends on orders and spoken versions."""
    return None


def summary_problems(result: Result) -> Problems:
    """Accuracies that contradict each other."""
    values = {name: score.value for name, score in result.scores.items()}
    accuracy, chance = values.get("mcqa_accuracy"), values.get("mcqa_chance")
    corrected = values.get("mcqa_accuracy_corrected")
    if accuracy is not None and chance is not None and corrected is not None and chance < 1:
        expected = (accuracy - chance) / (1 - chance)
        if abs(expected - corrected) > _TOLERANCE:
            yield (
                "scores.mcqa_accuracy_corrected",
                f"{corrected:.6g} is not {accuracy:.6g} corrected for a chance of {chance:.6g}",
            )
    if sum(result.data.missing_audio.values()) > result.data.n:
        yield "data.missing_audio", f"more items lack their audio than the {result.data.n} there are"


def recompute(result: Result, columns: Columns) -> Recomputed:
    """The accuracy of both kinds of question, from their marks; spoken versions are in a comparison of their own."""
    problems = list(common_problems(result, columns, unique=False))
    marks: dict[str, dict[str, list[float]]] = {kind: {} for kind in KINDS}
    given = result.details.get("option_orders", 1)
    orders = given if isinstance(given, int) and given > 0 else 1
    seen: set[tuple[str, bool, str]] = set()
    spoken, correct = columns.flags("spoken").tolist(), columns.floats("correct").tolist()
    names = ("id", "kind", "order", "audio_status")
    for place, (id_, kind, order, status) in enumerate(zip(*(columns.texts(name) for name in names), strict=True)):
        if (id_, spoken[place], order) in seen:
            problems.append(("items.id", f"an item was asked twice in one way: {id_[:60]!r}"))
        seen.add((id_, spoken[place], order))
        if kind not in marks:
            problems.append(("items.kind", f"{kind[:60]!r} is no kind of question"))
        elif not spoken[place] and status == "ok":
            if correct[place] not in (0.0, 1.0):
                problems.append(("items.correct", f"{id_[:60]!r} is neither right nor wrong"))
                continue
            own = marks[kind].setdefault(id_, [])
            # Further orders are asked for comparison only.
            if len(own) < orders:
                own.append(correct[place])
    scores: dict[str, Score] = {}
    every: list[float] = []
    for kind, name in KINDS.items():
        values = [math.fsum(own) / len(own) for own in marks[kind].values()]
        every += values
        if values:
            scores[name] = Score(value=math.fsum(values) / len(values), n=len(values))
    scores["accuracy"] = Score(value=math.fsum(every) / len(every) if every else None, n=len(every))
    flags = flag_counts(columns)
    failures = {name: flags[name] for name in ("failed", *REPLY_FLAGS)}
    return Recomputed(scores=scores, failures=failures, problems=problems)


def item_values(table: pa.Table, metric: str, subset: str, *, lenient: bool = False) -> dict[str, dict[str, float]]:
    """Right or wrong by item, the mean over its orders, for the metrics that are means over items."""
    kinds = {"accuracy": set(KINDS), **{name: {kind} for kind, name in KINDS.items()}}.get(metric)
    if kinds is None:
        return {}
    columns = Columns(table)
    found: dict[str, list[float]] = {}
    given = zip(
        columns.texts("id"), columns.texts("kind"), columns.flags("spoken").tolist(),
        columns.floats("correct").tolist(), strict=True,
    )  # fmt: skip
    for id_, kind, spoken, correct in given:
        if kind in kinds and not spoken and math.isfinite(correct):
            found.setdefault(id_, []).append(correct)
    return {"": {id_: math.fsum(own) / len(own) for id_, own in found.items()}} if found else {}
