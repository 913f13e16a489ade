"""The card of a built data set of speech: `README.md` with the `configs:` that `datasets` and the Hub read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from .conditions import RIRS, TEXT
from .licenses import license_lines
from .manifest import Manifest, Statistics, Stratum
from .origins import Kind, joined, licenses, origins

REPOSITORY_PLACEHOLDER = "PATH OR ORG/NAME"
"""Stands in a card for where the data set lies; `squtr push` puts the repository there."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

PARTS: Mapping[Kind, str] = {"sources": "source", "noise": "noise", "rirs": "RIRs"}
_UNITS = {"rt60_s": "s", "drr_db": "dB"}


def dataset_card(manifest: Manifest) -> str:
    """The card of a data set; every figure in it was read back from the shards."""
    recipe, subsets = manifest.recipe, manifest.subsets
    retrieval = [subset for subset in subsets if manifest.below(f"corpus/{subset}")]
    sources = joined(f"`{source.name}`" for source in origins(recipe))
    title = f"{'Spoken queries' if retrieval else 'Speech'} from {sources}"
    template = Template((_cards() / "built.md.template").read_text(encoding="utf-8"))
    return template.substitute(
        configs="\n".join(_configs(manifest)),
        languages="\n".join(f"- {language}" for language in dict.fromkeys(subsets.values())),
        license="\n".join(_license(recipe)),
        pretty_name=json.dumps(title.replace("`", ""), ensure_ascii=False),
        size=size_category(sum(row.clips for row in manifest.statistics)),
        tasks="\n".join(["- automatic-speech-recognition", *["- text-retrieval"][: len(retrieval)]]),
        tags="\n".join([*["- spoken-query-retrieval"][: len(retrieval)], "- noise-robustness", "- reverberation"]),
        title=title,
        squtr_version=manifest.squtr_version,
        rate=f"{recipe['sample_rate'] / 1000:g}",
        examples="\n".join(_examples(manifest, retrieval)),
        system="whisper-base + bm25" if retrieval else "whisper-base",
        counts="\n".join(_counts(manifest)),
        statistics="\n".join(_statistics(manifest)),
        noises="\n".join(_noises(manifest)),
        voices="\n".join(_voices(manifest)),
        left_out=_selection(manifest) + _left_out(manifest),
        plan=_divided(manifest) + _plan(manifest),
        level="whole clip" if recipe["level"] == "whole" else "active part of the speech",
        seed=recipe["seed"],
        recipe_version=recipe["recipe_version"],
        fingerprint=manifest.recipe_fingerprint,
        source_version=joined(source.version for source in origins(recipe)),
        licenses="\n".join(_licenses(recipe)),
        citation=_citation(manifest.benchmark),
    )


def _cards() -> Any:
    return files("squtr") / "dataset_cards"


def config_folders(manifest: Manifest) -> dict[str, list[str]]:
    """Config name to the folders of its files, in query order: nothing is stored twice."""
    subsets = manifest.subsets
    folders: dict[str, list[str]] = {}
    for language in dict.fromkeys(subsets.values()):
        for condition in manifest.conditions:
            folders[f"{language}_{condition}"] = [
                f"queries/{language}/{subset}/{condition}" for subset, of in subsets.items() if of == language
            ]
    for subset, language in subsets.items():
        for condition in manifest.conditions:
            folders[f"{subset}_{condition}"] = [f"queries/{language}/{subset}/{condition}"]
    for subset in subsets:
        for table in ("corpus", "qrels"):
            # Recordings alone have neither.
            if manifest.below(f"{table}/{subset}"):
                folders[f"{subset}-{table}"] = [f"{table}/{subset}"]
    if manifest.below("rirs"):
        folders[RIRS.name] = ["rirs"]
    return folders


