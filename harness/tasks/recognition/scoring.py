"""From transcripts to error counts, and from counts to rates, losses and groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....errors import DataError, UsageError
from ....loaders.records import SpokenQuery
from ....loaders.text import has_replacement
from ...evaluation.groups import group_members
from ...evaluation.inference import Inferred
from ...metrics.attribution import Estimate
from ...metrics.comparison import holm
from ...metrics.error_counts import Unit, count_texts_array, default_unit, tokens
from ...metrics.failed_items import Bounds, loss_bounds, rate_bounds
from ...metrics.flags import NO_FLAGS, UtteranceFlags, flag_utterance
from ...metrics.paired_conditions import Counts, Draws, PairedCounts, RateLoss, error_rate, errors_of, rate_loss
from ...metrics.registry import Metric, parse_metric
from ...results.envelope import Group, Loss, Score, finite
from ...text.languages import is_written_without_spaces
from ...text.normalizers import load_normalizer

UNIT_OF: Mapping[str, Unit] = {"wer": "word", "cer": "char"}
CLEAN, NO_FRONT_END = "clean", "no-front-end"
RAW = "raw"
Cluster = tuple[str, str]
"""Subset and utterance."""


def rate_metrics(names: Sequence[str], language: str) -> list[Metric]:
    """The error rates of these names that apply to a language: words do not to one that is written without spaces.

    Raises `UsageError` for metrics of other kinds, and if none applies.

    >>> [metric.name for metric in rate_metrics(["wer", "cer", "cer_macro"], "zh")]
    ['cer', 'cer_macro']
    """
    metrics = [parse_metric(name) for name in dict.fromkeys(names)]
    for metric in metrics:
        if metric.family.name not in UNIT_OF or metric.kind:
            raise UsageError(f"{metric.name} does not apply to speech recognition.", hint="For example wer, cer_macro.")
    found = [m for m in metrics if UNIT_OF[m.family.name] == "char" or not is_written_without_spaces(language)]
    if not found:
        raise UsageError(f"{', '.join(names)} does not apply to {language!r}.", hint="Add cer.")
    return found


def units_of(language: str) -> list[Unit]:
    """The units that errors are counted in, the customary one first.

    >>> units_of("en"), units_of("zh")
    (['word', 'char'], ['char'])
    """
    return ["char"] if is_written_without_spaces(language) else ["word", "char"]


@dataclass(frozen=True, slots=True)
class Scored:
    """The counts of a run's rows, by normalizer (the run's own, then others) and unit.

    A row that has no transcript is in no rate, and is counted: it bounds what the rate could be. Its counts are those
    of an empty transcript. A baseline has no `inferred` and no `flags`.
    """

    normalizer: str
    rows: Sequence[SpokenQuery]
    decoded: NDArray[np.bool_]
    counts: Mapping[str, Mapping[Unit, Counts]]
    inferred: Sequence[Inferred] = ()
    flags: Sequence[UtteranceFlags] = ()

    @property
    def own(self) -> Mapping[Unit, Counts]:
        """The counts under the run's own normalizer."""
        return self.counts[self.normalizer]

    def without_items(self) -> Scored:
        return replace(self, inferred=(), flags=())

    def clusters(self, rows: NDArray[np.intp]) -> tuple[Cluster, ...]:
        """What is drawn together: the query or text of every row."""
        return tuple((self.rows[i].subset, self.rows[i].query_id) for i in rows.tolist())

    def places(self, rows: Sequence[int] | None = None) -> NDArray[np.intp]:
        """The rows with a transcript, of these (None: of all)."""
        given = np.arange(len(self.rows)) if rows is None else np.asarray(rows, dtype=np.intp)
        return np.asarray(given[self.decoded[given]], dtype=np.intp)

    def failed(self, rows: Sequence[int] | None = None) -> int:
        """How many of these rows (None: of all) have no transcript."""
        return (len(self.rows) if rows is None else len(rows)) - len(self.places(rows))

    def errors(self, unit: Unit, normalizer: str = "") -> NDArray[np.float64]:
        """The errors of all rows, NaN where there is no transcript."""
        return np.where(self.decoded, errors_of(self.counts[normalizer or self.normalizer][unit]), np.nan)

    def lengths(self, unit: Unit, normalizer: str = "") -> NDArray[np.float64]:
        """The reference lengths of all rows."""
        return self.counts[normalizer or self.normalizer][unit][:, -1].astype(np.float64)

    def bounds(self, metric: Metric, rows: Sequence[int] | None = None, *, normalizer: str = "") -> Bounds | None:
        """Between what a rate of these rows (None: of all) lies, whatever the failed ones are."""
        if self.decoded.all():
            return None
        unit, chosen = UNIT_OF[metric.family.name], slice(None) if rows is None else list(rows)
        errors, lengths = self.errors(unit, normalizer), self.lengths(unit, normalizer)
        return rate_bounds(errors[chosen], lengths[chosen], macro=metric.macro)


