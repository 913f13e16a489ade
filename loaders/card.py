"""The card of a built data set: `README.md` with the `configs:` that `datasets` and the Hub read."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .conditions import TEXT
from .licenses import OTHER, merge_licenses
from .manifest import Manifest

REPOSITORY_PLACEHOLDER = "PATH OR ORG/NAME"
"""Stands in a card for where the data set lies; `squtr push` puts the repository there."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

STATISTICS_COLUMNS = [
    "duration_s", "snr_db", "snr_active_db", "rt60_s", "noise_family", "voice", "tts_error_rate",
]  # fmt: skip


def dataset_card(manifest: Manifest, folder: Path) -> str:
    """The card of the data set whose shards lie in `folder`; every figure in it is read back from the shards."""
    recipe, subsets = manifest.recipe, manifest.subsets
    tables = {
        (subset, condition): pq.read_table(
            [folder / s.path for s in _shards(manifest, f"queries/{language}/{subset}/{condition}/")],
            columns=STATISTICS_COLUMNS,
            partitioning=None,
        )
        for subset, language in subsets.items()
        for condition in manifest.conditions
    }
    first = next(iter(manifest.conditions))
    example = f"{next(iter(subsets.values()))}_{first}"
    template = Template((files("squtr") / "dataset_cards" / "built.md.template").read_text(encoding="utf-8"))
    return template.substitute(
        configs="\n".join(_configs(manifest)),
        languages="\n".join(f"- {language}" for language in dict.fromkeys(subsets.values())),
        source=recipe["source"],
        source_version=recipe["source_version"],
        license="\n".join(_license(recipe)),
        pretty_name=json.dumps(f"Paired spoken queries from {recipe['source']}", ensure_ascii=False),
        size=size_category(sum(table.num_rows for table in tables.values())),
        licenses="\n".join(_licenses(recipe)),
        seed=recipe["seed"],
        level=recipe["level"],
        recipe_version=recipe["recipe_version"],
        fingerprint=manifest.recipe_fingerprint,
        squtr_version=manifest.squtr_version,
        counts="\n".join(_counts(manifest)),
        statistics="\n".join(_statistics(tables)),
        noises="\n".join(_noises(tables)),
        voices="\n".join(_voices(tables, first, subsets)),
        example=example,
        example_subset=next(iter(subsets)),
    )


def _shards(manifest: Manifest, prefix: str) -> list[Any]:
    return [shard for shard in manifest.shards if shard.path.startswith(prefix)]


def config_patterns(manifest: Manifest) -> dict[str, list[str]]:
    """Config name to the patterns of its files, in query order: nothing is stored twice."""
    subsets = manifest.subsets
    patterns: dict[str, list[str]] = {}
    for language in dict.fromkeys(subsets.values()):
        for condition in manifest.conditions:
            patterns[f"{language}_{condition}"] = [
                f"queries/{language}/{subset}/{condition}/*.parquet" for subset, of in subsets.items() if of == language
            ]
    for subset, language in subsets.items():
        for condition in manifest.conditions:
            patterns[f"{subset}_{condition}"] = [f"queries/{language}/{subset}/{condition}/*.parquet"]
    for subset in subsets:
        for table in ("corpus", "qrels"):
            # Recordings alone have neither.
            if _shards(manifest, f"{table}/{subset}/"):
                patterns[f"{subset}-{table}"] = [f"{table}/{subset}/*.parquet"]
    return patterns


def retrieval_patterns(manifest: Manifest) -> dict[str, tuple[list[str], list[str]]]:
    """The configs that `mteb` loads, by name: the patterns of their files, and the columns that are read (all if none).

    `mteb` reads a retrieval task's config (`fiqa_clean`, and `fiqa_text` for the typed queries) as `<config>-queries`,
    `<config>-corpus` and `<config>-qrels`, and hands every column of the queries to the model. So `-queries` has the id
    and the sound alone (or the text alone): no transcript, and nothing about condition, noise or room.
    """
    patterns: dict[str, tuple[list[str], list[str]]] = {}
    for subset, language in manifest.subsets.items():
        if not all(_shards(manifest, f"{table}/{subset}/") for table in ("corpus", "qrels")):
            continue
        for condition in (*manifest.conditions, TEXT):
            spoken = manifest.conditions[0] if condition == TEXT else condition
            columns = ["id", "text" if condition == TEXT else "audio"]
            config = f"{subset}_{condition}"
            patterns[f"{config}-queries"] = ([f"queries/{language}/{subset}/{spoken}/*.parquet"], columns)
            for table in ("corpus", "qrels"):
                patterns[f"{config}-{table}"] = ([f"{table}/{subset}/*.parquet"], [])
    return patterns


