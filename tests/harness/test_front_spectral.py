"""The spectral gate, the Wiener and log-MMSE rules, and what all front ends share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import AudioError, UnknownNameError, UsageError
from squtr.harness.components import load_front_end
from squtr.harness.components.front_ends.common import ShortTimeSpectrum, enhance_each
from squtr.harness.components.front_ends.noise import noise_power
from squtr.harness.components.front_ends.spectral import SpectralGateFrontEnd, WienerFrontEnd

from .front_ends_for_tests import check_contract, noisy, segmental_snr_db, spectral_distance_db, speech

RATE = 16_000
FRONT_ENDS: dict[str, tuple[type[SpectralGateFrontEnd] | type[WienerFrontEnd], dict[str, Any]]] = {
    "gate": (SpectralGateFrontEnd, {}),
    "gate tracked": (SpectralGateFrontEnd, {"noise": "tracked"}),
    "log-mmse": (WienerFrontEnd, {}),
    "log-mmse tracked": (WienerFrontEnd, {"noise": "tracked"}),
    "wiener": (WienerFrontEnd, {"rule": "wiener"}),
}


def made(name: str) -> SpectralGateFrontEnd | WienerFrontEnd:
    kind, options = FRONT_ENDS[name]
    return kind(**options)


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_contract(name: str) -> None:
    check_contract(made(name))


@pytest.mark.parametrize("name", FRONT_ENDS)
@pytest.mark.parametrize(("family", "least_db"), [("pink", 3.0), ("traffic", 3.0), ("babble", 1.0)])
def test_noise_at_0_db_is_lowered(name: str, family: str, least_db: float) -> None:
    pairs = noisy(RATE, family)
    outs = made(name).enhance([heard for _, heard in pairs])
    gains = [
        segmental_snr_db(clean, out, RATE) - segmental_snr_db(clean, heard, RATE)
        for (clean, heard), out in zip(pairs, outs, strict=True)
    ]
    assert min(gains) > least_db, gains


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_clean_speech_is_hardly_touched(name: str) -> None:
    clips = speech(RATE)
    least_db = 20.0 if "tracked" in name else 28.0
    for clip, out in zip(clips, made(name).enhance(clips), strict=True):
        assert segmental_snr_db(clip, out, RATE) > least_db
        assert spectral_distance_db(clip, out, RATE) < 2.0


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_digital_silence_around_speech_stays_silent(name: str) -> None:
    clip = np.concatenate([np.zeros(RATE, np.float32), speech(RATE)[0], np.zeros(RATE, np.float32)])
    (out,) = made(name).enhance([clip])
    assert np.abs(out[: RATE - 600]).max() < 1e-6 and np.abs(out[-RATE + 600 :]).max() < 1e-6
    assert segmental_snr_db(clip, out, RATE) > 20.0


def test_noise_alone_is_lowered_by_what_was_asked_for() -> None:
    noise = (0.1 * np.random.default_rng(7).normal(size=4 * RATE)).astype(np.float32)
    for reduction_db in (6.0, 20.0):
        (out,) = SpectralGateFrontEnd(threshold_db=20.0, softness_db=0.5, reduction_db=reduction_db).enhance([noise])
        lowered = 20.0 * np.log10(np.std(noise) / np.std(out))
        assert lowered == pytest.approx(reduction_db, abs=0.5)


def test_stationary_noise_is_estimated_without_bias() -> None:
    noise = np.random.default_rng(3).normal(size=30 * RATE).astype(np.float32)
    spectrum = ShortTimeSpectrum(512, 128)
    power = np.square(np.abs(spectrum.forward(noise)))
    true = power[5:-5].mean()
    for quantile in (0.1, 0.5):
        found = noise_power(power, spectrum.inner(noise.size), "quantile", quantile)
        assert found.shape == (257, 1)
        assert 10.0 * np.log10(found[5:-5].mean() / true) == pytest.approx(0.0, abs=0.3)


def test_tracked_noise_follows_a_rise() -> None:
    rng = np.random.default_rng(5)
    rise = np.repeat([0.01, 0.1], 5 * RATE)
    spectrum = ShortTimeSpectrum(512, 128)
    power = np.square(np.abs(spectrum.forward((rise * rng.normal(size=rise.size)).astype(np.float32))))
    fixed = noise_power(power, spectrum.inner(rise.size), "quantile", 0.1)
    tracked = noise_power(power, spectrum.inner(rise.size), "tracked", 0.1)
    end_db = 10.0 * np.log10(tracked[:, -100:].mean() / power[:, -100:].mean())
    assert abs(end_db) < 2.0
    assert 10.0 * np.log10(fixed.mean() / power[:, -100:].mean()) < -15.0


def test_threads_change_nothing() -> None:
    clips = speech(RATE)
    for one, two in zip(WienerFrontEnd().enhance(clips), WienerFrontEnd(threads=3).enhance(clips), strict=True):
        np.testing.assert_array_equal(one, two)
    assert WienerFrontEnd().spec.fingerprint == WienerFrontEnd(threads=3).spec.fingerprint


@pytest.mark.parametrize("length", [1, 5, 100, 511, 513])
def test_very_short_clips_keep_their_length(length: int) -> None:
    clip = np.full(length, 0.1, dtype=np.float32)
    for name in FRONT_ENDS:
        (out,) = made(name).enhance([clip])
        assert out.shape == (length,) and np.isfinite(out).all()


@pytest.mark.parametrize(
    ("clip", "words"),
    [
        (np.zeros(0, dtype=np.float32), "no samples"),
        (np.zeros((2, 100), dtype=np.float32), "shape"),
        (np.array([0.1, np.nan, 0.2], dtype=np.float32), "NaN or infinity at sample 1"),
        (np.array([0.1, np.inf, 0.2], dtype=np.float32), "NaN or infinity at sample 1"),
        (np.array([1000.0, -1000.0], dtype=np.float32), "peaks at 1000"),
    ],
)
def test_what_is_no_sound_is_refused_by_number(clip: np.ndarray, words: str) -> None:
    good = speech(RATE)[0]
    for name in FRONT_ENDS:
        with pytest.raises(AudioError, match=rf"clip 2 of 2.*{words}"):
            made(name).enhance([good, clip])


def test_what_work_makes_wrong_is_refused() -> None:
    clip = np.ones(10, dtype=np.float32)
    with pytest.raises(AudioError, match=r"X made of clip 1 of 1 a signal of shape \(9,\)"):
        enhance_each([clip], lambda c: c[1:], name="X")
    with pytest.raises(AudioError, match="NaN or infinity at sample 0"):
        enhance_each([clip], lambda c: c * np.float32(np.nan), name="X")


@given(st.floats(0.1, 50.0))
def test_only_a_peak_above_one_is_scaled(gain: float) -> None:
    clip = np.array([0.5, -1.0, 0.25], dtype=np.float32)
    (out,) = enhance_each([clip], lambda c: gain * c.astype(np.float64), name="X")
    np.testing.assert_allclose(out, clip * min(gain, 1.0), rtol=1e-6)
    assert np.abs(out).max() <= 1.0


@given(st.integers(1, 3000), st.sampled_from([(512, 128), (512, 256), (400, 160), (64, 1), (33, 11)]))
def test_spectrum_gives_every_clip_back(length: int, sizes: tuple[int, int]) -> None:
    clip = np.random.default_rng(length).normal(size=length).astype(np.float32)
    spectrum = ShortTimeSpectrum(*sizes)
    forward = spectrum.forward(clip)
    assert forward.shape[0] == sizes[0] // 2 + 1
    np.testing.assert_allclose(spectrum.inverse(forward, length), clip, atol=1e-10)
    assert forward[:, spectrum.inner(length)].shape[1] >= 1


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("spectral-gate", {"quantile": 0.0}, "quantile"),
        ("spectral-gate", {"quantile": float("nan")}, "quantile"),
        ("spectral-gate", {"reduction_db": -1.0}, "reduction_db"),
        ("spectral-gate", {"smooth_bands": 2}, "odd"),
        ("spectral-gate", {"softness_db": 0.0}, "softness_db"),
        ("spectral-gate", {"size": 512, "shift": 300}, "shift"),
        ("wiener", {"smoothing": 1.0}, "smoothing"),
        ("wiener", {"threads": 0}, "threads"),
        ("wiener", {"least_snr_db": 3.0}, "least_snr_db"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_front_end(name, **options)


def test_unknown_names_list_the_choices() -> None:
    with pytest.raises(UnknownNameError, match="log-mmse, wiener"):
        load_front_end("wiener", rule="log-mse")
    with pytest.raises(UnknownNameError, match="quantile, tracked"):
        load_front_end("spectral-gate", noise="median")


CHANGES: dict[str, dict[str, Any]] = {
    "spectral-gate": {
        "noise": "tracked",
        "quantile": 0.2,
        "threshold_db": 3.0,
        "softness_db": 1.0,
        "reduction_db": 12.0,
        "smooth_frames": 5,
        "smooth_bands": 5,
        "size": 1024,
        "shift": 64,
    },
    "wiener": {
        "rule": "wiener",
        "noise": "tracked",
        "quantile": 0.2,
        "smoothing": 0.9,
        "least_snr_db": -15.0,
        "reduction_db": 12.0,
        "size": 1024,
        "shift": 64,
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_spec_holds_every_option_that_changes_the_output(name: str) -> None:
    clips = [noisy(RATE)[0][1]]
    usual = load_front_end(name)
    assert usual.spec.kind == "front_end" and usual.spec.backend == name
    (before,) = usual.enhance(clips)
    fingerprints = {usual.spec.fingerprint}
    for option, value in CHANGES[name].items():
        other = load_front_end(name, **{option: value})
        assert other.spec.settings[option] == value
        fingerprints.add(other.spec.fingerprint)
        assert not np.array_equal(other.enhance(clips)[0], before)
    assert len(fingerprints) == len(CHANGES[name]) + 1
