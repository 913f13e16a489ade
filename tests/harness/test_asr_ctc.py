"""CTC models of several architectures, small and random: batches, languages, pieces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.ctc import MASKED_MODELS, CTCTranscriber, pieces

from .ctc_for_tests import save_tiny_adapters, save_tiny_ctc
from .whisper_for_tests import save_tiny_whisper, speechlike

# Lengths that are no whole number of frames.
CLIPS = [speechlike(seconds, seed) for seed, seconds in enumerate((1.0137, 2.5071, 0.3113, 1.7099, 2.01337))]


def ctc(folder: Path, **options: object) -> CTCTranscriber:
    return CTCTranscriber(folder, **{"device": "cpu", "threads": 1, "languages": ["en"], **options})  # type: ignore[arg-type]


def texts(transcriber: CTCTranscriber, clips: list, language: str = "en") -> list[str]:
    found = transcriber.transcribe(clips, language=language)
    assert [t.error for t in found] == [""] * len(clips)
    return [t.text for t in found]


@pytest.fixture(scope="module")
def wav2vec2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_ctc(tmp_path_factory.mktemp("ctc") / "tiny-ctc", "wav2vec2", seed=2)


@pytest.fixture(scope="module")
def mms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_adapters(tmp_path_factory.mktemp("mms"), ("eng", "cmn-script_simplified", "deu"))


@pytest.mark.parametrize("kind", MASKED_MODELS)
def test_a_masked_batch_hears_what_each_clip_alone_does(kind: str, tmp_path: Path) -> None:
    folder = save_tiny_ctc(tmp_path, kind)
    together, alone = ctc(folder, batch_size=5), ctc(folder, batch_size=1)
    assert together.spec.settings["batches"] == "padded to the longest clip, masked"
    assert together.spec.fingerprint == alone.spec.fingerprint
    heard = texts(alone, CLIPS)
    assert texts(together, CLIPS) == heard
    assert texts(together, CLIPS[::-1]) == heard[::-1]
    assert len(set(heard)) > 1


@pytest.mark.parametrize(
    ("kind", "mask", "settings"),
    [
        ("wav2vec2", False, {}),
        ("wav2vec2", True, {"feat_extract_norm": "group", "do_stable_layer_norm": False}),
        ("hubert", False, {"feat_extract_norm": "group", "do_stable_layer_norm": False}),
        ("sew", True, {}),
        ("data2vec-audio", True, {}),
    ],
)
def test_where_padding_would_be_heard_only_equal_lengths_meet(
    kind: str, mask: bool, settings: dict, tmp_path: Path
) -> None:
    import torch

    folder = save_tiny_ctc(tmp_path, kind, mask=mask, **settings)
    together = ctc(folder, batch_size=8)
    assert together.spec.settings["batches"] == "clips of equal length"
    sizes: list[list[int]] = []
    whole = together._whole
    together._whole = lambda batch: (sizes.append([c.size for c in batch]), whole(batch))[1]  # type: ignore[method-assign]
    same_length = speechlike(1.7099, 9)
    heard = texts(together, [*CLIPS, same_length])
    assert heard == texts(ctc(folder, batch_size=1), [*CLIPS, same_length])
    assert sorted(map(len, sizes)) == [1, 1, 1, 1, 2]
    # The reason: padded together they are heard differently.
    extractor, model = together._extractor, together._model
    with torch.inference_mode():
        padded = model(**extractor(CLIPS, sampling_rate=16_000, padding=True, return_tensors="pt")).logits
        alone = [model(**extractor(clip, sampling_rate=16_000, return_tensors="pt")).logits[0] for clip in CLIPS]
    assert max(float((p[: len(a)] - a).abs().max()) for p, a in zip(padded, alone, strict=True)) > 0.01


def test_the_text_is_the_tokenizers_own(wav2vec2: Path) -> None:
    from transformers import Wav2Vec2CTCTokenizer

    transcriber, tokenizer = ctc(wav2vec2), Wav2Vec2CTCTokenizer.from_pretrained(wav2vec2)
    for clip, text in zip(CLIPS, texts(transcriber, CLIPS), strict=True):
        (frames,) = transcriber._frames([clip])
        own = tokenizer.decode(frames.ids)
        assert text == own.replace("<s>", "").replace("</s>", "").replace("<unk>", "").strip()


def test_the_confidence_is_the_mean_probability_of_what_was_written(wav2vec2: Path) -> None:
    import torch

    transcriber = ctc(wav2vec2, batch_size=5)
    found = transcriber.transcribe(CLIPS, language="en")
    alone = ctc(wav2vec2, batch_size=1).transcribe(CLIPS, language="en")
    np.testing.assert_allclose([t.confidence for t in found], [t.confidence for t in alone], rtol=1e-4)
    assert all(0 < t.confidence < 1 for t in found)
    # By hand: the likeliest of each frame, without frames that are not text; the largest of each run.
    inputs = transcriber._extractor(CLIPS[0], sampling_rate=16_000, return_tensors="pt")
    with torch.inference_mode():
        chances = transcriber._model(**inputs).logits[0].softmax(-1)
    letters: list[list[float]] = []
    previous = -1
    for frame in chances:
        token = int(frame.argmax())
        if token >= 4:  # what is before are <pad>, <s>, </s> and <unk>
            letters = [*letters, []] if token != previous else letters
            letters[-1].append(float(frame.max()))
        previous = token
    expected = np.exp(np.mean(np.log([max(run) for run in letters])))
    assert found[0].confidence == pytest.approx(expected, rel=1e-4)
    # Nothing written is nothing to be sure of.
    transcriber._model.lm_head.bias.data[0] = 1e4
    (nothing,) = transcriber.transcribe(CLIPS[:1], language="en")
    assert nothing.text == ""
    assert np.isnan(nothing.confidence)


def test_a_blank_keeps_two_of_the_same_apart(wav2vec2: Path) -> None:
    transcriber = ctc(wav2vec2)
    ids = transcriber._tokenizer.convert_tokens_to_ids
    frames = [
        ids(token) for token in ("h", "h", "<pad>", "e", "l", "l", "<pad>", "l", "o", "|", "|", "<unk>", "a", "</s>")
    ]
    assert transcriber._text(frames) == "hello a"
    assert transcriber._text([]) == transcriber._text([ids("<pad>")] * 3) == ""


def test_unusable_clips_have_an_error_and_no_words(wav2vec2: Path) -> None:
    bad = [np.zeros(0, np.float32), np.full(800, np.nan, np.float32), np.zeros((2, 800), np.float32)]
    for size in (1, 8):
        found = ctc(wav2vec2, batch_size=size).transcribe([bad[0], CLIPS[0], *bad[1:], CLIPS[1]], language="en")
        assert [bool(t.error) for t in found] == [True, False, True, True, False]
        assert [found[1].text, found[4].text] == texts(ctc(wav2vec2), CLIPS[:2])
    assert ctc(wav2vec2).transcribe([], language="en") == []


@pytest.mark.parametrize(
    ("kind", "needed"), [("wav2vec2", 20 + 31 * 10), ("wav2vec2-bert", 560), ("parakeet_ctc", 320)]
)
@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the variance of one frame
def test_a_clip_without_a_frame_is_an_error(kind: str, needed: int, size: int, tmp_path: Path) -> None:
    transcriber = ctc(save_tiny_ctc(tmp_path, kind), batch_size=size)
    clips = [CLIPS[0], CLIPS[1][: needed - 1], CLIPS[1][:needed], CLIPS[1][:1], CLIPS[1]]
    found = transcriber.transcribe(clips, language="en")
    assert [bool(t.error) for t in found] == [False, True, False, True, False]
    assert [found[0].text, found[4].text] == texts(transcriber, CLIPS[:2])


def test_scores_that_are_no_numbers_are_an_error(wav2vec2: Path) -> None:
    broken = ctc(wav2vec2)
    broken._model.lm_head.bias.data[3] = float("nan")
    assert ["not numbers" in t.error for t in broken.transcribe(CLIPS[:2], language="en")] == [True, True]


def test_memory_that_does_not_suffice_halves_the_batch(wav2vec2: Path) -> None:
    import torch

    transcriber = ctc(wav2vec2, batch_size="auto")
    tried: list[int] = []
    whole = transcriber._whole

    def short_of_memory(batch: list) -> list:
        tried.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return whole(batch)

    transcriber._whole = short_of_memory  # type: ignore[method-assign]
    assert texts(transcriber, CLIPS) == texts(ctc(wav2vec2), CLIPS)
    assert tried == [5, 2, 2, 1]
    texts(transcriber, CLIPS)
    assert tried[4:] == [2, 2, 1]


def test_languages_must_be_told_and_are_checked(wav2vec2: Path) -> None:
    assert [ctc(wav2vec2).supports(code) for code in ("en-GB", "zh")] == [True, False]
    with pytest.raises(UnknownNameError, match="'zh'"):
        ctc(wav2vec2).transcribe(CLIPS, language="zh")
    with pytest.raises(UsageError, match="languages="):
        ctc(wav2vec2, languages=()).supports("en")
    with pytest.raises(UsageError, match="no adapters"):
        _ = ctc(wav2vec2, target_lang={"en": "eng"}).spec


def test_adapters_follow_the_language(mms: Path) -> None:
    transcriber = ctc(mms, languages=(), batch_size=3)
    assert [transcriber.supports(code) for code in ("en", "zh-TW", "es", "de")] == [True, True, False, False]
    assert transcriber.spec.settings["target_lang"] == {"en": "eng", "zh": "cmn-script_simplified"}
    english, chinese = texts(transcriber, CLIPS), texts(transcriber, CLIPS, "zh")
    assert english != chinese
    assert english == texts(transcriber, CLIPS) == texts(ctc(mms, languages=()), CLIPS)
    assert "".join(english).isupper()
    assert "".join(chinese).islower()


def test_adapters_that_are_told(mms: Path) -> None:
    german = ctc(mms, languages=["de"], target_lang={"de": "deu"})
    assert [german.supports(code) for code in ("de", "en")] == [True, False]
    assert texts(german, CLIPS[:1], "de") != texts(ctc(mms, languages=()), CLIPS[:1])
    assert german.spec.fingerprint != ctc(mms, languages=()).spec.fingerprint
    with pytest.raises(UsageError, match=r"no language 'fra'.*cmn-script_simplified"):
        _ = ctc(mms, target_lang={"fr": "fra"}).spec
    with pytest.raises(UsageError, match=r"target_lang=\{'de'"):
        ctc(mms, languages=["de"]).supports("de")


def test_a_missing_adapter_is_named(mms: Path, tmp_path: Path) -> None:
    for file in mms.iterdir():
        if "cmn" not in file.name:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ModelError, match=r"adapter\.cmn-script_simplified\.safetensors"):
        ctc(tmp_path, languages=()).transcribe(CLIPS[:1], language="zh")


@given(st.integers(1, 400), st.integers(1, 60), st.data())
def test_what_is_kept_of_pieces_is_the_whole_once(length: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, (size - 1) // 2))
    found = pieces(length, size, overlap)
    kept = [i for start, stop, left, right in found for i in range(start + left, stop - right)]
    assert kept == list(range(length))
    assert all(0 < stop - start <= size for start, stop, _, _ in found)


def test_pieces_are_declared_and_only_long_clips_have_them(wav2vec2: Path) -> None:
    whole, cut = ctc(wav2vec2), ctc(wav2vec2, chunk_s=2.0, batch_size=4)
    assert "chunk_s" not in whole.spec.settings
    assert (cut.spec.settings["chunk_s"], cut.spec.settings["overlap_s"]) == (2.0, 2.0 / 6)
    assert cut.spec.fingerprint != whole.spec.fingerprint
    heard, in_pieces = texts(whole, CLIPS), texts(cut, CLIPS)
    assert [h == p for h, p in zip(heard, in_pieces, strict=True)] == [True, False, True, True, False]
    assert texts(ctc(wav2vec2, chunk_s=9.0), CLIPS) == heard
    # As many frames as the whole has, but for those that straddle a cut.
    frames: list[list[int]] = []
    cut._text = lambda ids: (frames.append(ids), "")[1]  # type: ignore[method-assign]
    texts(cut, [CLIPS[1]])
    assert abs(len(frames[0]) - len(whole._frames([CLIPS[1]])[0].ids)) <= 2


def test_the_spec_says_what_decides(wav2vec2: Path) -> None:
    base = ctc(wav2vec2).spec
    assert (base.backend, base.name, base.settings["sample_rate"]) == ("ctc", "tiny-ctc", 16_000)
    assert str(wav2vec2) not in json.dumps(base.as_dict())
    assert ctc(wav2vec2, batch_size=1, threads=2).spec == base
    for other in ({"dtype": "bfloat16"}, {"mixed_precision": "bf16"}, {"chunk_s": 3.0}, {"trust_remote_code": True}):
        assert ctc(wav2vec2, **other).spec.fingerprint != base.fingerprint
    narrow = ctc(wav2vec2, mixed_precision="bf16").transcribe(CLIPS[:1], language="en")
    assert narrow[0].error == ""


def test_other_models_are_refused(tmp_path: Path) -> None:
    whisper = save_tiny_whisper(tmp_path / "whisper")
    with pytest.raises(ModelError, match=r"'whisper', which has no CTC head.*'transformers'"):
        ctc(whisper).transcribe(CLIPS[:1], language="en")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a").write_text("a")
    with pytest.raises(ModelError, match=r"lacks config\.json"):
        _ = load_transcriber(f"ctc:{tmp_path / 'empty'}", languages=["en"]).spec


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"batch_size": "big"},
        {"overlap_s": 1.0},
        {"chunk_s": 0.0},
        {"chunk_s": 2.0, "overlap_s": 1.0},
        {"chunk_s": float("nan")},
        {"dtype": "int8"},
        {"mixed_precision": "fp8"},
        {"mixed_precision": "fp16", "dtype": "float16"},
        {"device": "cpu", "device_map": "auto"},
        {"threads": -1},
    ],
)
def test_wrong_options(options: dict) -> None:
    with pytest.raises(UsageError):
        CTCTranscriber("facebook/wav2vec2-base-960h", **options)
