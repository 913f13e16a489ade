"""What a bank of noises and a RIR bank are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..records import Samples


@dataclass(frozen=True, slots=True)
class NoiseInfo:
    """A noise of a bank: its id and the kind of noise that it is (`babble`, `traffic`, a DEMAND environment, …)."""

    id: str
    family: str


class Bank(Protocol):
    """Recordings, read by id. Cheap to construct and to pickle; safe to read from several threads."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Identity of its content: another version may give other bytes. Enters recipes."""
        ...

    @property
    def license(self) -> str: ...

    def read(self, id_: str, /) -> Samples:
        """A whole recording, (N,) float32 at `SAMPLE_RATE`, not to be written to; an impulse response at its own scale
        and with its own delay. Noise loops by wrapping round.

        Raises `UnknownNameError`, and `AudioError` naming the file or id if it is unreadable, silent or not finite.
        """
        ...


class NoiseBank(Bank, Protocol):
    def noises(self) -> Sequence[NoiseInfo]:
        """Sorted by id. Raises `DataError` if there are none."""
        ...


class RirBank(Bank, Protocol):
    def rirs(self) -> Sequence[str]:
        """All ids, sorted. Raises `DataError` if there are none."""
        ...
