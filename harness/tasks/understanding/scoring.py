"""Scores of one answerer's replies, by the code that `squtr score mcqa` and `squtr score aif` use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....errors import DataError
from ....loaders.questions.question import Question
from .answers.accuracy import McqaItem, mark, summarize_mcqa
from .answers.following import AifItem, follow, summarize_aif
from .answers.items import Reply as ScoredReply
from .answers.labels import DURATION_EDGES_S, ItemLabels
from .answers.option_text import LETTERS
from .answers.verifiers.registry import Verifier, load_verifier
from ...metrics.comparison import compare
from ...metrics.statistics import mean_interval
from ...protocols import Reply
from ...results.old import Score
from .prompting import SPOKEN, Ask, Order
from ...escucha.results import Aif, Mcqa, Paired, Slice

Replies = Mapping[tuple[str, Order | None], Reply]
"""By `Ask.key`."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """How intervals are made."""

    seed: int = 0
    resamples: int = 1000
    duration_edges_s: tuple[float, ...] = DURATION_EDGES_S


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of both kinds of question, and by its id every written item's own score."""

    mcqa: Mcqa | None
    aif: Aif | None
    mcqa_items: dict[str, float] = field(default_factory=dict)
    aif_items: dict[str, float] = field(default_factory=dict)


def labels_of(question: Question) -> ItemLabels:
    """What the slices of an item are made of."""
    return ItemLabels(
        perception=question.perception,
        reasoning=question.reasoning,
        comparative=question.comparative,
        aetiology=question.aetiology,
        intelligibility=question.intelligibility,
        sex=question.sex,
        duration_s=question.duration_s,
    )


def verifiers_of(question: Question) -> tuple[Verifier, ...]:
    """What the reply to an instruction must follow. Raises `DataError` naming the item for one that cannot be used."""
    found = []
    for given in question.verifiers:
        arguments = {key: value for key, value in given.items() if key != "id"}
        try:
            found.append(load_verifier(str(given["id"]), arguments))
        except (DataError, ValueError) as error:
            message = error.message if isinstance(error, DataError) else str(error)
            raise DataError(f"item {question.id!r}: {message}", hint="Mend the item's verifiers.") from error
    return tuple(found)


def score(
    asks: Sequence[Ask],
    missing: frozenset[str],
    replies: Replies,
    statistics: Statistics,
    *,
    paired_spoken: bool = True,
) -> Scored:
    """All scores of `asks`, those of `Ask.id`s in `missing` without sound, the others with their replies.

    A reply that failed, or that is not there, scores 0. Spoken versions are in the paired comparison alone.
    """
    choices = [ask for ask in asks if ask.question.kind == "mcqa"]
    tasks = [ask for ask in asks if ask.question.kind == "aif"]
    options: dict[str, Any] = {"seed": statistics.seed, "resamples": statistics.resamples}
    mcqa, mcqa_items = _mcqa(choices, missing, replies, statistics, options) if choices else (None, {})
    aif, aif_items = _aif(tasks, missing, replies, statistics, options) if tasks else (None, {})
    return Scored(mcqa, aif, mcqa_items, aif_items)


def _said(ask: Ask, missing: frozenset[str], replies: Replies) -> ScoredReply:
    if ask.id in missing:
        return ScoredReply(ask.id, None, ask.order, missing_audio=True)
    reply = replies.get(ask.key)
    return ScoredReply(ask.id, None if reply is None or reply.error else reply.text, ask.order)


def _mcqa(
    asks: Sequence[Ask], missing: frozenset[str], replies: Replies, statistics: Statistics, options: dict[str, Any]
) -> tuple[Mcqa, dict[str, float]]:
    items = [mcqa_item(ask, missing) for ask in _items(asks)]
    found = summarize_mcqa(
        items,
        [_said(ask, missing, replies) for ask in asks],
        duration_edges_s=statistics.duration_edges_s,
        **options,
    )
    scores = found.scores
    correct = zip(found.columns["id"], found.columns["correct"], strict=True)
    own = {id_: float(value) for id_, value in correct if value is not None and not id_.endswith(SPOKEN)}
    names = ("accuracy", "accuracy_parsed", "chance", "accuracy_corrected", "unparsed")
    orders = ("consistency", "consistent", "accuracy_all_orders") if scores["n_orders"] else ()
    block = Mcqa(
        scores=_scores(scores, (*names, *orders), wilson="accuracy"),
        n=scores["n"],
        n_orders=scores["n_orders"],
        counts={
            "ambiguous": scores["ambiguous"],
            "absent": scores["absent"],
            "empty": scores["empty"],
            "missing": scores["missing_replies"],
        },
        missing_audio=scores["missing_audio"],
        coverage=scores["coverage"],
        position_bias=scores["position_bias"],
        spoken=_spoken(asks, missing, replies, statistics),
        breakdowns=_breakdowns(scores["breakdowns"], names, "accuracy"),
        parser_version=str(scores["parser_version"]),
    )
    return block, own


