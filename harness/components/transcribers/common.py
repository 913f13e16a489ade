"""What all transcribers share: which clips are usable, and in which batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import UsageError, unknown_name
from ....loaders.records import Samples
from ...metrics.flags import LOOP_COMPRESSION, LOOP_COPIES, repeats_itself
from ...protocols import Hypothesis, Setting, Transcript
from ..batches import BatchSize, in_batches, require_positive

SAMPLE_RATE = 16_000
WINDOW_S = 30
"""Whisper's window in s. A shorter one changes transcripts, so it is never shortened."""
MAX_TOKENS = 224
"""The default cap on a window's text: half of the decoder's context, as OpenAI's implementation has it."""
PEAK_LIMIT = 100.0
"""Audio above this is not scaled to [-1, 1] (integers, say), and its spectrum may overflow."""
LOOP_SETTINGS: dict[str, Setting] = {"loop_compression": LOOP_COMPRESSION, "loop_repeats": LOOP_COPIES}


def clip_fault(clip: Samples) -> str:
    """Why a clip cannot be transcribed, "" if it can. Silence can be: words on it are the transcriber's fault."""
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
    """What an engine wrote for one clip; the fields are those of `Transcript`."""

    text: str
    truncated: bool = False
    hypotheses: tuple[Hypothesis, ...] = ()
    confidence: float = math.nan


Batch = Callable[[list[Samples]], Sequence[Decoded]]


def transcribe_batches(
    clips: Sequence[Samples], *, size: int | BatchSize, decode: Batch, engine: str
) -> list[Transcript]:
    """One transcript per clip, in order: `decode` gets at most `size` clips together (`in_batches`)."""
    results = [Transcript("", error=clip_fault(clip)) for clip in clips]
    usable = [i for i, result in enumerate(results) if not result.error]
    limit = size if isinstance(size, BatchSize) else BatchSize(size)
    outcomes = in_batches([clips[i] for i in usable], size=limit, work=decode, engine=engine, what="clips")
    for i, outcome in zip(usable, outcomes, strict=True):
        if outcome.value is None:
            results[i] = Transcript("", error=outcome.error, seconds=outcome.seconds)
        else:
            results[i] = _transcript(outcome.value, outcome.seconds)
    return results


def _transcript(decoded: Decoded, seconds: float) -> Transcript:
    text = decoded.text.strip()
    hypotheses = tuple(Hypothesis(h.text.strip(), h.score) for h in decoded.hypotheses)
    return Transcript(
        text,
        loop=repeats_itself(text),
        truncated=decoded.truncated,
        seconds=seconds,
        hypotheses=hypotheses,
        confidence=decoded.confidence,
    )


def transcribe_by_kind(
    clips: Sequence[Samples],
    kind: Callable[[Samples], int],
    transcribe: Callable[[int, list[Samples]], list[Transcript]],
) -> list[Transcript]:
    """One transcript per clip, in order, where `transcribe(kind, clips)` is called once for all clips of a kind."""
    places: dict[int, list[int]] = {}
    for i, clip in enumerate(clips):
        places.setdefault(kind(clip), []).append(i)
    found: dict[int, Transcript] = {}
    for number, of_kind in places.items():
        found |= zip(of_kind, transcribe(number, [clips[i] for i in of_kind]), strict=True)
    return [found[i] for i in range(len(clips))]


def primary_code(language: str) -> str:
    """The language of a code, without region or script.

    >>> primary_code("zh-TW")
    'zh'
    """
    return language.replace("_", "-").split("-", maxsplit=1)[0].lower()


def require_language(language: str, known: Sequence[str], name: str) -> str:
    code = primary_code(language)
    if code not in known:
        raise unknown_name(f"language of {name}", language, known)
    return code


def require_n_best(n_best: int, beam_size: int) -> None:
    require_positive(n_best=n_best, beam_size=beam_size)
    if n_best > beam_size:
        raise UsageError(
            f"{n_best} hypotheses need a beam_size of at least {n_best}, not {beam_size}.",
            hint=f"Give beam_size={n_best} or more, or a smaller n_best.",
        )


def joined_windows(text: str, windows: Sequence[tuple[float, int]]) -> tuple[Hypothesis, ...]:
    """The one hypothesis of a long clip; its score is the mean of the windows' (score, tokens), by tokens."""
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
