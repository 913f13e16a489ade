"""Some noises of a bank: those of chosen families."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...errors import unknown_name
from ..left_out import LeftOut, left_out_of
from ..records import Samples
from .protocols import NoiseBank, NoiseInfo


class ChosenNoises:
    """The noises of `bank` with these `ids`, as they are, under the name `name`."""

    def __init__(self, bank: NoiseBank, ids: Collection[str], name: str) -> None:
        self.bank, self.name = bank, name
        self.license, self.attribution = bank.license, getattr(bank, "attribution", "")
        self._ids = frozenset(ids)
        self._infos = tuple(info for info in bank.noises() if info.id in self._ids)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return left_out_of(self.bank)

    @property
    def version(self) -> str:
        return self.bank.version

    def noises(self) -> Sequence[NoiseInfo]:
        return self._infos

    def owner(self, id_: str) -> NoiseBank:
        """The bank that reads a noise. Raises `UnknownNameError` for one that was not chosen."""
        if id_ not in self._ids:
            raise unknown_name("noise", id_, self._ids)
        return self.bank

    def read(self, id_: str, /) -> Samples:
        return self.owner(id_).read(id_)


def of_families(bank: NoiseBank, families: Iterable[str]) -> ChosenNoises:
    """The noises of these families alone. Raises `UnknownNameError` for a family that the bank lacks."""
    known = dict.fromkeys(info.family for info in bank.noises())
    chosen = sorted(set(families))
    for family in chosen:
        if family not in known:
            raise unknown_name(f"family of the noise bank {bank.name}:", family, known)
    ids = {info.id for info in bank.noises() if info.family in chosen}
    return ChosenNoises(bank, ids, f"{bank.name}?family={','.join(chosen)}")
