"""The details of a run: kinds of error, other normalizers, the spread over RIRs, from which RT60 on it loses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from ...evaluation.groups import UNKNOWN
from ...metrics.change_point import METHOD, change_point
from ...metrics.error_counts import Unit
from ...metrics.paired_conditions import (
    Draws,
    error_kinds,
    error_rate,
    kind_changes,
    loss_change,
    rate_loss,
    rir_spread,
    significant_from,
)
from ...results.envelope import Group, Loss
from .details import ChangePoint, KindRate, OtherRate, RecognitionDetails, Spread
from .scoring import CLEAN, NO_FRONT_END, UNIT_OF, Pairing, Scored, Statistics, loss_of, score_of

_DECIMALS = 6


def details_of(
    scored: Scored,
    pairings: Mapping[str, Pairing],
    plain_clean: Scored | None,
    *,
    groups: Mapping[str, Sequence[Group]],
    column: str,
    front_end_cost: float | None,
    statistics: Statistics,
) -> RecognitionDetails:
    """The details of a run.

    `plain_clean` are the clean rows of the same transcriber without the front end, `column` is the one that has RT60.
    """
    clean, plain = pairings.get(CLEAN), pairings.get(NO_FRONT_END)
    loss_change: dict[str, Loss] = {}
    if clean is not None and plain is not None and plain_clean is not None:
        loss_change = _loss_change(clean, Pairing(plain.baseline, plain_clean), statistics)
    reverberant = clean if any(row.rir_id for row in scored.rows) else None
    return RecognitionDetails(
        kinds={unit: _kinds(scored, clean, unit, statistics.draws) for unit in scored.own},
        other_normalizers={
            name: _other(scored, clean, name, statistics) for name in scored.counts if name != scored.normalizer
        },
        spread=None if reverberant is None else _spread(reverberant, statistics),
        change_point=None if reverberant is None else _change_point(reverberant, column, groups, statistics),
        front_end_cost=front_end_cost,
        loss_change=loss_change,
    )


def _kinds(scored: Scored, clean: Pairing | None, unit: Unit, draws: Draws) -> dict[str, KindRate]:
    places = scored.places()
    rates = error_kinds(scored.own[unit][places], scored.clusters(places), draws=draws)
    changes = {} if clean is None else kind_changes(clean.counts(unit), draws=draws)
    return {
        kind: KindRate(rate=score_of(rate), change=score_of(changes[kind]) if kind in changes else None)
        for kind, rate in rates.items()
    }


def _other(scored: Scored, clean: Pairing | None, normalizer: str, statistics: Statistics) -> dict[str, OtherRate]:
    places, draws = scored.places(), statistics.draws
    labels = scored.clusters(places)
    found = {}
    for metric in statistics.corpus:
        unit = UNIT_OF[metric.family.name]
        rate = error_rate(scored.counts[normalizer][unit][places], labels, draws=draws)
        loss = None
        if clean is not None:
            lost = rate_loss(clean.counts(unit, normalizer=normalizer), draws=draws)
            loss = loss_of(lost, clean.bounds(metric, normalizer=normalizer))
        found[metric.name] = OtherRate(rate=score_of(rate, scored.bounds(metric, normalizer=normalizer)), loss=loss)
    return found


def _loss_change(changed: Pairing, plain: Pairing, statistics: Statistics) -> dict[str, Loss]:
    """Over the rows that have all four transcripts."""
    rows = sorted({*changed.places().tolist()} & {*plain.places().tolist()})
    found = {}
    for metric in statistics.corpus:
        unit = UNIT_OF[metric.family.name]
        change = loss_change(changed.counts(unit, rows), plain.counts(unit, rows), draws=statistics.draws)
        found[metric.name] = loss_of(change)
    return found


def _spread(clean: Pairing, statistics: Statistics) -> Spread:
    rirs = [clean.scored.rows[place].rir_id for place in clean.places().tolist()]
    found = rir_spread(clean.counts(statistics.unit), rirs, draws=statistics.draws)
    return Spread(
        within_utterances=score_of(found.within_utterances),
        between_rirs=score_of(found.between_rirs),
        rir_component=score_of(found.rir_component),
    )


def _change_point(
    clean: Pairing, column: str, groups: Mapping[str, Sequence[Group]], statistics: Statistics
) -> ChangePoint | None:
    """None where RT60 is not known of any row."""
    values = np.array([getattr(row, column) for row in clean.scored.rows], dtype=np.float64)
    places = clean.places()
    places = places[np.isfinite(values[places]) & (values[places] >= 0)]
    if not len(places):
        return None
    pairs = clean.counts(statistics.unit, places.tolist())
    before, after = pairs.errors
    found = change_point(values[places], after - before, pairs.lengths, pairs.clusters, **asdict(statistics.draws))
    metric = statistics.corpus[0].name
    bins = [group for group in groups.get("rt60_s", ()) if group.label != UNKNOWN]
    losses = [group.losses[CLEAN][metric] for group in bins]
    first = significant_from(
        [(one.absolute.value or 0.0, 1.0 if one.p_value is None else one.p_value) for one in losses]
    )

    def finite(value: float) -> float | None:
        return round(value, _DECIMALS) if math.isfinite(value) else None

    return ChangePoint(
        method=METHOD,
        threshold_s=finite(found.threshold),
        low_s=finite(found.interval.low),
        high_s=finite(found.interval.high),
        slope_per_s=finite(found.slope),
        p_value=found.p_value if math.isfinite(found.p_value) else None,
        n=found.n,
        # The first bin begins at 0.
        significant_from_s=None if first is None else bins[first].low or 0.0,
    )
