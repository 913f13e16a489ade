"""The Hub's own format of evaluation results: `.eval_results/squtr.yaml` in the repository of a model.

Each entry names a data set whose `eval.yaml` makes it a benchmark, one of its tasks, and a value; the Hub shows it on
the model's page and in the data set's ranking (https://huggingface.co/docs/hub/eval-results). It is about one model, so
only systems with one are taken: an audio-text encoder, or a transcriber with a lexical retriever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import DataError, UsageError
from ..harness.results.envelope import TEXT_CONDITION, Group, Result, Score
from ..loaders.hub.evaluation_file import SPLIT, task_name
from ..loaders.hub.repository import HUB_ADDRESS, Repository, Sent, is_repository
from .entry import from_result, hub_link
from .findings import number
from .stored import StoredResult

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

PATH = ".eval_results/squtr.yaml"
_MOST_BYTES = 2**20
_REVISION = re.compile(r"[0-9a-f]{40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class EvalResults:
    """What is to be written into the repository of `model`: the entries, and the file's content without others'."""

    model: str
    entries: tuple[EvalResultEntry, ...]

    def content(self, before: bytes | None = None) -> bytes:
        """The file. Entries of `before` that are about other tasks, data sets or settings (`notes`) stay.

        Raises `DataError` if `before` is not in the Hub's format.
        """
        import yaml
        from huggingface_hub import eval_result_entries_to_yaml

        ours = eval_result_entries_to_yaml(list(self.entries))
        kept = [entry for entry in _read(before) if _key(entry) not in set(map(_key, ours))] if before else []
        text: str = yaml.safe_dump([*kept, *ours], allow_unicode=True, sort_keys=False, width=120)
        return text.encode("utf-8")


def one_model(result: Result) -> str:
    """The name on the Hub of a system's only model. Raises `UsageError` if it has none there, or several."""
    named = {
        model.name
        for model in from_result(result).models
        # A component without weights (BM25) names no model.
        if result.system.components[model.role].get("model")
    }
    if len(named) != 1:
        shown = ", ".join(sorted(named)) or "none"
        raise UsageError(
            f"{result.system.name!r} has {len(named)} models ({shown}), and the Hub's results are about one.",
            hint="Leave --eval-results out, or name the results of a system with one model.",
        )
    (name,) = named
    if not hub_link(name):
        raise UsageError(
            f"the model {name!r} of {result.system.name!r} is no name on the Hub.", hint="Leave --eval-results out."
        )
    return name


def prepare_eval_results(stored: Sequence[StoredResult], *, data_set: str, results: str = "") -> list[EvalResults]:
    """The entries of these results by model: the main score of every subset under every spoken condition.

    `data_set` is the benchmark's name on the Hub, whose `eval.yaml` lists the tasks; `results` the store in which the
    values can be looked up. Raises `UsageError` if a system is not one model, or nothing is there to write.
    """
    if not is_repository(data_set):
        raise UsageError(f"{data_set!r} is no data set on the Hub.", hint="Name it: --data-set ORG/NAME.")
    by_model: dict[str, list[EvalResultEntry]] = {}
    for one in stored:
        result = Result.model_validate(one.result)
        # Tasks of an eval.yaml are subsets under a condition, which retrieval has.
        if result.task != "retrieval" or result.data.condition == TEXT_CONDITION or result.data.partial:
            continue
        entries = by_model.setdefault(one_model(result), [])
        done = {(entry.task_id, entry.notes) for entry in entries}
        for group in result.by_group.get("subset", []):
            score = group.scores.get(result.main_metric)
            if score is None or score.value is None:
                continue
            entry = _entry(result, group, score, data_set=data_set, results=results, date=one.submitted)
            if (entry.task_id, entry.notes) not in done:
                entries.append(entry)
    found = [EvalResults(model, tuple(entries)) for model, entries in by_model.items() if entries]
    if not found:
        raise UsageError(
            "none of these results covers all spoken queries of a config.", hint="Leave --eval-results out."
        )
    return found


def _entry(result: Result, group: Group, score: Score, *, data_set: str, results: str, date: str) -> EvalResultEntry:
    from huggingface_hub import EvalResultEntry

    revision = result.data.revision
    source = f"{HUB_ADDRESS}/datasets/{results}" if is_repository(results) else ""
    failed = f", of which {count} failed" if (count := group.counts.get("failed", 0)) else ""
    interval = f", 95 % interval {number(score.low)} to {number(score.high)}" if score.low is not None else ""
    return EvalResultEntry(
        dataset_id=data_set,
        task_id=f"{task_name(group.label)}_{group.label}_{result.data.condition}_{SPLIT}",
        value=score.value,
        dataset_revision=revision if _REVISION.fullmatch(revision) else None,
        date=date,
        source_url=source or None,
        source_name="squtr results" if source else None,
        notes=f"{result.main_metric} of {result.system.name}, n = {score.n}{failed}{interval}",
    )


def send_eval_results(found: EvalResults, repository: Repository | None = None) -> Sent:
    """Open a pull request on the model's repository. What is in the file already stays."""
    target = repository or Repository(found.model, "model")
    content = found.content(target.read(PATH))
    count = len(found.entries)
    return target.propose(
        {PATH: content},
        title=f"Add {count} result{'s' if count != 1 else ''} of squtr",
        description="Measured with squtr. The notes of each result name its metric, system and number of items.",
        replacing=True,
    )


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """What an entry is about: data set, task, and the system in the first words of its notes."""
    data_set = entry.get("dataset")
    block = data_set if isinstance(data_set, Mapping) else {}
    return str(block.get("id")), str(block.get("task_id")), str(entry.get("notes", "")).partition(", n = ")[0]


def _read(content: bytes) -> list[dict[str, Any]]:
    import yaml

    hint = f"Mend {PATH} of the model's repository first."
    if len(content) > _MOST_BYTES:
        raise DataError(f"{PATH} has {len(content)} bytes.", hint=hint)
    try:
        # The safe loader knows no tags that make objects.
        found = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{PATH} of the model is no YAML: {' '.join(str(error).split())[:120]}.", hint=hint) from error
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise DataError(f"{PATH} of the model is no list of results.", hint=hint)
    return found
