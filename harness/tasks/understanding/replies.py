"""From prompts to replies: audio is transcribed once per transcriber, a prompt answered once per answerer."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from ....errors import AudioError, SqutrError, StorageError
from ....loaders.in_order import in_order
from ....loaders.records import Samples
from ...components import checked
from ...components.answerers.files import RepliesFile
from ...evaluation.inference import AudioModel, infer_clips
from ...evaluation.tools import Tools
from ...processes import complete, gather_long
from ...progress import showing_batches
from ...protocols import Answerer, AnswerRequest, Reply, Transcript
from ...systems.system import System
from .audio import QuestionAudio, shards_of
from .prompting import Order, Prompt
from .prompts import TEMPLATES, audio_names, with_transcripts, without_audio

Item = TypeVar("Item")
Shard = TypeVar("Shard")
_Loaded = tuple[list[tuple[str, Prompt, str]], dict[str, Samples], dict[str, Reply]]
"""Prompts with their store keys, clips by the id of an audio, and the replies that are known."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The replies of one system by `Prompt.key`, and the transcripts that they are based on by the id of an audio.

    `tail` has the requests at the end that all failed, with why: the system stopped.
    """

    replies: Mapping[tuple[str, Order | None], Reply]
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)
    tail: Mapping[tuple[str, Order | None], str] = field(default_factory=dict)


@dataclass(slots=True)
class Inferred:
    """What all systems gave, or why one failed, by name; digests of all audio by id."""

    answered: dict[str, Answered] = field(default_factory=dict)
    failed: dict[str, SqutrError] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    judged: Any = None


def uses_audio(system: System) -> bool:
    """Whether the system's answers depend on audio, its own or transcribed."""
    if system.text_only:
        return False
    return system.transcriber is not None or bool(getattr(system.answerer, "uses_audio", True))


def transcribe(
    model: AudioModel, audios: Mapping[str, float], audio: QuestionAudio, language: str, tools: Tools
) -> dict[str, Transcript]:
    """The transcripts of `audios` (id to seconds); all processes must call it. Unreadable audio has `error`."""
    ids = list(audios)

    def known(own: Sequence[str]) -> dict[str, Transcript]:
        digests = {id_: audio.digest(id_) for id_ in own}
        if tools.store is None:
            return {}
        found = tools.store.transcripts(digests.values(), language=language, model=model.key)
        return {id_: found[digest] for id_, digest in digests.items() if digest in found}

    def load(shard: Sequence[int]) -> tuple[dict[str, Transcript], dict[str, Samples]]:
        found: dict[str, Transcript] = {}
        clips: dict[str, Samples] = {}
        for id_ in (ids[i] for i in shard):
            try:
                found |= known([id_])
                if id_ not in found:
                    clips[id_] = audio.clip(id_, model.sample_rate)
            except AudioError as error:
                found[id_] = Transcript("", error=error.message)
        return found, clips

    def work(loaded: tuple[dict[str, Transcript], dict[str, Samples]]) -> dict[str, Transcript]:
        found, clips = loaded
        # Equal audio of one shard is transcribed once.
        distinct = {audio.digest(id_): clip for id_, clip in clips.items()}
        names = {audio.digest(id_): f"the audio {id_!r}" for id_ in clips}
        made = infer_clips(model, distinct, language, names=names) if distinct else {}
        if tools.store is not None and made:
            seconds = {digest: clip.size / model.sample_rate for digest, clip in distinct.items()}
            kept = {digest: (transcript, seconds[digest]) for digest, transcript in made.items()}
            tools.store.keep_transcripts({}, kept, language=language, model=model.key)
        return {**found, **{id_: made[audio.digest(id_)] for id_ in clips}}

    return _shared(
        ids, shards_of(ids, audios), load, work, tools=tools, stage=f"{model.name}: transcribing", seconds=audios
    )


