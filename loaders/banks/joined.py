"""Several banks as one: `demand+noisex` has the 17 noises of SQuTR."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import DataError, unknown_name
from ..records import Samples
from .protocols import NoiseBank, NoiseInfo, RirBank


def _names(banks: Sequence[NoiseBank] | Sequence[RirBank]) -> str:
    return "+".join(bank.name for bank in banks)


def _licenses(banks: Sequence[NoiseBank] | Sequence[RirBank]) -> str:
    return ", ".join(dict.fromkeys(bank.license for bank in banks))


class JoinedNoises:
    """The noises of several banks. Families of the same name become one, and ids must differ."""

    def __init__(self, banks: Sequence[NoiseBank]) -> None:
        self._banks = tuple(banks)
        self.name, self.license = _names(self._banks), _licenses(self._banks)
        self._owners: dict[str, NoiseBank] = {}
        infos: list[NoiseInfo] = []
        for bank in self._banks:
            for info in bank.noises():
                if info.id in self._owners:
                    raise _shared("noise", info.id, self._owners[info.id].name, bank.name)
                self._owners[info.id] = bank
                infos.append(info)
        self._infos = tuple(sorted(infos, key=lambda info: info.id))

    @property
    def version(self) -> str:
        """The versions of all."""
        return "+".join(bank.version for bank in self._banks)

    def noises(self) -> Sequence[NoiseInfo]:
        """The noises of all, sorted by id."""
        return self._infos

    def read(self, noise_id: str) -> Samples:
        """The noise, as its bank reads it."""
        return self.owner(noise_id).read(noise_id)

    def owner(self, noise_id: str) -> NoiseBank:
        """The bank that a noise belongs to. Raises `UnknownNameError`."""
        if noise_id not in self._owners:
            raise unknown_name("noise", noise_id, self._owners)
        return self._owners[noise_id]


class JoinedRirs:
    """The RIRs of several banks, whose ids must differ."""

    def __init__(self, banks: Sequence[RirBank]) -> None:
        self._banks = tuple(banks)
        self.name, self.license = _names(self._banks), _licenses(self._banks)
        self._owners: dict[str, RirBank] = {}
        for bank in self._banks:
            for rir_id in bank.rirs():
                if rir_id in self._owners:
                    raise _shared("room", rir_id, self._owners[rir_id].name, bank.name)
                self._owners[rir_id] = bank
        self._ids = tuple(sorted(self._owners))

    @property
    def version(self) -> str:
        """The versions of all."""
        return "+".join(bank.version for bank in self._banks)

    def rirs(self) -> Sequence[str]:
        """The ids of all, sorted."""
        return self._ids

    def read(self, rir_id: str) -> Samples:
        """The impulse response, as its bank reads it."""
        return self.owner(rir_id).read(rir_id)

    def owner(self, rir_id: str) -> RirBank:
        """The bank that a response belongs to. Raises `UnknownNameError`."""
        if rir_id not in self._owners:
            raise unknown_name("room", rir_id, self._owners)
        return self._owners[rir_id]


def _shared(kind: str, sound_id: str, first: str, second: str) -> DataError:
    return DataError(f"the {kind} {sound_id!r} is in both {first} and {second}.", hint="Leave one of the banks out.")
