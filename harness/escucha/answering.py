"""From asks to replies: shards of asks, their sound read ahead, in one process or many."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import AudioError, ModelError, SqutrError, StorageError
from ...loaders.questions.data import QuestionData
from ...loaders.questions.windows import excerpt
from ...loaders.records import Samples
from ...loaders.rows import in_order
from ...loaders.sources.digests import KeptDigests, stream_sha256
from ..components.answerers.files import RepliesFile
from ..processes import Processes, complete, gather_long
from ..progress import Progress
from ..protocols import Answerer, AnswerRequest, Reply
from ..tasks.understanding.prompting import Ask
from .kept import KeptReplies, request_key

SHARD_ASKS = 16
"""Asks that are answered and kept together: what is lost at most when a run is killed."""
SHARD_SOUND_S = 1800.0
"""Sound that a shard holds at most, in s; a longer ask is alone. As samples at 16 kHz that is 115 MB."""
_WHOLE_S = 1e7


@dataclass(frozen=True, slots=True)
class Answered:
    """Replies by `Ask.key`; `sounds` are the digests of all sounds that were there, by id."""

    replies: dict[tuple[str, tuple[int, ...] | None], Reply]
    sounds: dict[str, str]


@dataclass(frozen=True, slots=True)
class Tools:
    """Where replies are kept (None: in memory), who shares the work, and who is told."""

    cache: Path | None
    processes: Processes
    progress: Progress | None = None


class Sounds:
    """The digests of a data set's sounds: each file is read once, and again only when it changes."""

    def __init__(self, data: QuestionData) -> None:
        self._data = data
        self._kept: dict[Path, KeptDigests] = {}
        self._known: dict[str, str] = {}

    def digest(self, audio: str) -> str:
        """The sha256 of a sound's file. Raises `AudioError`."""
        if audio not in self._known:
            sound = self._data.audio(audio)
            if isinstance(sound, bytes):
                self._known[audio] = hashlib.sha256(sound).hexdigest()
            else:
                kept = self._kept.setdefault(sound.parent, KeptDigests(sound.parent))
                self._known[audio] = kept.get(audio, sound, "sha256", lambda: _file_sha256(sound))
        return self._known[audio]

    def clip(self, audio: str, rate: int) -> Samples:
        """(T,) float32 mono at `rate` Hz: the whole sound. Raises `AudioError`."""
        return excerpt(self._data.audio(audio), 0.0, _WHOLE_S, rate, name=f"the sound {audio!r}")

    def save(self) -> None:
        """Keep the digests for the next run."""
        for kept in self._kept.values():
            kept.save()


def _file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return stream_sha256(stream)


def shards_of(asks: Sequence[Ask]) -> list[list[int]]:
    """The positions of asks that are answered together, longest sound first.

    They follow from the asks alone, not from what is kept or how many processes there are; so do batches.
    """

    def seconds(ask: Ask) -> float:
        # NaN where a length is not known.
        return ask.question.duration_s if ask.question.duration_s >= 0 else 0.0

    order = sorted(range(len(asks)), key=lambda i: (-seconds(asks[i]), asks[i].question.id, i))
    found: list[list[int]] = []
    held = 0.0
    for i in order:
        length = seconds(asks[i])
        if not found or len(found[-1]) >= SHARD_ASKS or held + length > SHARD_SOUND_S:
            found.append([])
            held = 0.0
        found[-1].append(i)
        held += length
    return found


def answer_all(answerer: Answerer, asks: Sequence[Ask], sounds: Sounds, tools: Tools, *, name: str) -> Answered:
    """The reply to every ask, in every process. All processes must call it.

    Sound is there for every ask. Raises `ModelError` and what answerers raise where the answerer fails as a whole, in
    every process; `StorageError` if the disk refuses.
    """
    if isinstance(answerer, RepliesFile):
        ready = {ask.key: answerer.reply_of(ask.question.id, spoken=ask.spoken, order=ask.order) for ask in asks}
        return Answered({key: reply for key, reply in ready.items() if reply is not None}, {})
    processes = tools.processes
    failure: SqutrError | None = None
    own: list[tuple[int, Reply]] = []
    try:
        own = _own(answerer, asks, sounds, tools, name)
    except StorageError:
        raise
    except SqutrError as error:
        failure = error
    failures = [one for one in processes.gather(failure) if one is not None]
    if failures:
        raise failures[0]
    replies = complete(gather_long(processes, own), len(asks), "replies")
    digests = {audio: sounds.digest(audio) for ask in asks for audio in ask.audios} if processes.rank == 0 else {}
    return Answered({ask.key: reply for ask, reply in zip(asks, replies, strict=True)}, digests)


