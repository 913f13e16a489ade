"""Whether FunASR took all weights of a checkpoint: it fills what is missing with random numbers and prints a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ..loading_report import Loaded, check_loading
from ..torch_models import imported_torch, reason

_WRAPPERS = ("state_dict", "model_state_dict", "model")


def check_weights(model: Any, file: str, *, name: str, unused: Sequence[str]) -> None:
    """Raises `ModelError` if the weights of `model` and those in `file` are not the same, by name and shape.

    `unused` are patterns of weights in the file that the model leaves.
    """
    saved = _shapes(Path(file), name)
    wanted = model.state_dict()
    # What shares its memory with a weight that is there is there too (tied embeddings).
    there = {weights.data_ptr() for key, weights in wanted.items() if key in saved}
    report = {
        "missing_keys": [key for key in wanted if key not in saved and wanted[key].data_ptr() not in there],
        "unexpected_keys": [key for key in saved if key not in wanted],
        "mismatched_keys": [
            (key, saved[key], tuple(weights.shape))
            for key, weights in wanted.items()
            if key in saved and saved[key] != tuple(weights.shape)
        ],
    }
    try:
        check_loading(Loaded.of(model, report), name=name, unused=unused)
    except ModelError as error:
        raise ModelError(
            error.message,
            hint="Take config.yaml and model.pt from one place. What a class leaves by design may be listed "
            r"(unused_weights=['decoder2\.']).",
        ) from error


def _shapes(file: Path, name: str) -> Mapping[str, tuple[int, ...]]:
    torch = imported_torch()
    if not file.is_file():
        raise ModelError(
            f"{name} has no weights: {file} is not there, and FunASR would go on with random ones.",
            hint="Give the whole folder of the model.",
        )
    try:
        content = torch.load(file, map_location="meta")
    except (OSError, RuntimeError, ValueError, KeyError, EOFError) as error:
        raise ModelError(
            f"the weights {file} cannot be read ({reason(error)}).", hint="Fetch the file again."
        ) from error
    for wrapper in _WRAPPERS:
        content = content.get(wrapper, content)
    return {key.removeprefix("module."): tuple(weights.shape) for key, weights in content.items()}