def _aif(
    asks: Sequence[Ask], missing: frozenset[str], replies: Replies, statistics: Statistics, options: dict[str, Any]
) -> tuple[Aif, dict[str, float]]:
    written = [ask for ask in asks if not ask.spoken]
    items = [aif_item(ask, missing) for ask in written]
    said = [_said(ask, missing, replies) for ask in written]
    found = summarize_aif(items, said, duration_edges_s=statistics.duration_edges_s, **options)
    scores = found.scores
    verifiers = {item.id: item.verifiers for item in items}
    own = {
        reply.id: float(all(follow(verifiers[reply.id], reply.text)[0])) for reply in said if reply.id not in missing
    }
    names = ("prompt_strict", "prompt_loose", "instruction_strict", "instruction_loose")
    block = Aif(
        scores={
            "accuracy": _scores(scores, ("prompt_strict",))["prompt_strict"],
            **_scores(scores, names, wilson="prompt_strict"),
        },
        n=scores["n"],
        n_instructions=scores["n_instructions"],
        counts={"missing": scores["missing_replies"]},
        missing_audio=scores["missing_audio"],
        coverage=scores["coverage"],
        spoken=_spoken(asks, missing, replies, statistics),
        verifiers={name: _verifier(values) for name, values in scores["verifiers"].items()},
        breakdowns=_breakdowns(scores["breakdowns"], names, "prompt_strict"),
        verifiers_version=str(scores["verifiers_version"]),
    )
    return block, own


def _items(asks: Sequence[Ask]) -> list[Ask]:
    """One ask per item."""
    return list({ask.id: ask for ask in asks}.values())


def mcqa_item(ask: Ask, missing: frozenset[str]) -> McqaItem:
    """The item that an ask is of, a spoken version beside its written question."""
    question = ask.question
    return McqaItem(
        ask.id,
        question.options,
        question.answer_index,
        labels_of(question),
        ask.id in missing,
        question.id if ask.spoken else "",
    )


def aif_item(ask: Ask, missing: frozenset[str]) -> AifItem:
    """The item that an ask is of."""
    return AifItem(ask.id, verifiers_of(ask.question), labels_of(ask.question), ask.id in missing)


def _scores(values: Mapping[str, Any], names: Sequence[str], wilson: str = "") -> dict[str, Score]:
    intervals = values["intervals"]
    found: dict[str, Score] = {}
    for name in names:
        found[name] = _score(values[name], intervals.get(name), values["n"])
        if name == wilson:
            found[f"{name}_wilson"] = _score(values[name], intervals.get(f"{name}_wilson"), values["n"])
    return found


def _score(value: float | None, interval: Mapping[str, float] | None, n: int) -> Score:
    ends = interval or {}
    return Score(value=value, low=ends.get("low"), high=ends.get("high"), n=n)


def _breakdowns(found: Mapping[str, Any], names: Sequence[str], wilson: str) -> dict[str, dict[str, Slice]]:
    return {
        breakdown: {
            name: Slice(
                scores=_scores(values, names, wilson), n=values["n"], missing_audio=values.get("missing_audio", 0)
            )
            for name, values in slices.items()
        }
        for breakdown, slices in found.items()
    }


def _verifier(values: Mapping[str, Any]) -> Slice:
    scores = {
        "instruction_strict": _score(values["strict"], values["strict_wilson"], values["n"]),
        "instruction_loose": _score(values["loose"], None, values["n"]),
    }
    return Slice(scores=scores, n=values["n"], missing_audio=0)


