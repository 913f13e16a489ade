"""The public functions that make tasks and the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError, unknown_name
from ...loaders.conditions import TEXT
from ...loaders.data import SpeechData
from .catalog import TaskInfo
from .task_data import TaskData, chosen_conditions, open_task_data
from .versions import load_bridge

if TYPE_CHECKING:
    from .bridge import SqutrBenchmark, SqutrTask

NAME = "SQuTR"


def mteb_tasks(
    *,
    languages: Sequence[str] | None = None,
    subsets: Sequence[str] | None = None,
    conditions: Sequence[str] | None = None,
    data: SpeechData | Path | str | None = None,
    text: bool = True,
) -> list[SqutrTask]:
    """The benchmark as tasks of mteb: `SQuTRFiQA` and so on, each followed by its typed control, `SQuTRFiQAText`.

    A spoken task has type `Any2AnyRetrieval`, category `a2t` and the conditions as mteb's subsets (`fiqa_clean`); a
    control has category `t2t`. The main score is nDCG@10. Only `id` and `audio` reach a model. Without `text` there are
    no controls; `languages`, `subsets` and `conditions` choose (all if None). `data` is what `open_data` takes; None is
    what `squtr build` put into `$SQUTR_HOME`, else the published release.

    Raises `MissingExtraError` without a tested mteb, `UnknownNameError` for a wrong name, and what reading the data
    raises.
    """
    bridge = load_bridge()
    opened = open_task_data(data, conditions)
    spoken = chosen_conditions(opened, conditions)
    if not spoken and not text:
        raise UsageError("no condition is chosen.", hint=f"At hand: {', '.join((*opened.conditions, TEXT))}.")
    tasks: list[SqutrTask] = []
    for subset, language in _chosen(opened, languages, subsets).items():
        for at_hand, wanted in ((opened.conditions, spoken), ((TEXT,), (TEXT,) if text else ())):
            if wanted:
                info = TaskInfo(
                    subset,
                    language,
                    {f"{subset}_{condition}": condition for condition in at_hand},
                    opened.path,
                    opened.revision,
                )
                tasks.append(bridge.make_task(info, opened, [f"{subset}_{condition}" for condition in wanted]))
    return tasks


def _chosen(data: TaskData, languages: Sequence[str] | None, subsets: Sequence[str] | None) -> dict[str, str]:
    for language in languages or ():
        if language not in data.subsets.values():
            raise unknown_name("language", language, data.subsets.values())
    for subset in subsets or ():
        if subset not in data.subsets:
            raise unknown_name("subset", subset, data.subsets)
    chosen = {
        subset: language
        for subset, language in data.subsets.items()
        if (languages is None or language in languages) and (subsets is None or subset in subsets)
    }
    if not chosen:
        raise UsageError(
            f"no subset is both in {list(languages or [])} and among {list(subsets or [])}.",
            hint="Leave one of the two out.",
        )
    return chosen


def mteb_benchmark(
    *,
    languages: Sequence[str] | None = None,
    subsets: Sequence[str] | None = None,
    conditions: Sequence[str] | None = None,
    data: SpeechData | Path | str | None = None,
    text: bool = True,
) -> SqutrBenchmark:
    """The tasks of `mteb_tasks` as a benchmark of mteb, whose tables have a column per condition and per language.

    `Mean (Task)` is over the spoken tasks; the typed controls have the column `text`. Raises as `mteb_tasks`.
    """
    tasks = mteb_tasks(languages=languages, subsets=subsets, conditions=conditions, data=data, text=text)
    description = (
        "Spoken queries to written passages, the same queries clean, in noise at several levels and in rooms: how much"
        " does retrieval lose when the query is spoken? nDCG@10 per condition; `text` is the typed query, the upper"
        " bound."
    )
    benchmark: SqutrBenchmark = load_bridge().make_benchmark(tasks, name=NAME, description=description)
    return benchmark
