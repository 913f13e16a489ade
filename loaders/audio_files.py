"""Opening an audio file, whole or not at all: the one door to libsndfile, and to PyAV for what it cannot read."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import soundfile

from ..errors import AudioError
from .audio_ends import cut_reason, data_place, mp3_samples
from .containers import decoded_container, is_container

_MP3_SLACK = 4 * 1152
"""Samples of encoder delay and of a frame that holds none."""


def open_audio(content: bytes | Path, name: str) -> soundfile.SoundFile:
    """The file (its content or its path), open for reading.

    What libsndfile does not read (AAC, MP4, Matroska, WMA, AMR) is decoded by PyAV into a temporary file. A WAV file
    that says it holds no samples, as programs leave it that stream, is read to its end. Raises `AudioError` naming
    `name` if the file does not exist, is cut off, or cannot be read.
    """
    if isinstance(content, Path) and not content.is_file():
        raise AudioError(f"{name} does not exist.", hint=f"Looked for {content}: check the path.")
    try:
        with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
            container = is_container(file)
            reason = "" if container else cut_reason(file)
            place = data_place(file)
            counted = mp3_samples(file)
        if reason:
            raise AudioError(f"{name} is cut off: {reason}.", hint="Replace or remove it.")
        if place:
            return soundfile.SoundFile(io.BytesIO(_with_size(content, place)))
        if not container:
            opened = soundfile.SoundFile(content if isinstance(content, Path) else io.BytesIO(content))
            if not counted or abs(opened.frames - counted) <= _MP3_SLACK:
                return opened
            # It guessed the length of an MP3 file with frames of different size, and would end there.
            opened.close()
        with decoded_container(content, name) as decoded:
            return soundfile.SoundFile(os.dup(decoded.fileno()))
    except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> AudioError:
    reason = str(error).rstrip(".")
    return AudioError(f"{name} cannot be read as audio: {reason}.", hint="Replace or remove it.")


def _with_size(content: bytes | Path, place: int) -> bytes:
    """The WAV file with the size of its samples, which begin at `place`, written into its header."""
    whole = bytearray(content.read_bytes() if isinstance(content, Path) else content)
    order = "<" if whole[:4] == b"RIFF" else ">"
    whole[place - 4 : place] = struct.pack(f"{order}I", min(len(whole) - place, 0xFFFFFFFF))
    return bytes(whole)
