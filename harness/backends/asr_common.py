"""What all recognisers share: which clips can be heard, and when a transcript repeats itself."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import UsageError, unknown_name
from ...loaders.records import Samples
from ..protocols import Setting, Transcript

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
    """Why a clip cannot be heard, "" if it can. Silence can be: words on it are the recogniser's fault."""
    if clip.ndim != 1:
        return f"the clip has shape {clip.shape} instead of (T,)"
    if clip.size == 0:
        return "the clip has no samples"
    if not np.isfinite(clip).all():
        return f"the clip holds NaN or infinity at sample {int(np.flatnonzero(~np.isfinite(clip))[0])}"
    peak = float(np.abs(clip).max())
    return f"the clip peaks at {peak:g}, so it is not scaled to [-1, 1]" if peak > PEAK_LIMIT else ""


def transcribe_batches(
    clips: Sequence[Samples],
    *,
    size: int,
    decode: Callable[[list[Samples]], list[tuple[str, bool]]],
    engine: str,
) -> list[Transcript]:
    """One transcript per clip: `decode` hears at most `size` clips and gives (text, truncated) for each.

    Clips that cannot be heard are not decoded. If a batch fails (`RuntimeError`: memory, most often), its clips are
    decoded one at a time, and one that fails alone has `error`. A batch's time is shared equally.
    """
    results = [Transcript("", error=clip_fault(clip)) for clip in clips]
    usable = [i for i, result in enumerate(results) if not result.error]
    for start in range(0, len(usable), size):
        batch = usable[start : start + size]
        for i, transcript in zip(batch, _decoded([clips[i] for i in batch], decode, engine), strict=True):
            results[i] = transcript
    return results


def _decoded(
    clips: list[Samples], decode: Callable[[list[Samples]], list[tuple[str, bool]]], engine: str
) -> list[Transcript]:
    started = time.perf_counter()
    try:
        decoded = decode(clips)
    except RuntimeError as error:
        if len(clips) > 1:
            return [transcript for clip in clips for transcript in _decoded([clip], decode, engine)]
        return [Transcript("", error=f"{engine} failed: {error}", seconds=time.perf_counter() - started)]
    seconds = (time.perf_counter() - started) / len(clips)
    texts = [text.strip() for text, _ in decoded]
    return [
        Transcript(text, loop=is_loop(text), truncated=truncated, seconds=seconds)
        for text, (_, truncated) in zip(texts, decoded, strict=True)
    ]


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


def minor_version(distribution: str, module: str, extra: str) -> str:
    """Major and minor version of an installed distribution; raises `MissingExtraError` if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    from ...errors import missing_extra

    try:
        return ".".join(version(distribution).split(".")[:2])
    except PackageNotFoundError as error:
        raise missing_extra(module, extra) from error
