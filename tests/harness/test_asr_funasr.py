"""FunASR: what it is asked, and what is made of its answers. The real one is heard where it is installed."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from squtr.errors import MissingExtraError, ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.funasr import FunASRTranscriber, plain_text
from squtr.harness.components.transcribers.funasr_models import FAMILIES, KNOWN_MODELS, REFUSED

from .funasr_for_tests import (
    CONFIGS,
    SENSE_VOICE_TAGS,
    FakeAutoModel,
    install_fake_distribution,
    install_fake_funasr,
    save_tiny_funasr,
)
from .whisper_for_tests import speechlike

CLIPS = [speechlike(0.5 + 0.25 * i, i) for i in range(5)]
NEEDS_FUNASR = pytest.mark.skipif(
    importlib.util.find_spec("funasr") is None, reason="FunASR is not installed (squtr[funasr])"
)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[FakeAutoModel]:
    install_fake_distribution(monkeypatch, tmp_path / "site", "funasr", "1.4.16")
    monkeypatch.setattr("squtr.harness.components.transcribers.funasr.check_weights", lambda *_, **__: None)
    return install_fake_funasr(monkeypatch)


def folder_of(tmp_path: Path, architecture: str) -> Path:
    folder = tmp_path / architecture.lower()
    folder.mkdir()
    (folder / "config.yaml").write_text(f"encoder: SANMEncoder\nmodel: {architecture}\nmodel_conf: {{}}\n")
    (folder / "model.pt").write_bytes(b"weights")
    return folder


def test_the_model_is_loaded_quietly_without_noise_and_without_foreign_code(
    engine: type[FakeAutoModel], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(tmp_path, "SenseVoiceSmall")
    (folder / "model.py").write_text("raise SystemExit\n")
    level = logging.getLogger().level
    backend = load_transcriber(f"funasr:{folder}", device="cpu", threads=1)
    assert backend.transcribe([], language="zh") == []
    _ = backend.spec
    assert not engine.made
    backend.transcribe(CLIPS[:1], language="zh")
    backend.transcribe(CLIPS[:1], language="zh")
    (made,) = engine.made
    assert made == {
        "model": str(folder),
        "hub": "ms",
        "device": "cpu",
        "disable_update": True,
        "disable_pbar": True,
        "disable_log": True,
        "log_level": "WARNING",
        "check_latest": False,
        "frontend_conf": {"dither": 0.0},
        "ncpu": 1,
        "trust_remote_code": False,
    }
    assert capsys.readouterr().out == ""
    assert logging.getLogger().level == level
    trusting = load_transcriber(f"funasr:{folder}", device="cpu", trust_remote_code=True)
    trusting.transcribe(CLIPS[:1], language="zh")
    assert engine.made[1]["trust_remote_code"] is True
    assert engine.made[1]["remote_code"] == str(folder / "model.py")
    assert trusting.spec.fingerprint != backend.spec.fingerprint


def test_clips_are_decoded_in_batches_and_in_order(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    backend = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}", device="cpu", batch_size=2)
    broken = np.full(10, np.nan, dtype=np.float32)
    found = backend.transcribe([*CLIPS[:3], broken, *CLIPS[3:]], language="zh")
    assert [t.text for t in found] == [f"clip of {len(c)}" for c in CLIPS[:3]] + [""] + [
        f"clip of {len(c)}" for c in CLIPS[3:]
    ]
    assert "NaN" in found[3].error
    assert [asked["batch_size"] for asked in engine.asked] == [2, 2, 1]
    assert not any("fs" in asked for asked in engine.asked)


@pytest.mark.parametrize(
    ("architecture", "options", "language", "asked"),
    [
        ("SenseVoiceSmall", {}, "zh-CN", {"language": "zh", "use_itn": True}),
        ("SenseVoiceSmall", {"itn": False}, "yue", {"language": "yue", "use_itn": False}),
        ("SenseVoiceSmall", {"itn": None, "language": "auto"}, "zh", {"language": "auto", "use_itn": False}),
        (
            "FunASRNano",
            {"max_length": 99},
            "en",
            {"language": "英文", "itn": True, "max_length": 99, "llm_kwargs": {"do_sample": False, "num_beams": 1}},
        ),
        (
            "FunASRNano",
            {"itn": None, "dtype": "float16"},
            "zh",
            {
                "language": "中文",
                "itn": True,
                "llm_dtype": "fp16",
                "max_length": 512,
                "llm_kwargs": {"do_sample": False, "num_beams": 1},
            },
        ),
        ("Paraformer", {"languages": ["zh", "en"]}, "en", {}),
        ("Conformer", {"languages": ["en"]}, "en", {"beam_size": 10, "decoding_ctc_weight": 0.5}),
        ("FunASRNano", {"languages": ["vi"], "itn": False}, "vi", None),
    ],
)
def test_each_family_is_asked_its_own_way(
    engine: type[FakeAutoModel],
    tmp_path: Path,
    architecture: str,
    options: dict[str, Any],
    language: str,
    asked: dict[str, Any] | None,
) -> None:
    backend = load_transcriber(f"funasr:{folder_of(tmp_path, architecture)}", device="cpu", **options)
    backend.transcribe(CLIPS[:1], language=language)
    (said,) = engine.asked
    given = {key: value for key, value in said.items() if key not in ("sizes", "batch_size")}
    if asked is None:
        assert "language" not in given
    else:
        assert given == asked


def test_languages(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    sense = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}")
    assert [sense.supports(code) for code in ("zh-TW", "en", "yue", "ja", "ko", "es")] == [True] * 5 + [False]
    nano = load_transcriber(f"funasr:{folder_of(tmp_path, 'FunASRNano')}")
    assert [nano.supports(code) for code in ("zh", "en", "ja", "ko")] == [True, True, True, False]
    with pytest.raises(UnknownNameError, match="'es'"):
        sense.transcribe(CLIPS[:1], language="es")
    unknown = load_transcriber(f"funasr:{folder_of(tmp_path, 'BiCifParaformer')}")
    with pytest.raises(UsageError, match="does not say which languages"):
        unknown.supports("zh")
    assert FunASRTranscriber("paraformer-zh").supports("zh")
    assert not FunASRTranscriber("Paraformer-EN").supports("zh")
    assert sense.sample_rate == 16_000


def test_answers_are_plain_texts(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    engine.answer = lambda sounds: [{"text": "<|zh|><|HAPPY|><|BGM|><|withitn|>今 天 very 好 的 The. end"}]
    (found,) = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}").transcribe(CLIPS[:1], language="zh")
    assert found.text == "今天 very 好的 The. end"
    assert plain_text("a | b <| c") == "a | b <| c"


def test_a_clip_without_words_is_empty_and_no_failure(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    """A Paraformer that hears no token in a batch gives one empty answer for all of it, or none."""
    folder = folder_of(tmp_path, "SeacoParaformer")
    for nothing in ([], [{"text": ""}]):
        engine.answer = lambda sounds, nothing=nothing: list(nothing)
        found = load_transcriber(f"funasr:{folder}", languages=["zh"]).transcribe(CLIPS, language="zh")
        assert [(t.text, t.error) for t in found] == [("", "")] * 5


def _choke(error: Exception) -> Any:
    def answer(sounds: list[Any]) -> list[dict[str, str]]:
        if any(len(sound) == len(CLIPS[1]) for sound in sounds):
            raise error
        return [{"text": "fine"} for _ in sounds]

    return answer


@pytest.mark.parametrize(
    "error", [RuntimeError("cuda"), ValueError("num_mel_bins"), IndexError("i"), AssertionError("a"), KeyError("k")]
)
def test_one_bad_clip_fails_alone(engine: type[FakeAutoModel], tmp_path: Path, error: Exception) -> None:
    engine.answer = _choke(error)
    backend = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}", batch_size=4)
    found = backend.transcribe(CLIPS, language="zh")
    assert [t.text for t in found] == ["fine", "", "fine", "fine", "fine"]
    assert "FunASR failed" in found[1].error


def test_a_foreign_version_and_missing_features_stop(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    backend = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}")
    engine.answer = _choke(TypeError("unexpected keyword"))
    with pytest.raises(ModelError, match="this version of FunASR"):
        backend.transcribe(CLIPS, language="zh")
    engine.answer = _choke(ImportError("torchaudio is not installed and neither is kaldi-native-fbank"))
    with pytest.raises(MissingExtraError, match=r"squtr\[funasr\]"):
        backend.transcribe(CLIPS, language="zh")


def test_the_spec_names_weights_and_settings(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    spec = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}", device="cpu").spec
    assert (spec.kind, spec.backend, spec.name) == ("transcriber", "funasr", "sensevoicesmall")
    assert spec.revision.startswith("sha256:")
    assert spec.settings["architecture"] == "SenseVoiceSmall"
    assert spec.settings["funasr"] == "1.4"
    assert spec.settings["use_itn"] is True
    assert spec.settings["forced_languages"] == ["en", "ja", "ko", "yue", "zh"]


def test_paraformer_hears_clips_alone(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "SeacoParaformer")
    backend = load_transcriber(f"funasr:{folder}", device="cpu", languages=["zh"])
    backend.transcribe(CLIPS[:2], language="zh")
    assert [asked["batch_size"] for asked in engine.asked] == [1, 1]
    assert backend.spec.settings["batch_size"] == 1
    assert load_transcriber(f"funasr:{folder}", languages=["zh"], batch_size=8).spec.settings["batch_size"] == 8
    assert "batch_size" not in load_transcriber(f"funasr:{folder_of(tmp_path, 'FunASRNano')}").spec.settings


def test_modelscope_gives_a_folder(
    engine: type[FakeAutoModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, "SenseVoiceSmall")
    asked: list[tuple[str, str | None]] = []
    module: Any = ModuleType("modelscope.hub.snapshot_download")

    def snapshot_download(model_id: str, revision: str | None = None) -> str:
        asked.append((model_id, revision))
        return str(folder)

    module.snapshot_download = snapshot_download
    for name in ("modelscope", "modelscope.hub"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "modelscope.hub.snapshot_download", module)
    spec = load_transcriber("funasr:sensevoice-small", hub="ms", revision="v2").spec
    assert asked == [("iic/SenseVoiceSmall", "v2")]
    assert (spec.model, spec.name) == ("iic/SenseVoiceSmall", "SenseVoiceSmall")
    module.snapshot_download = lambda *_, **__: (_ for _ in ()).throw(OSError("no network"))
    with pytest.raises(ModelError, match=r"could not be had .no network"):
        _ = load_transcriber("funasr:sensevoice-small", hub="ms").spec
    monkeypatch.setitem(sys.modules, "modelscope.hub.snapshot_download", None)
    with pytest.raises(MissingExtraError, match="modelscope"):
        _ = load_transcriber("funasr:sensevoice-small", hub="ms").spec


def test_what_cannot_be_loaded_is_named(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown hub 'gitee'"):
        load_transcriber("funasr:sensevoice-small", hub="gitee")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "model.pt").write_bytes(b"x")
    with pytest.raises(ModelError, match="is no model of FunASR"):
        _ = load_transcriber(f"funasr:{empty}").spec
    (empty / "config.yaml").write_text("encoder: x\n")
    with pytest.raises(ModelError, match="names no model"):
        _ = load_transcriber(f"funasr:{empty}").spec
    folder = folder_of(tmp_path, "SenseVoiceSmall")
    engine.__init__ = lambda self, **_: (_ for _ in ()).throw(AssertionError("init_param does not exist"))  # type: ignore[method-assign]
    with pytest.raises(ModelError, match="cannot be loaded by FunASR: init_param does not exist"):
        load_transcriber(f"funasr:{folder}").transcribe(CLIPS[:1], language="zh")
    assert all(known.ms for known in KNOWN_MODELS.values())


def test_without_funasr_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "funasr", None)
    with pytest.raises(MissingExtraError, match=r"squtr\[funasr\]"):
        load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}").transcribe(CLIPS[:1], language="zh")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small real model by its class."""
    root, made = tmp_path_factory.mktemp("funasr"), dict[str, Path]()

    def folder(architecture: str) -> Path:
        if architecture not in made:
            made[architecture] = save_tiny_funasr(root / architecture, CONFIGS[architecture])
        return made[architecture]

    return folder


