"""Speech-to-text models of transformers other than Whisper, each asked as its architecture has it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....errors import ModelError
from ....loaders.records import Samples
from ...protocols import Hypothesis, Setting
from ..generation import end_tokens
from ..torch_models import TorchOptions, imported_torch
from .common import MAX_TOKENS, Decoded
from .greedy_scores import GreedyScores
from .torch_transcriber import NO_SCORE, searching
from .transformers_models import Architecture

_LANGUAGE_IDS = "text_decoder_lang_to_code_id"


@dataclass(frozen=True, slots=True)
class SpeechSearch:
    """How `generate` is called."""

    beam_size: int = 1
    n_best: int = 1
    max_new_tokens: int = MAX_TOKENS

    def settings(self, architecture: Architecture) -> dict[str, Setting]:
        """What decides the transcripts, for a spec."""
        return {
            **({"language": "not forced"} if architecture.asked == "audio alone" else {}),
            **({"n_best": self.n_best} if self.n_best > 1 else {}),
            "asked": architecture.asked,
            "long_clips": "whole",
            "max_new_tokens": self.max_new_tokens,
            "num_beams": self.beam_size,
            "padding": "none, clips of equal length share a batch",
            "temperature": 0.0,
        }


@dataclass(frozen=True, slots=True)
class _Request:
    """`inputs` and `options` of `generate`, and the ids ((N, prompt), or None) that its output begins with."""

    inputs: Any
    options: dict[str, Any]
    prompt: Any = None


class SpeechDecoder:
    """`search` done by a loaded `model` with its `processor`; `saved` is the content of its generation_config.json."""

    def __init__(
        self,
        model: Any,
        processor: Any,
        *,
        architecture: Architecture,
        search: SpeechSearch,
        saved: Mapping[str, Any],
        torch: TorchOptions,
        name: str,
    ) -> None:
        if architecture.asked == "generate" and not hasattr(model.generation_config, _LANGUAGE_IDS):
            # transformers leaves it out where the file says that it was made from the model's configuration.
            setattr(model.generation_config, _LANGUAGE_IDS, saved.get(_LANGUAGE_IDS, {}))
        self._model = model
        self._processor = processor
        self._architecture = architecture
        self._search = search
        self._torch = torch
        self._name = name

    def batch(self, clips: list[Samples], code: str) -> list[Decoded]:
        """Clips of equal length."""
        try:
            request = self._request([clip.astype("float32", copy=False) for clip in clips], code)
        except (ValueError, IndexError) as error:  # fewer samples than one window of the spectrum, most often
            raise RuntimeError(f"the processor refuses the clip ({error})") from error
        joined = request.inputs.pop("audio_chunk_index", None)
        inputs = request.inputs.to(self._model.device, dtype=self._model.dtype)
        watched = GreedyScores()
        options: dict[str, Any] = {
            "do_sample": False,
            "max_new_tokens": self._search.max_new_tokens,
            "num_beams": self._search.beam_size,
            "return_dict_in_generate": True,
            **request.options,
        }
        n = self._search.n_best
        if n > 1:
            # Without output_scores those of the sequences are thrown away too.
            options |= {"num_return_sequences": n, "output_scores": True}
        elif self._search.beam_size == 1:
            options["logits_processor"] = [watched]
        with searching(self._torch, self._model, self._name):
            output = self._model.generate(**inputs, **options)
        rows = [self._new(row, request.prompt) for row in output.sequences.tolist()]
        if n > 1:
            scores = output.sequences_scores.tolist()
            return [self._several(rows[i : i + n], scores[i : i + n]) for i in range(0, len(rows), n)]
        found = [self._one(row, watched.mean(i, self._length(row))) for i, row in enumerate(rows)]
        return found if joined is None else self._joined(found, rows, joined, code)

    def _request(self, clips: list[Samples], code: str) -> _Request:
        known, processor = self._architecture, self._processor
        if known.asked in ("audio alone", "first token"):
            return _Request(self._features(clips), self._first_token(code))
        language = known.languages.get(code, code)
        if known.asked == "generate":
            features = self._features(clips)
            ids = getattr(self._model.generation_config, _LANGUAGE_IDS, {})
            if language not in ids:
                raise ModelError(
                    f"the generation_config.json of {self._name} has no token for the language {language!r} ({code}).",
                    hint="Take the file from the original model, or give its languages.",
                )
            prompt = imported_torch().tensor([[ids[language]]] * len(clips))
            return _Request(features, {known.argument: language}, prompt)
        if known.asked == "processor":
            inputs = processor(clips, sampling_rate=self.sample_rate, **{known.argument: language})
        else:
            inputs = processor.apply_transcription_request(
                audio=clips, return_tensors="pt", **{known.argument: language}
            )
        return _Request(inputs, {}, inputs.get("decoder_input_ids", inputs.get("input_ids")))

    def _features(self, clips: list[Samples]) -> Any:
        # By the processor, which may pad to whole frames (Moonshine Streaming), not by its feature extractor.
        return self._processor(
            audio=clips, sampling_rate=self.sample_rate, padding=True, return_attention_mask=True, return_tensors="pt"
        )

    def _first_token(self, code: str) -> dict[str, Any]:
        """The tokens of languages are the tokenizer's: `es`, or `es_XX`. Without any it knows one language only."""
        if self._architecture.asked == "audio alone":
            return {}
        known: dict[str, int] = getattr(self._processor.tokenizer, "lang_code_to_id", None) or {}
        if not known:
            return {}
        found = [token for name, token in known.items() if name.split("_")[0] == code]
        if not found:
            raise ModelError(
                f"the tokenizer of {self._name} has no token for the language {code!r}.",
                hint=f"It has those of {', '.join(sorted({name.split('_')[0] for name in known}))}.",
            )
        return {"forced_bos_token_id": found[0]}

    def _new(self, row: list[int], prompt: Any) -> list[int]:
        """What was written after the prompt."""
        if prompt is None:
            return row[1:]
        first = int(prompt[0, 0])
        # transformers puts the start before a decoder's prompt that does not begin with it.
        added = bool(self._model.config.is_encoder_decoder) and row[0] != first
        return row[prompt.shape[1] + added :]

    def _length(self, row: list[int]) -> int:
        """How many tokens of a row were written, the end included."""
        return next((i + 1 for i, token in enumerate(row) if token in self._ends), len(row))

    def _one(self, row: list[int], confidence: float = math.nan) -> Decoded:
        written = row[: self._length(row)]
        text, kept = self._text(written)
        cut = len(written) >= self._search.max_new_tokens and written[-1] not in self._ends
        return Decoded(text, cut, confidence=confidence if kept else math.nan)

    def _several(self, rows: Sequence[list[int]], scores: Sequence[float]) -> Decoded:
        hypotheses = tuple(
            Hypothesis(self._text(row)[0], score) for row, score in zip(rows, scores, strict=True) if score > NO_SCORE
        )
        best = self._one(rows[0])
        plain = getattr(self._model.generation_config, "length_penalty", 1.0) in (None, 1.0)
        sure = math.exp(min(0.0, scores[0])) if plain and best.text and scores[0] > NO_SCORE else math.nan
        return Decoded(best.text, best.truncated, hypotheses, sure)

    def _joined(self, found: list[Decoded], rows: list[list[int]], index: Any, code: str) -> list[Decoded]:
        """One text of the pieces that the processor made of a long clip."""
        texts = self._processor.decode(
            [row[: self._length(row)] for row in rows], audio_chunk_index=index, language=code, skip_special_tokens=True
        )
        pieces: list[list[Decoded]] = [[] for _ in texts]
        for (clip, _), piece in zip(index, found, strict=True):
            pieces[clip].append(piece)
        return [
            Decoded(text, any(p.truncated for p in of), confidence=of[0].confidence if len(of) == 1 else math.nan)
            for text, of in zip(texts, pieces, strict=True)
        ]

    def _text(self, row: list[int]) -> tuple[str, bool]:
        kept = [i for i in row if i not in self._special]
        return str(self._processor.tokenizer.decode(kept, skip_special_tokens=True)), bool(kept)

    @property
    def sample_rate(self) -> int:
        return int(self._processor.feature_extractor.sampling_rate)

    @cached_property
    def _ends(self) -> frozenset[int]:
        return end_tokens(self._model)

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self._processor.tokenizer.all_special_ids)
