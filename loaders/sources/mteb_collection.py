"""Retrieval data in the form that the Hub's `mteb` organization uses: configs corpus, queries and qrels. Texts only.

It is plain parquet, read with `datasets.load_dataset`; the package mteb is not needed. The config of the judgments is
called `default` or `qrels`, that of the queries `query` or `queries`; ids are `_id` or `id`. A config's split is the
one asked for, or its only one. In a multilingual repository the language stands before each, as `es-corpus`,
`es-queries` and `es-qrels`. These are the layouts of mteb's RetrievalDatasetLoader; `top_ranked` and `instruction`
are not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError, UsageError
from .digests import folder_version
from .names import COMMIT, SourceName, check_language, hub_place
from .rules import OnFault, version_suffix
from .tables import Row, Table, subset_name
from .texts import Part, TextSource

if TYPE_CHECKING:
    import datasets

CONFIGS: Mapping[Part, tuple[str, ...]] = {
    "corpus": ("corpus",),
    "queries": ("query", "queries"),
    "qrels": ("default", "qrels"),
}
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class MtebCollection:
    """One repository (or folder of the same form) as a subset. `revision` is "" for a folder."""

    subset: str
    language: str
    repository: str
    revision: str
    split: str
    license: str = "unknown"
    config: str = ""
    """What stands before its configs in a multilingual repository, where that is not the language."""


PUBLISHED = (
    MtebCollection("fiqa", "en", "mteb/fiqa", "27a168819829fe9bcd655c2df245fb19452e8e06", "test"),
    MtebCollection("hotpotqa", "en", "mteb/hotpotqa", "ab518f4d6fcca38d87c25209f94beba119d02014", "test",
                   "CC-BY-SA-4.0"),
    MtebCollection("nq", "en", "mteb/nq", "b774495ed302d8c44a3a7ea25c90dbce03968f31", "test", "CC-BY-NC-SA-3.0"),
    MtebCollection("medicalretrieval", "zh", "mteb/MedicalRetrieval", "023ae3b2c6b96f583c4ff9b3f9239c93f7885c20",
                   "dev"),
    MtebCollection("duretrieval", "zh", "mteb/DuRetrieval", "313c81b51311893c8fd09ca432f96b841ed0ebb3", "dev",
                   "Apache-2.0"),
    MtebCollection("t2retrieval", "zh", "mteb/T2Retrieval", "cf778c0ea4168ec5174a34d888d6453e4cde9222", "dev",
                   "Apache-2.0"),
)  # fmt: skip
"""The six subsets of SQuTR (arXiv 2602.12783). Commit, split and license as in mteb 2.26.24's task metadata."""


class MtebSource(TextSource):
    def __init__(self, collections: Sequence[MtebCollection], *, name: str = "", on_bad: str = "refuse") -> None:
        self._collections = {collection.subset: collection for collection in collections}
        if len(self._collections) != len(collections) or not collections:
            raise UsageError("the collections have no distinct subset names.", hint="Give each its own.")
        for collection in collections:
            check_language(collection.language)
            if not Path(collection.repository).exists() and not COMMIT.fullmatch(collection.revision):
                raise UsageError(
                    f"{collection.repository} has the revision {collection.revision!r}.",
                    hint="Give the 40 digits of a commit: a branch may move and does not identify the content.",
                )
        first = collections[0]
        name = name or f"mteb:{first.repository if first.revision else first.subset}"
        super().__init__(name, {collection.subset: collection.language for collection in collections}, on_bad)
        splits = {collection.split for collection in collections}
        self.split = ", ".join(sorted(splits))
        self.license = " AND ".join(sorted({collection.license for collection in collections}))

    @cached_property
    def version(self) -> str:
        """A commit; else the first 12 hex digits of the sha256 over a folder's files, or over several versions."""
        versions = [_version(collection) for collection in self._collections.values()]
        whole = versions[0] if len(versions) == 1 else hashlib.sha256("\n".join(versions).encode()).hexdigest()[:12]
        return whole + version_suffix(self.on_bad)

    def judgments_name(self, subset: str) -> str:
        return f"the split {self._collections[subset].split}"

    def examined(self) -> Sequence[str]:
        # Those of other repositories would be downloaded for it.
        repositories = {collection.repository for collection in self._collections.values()}
        return list(self.subsets) if len(repositories) == 1 else list(self._opened)

    def table(self, part: Part, subset: str) -> Table:
        return _table(self._collections[subset], part)


def _version(collection: MtebCollection) -> str:
    choices = " ".join(filter(None, (collection.subset, collection.language, collection.split, collection.config)))
    if not collection.revision:
        return folder_version(Path(collection.repository), choices=choices)
    published = next((p for p in PUBLISHED if p.repository == collection.repository), None)
    defaults = None if published is None else f"{published.subset} {published.language} {published.split}"
    # Choices that the commit does not tell are added to it.
    return collection.revision if choices == defaults else f"{collection.revision} ({choices})"