def retrieval_folders(manifest: Manifest) -> dict[str, tuple[list[str], list[str]]]:
    """The configs that `mteb` loads, by name: the folders of their files, and the columns that are read (all if none).

    `mteb` reads a retrieval task's config (`fiqa_clean`, and `fiqa_text` for the typed queries) as `<config>-queries`,
    `<config>-corpus` and `<config>-qrels`, and hands every column of the queries to the model. So `-queries` has the id
    and the audio alone (or the text alone): no transcript, and nothing about condition, noise or RIR.
    """
    folders: dict[str, tuple[list[str], list[str]]] = {}
    for subset, language in manifest.subsets.items():
        if not all(manifest.below(f"{table}/{subset}") for table in ("corpus", "qrels")):
            continue
        for condition in (*manifest.conditions, TEXT):
            spoken = manifest.conditions[0] if condition == TEXT else condition
            columns = ["id", "text" if condition == TEXT else "audio"]
            config = f"{subset}_{condition}"
            folders[f"{config}-queries"] = ([f"queries/{language}/{subset}/{spoken}"], columns)
            for table in ("corpus", "qrels"):
                folders[f"{config}-{table}"] = ([f"{table}/{subset}"], [])
    return folders


def _configs(manifest: Manifest) -> list[str]:
    lines: list[str] = []
    whole = {name: (folders, list[str]()) for name, folders in config_folders(manifest).items()}
    for name, (folders, columns) in (whole | retrieval_folders(manifest)).items():
        lines += [f"- config_name: {name}", "  data_files:"]
        for split in manifest.splits:
            there = [folder for folder in folders if manifest.below(folder, split)]
            if there:
                lines += [f"  - split: {split}", "    path:", *(f"    - {place}/{split}-*.parquet" for place in there)]
        if columns:
            lines.append(f"  columns: [{', '.join(columns)}]")
    return lines


def _examples(manifest: Manifest, retrieval: Sequence[str]) -> list[str]:
    language = next(iter(manifest.subsets.values()))
    configs = {"speech": f"{language}_{manifest.conditions[0]}"}
    if retrieval:
        configs |= {table: f"{retrieval[0]}-{table}" for table in ("corpus", "qrels")}
    if manifest.below("rirs"):
        configs["rirs"] = RIRS.name
    place = REPOSITORY_PLACEHOLDER
    return [f'{name} = load_dataset("{place}", "{config}", split="test")' for name, config in configs.items()]


def _citation(benchmark: str) -> str:
    own = _cards() / "citations" / f"{benchmark}.md"
    place = own if benchmark and own.is_file() else _cards() / "citations" / "default.md"
    text: str = place.read_text(encoding="utf-8")
    return text.strip()


def _license(recipe: dict[str, Any]) -> list[str]:
    """The `license:` of the metadata: the strictest of what the clips were made from."""
    return license_lines(licenses(recipe), "see-the-table-of-licenses")


def size_category(clips: int) -> str:
    """The Hub's size category.

    >>> size_category(999), size_category(149_268), size_category(2_000_000)
    ('n<1K', '100K<n<1M', '1M<n<10M')
    """
    return next((name for limit, name in _SIZES if clips < limit), "1M<n<10M")


def _licenses(recipe: dict[str, Any]) -> list[str]:
    several = len(recipe["subsets"]) > 1
    lines = []
    for kind, what in PARTS.items():
        for origin in origins(recipe, kind):
            served = f" ({', '.join(origin.subsets)})" if several else ""
            served += f", split `{origin.split}`" if origin.split else ""
            lines.append(f"| {what} `{origin.name}`{served} | {origin.license} | {origin.attribution or '–'} |")
    return lines


def _counts(manifest: Manifest) -> list[str]:
    lines = []
    for subset, language in manifest.subsets.items():
        places = (f"queries/{language}/{subset}/{manifest.conditions[0]}", f"corpus/{subset}", f"qrels/{subset}")
        rows = [sum(shard.rows for shard in manifest.below(place)) for place in places]
        lines.append(f"| {subset} | {language} | " + " | ".join(f"{n:,}" if n else "–" for n in rows) + " |")
    return lines


def _selection(manifest: Manifest) -> str:
    """How synthesized speech was selected, a sentence for each source whose speech was."""
    lines = []
    for origin in origins(manifest.recipe):
        if not origin.selection:
            continue
        of = json.loads(origin.selection)
        lost = ", ".join(f"{reason} {count:,}" for reason, count in of["lost"].items()) or "none"
        judges = f", judged by {', '.join(of['judges'])}" if of["judges"] else ""
        chosen_by = " and ".join(of["transcribers"]) or "nobody"
        lines += [
            f"The speech of `{origin.name}` was synthesized ({of['engine']}) and selected: of up to {of['candidates']}",
            f"takes the one that {chosen_by} transcribed best{judges}; error rates over {of['max_error_rate']:g} were",
            f"rejected. {of['accepted']:,} of {of['queries']:,} queries were kept (lost: {lost}). What is kept is",
            "easier for what selected it than for others.",
            "",
        ]
    return "\n".join([*lines, ""]) if lines else ""


