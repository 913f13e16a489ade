"""Rules that see a set's text alone, and what they score: above chance, the wording gives answers away."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from .labels import plain_name
from .question import Question

_COMMON = frozenset((
    "a", "al", "como", "con", "cual", "cuales", "cuando", "cuantas", "cuanto", "cuantos", "de", "del", "donde", "el",
    "ella", "en", "entre", "es", "ha", "hay", "la", "las", "le", "les", "lo", "los", "no", "o", "para", "por", "que",
    "quien", "se", "si", "su", "sus", "un", "una", "y",
))  # fmt: skip
Rule = Callable[[Question], frozenset[int]]
"""The places of the options that a rule prefers; it draws one of them."""


def _words(text: str) -> Counter[str]:
    return Counter(word for word in plain_name(text).split("_") if word and word not in _COMMON)


def _best(scores: Sequence[float]) -> frozenset[int]:
    top = max(scores)
    return frozenset(place for place, score in enumerate(scores) if score == top)


def _overlap(question: Question) -> frozenset[int]:
    words = set(_words(question.question))
    return _best([len(words & set(_words(option))) for option in question.options])


def _central(question: Question) -> frozenset[int]:
    every = [set(_words(option)) for option in question.options]
    return _best([sum(len(own & other) for other in every) for own in every])


def _most_precise(question: Question) -> frozenset[int]:
    return _best([len(re.findall(r"\d|,|\(|;", option)) for option in question.options])


RULES: Mapping[str, Rule] = {
    "first": lambda question: frozenset((0,)),
    "last": lambda question: frozenset((len(question.options) - 1,)),
    "longest": lambda question: _best([len(option) for option in question.options]),
    "shortest": lambda question: _best([-len(option) for option in question.options]),
    "most_words": lambda question: _best([len(option.split()) for option in question.options]),
    "overlap": _overlap,
    "like_the_others": _central,
    "most_precise": _most_precise,
}
"""Name to rule: by place, by length, by words shared with the question or with the other options, by figures."""


@dataclass(frozen=True, slots=True)
class RuleScore:
    """What a rule gets over `n` items: `accuracy` (ties count in part), and the `chance` of drawing an option.

    `p_value`: that drawing gets as much or more (normal approximation); NaN without items.
    """

    accuracy: float
    chance: float
    n: int
    p_value: float


def score_rule(rule: Rule, questions: Iterable[Question]) -> RuleScore:
    """The score of a rule on the multiple-choice items of a set.

    >>> question = Question("q", "mcqa", ("a",), "¿Qué?", ("Uno", "Otro más"), "Otro más")
    >>> score_rule(RULES["longest"], [question]).accuracy
    1.0
    """
    credit: list[float] = []
    chances: list[float] = []
    for question in questions:
        if question.kind == "mcqa":
            chosen = rule(question)
            credit.append((question.answer_index in chosen) / len(chosen))
            chances.append(1 / len(question.options))
    n = len(credit)
    if not n:
        return RuleScore(math.nan, math.nan, 0, math.nan)
    spread = math.sqrt(sum(chance * (1 - chance) for chance in chances))
    z = (sum(credit) - sum(chances)) / spread
    return RuleScore(sum(credit) / n, sum(chances) / n, n, 1 - NormalDist().cdf(z))


def score_rules(questions: Sequence[Question]) -> dict[str, RuleScore]:
    return {name: score_rule(rule, questions) for name, rule in RULES.items()}
