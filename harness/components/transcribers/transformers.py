"""Recognition with any `AutoModelForSpeechSeq2Seq` of transformers, Whisper included."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import BatchSize, require_positive
from ..torch_models import read_config
from ..weights import FoundWeights
from .common import (
    MAX_TOKENS,
    WINDOW_S,
    Decoded,
    primary_code,
    require_language,
    require_n_best,
    transcribe_batches,
    transcribe_by_kind,
)
from .torch_transcriber import TorchTranscriber
from .transformers_models import Architecture, architecture
from .transformers_speech import SpeechDecoder, SpeechSearch
from .transformers_whisper import PIPELINE_BEAM, WhisperDecoder, WhisperSearch, whisper_languages
from .whisper import checked_temperatures

# Kinds of clips for Whisper; for other models the length is the kind.
_LONG, _ONE_WINDOW = -2, -1


class TransformersTranscriber(TorchTranscriber):
    """A speech-to-text model of transformers.

    `model` is a folder, a Hub repository (with `revision`), or `whisper-…` for `openai/whisper-…`. `batch_size` and the
    options of torch are those of `BatchedTorchComponent`.

    `beam_size` 1 is greedy. `n_best` > 1 gives that many hypotheses of the beam with the scores of transformers:
    log-probability over length to the power of the model's length penalty. `max_new_tokens` caps a transcript
    (`truncated`). `languages` are the codes that the model knows; Whisper tells them itself.

    Whisper is decoded as by the library's pipeline "automatic-speech-recognition" with the language: where an option is
    None, the model's generation_config.json decides, else the pipeline (beam 5, at most 256 tokens, no timestamps). So
    a clip of up to 30 s is one window that ends at its first end token: what follows a pause may be lost, and nothing
    marks it. A longer one, or any with `timestamps`, goes through the library's sequential algorithm, each window
    without the text before it unless `condition_on_previous_text`. A window that repeats itself
    (`compression_ratio_threshold`, of token ids here) or is improbable (`logprob_threshold`) is decoded again at the
    next `temperature`, from the same seed for every clip; one temperature alone means that none is. These options are
    Whisper's alone; `n_best` > 1 does without them on clips of up to 30 s.

    Other models are greedy and write at most 224 tokens where an option is None. They take the whole clip, and only
    clips of the same length share a batch: padding changes what they write. `unlisted` runs an architecture that is not
    in the table, asked by the audio alone.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        max_new_tokens: int | None = None,
        timestamps: bool | None = None,
        temperature: float | Sequence[float] = 0.0,
        condition_on_previous_text: bool | None = None,
        compression_ratio_threshold: float | None = None,
        logprob_threshold: float | None = None,
        no_speech_threshold: float | None = None,
        languages: Sequence[str] = (),
        unlisted: bool = False,
        **torch: Any,
    ) -> None:
        require_positive(max_new_tokens=MAX_TOKENS if max_new_tokens is None else max_new_tokens)
        require_n_best(n_best, PIPELINE_BEAM if beam_size is None else beam_size)
        whisper = isinstance(model, str) and model.startswith("whisper-") and not Path(model).exists()
        super().__init__(f"openai/{model}" if whisper else model, **torch)
        self._search = WhisperSearch(
            beam_size,
            n_best,
            max_new_tokens,
            timestamps,
            checked_temperatures(temperature),
            condition_on_previous_text,
            compression_ratio_threshold,
            logprob_threshold,
            no_speech_threshold,
        )
        self._unlisted = unlisted
        self._told_languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        if self._is_whisper:
            return self._spec("transformers", self._search.settings(self._saved))
        listed: dict[str, Setting] = {"unlisted": True} if self._unlisted else {}
        return self._spec("transformers", {**self._speech_search.settings(self._architecture), **listed})

    @cached_property
    def sample_rate(self) -> int:
        return int(self._processor.feature_extractor.sampling_rate)

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, str(self._requested))

        def transcribe(kind: int, alike: list[Samples]) -> list[Transcript]:
            alone = kind == _LONG or (self._is_whisper and self._search.samples)
            return transcribe_batches(
                alike,
                size=1 if alone else self._batch_size,
                decode=lambda batch: self._long(batch, code) if kind == _LONG else self._short(batch, code),
                engine="transformers",
            )

        return transcribe_by_kind(clips, self._kind, transcribe)

    def _kind(self, clip: Samples) -> int:
        if not self._is_whisper:
            return clip.size
        return _LONG if clip.ndim == 1 and clip.size > WINDOW_S * self.sample_rate else _ONE_WINDOW

    def _short(self, clips: list[Samples], code: str) -> list[Decoded]:
        return self._whisper.short(clips, code) if self._is_whisper else self._speech.batch(clips, code)

    def _long(self, clips: list[Samples], code: str) -> list[Decoded]:
        return [self._whisper.long(clip, code) for clip in clips]

    @cached_property
    def _whisper(self) -> WhisperDecoder:
        return WhisperDecoder(
            self._model,
            self._processor,
            search=self._search,
            saved=self._saved,
            torch=self._torch,
            name=str(self._requested),
        )

    @cached_property
    def _architecture(self) -> Architecture:
        model_type = str(self._read("config.json").get("model_type", ""))
        return architecture(model_type, str(self._requested), unlisted=self._unlisted)

    @cached_property
    def _speech_search(self) -> SpeechSearch:
        search, default = self._search, SpeechSearch()
        if search.own:
            raise UsageError(
                f"{self._requested} is no Whisper, which alone has {', '.join(search.own)}.", hint="Leave these out."
            )
        beam_size = search.beam_size or default.beam_size
        require_n_best(search.n_best, beam_size)
        return SpeechSearch(beam_size, search.n_best, search.max_new_tokens or default.max_new_tokens)

    @cached_property
    def _speech(self) -> SpeechDecoder:
        return SpeechDecoder(
            self._model,
            self._processor,
            architecture=self._architecture,
            search=self._speech_search,
            saved=self._saved,
            torch=self._torch,
            name=str(self._requested),
        )

    @cached_property
    def _found(self) -> FoundWeights:
        found = super()._found
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
        return read_config(self._found.path, name) if (self._found.path / name).is_file() else {}

    @cached_property
    def _is_whisper(self) -> bool:
        return self._read("config.json").get("model_type") == "whisper"

    @cached_property
    def _saved(self) -> dict[str, Any]:
        return self._read("generation_config.json")

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        if self._told_languages:
            return self._told_languages
        if self._is_whisper:
            return whisper_languages(self._saved, str(self._requested))
        if self._architecture.languages:
            return tuple(self._architecture.languages)
        raise UsageError(
            f"the model {self._requested} does not say which languages it knows.",
            hint="Give them, for example languages=['en'].",
        )

    @cached_property
    def _batch_size(self) -> BatchSize:
        return self._first_batch_size(self._model)

    @cached_property
    def _processor(self) -> Any:
        return self._torch.load_part("AutoProcessor", self._found.path, name=self._name)

    @cached_property
    def _model(self) -> Any:
        known = None if self._is_whisper else self._architecture
        name, unused = (known.model_class, known.unused) if known else ("AutoModelForSpeechSeq2Seq", ())
        return self._torch.load_model(name, self._found.path, name=self._name, unused=unused)
