"""Dereverberation by weighted prediction error, on real speech in simulated rooms."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from squtr.errors import AudioError, MissingExtraError, UnknownNameError, UsageError
from squtr.harness.components import load_front_end
from squtr.harness.components.front_ends.wpe import WPEFrontEnd

from .front_ends_for_tests import (
    check_contract,
    noisy,
    ratio_db,
    reverberant,
    segmental_snr_db,
    spectral_distance_db,
    speech,
)

pytest.importorskip("nara_wpe", reason="needs the extra wpe")

RATE = 16_000


def test_contract() -> None:
    check_contract(WPEFrontEnd())


@pytest.mark.parametrize("rir_id", ["simulated_room_15", "simulated_room_21"])
def test_reverberant_speech_comes_nearer_to_dry(rir_id: str) -> None:
    clips = reverberant(RATE, rir_id)
    outs = WPEFrontEnd().enhance([wet for _, _, wet in clips])
    for (dry, early, wet), out in zip(clips, outs, strict=True):
        # The early sound against the rest: what is direct against what is reverberation.
        assert ratio_db(early, out) > ratio_db(early, wet) + 0.7
        assert spectral_distance_db(dry, out, RATE) < spectral_distance_db(dry, wet, RATE) - 0.25


def test_a_longer_filter_removes_more() -> None:
    clips = reverberant(RATE, "simulated_room_21")
    distances = []
    for taps in (5, 15, 40):
        outs = WPEFrontEnd(taps=taps).enhance([wet for _, _, wet in clips])
        distances.append(
            np.mean([spectral_distance_db(dry, out, RATE) for (dry, _, _), out in zip(clips, outs, strict=True)])
        )
    assert distances[0] > distances[1] > distances[2]


def test_dry_speech_is_hardly_touched() -> None:
    clips = speech(RATE)
    for clip, out in zip(clips, WPEFrontEnd().enhance(clips), strict=True):
        assert segmental_snr_db(clip, out, RATE) > 20.0


@pytest.mark.parametrize("statistics", ["full", "valid"])
def test_short_clips_are_refused_with_their_length(statistics: str) -> None:
    front_end = WPEFrontEnd(statistics=statistics)
    clip = np.asarray(speech(RATE)[0], dtype=np.float32)
    with pytest.raises(AudioError, match=r"clip 2 of 2: a clip of 0\.10 s is too short for WPE with 30 taps"):
        front_end.enhance([clip, clip[8000:9600]])
    (short,) = WPEFrontEnd(statistics=statistics, taps=3).enhance([clip[8000:9600]])
    assert short.shape == (1600,) and np.isfinite(short).all()


def test_speech_after_digital_silence_stays_finite() -> None:
    clip = np.concatenate([np.zeros(RATE, np.float32), speech(RATE)[0]])
    (out,) = WPEFrontEnd().enhance([clip])
    assert np.isfinite(out).all() and np.abs(out[: RATE - 600]).max() < 1e-6


def test_what_is_no_sound_is_refused() -> None:
    with pytest.raises(AudioError, match="clip 1 of 1: the clip holds NaN"):
        WPEFrontEnd().enhance([np.full(RATE, np.nan, dtype=np.float32)])


CHANGES: dict[str, Any] = {
    "taps": 10,
    "delay": 4,
    "iterations": 1,
    "psd_context": 1,
    "size": 1024,
    "shift": 256,
    "statistics": "valid",
}


def test_spec_holds_every_option_that_changes_the_output() -> None:
    clips = [noisy(RATE)[0][1]]
    usual = load_front_end("wpe")
    spec = usual.spec
    assert (spec.kind, spec.backend, spec.model) == ("front_end", "wpe", "nara-wpe") and spec.revision
    assert spec.settings["peak_limit"] == 1.0 and spec.settings["sample_rate"] == RATE == usual.sample_rate
    (before,) = usual.enhance(clips)
    fingerprints = {spec.fingerprint}
    for option, value in CHANGES.items():
        other = load_front_end("wpe", **{option: value})
        assert other.spec.settings[option] == value
        fingerprints.add(other.spec.fingerprint)
        assert not np.array_equal(other.enhance(clips)[0], before)
    assert len(fingerprints) == len(CHANGES) + 1
    assert load_front_end("wpe", threads=2).spec.fingerprint == spec.fingerprint


@pytest.mark.parametrize("options", [{"taps": 0}, {"delay": 0}, {"iterations": 0}, {"psd_context": -1}, {"shift": 400}])
def test_wrong_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        WPEFrontEnd(**options)  # type: ignore[arg-type]


def test_unknown_statistics_list_the_choices() -> None:
    with pytest.raises(UnknownNameError, match="full, valid"):
        WPEFrontEnd(statistics="half")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nara_wpe", None)
    monkeypatch.setitem(sys.modules, "nara_wpe.wpe", None)
    with pytest.raises(MissingExtraError, match=r"squtr\[wpe\]"):
        WPEFrontEnd().enhance(list(speech(RATE)))
