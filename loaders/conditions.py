"""Acoustic conditions and config names.

A condition is `clean`, `low_noise` (20 dB), `medium_noise` (10 dB), `high_noise` (0 dB), `reverb`, `reverb_` before one
of the noises, or any level as `snr_<dB>` and `reverb_snr_<dB>`. A config is `<language>_<condition>` or
`<subset>_<condition>`, and `<subset>-corpus`, `<subset>-qrels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UsageError, unknown_name

NAMED_LEVELS_DB = {"low_noise": 20.0, "medium_noise": 10.0, "high_noise": 0.0}
"""The published levels (SQuTR, arXiv 2602.12783, section 3.3)."""

STANDARD_CONDITIONS = (
    "clean",
    *NAMED_LEVELS_DB,
    "reverb",
    *(f"reverb_{name}" for name in NAMED_LEVELS_DB),
)
LOWEST_SNR_DB, HIGHEST_SNR_DB = -60.0, 100.0
TEXT = "text"
"""Not audio: the typed query, the upper bound."""

_LEVEL = re.compile(r"snr_(-?\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition. `snr_db` is None without noise."""

    name: str
    reverb: bool
    snr_db: float | None


def parse_condition(name: str) -> Condition:
    """The condition called `name`; raises `UnknownNameError` that suggests the nearest.

    >>> parse_condition("reverb_snr_-5")
    Condition(name='reverb_snr_-5', reverb=True, snr_db=-5.0)
    >>> parse_condition("medium_noise").snr_db
    10.0
    >>> parse_condition("clean")
    Condition(name='clean', reverb=False, snr_db=None)
    """
    if name == "clean":
        return Condition(name, reverb=False, snr_db=None)
    if name == "reverb":
        return Condition(name, reverb=True, snr_db=None)
    reverb = name.startswith("reverb_")
    rest = name.removeprefix("reverb_")
    if rest in NAMED_LEVELS_DB:
        return Condition(name, reverb, NAMED_LEVELS_DB[rest])
    match = _LEVEL.fullmatch(rest)
    if match is None:
        raise unknown_name("condition", name, (*STANDARD_CONDITIONS, "snr_5", "reverb_snr_5"))
    level = float(match[1]) + 0.0  # turns -0.0 into 0.0
    if not LOWEST_SNR_DB <= level <= HIGHEST_SNR_DB:
        raise UsageError(
            f"condition {name!r} asks for {level:g} dB.",
            hint=f"The level must lie between {LOWEST_SNR_DB:g} and {HIGHEST_SNR_DB:g} dB.",
        )
    if f"{level:g}" != match[1]:
        raise UsageError(
            f"condition {name!r} is not in its shortest form.",
            hint=f"Write {'reverb_' if reverb else ''}snr_{level:g}.",
        )
    return Condition(name, reverb, level)


@dataclass(frozen=True, slots=True)
class QueryConfig:
    """A config of spoken queries: one or several subsets under one condition."""

    name: str
    subsets: tuple[str, ...]
    condition: Condition


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A config that is a table: `kind` is "corpus" or "qrels"."""

    name: str
    subset: str
    kind: str


def config_names(subsets: dict[str, str], conditions: Iterable[str]) -> list[str]:
    """All config names of a data set: by language, by subset, and the tables.

    >>> config_names({"fiqa": "en"}, ["clean"])
    ['en_clean', 'fiqa_clean', 'fiqa-corpus', 'fiqa-qrels']
    """
    conditions = list(conditions)
    languages = list(dict.fromkeys(subsets.values()))
    spoken = [f"{scope}_{condition}" for scope in (*languages, *subsets) for condition in conditions]
    return spoken + [f"{subset}-{kind}" for subset in subsets for kind in ("corpus", "qrels")]


def parse_config(name: str, subsets: dict[str, str]) -> QueryConfig | TableConfig:
    """The config called `name` in a source with these subsets (name to language).

    Raises `UnknownNameError` that suggests the nearest existing config, language or condition.

    >>> parse_config("zh_snr_5", {"fiqa": "en", "duretrieval": "zh"}).subsets
    ('duretrieval',)
    >>> parse_config("fiqa-qrels", {"fiqa": "en"}).kind
    'qrels'
    """
    for kind in ("corpus", "qrels"):
        subset = name.removesuffix(f"-{kind}")
        if subset != name and subset in subsets:
            return TableConfig(name, subset, kind)
    scope, separator, condition = name.partition("_")
    languages = list(dict.fromkeys(subsets.values()))
    if not separator or scope not in (*languages, *subsets):
        # A wrong condition behind a right scope has its own, more precise error below.
        raise unknown_name("config", name, config_names(subsets, STANDARD_CONDITIONS))
    chosen = (scope,) if scope in subsets else tuple(s for s, lang in subsets.items() if lang == scope)
    return QueryConfig(name, chosen, parse_condition(condition))
