"""Several banks as one: `demand+noisex` has the 17 noises of SQuTR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from ...errors import DataError, unknown_name
from ..left_out import LeftOut, left_out_of, merged
from ..records import Samples
from .protocols import Bank, NoiseBank, NoiseInfo, RirBank

B = TypeVar("B", bound=Bank)


class _Joined(Generic[B]):
    """The recordings of several banks, each with the ids of its own, which must differ."""

    def __init__(self, kind: str, banks: Sequence[tuple[B, Iterable[str]]]) -> None:
        self._kind = kind
        self._banks = tuple(bank for bank, _ in banks)
        self.name = "+".join(bank.name for bank in self._banks)
        self.license = ", ".join(dict.fromkeys(bank.license for bank in self._banks))
        self._owners: dict[str, B] = {}
        for bank, ids in banks:
            for id_ in ids:
                if id_ in self._owners:
                    raise DataError(
                        f"the {kind} {id_!r} is in both {self._owners[id_].name} and {bank.name}.",
                        hint="Leave one of the banks out.",
                    )
                self._owners[id_] = bank

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return merged(entry for bank in self._banks for entry in left_out_of(bank))

    @property
    def version(self) -> str:
        return "+".join(bank.version for bank in self._banks)

    def read(self, id_: str, /) -> Samples:
        return self.owner(id_).read(id_)

    def owner(self, id_: str) -> B:
        if id_ not in self._owners:
            raise unknown_name(self._kind, id_, self._owners)
        return self._owners[id_]


class JoinedNoises(_Joined[NoiseBank]):
    """The noises of several banks. Families of the same name become one, and ids must differ."""

    def __init__(self, banks: Sequence[NoiseBank]) -> None:
        super().__init__("noise", [(bank, [info.id for info in bank.noises()]) for bank in banks])
        self._infos = tuple(sorted((info for bank in banks for info in bank.noises()), key=lambda info: info.id))

    def noises(self) -> Sequence[NoiseInfo]:
        return self._infos


class JoinedRirs(_Joined[RirBank]):
    def __init__(self, banks: Sequence[RirBank]) -> None:
        super().__init__("RIR", [(bank, bank.rirs()) for bank in banks])

    def rirs(self) -> Sequence[str]:
        return tuple(sorted(self._owners))
