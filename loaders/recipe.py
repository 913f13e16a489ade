"""The recipe of a data set: everything that decides its bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

from ..errors import UsageError, unknown_name
from .audio import Channel
from .banks import NoiseBank, RirBank, load_noise_bank, load_rir_bank
from .conditions import STEPS, TEXT, Condition, check_kinds, extra_columns, parse_condition
from .conditions.step import ColumnType, StepContext, StepKind
from .keyed import RECIPE_VERSION, keyed_seed
from .left_out import LeftOut, left_out_of, merged
from .mixing import Level, check_level
from .origins import Kind, Origin
from .records import SAMPLE_RATE, CleanSpeech, Query, Row, Source, Take
from .rirs.measured import MeasuredRir, Progress, is_known, measure_rirs, rirs_digest
from .rirs.plan import TEST, VALIDATION, Plan, make_plan
from .rirs.strata import Strata
from .rows import query_features, speech_of
from .sources import load_source, with_channel
from .sources.joined import JoinedSource, origins_of
from .splits import SPLITS, Division

if TYPE_CHECKING:
    import datasets

RT60_BINS, DRR_BINS = 5, 5
LEAST_RATE, HIGHEST_RATE = 8_000, 192_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is built: sources, subsets, conditions, banks and seed, each with the version of its content.

    - `noise` and `rirs` are () when no condition needs them; a subset has one bank of noises. `limit` is the number of
      queries per subset (0: all), taken by `choose_queries`.
    - `draws` is how often noise is drawn for an utterance under a condition with noise.
    - `steps` are the steps of each condition (see `Condition.described`), `columns` what they add to the row columns.
    - With `stratify` ("rt60" or "rt60+drr") a plan deals `rirs_per_utterance` RIRs to each of `utterances` (0: all)
      utterances; `rir_measures` identifies the measures and publisher's values of all RIRs that could be dealt. Without
      it, a RIR is drawn for each utterance alone, and the fields behind it are 0 or "".
    - `splits` are `test`, `validation` and `test` of a plan, or, where everything is `divided` (see `splits`), `train`,
      `validation` and `test`; with `shared_speakers` a speaker may be in several of these.
    """

    sources: tuple[Origin, ...]
    subsets: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]
    steps: Mapping[str, Sequence[Mapping[str, Any]]]
    columns: Mapping[str, ColumnType]
    noise: tuple[Origin, ...]
    rirs: tuple[Origin, ...]
    seed: int
    level: Level
    limit: int
    sample_rate: int = SAMPLE_RATE
    draws: int = 1
    splits: tuple[str, ...] = (TEST,)
    divided: bool = False
    shared_speakers: bool = False
    stratify: str = ""
    rirs_per_utterance: int = 1
    rt60_bins: int = 0
    drr_bins: int = 0
    known_rirs_only: bool = False
    utterances: int = 0
    rir_measures: str = ""
    benchmark: str = ""
    recipe_version: str = RECIPE_VERSION

    def as_dict(self) -> dict[str, Any]:
        """The recipe as JSON object, as it is read back from a manifest."""
        described: dict[str, Any] = json.loads(json.dumps({**asdict(self), "subsets": dict(self.subsets)}))
        return described

    def version(self, kind: Kind, subset: str) -> str:
        """The version of the source or bank that serves a subset, "" where there is none."""
        return next((origin.version for origin in getattr(self, kind) if subset in origin.subsets), "")

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the sha256 of the canonical JSON."""
        canonical = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True)
class OpenedRecipe:
    """A recipe with what it is made from: the opened source, the banks, the conditions, and with a plan all RIRs
    measured."""

    recipe: Recipe
    source: Source
    context: StepContext
    conditions: Mapping[str, Condition]
    measured: tuple[MeasuredRir, ...] = field(default=(), repr=False)
    unknown_rirs: tuple[str, ...] = ()
    """The ids of RIRs that `known_rirs_only` left out."""

    @cached_property
    def plan(self) -> Plan | None:
        """Which utterance goes with which RIR; None where each draws its own."""
        recipe = self.recipe
        if not recipe.stratify:
            return None
        return make_plan(
            [query for subset, _ in recipe.subsets for query in self._chosen[subset]],
            self.measured,
            strata_of(recipe, self.measured),
            utterances=recipe.utterances,
            rirs_per_utterance=recipe.rirs_per_utterance,
            splits=recipe.splits,
            seed=recipe.seed,
        )

    @cached_property
    def _chosen(self) -> dict[str, list[Query]]:
        recipe = self.recipe
        chosen = {
            subset: choose_queries(self.source.queries(subset), recipe.limit, recipe.seed)
            for subset, _ in recipe.subsets
        }
        several = next((query for of in chosen.values() for query in of if query.query_id), None)
        if several and (recipe.stratify or recipe.draws > 1):
            # Rows are paired by their ids, and these would have two reasons to differ from their clean partner's.
            raise UsageError(
                f"the query {several.cluster!r} has several speakers, and several RIRs or draws of noise are wanted.",
                hint="Ask for one of the two.",
            )
        return chosen

    @cached_property
    def _takes(self) -> dict[tuple[str, str], list[Take]]:
        plan = self.plan
        if plan is None:
            found: dict[tuple[str, str], list[Take]] = {
                (subset, split): [] for split in self.recipe.splits for subset in self._chosen
            }
            for subset, queries in self._chosen.items():
                for query in queries:
                    found[subset, self.context.split_of(query)].append(Take(query, draws=self.recipe.draws))
            return found
        return {
            (subset, split): [replace(take, draws=self.recipe.draws) for take in takes if take.query.subset == subset]
            for split, takes in plan.takes.items()
            for subset, _ in self.recipe.subsets
        }

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What of the source and the banks was not taken, as they say, and RIRs that were left out."""
        noise = self.context.noise
        banks = [*noise.values()] if isinstance(noise, Mapping) else [noise]
        entries = [entry for opened in (self.source, *banks, self.context.rirs) for entry in left_out_of(opened)]
        return merged([*entries, *LeftOut.of("RIRs of which RT60 or DRR cannot be measured", self.unknown_rirs)])

    def takes(self, subset: str, split: str = TEST) -> Sequence[Take]:
        """The utterances of a split with their RIRs, in publication order. They are chosen once."""
        if (subset, split) not in self._takes:
            raise unknown_name("subset and split", f"{subset} {split}", [" ".join(place) for place in self._takes])
        return self._takes[subset, split]

    def queries(self, subset: str, split: str = TEST) -> list[Query]:
        return [take.query for take in self.takes(subset, split)]

    def rows(self, subset: str, condition: str, split: str = TEST) -> list[Row]:
        of = self.condition(condition)
        rows = (take.rows(reverb=of.needs("rirs"), noise=of.needs("noise")) for take in self.takes(subset, split))
        return [row for of_take in rows for row in of_take]

    def condition(self, name: str) -> Condition:
        if name not in self.conditions:
            raise unknown_name("condition of this recipe:", name, self.conditions)
        return self.conditions[name]

    def speech(self, query: Query) -> CleanSpeech:
        """The clean recording of an utterance at the recipe's rate. Raises `AudioError` naming it."""
        return speech_of(self.source, query, self.recipe.sample_rate)

    def features(self) -> datasets.Features:
        return query_features(self.recipe.sample_rate, self.recipe.columns)

    def __reduce__(self) -> tuple[object, ...]:
        # Every process chooses and plans for itself: what travels stays small.
        values = (self.recipe, self.source, self.context, dict(self.conditions), self.measured, self.unknown_rirs)
        return (OpenedRecipe, values)