def _own(answerer: Answerer, asks: Sequence[Ask], sounds: Sounds, tools: Tools, name: str) -> list[tuple[int, Reply]]:
    """The replies of this process's shards, each with its position."""
    uses_audio = getattr(answerer, "uses_audio", True)
    processes, progress = tools.processes, tools.progress
    kept = KeptReplies(tools.cache, answerer.spec.fingerprint, rank=processes.rank)
    shards = [shard for i, shard in enumerate(shards_of(asks)) if i % processes.size == processes.rank]

    def load(shard: list[int]) -> tuple[list[int], dict[int, str], dict[str, Samples], dict[int, str]]:
        """Keys by position, the clips of what is not known by id, and why an ask cannot be asked."""
        keys: dict[int, str] = {}
        clips: dict[str, Samples] = {}
        faults: dict[int, str] = {}
        for i in shard:
            names = asks[i].audios if uses_audio else ()
            try:
                keys[i] = request_key(asks[i].request(()), [sounds.digest(audio) for audio in names])
                if kept.get(keys[i]) is None:
                    for audio in names:
                        if audio not in clips:
                            clips[audio] = sounds.clip(audio, answerer.sample_rate)
            except AudioError as error:
                faults[i] = error.message
        return shard, keys, clips, faults

    total, done, heard = sum(map(len, shards)), 0, 0.0
    stage = f"{name}: answering"
    if progress is not None:
        progress(stage, 0, total)
    found: list[tuple[int, Reply]] = []
    for shard, keys, clips, faults in in_order(load, shards, workers=1, ahead=1):
        found += [(i, Reply("", error=fault)) for i, fault in faults.items()]
        known = {i: kept.get(keys[i]) for i in shard if i not in faults}
        new = [i for i, reply in known.items() if reply is None]
        if new:
            requests = [asks[i].request([clips[audio] for audio in asks[i].audios] if uses_audio else ()) for i in new]
            replies = ask(answerer, requests, name)
            kept.add([(keys[i], reply) for i, reply in zip(new, replies, strict=True)])
            known |= zip(new, replies, strict=True)
        found += [(i, reply) for i, reply in known.items() if reply is not None]
        done += len(shard)
        heard += sum(asks[i].question.duration_s for i in shard if asks[i].question.duration_s >= 0)
        if progress is not None:
            progress(stage, done, total, audio_s=heard if uses_audio else 0.0)
    return found


def ask(answerer: Answerer, requests: Sequence[AnswerRequest], name: str) -> list[Reply]:
    """The replies, if they are what an answerer must give. Raises `ModelError`, and what else squtr raises."""
    try:
        replies = answerer.answer(requests)
    except SqutrError:
        raise
    except Exception as error:
        # A user's own class may raise anything.
        raise ModelError(f"{name} failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}.") from error
    return _checked(replies, len(requests), name)


def _checked(replies: Sequence[Reply], expected: int, name: str) -> list[Reply]:
    found = list(replies)
    if len(found) != expected:
        raise ModelError(f"{name} gave {len(found)} replies to {expected} requests.", hint="One per request is needed.")
    # A user's own class may give anything.
    given: list[Any] = list(found)
    wrong = next((one for one in given if not (isinstance(one, Reply) and isinstance(one.text, str))), None)
    if wrong is not None:
        raise ModelError(f"{name} gave {wrong!r:.80} as a reply.", hint="Give squtr.harness.protocols.Reply.")
    return [Reply("", error=reply.error, seconds=reply.seconds) if reply.error else reply for reply in found]
