"""From what was heard of pairs to their counts, rates, bins, the map and the onset of the loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...loaders.records import NAN
from ..evaluation.listeners import Heard
from ..metrics import paired_arms
from ..metrics.change_point import METHOD, change_point
from ..metrics.error_counts import Unit, count_texts_array, default_unit, tokens
from ..metrics.flags import UtteranceFlags, flag_utterance
from ..metrics.paired_arms import KINDS, ArmRates, Arms, Delta, Draws, arm_rates, significant_from
from ..protocols import Transcript
from ..text.languages import is_written_without_spaces
from ..text.normalizers import Normalizer
from .arms import Bins, PairInfo
from .results import (
    FLAGS,
    ArmFailures,
    Bin,
    Difference,
    Effect,
    KindRates,
    MapCell,
    Onset,
    Rates,
    Spread,
    score_of,
)

NO_FLAGS = UtteranceFlags(loop=False, hallucination=False, empty=False, truncated=False)
RATE_OF: Mapping[Unit, str] = {"word": "wer", "char": "cer"}
_RT60_DECIMALS = 6


def units_of(language: str) -> list[Unit]:
    """The units that errors are counted in, the customary one first.

    >>> units_of("en"), units_of("zh")
    (['word', 'char'], ['char'])
    """
    return ["char"] if is_written_without_spaces(language) else ["word", "char"]


def main_metric(language: str) -> str:
    """The rate that bins, map and onset are about: `wer`, or `cer` for languages written without spaces."""
    return RATE_OF[default_unit(language)]


@dataclass(frozen=True, slots=True)
class HeardPairs:
    """One recognizer's transcripts of all pairs of a language; `clean` and `reverb` have one entry per pair."""

    language: str
    pairs: Sequence[PairInfo]
    clean: Sequence[Heard]
    reverb: Sequence[Heard]

    @classmethod
    def of(
        cls, language: str, pairs: Sequence[PairInfo], utterances: Sequence[Heard], reverberant: Sequence[Heard]
    ) -> HeardPairs:
        """From each utterance heard once, and each pair."""
        by_id = {heard.query.id: heard for heard in utterances}
        return cls(language, pairs, [by_id[pair.utterance_id] for pair in pairs], reverberant)

    @property
    def arms(self) -> dict[str, Sequence[Heard]]:
        """Both arms by name."""
        return {"clean": self.clean, "reverb": self.reverb}


class ScoredPairs:
    """The counts of both arms under one text normalizer.

    A pair of which an arm could not be decoded is in no rate, and is counted.
    """

    def __init__(self, heard: HeardPairs, normalizer: Normalizer) -> None:
        self.heard = heard
        self.pairs = heard.pairs
        self.normalizer = normalizer
        # An utterance's text and clean transcript stand in every pair: each distinct text is normalized once.
        normalized = cache(normalizer)
        self.references = [normalized(pair.text) for pair in heard.pairs]
        self.transcripts = {
            name: [normalized(h.transcript.text) if not h.transcript.error else "" for h in side]
            for name, side in heard.arms.items()
        }
        self.decoded = {
            name: np.array([not h.transcript.error for h in side], dtype=bool) for name, side in heard.arms.items()
        }
        self.counts: dict[Unit, dict[str, NDArray[np.int64]]] = {
            unit: {
                name: count_texts_array(self.references, texts, unit=unit, language=heard.language)
                for name, texts in self.transcripts.items()
            }
            for unit in units_of(heard.language)
        }

    @cached_property
    def rows(self) -> list[int]:
        """The pairs of which both arms were decoded."""
        both: list[int] = np.flatnonzero(self.decoded["clean"] & self.decoded["reverb"]).tolist()
        return both

    def arms(self, unit: Unit, rows: Sequence[int] | None = None) -> Arms:
        """The counts of some pairs (None: of all that both arms were decoded of)."""
        kept = np.array(self.rows if rows is None else rows, dtype=np.intp)
        labels = tuple(self.pairs[i].utterance_id for i in kept.tolist())
        return Arms(self.counts[unit]["clean"][kept], self.counts[unit]["reverb"][kept], labels)

    @cached_property
    def flags(self) -> dict[str, list[UtteranceFlags]]:
        """The flags of every clip by arm; those of a clip that was not decoded are all false."""
        unit, language = default_unit(self.heard.language), self.heard.language
        said = [tokens(text, unit, language) for text in self.references]

        def flagged(place: int, transcript: Transcript, text: str) -> UtteranceFlags:
            if transcript.error:
                return NO_FLAGS
            own = tokens(text, unit, language)
            return flag_utterance(said[place], own, loop=transcript.loop, truncated=transcript.truncated)

        return {
            name: [
                flagged(i, h.transcript, text)
                for i, (h, text) in enumerate(zip(side, self.transcripts[name], strict=True))
            ]
            for name, side in self.heard.arms.items()
        }


def difference_of(delta: Delta) -> Difference:
    """A difference as it stands in a result."""
    known = math.isfinite(delta.p_value)
    return Difference(
        absolute=score_of(delta.absolute),
        relative=score_of(delta.relative),
        p_value=delta.p_value if known else None,
        exact=delta.exact,
    )


