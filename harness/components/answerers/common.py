"""What all answerers share: what is done with long sound, in which batches requests go, and what a failure is."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ....errors import UsageError
from ....loaders.records import Samples
from ...processes import is_out_of_memory
from ...protocols import AnswerRequest, Reply, Setting
from ..transcribers.common import BatchSize, clip_fault

LongAudio = Literal["truncate", "chunks"]
"""What is done with sound that is longer than what a model takes at once: its beginning is kept, or it is cut into
pieces that all go into the one message, in order."""
LONG_AUDIO: tuple[LongAudio, ...] = ("truncate", "chunks")
MAX_NEW_TOKENS = 512
"""The default cap on a reply: instructions ask for some paragraphs."""


@dataclass(frozen=True, slots=True)
class AudioLimit:
    """How much sound a model takes.

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
        """For a spec."""
        return {"long_audio": self.policy, "max_seconds": self.window_s, "total_seconds": self.total_s}


@dataclass(frozen=True, slots=True)
class Piece:
    """A clip as it goes into a message, and what is written before it ("" for nothing)."""

    name: str
    samples: Samples


def in_pieces(request: AnswerRequest, limit: AudioLimit, rate: int) -> tuple[list[Piece], bool]:
    """The request's clips as a model with this limit takes them, and whether some sound was cut off.

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


def answer_batches(requests: Sequence[AnswerRequest], *, size: BatchSize, write: Write, engine: str) -> list[Reply]:
    """One reply per request, in order: `write` answers at most `size` requests together.

    Requests are sorted by the length of their sound and of their prompt, and those with and without sound never share a
    batch. A request with a clip that cannot be heard is not asked. Where memory runs out, the batch is halved and stays
    so small. If a batch fails otherwise (`RuntimeError`, `ValueError`, or another number of replies), its requests go
    one at a time; one that fails alone has `error`. A batch's time is shared equally.
    """
    replies = [Reply("", error=request_fault(request)) for request in requests]
    usable = [i for i, reply in enumerate(replies) if not reply.error]

    def cost(i: int) -> tuple[bool, int, int]:
        sound = sum(clip.size for clip in requests[i].audios)
        return not requests[i].audios, -sound, -len(requests[i].prompt)

    order = sorted(usable, key=cost)
    done = 0
    while done < len(order):
        batch = order[done : done + size.now]
        heard = bool(requests[batch[0]].audios)
        batch = [i for i in batch if bool(requests[i].audios) == heard]
        found = _written([requests[i] for i in batch], write, engine)
        if found is None:
            size.shrink(len(batch))
            # What the failed attempt held must be free before the next: some of it lies in reference cycles.
            gc.collect()
            continue
        for i, reply in zip(batch, found, strict=True):
            replies[i] = reply
        done += len(batch)
    return replies


def _written(requests: list[AnswerRequest], write: Write, engine: str) -> list[Reply] | None:
    """The replies of a batch; None if memory did not suffice for several requests."""
    started = time.perf_counter()
    fault, found = "", []
    try:
        found = list(write(requests))
    except (RuntimeError, ValueError, MemoryError) as error:
        if is_out_of_memory(error) and len(requests) > 1:
            return None
        fault = f"{engine} failed: {' '.join(str(error).split())[:300] or type(error).__name__}"
    # Outside the handler: until here the error held the batch's memory.
    if not fault and len(found) != len(requests):
        fault = f"{engine} gave {len(found)} replies to {len(requests)} requests"
    if fault and len(requests) > 1:
        return [reply for one in requests for reply in _written([one], write, engine) or ()]
    seconds = (time.perf_counter() - started) / len(requests)
    if fault:
        return [Reply("", error=fault, seconds=seconds)]
    return [
        Reply(w.text.strip(), truncated=w.truncated, audio_truncated=w.audio_truncated, seconds=seconds) for w in found
    ]


def ended(row: Sequence[int], ends: frozenset[int], cap: int) -> tuple[list[int], bool]:
    """New tokens without the end and what follows it, and whether the cap cut them.

    >>> ended([5, 6, 2, 0], frozenset({2}), 4), ended([5, 6, 7, 8], frozenset({2}), 4)
    (([5, 6], False), ([5, 6, 7, 8], True))
    """
    end = next((i for i, token in enumerate(row) if token in ends), len(row))
    return list(row[:end]), end == len(row) and len(row) >= cap


def end_tokens(model: object) -> frozenset[int]:
    """The tokens at which a model of transformers stops."""
    config = getattr(model, "generation_config", None)
    ends = getattr(config, "eos_token_id", None)
    if ends is None:
        return frozenset()
    return frozenset(ends if isinstance(ends, list | tuple) else [ends])
