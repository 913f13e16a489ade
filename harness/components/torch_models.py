"""Models of torch: where and in which precision they run, how they are loaded and described."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ...errors import ModelError, UsageError, missing_extra
from ..processes import local_device_index
from ..protocols import ComponentSpec, Kind, Setting
from .batches import BatchSize, require_positive
from .library_log import quiet
from .loading_report import Loaded, check_loading, refuse_adapter
from .st_loading import ModelKind, TokenPooling, load_whole
from .weights import FoundWeights, find_weights

DTYPES = ("float32", "float16", "bfloat16")
AUTOCAST = {"no": "", "fp16": "float16", "bf16": "bfloat16"}
AUTO_DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
AutoBatch = Literal["auto"]

_CPU_BATCH = 16
_CLIPS_PER_GIB = 4
_LARGEST_BATCH = 256
_UNLIMITED_TOKENS = 1_000_000_000
# What a broken or foreign folder raises depends on which library meets it first.
_UNLOADABLE = (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ImportError)


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """Where and how a model of torch runs.

    `device` is "auto" (this process's GPU, then MPS, then CPU) or a torch device, `dtype` that of the weights.
    `device_map` spreads one model over devices: a name that accelerate knows ("auto"), a device, or module to device.
    `mixed_precision` ("no", "fp16", "bf16") runs float32 weights under `torch.autocast`. `threads` is the number of CPU
    threads, 0 for torch's own. `attn_implementation` is transformers' ("eager", "sdpa", "flash_attention_2"), None its
    choice. Only with `trust_remote_code` is code run that comes with the weights. `unused_weights` are patterns
    (`re.match`) of weights that a folder holds and that may be left out: any other is an error.

    Raises `UsageError` for options that do not exist or contradict each other.
    """

    device: str = "auto"
    dtype: str = "float32"
    device_map: str | Mapping[str, str | int] | None = None
    mixed_precision: str = "no"
    threads: int = 0
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    unused_weights: Sequence[str] = ()

    def __post_init__(self) -> None:
        for pattern in self.unused_weights:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UsageError(f"{pattern!r} in unused_weights is no regular expression ({error}).") from error
        if self.threads < 0:
            raise UsageError(f"threads must be at least 0, not {self.threads}.")
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

    @property
    def is_exact(self) -> bool:
        return self.dtype == "float32" and self.mixed_precision == "no"

    def settings(self, *, device: bool) -> dict[str, Setting]:
        """The numeric path, for a spec; with `device`, of a model whose output depends on the kind of device."""
        settings: dict[str, Setting] = {"dtype": self.dtype}
        if device:
            settings["device"] = self.resolved_device().split(":", maxsplit=1)[0]
        if self.mixed_precision != "no":
            settings["mixed_precision"] = self.mixed_precision
        if self.attn_implementation is not None:
            settings["attn_implementation"] = self.attn_implementation
        if self.trust_remote_code:
            # Code that comes with a model may compute something else than the library's.
            settings["trust_remote_code"] = True
        if self.unused_weights:
            settings["unused_weights"] = list(self.unused_weights)
        return settings

    @property
    def _model_arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"dtype": getattr(imported_torch(), self.dtype)}
        if self.device_map is not None:
            arguments["device_map"] = self.device_map if isinstance(self.device_map, str) else dict(self.device_map)
        if self.attn_implementation is not None:
            arguments["attn_implementation"] = self.attn_implementation
        return arguments

    def load_model(
        self,
        class_name: str,
        folder: Path,
        *,
        name: str,
        unused: Sequence[str] = (),
        absent: Sequence[str] = (),
        adapter: bool = False,
    ) -> Any:
        """The weights in `folder`, loaded with a class of transformers, placed, ready for inference.

        `name` is the model's in errors. `unused` are patterns (`re.match`) of weights that the class leaves by design,
        `absent` of those that the folder may lack (`loading_report` has some). With `adapter`, the caller puts on the
        adapter that lies in the folder, if one does. Raises `UsageError` for a class that
        transformers lacks, `ModelError` for a folder that cannot be loaded and for weights that are missing, left over
        or of another shape.
        """
        transformers = imported_transformers()
        model_class: Any = getattr(transformers, class_name, None)
        if not callable(getattr(model_class, "from_pretrained", None)):
            raise UsageError(
                f"transformers {transformers.__version__} has no model class {class_name!r}.",
                hint="Give another model_class (AutoModel, AutoModelForMultimodalLM, …), or run: "
                "pip install 'squtr[torch]' -U",
            )
        if not adapter:
            refuse_adapter(folder, name=name)
        with self._loading(folder, name), quiet(name):
            model, report = model_class.from_pretrained(
                str(folder),
                local_files_only=True,
                trust_remote_code=self.trust_remote_code,
                output_loading_info=True,
                # They are in the report.
                ignore_mismatched_sizes=True,
                **self._model_arguments,
            )
            if self.device_map is None:
                model = model.to(self.resolved_device())
        check_loading(Loaded.of(model, report), name=name, unused=(*unused, *self.unused_weights), absent=absent)
        return model.eval()

    def load_sentence_transformer(
        self,
        kind: ModelKind,
        folder: Path,
        *,
        name: str,
        pooling: TokenPooling | None = None,
        unused: Sequence[str] = (),
    ) -> Any:
        """The model in `folder`, of a class of sentence-transformers. Raises `ModelError` as `load_model`."""
        with self._loading(folder, name, f" as a {kind} of sentence-transformers"), quiet(name):
            return load_whole(
                kind,
                folder,
                name=name,
                pooling=pooling,
                unused=(*unused, *self.unused_weights),
                device=self.resolved_device() if self.device_map is None else None,
                local_files_only=True,
                trust_remote_code=self.trust_remote_code,
                model_kwargs=self._model_arguments,
            )

    def load_part(self, class_name: str, folder: Path, *, name: str) -> Any:
        """A configuration, processor, feature extractor or tokenizer in `folder`. Raises `ModelError`."""
        with self._loading(folder, f"the {class_name.removeprefix('Auto').lower()} of {name}"), quiet(name):
            return getattr(imported_transformers(), class_name).from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=self.trust_remote_code
            )

    def load_processor(self, folder: Path, *, name: str) -> Any:
        """The processor in `folder`; raises `ModelError` if it lacks a feature extractor or a tokenizer."""
        processor = self.load_part("AutoProcessor", folder, name=name)
        for part, *others in (("feature_extractor", "audio_processor"), ("tokenizer",)):
            if all(getattr(processor, name, None) is None for name in (part, *others)):
                raise ModelError(
                    f"the processor of {name} ({type(processor).__name__}) has no {part}.",
                    hint="Give a model that takes audio and text, saved with its processor.",
                )
        return processor

    @contextlib.contextmanager
    def _loading(self, folder: Path, name: str, form: str = "") -> Iterator[None]:
        imported_torch()
        from safetensors import SafetensorError

        try:
            yield
        except (*_UNLOADABLE, SafetensorError) as error:
            if "torchvision" in str(error).lower():
                hint = "It also reads images. Run: pip install torchvision, from the index that torch came from."
            else:
                hint = f"Check the folder {folder}, device and dtype."
            with contextlib.suppress(ModelError):
                if "trust_remote_code" in str(error) or "auto_map" in read_config(folder):
                    hint += " It comes with code of its own: if you trust that code, give trust_remote_code=True."
            raise ModelError(f"{name} cannot be loaded{form} ({reason(error)}).", hint=hint) from error

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
        """The threads, no gradients, mixed precision where asked for, and no lines that say nothing."""
        torch = imported_torch()
        narrow = AUTOCAST[self.mixed_precision]
        cast = torch.autocast(model.device.type, getattr(torch, narrow)) if narrow else contextlib.nullcontext()
        with self.running(), torch.inference_mode(), cast, quiet():
            yield


class TorchComponent:
    """A component with weights for torch, looked up for `spec` and loaded at the first use."""

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        device_map: str | Mapping[str, str | int] | None = None,
        mixed_precision: str = "no",
        threads: int = 0,
        attn_implementation: str | None = None,
        trust_remote_code: bool = False,
        unused_weights: Sequence[str] = (),
    ) -> None:
        if not str(model):
            raise UsageError("no model is named.", hint="Write <backend>:<folder>, or a repository on the Hub.")
        self._torch = TorchOptions(
            device,
            dtype,
            device_map,
            mixed_precision,
            threads,
            attn_implementation,
            trust_remote_code,
            tuple(unused_weights),
        )
        self._requested: str | Path = model
        self._hub_revision = revision

    @property
    def weights(self) -> Path:
        return self._found.path

    def described(self, kind: Kind, backend: str, settings: Mapping[str, Setting]) -> ComponentSpec:
        """The spec of a component that is this model. Raises `ModelError` if the weights are not to be found."""
        found = self._found
        return ComponentSpec(kind, backend, self._name, found.model, found.revision, {**settings, **found.provenance})

    @cached_property
    def _found(self) -> FoundWeights:
        return find_weights(self._requested, revision=self._hub_revision)

    @property
    def _name(self) -> str:
        return self._found.name


class BatchedTorchComponent(TorchComponent):
    """A `TorchComponent` that works on `batch_size` items together ("auto": as the device's memory suggests)."""

    def __init__(self, model: str | Path, *, batch_size: int | AutoBatch = "auto", **torch: Any) -> None:
        if isinstance(batch_size, str):
            if batch_size != "auto":
                raise UsageError(f"batch_size is a number or 'auto', not {batch_size!r}.")
        else:
            require_positive(batch_size=batch_size)
        super().__init__(model, **torch)
        self._asked_batch_size: int | AutoBatch = batch_size

    def _first_batch_size(self, model: Any) -> BatchSize:
        """As asked for, or by the memory that the loaded model leaves."""
        if self._asked_batch_size != "auto":
            return BatchSize(self._asked_batch_size)
        if model.device.type != "cuda":
            return BatchSize(_CPU_BATCH)
        free, _ = imported_torch().cuda.mem_get_info(model.device)
        return BatchSize(first_batch_size(int(free)))


def first_batch_size(free: int) -> int:
    """How many clips of 30 s to try first with this many bytes of free memory: a power of two from 1 to 256.

    A guess that is rather too large: what does not fit is halved.

    >>> [first_batch_size(gib << 30) for gib in (0, 1, 10, 22, 140)]
    [1, 4, 32, 64, 256]
    """
    clips = max(1, (free * _CLIPS_PER_GIB) >> 30)
    return min(_LARGEST_BATCH, 1 << (clips.bit_length() - 1))


def tightest(*limits: float | None) -> int | None:
    """The smallest of some limits on tokens; None if there is none. A huge number is how tokenizers say "none".

    >>> tightest(None, 512, 77), tightest(None, 10**30)
    (77, None)
    """
    return min((int(limit) for limit in limits if limit is not None and limit < _UNLIMITED_TOKENS), default=None)


def read_config(folder: Path, name: str = "config.json") -> dict[str, Any]:
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


def reason(error: Exception) -> str:
    """The kind of an error and what it says, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def imported_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise missing_extra("torch", "torch") from error
    return torch


def imported_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise missing_extra("transformers", "torch") from error
    return transformers
