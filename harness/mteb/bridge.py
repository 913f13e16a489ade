"""All that needs `mteb` itself, called with plain values. Only `versions.load_bridge` imports it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import datasets
import mteb
from mteb._create_dataloaders import create_dataloader
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.benchmarks._create_table import SummaryTable, _borda_rank_from_long, _meta_df_no_zs
from mteb.benchmarks.benchmark import Benchmark, BenchmarkAggregation, CustomGroup, CustomGrouping
from mteb.models import (
    CrossEncoderProtocol,
    EncoderProtocol,
    ModelMeta,
    MultiVectorSearchEncoderWrapper,
    SearchCrossEncoderWrapper,
    SearchEncoderWrapper,
    SearchProtocol,
)
from mteb.models.model_implementations.pylate_models import PylateSearchEncoder
from mteb.results import TaskResult
from mteb.timing import TimingStack
from mteb.types import PromptType

from ...errors import DataError, ModelError
from ...loaders.conditions import TEXT
from ...loaders.home import squtr_home
from ...loaders.records import SAMPLE_RATE
from ..components.loading_report import HEADS, POOLERS, UNUSED_OF, check_loading, recorded_loading
from ..components.weights import published_name
from .catalog import CITATION, ORIGINALS, PUBLISHED, REFERENCE, TaskInfo, condition_label, mteb_license
from .search import CorpusOnce, QueryCounts, search_all
from .task_data import TaskData, decoded
from .workspace import Workspace

if TYPE_CHECKING:
    import polars as pl
    from datasets import Dataset
    from mteb.types.statistics import DescriptiveStatistics

SPLIT = "test"
Model = Any


class _Audio(datasets.Audio):  # type: ignore[misc]
    """Audio that soundfile decodes when a row is read. Unlike a transform, it leaves other columns alone."""

    def decode_example(self, value: Mapping[str, Any], token_per_repo_id: Any = None) -> dict[str, Any]:
        del token_per_repo_id
        return decoded(value, "the audio of a query")


def with_audio(rows: Dataset) -> Dataset:
    """These rows, with `audio` decoded as they are read."""
    return rows.cast_column("audio", _Audio(sampling_rate=SAMPLE_RATE))


class _Metadata(TaskMetadata):
    """Metadata whose descriptive statistics are kept in `$SQUTR_HOME`, not inside the installed package."""

    @property
    def descriptive_stat_path(self) -> Path:
        """One file per task and revision of its data."""
        return squtr_home() / "mteb" / "descriptive_stats" / self.revision / f"{self.name}.json"


class SqutrTask(AbsTaskRetrieval):
    """Spoken (or typed) queries of one subset to its passages; mteb's subsets are the conditions."""

    info: TaskInfo
    data: TaskData

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._workspace = Workspace()
        self._counts = QueryCounts()
        self._once: CorpusOnce | None = None
        self._searches = 0

    def load_data(self, num_proc: int | None = None, *, timer: TimingStack | None = None, **_: Any) -> None:
        """Load the chosen conditions, without the queries that have no relevant document."""
        if self.data_loaded:
            return
        with (timer or TimingStack())("Data loading", log_message=f"Loading {self.metadata.name}..."):
            subset = self.info.subset
            corpus = self.data.corpus(subset)
            judged = {q: g for q, g in self.data.qrels(subset).items() if any(grade > 0 for grade in g.values())}
            self.dataset = {}
            for config in self.hf_subsets:
                queries = self._queries(self.info.configs[config])
                kept = [i for i, id_ in enumerate(queries["id"]) if id_ in judged]
                queries = queries.select(kept)
                relevant = {id_: judged[id_] for id_ in queries["id"]}
                if not relevant:
                    raise DataError(f"no query of {config} has a relevant document.", hint="Check the judgments.")
                self.dataset[config] = {
                    SPLIT: {"corpus": corpus, "queries": queries, "relevant_docs": relevant, "top_ranked": None}
                }
        self.dataset_transform(num_proc=num_proc)
        self.data_loaded = True

    def _queries(self, condition: str) -> Dataset:
        if condition == TEXT:
            return self.data.typed(self.info.subset)
        return with_audio(self.data.spoken(self.info.subset, condition, self._workspace))

    def calculate_descriptive_statistics(
        self, overwrite_results: bool = False, num_proc: int | None = None
    ) -> dict[str, DescriptiveStatistics]:
        if len(self.hf_subsets) < len(self.info.configs):
            whole = make_task(self.info, self.data, list(self.info.configs))
            return whole.calculate_descriptive_statistics(overwrite_results, num_proc)
        return super().calculate_descriptive_statistics(overwrite_results, num_proc)

    def unload_data(self) -> None:
        self._once = None
        super().unload_data()
        self._workspace.close()

    def _evaluate_subset(self, model: Model, data_split: Any, **rest: Any) -> Any:
        self._counts = QueryCounts()
        return super()._evaluate_subset(self._searching(model), data_split, **rest)

    def _searching(self, model: Model) -> SearchProtocol:
        """The model as one that searches with every query, told of the first condition whichever it is."""
        shown = next(iter(self.info.configs))
        if isinstance(model, EncoderProtocol) and not isinstance(model, SearchProtocol):
            encoder = cast(EncoderProtocol, self._corpus_once(model, model.encode))
            return _Search(SearchEncoderWrapper(encoder), shown, self._counts)
        if isinstance(model, CrossEncoderProtocol):
            return _Search(SearchCrossEncoderWrapper(model), shown, self._counts)
        if not isinstance(model, SearchProtocol):
            raise ModelError(
                f"{type(model).__name__} is no model of mteb.",
                hint="Give an encoder, a cross-encoder or something with `index` and `search` (see squtr.mteb_model).",
            )
        return _Search(self._remembering(model), shown, self._counts)

    def _corpus_once(self, model: Model, encode: Any) -> CorpusOnce:
        if self._once is None or self._once.model is not model:
            self._once = CorpusOnce(model, self._workspace, encode=encode)
        return self._once

    def _remembering(self, model: SearchProtocol) -> SearchProtocol:
        """A model with several vectors per text, made to encode documents once; any other as it is."""
        if not isinstance(model, MultiVectorSearchEncoderWrapper | PylateSearchEncoder):
            return model
        alike: Any = copy.copy(model)
        alike._encode = self._corpus_once(model, alike._encode).encode
        if isinstance(model, PylateSearchEncoder):
            # It indexes on disk under the name of the condition, which is the same for all here.
            self._searches += 1
            alike.base_index_dir = self._workspace.folder() / f"index-{self._searches}"
        return cast(SearchProtocol, alike)

    def task_specific_scores(self, *_: Any, **__: Any) -> dict[str, float]:
        """How many queries there were, could not be decoded, and found nothing; the last two score 0."""
        counts = self._counts
        return {
            "n_queries": counts.queries,
            "undecodable_queries": counts.undecodable,
            "queries_without_hits": counts.empty,
        }