def _configs(manifest: Manifest) -> list[str]:
    lines: list[str] = []
    whole = {name: (patterns, list[str]()) for name, patterns in config_patterns(manifest).items()}
    for name, (patterns, columns) in (whole | retrieval_patterns(manifest)).items():
        lines += [f"- config_name: {name}", "  data_files:", "  - split: test", "    path:"]
        lines += [f"    - {pattern}" for pattern in patterns]
        if columns:
            lines.append(f"  columns: [{', '.join(columns)}]")
    return lines


def _license(recipe: dict[str, Any]) -> list[str]:
    """The `license:` of the metadata: the strictest of what the clips were made from."""
    parts = [recipe["license"], *(recipe[f"{part}_license"] for part in ("noise", "rirs") if recipe[part])]
    merged = merge_licenses(parts)
    if merged != OTHER:
        return [f"license: {merged}"]
    return [f"license: {OTHER}", "license_name: see-the-table-of-licenses"]


def size_category(clips: int) -> str:
    """The Hub's size category.

    >>> size_category(999), size_category(149_268), size_category(2_000_000)
    ('n<1K', '100K<n<1M', '1M<n<10M')
    """
    return next((name for limit, name in _SIZES if clips < limit), "1M<n<10M")


def _licenses(recipe: dict[str, Any]) -> list[str]:
    lines = [f"| source `{recipe['source']}` | {recipe['license']} |"]
    if recipe["noise"]:
        lines.append(f"| noise `{recipe['noise']}` | {recipe['noise_license']} |")
    if recipe["rirs"]:
        lines.append(f"| RIRs `{recipe['rirs']}` | {recipe['rirs_license']} |")
    return lines


def _counts(manifest: Manifest) -> list[str]:
    lines = []
    for subset, language in manifest.subsets.items():
        rows = [
            sum(shard.rows for shard in _shards(manifest, prefix))
            for prefix in (
                f"queries/{language}/{subset}/{manifest.conditions[0]}/",
                f"corpus/{subset}/",
                f"qrels/{subset}/",
            )
        ]
        lines.append(f"| {subset} | {language} | " + " | ".join(f"{n:,}" for n in rows) + " |")
    return lines


def _mean(table: pa.Table, column: str) -> str:
    values = [v for v in table.column(column).to_pylist() if not math.isnan(v)]  # NaN is "does not apply"
    return f"{sum(values) / len(values):.2f}" if values else "–"


def _statistics(tables: dict[tuple[str, str], pa.Table]) -> list[str]:
    return [
        f"| {subset} | {condition} | {table.num_rows:,} | {pc.sum(table.column('duration_s')).as_py() / 60:.1f} "
        f"| {_mean(table, 'snr_db')} | {_mean(table, 'snr_active_db')} | {_mean(table, 'rt60_s')} |"
        for (subset, condition), table in tables.items()
    ]


def _noises(tables: dict[tuple[str, str], pa.Table]) -> list[str]:
    counts: dict[str, int] = {}
    for table in tables.values():
        for family in table.column("noise_family").to_pylist():
            if family:
                counts[family] = counts.get(family, 0) + 1
    return [f"| {family} | {count:,} |" for family, count in sorted(counts.items())] or ["| none | 0 |"]


def _voices(tables: dict[tuple[str, str], pa.Table], condition: str, subsets: dict[str, str]) -> list[str]:
    lines = []
    for subset, language in subsets.items():
        table = tables[subset, condition]
        counts: dict[str, int] = {}
        for voice in table.column("voice").to_pylist():
            if voice:
                counts[voice] = counts.get(voice, 0) + 1
        voices = ", ".join(f"{voice} ({count})" for voice, count in sorted(counts.items())) or "–"
        lines.append(f"| {subset} | {language} | {voices} | {_mean(table, 'tts_error_rate')} |")
    return lines
