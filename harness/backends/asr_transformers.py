"""Recognition with any `AutoModelForSpeechSeq2Seq` of transformers, Whisper included."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import ModelError, UsageError, missing_extra
from ...loaders.records import Samples
from ..protocols import ComponentSpec, Transcript
from .asr_common import (
    LOOP_SETTINGS,
    MAX_TOKENS,
    WINDOW_S,
    minor_version,
    primary_code,
    require_language,
    require_positive,
    transcribe_batches,
)
from .weights import FoundWeights, find_weights

DTYPES = ("float32", "float16", "bfloat16")


class TransformersTranscriber:
    """A speech-to-text model of transformers.

    `model` is a folder, a Hub repository (with `revision`), or `whisper-…` for `openai/whisper-…`. `device` is "auto"
    (CUDA, then MPS, then CPU) or a torch device. `threads` is the number of CPU threads, 0 for torch's own,
    `batch_size` how many clips are decoded together. Decoding is greedy; `max_new_tokens` caps a transcript, which is
    then marked `truncated`. `languages` are the codes that the model knows: Whisper tells them itself, other models
    must be told, and they get no language token, as they have none.

    Whisper hears a clip of up to 30 s in one window padded with silence, without timestamps; a longer one by the
    library's sequential algorithm, with timestamps, at temperature 0, without thresholds. Others hear the whole clip.

    Weights are looked up at the first use of `spec`, and loaded at the first `transcribe`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        threads: int = 0,
        batch_size: int = 8,
        max_new_tokens: int = MAX_TOKENS,
        languages: Sequence[str] = (),
    ) -> None:
        require_positive(batch_size=batch_size, max_new_tokens=max_new_tokens)
        if threads < 0:
            raise UsageError(f"a transcriber needs threads of at least 0, not {threads}.")
        if dtype not in DTYPES:
            raise UsageError(f"unknown dtype {dtype!r}.", hint=f"Known: {', '.join(DTYPES)}.")
        whisper = isinstance(model, str) and model.startswith("whisper-") and not Path(model).exists()
        self._requested = f"openai/{model}" if whisper else model
        self._revision = revision
        self._requested_device = device
        self._dtype = dtype
        self._threads = threads
        self._batch_size = batch_size
        self._max_new_tokens = max_new_tokens
        self._told_languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        """What decides the transcripts. Raises `ModelError` if the weights are not to be found."""
        return ComponentSpec(
            "transcriber",
            "transformers",
            self._found.model.rsplit("/", maxsplit=1)[-1],
            self._found.model,
            self._found.revision,
            {
                "device": self._device.split(":", maxsplit=1)[0],
                "dtype": self._dtype,
                "long_clips": "sequential windows with timestamps" if self._is_whisper else "whole",
                "max_new_tokens": self._max_new_tokens,
                "num_beams": 1,
                "padding": "silence" if self._is_whisper else "longest of the batch, masked",
                "sample_rate": self.sample_rate,
                "task": "transcribe",
                "temperature": 0.0,
                "timestamps": False,
                "torch": minor_version("torch", "torch", "torch"),
                "transformers": minor_version("transformers", "transformers", "torch"),
                **({"window_s": WINDOW_S} if self._is_whisper else {}),
                **LOOP_SETTINGS,
            },
        )

    @cached_property
    def sample_rate(self) -> int:
        """What the model's feature extractor says, in Hz."""
        return int(self._processor.feature_extractor.sampling_rate)

    def supports(self, language: str) -> bool:
        """Whether the model knows this language, by its own list or by the one given."""
        return primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        """One transcript per clip ((T,) float32 at `sample_rate`), in order; [] for no clips.

        A clip that is empty, not finite or not (T,), and one that the engine fails on, has `error`.
        Raises `UnknownNameError` for a language that the model does not know, `ModelError` if it cannot be loaded.
        """
        code = require_language(language, self._languages, str(self._requested))
        fits = [not self._is_whisper or clip.ndim != 1 or clip.size <= WINDOW_S * self.sample_rate for clip in clips]

        def short(batch: list[Samples]) -> list[tuple[str, bool]]:
            return self._short(batch, code)

        def long(batch: list[Samples]) -> list[tuple[str, bool]]:
            return [self._long(clip, code) for clip in batch]

        with self._torch_threads():
            near = iter(
                transcribe_batches(
                    [clip for clip, fit in zip(clips, fits, strict=True) if fit],
                    size=self._batch_size,
                    decode=short,
                    engine="transformers",
                )
            )
            far = iter(
                transcribe_batches(
                    [clip for clip, fit in zip(clips, fits, strict=True) if not fit],
                    size=1,
                    decode=long,
                    engine="transformers",
                )
            )
            return [next(near if fit else far) for fit in fits]

    def _short(self, clips: list[Samples], code: str) -> list[tuple[str, bool]]:
        inputs = self._inputs(clips, padding="max_length" if self._is_whisper else True, truncation=self._is_whisper)
        # One call: otherwise a stray timestamp in the text would make transformers hear the rest of the window again.
        options = {"return_timestamps": False, "force_unique_generate_call": True} if self._is_whisper else {}
        return self._written(self._generate(inputs, code, **options))

    def _long(self, clip: Samples, code: str) -> tuple[str, bool]:
        inputs = self._inputs([clip], padding="longest", truncation=False)
        output = self._generate(
            inputs, code, return_timestamps=True, return_segments=True, temperature=0.0, condition_on_prev_tokens=False
        )
        (segments,) = output["segments"]
        text = "".join(
            self._processor.tokenizer.decode(segment["tokens"], skip_special_tokens=True) for segment in segments
        )
        written: dict[int, int] = {}
        # The segments of one window share its result. What a capped window wrote after its last timestamp is not lost:
        # the next window begins there. Only a window without timestamps is cut.
        for segment in segments:
            window = id(segment["result"])
            written[window] = written.get(window, 0) + len(segment["tokens"])
        return text, any(count >= self._max_new_tokens for count in written.values())

    def _inputs(self, clips: list[Samples], *, padding: str | bool, truncation: bool) -> Any:
        import torch

        inputs = self._processor.feature_extractor(
            [clip.astype("float32", copy=False) for clip in clips],
            sampling_rate=self.sample_rate,
            padding=padding,
            truncation=truncation,
            return_attention_mask=True,
            return_tensors="pt",
        )
        return inputs.to(self._device, dtype=getattr(torch, self._dtype))

    def _generate(self, inputs: Any, code: str, **options: Any) -> Any:
        import torch

        if self._is_whisper and self._is_multilingual:
            options |= {"language": code, "task": "transcribe"}
        try:
            with torch.inference_mode(), _quiet():
                return self._model.generate(
                    **inputs, do_sample=False, num_beams=1, max_new_tokens=self._max_new_tokens, **options
                )
        except ValueError as error:  # its settings contradict what is asked, whatever the clip
            raise ModelError(
                f"the model {self._requested} refuses to decode: {error}.",
                hint="Check its generation_config.json and max_new_tokens.",
            ) from error

    def _written(self, sequences: Any) -> list[tuple[str, bool]]:
        """(text, truncated) of each row of generated ids."""
        tokenizer = self._processor.tokenizer
        special = set(tokenizer.all_special_ids)
        rows = [[i for i in row if i not in special] for row in sequences.tolist()]
        return [(tokenizer.decode(row, skip_special_tokens=True), len(row) >= self._max_new_tokens) for row in rows]

    @contextlib.contextmanager
    def _torch_threads(self) -> Iterator[None]:
        """`threads` for the time of a call: torch knows only one number for the whole process."""
        if not self._threads:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @cached_property
    def _found(self) -> FoundWeights:
        found = find_weights(self._requested, revision=self._revision)
        # The processor is one file or, in older models, several.
        needed = (("config.json",), ("processor_config.json", "preprocessor_config.json"))
        for names in needed:
            if not any((found.path / name).is_file() for name in names):
                raise ModelError(
                    f"{found.path} is no speech model for transformers: it lacks {' or '.join(names)}.",
                    hint="Give a model saved with its processor, or load it with the backend 'faster-whisper'.",
                )
        return found

    def _read(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads((self._found.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ModelError(f"{self._found.path / name} cannot be read: {error}.") from error
        return content if isinstance(content, dict) else {}

    @cached_property
    def _is_whisper(self) -> bool:
        return self._read("config.json").get("model_type") == "whisper"

    @cached_property
    def _is_multilingual(self) -> bool:
        return bool(self._read("generation_config.json").get("is_multilingual", False))

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        if self._told_languages:
            return self._told_languages
        if not self._is_whisper:
            raise UsageError(
                f"the model {self._requested} does not say which languages it knows.",
                hint="Give them, for example languages=['en'].",
            )
        if not self._is_multilingual:
            return ("en",)
        codes = tuple(token[2:-2] for token in self._read("generation_config.json").get("lang_to_id", {}))
        if not codes:
            raise ModelError(
                f"the generation_config.json of {self._requested} lists no languages (lang_to_id).",
                hint="Take the file from the openai/whisper model that it was trained from.",
            )
        return codes

    @cached_property
    def _device(self) -> str:
        if self._requested_device != "auto":
            return self._requested_device
        try:
            import torch
        except ImportError as error:
            raise missing_extra("torch", "torch") from error
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    @cached_property
    def _processor(self) -> Any:
        try:
            from transformers import AutoProcessor
        except ImportError as error:
            raise missing_extra("transformers", "torch") from error
        try:
            # transformers leaves this one function without types.
            return AutoProcessor.from_pretrained(str(self._found.path))  # type: ignore[no-untyped-call]
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"the processor in {self._found.path} cannot be loaded: {error}.") from error

    @cached_property
    def _model(self) -> Any:
        try:
            import torch
            from transformers import AutoModelForSpeechSeq2Seq
        except ImportError as error:
            raise missing_extra("transformers", "torch") from error
        try:
            with _quiet():
                model = AutoModelForSpeechSeq2Seq.from_pretrained(
                    str(self._found.path), dtype=getattr(torch, self._dtype)
                )
            return model.to(self._device).eval()
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ModelError(
                f"the model in {self._found.path} cannot be loaded on {self._device}: {error}.",
                hint="Check device and dtype, or give another model.",
            ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
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