def score_rows(inferred: Sequence[Inferred], normalizer: str, language: str) -> Scored:
    """Count the errors of every row, and flag what else is wrong with its transcript."""
    texts = [one.row.text for one in inferred]
    given = ["" if one.transcript.error else one.transcript.text for one in inferred]
    counts: dict[str, Mapping[Unit, Counts]] = {}
    flags: list[UtteranceFlags] = []
    for name in dict.fromkeys((normalizer, RAW)):
        # An utterance's text stands in every row of its own: each distinct text is normalized once.
        normalized = cache(load_normalizer(name, language))
        references, transcripts = list(map(normalized, texts)), list(map(normalized, given))
        counts[name] = {
            unit: count_texts_array(references, transcripts, unit=unit, language=language)
            for unit in units_of(language)
        }
        flags = flags or _flags(inferred, references, transcripts, language)
    decoded = np.array([not one.transcript.error for one in inferred], dtype=bool)
    return Scored(normalizer, [one.row for one in inferred], decoded, counts, inferred, flags)


def _flags(
    inferred: Sequence[Inferred], references: Sequence[str], transcripts: Sequence[str], language: str
) -> list[UtteranceFlags]:
    unit = default_unit(language)
    return [
        NO_FLAGS
        if one.transcript.error
        else flag_utterance(
            tokens(reference, unit, language),
            tokens(transcript, unit, language),
            loop=one.transcript.loop,
            truncated=one.transcript.truncated,
            invalid_text=has_replacement(one.transcript.text) and not has_replacement(one.row.text),
        )
        for one, reference, transcript in zip(inferred, references, transcripts, strict=True)
    ]


