"""Defaults and presets for Whisper write what the libraries write when they are called as their users call them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.harness.components.transcribers.presets import preset
from squtr.harness.components.transcribers.transformers import TransformersTranscriber
from squtr.harness.protocols import Transcript

from .whisper_for_tests import save_tiny_whisper, speechlike

SHORT = [speechlike(seconds, seed) for seed, seconds in enumerate((1.0, 2.5, 4.0))]
LONG = speechlike(40.0, 1)
CARDS = {  # as the model card of openai/whisper-large-v3 has it
    "compression_ratio_threshold": 1.35,
    "condition_on_prev_tokens": True,
    "logprob_threshold": -1.0,
    "no_speech_threshold": 0.6,
    "num_beams": 5,
    "return_timestamps": True,
    "temperature": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights that write timestamps, which long clips are cut at."""
    plain = save_tiny_whisper(tmp_path_factory.mktemp("whisper") / "tiny")
    folder = plain.parent / "timed"
    shutil.copytree(plain, folder)
    settings = json.loads((folder / "generation_config.json").read_text())
    settings["suppress_tokens"] = [i for i in settings["suppress_tokens"] if i <= settings["no_timestamps_token_id"]]
    (folder / "generation_config.json").write_text(json.dumps(settings | {"max_length": 448, "max_new_tokens": 16}))
    return folder


@pytest.fixture(scope="module")
def pipeline(folder: Path) -> Any:
    import torch
    from transformers import pipeline

    made = pipeline("automatic-speech-recognition", model=str(folder), device="cpu")
    forward = made._forward

    def seeded(*arguments: Any, **options: Any) -> Any:
        torch.manual_seed(0)  # here, since the pipeline's loader of data draws a number
        return forward(*arguments, **options)

    made._forward = seeded
    return made


def by_pipeline(pipeline: Any, clip: np.ndarray, **options: Any) -> str:
    settings = {"language": "en", "task": "transcribe", **options}
    text: str = pipeline({"raw": clip, "sampling_rate": 16_000}, generate_kwargs=settings)["text"]
    return text.strip()


def heard(folder: Path, clips: list[np.ndarray], **options: Any) -> list[Transcript]:
    found = TransformersTranscriber(folder, device="cpu", threads=1, **options).transcribe(clips, language="en")
    assert [t.error for t in found] == [""] * len(clips)
    return found


def test_transformers_writes_what_its_pipeline_writes(folder: Path, pipeline: Any) -> None:
    found = heard(folder, SHORT, batch_size=1)
    assert [t.text for t in found] == [by_pipeline(pipeline, clip) for clip in SHORT]
    assert all(0 < t.confidence < 1 for t in found)
    fast = heard(folder, SHORT, batch_size=1, **preset("fast", "transformers"))
    assert [t.text for t in fast] == [by_pipeline(pipeline, clip, num_beams=1) for clip in SHORT]
    assert [t.text for t in fast] != [t.text for t in found]
    (long,) = heard(folder, [LONG])
    assert long.text == by_pipeline(pipeline, LONG, return_timestamps=True)
    timed = heard(folder, SHORT, timestamps=True, batch_size=1)
    assert [t.text for t in timed] == [by_pipeline(pipeline, clip, return_timestamps=True) for clip in SHORT]
    assert [t.text for t in timed] != [t.text for t in found]


def test_transformers_falls_back_as_its_pipeline_does(folder: Path, pipeline: Any) -> None:
    clips = [*SHORT, LONG]
    # What a random model writes is improbable, so that each window is sampled in the end.
    expected = [by_pipeline(pipeline, clip, **CARDS) for clip in clips]
    options = preset("fallback", "transformers")
    assert [t.text for t in heard(folder, clips, **options)] == expected
    assert [t.text for t in heard(folder, clips[::-1], **options)] == expected[::-1]
    plain = {"temperature": 0.0, "timestamps": True, "condition_on_previous_text": True}
    assert [t.text for t in heard(folder, clips, **plain)] != expected


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ({}, (5, 16, None)),
        ({"num_beams": 2}, (2, 16, None)),
        ({"max_new_tokens": None}, (5, None, 448)),
        ({"max_new_tokens": None, "max_length": None}, (5, 256, None)),
    ],
)
def test_the_settings_of_a_model_come_before_the_pipeline(
    folder: Path, tmp_path: Path, saved: dict[str, int | None], expected: tuple[int | None, ...]
) -> None:
    own = tmp_path / "own"
    shutil.copytree(folder, own)
    settings = json.loads((own / "generation_config.json").read_text()) | saved
    (own / "generation_config.json").write_text(json.dumps(settings))
    settings = TransformersTranscriber(own, device="cpu").spec.settings
    assert tuple(settings[name] for name in ("num_beams", "max_new_tokens", "max_length")) == expected