def strata_of(recipe: Recipe, measured: Sequence[MeasuredRir]) -> Strata:
    """How the RIRs of a recipe with a plan are grouped."""
    return Strata.of(measured, stratify=recipe.stratify, rt60_bins=recipe.rt60_bins, drr_bins=recipe.drr_bins)


def choose_subsets(source: Source, languages: Sequence[str] | None, subsets: Sequence[str] | None) -> dict[str, str]:
    """The subsets in these languages or with these names (None: all), name to language. Raises `UnknownNameError`."""
    known = dict(source.subsets)
    for language in languages or ():
        if language not in known.values():
            raise unknown_name("language", language, known.values())
    for subset in subsets or ():
        if subset not in known:
            raise unknown_name("subset", subset, known)
    chosen = {
        subset: language
        for subset, language in known.items()
        if (languages is None or language in languages) and (subsets is None or subset in subsets)
    }
    if not chosen:
        raise UsageError(
            f"no subset of {source.name!r} is both in languages {list(languages or [])} and in {list(subsets or [])}.",
            hint="Leave one of the two options out.",
        )
    return chosen


def choose_conditions(names: Sequence[str], kinds: Sequence[StepKind] = STEPS) -> dict[str, Condition]:
    """The parsed conditions by name. Raises `UnknownNameError`, or `UsageError` for `text` or for none."""
    if TEXT in names:
        raise UsageError(
            "the condition 'text' is the typed query and has no audio.",
            hint="Leave it out here; an evaluation adds it by itself.",
        )
    if not names:
        raise UsageError("no condition is given.", hint="Give at least one, for example clean.")
    return {name: parse_condition(name, kinds) for name in names}