class Pairing:
    """The rows of a run with those of a baseline: the same row, or else the clean one of its utterance.

    Raises `DataError` for a row that the baseline does not have.
    """

    def __init__(self, scored: Scored, baseline: Scored) -> None:
        self.scored, self.baseline = scored, baseline
        places = {(row.subset, row.id): place for place, row in enumerate(baseline.rows)}
        partners = []
        for row in scored.rows:
            partner = places.get((row.subset, row.id), places.get((row.subset, row.utterance_id)))
            if partner is None:
                raise DataError(
                    f"{row.id!r} of {row.subset} has no partner to compare it with.", hint="Build it again."
                )
            partners.append(partner)
        self._partners = np.array(partners, dtype=np.intp)

    def places(self, rows: Sequence[int] | None = None) -> NDArray[np.intp]:
        """The rows, of these (None: of all), that have a transcript on both sides."""
        found = self.scored.places(rows)
        return np.asarray(found[self.baseline.decoded[self._partners[found]]], dtype=np.intp)

    def counts(self, unit: Unit, rows: Sequence[int] | None = None, *, normalizer: str = "") -> PairedCounts:
        """Both sides' counts of these rows, as far as both have a transcript."""
        found = self.places(rows)
        name, other = normalizer or self.scored.normalizer, normalizer or self.baseline.normalizer
        return PairedCounts(
            self.baseline.counts[other][unit][self._partners[found]],
            self.scored.counts[name][unit][found],
            self.scored.clusters(found),
        )

    def bounds(self, metric: Metric, rows: Sequence[int] | None = None, *, normalizer: str = "") -> Bounds | None:
        """Between what the loss of these rows (None: of all) lies, whatever the failed ones of both sides are."""
        if self.scored.decoded.all() and self.baseline.decoded.all():
            return None
        unit, chosen = UNIT_OF[metric.family.name], slice(None) if rows is None else list(rows)
        here = self.scored.errors(unit, normalizer)
        there = self.baseline.errors(unit, normalizer)[self._partners]
        lengths = self.scored.lengths(unit, normalizer)
        return loss_bounds(here[chosen], there[chosen], lengths[chosen], macro=metric.macro)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is computed, and how intervals and tests draw."""

    metrics: Sequence[Metric]
    draws: Draws

    @property
    def unit(self) -> Unit:
        """That of the main metric."""
        return UNIT_OF[self.metrics[0].family.name]

    @property
    def corpus(self) -> list[Metric]:
        """Corpus rates alone: those of groups."""
        return list(dict.fromkeys(replace(metric, macro=False) for metric in self.metrics))

    def scores(self, scored: Scored, rows: Sequence[int] | None = None, *, corpus: bool = False) -> dict[str, Score]:
        """The rates of some rows (None: of all)."""
        places = scored.places(rows)
        labels = scored.clusters(places)
        return {
            metric.name: score_of(
                error_rate(
                    scored.own[UNIT_OF[metric.family.name]][places], labels, macro=metric.macro, draws=self.draws
                ),
                scored.bounds(metric, rows),
            )
            for metric in (self.corpus if corpus else self.metrics)
        }

    def losses(self, pairing: Pairing, rows: Sequence[int] | None = None, *, corpus: bool = False) -> dict[str, Loss]:
        """What some rows (None: all) lose against a baseline."""
        return {
            metric.name: loss_of(
                rate_loss(pairing.counts(UNIT_OF[metric.family.name], rows), macro=metric.macro, draws=self.draws),
                pairing.bounds(metric, rows),
            )
            for metric in (self.corpus if corpus else self.metrics)
        }

    def groups(
        self,
        scored: Scored,
        pairings: Mapping[str, Pairing],
        breakdowns: Sequence[str],
        edges: Mapping[str, Sequence[float]],
    ) -> dict[str, list[Group]]:
        """The groups of every breakdown that says something of these rows, p-values corrected over its groups."""
        found: dict[str, list[Group]] = {}
        for breakdown in breakdowns:
            groups = []
            for members in group_members(scored.rows, breakdown, edges):
                own = [scored.rows[place] for place in members.rows]
                counts = {"rirs": len({row.rir_id for row in own if row.rir_id}), "failed": scored.failed(members.rows)}
                groups.append(
                    Group(
                        label=members.label,
                        low=members.low,
                        high=members.high,
                        n=len(own),
                        clusters=len({(row.subset, row.query_id) for row in own}),
                        counts={name: count for name, count in counts.items() if count},
                        scores=self.scores(scored, members.rows, corpus=True),
                        losses={
                            name: self.losses(pairing, members.rows, corpus=True) for name, pairing in pairings.items()
                        },
                    )
                )
            if groups:
                found[breakdown] = _corrected(groups)
        return found


def _corrected(groups: Sequence[Group]) -> list[Group]:
    """The groups, their p-values corrected (Holm) over all of them, for each baseline and metric."""
    losses = [{name: dict(own) for name, own in group.losses.items()} for group in groups]
    for name, metric in dict.fromkeys((n, m) for group in losses for n, own in group.items() for m in own):
        p_values = {str(i): math.nan if (p := own[name][metric].p_value) is None else p for i, own in enumerate(losses)}
        for i, p_holm in holm(p_values).items():
            loss = losses[int(i)][name][metric]
            losses[int(i)][name][metric] = loss.model_copy(update={"p_holm": finite(p_holm)})
    return [group.model_copy(update={"losses": own}) for group, own in zip(groups, losses, strict=True)]


def score_of(estimate: Estimate, bounds: Bounds | None = None) -> Score:
    return Score.of(estimate.value, estimate.interval.low, estimate.interval.high, estimate.n, bounds=bounds)


def loss_of(found: RateLoss, bounds: Bounds | None = None) -> Loss:
    return Loss(
        absolute=score_of(found.absolute, bounds), relative=score_of(found.relative), p_value=finite(found.p_value)
    )
