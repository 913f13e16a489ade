"""What some banks know beyond the protocols, with the answer that holds for every bank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..audio import resample
from ..records import SAMPLE_RATE, Samples
from .chosen import ChosenNoises
from .joined import JoinedNoises, JoinedRirs
from .protocols import NoiseBank, RirBank


@runtime_checkable
class _AtRate(Protocol):
    def read_at(self, id_: str, rate: int) -> Samples: ...


@runtime_checkable
class _KnowsRooms(Protocol):
    def room_of(self, rir_id: str) -> str: ...


@runtime_checkable
class _HasOwnValues(Protocol):
    def own_values(self, rir_id: str) -> Mapping[str, float]: ...


def read_at(bank: NoiseBank | RirBank, id_: str, rate: int) -> Samples:
    """A noise or response, (T,) float32 at `rate` Hz, resampled once from its own rate where the bank can."""
    if isinstance(bank, JoinedNoises | JoinedRirs | ChosenNoises):
        return read_at(bank.owner(id_), id_, rate)
    if isinstance(bank, _AtRate):
        return bank.read_at(id_, rate)
    return resample(bank.read(id_), SAMPLE_RATE, rate)


def room_of(bank: RirBank, rir_id: str) -> str:
    """The id of the room in which a response was taken; the response's own id where the bank does not say."""
    if isinstance(bank, JoinedRirs):
        return room_of(bank.owner(rir_id), rir_id)
    return bank.room_of(rir_id) if isinstance(bank, _KnowsRooms) else rir_id


def own_values(bank: RirBank, rir_id: str) -> Mapping[str, float]:
    """What the bank's publisher says about a response (`rt60_s`, `drr_db`, …); empty where nothing is stated."""
    if isinstance(bank, JoinedRirs):
        return own_values(bank.owner(rir_id), rir_id)
    return bank.own_values(rir_id) if isinstance(bank, _HasOwnValues) else {}
