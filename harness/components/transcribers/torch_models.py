"""What the recognizers on transformers share: where and in which precision a model runs, and how it is loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ....errors import ModelError, UsageError, missing_extra
from ...processes import local_device_index
from ...protocols import Setting
from .common import BatchSize, require_positive

DTYPES = ("float32", "float16", "bfloat16")
AUTOCAST = {"no": "", "fp16": "float16", "bf16": "bfloat16"}
"""Names of accelerate's mixed precision, with torch's dtype."""
AUTO_DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
AutoBatch = Literal["auto"]

_CPU_BATCH = 16
_CLIPS_PER_GIB = 4
_LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class TorchRuntime:
    """Where and how a model of torch runs.

    `device` is "auto" (this process's GPU, then MPS, then CPU) or a torch device, `dtype` that of the weights.
    `device_map` spreads one model over devices: a name that accelerate knows ("auto"), a device, or module to device.
    `mixed_precision` ("no", "fp16", "bf16") runs float32 weights under `torch.autocast`. `threads` is the number of CPU
    threads, 0 for torch's own. Only with `trust_remote_code` is code run that comes with the weights.

    Raises `UsageError` for options that do not exist or contradict each other.
    """

    device: str = "auto"
    dtype: str = "float32"
    device_map: str | Mapping[str, str | int] | None = None
    mixed_precision: str = "no"
    threads: int = 0
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise UsageError(f"a transcriber needs threads of at least 0, not {self.threads}.")
        for kind, value, known in (("dtype", self.dtype, DTYPES), ("mixed_precision", self.mixed_precision, AUTOCAST)):
            if value not in known:
                raise UsageError(f"unknown {kind} {value!r}.", hint=f"Known: {', '.join(known)}.")
        if self.mixed_precision != "no" and self.dtype != "float32":
            raise UsageError(
                f"mixed_precision {self.mixed_precision!r} needs weights in float32, not {self.dtype}.",
                hint="Leave one of the two out.",
            )
        if self.device_map is not None and self.device != "auto":
            raise UsageError(
                f"device {self.device!r} and device_map {self.device_map!r} contradict each other.",
                hint="Leave the device out.",
            )

    def resolved_device(self) -> str:
        """The torch device of a model without `device_map`; of one with it, the kinds of its devices."""
        if isinstance(self.device_map, Mapping):
            # A number is a GPU.
            kinds = {"cuda" if str(d).isdigit() else str(d).split(":", maxsplit=1)[0] for d in self.device_map.values()}
            return "+".join(sorted(kinds))
        if self.device_map is not None and self.device_map not in AUTO_DEVICE_MAPS:
            return self.device_map
        if self.device != "auto":
            return self.device
        torch = imported_torch()
        if torch.cuda.is_available():
            return f"cuda:{local_device_index() % torch.cuda.device_count()}"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    def settings(self) -> dict[str, Setting]:
        """The numeric path, for a spec: what is usual is left out where it once was not recorded."""
        settings: dict[str, Setting] = {"device": self.resolved_device().split(":", maxsplit=1)[0], "dtype": self.dtype}
        if self.mixed_precision != "no":
            settings["mixed_precision"] = self.mixed_precision
        if self.trust_remote_code:
            settings["trust_remote_code"] = True
        return settings

    def load_model(self, auto_class: str, folder: Path) -> Any:
        """The weights in `folder`, loaded with a class of transformers (its name), ready for inference.

        Raises `ModelError` that says what to check.
        """
        torch, transformers = imported_torch(), imported_transformers()
        options: dict[str, Any] = {"dtype": getattr(torch, self.dtype), "trust_remote_code": self.trust_remote_code}
        if self.device_map is not None:
            options["device_map"] = self.device_map if isinstance(self.device_map, str) else dict(self.device_map)
        try:
            with quiet():
                model = getattr(transformers, auto_class).from_pretrained(str(folder), **options)
            if self.device_map is None:
                model = model.to(self.resolved_device())
            return model.eval()
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise ModelError(
                f"the model in {folder} cannot be loaded on {self.resolved_device()}: {error}.",
                hint=_trust_hint(error) or "Check device and dtype, or give another model.",
            ) from error

    def load_part(self, auto_class: str, folder: Path) -> Any:
        """A processor, feature extractor or tokenizer in `folder`. Raises `ModelError`."""
        try:
            with quiet():
                return getattr(imported_transformers(), auto_class).from_pretrained(
                    str(folder), trust_remote_code=self.trust_remote_code
                )
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            raise ModelError(
                f"the {auto_class.removeprefix('Auto')} in {folder} cannot be loaded: {error}.",
                hint=_trust_hint(error),
            ) from error

    def batch_size(self, asked: int | AutoBatch, model: Any) -> BatchSize:
        """The batch size to start from: as `asked`, or by the memory that the loaded model leaves."""
        if asked != "auto":
            return BatchSize(asked)
        if model.device.type != "cuda":
            return BatchSize(_CPU_BATCH)
        free, _ = imported_torch().cuda.mem_get_info(model.device)
        return BatchSize(first_batch_size(int(free)))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """`threads` for the time of a call: torch knows only one number for the whole process."""
        if not self.threads:
            yield
            return
        torch = imported_torch()
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @contextlib.contextmanager
    def inference(self, model: Any) -> Iterator[None]:
        """No gradients, mixed precision where asked for, and no chatter."""
        torch = imported_torch()
        narrow = AUTOCAST[self.mixed_precision]
        cast = torch.autocast(model.device.type, getattr(torch, narrow)) if narrow else contextlib.nullcontext()
        with torch.inference_mode(), cast, quiet():
            yield


def first_batch_size(free: int) -> int:
    """How many clips of 30 s to try first with this many bytes of free memory: a power of two from 1 to 256.

    A guess that is rather too large: what does not fit is halved.

    >>> [first_batch_size(gib << 30) for gib in (0, 1, 10, 22, 140)]
    [1, 4, 32, 64, 256]
    """
    clips = max(1, (free * _CLIPS_PER_GIB) >> 30)
    return min(_LARGEST_BATCH, 1 << (clips.bit_length() - 1))


def require_batch_size(batch_size: int | AutoBatch) -> None:
    """Raises `UsageError` unless it is "auto" or a number of at least 1."""
    if isinstance(batch_size, str):
        if batch_size != "auto":
            raise UsageError(f"batch_size is a number or 'auto', not {batch_size!r}.")
    else:
        require_positive(batch_size=batch_size)


def imported_torch() -> Any:
    """The module, or `MissingExtraError`."""
    try:
        import torch
    except ImportError as error:
        raise missing_extra("torch", "torch") from error
    return torch


def imported_transformers() -> Any:
    """The module, or `MissingExtraError`."""
    try:
        import transformers
    except ImportError as error:
        raise missing_extra("transformers", "torch") from error
    return transformers


def _trust_hint(error: Exception) -> str:
    if "trust_remote_code" not in str(error):
        return ""
    return "It comes with code of its own. If you have read and trust that code, give trust_remote_code=True."


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bar for loading, no warning per batch that the length cap is ours; what was set before comes back."""
    from transformers.utils import logging

    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
