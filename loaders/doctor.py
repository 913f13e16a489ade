"""Whether a built folder is whole: its files, its tables, the pairing of its conditions, and its clips on a sample."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import DataError, UsageError
from .clip_checks import Checked, Place, StoredCondition, check_clips
from .content_checks import check_content
from .manifest import Manifest, Shard, read_manifest
from .mixing import check_level
from .records import row_id
from .rirs.table import RIR_COLUMNS, rir_features
from .rows import corpus_features, qrels_features, query_features
from .shard_checks import Finding, Progress, check_shards
from .split_checks import check_divided, check_plan

SAMPLE = 8
"""Utterances per subset and split whose clips are checked under every condition, unless told otherwise."""
ROWS_PER_GROUP = 100
"""The largest row group that the Hub's viewer reads comfortably when rows hold audio."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was looked at, and what is wrong.

    `measured` noisy clips had their SNR measured again, `unmeasured` could not (their partner without noise was not
    built, or the noise is below what 16 bits resolve); `largest_error_db` is NaN where none was measured.
    """

    folder: Path
    fingerprint: str
    shards: int
    bytes: int
    clips: int
    decoded: int
    measured: int
    unmeasured: int
    largest_error_db: float
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return not self.findings


def examine(
    folder: Path, *, sample: int = SAMPLE, everything: bool = False, progress: Progress | None = None
) -> Diagnosis:
    """Check `folder` against its manifest and itself; `sample` utterances per subset and split get their clips decoded
    and their SNR measured. With `everything` all clips are decoded, and all pages of tables compared with their
    checksums.

    Raises `DataError` if there is no manifest to check against, `UsageError` for a negative sample.
    """
    if sample < 0:
        raise UsageError(f"the sample is {sample}.", hint="Give a number of utterances per subset, or 0 for none.")
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist.", hint="Run `squtr build` first, or check the path.")
    manifest = read_manifest(folder)
    findings, whole = check_shards(folder, manifest, progress)
    if everything:
        findings += check_content(folder, list(whole), progress)
    tables = _Tables(folder, manifest, list(whole))
    checked = Checked()
    for number, (subset, language) in enumerate(manifest.subsets.items()):
        findings += tables.corpus_and_qrels(subset, language)
        for split in manifest.splits:
            more, readable = tables.queries(subset, language, split)
            findings += more
            if sample and readable:
                findings += tables.clips(subset, split, readable, sample, checked)
        if progress:
            progress("checking subsets", number + 1, len(manifest.subsets))
    if manifest.strata:
        findings += tables.plan()
    if manifest.recipe["divided"]:
        rows = {split: pa.concat_tables(of) for split, of in tables.divided.items() if of}
        findings += check_divided(rows, shared_speakers=manifest.recipe["shared_speakers"])
    return Diagnosis(
        folder=folder,
        fingerprint=manifest.recipe_fingerprint,
        shards=len(manifest.shards),
        bytes=sum(shard.bytes for shard in manifest.shards),
        clips=sum(shard.rows for shard in manifest.below("queries")),
        decoded=sum(s.rows for s in whole if s.path.startswith("queries/")) if everything else checked.decoded,
        measured=checked.measured,
        unmeasured=checked.unmeasured,
        largest_error_db=max(checked.errors_db, default=math.nan),
        findings=tuple(findings),
    )


class _Tables:
    def __init__(self, folder: Path, manifest: Manifest, whole: Sequence[Shard]) -> None:
        self.folder = folder
        self.manifest = manifest
        self.whole = {shard.path for shard in whole}
        self.rate = int(manifest.recipe["sample_rate"])
        self.draws = int(manifest.recipe["draws"])
        self.query_schema = query_features(self.rate, manifest.recipe["columns"]).arrow_schema
        self.corpus_schema = corpus_features().arrow_schema
        self.qrels_schema = qrels_features().arrow_schema
        self.conditions = [StoredCondition(name, manifest.recipe["steps"][name]) for name in manifest.conditions]
        self.planned: dict[str, list[pa.Table]] = {split: [] for split in manifest.splits}
        """By split, the tables of conditions with a planned RIR that could be read."""
        self.divided: dict[str, list[pa.Table]] = {split: [] for split in manifest.splits}
        """By split, what divided splits may not share, of every table."""

    def shards(self, place: str, split: str) -> list[Shard]:
        """The shards under `place`; [] unless all of them are whole (what is wrong is known already)."""
        listed = self.manifest.below(place, split)
        return listed if all(shard.path in self.whole for shard in listed) else []

    def read(
        self, place: str, schema: pa.Schema, columns: Sequence[str], split: str = "test"
    ) -> tuple[pa.Table | None, list[Finding]]:
        """Some columns of a table, None if it cannot be used, and what is wrong with its form."""
        findings: list[Finding] = []
        pieces = []
        for shard in self.shards(place, split):
            try:
                with pq.ParquetFile(self.folder / shard.path) as file:
                    findings += self._form(file, shard, schema)
                    if not findings:
                        pieces.append(file.read(columns=list(columns)))
            except (OSError, pa.ArrowException) as error:
                findings.append(Finding("unreadable", shard.path, f"{shard.path} cannot be read: {error}"))
        if not self.manifest.below(place, split):
            findings.append(Finding("missing", place, f"the manifest lists no file of {place} for the split {split}"))
        return (pa.concat_tables(pieces) if pieces and not findings else None), findings

    def _form(self, file: pq.ParquetFile, shard: Shard, schema: pa.Schema) -> Iterator[Finding]:
        path, metadata = shard.path, file.metadata
        if metadata.num_rows != shard.rows:
            message = f"{path} has {metadata.num_rows} rows, the manifest says {shard.rows}"
            yield Finding("rows", path, message)
        there = file.schema_arrow
        if there.names != schema.names or there.types != schema.types:
            differing = sorted(set(map(str, there)) ^ set(map(str, schema))) or ["their order"]
            yield Finding("columns", path, f"{path} has other columns than squtr writes: {', '.join(differing)}")
            return
        for name in schema.names:
            nulls = _nulls(file, "audio.bytes" if name == "audio" else name)
            if nulls:
                yield Finding("null", path, f"{path}: {nulls} cells of the column {name} are empty")
        largest = max((metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)), default=0)
        if path.startswith("queries/") and largest > ROWS_PER_GROUP:
            yield Finding("rows", path, f"{path} has a row group of {largest} rows, over {ROWS_PER_GROUP}")

    def corpus_and_qrels(self, subset: str, language: str) -> list[Finding]:
        """Check the corpus and the judgments of a subset; recordings alone have neither."""
        if not any(self.manifest.below(f"{table}/{subset}") for table in ("corpus", "qrels")):
            return []
        corpus, findings = self.read(f"corpus/{subset}", self.corpus_schema, ["id"])
        qrels, more = self.read(f"qrels/{subset}", self.qrels_schema, self.qrels_schema.names)
        findings += more
        place = f"qrels/{subset}"
        if corpus is not None:
            findings += _repeated(corpus.column("id"), f"corpus/{subset}", "document")
        if qrels is None:
            return findings
        pairs = qrels.group_by(["query-id", "corpus-id"]).aggregate([([], "count_all")])
        twice = pairs.filter(pc.greater(pairs.column("count_all"), 1))
        if twice.num_rows:
            first = f"{twice.column('query-id')[0]} and {twice.column('corpus-id')[0]}"
            findings.append(Finding("qrels", place, f"{place} judges {twice.num_rows} pairs twice, first {first}"))
        lowest = pc.min(qrels.column("score")).as_py()
        if lowest is not None and lowest < 0:
            findings.append(Finding("qrels", place, f"{place} has a grade of {lowest}, below 0"))
        if corpus is not None:
            findings += _unknown(qrels.column("corpus-id"), corpus.column("id"), place, "document")
        first_condition = self.manifest.conditions[0]
        there = f"queries/{language}/{subset}/{first_condition}"
        splits = [split for split in self.manifest.splits if self.manifest.below(there, split)]
        queries = [self.read(there, self.query_schema, ["query_id"], split)[0] for split in splits]
        known = [table.column("query_id") for table in queries if table is not None]
        if known and len(known) == len(splits):
            ids = pa.chunked_array([chunk for column in known for chunk in column.chunks])
            findings += _unknown(qrels.column("query-id"), ids, place, "query")
        return findings

    def queries(self, subset: str, language: str, split: str) -> tuple[list[Finding], dict[StoredCondition, pa.Table]]:
        """Check the rows of a subset and their pairing; also returns the readable conditions with their tables."""
        findings: list[Finding] = []
        readable: dict[StoredCondition, pa.Table] = {}
        first: dict[str, tuple[str, pa.Table]] = {}
        columns = [name for name in self.query_schema.names if name != "audio"]
        places = {c: f"queries/{language}/{subset}/{c.name}" for c in self.conditions}
        if len(self.manifest.splits) > 1 and not any(self.manifest.below(p, split) for p in places.values()):
            return [], {}  # no utterance of the subset went to this split
        for condition, place in places.items():
            table, more = self.read(place, self.query_schema, columns, split)
            findings += more
            if table is None:
                continue
            readable[condition] = table
            self.divided[split].append(table.select(["subset", "query_id", "noise_id", "room_id", "speaker"]))
            own = {"subset": subset, "language": language, "condition": condition.name}
            findings += _constants(table, own, place)
            findings += _values(table, condition, place)
            findings += _repeated(table.column("id"), place, "query")
            findings += self._ids(table, condition, place)
            once = table
            if self.manifest.strata or self.draws > 1:
                once = table.take(_firsts(table))
                once = once.set_column(once.schema.get_field_index("id"), "id", once.column("utterance_id"))
            one_draw = table.take(self._first_draws(table, condition)) if self.draws > 1 else table
            if self.manifest.strata and condition.rir:
                self.planned[split].append(one_draw)
            for group, (paired, compared) in _pairings(condition, one_draw, once).items():
                if group not in first:
                    first[group] = (place, paired)
                else:
                    findings += _paired(*first[group], place, paired, compared, told=group != "all")
        return findings, readable

    def _ids(self, table: pa.Table, condition: StoredCondition, place: str) -> list[Finding]:
        """Ids that do not say their utterance and, with a plan, their RIR, or the number of a draw of noise."""
        seen: Counter[str] = Counter()
        for id_, first in zip(table.column("id").to_pylist(), self._first_ids(table, condition), strict=True):
            expected = row_id(first, "", seen[first])
            seen[first] += 1
            if id_ != expected or seen[first] > (self.draws if condition.snr_db is not None else 1):
                return [Finding("ids", place, f"{place}: the row {id_!r} should have the id {expected!r}", id_)]
        return []

    def _first_ids(self, table: pa.Table, condition: StoredCondition) -> list[str]:
        """The id of each row's first draw."""
        planned = bool(self.manifest.strata and condition.rir)
        columns = (table.column(name).to_pylist() for name in ("utterance_id", "rir_id"))
        return [row_id(utterance, rir if planned else "", 0) for utterance, rir in zip(*columns, strict=True)]

    def _first_draws(self, table: pa.Table, condition: StoredCondition) -> list[int]:
        ids = zip(table.column("id").to_pylist(), self._first_ids(table, condition), strict=True)
        return [position for position, (id_, first) in enumerate(ids) if id_ == first]

    def clips(
        self, subset: str, split: str, readable: dict[StoredCondition, pa.Table], sample: int, checked: Checked
    ) -> list[Finding]:
        """Check a sample of the clips."""
        language = self.manifest.subsets[subset]
        names = {condition: f"queries/{language}/{subset}/{condition.name}" for condition in readable}
        places = {
            condition: Place(name, [self.folder / shard.path for shard in self.shards(name, split)])
            for condition, name in names.items()
        }
        rows = {condition.name: _firsts(table) for condition, table in readable.items()}
        level = check_level(self.manifest.recipe["level"])
        return check_clips(subset, places, rows, rate=self.rate, level=level, sample=sample, checked=checked)

    def plan(self) -> list[Finding]:
        """Check the plan: the splits against each other, the strata, and the table of RIRs."""
        findings: list[Finding] = []
        rirs: dict[str, pa.Table] = {}
        for split in self.manifest.splits:
            table, more = self.read("rirs", rir_features().arrow_schema, RIR_COLUMNS, split)
            findings += more
            if table is not None:
                rirs[split] = table
        rows = {split: pa.concat_tables(tables) for split, tables in self.planned.items() if tables}
        return findings + check_plan(self.manifest, rows, rirs)


