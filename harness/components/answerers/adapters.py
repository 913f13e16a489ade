"""Low-rank adapters (LoRA, arXiv 2106.09685) that a speech model needs for audio, from files as peft writes them.

The package peft itself is not asked for: transformers 5.24 wants peft 0.22, and without it loads a model in silence
without its adapter.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ..torch_models import imported_torch, read_config

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
_KEY = re.compile(r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<side>[AB])(?:\.default)?\.weight")
# What else peft can put into a layer; none of it is a product of two matrices alone.
_UNKNOWN = ("use_dora", "alpha_pattern", "rank_pattern", "modules_to_save", "trainable_token_indices", "lora_bias")


class SpeechAdapter:
    """The adapter in `folder`, on the layers of `model` that its file names; while `on`, each gives Wx + s·B(Ax).

    s is alpha / rank, with `use_rslora` alpha / √rank. Raises `ModelError` for a folder without an adapter, for one of
    another kind than LoRA, and for weights that no layer of the model takes.
    """

    def __init__(self, model: Any, folder: Path, *, name: str) -> None:
        torch = imported_torch()
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        self.on = False
        config = read_config(folder, CONFIG)
        more = [option for option in _UNKNOWN if config.get(option)]
        if str(config.get("peft_type")).upper() != "LORA" or more:
            raise ModelError(
                f"the adapter of {name} is of the kind {config.get('peft_type')} {', '.join(more)}".rstrip() + ".",
                hint="Merge it into the weights with peft, and give the merged model.",
            )
        try:
            weights = load_file(folder / WEIGHTS)
        except (OSError, SafetensorError) as error:
            raise ModelError(
                f"the adapter of {name} cannot be read ({error}).", hint=f"Take {WEIGHTS} from the original model."
            ) from error
        layers = {key: module for key, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
        sides: dict[str, dict[str, Any]] = {}
        for key, weight in weights.items():
            found = _KEY.fullmatch(key)
            if found is None:
                raise ModelError(f"the adapter of {name} holds {key}, which is no part of LoRA.")
            sides.setdefault(_layer(found["module"], layers, name), {})[found["side"]] = weight
        for key, pair in sides.items():
            layer = layers[key]
            if set(pair) != {"A", "B"} or (pair["B"].shape[0], pair["A"].shape[1]) != tuple(layer.weight.shape):
                raise ModelError(f"the adapter of {name} does not fit the layer {key}.", hint="It is another model's.")
            rank = pair["A"].shape[0]
            scale = float(config["lora_alpha"]) / (math.sqrt(rank) if config.get("use_rslora") else rank)
            place = {"device": layer.weight.device, "dtype": layer.weight.dtype}
            layer.register_forward_hook(self._hook(pair["A"].to(**place), pair["B"].to(**place), scale))
        if not sides:
            raise ModelError(f"the adapter of {name} is empty.")

    def _hook(self, down: Any, up: Any, scale: float) -> Any:
        linear = imported_torch().nn.functional.linear

        def add(layer: Any, arguments: Any, output: Any) -> Any:
            return output + linear(linear(arguments[0], down), up) * scale if self.on else output

        return add


def _layer(module: str, layers: dict[str, Any], name: str) -> str:
    """The layer that a file calls `module`: other versions of transformers nest the classes the other way round."""
    if module in layers:
        return module
    parts = sorted(module.split("."))
    found = [key for key in layers if sorted(key.split(".")) == parts]
    if len(found) != 1:
        raise ModelError(
            f"the adapter of {name} is for a layer {module}, which the model lacks.", hint="It is another model's."
        )
    return found[0]
