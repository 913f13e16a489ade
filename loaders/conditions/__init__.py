"""Acoustic conditions and config names.

A condition is a list of steps (see `step`); its name joins the parts of their names in physical order: `clean` (no
step), `low_noise` (20 dB), `medium_noise` (10 dB), `high_noise` (0 dB), any level as `snr_<dB>`, `reverb`,
`early_reverb`, and `reverb_` before a level of noise. A config is `<language>_<condition>` or `<subset>_<condition>`,
and `<subset>-corpus`, `<subset>-qrels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError, unknown_name
from ..records import SpokenQuery
from . import noise, rir
from .noise import NAMED_LEVELS_DB, NoiseStep
from .rir import RirStep
from .step import ColumnType, Step, StepKind

STEPS: tuple[StepKind, ...] = (rir.WHOLE, rir.EARLY, noise.KIND)
"""The kinds of steps. A new one is a file beside these and a row here."""

STANDARD_CONDITIONS = ("clean", *NAMED_LEVELS_DB, "reverb", *(f"reverb_{name}" for name in NAMED_LEVELS_DB))
CLEAN = "clean"
TEXT = "text"
"""Not audio: the typed query, the upper bound."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition: its steps, with the kind of each."""

    name: str
    steps: tuple[Step, ...] = ()
    kinds: tuple[StepKind, ...] = ()

    @property
    def snr_db(self) -> float | None:
        return next((step.snr_db for step in self.steps if isinstance(step, NoiseStep)), None)

    @property
    def reverb(self) -> bool:
        return any(isinstance(step, RirStep) for step in self.steps)

    def needs(self, bank: str) -> bool:
        """Whether one of its steps reads the bank "noise" or "rirs"."""
        return any(kind.bank == bank for kind in self.kinds)

    def described(self) -> list[dict[str, Any]]:
        return [step.as_dict() for step in self.steps]


def parse_condition(name: str, kinds: Sequence[StepKind] = STEPS) -> Condition:
    """The condition called `name`, of steps of these kinds.

    Raises `UnknownNameError` that suggests the nearest, `UsageError` for a parameter out of range.

    >>> parse_condition("reverb_snr_-5").described()
    [{'step': 'rir'}, {'step': 'noise', 'snr_db': -5.0}]
    >>> parse_condition("medium_noise").snr_db
    10.0
    >>> parse_condition("clean").steps
    ()
    """
    condition, rest = _parse(name, kinds)
    if rest:
        examples = [example for kind in kinds for example in kind.examples]
        raise unknown_name("condition", name, (*STANDARD_CONDITIONS, *examples, "reverb_snr_5"))
    return condition


def known_part(name: str, kinds: Sequence[StepKind] = STEPS) -> Condition:
    """What is known of the condition called `name`: the steps of these kinds that its name begins with.

    For pages and tables of results, which may be of conditions that were added outside of this package.

    >>> known_part("reverb_snr_5_clipped_6").snr_db
    5.0
    """
    return _parse(name, kinds)[0]


def _parse(name: str, kinds: Sequence[StepKind]) -> tuple[Condition, str]:
    if name == CLEAN:
        return Condition(name), ""
    rest = name
    steps: list[Step] = []
    used: list[StepKind] = []
    for kind in sorted(kinds, key=lambda kind: kind.order):
        if rest and kind.order not in {other.order for other in used} and (found := kind.match(rest)):
            steps.append(found[0])
            used.append(kind)
            rest = found[1]
    return Condition(name, tuple(steps), tuple(used)), rest if steps else name or "?"


def extra_columns(conditions: Iterable[Condition]) -> dict[str, ColumnType]:
    """The columns that the steps of these conditions add to those that every row has."""
    own = set(SpokenQuery.__dataclass_fields__)
    every = [columns for condition in conditions for columns in (kind.columns for kind in condition.kinds)]
    return {name: type_ for columns in every for name, type_ in columns.items() if name not in own}


@dataclass(frozen=True, slots=True)
class QueryConfig:
    """A config of spoken queries: one or several subsets under one condition."""

    name: str
    subsets: tuple[str, ...]
    condition: Condition


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A config that is a table: `kind` is "corpus", "qrels" or "rirs" (which belongs to no subset)."""

    name: str
    subset: str
    kind: str


RIRS = TableConfig("rirs", "", "rirs")
"""The RIRs with their measures, in a data set whose RIRs were dealt by a plan."""


def config_names(subsets: Mapping[str, str], conditions: Iterable[str]) -> list[str]:
    """All config names of a data set: by language, by subset, and the tables.

    >>> config_names({"fiqa": "en"}, ["clean"])
    ['en_clean', 'fiqa_clean', 'fiqa-corpus', 'fiqa-qrels']
    """
    conditions = list(conditions)
    languages = list(dict.fromkeys(subsets.values()))
    spoken = [f"{scope}_{condition}" for scope in (*languages, *subsets) for condition in conditions]
    return spoken + [f"{subset}-{kind}" for subset in subsets for kind in ("corpus", "qrels")]


def parse_config(name: str, subsets: Mapping[str, str], kinds: Sequence[StepKind] = STEPS) -> QueryConfig | TableConfig:
    """The config called `name` in a source with these subsets (name to language).

    Raises `UnknownNameError` that suggests the nearest existing config, language or condition.

    >>> parse_config("zh_snr_5", {"fiqa": "en", "duretrieval": "zh"}).subsets
    ('duretrieval',)
    >>> parse_config("fiqa-qrels", {"fiqa": "en"}).kind
    'qrels'
    """
    if name == RIRS.name:
        return RIRS
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
    return QueryConfig(name, chosen, parse_condition(condition, kinds))


def check_kinds(kinds: Sequence[StepKind]) -> tuple[StepKind, ...]:
    """These kinds, if no two share a name. Raises `UsageError`."""
    names = [kind.name for kind in kinds]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two kinds of steps are called {name!r}.", hint="Give one of them another name.")
    return tuple(kinds)
