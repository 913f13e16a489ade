"""Long sound in windows: every sample once or more, in order, in flat memory."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import AudioError, UsageError
from squtr.loaders.questions.windows import RATE, excerpt, facts, windows

MEASURE = """
import resource, sys
from pathlib import Path
from squtr.loaders.questions.windows import windows
heard = sum(window.samples.size for window in windows(Path(sys.argv[1]), 30.0, 1.0))
print(heard, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def sound(samples: np.ndarray, rate: int = RATE, format: str = "FLAC") -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=format, subtype="PCM_16")
    return buffer.getvalue()


def ramp(size: int) -> np.ndarray:
    """Every sample tells its place."""
    return ((np.arange(size) % 65_536) / 65_536 - 0.5).astype(np.float32)


@given(st.integers(1, 5 * 800), st.sampled_from([0.5, 1.0, 1.7, 9.0]), st.sampled_from([0.0, 0.1, 0.4]), st.booleans())
def test_windows_hold_every_sample_in_its_place(size: int, seconds: float, overlap: float, short_blocks: bool) -> None:
    rate = 800
    samples = ramp(size)
    with pytest.MonkeyPatch.context() as patch:
        if short_blocks:
            patch.setattr("squtr.loaders.questions.windows.BLOCK_S", 0.3)
        found = list(windows(sound(samples, rate), seconds, overlap))
    step = round(seconds * rate) - round(overlap * rate)
    for number, window in enumerate(found):
        start = number * step
        assert window.start_s == start / rate
        np.testing.assert_allclose(window.samples, samples[start : start + round(seconds * rate)], atol=1e-4)
    assert all(window.samples.size == round(seconds * rate) for window in found[:-1])
    last = found[-1]
    assert round(last.start_s * rate) + last.samples.size == size
    assert len(found) == 1 or last.samples.size > round(overlap * rate)


def test_a_sound_without_samples_gives_no_window() -> None:
    assert list(windows(sound(np.zeros(0, dtype=np.float32), format="WAV"), 1.0)) == []


@pytest.mark.parametrize(
    ("seconds", "overlap"), [(0.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (1.0, -0.1), (float("inf"), 0.0)]
)
def test_windows_that_are_not_possible(seconds: float, overlap: float) -> None:
    with pytest.raises(UsageError):
        list(windows(sound(ramp(100)), seconds, overlap))


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = ramp(1000), np.zeros(1000, dtype=np.float32)
    path = tmp_path / "two.flac"
    path.write_bytes(sound(np.stack([left, right], axis=1)))
    (window,) = windows(path, 1.0)
    np.testing.assert_allclose(window.samples, left / 2, atol=1e-4)
    assert facts(path).channels == 2


def test_an_excerpt_is_the_same_part_at_the_rate_asked_for() -> None:
    samples = ramp(4 * RATE)
    content = sound(samples)
    np.testing.assert_allclose(excerpt(content, 1.0, 2.0), samples[RATE : 3 * RATE], atol=1e-4)
    assert excerpt(content, 3.5, 2.0).size == RATE // 2
    assert excerpt(content, 4.0, 2.0).size == 0
    assert excerpt(content, 0.0, 1.0, 8000).size == 8000
    with pytest.raises(UsageError):
        excerpt(content, -1.0, 2.0)


def test_what_is_no_sound_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.flac"
    broken.write_bytes(b"no sound")
    for path, said in ((broken, "cannot be read"), (tmp_path / "gone.flac", "does not exist")):
        with pytest.raises(AudioError, match=said) as caught:
            list(windows(path, 1.0, name="the sound 'x'"))
        assert "the sound 'x'" in str(caught.value)
    holed = tmp_path / "nan.wav"
    soundfile.write(holed, np.array([0.1, np.nan, 0.2], dtype=np.float32), RATE, subtype="FLOAT")
    with pytest.raises(AudioError, match="NaN"):
        list(windows(holed, 1.0))


def write_long(path: Path, minutes: float) -> int:
    """A FLAC file of so many minutes, written in pieces; returns its samples."""
    rng = np.random.default_rng(0)
    block = (rng.standard_normal(RATE * 10) * 1000).astype(np.int16)
    pieces = round(minutes * 6)
    with soundfile.SoundFile(path, "w", RATE, 1, subtype="PCM_16", format="FLAC", compression_level=0.0) as file:
        for _ in range(pieces):
            file.write(block)
    return pieces * block.size


@pytest.mark.slow
def test_memory_is_flat_for_85_minutes(tmp_path: Path) -> None:
    used = {}
    for minutes in (1.0, 85.0):
        path = tmp_path / f"{minutes:g}.flac"
        size = write_long(path, minutes)
        done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], check=True, capture_output=True, text=True)
        heard, kilobytes = map(int, done.stdout.split())
        assert heard >= size
        used[minutes] = kilobytes / 1024
    # Decoded at once, 85 minutes would take 326 MB more.
    assert used[85.0] - used[1.0] < 16, used
