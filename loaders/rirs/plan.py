"""Which utterance goes with which RIR: utterances and rooms divided into splits, and dealt to each other.

Everything is decided by counts and by keyed randomness, never by the order in which anything is read:

1. Rooms go to a split, a fifth of each stratum (by where most of a room's RIRs lie) to validation, at least one where a
   stratum has two. No room is in both.
2. Utterances go to a split, a fifth to validation. No utterance is in both.
3. In each split, every stratum gets its number of pairs, and its RIRs are used equally often, with a difference of at
   most one.
4. The RIRs, in the order of their strata, are dealt like cards: each utterance gets its RIRs spread over the strata,
   and never one twice.

Without splits, everything is test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import DataError, UsageError
from ..keyed import keyed_seed
from ..manifest import Stratum
from ..records import Query, Take
from .measured import MeasuredRir
from .strata import Strata, allocate, targets

VALIDATION, TEST = "validation", "test"
VALIDATION_SHARE = 0.2
_ONE_SPLIT = "Or make a test set alone: --no-splits (splits=False)."


@dataclass(frozen=True, slots=True)
class Plan:
    """The takes of each split, in publication order; and the RIRs with their strata."""

    takes: Mapping[str, tuple[Take, ...]]
    rirs: Mapping[str, MeasuredRir]
    stratum_of: Mapping[str, str]
    strata: Strata
    split_of_room: Mapping[str, str]

    def uses(self, split: str) -> dict[str, int]:
        """The RIRs that a split uses, sorted by id, each with its number of pairs."""
        counts = Counter(rir_id for take in self.takes[split] for rir_id in take.rir_ids)
        return dict(sorted(counts.items()))

    def table(self) -> list[Stratum]:
        """The strata that have RIRs: their bounds, and how many RIRs, rooms and pairs they have."""
        pairs = {split: Counter[str]() for split in self.takes}
        for split in self.takes:
            for rir_id, count in self.uses(split).items():
                pairs[split][self.stratum_of[rir_id]] += count
        rows = []
        for name in self.strata.names():
            members = [rir_id for rir_id, stratum in self.stratum_of.items() if stratum == name]
            if members:
                values = {
                    "name": name,
                    **self.strata.bounds(name),
                    "rirs": len(members),
                    "rooms": len({self.rirs[rir_id].room_id for rir_id in members}),
                    "pairs": {split: counts[name] for split, counts in pairs.items()},
                }
                rows.append(Stratum.model_validate(values))
        return rows


def make_plan(
    queries: Sequence[Query],
    rirs: Sequence[MeasuredRir],
    strata: Strata,
    *,
    utterances: int,
    rirs_per_utterance: int,
    splits: Sequence[str],
    seed: int,
) -> Plan:
    """Deal `rirs_per_utterance` RIRs to each of `utterances` (0: all). Raises `UsageError`, or `DataError`."""
    each, several = rirs_per_utterance, len(splits) > 1
    count = _count(len(queries), utterances, several=several)
    chosen = sorted(queries, key=lambda query: _key(seed, "utterance", query.subset, query.id))[:count]
    held_out = max(1, round(VALIDATION_SHARE * count)) if several else 0
    _check_ids(queries)
    stratum_of = {rir.rir_id: strata.name(rir) for rir in rirs}
    whole = {rir.room_id: TEST for rir in rirs}
    split_of_room = _split_rooms(rirs, stratum_of, strata, seed) if several else whole
    order = {(query.subset, query.id): number for number, query in enumerate(queries)}

    wanted = targets(count * each, Counter(stratum_of.values()))
    wanted = {name: wanted[name] for name in strata.names() if name in wanted}
    given = dict.fromkeys(wanted, 0)
    planned: dict[str, tuple[Take, ...]] = {}
    for split, members in ((VALIDATION, chosen[:held_out]), (TEST, chosen[held_out:])):
        if split not in splits:
            continue
        here = [rir for rir in rirs if split_of_room[rir.room_id] == split]
        pools = _pools(here, stratum_of, list(wanted), seed)
        if len(here) < each:
            raise UsageError(
                f"{each} RIRs per utterance were asked for, and the split {split} has {len(here)}.",
                hint=f"Ask for fewer, or give more RIRs: no room is in two splits. {_ONE_SPLIT}",
            )
        total = len(members) * each
        # Validation takes its share; test takes what then is missing, so that both together come out balanced.
        part = {
            name: value * held_out / count if split == VALIDATION else value - given[name]
            for name, value in wanted.items()
        }
        caps = {name: len(pools[name]) * len(members) for name in wanted}
        shares = allocate(total, {name: max(0.0, value) for name, value in part.items()}, caps)
        for name, share in shares.items():
            given[name] += share
        slots = [slot for name, share in shares.items() for slot in _slots(pools[name], share)]
        dealt = [Take(query, tuple(slots[number :: len(members)])) for number, query in enumerate(members)]
        planned[split] = tuple(sorted(dealt, key=lambda take: order[take.query.subset, take.query.id]))
    return Plan(planned, {rir.rir_id: rir for rir in rirs}, stratum_of, strata, split_of_room)


def _count(available: int, utterances: int, *, several: bool) -> int:
    count = utterances or available
    if count > available:
        raise UsageError(
            f"{utterances} utterances were asked for, and there are {available}.",
            hint="Ask for fewer, or for more RIRs per utterance.",
        )
    if count < 1 + several:
        raise UsageError(
            f"there {'is' if count == 1 else 'are'} {count} utterance{'' if count == 1 else 's'} for "
            f"{'two splits' if several else 'a data set'}.",
            hint=f"Ask for more utterances, or give more speech.{f' {_ONE_SPLIT}' if several else ''}",
        )
    return count


def _check_ids(queries: Sequence[Query]) -> None:
    for (subset, id_), count in Counter((query.subset, query.id) for query in queries).items():
        if count > 1:
            raise DataError(f"the utterance {id_!r} of {subset} occurs {count} times.", hint="Ids must be unique.")


def _key(seed: int, purpose: str, *parts: str) -> int:
    # The word before the purpose is part of every draw: another one would deal other RIRs.
    return keyed_seed(seed, f"rir_mega {purpose}", *parts)


def _split_rooms(
    rirs: Sequence[MeasuredRir], stratum_of: Mapping[str, str], strata: Strata, seed: int
) -> dict[str, str]:
    order = {name: number for number, name in enumerate(strata.names())}
    found: dict[str, Counter[str]] = {}
    for rir in rirs:
        found.setdefault(rir.room_id, Counter())[stratum_of[rir.rir_id]] += 1
    if len(found) < 2:
        raise DataError(
            f"there {'is one room' if found else 'are no rooms'} for two splits.", hint=f"Give more rooms. {_ONE_SPLIT}"
        )
    by_stratum: dict[str, list[str]] = {}
    for room_id, counts in found.items():
        main = min(counts, key=lambda name: (-counts[name], order[name]))
        by_stratum.setdefault(main, []).append(room_id)
    held: set[str] = set()
    for name in sorted(by_stratum, key=order.__getitem__):
        members = sorted(by_stratum[name], key=lambda room_id: _key(seed, "split", room_id))
        if len(members) > 1:
            held.update(members[: max(1, round(VALIDATION_SHARE * len(members)))])
    if not held:
        # Every stratum has one room alone.
        members = sorted(found, key=lambda room_id: _key(seed, "split", room_id))
        held.update(members[: max(1, round(VALIDATION_SHARE * len(members)))])
    return {room_id: VALIDATION if room_id in held else TEST for room_id in sorted(found)}


def _pools(
    here: Sequence[MeasuredRir], stratum_of: Mapping[str, str], names: Sequence[str], seed: int
) -> dict[str, list[str]]:
    pools: dict[str, list[str]] = {name: [] for name in names}
    for rir in here:
        pools[stratum_of[rir.rir_id]].append(rir.rir_id)
    return {name: sorted(pool, key=lambda rir_id: _key(seed, "response", rir_id)) for name, pool in pools.items()}


def _slots(pool: Sequence[str], share: int) -> Iterator[str]:
    """`share` uses of the RIRs in `pool`, all equally often but for one; the uses of one lie side by side."""
    if not share:
        return
    often, more = divmod(share, len(pool))
    for number, rir_id in enumerate(pool):
        for _ in range(often + (number < more)):
            yield rir_id
