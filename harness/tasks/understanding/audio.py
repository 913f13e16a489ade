"""The audio of a set of questions: read once per change for its digest, decoded when a model needs it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....loaders.questions.data import QuestionData
from ....loaders.questions.windows import excerpt
from ....loaders.records import Samples
from ....loaders.sources.digests import KeptDigests

SHARD_ITEMS = 16
"""Items that are worked on and kept together: what is lost at most when a run is killed."""
SHARD_AUDIO_S = 1800.0
"""Audio that a shard holds at most, in s; a longer item is alone. As samples at 16 kHz that is 115 MB."""
_WHOLE_S = 1e7


class QuestionAudio:
    """Digests and clips by the id of an audio. Both raise `AudioError`."""

    def __init__(self, data: QuestionData) -> None:
        self._data = data
        self._kept: dict[Path, KeptDigests] = {}
        self._known: dict[str, str] = {}

    def digest(self, audio: str) -> str:
        if audio not in self._known:
            file = self._data.audio(audio)
            if isinstance(file, bytes):
                self._known[audio] = hashlib.sha256(file).hexdigest()
            else:
                kept = self._kept.setdefault(file.parent, KeptDigests(file.parent))
                self._known[audio] = kept.sha256(audio, file)
        return self._known[audio]

    def clip(self, audio: str, rate: int) -> Samples:
        """(T,) float32 mono at `rate` Hz: all of it."""
        return excerpt(self._data.audio(audio), 0.0, _WHOLE_S, rate, name=f"the audio {audio!r}")

    def save(self) -> None:
        for kept in self._kept.values():
            kept.save()


def shards_of(ids: Sequence[str], durations: Mapping[str, float]) -> list[list[int]]:
    """Positions of items to work on together, longest audio first; they follow from the items alone."""
    lengths = [max(0.0, durations[id_]) if durations[id_] >= 0 else 0.0 for id_ in ids]
    order = sorted(range(len(ids)), key=lambda i: (-lengths[i], ids[i], i))
    found: list[list[int]] = []
    held = 0.0
    for i in order:
        if not found or len(found[-1]) >= SHARD_ITEMS or held + lengths[i] > SHARD_AUDIO_S:
            found.append([])
            held = 0.0
        found[-1].append(i)
        held += lengths[i]
    return found
