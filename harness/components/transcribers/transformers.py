"""Recognition with any `AutoModelForSpeechSeq2Seq` of transformers, Whisper included."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Hypothesis, Setting, Transcript
from ..batches import BatchSize, require_positive
from ..torch_models import imported_transformers, read_config
from ..weights import FoundWeights
from .common import (
    MAX_TOKENS,
    WINDOW_S,
    Decoded,
    joined_windows,
    primary_code,
    require_language,
    require_n_best,
    transcribe_batches,
    transcribe_by_kind,
)
from .torch_transcriber import TorchTranscriber
from .transformers_models import Architecture, architecture
from .transformers_speech import SpeechDecoder, SpeechSearch

# Kinds of clips for Whisper; for other models the length is the kind.
_LONG, _ONE_WINDOW = -2, -1
# transformers gives a beam that never ended -1e9.
_NO_SCORE = -1e8


class TransformersTranscriber(TorchTranscriber):
    """A speech-to-text model of transformers.

    `model` is a folder, a Hub repository (with `revision`), or `whisper-…` for `openai/whisper-…`. `batch_size` and the
    options of torch are those of `BatchedTorchComponent`.

    `beam_size` 1 is greedy. `n_best` > 1 gives that many hypotheses of the beam with the scores of transformers:
    log-probability over length to the power of the model's length penalty. `max_new_tokens` caps a transcript
    (`truncated`). `languages` are the codes that the model knows; Whisper tells them itself.

    Whisper takes a clip of up to 30 s in one window without timestamps; a longer one by the library's sequential
    algorithm at temperature 0, each window without the text before it unless `condition_on_previous_text`, with one
    hypothesis. Other models take the whole clip, and only clips of the same length share a batch: padding changes what
    they write.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        beam_size: int = 1,
        n_best: int = 1,
        max_new_tokens: int = MAX_TOKENS,
        condition_on_previous_text: bool = False,
        languages: Sequence[str] = (),
        unlisted: bool = False,
        **torch: Any,
    ) -> None:
        require_positive(max_new_tokens=max_new_tokens)
        require_n_best(n_best, beam_size)
        whisper = isinstance(model, str) and model.startswith("whisper-") and not Path(model).exists()
        super().__init__(f"openai/{model}" if whisper else model, **torch)
        self._beam_size = beam_size
        self._n_best = n_best
        self._max_new_tokens = max_new_tokens
        self._condition = condition_on_previous_text
        self._unlisted = unlisted
        self._told_languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        if not self._is_whisper:
            listed: dict[str, Setting] = {"unlisted": True} if self._unlisted else {}
            return self._spec("transformers", {**self._speech_search.settings(self._architecture), **listed})
        settings: dict[str, Setting] = {
            "long_clips": "sequential windows with timestamps" if self._is_whisper else "whole",
            "max_new_tokens": self._max_new_tokens,
            "num_beams": self._beam_size,
            "padding": "silence" if self._is_whisper else "none, clips of equal length share a batch",
            "task": "transcribe",
            "temperature": 0.0,
            "timestamps": False,
            **({"window_s": WINDOW_S} if self._is_whisper else {}),
            **self._unusual,
        }
        return self._spec("transformers", settings)

    @property
    def _unusual(self) -> dict[str, Setting]:
        """Options recorded only where they are not the default: results from before they existed stay valid."""
        settings: dict[str, Setting] = {}
        if self._n_best > 1:
            settings["n_best"] = self._n_best
        if self._condition:
            settings["condition_on_previous_text"] = True
        return settings

    @cached_property
    def sample_rate(self) -> int:
        return int(self._processor.feature_extractor.sampling_rate)

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, str(self._requested))

        def transcribe(kind: int, alike: list[Samples]) -> list[Transcript]:
            short = kind != _LONG
            return transcribe_batches(
                alike,
                size=self._batch_size if short else 1,
                decode=lambda batch: self._short(batch, code) if short else [self._long(clip, code) for clip in batch],
                engine="transformers",
            )

        return transcribe_by_kind(clips, self._kind, transcribe)

    def _kind(self, clip: Samples) -> int:
        if not self._is_whisper:
            return clip.size
        return _LONG if clip.ndim == 1 and clip.size > WINDOW_S * self.sample_rate else _ONE_WINDOW

    def _short(self, clips: list[Samples], code: str) -> list[Decoded]:
        if not self._is_whisper:
            return self._speech.batch(clips, code)
        inputs = self._inputs(clips, padding="max_length" if self._is_whisper else True, truncation=self._is_whisper)
        if self._n_best > 1:
            return self._several(inputs, code)
        # One call: otherwise a stray timestamp in the text would make transformers decode the rest of the window again.
        options = {"return_timestamps": False, "force_unique_generate_call": True} if self._is_whisper else {}
        return [self._decoded(row) for row in self._generate(inputs, code, **options).tolist()]

    @cached_property
    def _architecture(self) -> Architecture:
        model_type = str(self._read("config.json").get("model_type", ""))
        return architecture(model_type, str(self._requested), unlisted=self._unlisted)

    @property
    def _speech_search(self) -> SpeechSearch:
        return SpeechSearch(self._beam_size, self._n_best, self._max_new_tokens)

    @cached_property
    def _speech(self) -> SpeechDecoder:
        return SpeechDecoder(
            self._model,
            self._processor,
            architecture=self._architecture,
            search=self._speech_search,
            saved=self._read("generation_config.json"),
            torch=self._torch,
            name=str(self._requested),
        )

    def _several(self, inputs: Any, code: str) -> list[Decoded]:
        options = {
            "num_return_sequences": self._n_best,
            "return_dict_in_generate": True,
            "output_scores": True,  # otherwise the scores of the sequences are thrown away too
        }
        if self._is_whisper:
            # Whisper's own `generate` runs the same search n times, for the best of each. So the search of all models
            # is called, with Whisper's prompt.
            search = imported_transformers().GenerationMixin.generate
            prompt = self._prompt(code, len(inputs["input_features"]))
            output = self._called(search, self._model, **inputs, decoder_input_ids=prompt, **options)
            sequences = output.sequences[:, prompt.shape[1] :]
        else:
            output = self._generate(inputs, code, **options)
            sequences = output.sequences
        rows, scores, n = sequences.tolist(), output.sequences_scores.tolist(), self._n_best
        return [
            self._decoded(rows[i], tuple(zip(rows[i : i + n], scores[i : i + n], strict=True)))
            for i in range(0, len(rows), n)
        ]

    def _prompt(self, code: str, number: int) -> Any:
        """(number, prompt) ids: start, language, task, no timestamps."""
        import torch

        known = self._model.generation_config
        ids = [known.decoder_start_token_id]
        if self._is_multilingual:
            ids += [known.lang_to_id[f"<|{code}|>"], known.task_to_id["transcribe"]]
        ids.append(known.no_timestamps_token_id)
        return torch.tensor([ids] * number, device=self._model.device)

    def _long(self, clip: Samples, code: str) -> Decoded:
        inputs = self._inputs([clip], padding="longest", truncation=False)
        several = {"return_dict_in_generate": True, "output_scores": True} if self._n_best > 1 else {}
        output = self._generate(
            inputs,
            code,
            return_timestamps=True,
            return_segments=True,
            temperature=0.0,
            condition_on_prev_tokens=self._condition,
            **several,
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
        truncated = any(count >= self._max_new_tokens for count in written.values())
        if not several:
            return Decoded(text, truncated)
        scores = {id(segment["result"]): float(segment["result"]["sequences_scores"]) for segment in segments}
        return Decoded(text, truncated, joined_windows(text, [(scores[w], count) for w, count in written.items()]))

    def _inputs(self, clips: list[Samples], *, padding: str | bool, truncation: bool) -> Any:
        try:
            inputs = self._processor.feature_extractor(
                [clip.astype("float32", copy=False) for clip in clips],
                sampling_rate=self.sample_rate,
                padding=padding,
                truncation=truncation,
                return_attention_mask=True,
                return_tensors="pt",
            )
        except (ValueError, IndexError) as error:  # fewer samples than one window of the spectrum, most often
            raise RuntimeError(f"the feature extractor refuses the clip ({error})") from error
        return inputs.to(self._model.device, dtype=self._model.dtype)

    def _generate(self, inputs: Any, code: str, **options: Any) -> Any:
        if self._is_whisper and self._is_multilingual:
            options |= {"language": code, "task": "transcribe"}
        return self._called(self._model.generate, **inputs, **options)

    def _called(self, search: Any, *arguments: Any, **options: Any) -> Any:
        options |= {"do_sample": False, "num_beams": self._beam_size, "max_new_tokens": self._max_new_tokens}
        try:
            with self._torch.inference(self._model):
                return search(*arguments, **options)
        except ValueError as error:  # its settings contradict what is asked, whatever the clip
            raise ModelError(
                f"the model {self._requested} refuses to decode: {error}.",
                hint="Check its generation_config.json and max_new_tokens.",
            ) from error
        except IndexError as error:  # transformers looks for the last token of a search that wrote none
            raise RuntimeError(f"the search found nothing that the model may write ({error})") from error

    def _decoded(self, row: list[int], several: Sequence[tuple[list[int], float]] = ()) -> Decoded:
        """What a row of generated ids says, beside other hypotheses (ids, score)."""
        hypotheses = tuple(Hypothesis(self._text(ids)[0], score) for ids, score in several if score > _NO_SCORE)
        return Decoded(*self._text(row), hypotheses)

    def _text(self, row: list[int]) -> tuple[str, bool]:
        tokenizer = self._processor.tokenizer
        kept = [i for i in row if i not in self._special]
        return tokenizer.decode(kept, skip_special_tokens=True), len(kept) >= self._max_new_tokens

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self._processor.tokenizer.all_special_ids)

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
    def _is_multilingual(self) -> bool:
        return bool(self._read("generation_config.json").get("is_multilingual", False))

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        if self._told_languages:
            return self._told_languages
        if not self._is_whisper:
            if self._architecture.languages:
                return tuple(self._architecture.languages)
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