def open_recipe(
    source: str | Source | Sequence[str | Source] = "mini",
    *,
    conditions: Sequence[str],
    languages: Sequence[str] | None = None,
    subsets: Sequence[str] | None = None,
    noise: str | Mapping[str, str] = "synthetic",
    rirs: str = "simulated",
    channel: int | None = None,
    speech_channel: Channel = None,
    seed: int = 0,
    level: str = "whole",
    limit: int = 0,
    sample_rate: int = SAMPLE_RATE,
    draws: int = 1,
    rirs_per_utterance: int = 1,
    stratify: str = "",
    rt60_bins: int = RT60_BINS,
    drr_bins: int = DRR_BINS,
    known_rirs_only: bool = False,
    utterances: int = 0,
    splits: bool = False,
    divided: bool = False,
    shared_speakers: bool = False,
    benchmark: str = "",
    on_bad: str = "refuse",
    steps: Sequence[StepKind] = (),
    workers: int = 0,
    progress: Progress | None = None,
) -> OpenedRecipe:
    """Open source (a name, a source that is open, or several) and banks, check every choice, and fix the recipe.

    - `noise` and `rirs` are bank names or folders; `noise` may also map subsets and languages (a subset's own entry
      goes first), and "" for all others, to banks. `channel` (from 0) is taken from recordings with several channels,
      `speech_channel` (from 0, or "mean") from those of sources, as their option `channel` does.
    - `sample_rate` is that of all audio, in Hz. `limit` is the number of queries per subset (0: all). `draws` is how
      often noise is drawn for each utterance, a row each.
    - `stratify` ("rt60" or "rt60+drr") has a plan deal `rirs_per_utterance` RIRs to each utterance, equally from
      groups of RIRs by `rt60_bins` (and `drr_bins`) quantiles; `known_rirs_only` leaves out RIRs of which RT60 or DRR
      cannot be measured; `utterances` is how many are taken over all subsets (0: all); `splits` divides rooms and
      utterances into validation and test. One of these options without `stratify` means "rt60".
    - `divided` makes the splits train, validation and test, which share no utterance, speaker (unless
      `shared_speakers`), noise and room (see `splits.Division`).
    - `steps` are further kinds of steps that the names of conditions may have (see `conditions.step`).
    - `on_bad="skip"` leaves out rows and recordings of named sources that break a rule (see `load_source`); the version
      of such a source says so. Sources that are open have been told when they were opened.
    - `benchmark` is the name of the benchmark that the data is made for; by default the source's.
    - `workers` threads measure RIRs (0: one per core), and `progress` is told about it.

    Raises `UsageError` (with the nearest name) for a wrong choice, `DataError` for an unusable source or bank.
    """
    _check_numbers(min(limit, utterances), rirs_per_utterance, draws, sample_rate)
    chosen_level = check_level(level)
    chosen_conditions = choose_conditions(conditions, check_kinds((*STEPS, *steps)))
    needed = {bank for bank in ("noise", "rirs") if any(c.needs(bank) for c in chosen_conditions.values())}
    if not stratify and (rirs_per_utterance > 1 or known_rirs_only or utterances or splits):
        stratify = "rt60"
    if divided and stratify:
        raise UsageError(
            "a plan of RIRs has the splits validation and test alone.", hint="Leave out stratify (or divided)."
        )
    if shared_speakers and not divided:
        raise UsageError("shared_speakers says how splits are divided, and none are.", hint="Add divided=True.")
    if draws > 1 and "noise" not in needed:
        raise UsageError("noise is drawn several times, but no condition has noise.", hint="Add one, as snr_5.")
    if stratify and "rirs" not in needed:
        raise UsageError(
            "RIRs are to be dealt to utterances, but no condition has a RIR.", hint="Add the condition reverb."
        )
    opened = open_source(source, on_bad, speech_channel)
    chosen = choose_subsets(opened, languages, subsets)
    noises = open_noises(noise, chosen, channel) if "noise" in needed else {}
    rir_bank = load_rir_bank(rirs, channel) if "rirs" in needed else None
    measured: tuple[MeasuredRir, ...] = ()
    unknown: tuple[str, ...] = ()
    if stratify and rir_bank:
        # A wrong name is reported before minutes of measuring.
        Strata.of((), stratify=stratify, rt60_bins=rt60_bins, drr_bins=drr_bins)
        measured = measure_rirs(rir_bank, sample_rate, workers=workers, progress=progress)
        if known_rirs_only:
            are_known = [is_known(rir.rt60_s) and is_known(rir.drr_db) for rir in measured]
            unknown = tuple(rir.rir_id for rir, known in zip(measured, are_known, strict=True) if not known)
            measured = tuple(compress(measured, are_known))
    recipe = Recipe(
        sources=origins_of(opened, chosen),
        subsets=tuple(chosen.items()),
        conditions=tuple(chosen_conditions),
        steps={name: condition.described() for name, condition in chosen_conditions.items()},
        columns=extra_columns(chosen_conditions.values()),
        noise=_bank_origins(noises),
        rirs=_bank_origins(dict.fromkeys(chosen, rir_bank) if rir_bank else {}),
        seed=seed,
        level=chosen_level,
        limit=limit,
        sample_rate=sample_rate,
        draws=draws,
        splits=SPLITS if divided else (VALIDATION, TEST) if splits else (TEST,),
        divided=divided,
        shared_speakers=shared_speakers,
        stratify=stratify,
        rirs_per_utterance=rirs_per_utterance,
        rt60_bins=rt60_bins if stratify else 0,
        drr_bins=drr_bins if stratify else 0,
        known_rirs_only=known_rirs_only,
        utterances=utterances,
        rir_measures=rirs_digest(measured) if stratify else "",
        benchmark=benchmark or getattr(opened, "benchmark", ""),
    )
    known: dict[str, tuple[MeasuredRir, str]] = {}
    if stratify:
        strata = strata_of(recipe, measured)
        known = {rir.rir_id: (rir, strata.name(rir)) for rir in measured}
    division = Division(opened, shared_speakers=shared_speakers) if divided else None
    noise_banks = noises if len(recipe.noise) > 1 else next(iter(noises.values()), None)
    context = StepContext(noise_banks, rir_bank, seed, chosen_level, sample_rate, known, division)
    return OpenedRecipe(recipe, opened, context, chosen_conditions, measured, unknown)