def _firsts(table: pa.Table) -> list[int]:
    """The positions of the first row of each utterance."""
    found: dict[str, int] = {}
    for position, utterance in enumerate(table.column("utterance_id").to_pylist()):
        found.setdefault(utterance, position)
    return list(found.values())


def _pairings(
    condition: StoredCondition, table: pa.Table, once: pa.Table
) -> dict[str, tuple[pa.Table, tuple[str, ...]]]:
    """The groups of conditions to which one belongs, the rows to compare, and what must be equal within each group.

    `table` has one draw of noise per utterance and RIR, `once` one row per utterance.
    """
    groups: dict[str, tuple[pa.Table, tuple[str, ...]]] = {"all": (once, ("id", "text", "speaker", "voice", "seed"))}
    if condition.snr_db is not None:
        groups["noise"] = (once, ("noise_id", "noise_family", "noise_offset_s"))
    known = len(condition.steps) == (condition.snr_db is not None) + bool(condition.rir)
    # A step of the user's own may change the length.
    groups[f"reverb {condition.rir}"] = (table, ("rir_id", "onset_samples", *(["duration_s"] if known else [])))
    return groups


def _nulls(file: pq.ParquetFile, leaf: str) -> int:
    """Empty cells of a column, from its statistics; a column without them is read."""
    metadata, nulls = file.metadata, 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        for column in (group.column(position) for position in range(group.num_columns)):
            if column.path_in_schema != leaf:
                continue
            if column.statistics is None or not column.statistics.has_null_count:
                cells = file.read_row_group(index, columns=[leaf]).flatten().column(0)
                nulls += cells.null_count
            else:
                nulls += column.statistics.null_count
    return nulls