def _left_out(manifest: Manifest) -> str:
    if not manifest.left_out:
        return ""
    lines = ["What the sources and banks hold, and this set does not:", ""]
    lines += [f"- {entry}" for entry in manifest.left_out]
    return "\n".join([*lines, "", ""])


def _mean(rows: Sequence[Statistics], column: str) -> str:
    averages = [row.means[column] for row in rows]
    count = sum(average.count for average in averages)
    return f"{sum(average.sum for average in averages) / count:.2f}" if count else "–"


def _statistics(manifest: Manifest) -> list[str]:
    columns = ("snr_db", "snr_active_db", "rt60_s", "drr_db")
    return [
        f"| {row.subset} | {row.condition} | {row.split} | {row.clips:,} | {row.seconds / 60:.1f} | "
        + " | ".join(_mean([row], column) for column in columns)
        + " |"
        for row in manifest.statistics
    ]


def _noises(manifest: Manifest) -> list[str]:
    counts: Counter[str] = Counter()
    for row in manifest.statistics:
        counts.update(row.noise_families)
    return [f"| {family} | {count:,} |" for family, count in sorted(counts.items())] or ["| none | 0 |"]


def _voices(manifest: Manifest) -> list[str]:
    lines = []
    for subset, language in manifest.subsets.items():
        rows = [r for r in manifest.statistics if (r.subset, r.condition) == (subset, manifest.conditions[0])]
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(row.voices)
        voices = ", ".join(f"{voice} ({count})" for voice, count in sorted(counts.items())) or "–"
        lines.append(f"| {subset} | {language} | {voices} | {_mean(rows, 'tts_error_rate')} |")
    return lines


def _divided(manifest: Manifest) -> str:
    if not manifest.recipe["divided"]:
        return ""
    speakers = "" if manifest.recipe["shared_speakers"] else ", speaker"
    return f"The splits {', '.join(manifest.splits)} share no utterance{speakers}, noise recording and room.\n\n"


def _plan(manifest: Manifest) -> str:
    if not manifest.strata:
        return ""
    recipe = manifest.recipe
    each = recipe["rirs_per_utterance"]
    names = ", ".join(manifest.splits)
    lines = [
        "## RIRs",
        "",
        f"Under a condition with reverberation every utterance has {each} RIR{'s' if each > 1 else ''}, one row each,",
        "with the id `<utterance>@<rir>`; `utterance_id` is the id of its clean row. RIRs were dealt so that the",
        "strata of known RIRs have equally many pairs. No room and no utterance is in two splits.",
        "",
        f"| stratum | RT60, s | DRR, dB | RIRs | rooms | pairs ({names}) |",
        "|---|---|---|--:|--:|---|",
    ]
    lines += [
        f"| {stratum.name} | {_bounds(stratum, 'rt60_s')} | {_bounds(stratum, 'drr_db')} | {stratum.rirs:,} "
        f"| {stratum.rooms:,} | {', '.join(f'{stratum.pairs[split]:,}' for split in manifest.splits)} |"
        for stratum in manifest.strata
    ]
    lines += ["", "Edges of the bins to report by (a bin is above the lower and at most the upper edge):", ""]
    lines += [
        f"- `{column}`: {', '.join(f'{edge:g}' for edge in edges) or 'one bin'} {_UNITS[column]}"
        for column, edges in manifest.edges.items()
    ]
    if recipe["known_rirs_only"]:
        lines += ["", "RIRs of which RT60 or DRR cannot be measured were left out."]
    return "\n".join([*lines, "", ""])


def _bounds(stratum: Stratum, column: str) -> str:
    low, high = getattr(stratum, column)
    if low is None and high is None:
        return "–"
    if low is None:
        return f"≤ {high:.3f}"
    return f"> {low:.3f}" if high is None else f"{low:.3f} to {high:.3f}"