def _check_numbers(least_limit: int, rirs_per_utterance: int, draws: int, sample_rate: int) -> None:
    if least_limit < 0:
        raise UsageError(f"the limit is {least_limit}.", hint="Give a number, or 0 for all.")
    if rirs_per_utterance < 1:
        raise UsageError(f"there are {rirs_per_utterance} RIRs per utterance.", hint="Give at least 1.")
    if draws < 1:
        raise UsageError(f"noise is drawn {draws} times per utterance.", hint="Give at least 1.")
    if not LEAST_RATE <= sample_rate <= HIGHEST_RATE:
        raise UsageError(
            f"the sample rate is {sample_rate} Hz.", hint=f"Give {LEAST_RATE} to {HIGHEST_RATE}, for example 16000."
        )


def open_source(
    source: str | Source | Sequence[str | Source], on_bad: str = "refuse", channel: Channel = None
) -> Source:
    """A source by its name, or several as one; `channel` is taken of recordings with several."""
    if isinstance(source, str):
        return load_source(with_channel(source, channel), on_bad=on_bad)
    if not isinstance(source, Sequence):
        if channel is not None:
            raise UsageError(
                f"the source {source.name} is open: no channel of its speech can be chosen.", hint="Give its name."
            )
        return source
    parts = [open_source(part, on_bad, channel) for part in source]
    return parts[0] if len(parts) == 1 else JoinedSource(parts)