@NEEDS_FUNASR
@pytest.mark.slow
@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_class_transcribes(real: Callable[[str], Path], architecture: str) -> None:
    options = {"device": "cpu", "threads": 1, "languages": ["zh", "en"], "max_length": 12}
    backend = load_transcriber(f"funasr:{real(architecture)}", **options)
    found = backend.transcribe(CLIPS[:3], language="en")
    assert [t.error for t in found] == [""] * 3
    together = [t.text for t in found]
    assert [t.text for clip in CLIPS[:3] for t in backend.transcribe([clip], language="en")] == together
    assert not [tag for text in together for tag in SENSE_VOICE_TAGS if tag in text]
    # The language reaches the model, where it is told one.
    in_chinese = [t.text for t in backend.transcribe(CLIPS[:3], language="zh")]
    assert (in_chinese != together) == bool(FAMILIES[architecture].languages)
    assert backend.spec.settings["architecture"] == architecture
    if FAMILIES[architecture].batches == "one":
        several = load_transcriber(f"funasr:{real(architecture)}", batch_size=3, **options)
        assert [t.text for t in several.transcribe(CLIPS[:3], language="en")] == together
        assert several.spec == backend.spec


@NEEDS_FUNASR
@pytest.mark.slow
def test_what_is_too_short_fails_alone(real: Callable[[str], Path]) -> None:
    backend = load_transcriber(f"funasr:{real('SenseVoiceSmall')}", device="cpu", batch_size=2)
    short = backend.transcribe([CLIPS[0][:100], CLIPS[0]], language="zh")
    assert "FunASR failed" in short[0].error
    assert short[1].text == backend.transcribe(CLIPS[:1], language="zh")[0].text


