"""Cascades: a transcriber writes what the clips say, an LLM answers from that."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

from ....errors import UsageError
from ....loaders.records import Samples
from ...protocols import Answerer, AnswerRequest, ComponentSpec, Reply, Setting, Transcriber, Transcript
from .common import request_fault

TRANSCRIPT = "Transcripción automática del audio: «{text}»"
NAMED_TRANSCRIPT = "{name} (transcripción automática): «{text}»"
NO_TRANSCRIPT = "(no se ha entendido nada)"
_QUOTES = str.maketrans({"«": "‹", "»": "›"})


class CascadeAnswerer:
    """Any transcriber of the harness, and an LLM: an answerer that is prompted without clips.

    Each clip's transcript stands before the prompt in `transcript_template`, with its name in
    `named_template` where it has one; angle quotes within a transcript become single ones. A spoken question
    is transcribed like any clip. A clip that cannot be transcribed fails its request. What is done with long audio is
    the transcriber's own rule.
    """

    def __init__(
        self,
        *,
        transcriber: Transcriber,
        llm: Answerer,
        transcript_template: str = TRANSCRIPT,
        named_template: str = NAMED_TRANSCRIPT,
    ) -> None:
        for template, holes in ((transcript_template, {"text"}), (named_template, {"text", "name"})):
            if any(f"{{{hole}}}" not in template for hole in holes):
                raise UsageError(
                    f"the template {template!r} lacks {' or '.join(sorted(f'{{{hole}}}' for hole in holes))}.",
                    hint="Write it where the transcript belongs.",
                )
        self._transcriber, self._llm = transcriber, llm
        self._template, self._named = transcript_template, named_template

    @cached_property
    def spec(self) -> ComponentSpec:
        transcriber, llm = self._transcriber.spec, self._llm.spec
        settings: dict[str, Setting] = {
            "named_template": self._named,
            "no_transcript": NO_TRANSCRIPT,
            "llm": llm.as_dict(),
            "transcriber": transcriber.as_dict(),
            "transcript_template": self._template,
        }
        return ComponentSpec("answerer", "cascade", f"{transcriber.name} + {llm.name}", settings=settings)

    @property
    def sample_rate(self) -> int:
        return self._transcriber.sample_rate

    @property
    def llm(self) -> Answerer:
        return self._llm

    def supports(self, language: str) -> bool:
        return self._transcriber.supports(language) and self._llm.supports(language)

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        faults = [request_fault(request) for request in requests]
        transcripts_of = self._transcribed(
            [request for request, fault in zip(requests, faults, strict=True) if not fault]
        )
        replies: list[Reply | None] = []
        asked: list[AnswerRequest] = []
        seconds: list[float] = []
        for request, fault in zip(requests, faults, strict=True):
            transcripts = [] if fault else [transcripts_of[_key(clip, request.language)] for clip in request.audios]
            failed = fault or next((found.error for found in transcripts if found.error), "")
            if failed:
                replies.append(Reply("", error=failed))
                continue
            replies.append(None)
            asked.append(self._written(request, [found.text for found in transcripts]))
            seconds.append(sum(found.seconds for found in transcripts))
        answered = zip(self._llm.answer(asked), seconds, strict=True)
        timed = iter([replace(reply, seconds=reply.seconds + transcribing) for reply, transcribing in answered])
        return [next(timed) if reply is None else reply for reply in replies]

    def _transcribed(self, requests: Sequence[AnswerRequest]) -> dict[tuple[str, bytes], Transcript]:
        clips: dict[tuple[str, bytes], Samples] = {}
        for request in requests:
            for clip in request.audios:
                clips.setdefault(_key(clip, request.language), clip)
        found: dict[tuple[str, bytes], Transcript] = {}
        for language in dict.fromkeys(language for language, _ in clips):
            # Of similar length together, longest first, as every batch of the harness.
            keys = sorted((key for key in clips if key[0] == language), key=lambda key: (-clips[key].size, key[1]))
            found |= zip(
                keys, self._transcriber.transcribe([clips[key] for key in keys], language=language), strict=True
            )
        return found

    def _written(self, request: AnswerRequest, texts: Sequence[str]) -> AnswerRequest:
        names = request.audio_names or ("",) * len(texts)
        lines = []
        for name, text in zip(names, texts, strict=True):
            shown = " ".join(text.split()).translate(_QUOTES) or NO_TRANSCRIPT
            template = self._named if name else self._template
            lines.append(template.replace("{name}", name.rstrip(":")).replace("{text}", shown))
        prompt = "\n".join([*lines, "", request.prompt]) if lines else request.prompt
        return replace(request, prompt=prompt, audios=(), audio_names=(), transcripts=tuple(texts))


def _key(clip: Samples, language: str) -> tuple[str, bytes]:
    return language, hashlib.sha256(clip.tobytes()).digest()


def llm_of(answerer: Answerer) -> Answerer:
    """The part that answers from text: a cascade's LLM, else the answerer itself."""
    return cast(Answerer, getattr(answerer, "llm", answerer))