def rates_of(found: ArmRates) -> Rates:
    """Rates as they stand in a result."""
    return Rates(clean=score_of(found.clean), reverb=score_of(found.reverb), delta=difference_of(found.delta))


def all_rates(scored: ScoredPairs, draws: Draws, *, macro: bool = True) -> dict[str, Rates]:
    """Corpus rates of every unit, and with `macro` the means of the pairs' own rates."""
    found: dict[str, Rates] = {}
    for unit in scored.counts:
        arms = scored.arms(unit)
        found[RATE_OF[unit]] = rates_of(arm_rates(arms, draws=draws))
        if macro:
            found[f"{RATE_OF[unit]}_macro"] = rates_of(arm_rates(arms, macro=True, draws=draws))
    return found


def all_kinds(scored: ScoredPairs, draws: Draws) -> dict[str, dict[str, KindRates]]:
    """By unit, what kind of error the room makes."""
    return {
        unit: {
            kind: KindRates(clean=score_of(own.clean), reverb=score_of(own.reverb), change=score_of(own.change))
            for kind, own in paired_arms.error_kinds(scored.arms(unit), draws=draws).items()
        }
        for unit in scored.counts
    }


def spread_of(scored: ScoredPairs, draws: Draws) -> Spread:
    """How much the loss of the main metric differs between rooms."""
    rooms = [scored.pairs[i].rir_id for i in scored.rows]
    found = paired_arms.room_spread(scored.arms(default_unit(scored.heard.language)), rooms, draws=draws)
    return Spread(
        within_utterances=score_of(found.within_utterances),
        between_rooms=score_of(found.between_rooms),
        room_component=score_of(found.room_component),
    )


def bins_of(scored: ScoredPairs, bins: Bins, draws: Draws) -> list[Bin]:
    """The rates of every bin that has pairs, in order; that of the unknown comes last."""
    rows = scored.rows
    names = [bins.number(scored.pairs[i]) for i in rows]
    rooms = [scored.pairs[i].rir_id for i in rows]
    units = {RATE_OF[unit]: scored.arms(unit) for unit in scored.counts}
    found = paired_arms.rates_by_bin(units, names, rooms, draws=draws)
    shown = []
    for number in bins.numbers:
        if number not in found:
            continue
        own = found[number]
        low, high = bins.bounds(number)
        shown.append(
            Bin(
                number=-1 if number is None else number,
                known=number is not None,
                low=low,
                high=high,
                pairs=own.pairs,
                utterances=own.utterances,
                rooms=own.rooms,
                rates={name: rates_of(rates) for name, rates in own.rates.items()},
                p_holm=own.p_holm if math.isfinite(own.p_holm) else None,
            )
        )
    return shown


def map_of(scored: ScoredPairs, rt60: Bins, drr: Bins, draws: Draws) -> list[MapCell]:
    """The main metric by RT60 and DRR, of all combinations that have pairs and both values."""
    members: dict[tuple[int, int], list[int]] = {}
    for i in scored.rows:
        first, second = rt60.number(scored.pairs[i]), drr.number(scored.pairs[i])
        if first is not None and second is not None:
            members.setdefault((first, second), []).append(i)
    unit = default_unit(scored.heard.language)
    return [
        MapCell(
            rt60=place[0],
            drr=place[1],
            pairs=len(rows),
            utterances=len({scored.pairs[i].utterance_id for i in rows}),
            rooms=len({scored.pairs[i].rir_id for i in rows}),
            rates=rates_of(arm_rates(scored.arms(unit, rows), draws=draws)),
        )
        for place, rows in sorted(members.items())
    ]


def onset_of(scored: ScoredPairs, bins: Bins, by_rt60: Sequence[Bin], draws: Draws) -> Onset:
    """From which RT60 on the main metric is lost."""
    language = scored.heard.language
    rows = [i for i in scored.rows if math.isfinite(bins.value(scored.pairs[i])) and bins.value(scored.pairs[i]) >= 0]
    arms = scored.arms(default_unit(language), rows)
    clean, reverb = arms.errors
    found = change_point(
        np.array([bins.value(scored.pairs[i]) for i in rows], dtype=np.float64),
        reverb - clean,
        arms.lengths,
        arms.utterances,
        seed=draws.seed,
        resamples=draws.resamples,
        permutations=draws.permutations,
    )
    known = [bin_ for bin_ in by_rt60 if bin_.known]
    deltas = [bin_.rates[main_metric(language)].delta for bin_ in known]
    first = significant_from([(d.absolute.value or 0.0, 1.0 if d.p_value is None else d.p_value) for d in deltas])
    # The first bin begins at 0.
    edge = None if first is None else known[first].low or 0.0

    def finite(value: float) -> float | None:
        return round(value, _RT60_DECIMALS) if math.isfinite(value) else None

    return Onset(
        method=METHOD,
        threshold_s=finite(found.threshold),
        low_s=finite(found.interval.low),
        high_s=finite(found.interval.high),
        slope_per_s=finite(found.slope),
        p_value=found.p_value if math.isfinite(found.p_value) else None,
        n=found.n,
        significant_from_s=edge,
    )