@NEEDS_FUNASR
@pytest.mark.slow
def test_fun_asr_reads_the_clip_and_is_capped(real: Callable[[str], Path]) -> None:
    # The path of its language model is relative to its folder; the CTC head for times needs torchaudio, and is left.
    folder = real("FunASRNano")
    options = {"device": "cpu", "threads": 1}
    texts = [
        t.text for t in load_transcriber(f"funasr:{folder}", max_length=9, **options).transcribe(CLIPS, language="zh")
    ]
    assert len(set(texts)) == len(CLIPS)
    for dtype in ("bfloat16", "float16"):
        narrow = load_transcriber(f"funasr:{folder}", max_length=9, dtype=dtype, **options)
        assert [t.error for t in narrow.transcribe(CLIPS[:2], language="zh")] == [""] * 2
    one = load_transcriber(f"funasr:{folder}", max_length=3, **options).transcribe(CLIPS, language="zh")
    assert all(len(short.text) <= 3 for short in one)


@NEEDS_FUNASR
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda weights: weights.pop("encoder.encoders.0.norm1.weight"),
            "lacks 1 weight.*random numbers.*norm1.weight",
        ),
        (lambda weights: weights.update({"decoder2.bias": weights["ctc.ctc_lo.bias"]}), "1 weight that .* not take"),
        (
            lambda weights: weights.update({"ctc.ctc_lo.bias": weights["ctc.ctc_lo.bias"][:3]}),
            r"another shape .*ctc\.ctc_lo\.bias: \(3,\)",
        ),
    ],
)
def test_weights_that_are_not_the_models_are_an_error(
    real: Callable[[str], Path], tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    import torch

    folder = tmp_path / "changed"
    shutil.copytree(real("SenseVoiceSmall"), folder)
    weights = torch.load(folder / "model.pt")["state_dict"]
    change(weights)
    torch.save({"state_dict": {f"module.{key}": value for key, value in weights.items()}}, folder / "model.pt")
    with pytest.raises(ModelError, match=message):
        load_transcriber(f"funasr:{folder}", device="cpu").transcribe(CLIPS[:1], language="zh")
    told = load_transcriber(f"funasr:{folder}", device="cpu", unused_weights=[r"decoder2\."])
    if "not take" in message:
        assert told.transcribe(CLIPS[:1], language="zh")[0].error == ""
        assert told.spec.settings["unused_weights"] == [r"decoder2\."]


@NEEDS_FUNASR
@pytest.mark.slow
def test_the_table_has_every_class_that_funasr_has_and_the_fake_its_shape() -> None:
    code = (
        "import inspect; from funasr import AutoModel; from funasr.register import tables;"
        "print(list(inspect.signature(AutoModel.generate).parameters));"
        "print([(c.__module__ + c.__name__, c.__name__, n) for n, c in tables.model_classes.items()])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    signature, table = done.stdout.splitlines()[-2:]
    assert signature == str(list(inspect.signature(FakeAutoModel.generate).parameters))
    names: dict[str, set[str]] = {}
    for where, name, registered in ast.literal_eval(table):
        names.setdefault(where, {name}).add(registered)
    assert len(names) > 30
    assert [where for where, known in names.items() if not known & {*FAMILIES, *REFUSED}] == []


def test_a_class_that_is_not_run_is_refused(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    for architecture, why in (("Qwen3ASR", "'qwen-asr' runs it"), ("SCAMA", "in chunks"), ("MyOwn", "not known here")):
        with pytest.raises(ModelError, match=f"is a {architecture} of FunASR.*{why}.*Known: BiCifParaformer"):
            _ = load_transcriber(f"funasr:{folder_of(tmp_path, architecture)}").spec
    with pytest.raises(UsageError, match="runs SenseVoiceSmall in float32 only"):
        _ = load_transcriber(f"funasr:{folder_of(tmp_path, 'SenseVoiceSmall')}", dtype="float16").spec
    with pytest.raises(UsageError, match="Paraformer is told no language"):
        _ = load_transcriber(f"funasr:{folder_of(tmp_path, 'Paraformer')}", language="auto", languages=["zh"]).spec
    assert not engine.made


def test_a_language_that_is_not_forced_is_in_the_spec(engine: type[FakeAutoModel], tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "SenseVoiceSmall")
    forced = load_transcriber(f"funasr:{folder}").spec
    free = load_transcriber(f"funasr:{folder}", language="auto").spec
    assert (free.settings["language"], free.settings["forced_languages"]) == ("not forced", [])
    assert free.fingerprint != forced.fingerprint
    assert free.settings["use_itn"] is True
