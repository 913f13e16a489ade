"""Who is heard in which room: utterances and rooms divided into splits, and dealt to each other.

Everything is decided by counts and by keyed randomness, never by the order in which anything is read:

1. Rooms go to a split, a fifth of each stratum (by where most of a room's responses lie) to validation, at least one
   where a stratum has two. No room is in both.
2. Utterances go to a split, a fifth to validation. No utterance is in both.
3. In each split, every stratum gets its number of pairs, and its responses are used equally often, with a difference
   of at most one.
4. The responses, in the order of their strata, are dealt like cards: each utterance gets its rooms spread over the
   strata, and never a response twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import DataError, UsageError
from ..keyed import keyed_seed
from ..records import Query
from .rooms import MeasuredRir
from .strata import Strata, allocate, targets

VALIDATION, TEST = "validation", "test"
SPLITS = (VALIDATION, TEST)
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class PlannedUtterance:
    """An utterance with the ids of the responses that it is heard in. `id` is unique in the data set."""

    id: str
    query: Query
    rir_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The pairs of each split: utterances in publication order; and the rooms with their strata."""

    utterances: Mapping[str, tuple[PlannedUtterance, ...]]
    rooms: Mapping[str, MeasuredRir]
    stratum_of: Mapping[str, str]
    strata: Strata
    split_of_room: Mapping[str, str]

    def pairs(self, split: str) -> int:
        """How many pairs a split has."""
        return sum(len(utterance.rir_ids) for utterance in self.utterances[split])

    def uses(self, split: str) -> dict[str, int]:
        """The responses that a split uses, sorted by id, each with its number of pairs."""
        counts = Counter(rir_id for utterance in self.utterances[split] for rir_id in utterance.rir_ids)
        return dict(sorted(counts.items()))

    def table(self) -> list[dict[str, object]]:
        """One row per stratum that has rooms: its bounds and how many responses, rooms and pairs it has."""
        pairs = {split: Counter[str]() for split in self.utterances}
        for split in self.utterances:
            for rir_id, count in self.uses(split).items():
                pairs[split][self.stratum_of[rir_id]] += count
        rows: list[dict[str, object]] = []
        for name in self.strata.names():
            members = [rir_id for rir_id, stratum in self.stratum_of.items() if stratum == name]
            if not members:
                continue
            rows.append(
                {
                    "name": name,
                    **{f"{column}": ends for column, ends in self.strata.bounds(name).items()},
                    "responses": len(members),
                    "rooms": len({self.rooms[rir_id].room_id for rir_id in members}),
                    "pairs": sum(counts[name] for counts in pairs.values()),
                    **{split: counts[name] for split, counts in pairs.items()},
                }
            )
        return rows


def make_plan(
    queries: Sequence[Query],
    rooms: Sequence[MeasuredRir],
    strata: Strata,
    *,
    pairs: int,
    rirs_per_utterance: int,
    seed: int,
) -> Plan:
    """Deal `pairs` (0: as many as there are) pairs of utterances and responses.

    Raises `UsageError` for numbers that do not go together, `DataError` for too few rooms.
    """
    each = rirs_per_utterance
    if each < 1:
        raise UsageError(f"there are {each} rooms per utterance.", hint="Give at least 1.")
    count = _utterances(len(queries), pairs, each)
    chosen = sorted(queries, key=lambda query: _key(seed, "utterance", query.subset, query.id))[:count]
    held_out = max(1, round(VALIDATION_SHARE * count))
    ids = _utterance_ids(queries)
    stratum_of = {room.rir_id: strata.name(room) for room in rooms}
    split_of_room = _split_rooms(rooms, stratum_of, strata, seed)
    order = {(query.subset, query.id): number for number, query in enumerate(queries)}

    wanted = targets(count * each, Counter(stratum_of.values()))
    wanted = {name: wanted[name] for name in strata.names() if name in wanted}
    given = dict.fromkeys(wanted, 0)
    planned: dict[str, tuple[PlannedUtterance, ...]] = {}
    for split, members in ((VALIDATION, chosen[:held_out]), (TEST, chosen[held_out:])):
        here = [room for room in rooms if split_of_room[room.room_id] == split]
        pools = _pools(here, stratum_of, list(wanted), seed)
        if len(here) < each:
            raise UsageError(
                f"{each} rooms per utterance were asked for, and the split {split} has {len(here)} responses.",
                hint="Ask for fewer, or give more rooms: no room is in both splits.",
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
        dealt = [
            PlannedUtterance(ids[query.subset, query.id], query, tuple(slots[number :: len(members)]))
            for number, query in enumerate(members)
        ]
        planned[split] = tuple(sorted(dealt, key=lambda u: order[u.query.subset, u.query.id]))
    return Plan(planned, {room.rir_id: room for room in rooms}, stratum_of, strata, split_of_room)


def _utterances(available: int, pairs: int, each: int) -> int:
    """How many utterances `pairs` pairs need."""
    if pairs < 0 or pairs % each:
        raise UsageError(
            f"{pairs} pairs cannot be divided into {each} rooms per utterance.", hint="Give a multiple, or 0 for all."
        )
    count = pairs // each or available
    if count > available:
        raise UsageError(
            f"{pairs} pairs need {count} utterances, and there are {available}.",
            hint=f"Ask for at most {available * each}, or for more rooms per utterance.",
        )
    if count < 2:
        raise UsageError(
            f"there {'is' if count == 1 else 'are'} {count} utterance{'' if count == 1 else 's'} for two splits.",
            hint="Ask for more pairs, or give more speech.",
        )
    return count


def _utterance_ids(queries: Sequence[Query]) -> dict[tuple[str, str], str]:
    """A unique id of each utterance: its own, with the subset before it where an id occurs in several subsets."""
    counts = Counter(query.id for query in queries)
    several = any(count > 1 for count in counts.values())
    found = {(q.subset, q.id): f"{q.subset}:{q.id}" if several else q.id for q in queries}
    if len(found) != len(queries):
        repeated = next(id_ for id_, count in Counter((q.subset, q.id) for q in queries).items() if count > 1)
        raise DataError(f"the utterance {repeated[1]!r} of {repeated[0]} occurs twice.", hint="Ids must be unique.")
    return found


def _key(seed: int, purpose: str, *parts: str) -> int:
    return keyed_seed(seed, f"rir_mega {purpose}", *parts)


def _split_rooms(
    rooms: Sequence[MeasuredRir], stratum_of: Mapping[str, str], strata: Strata, seed: int
) -> dict[str, str]:
    """Room id to split."""
    order = {name: number for number, name in enumerate(strata.names())}
    found: dict[str, Counter[str]] = {}
    for room in rooms:
        found.setdefault(room.room_id, Counter())[stratum_of[room.rir_id]] += 1
    if len(found) < 2:
        raise DataError(f"there {'is one room' if found else 'are no rooms'} for two splits.", hint="Give more rooms.")
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
    """The responses of a split by stratum, each in keyed order."""
    pools: dict[str, list[str]] = {name: [] for name in names}
    for room in here:
        pools[stratum_of[room.rir_id]].append(room.rir_id)
    return {name: sorted(pool, key=lambda rir_id: _key(seed, "response", rir_id)) for name, pool in pools.items()}


def _slots(pool: Sequence[str], share: int) -> Iterator[str]:
    """`share` uses of the responses in `pool`, all equally often but for one; the uses of one lie side by side."""
    if not share:
        return
    often, more = divmod(share, len(pool))
    for number, rir_id in enumerate(pool):
        for _ in range(often + (number < more)):
            yield rir_id