def answer(
    system: System, prompts: Sequence[Prompt], audio: QuestionAudio, transcripts: Mapping[str, Transcript], tools: Tools
) -> dict[tuple[str, Order | None], Reply]:
    """The reply to every prompt, in every process; all must call it. Raises what the answerer raised, everywhere."""
    answerer: object = system.answerer
    if isinstance(answerer, RepliesFile):
        given = {one.key: answerer.reply_of(one.question.id, spoken=one.spoken, order=one.order) for one in prompts}
        return {key: reply for key, reply in given.items() if reply is not None}
    plain = cast(Answerer, answerer)
    templates = {**TEMPLATES, **system.templates}
    keys = [str(i) for i in range(len(prompts))]
    with_clips = uses_audio(system) and system.transcriber is None
    lengths = {key: one.question.duration_s for key, one in zip(keys, prompts, strict=True)}

    def request(one: Prompt, clips: Mapping[str, Samples]) -> AnswerRequest:
        names = audio_names(one.question.kind, len(one.question.audios), spoken=one.spoken)
        if system.text_only:
            return without_audio(one.request(()), templates)
        if system.transcriber is not None:
            return with_transcripts(one.request(()), [transcripts[a].text for a in one.audios], names, templates)
        return one.request([clips[a] for a in one.audios]) if clips else one.request(())

    def load(shard: Sequence[int]) -> _Loaded:
        """Prompts with their store keys, the clips that are needed, and the replies that are known."""
        left: list[tuple[str, Prompt, str]] = []
        clips: dict[str, Samples] = {}
        found: dict[str, Reply] = {}
        for i in shard:
            one = prompts[i]
            fault = next((transcripts[a].error for a in one.audios if a in transcripts and transcripts[a].error), "")
            try:
                if fault:
                    raise AudioError(fault)
                shas = [audio.digest(a) for a in one.audios] if with_clips else []
                key = request_key(request(one, {}), shas)
                reply = None if tools.store is None else tools.store.replies(plain.spec.fingerprint, [key]).get(key)
                if reply is not None:
                    found[keys[i]] = reply
                    continue
                for a in one.audios if with_clips else ():
                    if a not in clips:
                        clips[a] = audio.clip(a, plain.sample_rate)
                left.append((keys[i], one, key))
            except AudioError as error:
                found[keys[i]] = Reply("", error=error.message)
        return left, clips, found

    def work(loaded: _Loaded) -> dict[str, Reply]:
        left, clips, found = loaded
        if not left:
            return found
        replies = checked.answer(plain, [request(one, clips) for _, one, _ in left])
        if tools.store is not None:
            tools.store.keep_replies(
                plain.spec.fingerprint, {key: reply for (_, _, key), reply in zip(left, replies, strict=True)}
            )
        return {**found, **{id_: reply for (id_, _, _), reply in zip(left, replies, strict=True)}}

    shards = shards_of(keys, lengths)
    by_key = _shared(keys, shards, load, work, tools=tools, stage=f"{system.name}: answering", seconds=lengths)
    # In the order of the work.
    return {prompts[i].key: _with_seconds(by_key[keys[i]], prompts[i], transcripts) for shard in shards for i in shard}


def _with_seconds(reply: Reply, prompt: Prompt, transcripts: Mapping[str, Transcript]) -> Reply:
    """The reply with the seconds of the transcripts that it is based on."""
    taken = math.fsum(t.seconds + t.front_end_seconds for a in prompt.audios if (t := transcripts.get(a)) is not None)
    return replace(reply, seconds=reply.seconds + taken) if taken else reply


def _shared(
    ids: Sequence[str],
    shards: Sequence[Sequence[int]],
    load: Callable[[Sequence[int]], Shard],
    work: Callable[[Shard], Mapping[str, Item]],
    *,
    tools: Tools,
    stage: str,
    seconds: Mapping[str, float],
) -> dict[str, Item]:
    """What `work` gives for all ids, the shards shared among processes. Raises what failed in any, in all."""
    processes = tools.processes
    places = {id_: place for place, id_ in enumerate(ids)}
    own = [shard for i, shard in enumerate(shards) if i % processes.size == processes.rank]
    found: list[tuple[int, Item]] = []
    failure: SqutrError | None = None
    total, audio_s = sum(map(len, own)), 0.0
    tools.tell(stage, 0, total)
    try:
        for shard, loaded in zip(own, in_order(load, own, workers=1, ahead=1), strict=True):
            own_s = sum(max(0.0, seconds[ids[i]]) for i in shard if seconds[ids[i]] >= 0)
            with showing_batches(tools.tell, stage, len(found), total, len(shard), audio_s=(audio_s, own_s)):
                made = work(loaded)
            found += [(places[id_], item) for id_, item in made.items()]
            audio_s += own_s
            tools.tell(stage, len(found), total, audio_s=audio_s)
    except StorageError:
        raise
    except SqutrError as error:
        failure = error
    failures = [one for one in processes.gather(failure) if one is not None]
    if failures:
        raise failures[0]
    return dict(zip(ids, complete(gather_long(processes, found), len(ids), "items"), strict=True))


def request_key(request: AnswerRequest, audio: Sequence[str]) -> str:
    """What identifies a request: all of its text, and the digests of its audio in place of the clips."""
    content = [
        request.prompt,
        list(audio),
        list(request.audio_names) if audio else [],
        request.question,
        list(request.options),
        list(request.transcripts),
        request.spoken_question,
        request.language,
    ]
    canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
