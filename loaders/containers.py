"""Audio that libsndfile does not read (AAC, MP4, Matroska and WebM, WMA, AMR), decoded by PyAV where it is installed.

PyAV leaves out what the file says is no part of it (encoder delay, edit lists, padding), as players do. Measured with
files that PyAV itself wrote: FLAC and ALAC come back sample by sample, Opus in WebM with its length, AAC in MP4 without
delay and up to 1 ms longer, because the file states its length in ms. A stream of bare AAC frames (`.aac`) does not
say the delay of its encoder, usually 1,024 samples, which stay.
"""

from __future__ import annotations

import io
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from ..errors import AudioError, MissingExtraError

SUFFIXES = frozenset((
    ".3gp", ".aac", ".amr", ".m4a", ".m4b", ".mka", ".mkv", ".mov", ".mp4", ".webm", ".wma",
))  # fmt: skip
"""What such files are called."""

_SLACK_S = 0.1
"""How much less than stated may be there: stated lengths count the encoder's delay."""
_EBML, _ASF, _AMR = b"\x1a\x45\xdf\xa3", bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), b"#!AMR"
_SEGMENT = b"\x18\x53\x80\x67"
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"styp")


def is_container(file: IO[bytes]) -> bool:
    """Whether a file, open for reading, begins as one of these formats."""
    file.seek(0)
    head = file.read(16)
    return head[:4] == _EBML or head == _ASF or head[:5] == _AMR or head[4:8] in _BOXES or _adts_bytes(head) > 0


def decoded_container(content: bytes | Path, name: str) -> IO[bytes]:
    """A temporary WAV file of 32-bit floats with all channels, at its beginning; it is removed when it is closed.

    Raises `MissingExtraError` naming `pip install`, and `AudioError` for a file that is cut off, has no audio or
    several streams of it, or cannot be decoded.
    """
    try:
        import av
    except ImportError as error:
        raise MissingExtraError(
            f"{name} is in a format that libsndfile does not read, and PyAV is not installed.",
            hint="Run: pip install 'squtr[av]'",
        ) from error
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
        reason = _cut_reason(file)
        if reason:
            raise AudioError(f"{name} is cut off: {reason}.", hint="Replace or remove it.")
        target = tempfile.TemporaryFile(prefix="squtr-")  # noqa: SIM115
        file.seek(0)
        try:
            with av.open(file) as opened:
                _decode(opened, target, name)
        except (av.FFmpegError, OSError, ValueError, MemoryError) as error:
            target.close()
            if isinstance(error, AudioError):
                raise
            detail = getattr(error, "strerror", "") or str(error)
            raise AudioError(
                f"{name} cannot be read as audio: {detail}.".replace("..", "."), hint="Replace or remove it."
            ) from error
        except BaseException:
            target.close()
            raise
    target.seek(0)
    return target


def _decode(opened: Any, target: IO[bytes], name: str) -> None:
    streams = opened.streams.audio
    if not streams:
        raise AudioError(f"{name} has no audio.", hint="Remove it.")
    if len(streams) > 1:
        raise AudioError(f"{name} has {len(streams)} streams of audio.", hint="Extract the one that you mean.")
    stream = streams[0]
    rate, channels = int(stream.codec_context.sample_rate or 0), 0
    # What the stream states, without what its edit list leaves out; the rate of AAC with SBR is known with its frames.
    stated_s = float(stream.duration * stream.time_base) if stream.duration and _is_mp4(opened) else 0.0
    least_s = stated_s or _stated_seconds(stream)
    written, sink = 0, None
    try:
        for frame in opened.decode(stream):
            block = _samples(frame)
            if sink is None:
                rate, channels = int(frame.sample_rate), block.shape[1]
                sink = soundfile.SoundFile(target, "w", rate, channels, subtype="FLOAT", format="RF64")
            if (int(frame.sample_rate), block.shape[1]) != (rate, channels):
                raise AudioError(f"{name} changes its rate or channels.", hint="Convert it to WAV or FLAC.")
            if stated_s:
                block = block[: max(0, round(stated_s * rate) - written)]
            sink.write(block)
            written += block.shape[0]
    finally:
        if sink is not None:
            sink.close()
    if not written:
        raise AudioError(f"{name} has no samples.", hint="Remove it or record it again.")
    if written < (least_s - _SLACK_S) * rate:
        raise AudioError(
            f"{name} is cut off: {written / rate:.2f} of {least_s:.2f} s are there.", hint="Replace or remove it."
        )


def _is_mp4(opened: Any) -> bool:
    return "mp4" in opened.format.name.split(",")


def _stated_seconds(stream: Any) -> float:
    """What Matroska says of one stream, as `01:02:03.5`; 0 where nothing does."""
    parts = str(stream.metadata.get("DURATION", "")).split(":")
    try:
        return sum(float(part) * unit for part, unit in zip(parts, (3600, 60, 1), strict=True))
    except ValueError:
        return 0.0


def _samples(frame: Any) -> NDArray[np.float32]:
    """(T, channels) of a decoded frame; integers are scaled to ±1."""
    values: NDArray[Any] = frame.to_ndarray()
    channels = len(frame.layout.channels)
    values = values.T if frame.format.is_planar else values.reshape(-1, channels)
    if values.dtype == np.uint8:
        values = (values.astype(np.float32) - 128) / 128
    elif np.issubdtype(values.dtype, np.integer):
        values = values / -float(np.iinfo(values.dtype).min)
    return np.ascontiguousarray(values, dtype=np.float32)


def _cut_reason(file: IO[bytes]) -> str:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(64)
    if head[:4] == _EBML:
        end = _segment_end(head)
    elif head[:16] == _ASF:
        return ""
    elif head[4:8] in _BOXES:
        end = max(_box_ends(file, size), default=0)
    elif _adts_bytes(head):
        end = _adts_end(file, size)
    else:
        return ""
    return f"{size:,} of {end:,} bytes are there" if size < end else ""


def _segment_end(head: bytes) -> int:
    """Where the segment of a Matroska file ends by its own size; 0 where it says none, as of a live recording."""
    at = head.find(_SEGMENT) + len(_SEGMENT)
    if at < len(_SEGMENT) or at >= len(head) or not head[at]:
        return 0
    width = 9 - head[at].bit_length()
    value = int.from_bytes(head[at : at + width], "big") & ((1 << 7 * width) - 1)
    return 0 if value == (1 << 7 * width) - 1 else at + width + value


def _box_ends(file: IO[bytes], size: int) -> Iterator[int]:
    place = 0
    while place + 8 <= size:
        file.seek(place)
        stated, _ = struct.unpack(">I4s", file.read(8))
        if stated == 1:
            stated = int.from_bytes(file.read(8), "big")
        if stated < 8:
            # 0: to the end of the file.
            return
        place += stated
        yield place


def _adts_bytes(head: bytes) -> int:
    """The length of the AAC frame that begins with these bytes; 0 if none does."""
    if len(head) < 6 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:
        return 0
    return (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5


def _adts_end(file: IO[bytes], size: int) -> int:
    file.seek(0)
    content = file.read()
    place = 0
    while place < size and (length := _adts_bytes(content[place : place + 6])) > 6:
        place += length
    return place
