"""Beams, hypotheses, sampling and batch sizes of the engines, on small random models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.torch_models import TorchOptions
from squtr.harness.components.transcribers.faster_whisper import FasterWhisperTranscriber
from squtr.harness.components.transcribers.presets import preset
from squtr.harness.components.transcribers.transformers import TransformersTranscriber
from squtr.harness.protocols import Transcriber, Transcript

from .moonshine_for_tests import END, LETTERS, START, save_tiny_moonshine
from .whisper_for_tests import save_tiny_ctranslate2, save_tiny_whisper, speechlike

CLIPS = [speechlike(seconds, seed) for seed, seconds in enumerate((1.0, 2.5, 0.3, 4.0))]


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_whisper(tmp_path_factory.mktemp("whisper") / "tiny")


@pytest.fixture(scope="module")
def ct2(whisper: Path) -> Path:
    return save_tiny_ctranslate2(whisper, whisper.parent / "tiny-ct2")


@pytest.fixture(scope="module")
def timed(whisper: Path) -> Path:
    """The same model with timestamps, which long clips are cut at."""
    folder = whisper.parent / "timed"
    shutil.copytree(whisper, folder)
    settings = json.loads((folder / "generation_config.json").read_text())
    settings["suppress_tokens"] = [i for i in settings["suppress_tokens"] if i <= settings["no_timestamps_token_id"]]
    (folder / "generation_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def moonshine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_moonshine(tmp_path_factory.mktemp("moonshine"))


def with_torch(folder: Path, **options: object) -> TransformersTranscriber:
    options = {"device": "cpu", "threads": 1, "beam_size": 1, "max_new_tokens": 16, "languages": ["en"], **options}
    return TransformersTranscriber(folder, **options)  # type: ignore[arg-type]


def with_ct2(folder: Path, **options: object) -> FasterWhisperTranscriber:
    fast = {**preset("fast", "faster-whisper"), "compute_type": "float32"}
    options = {**fast, "device": "cpu", "threads": 1, "max_tokens": 16, **options}
    return FasterWhisperTranscriber(folder, **options)  # type: ignore[arg-type]


def heard(transcriber: Transcriber, clips: list[np.ndarray] = CLIPS) -> list[Transcript]:
    found = transcriber.transcribe(clips, language="en")
    assert [t.error for t in found] == [""] * len(clips)
    return found


def texts(transcriber: Transcriber, clips: list[np.ndarray] = CLIPS) -> list[str]:
    return [t.text for t in heard(transcriber, clips)]


@pytest.mark.parametrize("engine", ["transformers", "moonshine", "faster-whisper"])
def test_hypotheses_are_the_beam_best_first(engine: str, whisper: Path, moonshine: Path, ct2: Path) -> None:
    make, folder = {
        "transformers": (with_torch, whisper),
        "moonshine": (with_torch, moonshine),
        "faster-whisper": (with_ct2, ct2),
    }[engine]
    one, three, five = (heard(make(folder, beam_size=5, n_best=n)) for n in (1, 3, 5))
    assert [t.hypotheses for t in one] == [()] * len(CLIPS)
    for single, few, many in zip(one, three, five, strict=True):
        assert single.text == few.text == few.hypotheses[0].text
        assert (single.truncated, single.loop) == (few.truncated, few.loop)
        assert few.hypotheses == many.hypotheses[:3]
        assert len(many.hypotheses) == 5
        scores = [h.score for h in many.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] < 0
        assert len({h.text for h in many.hypotheses}) > 1


def test_an_exhaustive_beam_finds_the_likeliest_of_all_texts(moonshine: Path) -> None:
    import torch

    # Two tokens, and a beam as wide as the vocabulary: nothing is pruned.
    wide = with_torch(moonshine, beam_size=29, n_best=6, max_new_tokens=2)
    (found,) = heard(wide, CLIPS[:1])
    sound = wide._processor.feature_extractor(CLIPS[0], sampling_rate=16_000, return_tensors="pt")

    def next_scores(*ids: int) -> list[float]:
        with torch.inference_mode():
            output = wide._model(**sound, decoder_input_ids=torch.tensor([[START, *ids]]))
        return torch.log_softmax(output.logits[0, -1], -1).tolist()

    names = ["", "", "", *LETTERS]
    first = next_scores()
    brute = [(first[END], "")]
    for i, score in enumerate(first):
        if i != END:
            brute += [((score + more) / 2, names[i] + names[j]) for j, more in enumerate(next_scores(i))]
    brute.sort(reverse=True)
    assert [h.text for h in found.hypotheses] == [text for _, text in brute[:6]]
    assert [h.score for h in found.hypotheses] == pytest.approx([score for score, _ in brute[:6]], abs=1e-4)


@pytest.mark.parametrize("size", [1, 3])
def test_batches_change_no_hypothesis(size: int, whisper: Path, moonshine: Path, ct2: Path) -> None:
    for make, folder in ((with_torch, whisper), (with_torch, moonshine), (with_ct2, ct2)):
        several, alone = (heard(make(folder, beam_size=3, n_best=3, batch_size=b)) for b in (4, size))
        for a, b in zip(several, alone, strict=True):
            assert [h.text for h in a.hypotheses] == [h.text for h in b.hypotheses]
            assert [h.score for h in a.hypotheses] == pytest.approx([h.score for h in b.hypotheses], abs=1e-4)


def test_only_clips_of_equal_length_meet_where_padding_is_followed(moonshine: Path) -> None:
    together = with_torch(moonshine, batch_size=8)
    assert texts(together) == texts(with_torch(moonshine, batch_size=1))
    sizes: list[int] = []
    short = together._short
    together._short = lambda batch, code: (sizes.append(len(batch)), short(batch, code))[1]  # type: ignore[method-assign]
    clips = [CLIPS[0], CLIPS[2], speechlike(1.0, 7), speechlike(1.0, 8)]
    assert texts(together, clips) == texts(with_torch(moonshine, batch_size=1), clips)
    assert sizes == [3, 1]


def test_a_long_clip_has_one_hypothesis(timed: Path, ct2: Path) -> None:
    clips = [speechlike(40.0, 1), CLIPS[0]]
    for make, folder in ((with_torch, timed), (with_ct2, ct2)):
        long, short = heard(make(folder, beam_size=3, n_best=2), clips)
        assert [h.text for h in long.hypotheses] == [long.text]
        assert long.hypotheses[0].score < 0
        assert len(short.hypotheses) == 2
        assert [long.text, short.text] == texts(make(folder, beam_size=3), clips)


def test_windows_may_hear_the_text_before_them(timed: Path, ct2: Path) -> None:
    clip = speechlike(70.0, 1)
    for make, folder in ((with_torch, timed), (with_ct2, ct2)):
        assert texts(make(folder, condition_on_previous_text=True), [clip]) != texts(make(folder), [clip])
        assert texts(make(folder, condition_on_previous_text=True)) == texts(make(folder))


def test_a_search_that_may_write_nothing_is_an_error(whisper: Path) -> None:
    # This model suppresses the timestamps that a long clip must begin with.
    long, short = with_torch(whisper, beam_size=3).transcribe([speechlike(40.0, 1), CLIPS[0]], language="en")
    assert "found nothing that the model may write" in long.error
    assert short.error == ""


def test_sampling_starts_from_the_same_seed_for_every_clip(timed: Path, ct2: Path) -> None:
    assert texts(with_ct2(ct2, best_of=5)) == texts(with_ct2(ct2))
    for make, folder in ((with_torch, timed), (with_ct2, ct2)):
        sampled = make(folder, temperature=1.0)
        drawn = texts(sampled)
        assert texts(sampled, CLIPS[::-1]) == drawn[::-1]
        assert texts(make(folder, temperature=1.0, batch_size=1)) == drawn
        assert drawn != texts(make(folder))
    assert texts(with_ct2(ct2, temperature=1.0, best_of=4)) != texts(with_ct2(ct2, temperature=1.0))


def test_patience_waits_for_more_hypotheses(ct2: Path) -> None:
    # It can only find a likelier text, by the model's own score.
    hasty, patient = (heard(with_ct2(ct2, beam_size=2, n_best=2, patience=p)) for p in (1, 4))
    for a, b in zip(hasty, patient, strict=True):
        assert b.hypotheses[0].score >= a.hypotheses[0].score - 1e-5


def test_what_decides_nothing_is_not_in_the_spec(whisper: Path, ct2: Path) -> None:
    assert with_torch(whisper, batch_size=2, device="auto", device_map=None).spec == with_torch(whisper).spec
    assert with_ct2(ct2, batch_size=2, threads=2).spec == with_ct2(ct2).spec
    for transcriber in (with_torch(whisper), with_ct2(ct2)):
        assert "seed" not in transcriber.spec.settings


def test_every_option_that_decides_is_in_the_spec(whisper: Path, ct2: Path) -> None:
    base = with_ct2(ct2, beam_size=4)
    assert with_ct2(ct2, temperature=[0.0, 0.5]).spec.settings.items() >= {"temperature": [0.0, 0.5], "seed": 0}.items()
    for option in ({"n_best": 2}, {"best_of": 2}, {"patience": 2.0}, {"condition_on_previous_text": True}):
        assert with_ct2(ct2, beam_size=4, **option).spec.settings.items() >= option.items()
        assert with_ct2(ct2, beam_size=4, **option).spec.fingerprint != base.spec.fingerprint
    fingerprints = [
        with_torch(whisper, **options).spec.fingerprint
        for options in (
            {},
            {"beam_size": 2},
            {"beam_size": 2, "n_best": 2},
            {"condition_on_previous_text": True},
            {"timestamps": True},
            {"temperature": (0.0, 0.2)},
            {"compression_ratio_threshold": 1.35},
            {"logprob_threshold": -1.0},
            {"logprob_threshold": -1.0, "no_speech_threshold": 0.6},
            {"max_new_tokens": 20},
            {"max_new_tokens": None},
            {"mixed_precision": "bf16"},
            {"dtype": "bfloat16"},
            {"trust_remote_code": True},
        )
    ]
    assert len(set(fingerprints)) == len(fingerprints)


def test_a_device_map_and_mixed_precision(whisper: Path) -> None:
    plain, mapped = with_torch(whisper), with_torch(whisper, device="auto", device_map="cpu")
    assert texts(mapped) == texts(plain)
    assert mapped.spec == plain.spec
    assert texts(with_torch(whisper, device="auto", device_map={"": "cpu"})) == texts(plain)
    assert len(heard(with_torch(whisper, mixed_precision="bf16"))) == len(CLIPS)


@pytest.mark.parametrize("engine", ["transformers", "faster-whisper"])
def test_memory_that_does_not_suffice_halves_the_batch(engine: str, whisper: Path, ct2: Path) -> None:
    import torch

    transcriber: TransformersTranscriber | FasterWhisperTranscriber
    if engine == "transformers":
        transcriber = with_torch(whisper, batch_size="auto")
        error: RuntimeError = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    else:
        transcriber = with_ct2(ct2, batch_size=16)
        error = RuntimeError("CUDA failed with error out of memory")
    expected = texts(transcriber)
    tried: list[int] = []
    short = transcriber._short

    def short_of_memory(batch: list, code: str) -> list:
        tried.append(len(batch))
        if len(batch) > 3:
            raise error
        return short(batch, code)

    transcriber._short = short_of_memory  # type: ignore[method-assign]
    clips = [CLIPS[i % 4] for i in range(10)]
    assert texts(transcriber, clips) == [expected[i % 4] for i in range(10)]
    assert tried == [10, 5, 2, 2, 2, 2, 2]
    # The size that worked is remembered.
    texts(transcriber, clips[:4])
    assert tried[7:] == [2, 2]


def test_what_only_whisper_has_is_refused_of_other_models(moonshine: Path) -> None:
    plain = with_torch(moonshine, beam_size=None, max_new_tokens=None).spec.settings
    assert (plain["num_beams"], plain["max_new_tokens"]) == (1, 224)
    for option in ({"timestamps": False}, {"temperature": (0.0, 0.2)}, {"condition_on_previous_text": True}):
        with pytest.raises(UsageError, match=rf"no Whisper.*{next(iter(option))}"):
            _ = with_torch(moonshine, **option).spec
    with pytest.raises(UsageError, match="beam_size of at least 2"):
        _ = with_torch(moonshine, beam_size=None, n_best=2).spec


def test_remote_code_is_not_run_unasked(tmp_path: Path, whisper: Path) -> None:
    folder = tmp_path / "custom"
    shutil.copytree(whisper, folder)
    proof = tmp_path / "proof"
    (folder / "own.py").write_text(
        f"open({str(proof)!r}, 'w').close()\n"
        "from transformers import WhisperConfig\n"
        "class OwnConfig(WhisperConfig):\n    model_type = 'own'\n"
    )
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="trust_remote_code=True"):
        with_torch(folder, unlisted=True).transcribe(CLIPS[:1], language="en")
    assert not proof.exists()


def test_devices_of_a_map_are_named_by_kind() -> None:
    assert TorchOptions(device_map={"encoder": 0, "decoder": "cpu"}).settings(device=True)["device"] == "cpu+cuda"
    assert TorchOptions(device_map="cuda:1").settings(device=True)["device"] == "cuda"


@pytest.mark.parametrize(
    "options",
    [
        {"n_best": 2, "beam_size": 1},
        {"n_best": 0},
        {"n_best": 6, "beam_size": 5},
        {"best_of": 0},
        {"temperature": -0.1},
        {"temperature": 1.5},
        {"temperature": 0.5, "n_best": 2},
        {"temperature": (0.5, 0.0)},
        {"temperature": ()},
        {"patience": 2.0, "beam_size": 1},
        {"patience": 0.0, "beam_size": 5},
        {"patience": float("nan"), "beam_size": 5},
    ],
)
def test_wrong_options_of_faster_whisper(options: dict) -> None:
    with pytest.raises(UsageError):
        FasterWhisperTranscriber("whisper-base", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"n_best": 2, "beam_size": 1},
        {"n_best": 6, "beam_size": 5},
        {"n_best": 6},
        {"temperature": 0.5, "n_best": 2},
        {"no_speech_threshold": 0.6},
        {"condition_on_previous_text": True, "max_new_tokens": 224},
        {"beam_size": 0},
        {"batch_size": "large"},
        {"mixed_precision": "fp8"},
        {"mixed_precision": "fp16", "dtype": "float16"},
        {"device": "cuda", "device_map": "auto"},
    ],
)
def test_wrong_options_of_transformers(options: dict) -> None:
    with pytest.raises(UsageError):
        TransformersTranscriber("whisper-small", **options)