def _spoken(asks: Sequence[Ask], missing: frozenset[str], replies: Replies, statistics: Statistics) -> Paired | None:
    """Spoken minus written, each in the item's own order, over the items whose sounds are all there."""
    first: dict[str, float] = {}
    second: dict[str, float] = {}
    for ask in asks:
        if ask.order is None and ask.id not in missing:
            (first if ask.spoken else second)[ask.question.id] = right(ask, replies.get(ask.key))
    return paired(first, {id_: value for id_, value in second.items() if id_ in first}, statistics)


def right(ask: Ask, reply: Reply | None) -> float:
    """1 or 0: whether a reply chose the right option, or followed all that it must."""
    text = None if reply is None or reply.error else reply.text
    if ask.question.kind == "aif":
        return float(all(follow(verifiers_of(ask.question), text)[0]))
    item = mcqa_item(ask, frozenset())
    return float(mark(item, ScoredReply(item.id, text, ask.order)).right)


def paired(first: Mapping[str, float], second: Mapping[str, float], statistics: Statistics) -> Paired | None:
    """First minus second over the items that both have; None without any."""
    common = [id_ for id_ in first if id_ in second]
    if not common:
        return None
    found = compare(
        {id_: first[id_] for id_ in common},
        {id_: second[id_] for id_ in common},
        seed=statistics.seed,
        resamples=statistics.resamples,
    )
    return Paired(
        first=math.fsum(first[id_] for id_ in common) / len(common),
        second=math.fsum(second[id_] for id_ in common) / len(common),
        difference=Score(
            value=found.difference, low=_plain(found.interval.low), high=_plain(found.interval.high), n=len(common)
        ),
        p_value=_plain(found.p_value),
        minimum_detectable=_plain(found.minimum_detectable),
        n=len(common),
    )


def overall(scored: Scored, statistics: Statistics) -> Score:
    """The mean over all items of both kinds."""
    values = np.array([*scored.mcqa_items.values(), *scored.aif_items.values()])
    if not values.size:
        return Score(value=None, n=0)
    interval = mean_interval(values, seed=statistics.seed, resamples=statistics.resamples)
    return Score(value=float(values.mean()), low=_plain(interval.low), high=_plain(interval.high), n=int(values.size))


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def rows_of(
    asks: Sequence[Ask], missing: Mapping[str, str], replies: Replies, sounds: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The rows of `ASK_SCHEMA`; `missing` maps the ids of asks without sound to why."""
    return [_row(ask, missing.get(ask.id, ""), replies.get(ask.key), sounds) for ask in asks]


def _row(ask: Ask, gone: str, reply: Reply | None, sounds: Mapping[str, str]) -> dict[str, Any]:
    question = ask.question
    said = Reply("", error="" if gone else "no reply") if reply is None or gone else reply
    row: dict[str, Any] = {
        "id": question.id,
        "kind": question.kind,
        "spoken": ask.spoken,
        "order": ask.letters,
        "question": question.question,
        "options": list(question.options),
        "answer": "",
        "reply": said.text,
        "error": said.error,
        "truncated": said.truncated,
        "audio_truncated": said.audio_truncated,
        "parsed": None,
        "status": "missing_audio" if gone else "",
        "how": "",
        "correct": math.nan,
        "verifiers": [],
        "followed": [],
        "followed_loose": [],
        "audio_status": gone or "ok",
        "audios": list(ask.audios),
        "audio_sha256": [sounds.get(audio, "") for audio in ask.audios],
        "duration_s": question.duration_s,
        "perception": list(question.perception),
        "reasoning": list(question.reasoning),
        "aetiology": question.aetiology,
        "intelligibility": question.intelligibility,
        "sex": question.sex,
    }
    text = None if said.error else said.text
    if question.kind == "mcqa":
        row["answer"] = LETTERS[question.answer_index]
        if not gone:
            item = mcqa_item(ask, frozenset())
            marked = mark(item, ScoredReply(item.id, text, ask.order))
            row |= {
                "parsed": None if marked.chosen is None else LETTERS[marked.chosen],
                "status": "missing_reply" if marked.parsed is None else marked.parsed.status,
                "how": "" if marked.parsed is None else marked.parsed.how,
                "correct": float(marked.right),
            }
        return row
    verifiers = verifiers_of(question)
    row["verifiers"] = [verifier.id for verifier in verifiers]
    if not gone:
        strict, loose = follow(verifiers, text)
        row |= {
            "followed": strict,
            "followed_loose": loose,
            "status": "missing_reply" if text is None else "followed" if all(strict) else "not_followed",
            "correct": float(all(strict)),
        }
    return row