class _Search:
    def __init__(self, model: SearchProtocol, shown: str, counts: QueryCounts) -> None:
        self._model, self._shown, self._counts = model, shown, counts

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self._model.mteb_model_meta

    def index(self, corpus: Any, *, hf_subset: str, **rest: Any) -> None:
        self._model.index(corpus, hf_subset=self._shown, **rest)

    def search(self, queries: Any, *, hf_subset: str, **rest: Any) -> Any:
        return search_all(self._model.search, queries, self._counts, hf_subset=self._shown, **rest)


def make_task(info: TaskInfo, data: TaskData, configs: Sequence[str]) -> SqutrTask:
    cls = type(info.name, (SqutrTask,), {"metadata": _metadata(info, data), "info": info, "data": data})
    task = cast(SqutrTask, cls())
    task.hf_subsets = [config for config in info.configs if config in configs]
    return task


def _metadata(info: TaskInfo, data: TaskData) -> TaskMetadata:
    original = mteb.get_task(ORIGINALS[info.subset]).metadata if info.subset in ORIGINALS else None
    domains: list[Any] = list(original.domains or ()) if original else ["Written"]
    citations = [CITATION, *([original.bibtex_citation or ""] if original else [])]
    return _Metadata(
        name=info.name,
        description=info.description,
        dataset={"path": info.path, "revision": info.revision},
        reference=REFERENCE,
        type="Any2AnyRetrieval" if info.spoken else "Retrieval",
        category="a2t" if info.spoken else "t2t",
        modalities=["audio", "text"] if info.spoken else ["text"],
        prompt=original.prompt if original else None,
        eval_splits=[SPLIT],
        eval_langs={config: [info.tag] for config in info.configs},
        main_score="ndcg_at_10",
        date=PUBLISHED if original else None,
        domains=[*domains, "Spoken"] if info.spoken else domains,
        task_subtypes=["Question answering", "Speech Retrieval"] if info.spoken else ["Question answering"],
        license=mteb_license(data.licenses),
        annotations_creators="derived",
        dialect=[],
        sample_creation="created" if info.spoken else "found",
        bibtex_citation="\n\n".join(filter(None, citations)),
        adapted_from=[ORIGINALS[info.subset]] if original else None,
        contributed_by="SQuTR",
        is_public=True,
    )