def _repeated(ids: pa.ChunkedArray, place: str, what: str) -> list[Finding]:
    counts = ids.value_counts()
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    findings = []
    if len(twice):
        first = twice[0]["values"].as_py()
        findings.append(Finding("ids", place, f"{place}: {len(twice)} {what} ids occur twice, first {first!r}", first))
    if pc.any(pc.equal(ids, "")).as_py():
        findings.append(Finding("ids", place, f"{place}: a {what} has no id"))
    return findings


def _unknown(ids: pa.ChunkedArray, known: pa.ChunkedArray, place: str, what: str) -> list[Finding]:
    missing = pc.unique(ids.filter(pc.invert(pc.is_in(ids, value_set=known.combine_chunks()))))
    if not len(missing):
        return []
    first = missing[0].as_py()
    return [Finding("qrels", place, f"{place} names {len(missing)} unknown {what} ids, first {first!r}", first)]


def _constants(table: pa.Table, expected: dict[str, str], place: str) -> list[Finding]:
    return [
        Finding("value", place, f"{place}: the column {name} holds {found} instead of {value!r}")
        for name, value in expected.items()
        if table.num_rows and (found := pc.unique(table.column(name)).to_pylist()) != [value]
    ]


def _values(table: pa.Table, condition: StoredCondition, place: str) -> list[Finding]:
    """Durations, levels, and whether noise and RIR are named exactly where there are some."""
    snr_db, reverb = condition.snr_db, bool(condition.rir)
    noisy = snr_db is not None
    rules: dict[str, tuple[pa.ChunkedArray, str]] = {
        "duration_s": (_positive(table.column("duration_s")), "is not a positive number"),
        "gain_db": (pc.less_equal(table.column("gain_db"), 0.0), "is above 0 or not a number"),
        "onset_samples": (pc.greater_equal(table.column("onset_samples"), 0), "is below 0"),
        "noise_id": (pc.equal(_named(table, "noise_id"), noisy), f"is {'missing' if noisy else 'given'}"),
        "rir_id": (pc.equal(_named(table, "rir_id"), reverb), f"is {'missing' if reverb else 'given'}"),
        "room_id": (pc.equal(_named(table, "room_id"), reverb), f"is {'missing' if reverb else 'given'}"),
        "snr_db": (
            pc.equal(table.column("snr_db"), snr_db) if noisy else pc.is_nan(table.column("snr_db")),
            f"is not {snr_db:g}" if snr_db is not None else "is given",
        ),
    }
    findings = []
    for name, (good, problem) in rules.items():
        bad = table.filter(pc.invert(good))
        if bad.num_rows:
            first, value = bad.column("id")[0].as_py(), bad.column(name)[0].as_py()
            message = f"{place}: {name} {problem} for {bad.num_rows} queries, first {first!r} ({value!r})"
            findings.append(Finding("value", place, message, first))
    return findings


