"""Scores of one system's replies, by the code that `squtr score mcqa` and `squtr score aif` use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...metrics.comparison import compare
from ...metrics.statistics import mean_interval
from ...metrics.summaries import plain
from ...results.envelope import Group, Loss, Score
from .answers.accuracy import summarize_mcqa
from .answers.following import summarize_aif
from .answers.labels import DURATION_EDGES_S
from .details import Aif, Mcqa, Paired
from .items import Replies, aif_item, is_right, mcqa_item, scored_reply
from .prompting import SPOKEN, Prompt

MCQA_SCORES = ("accuracy", "accuracy_parsed", "chance", "accuracy_corrected", "unparsed")
ORDER_SCORES = ("consistency", "consistent", "accuracy_all_orders")
AIF_SCORES = ("prompt_strict", "prompt_loose", "instruction_strict", "instruction_loose")
MAIN_SCORE = {"mcqa": "accuracy", "aif": "prompt_strict"}


@dataclass(frozen=True, slots=True)
class Statistics:
    """How intervals are made, and where duration bins end."""

    seed: int = 0
    resamples: int = 1000
    duration_edges_s: tuple[float, ...] = DURATION_EDGES_S

    @property
    def options(self) -> dict[str, Any]:
        return {"seed": self.seed, "resamples": self.resamples}


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of both kinds of question by metric name, their details, and every written item's own score."""

    scores: dict[str, Score]
    groups: dict[str, dict[str, Group]]
    mcqa: Mcqa | None = None
    aif: Aif | None = None
    own: dict[str, float] = field(default_factory=dict)


def score(prompts: Sequence[Prompt], missing: Mapping[str, str], replies: Replies, statistics: Statistics) -> Scored:
    """All scores of `prompts`; items in `missing` have no audio. A reply that failed or is not there scores 0."""
    found = Scored({}, {})
    choices = [one for one in prompts if one.question.kind == "mcqa"]
    instructions = [one for one in prompts if one.question.kind == "aif"]
    mcqa = _mcqa(choices, missing, replies, statistics, found) if choices else None
    aif = _aif(instructions, missing, replies, statistics, found) if instructions else None
    scores = {"accuracy": mean_score(list(found.own.values()), statistics), **found.scores}
    return Scored(scores, found.groups, mcqa, aif, found.own)


def mean_score(values: Sequence[float], statistics: Statistics) -> Score:
    """The mean with its interval; undefined without values."""
    if not values:
        return Score(value=None, n=0)
    interval = mean_interval(np.array(values, float), **statistics.options)
    return Score(
        value=math.fsum(values) / len(values), low=plain(interval.low), high=plain(interval.high), n=len(values)
    )


def _mcqa(
    prompts: Sequence[Prompt], missing: Mapping[str, str], replies: Replies, statistics: Statistics, into: Scored
) -> Mcqa:
    items = [mcqa_item(one, missing) for one in {one.id: one for one in prompts}.values()]
    replied = [scored_reply(one, missing, replies) for one in prompts]
    found = summarize_mcqa(items, replied, duration_edges_s=statistics.duration_edges_s, **statistics.options)
    scores = found.scores
    correct = zip(found.columns["id"], found.columns["correct"], strict=True)
    into.own.update({id_: float(v) for id_, v in correct if v is not None and not id_.endswith(SPOKEN)})
    orders = ORDER_SCORES if scores["n_orders"] else ()
    into.scores.update(_scores("mcqa", scores, (*MCQA_SCORES, *orders)))
    _add_groups("mcqa", scores["breakdowns"], MCQA_SCORES, into)
    return Mcqa(
        n=scores["n"],
        n_orders=scores["n_orders"],
        counts={name: scores[name] for name in ("ambiguous", "absent", "empty")}
        | {"missing": scores["missing_replies"]},
        missing_audio=scores["missing_audio"],
        coverage=scores["coverage"],
        position_bias=scores["position_bias"],
        spoken=_spoken(prompts, missing, replies, statistics),
        parser_version=str(scores["parser_version"]),
    )


