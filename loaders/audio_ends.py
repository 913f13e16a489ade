"""Whether an audio file ends before its header or its stream says that it does.

libsndfile takes most of such files for shorter ones. Lengths are read from the headers of WAV, RF64, W64, AIFF, AU,
CAF and NIST files, from the Xing header or the last frame of MP3, and from the last page of Ogg (Vorbis, Opus, FLAC),
which says that it is the last. What says nothing of its length is taken as whole.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import IO

_UNKNOWN_SIZE = 0x7FFF0000
"""What programs that write into a pipe say of the size, or more."""
_LARGEST = 1 << 62
_TAIL = 1 << 17
"""Where the last page of an Ogg file begins at the earliest: pages have at most 65,307 bytes."""
_W64_RIFF, _W64_DATA = (
    bytes.fromhex("726966662e91cf11a5d628db04c10000"),
    bytes.fromhex("64617461f3acd3118cd100c04f8edb8a"),
)


def cut_reason(file: IO[bytes]) -> str:
    """Why a file, open for reading at any place, is cut off, as a clause; "" for a whole one."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(64)
    if head[:4] == b"OggS":
        return _ogg(file, size)
    there, stated = sample_bytes(file, head, size)
    if there < stated:
        return f"{there:,} of {stated:,} bytes of samples are there"
    return _mp3(file)[0]


def sample_bytes(file: IO[bytes], head: bytes, size: int) -> tuple[int, int]:
    """The bytes of samples that a file has, and that its header says it has; (0, 0) where it does not say it."""
    kind = head[:4]
    for place, stated in _data_chunks(file, head, size):
        return size - place, stated
    if kind in (b".snd", b"dns.") and len(head) >= 12:
        start, stated = struct.unpack(">II" if kind == b".snd" else "<II", head[4:12])
        return (0, 0) if stated == 0xFFFFFFFF else (max(0, size - start), stated)
    return _nist(file, size) if head[:7] == b"NIST_1A" else (0, 0)


def data_place(file: IO[bytes]) -> int:
    """Where the samples of a WAV file begin that says it has none, though bytes follow that are no chunks; else 0."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(12)
    if head[:4] not in (b"RIFF", b"RIFX") or head[8:12] != b"WAVE":
        return 0
    order = "<" if head[:4] == b"RIFF" else ">"
    for kind, place, stated in _chunks(file, 12, size, order):
        if kind == b"data":
            rest = list(_chunks(file, place, size, order))
            ends = rest[-1][1] + rest[-1][2] if rest else place
            chunks = all(32 <= byte < 127 for kind_, _, _ in rest for byte in kind_) and size - 1 <= ends <= size + 1
            return 0 if stated or place >= size or chunks else place
    return 0


def _data_chunks(file: IO[bytes], head: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Place and stated size of the samples in formats that are made of chunks."""
    kind, form = head[:4], head[8:12]
    if kind in (b"RIFF", b"RIFX", b"RF64", b"BW64") and form == b"WAVE":
        large = 0
        for name, place, stated in _chunks(file, 12, size, ">" if kind == b"RIFX" else "<"):
            if name == b"ds64":
                file.seek(place + 8)
                large = int.from_bytes(file.read(8), "little")
            if name == b"data":
                if kind in (b"RF64", b"BW64") and stated == 0xFFFFFFFF:
                    yield place, large if large < _LARGEST else 0
                else:
                    yield place, stated if stated < _UNKNOWN_SIZE else 0
    elif kind == b"FORM" and form in (b"AIFF", b"AIFC"):
        # The first 8 bytes of the chunk are no samples.
        yield from ((place + 8, stated - 8) for name, place, stated in _chunks(file, 12, size, ">") if name == b"SSND")
    elif kind == b"caff":
        place = 8
        while place + 12 <= size:
            file.seek(place)
            name, stated = struct.unpack(">4sq", file.read(12))
            if name == b"data":
                # -1: to the end of the file.
                yield place + 16, stated - 4 if stated >= 4 else 0
            if stated < 0:
                return
            place += 12 + stated
    elif head[:16] == _W64_RIFF:
        place = 40
        while place + 24 <= size:
            file.seek(place)
            name, stated = struct.unpack("<16sQ", file.read(24))
            if name == _W64_DATA:
                yield place + 24, stated - 24
            if stated < 24:
                return
            place += (stated + 7) // 8 * 8


