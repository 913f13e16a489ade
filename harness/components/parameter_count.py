"""How many parameters a model has, read from the headers of its weights: no tensor is loaded."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ...errors import ModelError

_U8, _U16, _U32, _U64 = (struct.Struct(code) for code in ("<B", "<H", "<I", "<Q"))
_CTRANSLATE2_VERSIONS = range(4, 7)
"""Versions of CTranslate2's format in which every variable tells its bytes."""
_LARGEST_HEADER = 100_000_000


def parameter_count(model: object) -> int | None:
    """The parameters of a component that tells where its weights lie (`weights`), None of one that does not."""
    place = getattr(model, "weights", None)
    return count_parameters(place) if isinstance(place, Path) else None


def count_parameters(place: Path) -> int | None:
    """The number of parameters in a folder, or file, of weights: safetensors, CTranslate2 or openai-whisper's `.pt`.

    Scales of quantised weights do not count. None for another format. Raises `ModelError` naming a damaged file.
    """
    files = [place] if place.is_file() else sorted(place.glob("*.safetensors"))
    if place.is_dir() and not files and (place / "model.bin").is_file():
        files = [place / "model.bin"]
    counted = 0
    for file in files:
        try:
            if file.suffix == ".safetensors":
                counted += sum(_safetensors(file))
            elif file.name == "model.bin":
                counted += sum(_ctranslate2(file))
            elif file.suffix == ".pt":
                counted += sum(_checkpoint(file))
            else:
                return None
        except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
            raise ModelError(f"the header of {file} cannot be read: {error}.", hint="Download it again.") from error
    return counted or None


def _safetensors(file: Path) -> Iterator[int]:
    with file.open("rb") as stream:
        (size,) = _U64.unpack(stream.read(_U64.size))
        if size > _LARGEST_HEADER:
            raise ValueError(f"it claims a header of {size} bytes")
        header = json.loads(stream.read(size))
    for name, tensor in header.items():
        if name != "__metadata__":
            yield math.prod(tensor["shape"])


def _ctranslate2(file: Path) -> Iterator[int]:
    """The layout that CTranslate2 writes: version, specification, then each variable with name, shape, type, bytes."""

    def number(stream: BinaryIO, form: struct.Struct) -> int:
        (value,) = form.unpack(stream.read(form.size))
        return int(value)

    def text(stream: BinaryIO) -> str:
        return stream.read(number(stream, _U16)).rstrip(b"\0").decode("utf-8")

    with file.open("rb") as stream:
        version = number(stream, _U32)
        if version not in _CTRANSLATE2_VERSIONS:
            return
        text(stream)
        number(stream, _U32)
        for _ in range(number(stream, _U32)):
            name = text(stream)
            shape = [number(stream, _U32) for _ in range(number(stream, _U8))]
            number(stream, _U8)
            stream.seek(number(stream, _U32), 1)
            if shape and math.prod(shape) > 1 and not name.endswith("_scale"):
                yield math.prod(shape)


def _checkpoint(file: Path) -> Iterator[int]:
    import torch

    try:
        content = torch.load(file, map_location="meta", weights_only=True)
    except Exception as error:  # torch, pickle and zipfile each have their own
        raise ValueError(str(error)) from error
    for tensor in content["model_state_dict"].values():
        yield int(tensor.numel())