def _aif(
    prompts: Sequence[Prompt], missing: Mapping[str, str], replies: Replies, statistics: Statistics, into: Scored
) -> Aif:
    written = [one for one in prompts if not one.spoken]
    replied = [scored_reply(one, missing, replies) for one in written]
    items = [aif_item(one, missing) for one in written]
    found = summarize_aif(items, replied, duration_edges_s=statistics.duration_edges_s, **statistics.options)
    scores = found.scores
    correct = zip(found.columns["id"], found.columns["correct"], strict=True)
    into.own.update({id_: float(v) for id_, v in correct if v is not None})
    into.scores.update(_scores("aif", scores, AIF_SCORES))
    _add_groups("aif", scores["breakdowns"], AIF_SCORES, into)
    return Aif(
        n=scores["n"],
        n_instructions=scores["n_instructions"],
        counts={"missing": scores["missing_replies"]},
        missing_audio=scores["missing_audio"],
        coverage=scores["coverage"],
        spoken=_spoken(prompts, missing, replies, statistics),
        verifiers=[_verifier(name, values) for name, values in scores["verifiers"].items()],
        verifiers_version=str(scores["verifiers_version"]),
    )


def _scores(kind: str, values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Score]:
    """The scores of a kind under its prefix; the main one also with Wilson's interval."""
    intervals = values["intervals"]
    wilson = MAIN_SCORE[kind]
    found = {f"{kind}_{name}": _score(values[name], intervals.get(name), values["n"]) for name in names}
    found[f"{kind}_{wilson}_wilson"] = _score(values[wilson], intervals.get(f"{wilson}_wilson"), values["n"])
    return found


def _score(value: float | None, interval: Mapping[str, float] | None, n: int) -> Score:
    ends = interval or {}
    return Score(value=value, low=ends.get("low"), high=ends.get("high"), n=n)


def _add_groups(kind: str, breakdowns: Mapping[str, Any], names: Sequence[str], into: Scored) -> None:
    """Both kinds of question share a group of the same label."""
    for breakdown, slices in breakdowns.items():
        groups = into.groups.setdefault(breakdown, {})
        for label, values in slices.items():
            own = _scores(kind, values, names)
            missing = values.get("missing_audio", 0)
            other = groups.get(label)
            groups[label] = Group(
                label=label,
                n=values["n"] + (other.n if other else 0),
                clusters=values["n"] + (other.clusters if other else 0),
                counts={"missing_audio": missing + (other.counts["missing_audio"] if other else 0)},
                scores={**(other.scores if other else {}), **own},
            )


def _verifier(name: str, values: Mapping[str, Any]) -> Group:
    scores = {
        "instruction_strict": _score(values["strict"], values["strict_wilson"], values["n"]),
        "instruction_loose": _score(values["loose"], None, values["n"]),
    }
    return Group(label=name, n=values["n"], clusters=values["n"], scores=scores)


def _spoken(
    prompts: Sequence[Prompt], missing: Mapping[str, str], replies: Replies, statistics: Statistics
) -> Paired | None:
    """Spoken minus written, each in the item's own order, over the items whose audio is all there."""
    sides: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for one in prompts:
        if one.order is None and one.id not in missing:
            sides[one.spoken][one.question.id] = is_right(one, replies)
    return paired(sides[True], {id_: value for id_, value in sides[False].items() if id_ in sides[True]}, statistics)


def paired(first: Mapping[str, float], second: Mapping[str, float], statistics: Statistics) -> Paired | None:
    """First minus second over the items that both have; None without any."""
    common = [id_ for id_ in first if id_ in second]
    if not common:
        return None
    found = compare({id_: first[id_] for id_ in common}, {id_: second[id_] for id_ in common}, **statistics.options)
    return Paired(
        first=math.fsum(first[id_] for id_ in common) / len(common),
        second=math.fsum(second[id_] for id_ in common) / len(common),
        difference=Score(
            value=found.difference, low=plain(found.interval.low), high=plain(found.interval.high), n=len(common)
        ),
        p_value=plain(found.p_value),
        minimum_detectable=plain(found.minimum_detectable),
        n=len(common),
    )


def loss_of(found: Paired) -> Loss:
    """A comparison with a baseline as a loss: positive where the system (first) is worse than the baseline."""
    value, low, high = found.difference.value, found.difference.low, found.difference.high
    absolute = Score(
        value=None if value is None else 0.0 - value,
        low=None if high is None else 0.0 - high,
        high=None if low is None else 0.0 - low,
        n=found.n,
    )
    base = found.second

    def share(number: float | None) -> float | None:
        return number / base if number is not None and base else None

    relative = Score(value=share(absolute.value), low=share(absolute.low), high=share(absolute.high), n=found.n)
    return Loss(absolute=absolute, relative=relative, p_value=found.p_value)
