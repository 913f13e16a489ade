"""What a set is made of, and whether places and wordings of its options give answers away."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .labels import PERCEPTION, REASONING
from .question import CONFIGS, Question, in_config
from .shortcuts import score_rules

LETTERS = "ABCDEFGHIJ"
SUSPICIOUS = 0.01
"""A rule whose score chance would reach this rarely is named in the warnings."""


def balance_of(questions: Sequence[Question]) -> dict[str, Any]:
    """Counts of everything that tables are broken down by, as a JSON object; `rules` are those of `shortcuts`."""
    choices = [question for question in questions if question.kind == "mcqa"]
    positions: dict[str, dict[str, int]] = {}
    for question in choices:
        size = len(question.options)
        row = positions.setdefault(str(size), dict.fromkeys(LETTERS[:size], 0))
        row[LETTERS[question.answer_index]] += 1
    pairs = Counter(f"{one}|{other}" for q in questions for one in q.perception for other in q.reasoning)
    rules = {
        name: {
            "accuracy": round(score.accuracy, 4),
            "chance": round(score.chance, 4),
            "p_value": round(score.p_value, 4),
        }
        for name, score in score_rules(questions).items()
        if score.n
    }
    known = [question.duration_s for question in questions if not math.isnan(question.duration_s)]
    return {
        "configs": {config: sum(in_config(question, config) for question in questions) for config in CONFIGS},
        "options": _counts(str(len(question.options)) for question in choices),
        "chance": round(math.fsum(1 / len(q.options) for q in choices) / len(choices), 4) if choices else None,
        "positions": dict(sorted(positions.items(), reverse=True)),
        "perception": _ordered((label for q in questions for label in q.perception), PERCEPTION),
        "reasoning": _ordered((label for q in questions for label in q.reasoning), REASONING),
        "pairs": dict(sorted(pairs.items())),
        "verifiers": _counts(str(verifier["id"]) for q in questions for verifier in q.verifiers),
        "aetiology": _counts(q.aetiology for q in questions if q.aetiology),
        "intelligibility": _counts(q.intelligibility or "missing" for q in questions if q.aetiology),
        "sex": _counts(q.sex or "missing" for q in questions if q.aetiology),
        "open_ended": sum(question.open_ended for question in questions),
        "seconds": round(math.fsum(known), 3),
        "rules": rules,
        "warnings": _warnings(questions, positions, rules),
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0])))


def _ordered(values: Iterable[str], known: Iterable[str]) -> dict[str, int]:
    counts = Counter(values)
    return {label: counts[label] for label in known}


def _warnings(
    questions: Sequence[Question], positions: dict[str, dict[str, int]], rules: dict[str, dict[str, float]]
) -> list[str]:
    found = []
    for size, row in sorted(positions.items()):
        total = sum(row.values())
        p_value = _uniform_p(list(row.values()))
        if p_value < SUSPICIOUS:
            shown = ", ".join(f"{letter} {count}" for letter, count in row.items())
            found.append(f"the right options of {total} items with {size} options stand unevenly: {shown}.")
    for name, score in rules.items():
        if score["p_value"] < SUSPICIOUS:
            found.append(
                f"from the text alone, the rule '{name.replace('_', ' ')}' gets {score['accuracy']:.1%} where "
                f"chance gives {score['chance']:.1%}."
            )
    for label in (*PERCEPTION, *REASONING):
        if not any(label in (*question.perception, *question.reasoning) for question in questions):
            found.append(f"no item has the label {label}.")
    return found


def _uniform_p(counts: Sequence[int]) -> float:
    from scipy.special import chdtrc

    total = sum(counts)
    if total == 0 or len(counts) < 2:
        return 1.0
    mean = total / len(counts)
    return float(chdtrc(len(counts) - 1, sum((count - mean) ** 2 for count in counts) / mean))
