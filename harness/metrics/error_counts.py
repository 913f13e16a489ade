"""Error rates of recognition: counts first, divided once. Kinds of edits are those of rapidfuzz's alignment."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from ...errors import DataError, UsageError, unknown_name
from ..text.languages import is_written_without_spaces
from ..text.normalizers import Normalizer

Unit = Literal["word", "char", "mixed"]
UNITS: tuple[Unit, ...] = ("word", "char", "mixed")
_LAST_CODE = 0x10FFFF

# Han (all planes and compatibility forms), kana, bopomofo: what "mixed" counts one by one.
_CJK = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u30ff\u3105-\u312f\u31a0-\u31bf"
    r"\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_MIXED = re.compile(f"[{_CJK}]|[^\\s{_CJK}]+")


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """Edits that turn a reference of `reference_length` tokens into a hypothesis. Adds with `+` and `sum(…, zero())`.

    >>> a = ErrorCounts(1, 0, 0, 4) + ErrorCounts(0, 1, 2, 6)
    >>> a, a.errors, a.rate
    (ErrorCounts(substitutions=1, deletions=1, insertions=2, reference_length=10), 4, 0.4)
    """

    substitutions: int
    deletions: int
    insertions: int
    reference_length: int

    def __post_init__(self) -> None:
        substitutions, deletions = self.substitutions, self.deletions
        if (
            substitutions < 0
            or deletions < 0
            or self.insertions < 0
            or substitutions + deletions > self.reference_length
        ):
            raise DataError(f"impossible error counts {self.as_tuple()}.", hint="Counts are >= 0 and S + D <= length.")

    @classmethod
    def zero(cls) -> ErrorCounts:
        return cls(0, 0, 0, 0)

    def __add__(self, other: ErrorCounts) -> ErrorCounts:
        return ErrorCounts(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.reference_length + other.reference_length,
        )

    def as_tuple(self) -> tuple[int, int, int, int]:
        """(substitutions, deletions, insertions, reference length)."""
        return self.substitutions, self.deletions, self.insertions, self.reference_length

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def hits(self) -> int:
        return self.reference_length - self.substitutions - self.deletions

    @property
    def rate(self) -> float:
        """Errors / reference length; may exceed 1 (insertions); NaN for an empty reference, whatever was inserted."""
        return self.errors / self.reference_length if self.reference_length else math.nan

    @property
    def match_error_rate(self) -> float:
        """MER: errors / (hits + errors), in [0, 1] (Morris et al., Interspeech 2004); NaN without any token."""
        total = self.reference_length + self.insertions
        return self.errors / total if total else math.nan

    @property
    def capped_rate(self) -> float:
        """The rate, at most 1. Not a word error rate: never report it under that name."""
        return min(1.0, self.rate) if self.reference_length else math.nan


def default_unit(language: str) -> Unit:
    """The customary unit: "char" for languages written without spaces between words (zh, yue, ja, th, …), else "word".

    >>> default_unit("zh"), default_unit("es"), default_unit("zh-TW")
    ('char', 'word', 'char')
    """
    return "char" if is_written_without_spaces(language) else "word"


def tokens(text: str, unit: Unit, language: str) -> list[str]:
    """The tokens of `text` that are counted; [] for a blank text.

    "word": split at blanks; refused (`UsageError`) for a language written without spaces. "char": code points,
    blanks removed. "mixed": each Chinese or Japanese character, and each run of anything else between blanks, for
    code-switched speech.

    >>> tokens("我用 iphone 15", "mixed", "zh")
    ['我', '用', 'iphone', '15']
    >>> tokens("a b", "char", "en")
    ['a', 'b']
    """
    if unit == "word":
        if is_written_without_spaces(language):
            raise UsageError(
                f"unit 'word' has no meaning for language {language!r}: it is written without spaces between words.",
                hint="Use unit 'char' (CER), or 'mixed' for code-switched speech.",
            )
        return text.split()
    if unit == "char":
        return list("".join(text.split()))
    if unit == "mixed":
        return _MIXED.findall(text)
    raise unknown_name("unit", unit, UNITS)


class _Codes(dict[str, str]):
    """Tokens as single characters, numbered in order of appearance: exact (no hashing), rapidfuzz's fastest input."""

    def __missing__(self, token: str) -> str:
        self[token] = code = chr(len(self))
        return code

    def encode(self, tokens: Iterable[str]) -> str:
        return "".join(map(self.__getitem__, tokens))


