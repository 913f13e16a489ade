"""What a class of transformers took of a checkpoint.

A weight that the checkpoint lacks is drawn at random, and one that the class does not know is dropped: the model runs
all the same, and its numbers mean nothing. Every such weight is an error here unless it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import ModelError

NEVER_READ = (
    r"(.*\.)?position_ids",  # 0, 1, 2, …: a buffer that older versions of transformers saved
    r"(.*\.)?rotary_emb\.inv_freq",  # computed from the configuration
    r"(.*\.)?num_batches_tracked",  # how many batches a batch normalization saw in training
)
"""Weights that a checkpoint may hold, whatever the class."""

NEVER_USED = (
    r"(.*\.)?masked_spec_embed",  # what stands in for masked frames, in training alone (wav2vec 2.0, HuBERT, WavLM)
    r"(.*\.)?num_batches_tracked",
)
"""Weights that a checkpoint may lack, whatever the class."""

POOLERS = (r"(.*\.)?pooler\.dense\.(weight|bias)",)
"""The layer above the first token that BERT has for its second training task; vectors of tokens do not pass it."""

HEADS = (
    r"cls\.(predictions|seq_relationship)\.",  # BERT
    r"(.*\.)?lm_head\.",
    r"(lm_predictions|mask_predictions|generator_predictions|generator_lm_head|discriminator_predictions)\.",
    r"vocab_(transform|layer_norm|projector)\.",  # DistilBERT
    r"(head\.(dense|norm)|decoder)\.(weight|bias)",  # ModernBERT
    *POOLERS,
)
"""Heads for the tasks that language models are trained on, which an encoder leaves."""

_SHOWN = 3


def check_loading(
    report: Mapping[str, Any],
    *,
    class_name: str,
    name: str,
    saved_as: Sequence[str] = (),
    unused: Iterable[str] = (),
    absent: Iterable[str] = (),
) -> None:
    """Raises `ModelError` if `report` (transformers' `output_loading_info`) names a weight that is not listed.

    `unused` are patterns of weights that the class leaves by design, `absent` of those that the checkpoint may lack.
    `saved_as` are the classes that the configuration names.
    """
    missing = _unlisted(report["missing_keys"], (*NEVER_USED, *absent))
    unexpected = _unlisted(report["unexpected_keys"], (*NEVER_READ, *unused))
    mismatched = {
        str(key): f"{key}: {tuple(saved)}, not {tuple(wanted)}" for key, saved, wanted in report["mismatched_keys"]
    }
    if mismatched:
        raise ModelError(
            f"{name} has {_count(mismatched)} of another shape than {class_name} ({_some(mismatched.values())}).",
            hint="Its config.json belongs to another model: take both from one place.",
        )
    saved = ", ".join(saved_as)
    advice = f"It was saved as {saved}. " if saved and class_name not in saved_as else ""
    if missing:
        raise ModelError(
            f"{name} lacks {_count(missing)} of {class_name}, which would be random numbers ({_some(missing)}).",
            hint=f"{advice}Give a model that was trained for this use and saved whole.",
        )
    if unexpected:
        raise ModelError(
            f"{name} holds {_count(unexpected)} that {class_name} does not take ({_some(unexpected)}): "
            "a part of the model would be left out.",
            hint=f"{advice}Give the class that it was saved from (model_class, where the backend has it) or another "
            "backend.",
        )


def _unlisted(keys: Iterable[object], patterns: Iterable[str]) -> list[str]:
    listed = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    return sorted(key for key in map(str, keys) if not listed.match(key))


def _count(keys: Iterable[str]) -> str:
    number = len(list(keys))
    return "1 weight" if number == 1 else f"{number} weights"


def _some(keys: Iterable[str]) -> str:
    names = list(keys)
    return ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
