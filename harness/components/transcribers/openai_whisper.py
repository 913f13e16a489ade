"""Whisper as OpenAI published it (openai-whisper): `load_model` and `transcribe`, one clip at a time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import ModelError, UsageError, missing_extra, unknown_name
from ....loaders.records import Samples
from ...processes import local_device_index
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import require_positive
from .common import (
    LOOP_SETTINGS,
    MAX_TOKENS,
    SAMPLE_RATE,
    WINDOW_S,
    Decoded,
    minor_version,
    primary_code,
    require_language,
    transcribe_batches,
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

DTYPES = ("auto", "float32", "float16")

_MULTILINGUAL = 51865  # tokens of the vocabulary of multilingual models; `large-v3` has one more language
_LANGUAGES = 99


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """`source` is what `load_model` takes, `file` the name of the file, `revision` the sha256 of its bytes."""

    source: str
    file: str
    revision: str
    languages: int


class OpenAIWhisperTranscriber:
    """A checkpoint of OpenAI's own implementation, decoded by its `transcribe`.

    `model` is a name of the package (`tiny.en`, `large-v3`, …, also written `whisper-base`), or the path of a
    checkpoint (`.pt`). `device` is "auto" or a torch device, `dtype` "float32", "float16" (not on a CPU) or "auto", as
    the package: float16 on a GPU, float32 on a CPU. `threads` is the number of CPU threads, 0 for torch's own.

    All other options are those of `whisper.transcribe` with its defaults: a clip is transcribed as by
    `whisper.transcribe(model, clip, language=…)`, in windows of 30 s cut at predicted timestamps, each with the text
    before it as prompt unless `condition_on_previous_text` is false. `beam_size` 1 is greedy (the package says None;
    its command line has `beam_size` 5 and `best_of` 5). A window that repeats itself (`compression_ratio_threshold`) or
    is improbable (`logprob_threshold`) is decoded again at the next `temperature`, where `best_of` candidates are
    sampled, from the same seed for every clip; one temperature alone means that none is. `max_tokens` is `sample_len`.
    The package tells only the best hypothesis.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self,
        model: str | Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        threads: int = 0,
        beam_size: int = 1,
        best_of: int = 1,
        temperature: float | Sequence[float] = TEMPERATURES,
        patience: float = 1.0,
        length_penalty: float | None = None,
        max_tokens: int = MAX_TOKENS,
        timestamps: bool = True,
        condition_on_previous_text: bool = True,
        compression_ratio_threshold: float | None = COMPRESSION_RATIO,
        logprob_threshold: float | None = LOG_PROBABILITY,
        no_speech_threshold: float | None = NO_SPEECH,
    ) -> None:
        require_positive(beam_size=beam_size, best_of=best_of, max_tokens=max_tokens)
        if threads < 0:
            raise UsageError(f"a transcriber needs threads of at least 0, not {threads}.")
        if dtype not in DTYPES:
            raise UsageError(f"unknown dtype {dtype!r}.", hint=f"Known: {', '.join(DTYPES)}.")
        temperatures = checked_temperatures(temperature)
        require_patience(patience, beam_size)
        if length_penalty is not None and not 0 <= length_penalty <= 1:
            raise UsageError(f"a length_penalty is between 0 and 1, or none, not {length_penalty!r}.")
        self._requested = model
        self._requested_device = device
        self._asked_dtype = dtype
        self._threads = threads
        self._beam_size = beam_size
        self._temperatures = temperatures
        self._timestamps = timestamps
        self._max_tokens = max_tokens
        self._decoding: dict[str, Setting] = {
            "best_of": best_of,
            "compression_ratio_threshold": compression_ratio_threshold,
            "condition_on_previous_text": condition_on_previous_text,
            "length_penalty": length_penalty,
            "logprob_threshold": logprob_threshold,
            "no_speech_threshold": no_speech_threshold,
            "patience": float(patience),
        }

    @cached_property
    def spec(self) -> ComponentSpec:
        found = self._checkpoint
        return ComponentSpec(
            "transcriber",
            "openai-whisper",
            f"whisper-{found.file.removesuffix('.pt')}"
            if found.source == found.file.removesuffix(".pt")
            else found.file,
            found.file,
            f"sha256:{found.revision}",
            {
                **self._decoding,
                "beam_size": self._beam_size,
                "device": self._device.split(":", maxsplit=1)[0],
                "dtype": self._dtype,
                "max_tokens": self._max_tokens,
                "openai_whisper": minor_version("openai-whisper", "whisper", "openai-whisper"),
                "sample_rate": SAMPLE_RATE,
                "task": "transcribe",
                "temperature": list(self._temperatures),
                "timestamps": self._timestamps,
                "torch": minor_version("torch", "torch", "torch"),
                "window_s": WINDOW_S,
                **({"seed": SEED} if any(self._temperatures) else {}),
                **LOOP_SETTINGS,
            },
        )

    @property
    def weights(self) -> Path | None:
        found = self._checkpoint
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whisper"
        path = Path(found.source) if found.source.endswith(found.file) else cache / found.file
        return path if path.is_file() else None

    def supports(self, language: str) -> bool:
        return primary_code(language) in self._languages

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, str(self._requested))

        def decode(batch: list[Samples]) -> list[Decoded]:
            return [self._decoded(clip, code) for clip in batch]

        with self._running():
            return transcribe_batches(clips, size=1, decode=decode, engine="openai-whisper")

    def _decoded(self, clip: Samples, code: str) -> Decoded:
        import torch

        model = self._model  # before the seed: making a model draws numbers
        if any(self._temperatures):
            torch.manual_seed(SEED)
        result = model.transcribe(
            np.array(clip, dtype=np.float32),
            language=code,
            task="transcribe",
            temperature=self._temperatures,
            fp16=self._dtype == "float16",
            sample_len=self._max_tokens,
            without_timestamps=not self._timestamps,
            **self._search,
        )
        # What a capped window wrote after its last timestamp is transcribed again by the next. Only one without is cut.
        written: dict[int, int] = {}
        scores: dict[int, float] = {}
        for segment in result["segments"]:
            written[segment["seek"]] = written.get(segment["seek"], 0) + len(segment["tokens"])
            scores[segment["seek"]] = segment["avg_logprob"]
        windows = [Window(count, scores[seek]) for seek, count in written.items()]
        truncated = any(w.tokens >= self._max_tokens for w in windows)
        return Decoded(result["text"], truncated, confidence=confidence(windows))

    @cached_property
    def _search(self) -> dict[str, Any]:
        """What the package wants None for where it does not apply."""
        options: dict[str, Any] = dict(self._decoding)
        options["beam_size"] = self._beam_size if self._beam_size > 1 else None
        if self._beam_size == 1:
            options["patience"] = None
        return options

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """`threads` and the seed are torch's, for the whole process: what was set before comes back."""
        import torch

        before = torch.get_num_threads()
        if self._threads:
            torch.set_num_threads(self._threads)
        try:
            with torch.random.fork_rng(enabled=any(self._temperatures)):
                yield
        finally:
            torch.set_num_threads(before)

    @cached_property
    def _checkpoint(self) -> _Checkpoint:
        name = str(self._requested)
        if isinstance(self._requested, str):
            urls: dict[str, str] = self._package._MODELS
            url = urls.get(name, urls.get(name.removeprefix("whisper-"), ""))
            if url:
                sha256, file = url.split("/")[-2:]
                if not re.fullmatch(r"[0-9a-f]{64}", sha256):
                    raise ModelError(f"openai-whisper lists no sha256 for {name!r}, but {url}.", hint="Give a path.")
                languages = 0 if ".en." in file else _LANGUAGES + ("-v3" in file)
                return _Checkpoint(file.removesuffix(".pt"), file, sha256, languages)
        path = Path(self._requested).expanduser()
        if not path.is_file():
            if isinstance(self._requested, str) and not re.search(r"[/\\]|\.pt$", name):
                raise unknown_name("checkpoint of openai-whisper:", name, [*urls, "<path>.pt"])
            raise ModelError(f"there is no checkpoint at {name}.", hint="Give a .pt file, or a name such as base.")
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return _Checkpoint(str(path), path.name, sha256, self._languages_in(path))

    def _languages_in(self, path: Path) -> int:
        import torch

        try:
            content = torch.load(path, map_location="meta", weights_only=True)
            vocabulary = int(content["dims"]["n_vocab"])
        except Exception as error:  # torch, pickle and zipfile each have their own
            raise ModelError(
                f"{path} is no checkpoint of openai-whisper: {error!r}.",
                hint="For a model of transformers or CTranslate2 take the backend of that name.",
            ) from error
        return 0 if vocabulary < _MULTILINGUAL else vocabulary - _MULTILINGUAL + _LANGUAGES

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        number = self._checkpoint.languages
        if not number:
            return ("en",)
        from whisper.tokenizer import LANGUAGES

        return tuple(LANGUAGES)[:number]

    @cached_property
    def _device(self) -> str:
        import torch

        device = self._requested_device
        if device == "auto":
            gpus = torch.cuda.device_count()
            device = f"cuda:{local_device_index() % gpus}" if gpus else "cpu"
        if self._asked_dtype == "float16" and device == "cpu":
            raise UsageError("openai-whisper has no float16 on a CPU.", hint="Give dtype='auto' or 'float32'.")
        return device

    @property
    def _dtype(self) -> str:
        if self._asked_dtype != "auto":
            return self._asked_dtype
        return "float32" if self._device == "cpu" else "float16"

    @property
    def _package(self) -> Any:
        try:
            import whisper
        except ImportError as error:
            raise missing_extra("whisper", "openai-whisper") from error
        return whisper

    @cached_property
    def _model(self) -> Any:
        found = self._checkpoint
        try:
            return self._package.load_model(found.source, device=self._device).eval()
        except (OSError, RuntimeError, KeyError, TypeError) as error:
            raise ModelError(
                f"the checkpoint {found.file} cannot be loaded on {self._device}: {error}.",
                hint="Check the network, the device, or give the path of a checkpoint.",
            ) from error
