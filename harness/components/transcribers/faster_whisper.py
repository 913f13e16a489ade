"""Whisper with CTranslate2 (faster-whisper): the library's `transcribe`, or one window per clip in batches."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError, missing_extra
from ....loaders.records import Samples
from ...processes import local_device_index, threads_per_process, usable_cores
from ...protocols import ComponentSpec, Hypothesis, Setting, Transcript
from ..batches import BatchSize, require_positive
from ..weights import FoundWeights, find_weights
from .common import (
    LOOP_SETTINGS,
    MAX_TOKENS,
    SAMPLE_RATE,
    WINDOW_S,
    Decoded,
    joined_windows,
    minor_version,
    primary_code,
    require_language,
    require_n_best,
    transcribe_batches,
    transcribe_by_kind,
)
from .whisper import (
    COMPRESSION_RATIO,
    LOG_PROBABILITY,
    NO_SPEECH,
    SEED,
    TEMPERATURES,
    Window,
    checked_temperatures,
    confidence,
    require_patience,
)

HUB_MODELS = {
    "whisper-tiny": "Systran/faster-whisper-tiny",
    "whisper-base.en": "Systran/faster-whisper-base.en",
    "whisper-small": "Systran/faster-whisper-small",
    "whisper-small.en": "Systran/faster-whisper-small.en",
    "whisper-medium": "Systran/faster-whisper-medium",
    "whisper-large-v2": "Systran/faster-whisper-large-v2",
    "whisper-large-v3": "Systran/faster-whisper-large-v3",
    "whisper-large-v3-turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo",
}

GPU_FLOAT16 = "gpu_float16"
"""A `compute_type` of ours: float16 on a GPU, float32 on a CPU, which has no float16."""

_CONTEXT = 448  # tokens of prompt and text together
_ENGLISH_ONLY_END = 50256  # the id of <|endoftext|> in English-only vocabularies; multilingual ones have one token more


class FasterWhisperTranscriber:
    """A Whisper model in CTranslate2's format.

    `model` is a packaged name, a name of `HUB_MODELS`, a folder, or a Hub repository (with `revision`). `compute_type`
    is CTranslate2's, or "gpu_float16": float16 on a GPU, float32 on a CPU. `device` is "cpu", "cuda" or "auto",
    `threads` are CPU threads (0: this process's share of the cores).

    The other options are those of `WhisperModel.transcribe` with its defaults: a clip is transcribed as by
    `WhisperModel(model, compute_type=…).transcribe(clip, language=…)`, in windows of 30 s cut at predicted timestamps.
    A window that repeats itself (`compression_ratio_threshold`) or is improbable (`log_prob_threshold`) is decoded
    again at the next `temperature`, where `best_of` candidates are sampled, from the same seed for every clip; one
    temperature alone means that none is. CTranslate2 is seeded once per loaded model, so each clip that was sampled
    costs reading the weights again. `max_tokens` caps a window's text (`truncated`).

    `timestamps` false: a clip of up to 30 s is one window that ends at its first end token, so what follows a pause may
    be lost, and nothing marks it. With temperature 0 and `no_speech_threshold` none, `batch_size` clips are decoded
    together, else one by one by the library. Longer clips have timestamps in any case. `n_best` > 1 gives that many
    hypotheses of the beam, each with its log-probability per token, and takes clips of up to 30 s so, at temperature 0
    and without thresholds; a longer clip has one hypothesis, with the mean score of its windows.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self,
        model: str | Path = "whisper-base",
        *,
        revision: str | None = None,
        compute_type: str = "int8",
        device: str = "auto",
        threads: int = 0,
        batch_size: int = 4,
        beam_size: int = 5,
        max_tokens: int = MAX_TOKENS,
        n_best: int = 1,
        best_of: int = 5,
        temperature: float | Sequence[float] = TEMPERATURES,
        patience: float = 1.0,
        length_penalty: float = 1.0,
        compression_ratio_threshold: float | None = COMPRESSION_RATIO,
        log_prob_threshold: float | None = LOG_PROBABILITY,
        no_speech_threshold: float | None = NO_SPEECH,
        condition_on_previous_text: bool = True,
        timestamps: bool = True,
    ) -> None:
        require_positive(batch_size=batch_size, beam_size=beam_size, max_tokens=max_tokens, best_of=best_of)
        require_n_best(n_best, beam_size)
        require_patience(patience, beam_size)
        temperatures = checked_temperatures(temperature)
        if temperatures[0] and n_best > 1:
            raise UsageError(
                f"temperature {temperatures[0]:g} samples, which has no n_best.", hint="Let temperature begin with 0."
            )
        if threads < 0:
            raise UsageError(f"a transcriber needs threads of at least 0, not {threads}.")
        if device not in ("auto", "cpu", "cuda"):
            raise UsageError(f"faster-whisper has no device {device!r}.", hint="Known: auto, cpu, cuda.")
        if max_tokens > MAX_TOKENS:
            raise UsageError(f"CTranslate2 writes at most {MAX_TOKENS} tokens per window, not {max_tokens}.")
        self._requested = model
        self._revision = revision
        self._asked_compute_type = compute_type
        self._requested_device = device
        self._threads = threads or threads_per_process(usable_cores())
        self._batch_size = BatchSize(batch_size)
        self._max_tokens = max_tokens
        self._n_best = n_best
        self._temperatures = temperatures
        self._timestamps = timestamps
        self._no_speech_threshold = no_speech_threshold
        # Named as the library's `transcribe` has them.
        self._search: dict[str, Any] = {
            "beam_size": beam_size,
            "best_of": best_of,
            "compression_ratio_threshold": compression_ratio_threshold,
            "condition_on_previous_text": condition_on_previous_text,
            "length_penalty": float(length_penalty),
            "log_prob_threshold": log_prob_threshold,
            "no_speech_threshold": no_speech_threshold,
            "patience": float(patience),
        }
        self._drawn = False

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            **self._search,
            "compute_type": self._compute_type,
            "ctranslate2": minor_version("ctranslate2", "ctranslate2", "asr"),
            "device": self._device,
            "faster_whisper": minor_version("faster-whisper", "faster_whisper", "asr"),
            "max_tokens": self._max_tokens,
            "n_best": self._n_best,
            "padding": "zeros after the spectrum",
            "sample_rate": SAMPLE_RATE,
            "short_clips": "one window in batches" if self._in_batches else "transcribe of faster-whisper",
            "task": "transcribe",
            "temperature": list(self._temperatures),
            "timestamps": self._timestamps and self._n_best == 1,
            "window_s": WINDOW_S,
            **({"seed": SEED} if any(self._temperatures) else {}),
            **self._found.provenance,
            **LOOP_SETTINGS,
        }
        return ComponentSpec(
            "transcriber", "faster-whisper", self._name, self._found.model, self._found.revision, settings
        )

    @property
    def weights(self) -> Path:
        return self._found.path

    def supports(self, language: str) -> bool:
        return primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, self._name)

        def of_kind(one_window: int, alike: list[Samples]) -> list[Transcript]:
            return transcribe_batches(
                alike,
                size=self._batch_size if one_window else 1,
                decode=lambda batch: (
                    self._short(batch, code) if one_window else [self._by_library(clip, code) for clip in batch]
                ),
                engine="CTranslate2",
            )

        return transcribe_by_kind(clips, lambda clip: self._in_batches and self._fits(clip), of_kind)

    @property
    def _in_batches(self) -> bool:
        """Whether a clip of up to 30 s needs nothing of what only the library's `transcribe` has."""
        plain = not self._timestamps and self._temperatures == (0.0,) and self._no_speech_threshold is None
        return plain or self._n_best > 1

    @staticmethod
    def _fits(clip: Samples) -> bool:
        return clip.ndim == 1 and clip.size <= WINDOW_S * SAMPLE_RATE

    def _short(self, clips: list[Samples], code: str) -> list[Decoded]:
        """As `transcribe(without_timestamps=True, temperature=0)` without thresholds, several clips together."""
        import ctranslate2
        from faster_whisper.transcribe import get_suppressed_tokens

        tokenizer = self._tokenizer(code)
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        features = [(i, content) for i, clip in enumerate(clips) if (content := self._features(clip)) is not None]
        found = [Decoded("")] * len(clips)
        if not features:
            return found
        results = self._engine.model.generate(
            ctranslate2.StorageView.from_array(np.stack([content for _, content in features])),
            [prompt] * len(features),
            beam_size=self._search["beam_size"],
            patience=self._search["patience"],
            length_penalty=self._search["length_penalty"],
            max_length=self._engine_length(len(prompt)),
            suppress_tokens=get_suppressed_tokens(tokenizer, [-1]),
            suppress_blank=True,
            # Several hypotheses come best first.
            num_hypotheses=self._n_best,
            return_scores=True,
        )
        for (i, _), result in zip(features, results, strict=True):
            found[i] = self._decoded(tokenizer, result)
        return found

    def _decoded(self, tokenizer: Any, result: Any) -> Decoded:
        texts = [tokenizer.decode(ids) for ids in result.sequences_ids]
        first, several = len(result.sequences_ids[0]), self._n_best > 1
        hypotheses = tuple(map(Hypothesis, texts, map(float, result.scores))) if several else ()
        capped = first >= self._max_tokens
        # The score is the sum over length to the power of the penalty; the sum counts the end of the text, if any, too.
        mean = float(result.scores[0]) * first ** self._search["length_penalty"] / (first + (not capped))
        return Decoded(texts[0], capped, hypotheses, confidence([Window(first, mean)]))

    def _features(self, clip: Samples) -> NDArray[np.float32] | None:
        """(bins, 3000) as the library makes them: zeros after the spectrum of the clip; None of less than a frame."""
        from faster_whisper.audio import pad_or_trim

        features = self._engine.feature_extractor(clip.astype(np.float32, copy=False))[:, :-1]
        return np.ascontiguousarray(pad_or_trim(features), dtype=np.float32) if features.shape[-1] else None

    def _by_library(self, clip: Samples, code: str) -> Decoded:
        self._seed()
        segments, _ = self._engine.transcribe(
            clip.astype(np.float32, copy=False),
            language=code,
            task="transcribe",
            temperature=self._temperatures,
            without_timestamps=not self._timestamps and self._fits(clip),
            # The search below puts in what is left beside each window's prompt.
            max_new_tokens=None,
            vad_filter=False,
            **self._search,
        )
        texts: list[str] = []
        # What a capped window wrote after its last timestamp is transcribed again by the next. Only one without is cut.
        written: dict[int, int] = {}
        scores: dict[int, float] = {}
        for segment in segments:  # decoding happens here
            texts.append(segment.text)
            written[segment.seek] = written.get(segment.seek, 0) + len(segment.tokens)
            scores[segment.seek] = segment.avg_logprob
        text = "".join(texts)
        windows = [Window(count, scores[seek]) for seek, count in written.items()]
        hypotheses = joined_windows(text, [(w.log_probability, w.tokens) for w in windows]) if self._n_best > 1 else ()
        return Decoded(text, any(w.tokens >= self._max_tokens for w in windows), hypotheses, confidence(windows))

    def _seed(self) -> None:
        """Let the next clip's sampling start from `SEED`.

        CTranslate2's generator belongs to a thread of the loaded model, and is seeded at its first draw only. So a
        model that has drawn gives way to another one of the same weights.
        """
        if not any(self._temperatures):
            return
        import ctranslate2

        engine = self._engine
        if self._drawn:
            self._drawn = False
            engine.model = None
            engine.model = ctranslate2.models.Whisper(
                str(self._found.path), **self._loading, intra_threads=self._threads
            )
        ctranslate2.set_random_seed(SEED)

    def _engine_length(self, prompt: int) -> int:
        """CTranslate2's `max_length` for `max_tokens` of text: it writes min(max_length / 2, max_length - prompt)."""
        return min(_CONTEXT, max(2 * self._max_tokens, self._max_tokens + prompt))

    def _tokenizer(self, code: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        tokenizer = self._engine.hf_tokenizer
        multilingual = tokenizer.token_to_id("<|endoftext|>") != _ENGLISH_ONLY_END
        return Tokenizer(tokenizer, multilingual, task="transcribe", language=code)

    @cached_property
    def _found(self) -> FoundWeights:
        name = str(self._requested)
        found = find_weights(HUB_MODELS.get(name, self._requested), revision=self._revision)
        missing = [file for file in ("model.bin", "config.json", "tokenizer.json") if not (found.path / file).is_file()]
        if missing:
            raise ModelError(
                f"{found.path} is no Whisper model for CTranslate2: it lacks {', '.join(missing)}.",
                hint="Convert it with ct2-transformers-converter (--copy_files tokenizer.json), or load it with the "
                "backend 'transformers'.",
            )
        return found

    @cached_property
    def _name(self) -> str:
        name = str(self._requested)
        return name if name in HUB_MODELS else self._found.name

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        """Codes that the vocabulary has tokens for, read without loading the weights."""
        try:
            added = json.loads((self._found.path / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
            ids = {token["content"]: token["id"] for token in added}
            end, first = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
            # The languages stand between the start and the first task.
            codes = sorted((i, t[2:-2]) for t, i in ids.items() if first < i < ids["<|translate|>"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"the vocabulary in {self._found.path} is not Whisper's: {error!r}.") from error
        return ("en",) if end == _ENGLISH_ONLY_END else tuple(code for _, code in codes)

    @cached_property
    def _device(self) -> str:
        if self._requested_device != "auto":
            return self._requested_device
        try:
            import ctranslate2
        except ImportError as error:
            raise missing_extra("faster_whisper", "asr") from error
        return "cuda" if ctranslate2.get_cuda_device_count() else "cpu"

    @cached_property
    def _compute_type(self) -> str:
        if self._asked_compute_type != GPU_FLOAT16:
            return self._asked_compute_type
        return "float16" if self._device == "cuda" else "float32"

    @cached_property
    def _loading(self) -> dict[str, Any]:
        index = local_device_index() if self._device == "cuda" else 0
        return {"device": self._device, "device_index": index, "compute_type": self._compute_type}

    @cached_property
    def _engine(self) -> Any:
        found = self._found
        try:
            from faster_whisper import WhisperModel
        except ImportError as error:
            raise missing_extra("faster_whisper", "asr") from error
        try:
            engine = WhisperModel(str(found.path), cpu_threads=self._threads, **self._loading)
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"the weights {self._name!r} cannot be loaded from {found.path} on {self._device} as "
                f"{self._compute_type}: {error}.",
                hint="Check compute_type and device, or give another folder.",
            ) from error
        search = engine.generate_with_fallback

        def watched(encoded: Any, prompt: list[int], tokenizer: Any, options: Any) -> Any:
            room = self._engine_length(len(prompt)) - len(prompt)
            drawn, self._drawn = self._drawn, True  # also if it fails
            found = search(encoded, prompt, tokenizer, dataclasses.replace(options, max_new_tokens=room))
            self._drawn = drawn or found[2] > 0
            return found

        engine.generate_with_fallback = watched
        return engine
