"""The card of a set that was built: `README.md` with the `configs:` that `datasets` and the Hub read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from string import Template

from ..card import size_category
from ..licenses import license_lines
from .labels import PERCEPTION, REASONING
from .manifest import QUESTIONS, QuestionManifest
from .question import CONFIGS
from .statuses import STATUSES, Coverage

PATTERNS: Mapping[str, str] = {
    "mcqa": "mcqa/*/*/*",
    "aif": "aif/*/*/*",
    "comparative": "*/two/*/*",
    "spoken": "*/*/spoken/*",
    "non_normative": "*/*/*/non_normative",
    "all": "*/*/*/*",
}
"""Config to the folders below `questions` that it reads."""


def question_card(manifest: QuestionManifest, coverage: Coverage) -> str:
    balance = manifest.balance
    template = Template((files("squtr") / "dataset_cards" / "questions.md.template").read_text(encoding="utf-8"))
    return template.substitute(
        language=manifest.language,
        configs="\n".join(_configs(manifest)),
        license="\n".join(license_lines([manifest.license], "see-the-card")),
        pretty_name=json.dumps(manifest.recipe["name"], ensure_ascii=False),
        size=size_category(manifest.items),
        name=manifest.recipe["name"],
        squtr_version=manifest.squtr_version,
        counts="\n".join(f"| {config} | {balance['configs'][config]:,} |" for config in CONFIGS),
        coverage=_coverage(coverage),
        options=", ".join(f"{count:,} with {size} options" for size, count in balance["options"].items()),
        chance="–" if balance["chance"] is None else f"{balance['chance']:.2%}",
        positions="\n".join(_positions(balance["positions"])) or "| – | – |",
        perception="\n".join(f"| {PERCEPTION[n]} (`{n}`) | {c:,} |" for n, c in balance["perception"].items()),
        reasoning="\n".join(f"| {REASONING[n]} (`{n}`) | {c:,} |" for n, c in balance["reasoning"].items()),
        rules="\n".join(_rules(balance["rules"])) or "| – | – | – | – |",
        warnings="\n".join(f"- {sentence}" for sentence in balance["warnings"]) or "None.",
        minutes=f"{balance['seconds'] / 60:.1f}",
        aetiology=", ".join(f"{name} {count:,}" for name, count in balance["aetiology"].items()) or "none",
        spoken=json.dumps(manifest.recipe["spoken"], ensure_ascii=False) if manifest.recipe["spoken"] else "as given",
        license_text=manifest.license,
        fingerprint=manifest.recipe_fingerprint,
    )


def _configs(manifest: QuestionManifest) -> list[str]:
    lines: list[str] = []
    for config in CONFIGS:
        # A pattern without files is an error to `datasets`.
        if not manifest.balance["configs"][config]:
            continue
        lines += [f"- config_name: {config}", "  data_files:", "  - split: test"]
        lines.append(f"    path: {QUESTIONS}/{PATTERNS[config]}/*.parquet")
        if config == "all":
            lines.append("  default: true")
    return lines


def _coverage(coverage: Coverage) -> str:
    if coverage.covered == coverage.items:
        return "The audio of every item is there."
    why = "; ".join(f"{count:,} {STATUSES[status]}" for status, count in coverage.by_status.items())
    return (
        f"The audio of {coverage.covered:,} of {coverage.items:,} items is there. The others have empty audio: {why}."
    )


def _positions(positions: Mapping[str, Mapping[str, int]]) -> list[str]:
    return [
        f"| {size} | {', '.join(f'{letter} {count:,}' for letter, count in row.items())} |"
        for size, row in positions.items()
    ]


def _rules(rules: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        f"| {name.replace('_', ' ')} | {score['accuracy']:.1%} | {score['chance']:.1%} | {score['p_value']:.2f} |"
        for name, score in rules.items()
    ]