def failures_of(scored: ScoredPairs) -> dict[str, ArmFailures]:
    """What went wrong in each arm; the clean arm counts every utterance once."""
    found = {}
    for name, side in scored.heard.arms.items():
        seen: dict[str, int] = {}
        for i, heard in enumerate(side):
            seen.setdefault(heard.query.id, i)
        rows = list(seen.values())
        flags = [scored.flags[name][i] for i in rows]
        found[name] = ArmFailures(
            n=len(rows),
            undecodable=sum(bool(side[i].transcript.error) for i in rows),
            loops=sum(f.loop for f in flags),
            truncated=sum(f.truncated for f in flags),
            empty=sum(f.empty for f in flags),
            hallucinations=sum(f.hallucination for f in flags),
        )
    return found


def effect_of(
    changed: ScoredPairs,
    plain: ScoredPairs,
    *,
    rt60: Bins,
    drr: Bins,
    draws: Draws,
    seconds_per_second: float | None,
) -> Effect:
    """What a front end changes on the pairs that were decoded with it and without."""
    rows = sorted(set(changed.rows) & set(plain.rows))
    arms: dict[str, dict[str, Difference]] = {"clean": {}, "reverb": {}}
    deltas = {}
    unit = default_unit(changed.heard.language)

    def between(unit: Unit, arm: str, chosen: Sequence[int]) -> Arms:
        """Without and with the front end in the places of clean and reverberant."""
        kept = np.array(chosen, dtype=np.intp)
        labels = tuple(plain.pairs[i].utterance_id for i in chosen)
        return Arms(plain.counts[unit][arm][kept], changed.counts[unit][arm][kept], labels)

    for own, name in ((own, RATE_OF[own]) for own in changed.counts):
        for arm, found in arms.items():
            found[name] = difference_of(arm_rates(between(own, arm, rows), draws=draws).delta)
        deltas[name] = difference_of(
            paired_arms.delta_change(changed.arms(own, rows), plain.arms(own, rows), draws=draws)
        )

    def by(bins: Bins) -> dict[int, Difference]:
        members: dict[int, list[int]] = {}
        for i in rows:
            number = bins.number(plain.pairs[i])
            members.setdefault(-1 if number is None else number, []).append(i)
        return {
            number: difference_of(arm_rates(between(unit, "reverb", own), draws=draws).delta)
            for number, own in sorted(members.items())
        }

    return Effect(
        clean=arms["clean"],
        reverb=arms["reverb"],
        delta=deltas,
        by_rt60=by(rt60),
        by_drr=by(drr),
        seconds_per_second=seconds_per_second,
    )


def pair_rows(scored: ScoredPairs, rt60: Bins, drr: Bins) -> list[dict[str, Any]]:
    """One row per pair, the columns of `PAIR_SCHEMA`."""
    return [_row(scored, i, rt60, drr) for i in range(len(scored.pairs))]


def _row(scored: ScoredPairs, place: int, rt60: Bins, drr: Bins) -> dict[str, Any]:
    pair = scored.pairs[place]
    numbers = rt60.number(pair), drr.number(pair)
    row: dict[str, Any] = {
        "id": pair.sample_id,
        "utterance_id": pair.utterance_id,
        "subset": pair.subset,
        "language": pair.language,
        "speaker": pair.speaker,
        "text": pair.text,
        "rir_id": pair.rir_id,
        "room_id": pair.room_id,
        "stratum": pair.stratum,
        "rt60_s": pair.rt60_s,
        "edt_s": pair.edt_s,
        "drr_db": pair.drr_db,
        "c50_db": pair.c50_db,
        "source_rt60_s": pair.source_rt60_s,
        "source_drr_db": pair.source_drr_db,
        "rt60_bin": -1 if numbers[0] is None else numbers[0],
        "drr_bin": -1 if numbers[1] is None else numbers[1],
        "snr_db": pair.snr_db,
        "noise_family": pair.noise_family,
        "clean_duration_s": pair.duration_s,
        "reverb_duration_s": pair.reverb_duration_s,
    }
    for arm, side in scored.heard.arms.items():
        heard, flags = side[place], scored.flags[arm][place]
        row |= {f"{arm}_transcript": heard.transcript.text, f"{arm}_error": heard.transcript.error}
        row |= {f"{arm}_{flag}": getattr(flags, flag) for flag in FLAGS}
        row[f"{arm}_sha256"] = heard.audio_sha256
    for unit in RATE_OF:
        counts = scored.counts.get(unit)
        errors = {}
        for arm in scored.heard.arms:
            own = [NAN] * 4 if counts is None or not scored.decoded[arm][place] else counts[arm][place].tolist()
            row |= {f"{arm}_{unit}_{kind}": float(own[k]) for k, kind in enumerate(KINDS)}
            row[f"{arm}_{unit}_errors"] = errors[arm] = float(sum(own[:3]))
        row[f"delta_{unit}_errors"] = errors["reverb"] - errors["clean"]
        row[f"{unit}_reference_length"] = NAN if counts is None else float(counts["clean"][place][3])
    return row