def open_noises(
    noise: str | Mapping[str, str], subsets: Mapping[str, str], channel: int | None = None
) -> dict[str, NoiseBank]:
    """The bank of each subset (name to language). Raises `UsageError` for a subset without one."""
    named = {"": noise} if isinstance(noise, str) else dict(noise)
    for place in named.keys() - {"", *subsets, *subsets.values()}:
        raise unknown_name("subset or language with noise of its own", place, [*subsets, *subsets.values()])
    banks: dict[str, NoiseBank] = {}
    found = {}
    for subset, language in subsets.items():
        name = next((named[place] for place in (subset, language, "") if place in named), None)
        if name is None:
            raise UsageError(f"the subset {subset!r} has no noise.", hint="Name a bank for it, or one for all.")
        if name not in banks:
            banks[name] = load_noise_bank(name, channel)
        found[subset] = banks[name]
    return found


def _bank_origins(banks: Mapping[str, NoiseBank] | Mapping[str, RirBank]) -> tuple[Origin, ...]:
    """What a recipe says of the banks by subset: one entry for each."""
    distinct: dict[int, NoiseBank | RirBank] = {id(bank): bank for bank in banks.values()}
    return tuple(
        Origin(
            bank.name,
            bank.version,
            bank.license,
            tuple(subset for subset, own in banks.items() if own is bank),
            attribution=getattr(bank, "attribution", ""),
        )
        for bank in distinct.values()
    )


def choose_queries(queries: Sequence[Query], limit: int, seed: int) -> list[Query]:
    """At most `limit` queries (0: all), stratified by `group`, drawn by the keyed rule, in their original order.

    Groups share the limit in proportion to their size; the remainders go to the largest fractions, ties to the first.
    """
    if limit == 0 or limit >= len(queries):
        return list(queries)
    groups: dict[str, list[Query]] = {}
    for query in queries:
        groups.setdefault(query.group, []).append(query)
    shares = share(limit, {name: len(members) for name, members in groups.items()})
    taken: set[str] = set()
    for name, members in groups.items():
        drawn = sorted(members, key=lambda q: keyed_seed(seed, "choice", q.subset, q.id))
        taken.update(query.id for query in drawn[: shares[name]])
    return [query for query in queries if query.id in taken]


def share(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Share `total` among groups in proportion to their sizes, by largest remainders.

    >>> share(5, {"a": 10, "b": 10, "c": 5})
    {'a': 2, 'b': 2, 'c': 1}
    """
    everything = sum(sizes.values())
    exact = {name: total * size / everything for name, size in sizes.items()}
    shares = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(sizes, key=lambda name: -(exact[name] - shares[name]))
    for name in by_remainder[: total - sum(shares.values())]:
        shares[name] += 1
    return shares
