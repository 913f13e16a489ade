"""The rules for rows of texts and judgments, the same in `build`, `load_dataset`, `doctor` and `score`.

With `on_bad="refuse"` (the default) a row that breaks one is an error, and all of a source are told together. With
`"skip"` the row is left out, counted and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ...errors import DataError, unknown_name
from ..faults import SHOWN, Fault, Faults
from ..left_out import EXAMPLES, LeftOut

OnBad = Literal["refuse", "skip"]
OnFault = Callable[[DataError], None]
SKIP_HINT = "Mend them, or leave them out with --on-bad skip (on_bad='skip')."


@dataclass(frozen=True, slots=True)
class Rule:
    """`sentence` says what is wrong, `skip` what `on_bad="skip"` does, `reason` what is counted as left out."""

    name: str
    sentence: str
    skip: str
    reason: str


FORM = Rule(
    "form", "a line that is not of the table's form, or lacks a field", "leaves the row out", "rows of a wrong form"
)
ID_HALF = Rule(
    "id-half",
    "half a character (a lone surrogate) in an id",
    "leaves the row out",
    "rows with half a character in an id",
)
EMPTY_ID = Rule("id-empty", "an empty id", "leaves the row out", "rows with an empty id")
QUERY_TEXT = Rule(
    "query-text", "a query without text", "leaves the query and its judgments out", "queries without a text"
)
QUERY_TWICE = Rule(
    "query-twice", "a query id that occurs twice", "keeps the first", "queries with an id that occurs twice"
)
DOCUMENT_TWICE = Rule(
    "document-twice", "a document id that occurs twice", "keeps the first", "documents with an id that occurs twice"
)
GRADE_FORM = Rule(
    "grade-form", "a grade that is no integer, as 1.5", "leaves the judgment out", "judgments without an integer grade"
)
GRADE_NEGATIVE = Rule("grade-negative", "a grade below 0", "leaves the judgment out", "judgments with a negative grade")
JUDGED_TWICE = Rule(
    "judged-twice", "a pair that is judged twice", "keeps the first", "judgments of a pair judged before"
)
QUERY_UNKNOWN = Rule(
    "query-unknown", "a judgment that names a missing query", "leaves the judgment out", "judgments of a missing query"
)
DOCUMENT_UNKNOWN = Rule(
    "document-unknown",
    "a judgment that names a missing document",
    "leaves the judgment out, and a query that has no other",
    "judgments of a missing document",
)
RECORDING_TWICE = Rule(
    "recording-twice",
    "a second recording with the same id",
    "keeps the first",
    "recordings with an id that occurs twice",
)
RECORDING_SUBSET = Rule(
    "recording-subset",
    "a recording of no subset that the texts have, or of several",
    "leaves the recording out",
    "recordings that name no subset of the texts",
)
RULES = (
    FORM, ID_HALF, EMPTY_ID, QUERY_TEXT, QUERY_TWICE, DOCUMENT_TWICE, GRADE_FORM, GRADE_NEGATIVE, JUDGED_TWICE,
    QUERY_UNKNOWN, DOCUMENT_UNKNOWN, RECORDING_TWICE, RECORDING_SUBSET,
)  # fmt: skip
"""Half a character in a text is no error: it is made U+FFFD and counted (`text.valid_text`). A document with neither
title nor text is kept: a collection may hold some, and `doctor` remarks on it."""


class RowError(DataError):
    """A row that breaks a rule; `example` names it."""

    rule: Rule = FORM
    example: str = ""


def broken(rule: Rule, message: str, hint: str, example: str = "") -> RowError:
    error = RowError(message, hint=hint)
    error.rule, error.example = rule, example
    return error


def refuse(error: DataError) -> None:
    """The first error is raised."""
    raise error


@contextmanager
def told(bad: OnFault) -> Iterator[None]:
    """Hand a `DataError` that is raised inside to `bad`."""
    try:
        yield
    except DataError as error:
        bad(error)


def check_on_bad(on_bad: str) -> OnBad:
    """Raises `UnknownNameError` for anything but "refuse" and "skip"."""
    for known in get_args(OnBad):
        if on_bad == known:
            return known  # type: ignore[no-any-return]
    raise unknown_name("value of on_bad", on_bad, get_args(OnBad))


def version_suffix(on_bad: OnBad) -> str:
    """What a source's version has at its end: without bad rows it is other data."""
    return "" if on_bad == "refuse" else f"-{on_bad}"


def whole_grade(value: Any, where: str, what: str = "field 'score'", example: str = "") -> int:
    """A grade: an integer from 0, also written as text or as a float without a fraction. Raises `RowError`.

    >>> whole_grade(1.0, "row 1"), whole_grade("2", "row 1"), whole_grade("2.0", "row 1")
    (1, 2, 2)
    """
    number = value
    if isinstance(value, str):
        try:
            number = int(value)
        except ValueError:
            number = _float(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise broken(
            GRADE_FORM, f"{where}: {what} is {value!r} where an integer is expected.", "Mend the line.", example
        )
    if number < 0:
        raise broken(
            GRADE_NEGATIVE,
            f"{where}: {what} is {value!r}, a grade below 0.",
            "Write 0 for what is not relevant.",
            example,
        )
    return number


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class Collected:
    """Bad rows, in bounded memory: the first as faults, all of them counted by rule."""

    def __init__(self) -> None:
        self._first: list[Fault] = []
        self._counts: dict[Rule, int] = {}
        self._examples: dict[Rule, list[str]] = {}
        self.count = 0
        self._skippable = True

    def __call__(self, error: DataError) -> None:
        rule = error.rule if isinstance(error, RowError) else FORM
        example = error.example if isinstance(error, RowError) else ""
        if not example:
            # The place; examples are published, so without the folders of this machine.
            example = error.message.partition(": ")[0].rpartition("/")[2]
        self.count += 1
        self._counts[rule] = self._counts.get(rule, 0) + 1
        if len(self._first) < SHOWN:
            self._first.append(Fault.of(error))
        examples = self._examples.setdefault(rule, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    @property
    def first(self) -> tuple[Fault, ...]:
        return tuple(self._first)

    @property
    def counts(self) -> Mapping[str, int]:
        """Bad rows by the name of the rule."""
        return {rule.name: count for rule, count in self._counts.items()}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(LeftOut(rule.reason, n, tuple(self._examples[rule])) for rule, n in self._counts.items())

    @contextmanager
    def table(self, *, quiet: bool = False) -> Iterator[None]:
        """Keep a `DataError` that is raised inside: one of a whole table, which no skipping of rows mends."""
        try:
            yield
        except DataError as error:
            if not quiet:
                self._skippable = False
                self(error)

    def refuse(self, place: str) -> None:
        """Raise `DataError` with all that was collected, if anything was."""
        faults = Faults()
        if self.count == 1 and self._skippable:
            only = self._first[0]
            raise DataError(only.message, hint=f"{only.hint} Or leave it out with --on-bad skip.".strip())
        faults.add(self._first)
        hint = SKIP_HINT if self._skippable else "Mend them and run the same command again."
        faults.refuse(place, hint=hint, count=self.count)
