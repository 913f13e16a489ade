"""What all recognizers share: which clips can be heard, in which batches, and when a transcript repeats itself."""

from __future__ import annotations

import gc
import re
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import UsageError, unknown_name
from ....loaders.records import Samples
from ...processes import is_out_of_memory
from ...protocols import Hypothesis, Setting, Transcript

SAMPLE_RATE = 16_000
"""What Whisper hears, in Hz."""
WINDOW_S = 30
"""Whisper's window in s. A shorter one changes transcripts, so it is never shortened."""
MAX_TOKENS = 224
"""The default cap on a window's text: half of the decoder's context, as OpenAI's implementation has it."""
LOOP_COMPRESSION = 2.4
"""Above this ratio of UTF-8 bytes to zlib bytes a text repeats itself (Whisper, arXiv 2212.04356, section 4.5)."""
LOOP_REPEATS = 4
"""This many times in a row the same words are a loop."""
PEAK_LIMIT = 100.0
"""Sound above this is not scaled to [-1, 1] (integers, say), and its spectrum may overflow."""
LOOP_SETTINGS: dict[str, Setting] = {"loop_compression": LOOP_COMPRESSION, "loop_repeats": LOOP_REPEATS}

# A unit is a word, or one character of a script that is written without blanks (kana, Han).
_UNIT = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+(?:['’]\w+)*"
)


def is_loop(text: str) -> bool:
    """Whether a transcript repeats itself.

    It does if its UTF-8 bytes are more than `LOOP_COMPRESSION` times those that zlib makes of them, or if one sequence
    of units (words; single characters in Chinese and Japanese) of any length stands `LOOP_REPEATS` times in a row. A
    sequence of numbers alone does not count (10000, "0 0 0 0"), nor does punctuation.

    >>> is_loop("thank you. thank you. thank you. Thank you.")
    True
    >>> is_loop("我的妈呀我的妈呀我的妈呀我的妈呀")
    True
    >>> is_loop("call 555 555 555 555 now, it is very very important")
    False
    >>> is_loop("")
    False
    """
    content = text.strip().encode("utf-8")
    if len(content) > LOOP_COMPRESSION * len(zlib.compress(content)):
        return True
    units = _UNIT.findall(text.casefold())
    for n in range(1, len(units) // LOOP_REPEATS + 1):
        run = 0
        for i in range(n, len(units)):
            run = run + 1 if units[i] == units[i - n] else 0
            if run >= n * (LOOP_REPEATS - 1) and not all(unit.isnumeric() for unit in units[i - n + 1 : i + 1]):
                return True
    return False


def clip_fault(clip: Samples) -> str:
    """Why a clip cannot be heard, "" if it can. Silence can be: words on it are the recognizer's fault."""
    if clip.ndim != 1:
        return f"the clip has shape {clip.shape} instead of (T,)"
    if clip.size == 0:
        return "the clip has no samples"
    if not np.isfinite(clip).all():
        return f"the clip holds NaN or infinity at sample {int(np.flatnonzero(~np.isfinite(clip))[0])}"
    peak = float(np.abs(clip).max())
    return f"the clip peaks at {peak:g}, so it is not scaled to [-1, 1]" if peak > PEAK_LIMIT else ""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What an engine wrote for one clip; `hypotheses` as in `Transcript`."""

    text: str
    truncated: bool = False
    hypotheses: tuple[Hypothesis, ...] = ()


class BatchSize:
    """How many clips are decoded together, from `first` downwards: what did not fit once is not tried again.

    >>> size = BatchSize(16)
    >>> size.shrink(16)
    >>> size.now
    8
    """

    def __init__(self, first: int) -> None:
        require_positive(batch_size=first)
        self.now = first

    def shrink(self, tried: int) -> None:
        """Half of the `tried` clips that memory did not suffice for, at least 1."""
        self.now = max(1, min(self.now, tried) // 2)


Batch = Callable[[list[Samples]], Sequence[Decoded | tuple[str, bool]]]
"""Decodes clips together: for each, in order, `Decoded` or (text, truncated)."""


def transcribe_batches(
    clips: Sequence[Samples], *, size: int | BatchSize, decode: Batch, engine: str
) -> list[Transcript]:
    """One transcript per clip, in order: `decode` hears at most `size` clips together.

    Clips that cannot be heard are not decoded. If memory runs out, the batch is halved and `size`, where it is a
    `BatchSize`, stays so small. If a batch fails otherwise (`RuntimeError`, or another number of results than clips),
    its clips are decoded one at a time. A clip that fails alone has `error`. A batch's time is shared equally.
    """
    limit = size if isinstance(size, BatchSize) else BatchSize(size)
    results = [Transcript("", error=clip_fault(clip)) for clip in clips]
    usable = [i for i, result in enumerate(results) if not result.error]
    done = 0
    while done < len(usable):
        batch = usable[done : done + limit.now]
        decoded = _decoded([clips[i] for i in batch], decode, engine)
        if decoded is None:
            limit.shrink(len(batch))
            # What the failed attempt held must be free before the next: some of it lies in reference cycles.
            gc.collect()
            continue
        for i, transcript in zip(batch, decoded, strict=True):
            results[i] = transcript
        done += len(batch)
    return results


def _decoded(clips: list[Samples], decode: Batch, engine: str) -> list[Transcript] | None:
    """The transcripts of a batch; None if memory did not suffice for several clips."""
    started = time.perf_counter()
    fault, found = "", []
    try:
        found = [d if isinstance(d, Decoded) else Decoded(*d) for d in decode(clips)]
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error) and len(clips) > 1:
            return None
        fault = f"{engine} failed: {str(error) or type(error).__name__}"
    # Outside the handler: until here the error held the batch's memory.
    if not fault and len(found) != len(clips):
        fault = f"{engine} gave {len(found)} transcripts for {len(clips)} clips"
    if fault and len(clips) > 1:
        return [transcript for clip in clips for transcript in _decoded([clip], decode, engine) or ()]
    seconds = (time.perf_counter() - started) / len(clips)
    if fault:
        return [Transcript("", error=fault, seconds=seconds)]
    return [_transcript(d, seconds) for d in found]


def _transcript(decoded: Decoded, seconds: float) -> Transcript:
    text = decoded.text.strip()
    hypotheses = tuple(Hypothesis(h.text.strip(), h.score) for h in decoded.hypotheses)
    return Transcript(text, loop=is_loop(text), truncated=decoded.truncated, seconds=seconds, hypotheses=hypotheses)


def heard_by_kind(
    clips: Sequence[Samples], kind: Callable[[Samples], int], hear: Callable[[int, list[Samples]], list[Transcript]]
) -> list[Transcript]:
    """One transcript per clip, in order, where `hear(kind, clips)` is called once for all clips of a kind."""
    places: dict[int, list[int]] = {}
    for i, clip in enumerate(clips):
        places.setdefault(kind(clip), []).append(i)
    found: dict[int, Transcript] = {}
    for number, of_kind in places.items():
        found |= zip(of_kind, hear(number, [clips[i] for i in of_kind]), strict=True)
    return [found[i] for i in range(len(clips))]


def primary_code(language: str) -> str:
    """The language of a code, without region or script.

    >>> primary_code("zh-TW")
    'zh'
    """
    return language.replace("_", "-").split("-", maxsplit=1)[0].lower()


def require_language(language: str, known: Sequence[str], name: str) -> str:
    """The primary code of `language`; raises `UnknownNameError` if `name` does not know it."""
    code = primary_code(language)
    if code not in known:
        raise unknown_name(f"language of {name}", language, known)
    return code


def require_positive(**numbers: int) -> None:
    """Raises `UsageError` for a number below 1."""
    for name, value in numbers.items():
        if value < 1:
            raise UsageError(f"a transcriber needs {name} of at least 1, not {value}.")


def require_n_best(n_best: int, beam_size: int) -> None:
    """Raises `UsageError` unless beam search of this width can give this many hypotheses."""
    require_positive(n_best=n_best, beam_size=beam_size)
    if n_best > beam_size:
        raise UsageError(
            f"{n_best} hypotheses need a beam_size of at least {n_best}, not {beam_size}.",
            hint=f"Give beam_size={n_best} or more, or a smaller n_best.",
        )


def joined_windows(text: str, windows: Sequence[tuple[float, int]]) -> tuple[Hypothesis, ...]:
    """The one hypothesis of a long clip that was heard in windows, each (score, tokens).

    Its score is the mean of the windows' scores, weighted by their tokens; 0 without a token.
    """
    tokens = sum(number for _, number in windows)
    return (Hypothesis(text, sum(score * number for score, number in windows) / max(tokens, 1)),)


def minor_version(distribution: str, module: str, extra: str) -> str:
    """Major and minor version of an installed distribution; raises `MissingExtraError` if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    from ....errors import missing_extra

    try:
        return ".".join(version(distribution).split(".")[:2])
    except PackageNotFoundError as error:
        raise missing_extra(module, extra) from error
