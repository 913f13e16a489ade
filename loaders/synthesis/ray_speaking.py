"""Speaking on a Ray cluster (extra `squtr[ray]`): synthesizers and the transcriber that rates them as actors.

Every actor has its own of both, loaded once. Clips come back to this process, which writes them, so nothing but weights
must be on the nodes: those of a path must lie under the same path there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ...errors import UsageError, unknown_name
from ..ray_map import RayMap
from .synthesizing import Batch, Speaking, SpeechEngine, Spoken, speak_batch, speak_here

SPEECH_ENGINES = ("here", "ray")


class RaySpeaking:
    """A `SpeechEngine` of at most `actors` actors (0: as many as there is room for); see `RayMap`."""

    def __init__(self, address: str | None = None, **options: Any) -> None:
        self._map = RayMap(address, **options)

    def __call__(self, speaking: Speaking, batches: Sequence[Batch]) -> Iterator[list[Spoken]]:
        # Synthesizer and transcriber load at an actor's first batch.
        return self._map(partial, (speak_batch, speaking), batches)


def load_speech_engine(
    name: str, *, ray_address: str | None = None, actors: int = 0, gpus_per_actor: float = 0.0
) -> SpeechEngine:
    """The engine `here` or `ray`. Raises `UnknownNameError`, `MissingExtraError`, `UsageError` for ray's options."""
    if name == "ray":
        return RaySpeaking(ray_address, actors=actors, gpus_per_actor=gpus_per_actor)
    if name != "here":
        raise unknown_name("place to speak", name, SPEECH_ENGINES)
    if ray_address or actors or gpus_per_actor:
        raise UsageError("only Ray has actors and an address.", hint="Choose ray, or leave them out.")
    return speak_here
