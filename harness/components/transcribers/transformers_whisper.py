"""Whisper with transformers: its `generate`, called as the library's pipeline calls it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ....errors import ModelError, UsageError
from ....loaders.records import Samples
from ...protocols import Hypothesis, Setting
from ..torch_models import TorchOptions, imported_torch, imported_transformers
from .common import WINDOW_S, Decoded, joined_windows
from .torch_transcriber import NO_SCORE, searching
from .whisper import SEED, Window, confidence

PIPELINE_BEAM, PIPELINE_TOKENS = 5, 256
"""What the library's pipeline for speech recognition takes where the model's generation settings have no value."""
# A text before a window is at most half of the context, less one token and plus three of the prompt.
_CONTEXT, _LONGEST_PROMPT = 448, 227


@dataclass(frozen=True, slots=True)
class WhisperSearch:
    """How Whisper's `generate` is called. None: as the model's generation_config.json says, else as the pipeline."""

    beam_size: int | None = None
    n_best: int = 1
    max_new_tokens: int | None = None
    timestamps: bool | None = None
    temperatures: tuple[float, ...] = (0.0,)
    condition_on_previous_text: bool | None = None
    compression_ratio_threshold: float | None = None
    logprob_threshold: float | None = None
    no_speech_threshold: float | None = None

    def __post_init__(self) -> None:
        if self.no_speech_threshold is not None and self.logprob_threshold is None:
            raise UsageError(
                "transformers has no no_speech_threshold without a logprob_threshold.",
                hint="Give logprob_threshold=-1.0 too.",
            )
        if self.temperatures[0] and self.n_best > 1:
            raise UsageError(
                f"temperature {self.temperatures[0]:g} samples, which has no n_best.",
                hint="Let temperature begin with 0.",
            )
        room = _CONTEXT - _LONGEST_PROMPT
        if self.condition_on_previous_text and (self.max_new_tokens or 0) > room:
            raise UsageError(
                f"beside the text before a window there is no room for max_new_tokens={self.max_new_tokens}.",
                hint=f"Give at most {room}, or leave it out.",
            )

    @property
    def own(self) -> tuple[str, ...]:
        """The options that only Whisper has and that differ from their default."""
        default = WhisperSearch()
        shared = ("beam_size", "n_best", "max_new_tokens")
        return tuple(
            name for name in self.__slots__ if name not in shared and getattr(self, name) != getattr(default, name)
        )

    @property
    def samples(self) -> bool:
        """Whether a window may be sampled. What is drawn depends on what else is in its batch, so clips are alone."""
        return any(self.temperatures)

    def completed(self, saved: Mapping[str, Any]) -> WhisperSearch:
        """With the beams, the timestamps and the cap that the pipeline takes, given generation_config.json."""
        timestamps = bool(saved.get("return_timestamps")) if self.timestamps is None else self.timestamps
        tokens = self.max_new_tokens
        if tokens is None:
            tokens = saved.get("max_new_tokens") or (None if saved.get("max_length") else PIPELINE_TOKENS)
            if tokens is not None and self.condition_on_previous_text:
                tokens = min(tokens, _CONTEXT - _LONGEST_PROMPT)
        return replace(
            self,
            beam_size=self.beam_size or saved.get("num_beams") or PIPELINE_BEAM,
            max_new_tokens=tokens,
            timestamps=timestamps and self.n_best == 1,
        )

    def settings(self, saved: Mapping[str, Any]) -> dict[str, Setting]:
        done = self.completed(saved)
        return {
            "compression_ratio_threshold": done.compression_ratio_threshold,
            "condition_on_previous_text": done.condition_on_previous_text,
            "long_clips": "sequential windows with timestamps",
            "logprob_threshold": done.logprob_threshold,
            "max_length": saved.get("max_length") if done.max_new_tokens is None else None,
            "max_new_tokens": done.max_new_tokens,
            "n_best": done.n_best,
            "no_speech_threshold": done.no_speech_threshold,
            "num_beams": done.beam_size,
            "padding": "silence before the spectrum",
            "task": "transcribe",
            "temperature": list(done.temperatures),
            "timestamps": bool(done.timestamps),
            "window_s": WINDOW_S,
            **({"seed": SEED} if done.samples else {}),
        }


class WhisperDecoder:
    """`search` done by a loaded `model` with its `processor`; `saved` is the content of its generation_config.json."""

    def __init__(
        self,
        model: Any,
        processor: Any,
        *,
        search: WhisperSearch,
        saved: Mapping[str, Any],
        torch: TorchOptions,
        name: str,
    ) -> None:
        self._model = model
        self._processor = processor
        self._search = search.completed(saved)
        self._saved = saved
        self._torch = torch
        self._name = name

    def short(self, clips: list[Samples], code: str) -> list[Decoded]:
        """Clips of up to 30 s."""
        inputs = self._inputs(clips, padding="max_length", truncation=True)
        if self._search.n_best > 1:
            return self._several(inputs, code)
        if self._in_segments:
            return self._by_segments(inputs, code, timestamps=bool(self._search.timestamps))
        return self._one_window(inputs, code)

    def long(self, clip: Samples, code: str) -> Decoded:
        (found,) = self._by_segments(self._inputs([clip], padding="longest", truncation=False), code, timestamps=True)
        return found

    @property
    def _in_segments(self) -> bool:
        search = self._search
        thresholds = (search.compression_ratio_threshold, search.logprob_threshold)
        return bool(search.timestamps) or search.temperatures != (0.0,) or thresholds != (None, None)

    def _one_window(self, inputs: Any, code: str) -> list[Decoded]:
        encoded: list[Any] = []
        hook = self._model.get_encoder().register_forward_hook(lambda *call: encoded.append(call[2][0]))
        try:
            rows = self._generate(inputs, code, return_timestamps=False).tolist()
        finally:
            hook.remove()
        texts = [[i for i in row if i not in self._special] for row in rows]
        cap = self._cap(len(self._prompt(code)))
        # Where the window was decoded again after a stray timestamp, no single search says how sure it was.
        sure = self._confidences(encoded[0], texts, code, cap) if len(encoded) == 1 else [float("nan")] * len(rows)
        return [Decoded(self._text(ids), len(ids) >= cap, confidence=p) for ids, p in zip(texts, sure, strict=True)]

    def _confidences(self, encoded: Any, texts: list[list[int]], code: str, cap: int) -> list[float]:
        """One more pass of the decoder over what it wrote: transformers keeps no scores that are small enough."""
        torch, known = imported_torch(), self._model.generation_config
        prompt, end = self._prompt(code), known.eos_token_id
        longest = max(map(len, texts))
        ids = [[*prompt, *text, *[end] * (longest - len(text))] for text in texts]
        found = []
        with self._torch.inference(self._model):
            states = self._model.get_decoder()(
                input_ids=torch.tensor(ids, device=encoded.device), encoder_hidden_states=encoded
            ).last_hidden_state
            for text, row in zip(texts, states, strict=True):
                targets = [*text, end] if len(text) < cap else text
                logits = self._model.get_output_embeddings()(
                    row[len(prompt) - 1 : len(prompt) - 1 + len(targets)]
                ).float()
                logits[:, list(known.suppress_tokens or ())] = -float("inf")
                logits[0, list(known.begin_suppress_tokens or ())] = -float("inf")
                scores = torch.log_softmax(logits, -1)[range(len(targets)), targets]
                found.append(confidence([Window(len(targets) - 1, float(scores.mean()))]))
        return found

    def _several(self, inputs: Any, code: str) -> list[Decoded]:
        """By the search of all models: Whisper's own runs it n times, for the best of each."""
        torch, n = imported_torch(), self._search.n_best
        prompt = torch.tensor([self._prompt(code)] * len(inputs["input_features"]), device=self._model.device)
        output = self._called(
            imported_transformers().GenerationMixin.generate,
            self._model,
            **inputs,
            decoder_input_ids=prompt,
            do_sample=False,
            num_return_sequences=n,
            return_dict_in_generate=True,
            output_scores=True,  # otherwise the scores of the sequences are thrown away too
        )
        rows = [[i for i in row if i not in self._special] for row in output.sequences[:, prompt.shape[1] :].tolist()]
        scores, cap = output.sequences_scores.tolist(), self._cap(prompt.shape[1])
        found = []
        for first in range(0, len(rows), n):
            of_clip = [(rows[i], scores[i]) for i in range(first, first + n)]
            hypotheses = tuple(Hypothesis(self._text(ids), score) for ids, score in of_clip if score > NO_SCORE)
            best, score = of_clip[0]
            sure = confidence([Window(len(best), score)] if score > NO_SCORE else [])
            found.append(Decoded(self._text(best), len(best) >= cap, hypotheses, sure))
        return found

    def _by_segments(self, inputs: Any, code: str, *, timestamps: bool) -> list[Decoded]:
        search = self._search
        options: dict[str, Any] = {
            "compression_ratio_threshold": search.compression_ratio_threshold,
            "condition_on_prev_tokens": search.condition_on_previous_text,
            "no_speech_threshold": search.no_speech_threshold,
            "return_segments": True,
            "return_timestamps": timestamps,
            "temperature": search.temperatures if len(search.temperatures) > 1 else search.temperatures[0],
        }
        if search.logprob_threshold is not None or self._saved.get("logprob_threshold") is None:
            # No text is below minus infinity; with any threshold the scores are kept.
            options["logprob_threshold"] = (
                -float("inf") if search.logprob_threshold is None else search.logprob_threshold
            )
        with self._watched() as scores, self._seeded():
            output = self._generate(inputs, code, **options)
        return [self._joined(segments, scores) for segments in output["segments"]]

    def _joined(self, segments: Sequence[Mapping[str, Any]], scores: Mapping[int, float]) -> Decoded:
        text = "".join(self._text(segment["tokens"].tolist()) for segment in segments)
        windows: dict[int, int] = {}
        capped: dict[int, int] = {}
        for segment in segments:  # those of one window share its result
            window, start = id(segment["result"]), segment["idxs"][0]
            if window not in windows:
                written = segment["result"]["sequences"][start:].tolist()
                ended = self._model.generation_config.eos_token_id in written
                capped[window] = 0 if ended else len(written)
            windows[window] = windows.get(window, 0) + len(segment["tokens"])
        # What a capped window wrote after its last timestamp is transcribed again by the next. Only one without is cut.
        truncated = any(capped[w] and count >= capped[w] for w, count in windows.items())
        hypotheses = (
            joined_windows(text, [(scores[w], count) for w, count in windows.items()])
            if self._search.n_best > 1
            else ()
        )
        return Decoded(text, truncated, hypotheses, confidence(Window(n, scores[w]) for w, n in windows.items()))

    @contextlib.contextmanager
    def _watched(self) -> Iterator[dict[int, float]]:
        """Mean log-probability by the id of a window's result, taken where `generate` looks for a need to fall back."""
        scores: dict[int, float] = {}
        model = self._model
        judged = model._need_fallback

        def watched(sequence: Any, outputs: Any, index: int, *rest: Any) -> Any:
            result = outputs[index]
            if "sequences_scores" in result:
                mean = result["sequences_scores"]
            else:
                mean = model._retrieve_avg_logprobs(result["scores"], sequence, rest[-1])
            scores[id(result)] = float(mean)
            return judged(sequence, outputs, index, *rest)

        model._need_fallback = watched
        try:
            yield scores
        finally:
            del model._need_fallback

    @contextlib.contextmanager
    def _seeded(self) -> Iterator[None]:
        """Sampling starts from `SEED`; the generator is torch's, for the whole process: its state comes back."""
        sampled = self._search.samples
        torch = imported_torch()
        with torch.random.fork_rng(enabled=sampled):
            if sampled:
                torch.manual_seed(SEED)
            yield

    def _prompt(self, code: str) -> list[int]:
        """Start, language, task, no timestamps."""
        known = self._model.generation_config
        ids = [known.decoder_start_token_id]
        if self._is_multilingual:
            ids += [known.lang_to_id[f"<|{code}|>"], known.task_to_id["transcribe"]]
        return [*ids, known.no_timestamps_token_id]

    def _cap(self, prompt: int) -> int:
        """How many tokens a window's text may have after `prompt` tokens."""
        if self._search.max_new_tokens is not None:
            return self._search.max_new_tokens
        positions = int(self._model.config.max_target_positions)
        return min(int(self._saved["max_length"]) + min(prompt, positions // 2 - 1), positions) - prompt

    def _inputs(self, clips: list[Samples], *, padding: str, truncation: bool) -> Any:
        extractor = self._processor.feature_extractor
        try:
            inputs = extractor(
                [clip.astype("float32", copy=False) for clip in clips],
                sampling_rate=extractor.sampling_rate,
                padding=padding,
                truncation=truncation,
                return_attention_mask=True,
                return_tensors="pt",
            )
        except (ValueError, IndexError) as error:  # fewer samples than one window of the spectrum, most often
            raise RuntimeError(f"the feature extractor refuses the clip ({error})") from error
        return inputs.to(self._model.device, dtype=self._model.dtype)

    def _generate(self, inputs: Any, code: str, **options: Any) -> Any:
        if self._is_multilingual:
            options |= {"language": code, "task": "transcribe"}
        return self._called(self._model.generate, **inputs, **options)

    def _called(self, search: Any, *arguments: Any, **options: Any) -> Any:
        options["num_beams"] = self._search.beam_size
        if self._search.max_new_tokens is not None:
            options["max_new_tokens"] = self._search.max_new_tokens
        with searching(self._torch, self._model, self._name):
            return search(*arguments, **options)

    def _text(self, ids: list[int]) -> str:
        text: str = self._processor.tokenizer.decode(ids, skip_special_tokens=True)
        return text

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self._processor.tokenizer.all_special_ids)

    @property
    def _is_multilingual(self) -> bool:
        return bool(self._saved.get("is_multilingual", False))


def whisper_languages(saved: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Codes of the languages that a Whisper knows, by its generation_config.json."""
    if not saved.get("is_multilingual", False):
        return ("en",)
    codes = tuple(token[2:-2] for token in saved.get("lang_to_id", {}))
    if not codes:
        raise ModelError(
            f"the generation_config.json of {name} lists no languages (lang_to_id).",
            hint="Take the file from the openai/whisper model that it was trained from.",
        )
    return codes
