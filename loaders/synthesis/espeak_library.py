"""The espeak-ng C library: text to phonemes and text to speech.

The library keeps its voice and its callback in C globals, so one lock guards every use. It comes from the package
`espeakng-loader`; no system package is needed. Interface: espeak-ng's `speak_lib.h` (version 1.52).
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import functools
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...errors import ModelError, StorageError, SynthesisError, missing_extra, unknown_name
from ..records import Samples

_LOCK = threading.Lock()

_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS
_UTF8 = 1  # espeakCHARS_UTF8
_IPA_WITH_TIE = 0x02 | 0x80 | (ord("^") << 8)
_END_PAUSE = 0x1000  # espeakENDPAUSE
_DONT_EXIT = 0x8000  # espeakINITIALIZE_DONT_EXIT
_RATE, _PITCH = 1, 3  # espeak_PARAMETER
_PATH_LIMIT = 140
"""espeak-ng copies the data path into a buffer of 160 bytes and cuts it silently."""

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class _Library:
    handle: ctypes.CDLL
    rate: int
    version: str


@functools.cache
def _load(extra: str) -> _Library:
    """The copy of the library that stays, for phonemes."""
    return _open(_paths(extra)[0], extra)


def _paths(extra: str) -> tuple[str, bytes]:
    try:
        import espeakng_loader
    except ImportError as error:
        raise missing_extra("espeakng_loader", extra) from error
    data = espeakng_loader.get_data_path().encode()
    if len(data) > _PATH_LIMIT:
        raise ModelError(
            f"the path of espeak-ng's data is too long for it: {data.decode()}.",
            hint="Use an environment with a shorter path.",
        )
    return espeakng_loader.get_library_path(), data


def _open(path: str, extra: str) -> _Library:
    try:
        handle = ctypes.CDLL(path)
    except OSError as error:
        raise ModelError(f"espeak-ng cannot be loaded: {error}.", hint="Install espeakng-loader again.") from error
    handle.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    handle.espeak_Info.argtypes = [ctypes.c_void_p]
    handle.espeak_Info.restype = ctypes.c_char_p
    handle.espeak_SetVoiceByName.argtypes = [ctypes.c_char_p]
    handle.espeak_SetParameter.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int]
    handle.espeak_ng_SetRandSeed.argtypes = [ctypes.c_long]
    handle.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]
    handle.espeak_TextToPhonemes.restype = ctypes.c_char_p
    handle.espeak_SetSynthCallback.argtypes = [ctypes.c_void_p]
    handle.espeak_Synth.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int, ctypes.c_uint, ctypes.c_uint,
        ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    data = _paths(extra)[1]
    rate = handle.espeak_Initialize(_SYNCHRONOUS, 0, data, _DONT_EXIT)
    if rate <= 0:
        raise ModelError(f"espeak-ng cannot read its data in {data.decode()}.", hint="Install espeakng-loader again.")
    return _Library(handle, rate, handle.espeak_Info(None).decode().split()[0])


@contextlib.contextmanager
def _fresh() -> Iterator[_Library]:
    """A copy that has never spoken: its flutter goes on from the last utterance, even through its termination."""
    path, _ = _paths("espeak")
    with tempfile.TemporaryDirectory(prefix="squtr-espeak-", ignore_cleanup_errors=True) as folder:
        try:
            copy = shutil.copy(path, folder)
        except OSError as error:
            raise StorageError(f"espeak-ng cannot be copied to {folder}: {error}.", hint="Make room there.") from error
        library = _open(copy, "espeak")
        try:
            yield library
        finally:
            library.handle.espeak_Terminate()
            if sys.platform != "win32":
                _ctypes.dlclose(library.handle._handle)


def espeak_version(extra: str = "espeak") -> str:
    """Version of the library, for example "1.52.0". `extra` is what a missing package's error tells to install."""
    with _LOCK:
        return _load(extra).version


def _set_voice(library: _Library, voice: str) -> None:
    if library.handle.espeak_SetVoiceByName(voice.encode()) != 0:
        raise unknown_name("espeak-ng voice", voice, ())


def espeak_phonemes(text: str, voice: str, *, extra: str = "espeak") -> str:
    """IPA with stress marks, `^` inside diphthongs and affricates; clauses joined by blanks, without punctuation."""
    with _LOCK:
        library = _load(extra)
        _set_voice(library, voice)
        buffer = ctypes.create_string_buffer(text.encode())
        pointer = ctypes.c_void_p(ctypes.addressof(buffer))
        clauses = []
        # The library moves the pointer past each clause and sets it to null after the last one.
        while pointer.value:
            clauses.append(library.handle.espeak_TextToPhonemes(ctypes.byref(pointer), _UTF8, _IPA_WITH_TIE).decode())
    return " ".join(clause.strip() for clause in clauses if clause.strip())


def espeak_speech(text: str, voice: str, *, words_per_minute: int, pitch: int, seed: int) -> tuple[Samples, int]:
    """(T,) float32 and its rate in Hz. `pitch` from 0 to 100, 50 is the voice's own."""
    blocks: list[bytes] = []

    def receive(samples: "ctypes._Pointer[ctypes.c_short]", count: int, _events: object) -> int:  # noqa: UP037
        if count > 0:
            blocks.append(ctypes.string_at(samples, 2 * count))
        return 0

    callback = _Callback(receive)
    content = text.encode()
    with _LOCK, _fresh() as library:
        rate = library.rate
        _set_voice(library, voice)
        library.handle.espeak_SetParameter(_RATE, words_per_minute, 0)
        library.handle.espeak_SetParameter(_PITCH, pitch, 0)
        library.handle.espeak_ng_SetRandSeed(seed % (1 << 31) or 1)
        with contextlib.suppress(AttributeError):  # Windows does not find the C library's function through this one
            # Some variants draw their breath from the C library's generator.
            library.handle.srand(ctypes.c_uint(seed % (1 << 31) or 1))
        library.handle.espeak_SetSynthCallback(callback)
        status = library.handle.espeak_Synth(content, len(content) + 1, 0, 1, 0, _UTF8 | _END_PAUSE, None, None)
        library.handle.espeak_SetSynthCallback(None)
    if status != 0:
        raise SynthesisError(f"espeak-ng failed with status {status} on {text!r}.", hint="Change the text.")
    pcm = np.frombuffer(b"".join(blocks), dtype=np.int16)
    return (pcm.astype(np.float32) / 32768.0), rate
