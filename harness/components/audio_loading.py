"""Loading models of sound and text whole: configuration, processor, weights."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from ...errors import ModelError
from .transcribers.torch_models import TorchRuntime, imported_torch, imported_transformers, quiet

_UNLIMITED_TOKENS = 1_000_000_000


def tightest(*limits: float | None) -> int | None:
    """The smallest of some limits on tokens; None if there is none. A huge number is how tokenizers say "none".

    >>> tightest(None, 512, 77), tightest(None, 10**30)
    (77, None)
    """
    return min((int(limit) for limit in limits if limit is not None and limit < _UNLIMITED_TOKENS), default=None)


def read_config(folder: Path, name: str = "config.json") -> dict[str, Any]:
    """The JSON object in a model's folder. Raises `ModelError` if there is none."""
    file = folder / name
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{folder} is no model for transformers: {name} cannot be read ({error}).",
            hint="Give a folder or repository that holds the model and its processor.",
        ) from error
    if not isinstance(content, dict):
        raise ModelError(f"{file} holds no JSON object.", hint="Take the file from the original model.")
    return content


def load_whole(runtime: TorchRuntime, model_class: Any, folder: Path, *, name: str) -> Any:
    """A model of transformers, placed, ready for inference.

    Raises `ModelError` if it cannot be loaded, or if the folder lacks weights, which would be drawn at random.
    """
    torch = imported_torch()
    from safetensors import SafetensorError

    spread = {} if runtime.device_map is None else {"device_map": runtime.device_map}
    try:
        with quiet():
            model, report = model_class.from_pretrained(
                str(folder),
                dtype=getattr(torch, runtime.dtype),
                local_files_only=True,
                trust_remote_code=runtime.trust_remote_code,
                output_loading_info=True,
                **spread,
            )
            if runtime.device_map is None:
                model = model.to(runtime.resolved_device())
    # What a broken or foreign folder raises depends on which library meets it first.
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ImportError) as error:
        raise unloadable(name, folder, error) from error
    except SafetensorError as error:
        raise unloadable(name, folder, error) from error
    missing = sorted([*map(str, report["missing_keys"]), *(str(key[0]) for key in report["mismatched_keys"])])
    if missing:
        raise ModelError(
            f"{name} lacks {len(missing)} weights of {type(model).__name__}, for example {missing[0]}.",
            hint="Give the class that the model was saved from, or another model.",
        )
    return model.eval()


def load_processor(runtime: TorchRuntime, folder: Path, *, name: str) -> Any:
    """The processor of transformers in `folder`, with its feature extractor and tokenizer.

    Raises `ModelError` if it cannot be loaded or lacks one of the two, `MissingExtraError` without transformers.
    """
    auto = imported_transformers().AutoProcessor
    try:
        with quiet():
            processor: Any = auto.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=runtime.trust_remote_code
            )
    except (OSError, LookupError, ValueError, TypeError, AttributeError, ImportError) as error:
        if isinstance(error, ImportError) and "torchvision" in str(error).lower():
            raise ModelError(
                f"the processor of {name} also reads pictures, and needs torchvision for that.",
                hint="Run: pip install torchvision, from the index that torch came from.",
            ) from error
        raise unloadable(name, folder, error) from error
    for part in ("feature_extractor", "tokenizer"):
        if getattr(processor, part, None) is None:
            raise ModelError(
                f"the processor of {name} ({type(processor).__name__}) has no {part}.",
                hint="Give a model that takes sound and text, saved with its processor.",
            )
    return processor


def unloadable(name: str, folder: Path, error: Exception) -> ModelError:
    """The error for a model that a library refuses to load."""
    hint = f"Check the folder {folder}."
    with contextlib.suppress(ModelError):
        if "auto_map" in read_config(folder):
            hint += " The model brings its own code: trust_remote_code=True would run it."
    return ModelError(f"{name} cannot be loaded ({reason(error)}).", hint=hint)


def reason(error: Exception) -> str:
    """The kind of an error and what it says, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
