"""What all answerers share: what is done with long audio, in which batches requests go, and what a failure is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ....errors import UsageError
from ....loaders.records import Samples
from ...protocols import AnswerRequest, Reply, Setting
from ..batches import BatchSize, in_batches
from ..transcribers.common import clip_fault

LongAudio = Literal["truncate", "chunks"]
"""What is done with audio that is longer than what a model takes at once: its beginning is kept, or it is cut into
pieces that all go into the one message, in order."""
LONG_AUDIO: tuple[LongAudio, ...] = ("truncate", "chunks")


@dataclass(frozen=True, slots=True)
class AudioLimit:
    """How much audio a model takes.

    A clip may last `window_s`, a message's clips `total_s` together (None: any). `policy` says what becomes of a longer
    clip; what is then still above `total_s` is cut off the later clips first. Raises `UsageError`.
    """

    window_s: float | None = None
    total_s: float | None = None
    policy: LongAudio = "truncate"

    def __post_init__(self) -> None:
        if self.policy not in LONG_AUDIO:
            raise UsageError(f"unknown long_audio {self.policy!r}.", hint=f"Known: {', '.join(LONG_AUDIO)}.")
        for name, value in (("max_seconds", self.window_s), ("total_seconds", self.total_s)):
            if value is not None and not value > 0:
                raise UsageError(f"{name} is {value}.", hint="Give seconds above 0, or leave it out.")

    def settings(self) -> dict[str, Setting]:
        return {"long_audio": self.policy, "max_seconds": self.window_s, "total_seconds": self.total_s}


@dataclass(frozen=True, slots=True)
class Piece:
    """A clip as it goes into a message, and what is written before it ("" for nothing)."""

    name: str
    samples: Samples


def in_pieces(request: AnswerRequest, limit: AudioLimit, rate: int) -> tuple[list[Piece], bool]:
    """The request's clips as a model with this limit takes them, and whether some audio was cut off.

    The first piece of a clip has the clip's name before it, the others have none.

    >>> import numpy as np
    >>> asked = AnswerRequest("?", (np.zeros(25, np.float32), np.zeros(5, np.float32)), ("Audio 1:", "Audio 2:"))
    >>> pieces, cut = in_pieces(asked, AudioLimit(10.0, policy="chunks"), 1)
    >>> [(piece.name, piece.samples.size) for piece in pieces], cut
    ([('Audio 1:', 10), ('', 10), ('', 5), ('Audio 2:', 5)], False)
    >>> pieces, cut = in_pieces(asked, AudioLimit(10.0), 1)
    >>> [(piece.name, piece.samples.size) for piece in pieces], cut
    ([('Audio 1:', 10), ('Audio 2:', 5)], True)
    """
    names = request.audio_names or ("",) * len(request.audios)
    found: list[Piece] = []
    cut = False
    left = None if limit.total_s is None else max(1, round(limit.total_s * rate))
    for name, clip in zip(names, request.audios, strict=True):
        window = clip.size if limit.window_s is None else max(1, round(limit.window_s * rate))
        kept = clip[:window] if limit.policy == "truncate" else clip
        if left is not None:
            kept = kept[:left]
            left -= kept.size
        cut = cut or kept.size < clip.size
        for start in range(0, kept.size, max(1, window)):
            found.append(Piece("" if start else name, kept[start : start + window]))
    return found, cut


def request_fault(request: AnswerRequest) -> str:
    """Why a request cannot be answered, "" if it can."""
    return next((fault for fault in map(clip_fault, request.audios) if fault), "")


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote; flags as in `Reply`."""

    text: str
    truncated: bool = False
    audio_truncated: bool = False


Write = Callable[[list[AnswerRequest]], Sequence[Written]]


def answer_batches(
    requests: Sequence[AnswerRequest],
    *,
    size: BatchSize,
    write: Write,
    engine: str,
    fault: Callable[[AnswerRequest], str] = request_fault,
) -> list[Reply]:
    """One reply per request, in order: `write` answers at most `size` requests of like length together (`in_batches`).

    Requests with and without audio never share a batch. One with a `fault`, such as an unusable clip, is not asked.
    """
    replies = [Reply("", error=fault(request)) for request in requests]

    def cost(i: int) -> tuple[bool, int, int]:
        samples = sum(clip.size for clip in requests[i].audios)
        return not requests[i].audios, -samples, -len(requests[i].prompt)

    order = sorted((i for i, reply in enumerate(replies) if not reply.error), key=cost)
    outcomes = in_batches(
        [requests[i] for i in order],
        size=size,
        work=write,
        engine=engine,
        what="requests",
        kind=lambda request: bool(request.audios),
        faults=(ValueError,),
    )
    for i, outcome in zip(order, outcomes, strict=True):
        reply, seconds = outcome.value, outcome.seconds
        if reply is None:
            replies[i] = Reply("", error=outcome.error, seconds=seconds)
        else:
            replies[i] = Reply(
                reply.text.strip(), truncated=reply.truncated, audio_truncated=reply.audio_truncated, seconds=seconds
            )
    return replies