class SqutrBenchmark(Benchmark):
    """A benchmark whose tables have a column per condition and per language, and models that mteb's registry lacks."""

    def _create_summary_table(self, pl_df: pl.DataFrame) -> SummaryTable:
        import polars as pl

        cells = _cell_means(pl_df)
        if not cells:
            return SummaryTable(df=pl.DataFrame({"No results": ["There are no results."]}), is_empty=True)
        rows = [{"Model": name, **self._columns(means, prefix="__cg__")} for name, means in cells.items()]
        table = pl.DataFrame(rows, infer_schema_length=None)
        ranks = _borda_rank_from_long(
            pl_df.with_columns(pl.col("score").fill_nan(None)), partition_col="task_name", n_models=len(cells)
        ).rename({"model_name": "Model"})
        known = _meta_df_no_zs().drop("_model_link", strict=False).rename({"model_name": "Model"})
        columns = [c for c in table.columns if c != "Model"]
        about = [c for c in known.columns if c not in {"Model", "Release Date"}]
        joined = table.join(ranks.with_columns(pl.col("Model").cast(pl.String)), on="Model", how="left").join(
            known, on="Model", how="left"
        )
        order = ["Rank (Borda)", "Model", *about, *columns, "Release Date"]
        return SummaryTable(
            df=joined.select([c for c in order if c in joined.columns]).sort("Rank (Borda)", nulls_last=True),
            task_type_mean_col=None,
            custom_group_cols={
                grouping.name: tuple(f"__cg__{grouping.name}::{group.label}" for group in grouping.groups)
                for grouping in self._groupings
            },
        )

    def _get_model_score(self, model_result: Any) -> dict[str, float | None]:
        results = model_result.select_tasks(self.tasks).task_results
        if len(results) < len(self.tasks):
            raise ValueError("Results of some tasks are missing: evaluate the model on all tasks of the benchmark.")
        means = {
            (result.task_name, score["hf_subset"]): _number(score["main_score"])
            for result in results
            for scores in result.scores.values()
            for score in scores
        }
        columns = self._columns(means, prefix="")
        return {name.replace("Mean (Task)", "Mean(Task)"): value for name, value in columns.items()}

    @property
    def _groupings(self) -> list[CustomGrouping]:
        return [aggregation for aggregation in self.aggregations if isinstance(aggregation, CustomGrouping)]

    def _columns(self, means: Mapping[tuple[str, str], float | None], *, prefix: str) -> dict[str, float | None]:
        """The mean over the spoken tasks, and over every group; null where a part of it is missing."""
        spoken = [task for task in self.tasks if "audio" in task.metadata.modalities] or list(self.tasks)
        columns = {"Mean (Task)": _mean([_task_mean(task, means) for task in spoken])}
        for grouping in self._groupings:
            for group in grouping.groups:
                columns[f"{prefix}{grouping.name}::{group.label}"] = _mean([_task_mean(t, means) for t in group.tasks])
        return columns


def _cell_means(pl_df: pl.DataFrame) -> dict[str, dict[tuple[str, str], float | None]]:
    """By model: the score of every task and condition."""
    cells: dict[str, dict[tuple[str, str], float | None]] = {}
    if "model_name" in pl_df.columns:
        for name, task, subset, score in pl_df.select("model_name", "task_name", "subset", "score").iter_rows():
            cells.setdefault(str(name), {})[str(task), str(subset)] = _number(score)
    return cells


def _number(score: Any) -> float | None:
    return None if score is None or score != score else float(score)  # noqa: PLR0124  (NaN is not itself)


