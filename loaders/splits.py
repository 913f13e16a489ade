"""Splits that share nothing: utterances, speakers, noises and rooms divided into train, validation and test.

So systems are trained and tuned without touching what they are tested on. Where a thing goes depends on its name, on
those that it is divided with, and on nothing else: neither on the seed (so train may be mixed anew with other seeds)
nor on the splits, subsets of one language or conditions that are asked for.

- Speakers are divided by language, over all subsets of the source, by their numbers of utterances; an utterance goes
  with its speaker. With `shared_speakers`, queries are divided instead.
- Noises are divided by recording, within each family that has three or more; those of smaller families together.
- RIRs are divided by room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from ..errors import DataError
from .banks.chosen import ChosenNoises
from .banks.details import room_of
from .banks.protocols import NoiseBank, RirBank
from .keyed import keyed_seed
from .records import Query, Source
from .rirs.plan import TEST, VALIDATION

TRAIN = "train"
SHARES: Mapping[str, float] = {TRAIN: 0.7, VALIDATION: 0.1, TEST: 0.2}
SPLITS = tuple(SHARES)


@runtime_checkable
class KnowsSpeakers(Protocol):
    """A source that says who speaks an utterance without reading its audio; "" where it is not known."""

    def speaker_of(self, query: Query) -> str: ...


@runtime_checkable
class KnowsSplits(Protocol):
    """A source whose utterances were divided before, with others that it may not have: they stay where they are. "" for
    an utterance that was not."""

    def built_split_of(self, query: Query) -> str: ...


def speaker_of(source: Source, query: Query) -> str:
    """Who speaks an utterance: its speaker, else its voice, "" where neither is known."""
    if isinstance(source, KnowsSpeakers):
        return source.speaker_of(query)
    speech = source.speech(query)
    return speech.speaker or speech.voice


def divide(sizes: Mapping[str, int], purpose: str) -> dict[str, str]:
    """The split of each name; the splits get the shares `SHARES` of the sizes, as nearly as the names allow.

    Names go, the largest first and in a keyed order, to the split that lacks most; each split gets one at least.
    Raises `DataError` for fewer names than splits.

    >>> sorted(Counter(divide({f"f{n}": 1 for n in range(10)}, "noise").values()).items())
    [('test', 2), ('train', 7), ('validation', 1)]
    """
    if len(sizes) < len(SHARES):
        raise DataError(f"{len(sizes)} cannot be divided into {', '.join(SHARES)}.", hint="Give at least three.")
    order = sorted(sizes, key=lambda name: (-sizes[name], keyed_seed(0, f"split of {purpose}", name)))
    total = sum(sizes.values())
    given = dict.fromkeys(SHARES, 0)
    found: dict[str, str] = {}
    for left, name in zip(range(len(order), 0, -1), order, strict=True):
        empty = [split for split in SHARES if not given[split]]
        among = empty if len(empty) == left else list(SHARES)
        found[name] = max(among, key=lambda split: SHARES[split] - given[split] / total)
        given[found[name]] += sizes[name] or 1
    return found


class _Parts:
    """The noises and RIRs of each split, looked up once for each bank: two folders may have the same name."""

    def __init__(self) -> None:
        self._noises: dict[tuple[int, str], tuple[NoiseBank, NoiseBank]] = {}
        self._rirs: dict[tuple[int, str], tuple[RirBank, Sequence[str]]] = {}

    def noises(self, bank: NoiseBank, split: str) -> NoiseBank:
        """The noises of a bank that go to a split. Raises `DataError` for a bank with too few."""
        key = (id(bank), split)
        if key not in self._noises:
            self._noises[key] = bank, noises_of(bank, split)
        return self._noises[key][1]

    def rirs(self, bank: RirBank, split: str) -> Sequence[str]:
        """The RIRs of a bank that go to a split. Raises `DataError` for a bank with too few rooms."""
        key = (id(bank), split)
        if key not in self._rirs:
            self._rirs[key] = bank, rirs_of(bank, split)
        return self._rirs[key][1]


class OneSplit(_Parts):
    """All utterances in one split: what may be mixed with them is what goes to it."""

    def __init__(self, split: str) -> None:
        super().__init__()
        self.split = split

    def __reduce__(self) -> tuple[object, ...]:
        return (OneSplit, (self.split,))

    def split_of(self, query: Query) -> str:
        del query
        return self.split


class Division(_Parts):
    """Which split everything goes to that a set is made of. It travels without what it has looked up."""

    def __init__(self, source: Source, *, shared_speakers: bool = False) -> None:
        super().__init__()
        self._source, self._shared = source, shared_speakers
        self._speakers: dict[str, dict[str, str]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopened, (self._source, self._shared))

    def split_of(self, query: Query) -> str:
        """The split of an utterance. Raises `DataError` for too few speakers of its language."""
        if isinstance(self._source, KnowsSplits) and (split := self._source.built_split_of(query)):
            return split
        language = query.language
        if language not in self._speakers:
            self._speakers[language] = self._divided(language)
        return self._speakers[language][self._key(query)]

    def _key(self, query: Query) -> str:
        return f"{query.subset}/{query.cluster}" if self._shared else speaker_of(self._source, query)

    def _divided(self, language: str) -> dict[str, str]:
        sizes = Counter(
            self._key(query)
            for subset, of in self._source.subsets.items()
            if of == language
            for query in self._source.queries(subset)
        )
        if not self._shared and (len(sizes) < len(SHARES) or "" in sizes):
            known = f"{len(sizes)} speakers" if "" not in sizes else "utterances whose speaker is not known"
            raise DataError(
                f"{self._source.name} has {known} in {language!r}: no speaker may be in two splits.",
                hint="Give speech of at least three known speakers, or allow it: --shared-speakers "
                "(shared_speakers=True).",
            )
        if not self._shared:
            self._check_single(language)
        return divide(sizes, "utterances" if self._shared else "speakers")

    def _check_single(self, language: str) -> None:
        """Raise `DataError` where one query would go to several splits, with several speakers."""
        for subset in (subset for subset, of in self._source.subsets.items() if of == language):
            several = next((query for query in self._source.queries(subset) if query.query_id), None)
            if several:
                raise DataError(
                    f"the query {several.cluster!r} of {subset} has several speakers, who may go to several splits.",
                    hint="Divide queries instead: --shared-speakers (shared_speakers=True).",
                )


def _reopened(source: Source, shared: bool) -> Division:
    return Division(source, shared_speakers=shared)


def noises_of(bank: NoiseBank, split: str) -> ChosenNoises:
    """The noises of a bank that go to a split, as a bank of the same name."""
    kept = {id_ for id_, of in _divided_noises(bank).items() if of == split}
    return ChosenNoises(bank, kept, bank.name)


def _divided_noises(bank: NoiseBank) -> dict[str, str]:
    families: dict[str, list[str]] = {}
    for info in bank.noises():
        families.setdefault(info.family, []).append(info.id)
    large = {name: ids for name, ids in families.items() if len(ids) >= len(SHARES)}
    small = [id_ for name, ids in families.items() if name not in large for id_ in ids]
    found: dict[str, str] = {}
    for name, ids in large.items():
        found |= divide(dict.fromkeys(ids, 1), f"noise {name}")
    if len(small) < len(SHARES) and large:
        # Too few to divide: for training alone.
        found |= dict.fromkeys(small, TRAIN)
    else:
        found |= _enough(small, f"the noise bank {bank.name} has {len(small)} recordings")
    return found


def rirs_of(bank: RirBank, split: str) -> tuple[str, ...]:
    """The ids of a bank's RIRs that go to a split, by room."""
    rooms = {rir_id: room_of(bank, rir_id) for rir_id in bank.rirs()}
    divided = _enough(dict.fromkeys(rooms.values()), f"the RIR bank {bank.name} has {len(set(rooms.values()))} rooms")
    return tuple(rir_id for rir_id, room in rooms.items() if divided[room] == split)


def _enough(names: Iterable[str], what: str) -> dict[str, str]:
    sizes = dict.fromkeys(names, 1)
    if len(sizes) < len(SHARES):
        raise DataError(f"{what}, which cannot be divided into {', '.join(SHARES)}.", hint="Give at least three.")
    return divide(sizes, "recordings")