def _chunks(file: IO[bytes], place: int, size: int, order: str) -> Iterator[tuple[bytes, int, int]]:
    """Name, place of the content and stated size of each chunk of a RIFF or IFF file."""
    while place + 8 <= size:
        file.seek(place)
        name, stated = struct.unpack(f"{order}4sI", file.read(8))
        yield name, place + 8, stated
        place += 8 + stated + stated % 2


def _nist(file: IO[bytes], size: int) -> tuple[int, int]:
    file.seek(0)
    lines = file.read(4096).split(b"\n")
    fields = dict(line.split(b" ", 1) for line in lines if line.count(b" ") >= 2)
    try:
        start = int(lines[1])
        counts = [int(fields[name].split()[1]) for name in (b"sample_count", b"sample_n_bytes", b"channel_count")]
    except (IndexError, KeyError, ValueError):
        return 0, 0
    if b"shorten" in fields.get(b"sample_coding", b""):
        return 0, 0
    return max(0, size - start), counts[0] * counts[1] * counts[2]


def _ogg(file: IO[bytes], size: int) -> str:
    start = max(0, size - _TAIL)
    file.seek(start)
    tail = file.read()
    place = tail.rfind(b"OggS")
    while place >= 0:
        page = tail[place:]
        # Four letters may also occur inside a page: only a page has version 0 and flags below 8.
        if len(page) < 6 or (page[4] == 0 and page[5] < 8):
            break
        place = tail.rfind(b"OggS", 0, place)
    if place < 0:
        return "it does not end with a page of its stream"
    count = page[26] if len(page) > 26 else 0
    if len(page) < 27 + count or len(page) < 27 + count + sum(page[27 : 27 + count]):
        return "its last page is incomplete"
    return "" if page[5] & 4 else "its last page is not the end of its stream"


_BITRATES = {
    # (version 1?, layer): kbit/s by index
    (True, 1): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = (44_100, 48_000, 32_000)


def _frame_bytes(head: bytes) -> int:
    """The length of the MPEG audio frame that begins with these bytes; 0 if none does, or it does not say it."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return 0
    version, layer = head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3)
    rate, bits = head[2] >> 2 & 3, head[2] >> 4
    if version == 1 or layer == 4 or rate == 3 or bits in (0, 15):
        return 0
    first = version == 3
    hertz = _RATES[rate] // (1 if first else 2 if version == 2 else 4)
    kilobits, padding = _BITRATES[first, layer][bits], head[2] >> 1 & 1
    if layer == 1:
        return (12_000 * kilobits // hertz + padding) * 4
    return (144_000 if first or layer == 2 else 72_000) * kilobits // hertz + padding


def mp3_samples(file: IO[bytes]) -> int:
    """The samples in the frames of an MP3 file that does not state its length; 0 for every other file."""
    return _mp3(file)[1]


def _mp3(file: IO[bytes]) -> tuple[str, int]:
    """Why an MP3 file is cut off ("" if it is not), and its samples where they had to be counted."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(10)
    start = 0
    if head[:3] == b"ID3" and len(head) == 10:
        # Seven bits of each byte count; a footer is another ten bytes.
        start = 10 + sum((byte & 127) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))
        start += 10 if head[5] & 16 else 0
    file.seek(start)
    first = file.read(2048)
    if not _frame_bytes(first):
        return "", 0
    known, stated = _stated_bytes(first)
    if stated and size - start < stated:
        return f"{size - start:,} of {stated:,} bytes are there", 0
    if known:
        return "", 0
    file.seek(start)
    content = file.read()
    place = count = 0
    while length := _frame_bytes(content[place : place + 4]):
        place += length
        count += 1
    version, layer = first[1] >> 3 & 3, 4 - (first[1] >> 1 & 3)
    each = 384 if layer == 1 else 1152 if layer == 2 or version == 3 else 576
    return ("its last frame is incomplete" if place > len(content) else ""), count * each


def _stated_bytes(frame: bytes) -> tuple[bool, int]:
    """Whether the first frame of an MP3 file says how many follow, and the bytes of all (0: it does not say)."""
    for sign in (b"Xing", b"Info"):
        at = frame.find(sign, 4, 64)
        if at >= 0 and len(frame) >= at + 16:
            flags, *numbers = struct.unpack(">III", frame[at + 4 : at + 16])
            return bool(flags & 1), numbers[flags & 1] if flags & 2 else 0
    at = frame.find(b"VBRI", 4, 64)
    return (True, int.from_bytes(frame[at + 10 : at + 14], "big")) if at >= 0 else (False, 0)