def _task_mean(task: Any, means: Mapping[tuple[str, str], float | None]) -> float | None:
    return _mean([means.get((task.metadata.name, config)) for config in task.hf_subsets])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def make_benchmark(tasks: Sequence[SqutrTask], *, name: str, description: str) -> SqutrBenchmark:
    conditions: dict[str, list[Any]] = {}
    languages: dict[str, list[Any]] = {}
    for task in tasks:
        languages.setdefault(task.info.tag, []).extend([task] if task.info.spoken else [])
        for config in task.hf_subsets:
            part = make_task(task.info, task.data, [config])
            conditions.setdefault(task.info.configs[config], []).append(part)
    groups = [
        CustomGrouping("Condition", [CustomGroup(condition_label(c), parts) for c, parts in conditions.items()]),
        CustomGrouping("Language", [CustomGroup(tag, parts) for tag, parts in languages.items() if parts]),
    ]
    return SqutrBenchmark(
        name=name,
        display_name="SQuTR",
        tasks=list(tasks),
        description=description,
        reference=REFERENCE,
        citation=CITATION,
        language_view=list(languages),
        aggregations=[BenchmarkAggregation.MEAN_TASK, *(g for g in groups if g.groups)],
    )


def model_meta(fields: Mapping[str, Any]) -> ModelMeta:
    """mteb's metadata of a model; what `fields` lacks is unknown. Raises `ModelError` for a value that mteb refuses."""
    try:
        return ModelMeta.model_validate({**ModelMeta.create_empty().model_dump(), **fields})
    except ValueError as error:
        raise ModelError(f"mteb refuses the metadata of {fields.get('name')}: {_one_line(error)}.") from error


def find_model(name: str, *, revision: str | None) -> ModelMeta:
    """The metadata of a model that mteb knows or finds on the Hub. Raises `ModelError`."""
    try:
        return mteb.get_model_meta(name, revision=revision)
    except Exception as error:  # whatever its libraries raise
        raise ModelError(
            f"mteb does not find the model {name!r}: {_one_line(error)}.", hint="Check its name (ORG/NAME)."
        ) from error


def load_model(meta: ModelMeta, *, device: str | None) -> Model:
    """The loaded model. Raises `ModelError`, also for weights that it lacks or leaves."""
    try:
        with recorded_loading() as loaded:
            model = meta.load_model(device=device)
    except Exception as error:  # whatever its models raise
        raise ModelError(f"mteb cannot load {meta.name}: {_one_line(error)}.") from error
    for one in loaded:
        left = UNUSED_OF.get(published_name(str(meta.name)), ())
        check_loading(one, name=str(meta.name), unused=(*HEADS, *left), absent=POOLERS)
    return model


def encode(model: Model, rows: Dataset, *, tag: str, audio: bool, role: str, batch_size: int) -> Any:
    """What an mteb encoder makes of these rows (`id` and `audio`, or `id` and `text`), in order."""
    metadata = _encoding_task(tag, audio=audio)
    prompt_type = PromptType(role)
    loader = create_dataloader(rows, task_metadata=metadata, prompt_type=prompt_type, batch_size=batch_size)
    return model.encode(
        loader,
        task_metadata=metadata,
        hf_split=SPLIT,
        hf_subset="default",
        prompt_type=prompt_type,
        batch_size=batch_size,
        show_progress_bar=False,
    )


def _encoding_task(tag: str, *, audio: bool) -> TaskMetadata:
    """A task to encode for outside mteb: it has no prompt of its own."""
    return TaskMetadata(
        name="SQuTRAudio" if audio else "SQuTRText",
        description="Spoken queries to written passages." if audio else "Typed queries to written passages.",
        dataset={"path": "squtr", "revision": "none"},
        type="Any2AnyRetrieval" if audio else "Retrieval",
        category="a2t" if audio else "t2t",
        modalities=["audio", "text"] if audio else ["text"],
        eval_langs=[tag],
        main_score="ndcg_at_10",
    )


def _one_line(error: Exception) -> str:
    # A KeyError shows its message in quotes.
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(message).split()).rstrip(".") or type(error).__name__


def refusal(path: Path, *, meta: bool) -> str:
    """Why mteb does not load a file as `TaskResult` (or `ModelMeta`), in one line; "" if it does."""
    try:
        content = path.read_text(encoding="utf-8")
        if meta:
            ModelMeta.model_validate_json_resolved(content)
        else:
            TaskResult.model_validate_json(content)
    except (OSError, ValueError, TypeError, KeyError) as error:
        return _one_line(error)
    return ""


def unknown_to_registry(tasks: Sequence[str], models: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of these names of tasks and of models that mteb's own registries do not have."""
    own = {meta.name for meta in mteb.get_model_metas()}
    unknown = []
    for name in tasks:
        try:
            mteb.get_task(name)
        except KeyError:
            unknown.append(name)
    return unknown, [name for name in models if name not in own]
