"""Models of `mteb` as encoders of the harness."""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import soundfile
from numpy.typing import NDArray

from ...errors import ModelError, UsageError
from ...loaders.records import SAMPLE_RATE, Samples
from ..components.retrievers.dense import DenseRetriever
from ..protocols import ComponentSpec, TextEncoder
from .catalog import language_tag
from .task_data import audio_rows
from .versions import installed_version, load_bridge

if TYPE_CHECKING:
    from datasets import Dataset

_NORM_TOLERANCE = 1e-3


class MtebTextEncoder:
    """A text encoder of mteb as a `TextEncoder`.

    `model` is a model object, or the name of one that mteb knows or finds on the Hub, loaded when something is first
    encoded; it runs code from its repository only with `trust_remote_code`. `device` is a torch device, None for mteb's
    choice; `batch_size` changes vectors by rounding only. Prompts are the model's own, as mteb knows them.

    Raises `MissingExtraError` without mteb, `ModelError` for a model that is unknown, or that cannot rank by cosine.
    """

    _kind: Literal["encoder", "audio_text_encoder"] = "encoder"
    _modalities: tuple[str, ...] = ("text",)

    def __init__(
        self,
        model: Any,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        trust_remote_code: bool = False,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size must be at least 1, not {batch_size}.")
        self._bridge: Any = load_bridge()
        self._device, self._batch_size = device, batch_size
        self._model: Any = None if isinstance(model, str) else model
        if isinstance(model, str):
            self._meta = self._bridge.find_model(model, revision=revision)
            _check_remote_code(self._meta, allowed=trust_remote_code)
        elif not all(hasattr(model, part) for part in ("encode", "similarity", "mteb_model_meta")):
            raise UsageError(f"{type(model).__name__} is no encoder of mteb.", hint="Give what mteb.get_model returns.")
        else:
            self._meta = model.mteb_model_meta
        missing = set(self._modalities) - set(self._meta.modalities)
        if missing:
            raise ModelError(
                f"{self._meta.name} does not take {' and '.join(sorted(missing))}.",
                hint=f"For text alone, write '<transcriber> + dense-mteb:{self._meta.name}'."
                if "audio" in missing
                else "",
            )
        similarity = getattr(self._meta.similarity_fn_name, "value", self._meta.similarity_fn_name)
        if similarity not in {None, "cosine", "dot"}:
            raise ModelError(
                f"{self._meta.name} ranks by {similarity}, the harness by cosine.",
                hint="Evaluate it with mteb instead.",
            )
        self._unit_only = similarity == "dot"

    @property
    def spec(self) -> ComponentSpec:
        settings = {"mteb_version": installed_version()}
        experiment = self._meta.experiment_kwargs
        if experiment:
            settings["experiment"] = repr(sorted(experiment.items()))
        name = str(self._meta.name)
        return ComponentSpec(
            self._kind, "mteb", name.rpartition("/")[2], name, str(self._meta.revision or ""), settings
        )

    def supports(self, language: str) -> bool:
        tag = language_tag(language).partition("-")[0]
        same = {"cmn", "zho"} if tag == "cmn" else {tag}
        named = self._meta.languages
        return not named or any(code.partition("-")[0] in same for code in named)

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        import datasets

        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        rows = datasets.Dataset.from_dict({"id": [str(i) for i in range(len(texts))], "text": list(texts)})
        vectors = self._vectors(rows, "eng-Latn", audio=False, role=role)
        wrong = np.flatnonzero(np.isnan(vectors).any(axis=1))
        if len(wrong):
            first = texts[int(wrong[0])]
            raise ModelError(f"{self._meta.name} gave a vector without direction for the text {first[:80]!r}.")
        return vectors

    def _loaded(self) -> Any:
        if self._model is None:
            self._model = self._bridge.load_model(self._meta, device=self._device)
        return self._model

    def _vectors(self, rows: Dataset, tag: str, *, audio: bool, role: str) -> NDArray[np.float32]:
        made = self._bridge.encode(self._loaded(), rows, tag=tag, audio=audio, role=role, batch_size=self._batch_size)
        if hasattr(made, "detach"):
            made = made.detach().cpu().float()
        vectors = np.asarray(made, dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(rows):
            raise ModelError(f"{self._meta.name} gave vectors of shape {vectors.shape} for {len(rows)} rows.")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        known = lengths[np.isfinite(lengths)]
        if self._unit_only and known.size and np.abs(known - 1).max() > _NORM_TOLERANCE:
            raise ModelError(
                f"{self._meta.name} ranks by dot product and its vectors are not of unit length; the harness ranks by"
                " cosine.",
                hint="Evaluate it with mteb instead.",
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.where(np.isfinite(lengths) & (lengths > 0), vectors / lengths, np.nan)
        return unit.astype(np.float32)


class MtebAudioTextEncoder(MtebTextEncoder):
    """An audio and text encoder of mteb as an `AudioTextEncoder`. The parameters are those of `MtebTextEncoder`.

    The model gets 24 kHz and resamples by itself, as under mteb.
    """

    sample_rate = SAMPLE_RATE
    _kind = "audio_text_encoder"
    _modalities = ("audio", "text")

    def encode_audio(self, clips: Sequence[Samples], *, language: str) -> NDArray[np.float32]:
        if not clips:
            return np.zeros((0, 0), dtype=np.float32)
        rows = self._bridge.with_audio(audio_rows([_wave(clip) for clip in clips]))
        return self._vectors(rows, language_tag(language), audio=True, role="query")


class MtebDenseRetriever(DenseRetriever):
    """`DenseRetriever` with a `MtebTextEncoder`, whose options it takes too."""

    backend = "dense-mteb"

    @staticmethod
    def _encoder_of(model: str | Path, **options: Any) -> TextEncoder:
        return MtebTextEncoder(model, **options)


def _wave(clip: Samples) -> bytes:
    """A file that holds float32 samples as they are."""
    file = io.BytesIO()
    soundfile.write(file, clip, SAMPLE_RATE, format="WAV", subtype="FLOAT")
    return file.getvalue()


def _check_remote_code(meta: Any, *, allowed: bool) -> None:
    """Refuse a model whose loader in mteb lets its repository run code, unless that is allowed."""
    if allowed:
        return
    loader = getattr(meta.loader, "func", meta.loader)
    module = sys.modules.get(getattr(loader, "__module__", ""))
    try:
        source = inspect.getsource(loader) if module is not None and loader is not None else ""
    except (OSError, TypeError):
        source = ""
    asked = (meta.loader_kwargs or {}).get("trust_remote_code") or "trust_remote_code=True" in source.replace(" ", "")
    if asked:
        raise ModelError(
            f"{meta.name} runs code from its repository.",
            hint="Read that code, then allow it: --trust-remote-code, or trust_remote_code=True.",
        )
