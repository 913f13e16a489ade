"""What a class of transformers took of a checkpoint.

A weight that the checkpoint lacks is drawn at random, and one that the class does not know is dropped: the model runs
all the same, and its numbers mean nothing. Every such weight is an error here unless it is listed.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from ...errors import ModelError

NEVER_READ = (
    r"(.*\.)?(position_ids|token_type_ids)$",  # 0, 1, 2, … and zeros
    r"(.*\.)?(relative_position_index|inv_freq|original_inv_freq)$",  # computed from the configuration
    r"(.*\.)?num_batches_tracked$",  # how many batches a batch normalization saw in training
)
"""Weights that a checkpoint may hold, whatever the class, beside those that the class computes: its buffers."""

NEVER_USED = (
    *NEVER_READ,
    r"(.*\.)?masked_spec_embed$",  # what stands in for masked frames, in training alone (wav2vec 2.0, HuBERT, WavLM)
)
"""Weights that a checkpoint may lack, whatever the class."""

LM_HEAD = (r"(.*\.)?lm_head\.",)
"""What writes words; hidden states do not pass it."""

POOLERS = (r"(.*\.)?pooler\.dense\.(weight|bias)",)
"""The layer above the first token that BERT has for its second training task; vectors of tokens do not pass it."""

HEADS = (
    r"cls\.(predictions|seq_relationship)\.",  # BERT
    r"(lm_predictions|mask_predictions|generator_predictions|generator_lm_head|discriminator_predictions)\.",
    r"vocab_(transform|layer_norm|projector)\.",  # DistilBERT
    r"(head\.(dense|norm)|decoder)\.(weight|bias)",  # ModernBERT
    *LM_HEAD,
    *POOLERS,
)
"""Heads for the tasks that language models are trained on, which an encoder leaves."""

UNUSED_OF: Mapping[str, tuple[str, ...]] = {
    # The head for its sparse vectors.
    "gte-multilingual-base": (r"classifier\.(weight|bias)$",)
}
"""Weights that published models hold beside what makes their vectors, by the name in `weights.published_name`."""

_SHOWN = 3
_RECORDING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded model: its class, the classes that its configuration names, what it computes itself, and the report
    (transformers' `output_loading_info`).
    """

    class_name: str
    saved_as: tuple[str, ...]
    buffers: frozenset[str]
    report: Mapping[str, Any]

    @classmethod
    def of(cls, model: Any, report: Mapping[str, Any]) -> Loaded:
        saved_as = getattr(getattr(model, "config", None), "architectures", None) or ()
        buffers = frozenset(name for name, _ in model.named_buffers())
        return cls(type(model).__name__, tuple(saved_as), buffers, report)


@contextlib.contextmanager
def recorded_loading() -> Iterator[list[Loaded]]:
    """What this thread loads through transformers within the block, by whatever library: they keep no report.

    `from_pretrained` gives its report where it is asked for; within the block it always is.
    """
    from transformers import PreTrainedModel

    loaded: list[Loaded] = []
    thread = threading.get_ident()
    plain: Any = vars(PreTrainedModel)["from_pretrained"]

    @wraps(plain.__func__)
    def recording(cls: Any, *args: Any, output_loading_info: bool = False, **kwargs: Any) -> Any:
        # Weights of another shape are in the report.
        kwargs.setdefault("ignore_mismatched_sizes", True)
        model, report = plain.__func__(cls, *args, output_loading_info=True, **kwargs)
        if threading.get_ident() == thread:
            loaded.append(Loaded.of(model, report))
        return (model, report) if output_loading_info else model

    with _RECORDING:
        PreTrainedModel.from_pretrained = classmethod(recording)  # type: ignore[method-assign, assignment, arg-type]
        try:
            yield loaded
        finally:
            PreTrainedModel.from_pretrained = plain  # type: ignore[method-assign]


def check_loading(loaded: Loaded, *, name: str, unused: Iterable[str] = (), absent: Iterable[str] = ()) -> None:
    """Raises `ModelError` if the report of loading names a weight that is not listed.

    `unused` are patterns of weights that the class leaves by design, `absent` of those that the checkpoint may lack.
    """
    report, class_name, saved_as = loaded.report, loaded.class_name, loaded.saved_as
    missing = _unlisted(report["missing_keys"], (*NEVER_USED, *absent))
    unexpected = _unlisted(set(report["unexpected_keys"]) - loaded.buffers, (*NEVER_READ, *unused))
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
            hint=f"{advice}Give the class that it was saved from (model_class) or another backend; if that part is not "
            "needed for this use, name it as a pattern in unused_weights.",
        )


def refuse_adapter(folder: Path, *, name: str) -> None:
    """Raises `ModelError` for a folder with an adapter (LoRA, …), which would be left off in silence without peft."""
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"{name} holds an adapter for a model, which would not be put on.",
            hint="Merge it into the model (merge_and_unload of peft), save that, and give its folder.",
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
