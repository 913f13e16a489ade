"""The card of the benchmark's data: `README.md` with the `configs:` that `datasets` and the Hub read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..card import size_category
from ..licenses import OTHER, merge_licenses
from .manifest import FOLDER, ROOMS_FOLDER, PairManifest, Stratum
from .plan import SPLITS
from .rows import COLUMNS, CONFIGS, ROOMS_CONFIG

_UNITS = {"rt60_s": "s", "drr_db": "dB"}


def pair_card(manifest: PairManifest, folder: Path) -> str:
    """The card of the data set whose shards lie in `folder`; the statistics are read back from the shards."""
    recipe = manifest.recipe
    template = Template((files("squtr") / "dataset_cards" / "rir_mega.md.template").read_text(encoding="utf-8"))
    return template.substitute(
        configs="\n".join(_configs()),
        languages="\n".join(f"- {language}" for language in dict.fromkeys(manifest.subsets.values())),
        license="\n".join(_license(recipe)),
        pretty_name=json.dumps(f"{recipe['speech']}, clean and in rooms of {recipe['rirs']}", ensure_ascii=False),
        size=size_category(sum(split.pairs for split in manifest.pair_splits.values())),
        speech=recipe["speech"],
        speech_version=recipe["speech_version"],
        rirs=recipe["rirs"],
        rirs_version=recipe["rirs_version"],
        squtr_version=manifest.squtr_version,
        splits="\n".join(_splits(manifest, folder)),
        strata="\n".join(_strata(manifest)),
        edges="\n".join(_edges(manifest)),
        options="\n".join(_options(recipe)),
        licenses="\n".join(_licenses(recipe)),
        seed=recipe["seed"],
        recipe_version=recipe["recipe_version"],
        fingerprint=manifest.recipe_fingerprint,
    )


def _configs() -> list[str]:
    lines: list[str] = []
    for name, columns in CONFIGS.items():
        lines += _config(name, FOLDER, () if columns == COLUMNS else columns)
        if columns == COLUMNS:
            lines.append("  default: true")
    return lines + _config(ROOMS_CONFIG, ROOMS_FOLDER, ())


def _config(name: str, folder: str, columns: Sequence[str]) -> list[str]:
    lines = [f"- config_name: {name}", "  data_files:"]
    for split in SPLITS:
        lines += [f"  - split: {split}", f"    path: {folder}/{split}-*.parquet"]
    if columns:
        lines.append(f"  columns: [{', '.join(columns)}]")
    return lines


def _license(recipe: dict[str, Any]) -> list[str]:
    merged = merge_licenses([license for _, _, license in _parts(recipe)])
    if merged != OTHER:
        return [f"license: {merged}"]
    return [f"license: {OTHER}", "license_name: see-the-table-of-licenses"]


def _parts(recipe: dict[str, Any]) -> list[tuple[str, str, str]]:
    parts = [(part, recipe[part], recipe[f"{part}_license"]) for part in ("speech", "rirs", "noise")]
    return [part for part in parts if part[1]]


def _licenses(recipe: dict[str, Any]) -> list[str]:
    return [f"| {part} `{name}` | {license} |" for part, name, license in _parts(recipe)]


def _splits(manifest: PairManifest, folder: Path) -> list[str]:
    lines = []
    for name, split in manifest.pair_splits.items():
        table = pq.read_table(
            [folder / s.path for s in manifest.shards if s.path.startswith(f"{FOLDER}/{name}-")],
            columns=["duration_s", "reverb_duration_s", "rt60_s", "drr_db"],
            partitioning=None,
        )
        minutes = (pc.sum(table.column(column)).as_py() / 60 for column in ("duration_s", "reverb_duration_s"))
        clean, reverb = (f"{value:.1f}" for value in minutes)
        means = " | ".join(_mean(table.column(column).to_pylist()) for column in ("rt60_s", "drr_db"))
        lines.append(
            f"| {name} | {split.pairs:,} | {split.utterances:,} | {split.responses:,} | {split.rooms:,} "
            f"| {clean} | {reverb} | {means} |"
        )
    return lines


def _mean(values: list[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    return f"{sum(known) / len(known):.2f}" if known else "–"


def _bounds(stratum: Stratum, column: str) -> str:
    low, high = getattr(stratum, column)
    if low is None and high is None:
        return "–"
    if low is None:
        return f"≤ {high:.3f}"
    return f"> {low:.3f}" if high is None else f"{low:.3f} to {high:.3f}"


def _strata(manifest: PairManifest) -> list[str]:
    return [
        f"| {stratum.name} | {_bounds(stratum, 'rt60_s')} | {_bounds(stratum, 'drr_db')} | {stratum.responses:,} "
        f"| {stratum.rooms:,} | {stratum.validation:,} | {stratum.test:,} |"
        for stratum in manifest.strata
    ]


def _edges(manifest: PairManifest) -> list[str]:
    return [
        f"- `{column}`: {', '.join(f'{edge:g}' for edge in edges) or 'one bin'} {_UNITS[column]}"
        for column, edges in manifest.edges.items()
    ]


def _options(recipe: dict[str, Any]) -> list[str]:
    each = recipe["rirs_per_utterance"]
    lines = [f"- Every utterance is heard in {each} room{'s' if each > 1 else ''}."]
    if recipe["early_only"]:
        lines.append(
            "- Of each response the first 50 ms from the direct path on were kept alone (`--early-only`). The measures "
            "are those of the whole response."
        )
    if recipe["snr_db"] is not None:
        over = "the whole clip" if recipe["level"] == "whole" else "the active part of the speech"
        lines.append(
            f"- Noise from `{recipe['noise']}` was added after the room, at {recipe['snr_db']:g} dB against the "
            f"reverberant speech, over {over}. The clean arm has none."
        )
    if recipe["known_rirs_only"]:
        lines.append("- Responses of which RT60 or DRR cannot be measured were left out.")
    return lines
