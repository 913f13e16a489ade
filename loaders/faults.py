"""Faults of texts and clips: those of a source are collected, and one error tells all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import AudioError, DataError

SHOWN = 20
"""Faults that an error lists; of the others it gives the number."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one text or clip, in a sentence that names file and id, and what to do about it."""

    message: str
    hint: str = ""
    audio: bool = False

    @classmethod
    def of(cls, error: DataError) -> Fault:
        return cls(error.message, error.hint, isinstance(error, AudioError))


class Faults:
    """Faults in the order in which they were found, each once."""

    def __init__(self) -> None:
        self._found: dict[str, Fault] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._found.setdefault(fault.message, fault)

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep a `DataError` that is raised inside, and go on."""
        try:
            yield
        except DataError as error:
            self.add([Fault.of(error)])

    def refuse(self, place: str, *, hint: str = "Mend them and run the same command again.", count: int = 0) -> None:
        """Raise `AudioError` (or `DataError`, if a fault is none of audio) that lists what was found in `place`, if
        anything was. `count` is the number of all faults where only the first were kept."""
        found = list(self._found.values())
        if not found:
            return
        count = max(count, len(found))
        kind = AudioError if all(fault.audio for fault in found) else DataError
        if count == 1:
            raise kind(found[0].message, hint=found[0].hint or hint)
        lines = [f"{count:,} faults in {place}:", *(f"  {fault.message}" for fault in found[:SHOWN])]
        if count > SHOWN:
            lines.append(f"  and {count - SHOWN:,} more.")
        raise kind("\n".join(lines), hint=hint)