def _table(collection: MtebCollection, part: Part) -> Table:
    name = f"{collection.repository}@{collection.revision[:8]}" if collection.revision else collection.repository

    def rows(_: OnFault) -> Iterator[Row]:
        number = 0
        for batch in _load(collection, part).iter(batch_size=_ROWS_AT_ONCE):
            keys = list(batch)
            for values in zip(*batch.values(), strict=True):
                number += 1
                yield number, dict(zip(keys, values, strict=True))

    return Table(f"{name}, config {part}", rows, "row")


def _config(collection: MtebCollection, part: Part, known: Sequence[str]) -> str | None:
    """The config of a table, as mteb chooses it: one `query` serves all languages. Those of a language are never read
    together with those of none."""
    prefix = collection.config or collection.language
    if part == "queries" and "query" in known:
        return "query"
    if collection.config or any(f"{prefix}-{table}" in known for table in CONFIGS):
        return f"{prefix}-{part}" if f"{prefix}-{part}" in known else None
    return next((config for config in CONFIGS[part] if config in known), None)


def _prefixes(place: str, revision: str | None) -> list[str]:
    """What stands before the configs of a multilingual repository; none where it cannot be asked, or has configs
    without a language as well."""
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        known = datasets.get_dataset_config_names(place, revision=revision)
    except (DatasetsError, OSError, ValueError):
        # The language has to be named then; what is wrong is told when it is read.
        return []
    if "corpus" in known:
        return []
    return [config.removesuffix("-corpus") for config in known if config.endswith("-corpus")]


def _language_of(prefix: str, name: SourceName) -> str:
    try:
        return check_language(prefix)
    except UsageError as error:
        raise UsageError(
            f"{name.place} has the config {prefix}-corpus, and {prefix!r} is no language code.",
            hint=f"Take the configs one at a time and say their language: {name.kind}:{name.place}?config={prefix}"
            "&language=en (or zh, es, …).",
        ) from error


def _load(collection: MtebCollection, part: Part) -> datasets.Dataset:
    """The table of a part, memory-mapped. Raises `DataError` that says what is missing."""
    import datasets
    from datasets.exceptions import DatasetsError

    place, options = collection.repository, {"revision": collection.revision or None}
    if collection.revision and Path(place).exists():
        # `datasets` would read it in place of the repository.
        raise DataError(f"a path {place} exists here and hides the repository.", hint="Run from another folder.")
    try:
        known = datasets.get_dataset_config_names(place, **options)
        config = _config(collection, part, known)
        if config is None:
            prefix = collection.config or collection.language
            raise DataError(
                f"{place} has no config {' or '.join((*CONFIGS[part], f'{prefix}-{part}'))}.",
                hint=f"It has: {', '.join(known)}. Choose another.",
            )
        splits = datasets.get_dataset_split_names(place, config, **options)
        split = collection.split if collection.split in splits else splits[0]
        if split != collection.split and len(splits) > 1:
            raise DataError(
                f"{place} has no split {collection.split!r} in its config {config}.",
                hint=f"Choose one with ?split=…: {', '.join(splits)}.",
            )
        columns: Any = datasets.load_dataset(place, config, split=split, **options)
    except DataError:
        raise
    except (DatasetsError, OSError, ValueError) as error:
        revision = f" at {collection.revision}" if collection.revision else ""
        raise DataError(
            f"{place}{revision} cannot be loaded: {error}".rstrip(".") + ".", hint="Check name, commit and network."
        ) from error
    return columns


def open_mteb(name: SourceName) -> MtebSource:
    """The source `mteb`, `mteb:ORG/NAME@COMMIT` or `mteb:FOLDER`, with `language`, `split`, `subset` and `license`."""
    if not name.place:
        if name.options.keys() - {"speech", "missing"}:
            raise UsageError(
                f"the source {name.text!r} has options but no repository.", hint="Write mteb:org/name@<commit>?…."
            )
        return MtebSource(PUBLISHED, name="mteb", on_bad=name.on_bad)
    place, revision = hub_place(name, {collection.repository: collection.revision for collection in PUBLISHED})
    if revision is None:
        published = None
        subset = subset_name(name.option("subset") or Path(place).resolve().name)
    else:
        published = next((c for c in PUBLISHED if c.repository == place), None)
        subset = name.option("subset") or (published.subset if published else str(place).partition("/")[2])
        subset = subset_name(subset)
    language = name.option("language") or (published.language if published else "")
    if not language and not name.option("config") and (prefixes := _prefixes(str(place), revision)):
        return MtebSource(
            [
                MtebCollection(
                    f"{subset}-{subset_name(prefix)}",
                    _language_of(prefix, name),
                    str(place),
                    revision or "",
                    name.option("split", "test"),
                    name.option("license", "unknown"),
                    prefix,
                )
                for prefix in prefixes
            ],
            name=f"mteb:{place if revision else subset}",
            on_bad=name.on_bad,
        )
    collection = MtebCollection(
        subset=subset,
        language=language or name.language(f"{place}"),
        repository=str(place),
        revision=revision or "",
        split=name.option("split") or (published.split if published else "test"),
        license=name.option("license") or (published.license if published else "unknown"),
        config=name.option("config"),
    )
    return MtebSource([collection], on_bad=name.on_bad)
