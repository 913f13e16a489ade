"""Whisper with CTranslate2 (faster-whisper): many clips in one batch, language forced."""

from __future__ import annotations

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

_FRAMES = WINDOW_S * 100
_ENGLISH_ONLY_END = 50256  # the id of <|endoftext|> in English-only vocabularies; multilingual ones have one token more


class FasterWhisperTranscriber:
    """A Whisper model in CTranslate2's format.

    `model` is a packaged name, a name of `HUB_MODELS`, a folder, or a Hub repository (with `revision`). `compute_type`
    and `device` ("cpu", "cuda", "auto") are CTranslate2's. `threads` are CPU threads (0: this process's share of the
    cores), `batch_size` clips are decoded together. `max_tokens` caps the text of a window of 30 s (`truncated`).

    `beam_size` 1 is greedy. `patience` is that of arXiv 2204.05424. `n_best` > 1 gives that many hypotheses of the
    beam, each with its log-probability per token. `temperature` > 0 samples `best_of` transcripts and keeps the
    likeliest, which CTranslate2 cannot repeat; at temperature 0 `best_of` changes nothing.

    A clip of up to 30 s is one window without timestamps, fallback or thresholds. A longer clip goes through the
    library's own `transcribe`: windows cut at predicted timestamps, each without the text before it unless
    `condition_on_previous_text`; it has one hypothesis, with the mean score of its windows.
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
        beam_size: int = 1,
        max_tokens: int = MAX_TOKENS,
        n_best: int = 1,
        best_of: int = 1,
        temperature: float = 0.0,
        patience: float = 1.0,
        condition_on_previous_text: bool = False,
    ) -> None:
        require_positive(batch_size=batch_size, beam_size=beam_size, max_tokens=max_tokens, best_of=best_of)
        require_n_best(n_best, beam_size)
        if not 0 <= temperature <= 1:
            raise UsageError(f"a temperature is between 0 and 1, not {temperature!r}.")
        if temperature and (n_best > 1 or beam_size > 1):
            raise UsageError(
                f"temperature {temperature:g} samples, which takes neither beam_size nor n_best.",
                hint="Give temperature=0, or best_of instead of beam_size.",
            )
        if not 0 < patience < float("inf"):
            raise UsageError(f"patience is a number above 0, not {patience!r}.")
        if patience != 1 and beam_size == 1:
            raise UsageError("patience needs a beam search.", hint="Give a beam_size above 1.")
        if threads < 0:
            raise UsageError(f"a transcriber needs threads of at least 0, not {threads}.")
        if device not in ("auto", "cpu", "cuda"):
            raise UsageError(f"faster-whisper has no device {device!r}.", hint="Known: auto, cpu, cuda.")
        if max_tokens > MAX_TOKENS:
            raise UsageError(f"CTranslate2 writes at most {MAX_TOKENS} tokens per window, not {max_tokens}.")
        self._requested = model
        self._revision = revision
        self._compute_type = compute_type
        self._requested_device = device
        self._threads = threads or threads_per_process(usable_cores())
        self._batch_size = BatchSize(batch_size)
        self._beam_size = beam_size
        self._max_tokens = max_tokens
        self._n_best = n_best
        self._best_of = best_of
        self._temperature = float(temperature)
        self._patience = float(patience)
        self._condition = condition_on_previous_text

    @cached_property
    def spec(self) -> ComponentSpec:
        return ComponentSpec(
            "transcriber",
            "faster-whisper",
            self._name,
            self._found.model,
            self._found.revision,
            {
                "beam_size": self._beam_size,
                "compute_type": self._compute_type,
                "ctranslate2": minor_version("ctranslate2", "ctranslate2", "asr"),
                "device": self._device,
                "faster_whisper": minor_version("faster-whisper", "faster_whisper", "asr"),
                "long_clips": "sequential windows with timestamps",
                "max_tokens": self._max_tokens,
                "padding": "silence",
                "sample_rate": SAMPLE_RATE,
                "task": "transcribe",
                "temperature": self._temperature,
                "timestamps": False,
                "window_s": WINDOW_S,
                **self._unusual,
                **self._found.provenance,
                **LOOP_SETTINGS,
            },
        )

    @property
    def _unusual(self) -> dict[str, Setting]:
        """Options recorded only where they are not the default: results from before they existed stay valid."""
        options: dict[str, tuple[Setting, Setting]] = {
            "best_of": (self._best_of, 1),
            "condition_on_previous_text": (self._condition, False),
            "n_best": (self._n_best, 1),
            "patience": (self._patience, 1.0),
        }
        return {name: value for name, (value, default) in options.items() if value != default}

    @property
    def weights(self) -> Path:
        return self._found.path

    def supports(self, language: str) -> bool:
        return primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, self._name)
        fits = [clip.ndim == 1 and clip.size <= WINDOW_S * SAMPLE_RATE for clip in clips]
        short = iter(self._batched([c for c, fit in zip(clips, fits, strict=True) if fit], code, self._batch_size))
        long = iter(self._batched([c for c, fit in zip(clips, fits, strict=True) if not fit], code, 1))
        return [next(short if fit else long) for fit in fits]

    def _batched(self, clips: list[Samples], code: str, size: int | BatchSize) -> list[Transcript]:
        def decode(batch: list[Samples]) -> list[Decoded]:
            if batch[0].size > WINDOW_S * SAMPLE_RATE:
                return [self._long(clip, code) for clip in batch]
            return self._short(batch, code)

        return transcribe_batches(clips, size=size, decode=decode, engine="CTranslate2")

    def _short(self, clips: list[Samples], code: str) -> list[Decoded]:
        import ctranslate2

        tokenizer = self._tokenizer(code)
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        features = np.stack([self._features(clip) for clip in clips])
        if self._temperature:
            search = {"sampling_topk": 0, "sampling_temperature": self._temperature, "num_hypotheses": self._best_of}
        else:
            search = {"sampling_topk": 1, "num_hypotheses": self._n_best, "patience": self._patience}
        results = self._engine.model.generate(
            ctranslate2.StorageView.from_array(features),
            [prompt] * len(clips),
            beam_size=self._beam_size,
            max_length=self._engine_length(len(prompt)),
            # The lists of the model's own configuration: no noises, no speaker marks, no blank first.
            suppress_tokens=[-1],
            suppress_blank=True,
            # Several hypotheses come best first.
            return_scores=self._n_best > 1,
            **search,
        )
        return [self._decoded(tokenizer, result) for result in results]

    def _decoded(self, tokenizer: Any, result: Any) -> Decoded:
        first = result.sequences_ids[0]
        hypotheses = (
            tuple(
                Hypothesis(tokenizer.decode(ids), float(score))
                for ids, score in zip(result.sequences_ids, result.scores, strict=True)
            )
            if self._n_best > 1
            else ()
        )
        return Decoded(tokenizer.decode(first), len(first) >= self._max_tokens, hypotheses)

    def _features(self, clip: Samples) -> NDArray[np.float32]:
        padded = np.pad(clip.astype(np.float32, copy=False), (0, WINDOW_S * SAMPLE_RATE - clip.size))
        features = self._engine.feature_extractor(padded)[:, :_FRAMES]
        return np.ascontiguousarray(features, dtype=np.float32)

    def _long(self, clip: Samples, code: str) -> Decoded:
        prompt = self._tokenizer(code).sot_sequence
        segments, _ = self._engine.transcribe(
            clip.astype(np.float32, copy=False),
            language=code,
            task="transcribe",
            beam_size=self._beam_size,
            best_of=self._best_of,
            patience=self._patience,
            temperature=self._temperature,
            condition_on_previous_text=self._condition,
            compression_ratio_threshold=None,
            log_prob_threshold=None,
            no_speech_threshold=None,
            max_new_tokens=self._engine_length(len(prompt)) - len(prompt),
            vad_filter=False,
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
        windows = [(scores[seek], count) for seek, count in written.items()]
        hypotheses = joined_windows(text, windows) if self._n_best > 1 else ()
        return Decoded(text, any(count >= self._max_tokens for count in written.values()), hypotheses)

    def _engine_length(self, prompt: int) -> int:
        """CTranslate2's `max_length` for `max_tokens` of text: it writes min(max_length / 2, max_length - prompt)."""
        return max(2 * self._max_tokens, self._max_tokens + prompt)

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
    def _engine(self) -> Any:
        found = self._found
        try:
            from faster_whisper import WhisperModel
        except ImportError as error:
            raise missing_extra("faster_whisper", "asr") from error
        try:
            return WhisperModel(
                str(found.path),
                device=self._device,
                device_index=local_device_index() if self._device == "cuda" else 0,
                compute_type=self._compute_type,
                cpu_threads=self._threads,
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"the weights {self._name!r} cannot be loaded from {found.path} on {self._device} as "
                f"{self._compute_type}: {error}.",
                hint="Check compute_type and device, or give another folder.",
            ) from error
