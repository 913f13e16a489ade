"""Files that are cut off, files that state no length, and formats that libsndfile does not read."""

from __future__ import annotations

import io
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, MissingExtraError
from squtr.loaders.audio import decode_audio, decode_hashed
from squtr.loaders.audio_files import open_audio
from squtr.loaders.questions.windows import facts, windows
from squtr.loaders.records import Samples

RATE = 48_000


def signal(count: int = 50_001) -> Samples:
    time = np.arange(count)
    tone = 0.3 * np.sin(2 * np.pi * 440 * time / RATE) * (1 - np.exp(-time / 300))
    tone[20_000:20_200] += 0.5 * np.hanning(200)
    return tone.astype(np.float32)


def encoded(kind: str, subtype: str | None = None, **more: Any) -> bytes:
    target = io.BytesIO()
    soundfile.write(target, signal(), RATE, format=kind, subtype=subtype, **more)
    return target.getvalue()


KINDS = [
    ("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAVEX", "PCM_24"), ("RF64", "PCM_16"), ("W64", "PCM_16"),
    ("AIFF", "PCM_16"), ("AU", "PCM_16"), ("CAF", "PCM_16"), ("NIST", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
    ("MP3", None), ("FLAC", "PCM_16"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "subtype"), KINDS)
def test_a_whole_file_is_read_and_a_cut_one_refused_by_every_door(kind: str, subtype: str | None) -> None:
    content = encoded(kind, subtype)
    assert decode_audio(content, "it")[0].size == 50_001
    # CAF ends with a chunk of padding.
    for length in (len(content) * 95 // 100, len(content) * 3 // 4, len(content) // 2):
        if kind == "CAF" and length > 100_000:
            continue
        for door in (
            lambda cut: decode_audio(cut, "'it'"),
            lambda cut: decode_hashed(cut, "'it'"),
            lambda cut: list(windows(cut, 1.0, name="'it'")),
        ):
            with pytest.raises(AudioError, match=r"'it' (is cut off|cannot be read)"):
                door(content[:length])


def bare_mp3(mode: str) -> bytes:
    """Without the frame that says how many there are."""
    content = bytearray(encoded("MP3", bitrate_mode=mode))
    at = max(content.find(sign) for sign in (b"Info", b"Xing"))
    content[at : at + 4] = bytes(4)
    return bytes(content)


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
def test_an_mp3_that_does_not_state_its_length_is_read_whole_and_cut_where_its_last_frame_is(mode: str) -> None:
    content = bare_mp3(mode)
    for whole in (content, content + b"TAG" + bytes(125)):
        samples = decode_audio(whole, "it")[0]
        assert 50_001 <= samples.size <= 50_001 + 4 * 1152
        assert next(iter(windows(whole, 9.0))).samples.size == samples.size
    with pytest.raises(AudioError, match="its last frame is incomplete"):
        decode_audio(content[:-20], "it")


@pytest.mark.parametrize("stated", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_wav_that_a_stream_left_without_its_length_is_read(stated: int, tmp_path: Path) -> None:
    content = encoded("WAV", "PCM_16")
    streamed = content[:4] + struct.pack("<I", stated) + content[8:40] + struct.pack("<I", stated) + content[44:]
    path = tmp_path / "streamed.wav"
    path.write_bytes(streamed)
    wanted = decode_audio(content, "it")[0]
    for file in (streamed, path):
        np.testing.assert_array_equal(decode_audio(file, "it")[0], wanted)
        assert facts(file).duration_s == 50_001 / RATE


def test_a_wav_without_samples_stays_empty() -> None:
    chunk = b"LIST" + struct.pack("<I", 12) + b"INFOISFT" + struct.pack("<I", 0)
    empty = encoded("WAV", "PCM_16")[:40] + struct.pack("<I", 0) + chunk
    assert decode_audio(empty, "it")[0].size == 0


def contained(kind: str, codec: str, *, layout: str = "mono", tracks: int = 1, **options: str) -> bytes:
    """`signal()` encoded by PyAV."""
    av = pytest.importorskip("av")
    with tempfile.NamedTemporaryFile() as target:
        with av.open(target.name, "w", format=kind, options=options) as file:
            for stream in [file.add_stream(codec, rate=RATE, layout=layout) for _ in range(tracks)]:
                convert = av.AudioResampler(format=stream.codec_context.format, layout=layout, rate=RATE)
                frame = av.AudioFrame.from_ndarray(signal().reshape(1, -1), format="flt", layout="mono")
                frame.sample_rate, frame.pts = RATE, 0
                for part in (*convert.resample(frame), *convert.resample(None), None):
                    for packet in stream.encode(part):
                        file.mux(packet)
        return Path(target.name).read_bytes()


def lag(samples: Samples) -> int:
    """By how many samples `samples` is later than `signal()`."""
    middle = signal()[19_500:22_500]
    return int(np.argmax(np.correlate(samples[17_500:24_500], middle, "valid"))) - 2_000


@pytest.mark.parametrize(
    ("kind", "codec", "longer"),
    [
        ("ipod", "alac", 0), ("matroska", "flac", 0), ("matroska", "pcm_s16le", 0), ("webm", "libopus", 0),
        ("mp4", "aac", 15), ("mov", "aac", 15), ("mp4", "libopus", 15), ("matroska", "aac", 175),
    ],
)  # fmt: skip
def test_what_pyav_decodes_has_its_length_and_no_delay(kind: str, codec: str, longer: int, tmp_path: Path) -> None:
    content = contained(kind, codec)
    samples, rate = decode_audio(content, "it")
    assert (rate, samples.size, lag(samples)) == (RATE, 50_001 + longer, 0)
    if codec in ("alac", "flac", "pcm_s16le"):
        np.testing.assert_allclose(samples, signal(), atol=1 / 32_768)
    path = tmp_path / "it.bin"
    path.write_bytes(content)
    np.testing.assert_array_equal(decode_audio(path, "it")[0], samples)
    assert facts(path).duration_s == samples.size / RATE
    np.testing.assert_array_equal(np.concatenate([w.samples for w in windows(path, 0.3)]), samples)


def test_bare_aac_is_read_with_the_delay_that_it_does_not_say() -> None:
    samples, _ = decode_audio(contained("adts", "aac"), "it")
    assert (samples.size, lag(samples)) == (51_200, 1_024)


@pytest.mark.parametrize(
    ("kind", "codec", "options"),
    [
        ("mp4", "aac", {}), ("mp4", "aac", {"movflags": "faststart"}), ("mp4", "aac", {"movflags": "frag_keyframe"}),
        ("webm", "libopus", {}), ("matroska", "flac", {}), ("adts", "aac", {}),
    ],
)  # fmt: skip
def test_a_container_that_is_cut_off_is_refused(kind: str, codec: str, options: dict[str, str]) -> None:
    content = contained(kind, codec, **options)
    for length in (len(content) - 9, len(content) * 9 // 10, len(content) // 2):
        with pytest.raises(AudioError, match=r"'it' (is cut off|cannot be read as audio)"):
            decode_audio(content[:length], "'it'")


def test_channels_and_streams_of_containers() -> None:
    with pytest.raises(AudioError, match="it has 2 channels"):
        decode_audio(contained("ipod", "alac", layout="stereo"), "it")
    assert decode_audio(contained("ipod", "alac", layout="stereo"), "it", channel=1)[0].size == 50_001
    with pytest.raises(AudioError, match="it has 2 streams of audio"):
        decode_audio(contained("mp4", "aac", tracks=2), "it")


def test_without_pyav_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    content = contained("ipod", "aac")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=r"q1\.m4a is in a format .* pip install 'squtr\[av\]'"):
        open_audio(content, "q1.m4a")
