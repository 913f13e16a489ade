"""Recognition with any `AutoModelForCTC` of transformers: wav2vec2, HuBERT, MMS, wav2vec2-bert, Parakeet-CTC, …"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import BatchSize
from ..torch_models import imported_torch, imported_transformers
from ..weights import FoundWeights
from .common import Decoded, primary_code, require_language, transcribe_batches, transcribe_by_kind
from .torch_transcriber import TorchTranscriber

MASKED_MODELS = (
    "hubert", "lasr_ctc", "parakeet_ctc", "unispeech", "unispeech-sat", "wav2vec2", "wav2vec2-bert", "wavlm",
)  # fmt: skip
"""Model types whose attention mask hides padding from every layer, so that a batch gives what each clip alone does."""

TARGET_LANGUAGES: Mapping[str, str] = {"en": "eng", "es": "spa", "zh": "cmn-script_simplified"}


class CTCTranscriber(TorchTranscriber):
    """A model with a CTC head: the likeliest token of every frame, repeats and blanks removed, no language model.

    `model` is a folder or a Hub repository (with `revision`). `batch_size` and the options of torch are those of
    `BatchedTorchComponent`. Clips of different length share a batch only if the model is one of `MASKED_MODELS` and was
    trained with an attention mask; with others, padding would change the transcript, and only clips of exactly the same
    length are decoded together.

    `languages` are the codes that the model knows; most models do not say it. A model with an adapter per language
    (MMS) is switched to `target_lang[code]`, its own name of the language; `TARGET_LANGUAGES` are known.

    A clip is transcribed whole. With `chunk_s` a longer clip is transcribed in pieces of that many seconds that share
    `overlap_s` with each neighbor on either side (default: a sixth of `chunk_s`); the frames of the shared parts are
    kept once.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        chunk_s: float | None = None,
        overlap_s: float | None = None,
        languages: Sequence[str] = (),
        target_lang: Mapping[str, str] | None = None,
        **torch: Any,
    ) -> None:
        if chunk_s is None:
            if overlap_s is not None:
                raise UsageError(f"overlap_s {overlap_s:g} needs chunk_s.", hint="Give both, or neither.")
        else:
            overlap_s = chunk_s / 6 if overlap_s is None else overlap_s
            if not (0 <= 2 * overlap_s < chunk_s < math.inf):
                raise UsageError(
                    f"pieces of {chunk_s:g} s cannot share {overlap_s:g} s with both neighbors.",
                    hint="Give a chunk_s above 0 and an overlap_s below half of it.",
                )
        super().__init__(model, **torch)
        self._chunk_s, self._overlap_s = chunk_s, overlap_s or 0.0
        self._told_languages = tuple(primary_code(language) for language in languages)
        self._told_targets = {primary_code(code): name for code, name in (target_lang or {}).items()}

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            "batches": "padded to the longest clip, masked" if self._is_masked else "clips of equal length",
            "decoding": "greedy, without special tokens",
            "long_clips": "whole" if self._chunk_s is None else "overlapping pieces",
        }
        if self._chunk_s is not None:
            settings |= {"chunk_s": self._chunk_s, "overlap_s": self._overlap_s}
        if self._targets:
            settings["target_lang"] = dict(sorted(self._targets.items()))
        return self._spec("ctc", settings)

    @cached_property
    def sample_rate(self) -> int:
        return int(self._extractor.sampling_rate)

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, str(self._requested))
        if not clips:
            return []

        def transcribe(kind: int, alike: list[Samples]) -> list[Transcript]:
            whole = kind != _IN_PIECES
            return transcribe_batches(
                alike,
                size=self._batch_size if whole else 1,
                decode=self._whole if whole else self._pieces,
                engine="transformers",
            )

        self._switch_to(code)
        return transcribe_by_kind(clips, self._kind, transcribe)

    def _kind(self, clip: Samples) -> int:
        if self._chunk_s is not None and clip.ndim == 1 and clip.size > self._piece[0]:
            return _IN_PIECES
        return _ANY_LENGTH if self._is_masked else clip.size

    def _whole(self, clips: list[Samples]) -> list[Decoded]:
        return [self._decoded(frames) for frames in self._frames(clips)]

    def _pieces(self, clips: list[Samples]) -> list[Decoded]:
        found = []
        for clip in clips:
            kept = Frames([], [])
            for start, stop, left, right in pieces(clip.size, *self._piece):
                (frames,) = self._frames([clip[start:stop]])
                number = len(frames.ids)
                per_sample = number / (stop - start)
                own = slice(round(left * per_sample), number - round(right * per_sample))
                kept.ids.extend(frames.ids[own])
                kept.scores.extend(frames.scores[own])
            found.append(self._decoded(kept))
        return found

    def _decoded(self, frames: Frames) -> Decoded:
        return Decoded(self._text(frames.ids), confidence=confidence(frames, self._special))

    @cached_property
    def _piece(self) -> tuple[int, int]:
        frame = int(getattr(self._config, "inputs_to_logits_ratio", 1))
        size, overlap = (int((s or 0.0) * self.sample_rate) // frame for s in (self._chunk_s, self._overlap_s))
        size = max(1, size)
        return size * frame, min(overlap, (size - 1) // 2) * frame

    def _frames(self, clips: list[Samples]) -> list[Frames]:
        """The likeliest token of each frame of each clip; `RuntimeError` if one has no frame, or no scores."""
        torch, model = imported_torch(), self._model
        if min(clip.size for clip in clips) < self._shortest:
            raise RuntimeError(_TOO_SHORT)
        try:
            inputs = self._extractor(
                [clip.astype("float32", copy=False) for clip in clips],
                sampling_rate=self.sample_rate,
                padding=True,
                # None leaves it to the extractor: a model may have been trained without.
                return_attention_mask=True if self._is_masked else None,
                return_tensors="pt",
            ).to(model.device, dtype=model.dtype)
        except (ValueError, IndexError) as error:  # fewer samples than one window of the spectrum, most often
            raise RuntimeError(f"the feature extractor refuses the clip ({error})") from error
        with self._torch.inference(model):
            logits = model(**inputs).logits
            scores, ids = logits.float().log_softmax(-1).max(-1)
            usable = ~torch.isnan(logits).any(-1)
            mask = torch.ones_like(usable)
            if self._is_masked:
                mask = self._frame_mask(inputs["attention_mask"], logits.shape[1])
        if not bool(mask.any(-1).all()):
            raise RuntimeError(_TOO_SHORT)
        if not bool((usable | ~mask).all()):
            raise RuntimeError("the model's scores are not numbers")
        rows = zip(ids.cpu(), scores.cpu(), mask.cpu(), strict=True)
        return [Frames(row[kept].tolist(), score[kept].tolist()) for row, score, kept in rows]

    @cached_property
    def _shortest(self) -> int:
        """How many samples the convolutions of a model of waveforms need for one frame."""
        kernels, strides = (getattr(self._config, name, ()) for name in ("conv_kernel", "conv_stride"))
        field, hop = 1, 1
        for kernel, stride in zip(kernels, strides, strict=True):
            field += (kernel - 1) * hop
            hop *= stride
        return field

    def _frame_mask(self, attention_mask: Any, frames: int) -> Any:
        """(clips, frames) bool: which frames come from the clip."""
        if hasattr(self._model, "_get_output_attention_mask"):
            mask = self._model._get_output_attention_mask(attention_mask, target_length=frames)
        else:
            mask = self._model._get_feature_vector_attention_mask(frames, attention_mask)
        # The models count backwards from the end for a clip without any frame.
        return mask.bool() & (attention_mask.sum(-1, keepdim=True) > 0)

    def _text(self, frames: list[int]) -> str:
        """Repeats joined, then blanks and special tokens removed."""
        ids = [token for token, _ in itertools.groupby(frames) if token not in self._special]
        # Two of the same that a blank kept apart are two: the tokenizer must not join them again.
        return str(self._tokenizer.decode(ids, group_tokens=False)) if ids else ""

    @property
    def _special(self) -> frozenset[int | None]:
        """The blank, and what is never text; another vocabulary may come with another language."""
        tokenizer = self._tokenizer
        blank = self._config.pad_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        return frozenset({blank, tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id})

    def _switch_to(self, code: str) -> None:
        target = self._targets.get(code)
        if target is None or self._model.target_lang == target:
            return
        try:
            self._model.load_adapter(target)
            self._tokenizer.set_target_lang(target)
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"the adapter {target!r} of {self._requested} cannot be loaded: {error}.",
                hint=f"Check that the model has adapter.{target}.safetensors.",
            ) from error

    @cached_property
    def _found(self) -> FoundWeights:
        found = super()._found
        if not (found.path / "config.json").is_file():
            raise ModelError(f"{found.path} is no model for transformers: it lacks config.json.")
        return found

    @cached_property
    def _config(self) -> Any:
        return self._torch.load_part("AutoConfig", self._found.path, name=self._name)

    @cached_property
    def _is_masked(self) -> bool:
        config = self._config
        # Group normalization runs over time, padding included.
        hidden = config.model_type in MASKED_MODELS and getattr(config, "feat_extract_norm", "") != "group"
        return hidden and bool(getattr(self._extractor, "return_attention_mask", False))

    @cached_property
    def _targets(self) -> dict[str, str]:
        """Language code to adapter; empty for a model without adapters."""
        tokenizer = self._tokenizer
        if getattr(tokenizer, "target_lang", None) is None or getattr(self._config, "adapter_attn_dim", None) is None:
            if self._told_targets:
                raise UsageError(f"the model {self._requested} has no adapters to switch to.", hint="No target_lang.")
            return {}
        known = set(tokenizer.vocab)
        unknown = sorted(set(self._told_targets.values()) - known)
        if unknown:
            raise UsageError(
                f"the model {self._requested} has no language {unknown[0]!r}.",
                hint=f"It has {', '.join(sorted(known)[:20])}{', …' if len(known) > 20 else ''}.",
            )
        return {code: name for code, name in {**TARGET_LANGUAGES, **self._told_targets}.items() if name in known}

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        if self._targets:
            missing = [code for code in self._told_languages if code not in self._targets]
            if missing:
                raise UsageError(
                    f"no adapter of {self._requested} is known for the language {missing[0]!r}.",
                    hint=f"Give target_lang={{{missing[0]!r}: <the model's name of it>}}.",
                )
            return self._told_languages or tuple(self._targets)
        if not self._told_languages:
            raise UsageError(
                f"the model {self._requested} does not say which languages it knows.",
                hint="Give them, for example languages=['en'].",
            )
        return self._told_languages

    @cached_property
    def _extractor(self) -> Any:
        return self._torch.load_part("AutoFeatureExtractor", self._found.path, name=self._name)

    @cached_property
    def _tokenizer(self) -> Any:
        # Not the processor: that of some models also wants a language model, which greedy decoding does not use.
        return self._torch.load_part("AutoTokenizer", self._found.path, name=self._name)

    @cached_property
    def _batch_size(self) -> BatchSize:
        return self._first_batch_size(self._model)

    @cached_property
    def _model(self) -> Any:
        if (
            type(self._config) not in imported_transformers().MODEL_FOR_CTC_MAPPING
            and not self._torch.trust_remote_code
        ):
            raise ModelError(
                f"{self._requested} is a model of type {self._config.model_type!r}, which has no CTC head.",
                hint="Load it with the backend 'transformers'.",
            )
        return self._torch.load_model("AutoModelForCTC", self._found.path, name=self._name)


_IN_PIECES, _ANY_LENGTH = -2, -1
_TOO_SHORT = "the clip is too short for one frame"


class Frames(NamedTuple):
    """The likeliest token of each frame, and its log-probability."""

    ids: list[int]
    scores: list[float]


def confidence(frames: Frames, special: Collection[int | None]) -> float:
    """The geometric mean probability of the tokens that are not `special`; NaN of none.

    A token is a run of frames of which it is the likeliest; its probability is the largest among them.

    >>> round(confidence(Frames([0, 7, 7, 0, 7], [-0.1, -2.0, -1.0, -0.1, -0.5]), {0}), 4) == round(math.exp(-0.75), 4)
    True
    """
    best = []
    for token, run in itertools.groupby(zip(*frames, strict=True), key=lambda frame: frame[0]):
        if token not in special:
            best.append(max(score for _, score in run))
    return math.exp(sum(best) / len(best)) if best else math.nan


def pieces(length: int, size: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """(start, stop, left, right) of overlapping pieces of at most `size` of `length` samples.

    Of a piece, `left` samples at its start and `right` at its end belong to its neighbors: what remains of all pieces
    is the whole, once.

    >>> pieces(10, 6, 1)
    [(0, 6, 0, 1), (4, 10, 1, 0)]
    """
    found = []
    start = 0
    while True:
        stop = min(start + size, length)
        last = stop == length
        found.append((start, stop, overlap if start else 0, 0 if last else overlap))
        if last:
            return found
        start += size - 2 * overlap