def encode_tokens(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[str, str]:
    """Both as strings with one character per distinct token."""
    codes = _Codes()
    return codes.encode(reference), codes.encode(hypothesis)


def _count_encoded(references: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.int64]:
    """(n, 4) counts of encoded pairs."""
    if not references:
        return np.zeros((0, 4), dtype=np.int64)
    distances = cpdist(references, hypotheses, scorer=Levenshtein.distance, dtype=np.int32).astype(np.int64)
    n = np.fromiter(map(len, references), dtype=np.int64, count=len(references))
    longer = np.fromiter(map(len, hypotheses), dtype=np.int64, count=len(hypotheses)) - n
    # S + 2 min(D, I) is fixed by distance and lengths; below 2 there is only one way to divide it.
    excess = distances - np.abs(longer)
    substitutions = excess.copy()
    for place in np.flatnonzero(excess >= 2).tolist():
        steps = Levenshtein.editops(references[place], hypotheses[place]).as_list()
        substitutions[place] = sum(step[0] == "replace" for step in steps)
    both = (excess - substitutions) // 2
    return np.column_stack([substitutions, np.maximum(0, -longer) + both, np.maximum(0, longer) + both, n])


def _objects(table: NDArray[np.int64]) -> list[ErrorCounts]:
    return list(map(ErrorCounts, *(column.tolist() for column in table.T)))


def count_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Minimal edits from `reference` to `hypothesis` (Levenshtein, unit costs), by kind.

    >>> count_errors("the cat sat on the mat".split(), "cat sit on the mat now".split())
    ErrorCounts(substitutions=1, deletions=1, insertions=1, reference_length=6)
    >>> count_errors([], ["noise"]).rate
    nan
    """
    left, right = encode_tokens(reference, hypothesis)
    return _objects(_count_encoded([left], [right]))[0]


def _count(pairs: Iterable[tuple[int, Iterable[str], Iterable[str]]]) -> NDArray[np.int64]:
    """Counts of (upper bound of the number of tokens, reference, hypothesis)."""
    counts: list[NDArray[np.int64]] = []
    codes = _Codes()
    code = codes.__getitem__
    references: list[str] = []
    hypotheses: list[str] = []
    for most, reference, hypothesis in pairs:
        if references and len(codes) + most > _LAST_CODE:
            counts.append(_count_encoded(references, hypotheses))
            references.clear()
            hypotheses.clear()
            codes.clear()
        references.append("".join(map(code, reference)))
        # Many transcripts are right: what is the same object is encoded once.
        hypotheses.append(references[-1] if hypothesis is reference else "".join(map(code, hypothesis)))
    return np.concatenate([*counts, _count_encoded(references, hypotheses)])


def count_texts(
    references: Sequence[str], hypotheses: Sequence[str], *, unit: Unit, language: str
) -> list[ErrorCounts]:
    """`count_errors` of the `tokens` of normalized texts, paired by position.

    Raises `DataError` if there are not as many hypotheses as references, `UsageError` as `tokens` does.

    >>> count_texts(["a b", "c"], ["a", "c"], unit="word", language="en")[0]
    ErrorCounts(substitutions=0, deletions=1, insertions=0, reference_length=2)
    """
    return _objects(count_texts_array(references, hypotheses, unit=unit, language=language))


def count_texts_array(
    references: Sequence[str], hypotheses: Sequence[str], *, unit: Unit, language: str
) -> NDArray[np.int64]:
    """`count_texts` as (n, 4) int64, the columns of `counts_array`: the fastest way to count a whole run.

    >>> count_texts_array(["a b", "c"], ["a", "c"], unit="word", language="en").tolist()
    [[0, 1, 0, 2], [0, 0, 0, 1]]
    """
    if len(references) != len(hypotheses):
        raise DataError(f"{len(references)} references and {len(hypotheses)} hypotheses.", hint="Give one for each.")
    tokens("", unit, language)
    if unit == "char":
        # A character is its own code.
        return _count_encoded(*(["".join(text.split()) for text in side] for side in (references, hypotheses)))
    split = str.split if unit == "word" else _MIXED.findall

    def pairs() -> Iterator[tuple[int, list[str], list[str]]]:
        for reference, hypothesis in zip(references, hypotheses, strict=True):
            expected = split(reference)
            yield len(reference) + len(hypothesis), expected, expected if reference == hypothesis else split(hypothesis)

    return _count(pairs())


def check_same_ids(references: Iterable[str], hypotheses: Iterable[str]) -> None:
    """Raise `DataError` naming the first ids that only one side has."""
    left, right = dict.fromkeys(references), dict.fromkeys(hypotheses)
    for what, ids in (
        ("no hypothesis for", [i for i in left if i not in right]),
        ("no reference for", [i for i in right if i not in left]),
    ):
        if ids:
            shown = ", ".join(map(repr, ids[:3])) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
            raise DataError(f"{what} id {shown}.", hint="References and hypotheses must have the same ids.")


def score_transcripts(
    references: Mapping[str, str], hypotheses: Mapping[str, str], *, language: str, normalizer: Normalizer, unit: Unit
) -> dict[str, ErrorCounts]:
    """Counts per utterance, joined by id, in the order of `references`.

    Both sides are normalized by `normalizer`. A missing or extra id raises `DataError` naming it. An utterance that
    could not be decoded has no transcript: leave its id out of both sides and count it, rather than score "" for it.

    >>> from squtr.harness.text.normalizers import load_normalizer
    >>> score_transcripts({"a": "Hello, world!"}, {"a": "hello word"}, language="en",
    ...                   normalizer=load_normalizer("default", "en"), unit="word")
    {'a': ErrorCounts(substitutions=1, deletions=0, insertions=0, reference_length=2)}
    """
    check_same_ids(references, hypotheses)
    left = [normalizer(reference) for reference in references.values()]
    right = [normalizer(hypotheses[id_]) for id_ in references]
    return dict(zip(references, count_texts(left, right, unit=unit, language=language), strict=True))


def counts_array(counts: Iterable[ErrorCounts] | NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 4) int64: substitutions, deletions, insertions, reference length per utterance; (0, 4) for none."""
    if isinstance(counts, np.ndarray):
        return counts
    return np.array([c.as_tuple() for c in counts], dtype=np.int64).reshape(-1, 4)