def _positive(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.and_(pc.is_finite(column), pc.greater(column, 0.0))


def _named(table: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.not_equal(table.column(name), "")


def _paired(
    there: str, other: pa.Table, place: str, table: pa.Table, columns: Sequence[str], *, told: bool
) -> list[Finding]:
    """Row for row, the same queries with the same values in `columns`. `told`: other ids were reported already."""
    if not table.column("id").equals(other.column("id")):
        if told:
            return []
        ids, others = table.column("id").to_pylist(), other.column("id").to_pylist()
        alone = sorted(set(ids) ^ set(others))
        if alone:
            side = place if alone[0] in set(ids) else there
            message = f"{place} and {there} differ in {len(alone)} query ids, first {alone[0]!r}, only in {side}"
        elif len(ids) == len(others):
            at = next(index for index, pair in enumerate(zip(ids, others, strict=True)) if pair[0] != pair[1])
            message = f"{place} and {there} have the same queries in another order, first at row {at} ({ids[at]!r})"
        else:
            message = f"{place} has {len(ids)} rows, {there} {len(others)}, of the same queries"
        return [Finding("pairing", place, message, alone[0] if alone else "")]
    findings = []
    for name in columns:
        ours, theirs = table.column(name), other.column(name)
        if ours.equals(theirs):
            continue
        first, values = next(
            (id_.as_py(), (a, b))
            for id_, a, b in zip(table.column("id"), ours.to_pylist(), theirs.to_pylist(), strict=True)
            if a != b
        )
        message = f"{place}: {name} of {first!r} is {values[0]!r}, in {there} {values[1]!r}"
        findings.append(Finding("pairing", place, message, first))
    return findings
