"""What an evaluation takes, computed from how systems are written, the sizes of models and the data: nothing is loaded.

Operations: 2 x parameters x positions, with the parameters that are multiplied at a position (an audio encoder's at
each of its frames, a decoder's at each token; looked-up embeddings at none), at `gpus.UTILIZATION` of the stated peak.
A decoder also reads its weights once per token of a batch. Memory: parameters x bytes of their number type, and beside
them `ACTIVATIONS` numbers per position and hidden dimension of a batch, and the cache of keys and values. Attention,
data that waits for the processor, lexical search and scoring are not counted: times are rather too short.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..components.encoders.st_model import GPU_TOKENS
from ..components.model_sizes import BYTES, ModelSize, repository_of, size_of
from ..components.torch_models import first_batch_size
from ..results.envelope import TEXT_CONDITION
from ..systems.building import preset_options
from ..systems.entries import ComponentEntry, Role, SystemEntry, Written, entries_of
from ..systems.selecting import component_name, name_of
from .gpus import Gpu
from .options import DEFAULT_DEPTH, Options
from .stored_sizes import Stored, stored_rankings, stored_records, stored_replies, stored_transcripts, stored_vectors
from .workload import CellLoad, SpeechLoad

ACTIVATIONS = 16
"""Numbers that live at once per position and hidden dimension: the states, and the inner ones of one block."""
PROMPT_TOKENS = 40
SERVED_REWRITERS = ("rewrite-server",)
SERVED = ("server", "dense-server", "chat-server", *SERVED_REWRITERS)
PRECOMPUTED = ("transcripts", "trec", "replies")
_TEXT_BACKENDS = ("dense", "dense-mteb")
_FIXED_BATCHES: Mapping[str, int] = {"faster-whisper": 4, "openai-whisper": 1, "funasr": 32}
_WHISPER_BEAMS: Mapping[str, int] = {"faster-whisper": 5, "transformers": 5}
"""What a Whisper decodes with by default; other models are greedy."""
_CHOSEN_BY_DEVICE: Mapping[str, str] = {"auto": "float16", "gpu_float16": "float16"}
"""What number types that depend on the device are on a GPU."""
_DTYPES: Mapping[str, str] = {"faster-whisper": "int8", "glm-asr": "bfloat16", "qwen-asr": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Component:
    """A model as a plan sees it; `size` is None where its size is not known, or where nothing is loaded."""

    role: Role
    entry: ComponentEntry
    size: ModelSize | None
    dtype: str
    options: Mapping[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        return component_name(self.entry)

    @property
    def is_text_encoder(self) -> bool:
        return self.entry.backend in _TEXT_BACKENDS

    @property
    def repository(self) -> str:
        return repository_of(self.entry.backend, self.entry.model) if self.loads else ""

    @property
    def loads(self) -> bool:
        """Whether it has weights on this machine."""
        return bool(self.entry.model) and self.entry.backend not in (*SERVED, *PRECOMPUTED, "class")

    @property
    def weights(self) -> int:
        """Bytes of its weights where it runs; 0 where they are not known."""
        return 0 if self.size is None else self.size.parameters * BYTES[self.dtype]

    def least(self, positions: float) -> int:
        """Bytes that it cannot do without: its weights and one clip, for an encoder of texts its weights."""
        return self.weights + (0 if self.is_text_encoder else self.working(1, positions))

    def batch_on(self, gpu: Gpu, positions: float) -> int:
        """The clips of `positions` frames and tokens that are worked on together, as far as they fit."""
        given = self.options.get("batch_size")
        fixed = _FIXED_BATCHES.get(self.entry.backend, 0)
        if "paraformer" in self.entry.model.lower() or (
            self.entry.backend == "faster-whisper" and self.options.get("timestamps", True)
        ):
            given, fixed = None, 1  # one clip at a time, whatever the batch size
        batch = given if isinstance(given, int) else fixed or first_batch_size(max(0, gpu.memory - self.weights))
        while batch > 1 and self.weights + self.working(batch, positions) > gpu.memory:
            batch //= 2
        return batch

    def working(self, batch: int, positions: float) -> int:
        """Bytes beside the weights for a batch of clips (of `GPU_TOKENS` tokens for an encoder of texts)."""
        if self.size is None:
            return 0
        at_once = GPU_TOKENS if self.is_text_encoder else batch * positions
        cached = batch * (positions * self.size.cache + self.size.cross_cache)
        # Products are never narrower than half precision.
        return round((at_once * self.size.width * ACTIVATIONS + cached) * max(2, BYTES[self.dtype]))


@dataclass(frozen=True, slots=True)
class Work:
    """A stage of one component over `items`; `positions` are those of one item in a batch.

    `operations` are floating-point operations, `token_reads` the bytes of weights that are read for generated tokens,
    were items taken one at a time.
    """

    stage: str
    component: Component
    scope: str
    items: int
    operations: float
    positions: float = 0.0
    token_reads: float = 0.0
    known: bool = True

    def seconds(self, gpu: Gpu) -> float:
        """On one GPU; NaN where it is not computed or does not fit."""
        if not self.known or self.component.least(self.positions) > gpu.memory:
            return math.nan
        reads = (
            self.token_reads / self.component.batch_on(gpu, self.positions) / gpu.bandwidth if self.token_reads else 0
        )
        return gpu.seconds(self.operations, dtype=self.component.dtype) + reads


@dataclass(frozen=True, slots=True)
class ComputedPlan:
    """What would run. `components` are those with weights, `works` the stages, `stored` what is kept on disk.

    `told` are sizes of repositories in bytes that were found out otherwise (see `hub_sizes`).
    """

    systems: Sequence[str]
    configs: Sequence[str]
    components: Sequence[Component]
    works: Sequence[Work]
    stored: Sequence[Stored]
    told: Mapping[str, int] = field(default_factory=dict)

    @property
    def downloads(self) -> Mapping[str, int | None]:
        """Bytes by repository; None where they are not known."""
        listed = {one.repository: None if one.size is None else one.size.download_bytes for one in self.components}
        return {name: self.told.get(name) if held is None else held for name, held in listed.items()}

    def positions(self, component: Component) -> float:
        """The longest item of a component, in positions."""
        return max((work.positions for work in self.works if work.component is component), default=0.0)


class Parts:
    """The components of some systems, equal ones once; `overrides` go before the options that are written."""

    def __init__(self, overrides: Mapping[str, Any] | None = None) -> None:
        self.made: dict[str, Component] = {}
        self._overrides = dict(overrides or {})

    def of(self, role: Role, entry: ComponentEntry) -> tuple[str, Component]:
        key = json.dumps([role, entry.as_dict()], sort_keys=True, default=str)
        if key not in self.made:
            options = {**preset_options(entry), **entry.options, **self._overrides}
            size = size_of(entry.backend, entry.model) if entry.backend not in SERVED else None
            narrow = options.get("dtype", options.get("compute_type", _DTYPES.get(entry.backend, "float32")))
            dtype = _CHOSEN_BY_DEVICE.get(narrow, narrow) if isinstance(narrow, str) else ""
            dtype = dtype if dtype in BYTES else "float32"
            self.made[key] = Component(role, entry, size, dtype, options)
        return key, self.made[key]

    def loaded(self) -> list[Component]:
        return [one for one in self.made.values() if one.loads]


def plan_speech(
    entries: Sequence[SystemEntry], load: SpeechLoad, options: Options, overrides: Mapping[str, Any] | None = None
) -> ComputedPlan:
    """The plan for speech. Languages that a system has no component for are left out, as in the evaluation."""
    parts = Parts(overrides)
    models: dict[str, Component] = {}
    spoken: dict[str, dict[tuple[str, str], CellLoad]] = {}
    searched: dict[str, dict[tuple[str, str, str], CellLoad]] = {}
    rewritten: dict[str, dict[tuple[str, str, str], CellLoad]] = {}
    runs = items = 0
    for entry in entries:
        for cell, size in load.cells.items():
            languages = _languages(entry)
            if languages and size.language not in languages:
                continue
            items += size.items
            model, front = _of(entry.transcriber, size.language), entry.encoder
            texts = "typed"
            if model is not None and cell[1] != TEXT_CONDITION:
                texts, component = parts.of("transcriber", model)
                for enhancer in entries_of(entry.front_end):
                    texts = f"{enhancer.as_dict()} {texts}"
                models[texts] = component
                spoken.setdefault(texts, {})[cell] = size
                rewriter = _of(entry.rewriter, size.language)
                if rewriter is not None:
                    key, _ = parts.of("rewriter", rewriter)
                    rewritten.setdefault(key, {})[texts, *cell] = size
                    texts = f"{texts} {key}"
            audio = _of(front, size.language)
            if audio is not None:
                key, models[key] = parts.of("encoder", audio)
                spoken.setdefault(key, {})[cell] = size
                searched.setdefault(key, {})["audio", *cell] = size
            retriever = _of(entry.retriever, size.language)
            for one in [] if retriever is None else _flat(retriever):
                key, _ = parts.of("retriever", one)
                searched.setdefault(key, {})[texts, *cell] = size
        runs += sum(_runs(entry, load, config) for config in load.configs)
    works: list[Work] = []
    stored: list[Stored] = []
    for key, cells in spoken.items():
        component = models[key]
        clips = {cell: size for cell, size in cells.items() if cell[1] != TEXT_CONDITION}
        if component.role == "transcriber" and component.entry.backend not in PRECOMPUTED:
            works.append(_transcribe(component, clips.values()))
            stored.append(stored_transcripts(component.name, clips.values()))
        elif component.role == "encoder":
            works += _encode_audio(component, clips.values(), load)
            stored.append(_vectors(component, clips.values(), load))
    for key, read in rewritten.items():
        works.append(_rewrite(parts.made[key], read.values()))
        stored.append(stored_replies(parts.made[key].name, sum(c.items for c in read.values())))
    for key, queries in searched.items():
        component = parts.made[key]
        if component.role == "retriever" and component.entry.backend not in PRECOMPUTED:
            works += _embed(component, queries, load)
            if component.entry.backend in (*_TEXT_BACKENDS, "dense-server"):
                stored.append(_vectors(component, queries.values(), load, {cell[1] for cell in queries}))
        works += _search(component, queries, load)
        stored.append(stored_rankings(component.name, queries.values(), options.depth or DEFAULT_DEPTH))
    stored.append(stored_records(items, runs, ranked=bool(load.corpora)))
    return ComputedPlan([name_of(entry) for entry in entries], load.configs, parts.loaded(), works, stored)


def plan_questions(
    entries: Sequence[SystemEntry], questions: Sequence[Any], overrides: Mapping[str, Any] | None = None
) -> ComputedPlan:
    """The plan for questions about audio: every answerer over every question, written and spoken ones."""
    parts = Parts(overrides)
    works: list[Work] = []
    stored: list[Stored] = []
    transcribed: dict[str, Component] = {}
    asked = [(one, bool(one.question_audio)) for one in questions]
    number = sum(1 + spoken for _, spoken in asked)
    for entry in entries:
        seconds = [one.duration_s for one, spoken in asked for _ in range(1 + spoken)]
        if entry.text_only or entry.answerer is None:
            seconds = []
        for written in entries_of(entry.transcriber):
            key, component = parts.of("transcriber", written)
            if key not in transcribed:
                transcribed[key] = component
                clips = [CellLoad("es", 1, s, s * WORDS_PER_SECOND * 1.4, s * 15.0) for s in seconds]
                works.append(_transcribe(component, clips))
                stored.append(stored_transcripts(component.name, clips))
        for written in entries_of(entry.answerer):
            _, component = parts.of("answerer", written)
            cascade = entry.transcriber is not None
            works.append(_answer(component, seconds, number, as_text=cascade))
            stored.append(stored_replies(name_of(entry), number))
    stored.append(stored_records(number * len(entries), len(entries), ranked=False))
    return ComputedPlan([name_of(entry) for entry in entries], ["all"], parts.loaded(), works, stored)


WORDS_PER_SECOND = 2.5
REPLY_TOKENS = 16


def _answer(component: Component, seconds: Sequence[float], items: int, *, as_text: bool) -> Work:
    size = component.size
    served = component.entry.backend in SERVED
    scope = f"{sum(seconds) / 3600:.0f} h"
    if size is None or served:
        return Work("answer", component, scope, items, 0.0, known=False)
    kept = [min(s, size.longest_s) if size.longest_s else s for s in seconds]
    tokens = [s * (WORDS_PER_SECOND * 1.4 if as_text else size.audio_per_s) + PROMPT_TOKENS for s in kept]
    frames = 0.0 if as_text else sum(_frames(size, s) for s in kept)
    multiplied = size.parameters - size.encoder - size.embedding
    operations = 2 * size.encoder * frames + 2 * multiplied * (sum(tokens) + items * REPLY_TOKENS)
    longest = max(tokens, default=0.0)
    return Work("answer", component, scope, items, operations, longest, _reads(component, items * REPLY_TOKENS))


def _rewrite(component: Component, cells: Iterable[CellLoad]) -> Work:
    """A language model that reads a prompt with a text and writes the text again."""
    cells = list(cells)
    size, items = component.size, sum(c.items for c in cells)
    if size is None or component.entry.backend in SERVED_REWRITERS:
        return Work("rewrite", component, "", items, 0.0, known=False)
    written = sum(c.items * c.tokens for c in cells)
    operations = 2.0 * (size.parameters - size.embedding) * (2 * written + items * PROMPT_TOKENS)
    longest = max((2 * c.tokens + PROMPT_TOKENS for c in cells), default=0.0)
    return Work("rewrite", component, "", items, operations, longest, _reads(component, written))


def _transcribe(component: Component, cells: Iterable[CellLoad]) -> Work:
    cells = list(cells)
    size = component.size
    items, hours = sum(c.items for c in cells), sum(c.items * c.seconds for c in cells) / 3600
    scope = f"{hours:.1f} h"
    if size is None:
        return Work("transcribe", component, scope, items, 0.0, known=False)
    frames = sum(c.items * _frames(size, c.seconds) for c in cells)
    # A cascade's window of 30 s repeats its prompt; beams are written side by side.
    usual = _WHISPER_BEAMS.get(component.entry.backend, 1) if "whisper" in component.entry.model.lower() else 1
    beams = component.options.get("beam_size") or usual
    written = sum(c.items * c.tokens for c in cells) * (beams if isinstance(beams, int) else 1)
    read = sum(c.items * (c.seconds * size.audio_per_s + PROMPT_TOKENS) for c in cells) if size.audio_per_s else 0.0
    multiplied = size.parameters - size.encoder - size.embedding
    operations = 2 * size.encoder * frames + 2 * multiplied * (read + written)
    positions = max((_frames(size, c.seconds) + c.tokens for c in cells), default=0.0)
    if size.window_s:
        positions = min(positions, size.frames_per_s * size.window_s + PROMPT_TOKENS)
    return Work(
        "transcribe", component, scope, items, operations, positions, _reads(component, written) if multiplied else 0
    )


def _reads(component: Component, tokens: float) -> float:
    """Bytes of a decoder's weights that so many tokens read, were each generated alone."""
    size = component.size
    return 0.0 if size is None else tokens * (size.parameters - size.encoder - size.embedding) * BYTES[component.dtype]


def _frames(size: ModelSize, seconds: float) -> float:
    """Positions of the audio encoder for a clip, padded to whole windows where the model has some."""
    padded = math.ceil(seconds / size.window_s) * size.window_s if size.window_s else seconds
    return padded * size.frames_per_s


def _embed(component: Component, texts: Mapping[tuple[str, str, str], CellLoad], load: SpeechLoad) -> list[Work]:
    """Documents and queries through an encoder of texts; a lexical index has no computed time."""
    subsets = {cell[1] for cell in texts}
    documents = sum(load.corpora[subset].documents for subset in subsets)
    if component.entry.backend not in _TEXT_BACKENDS:
        return [Work("index", component, _of_subsets(subsets), documents, 0.0, known=False)]
    tokens = sum(load.corpora[subset].documents * _cut(component, load.corpora[subset].tokens) for subset in subsets)
    return [
        _encoded(component, "embed documents", _of_subsets(subsets), documents, tokens),
        _encoded(
            component, "embed queries", _of_subsets(subsets), sum(c.items for c in texts.values()),
            sum(c.items * (c.tokens + _prompt_tokens(component)) for c in texts.values()),
        ),
    ]  # fmt: skip


def _encode_audio(component: Component, cells: Iterable[CellLoad], load: SpeechLoad) -> list[Work]:
    cells = list(cells)
    size = component.size
    items = sum(c.items for c in cells)
    scope = f"{sum(c.items * c.seconds for c in cells) / 3600:.1f} h"
    documents = sum(corpus.documents for corpus in load.corpora.values())
    tokens = sum(corpus.documents * _cut(component, corpus.tokens) for corpus in load.corpora.values())
    indexed = _encoded(component, "embed documents", _of_subsets(load.corpora), documents, tokens)
    if size is None:
        return [Work("encode", component, scope, items, 0.0, known=False), indexed]
    frames = sum(c.items * _frames(size, c.seconds) for c in cells)
    read = sum(c.items * (c.seconds * size.audio_per_s + PROMPT_TOKENS) for c in cells)
    operations = 2 * size.encoder * frames + 2 * (size.parameters - size.encoder - size.embedding) * read
    longest = max((_frames(size, c.seconds) for c in cells), default=0.0)
    return [Work("encode", component, scope, items, operations, longest), indexed]


def _encoded(component: Component, stage: str, scope: str, items: int, tokens: float) -> Work:
    size = component.size
    multiplied = 0 if size is None else size.parameters - size.embedding - size.encoder
    longest = tokens / items if items else 0.0
    return Work(stage, component, scope, items, 2.0 * multiplied * tokens, longest, known=size is not None)


def _search(component: Component, texts: Mapping[tuple[str, str, str], CellLoad], load: SpeechLoad) -> list[Work]:
    size = component.size
    if size is None or not size.dimension:
        return []
    # Products are taken in float32, and the encoder need not be there.
    exact = replace(component, size=replace(size, parameters=0), dtype="float32")
    pairs = sum(c.items * load.corpora[key[1]].documents for key, c in texts.items() if key[1] in load.corpora)
    asked = sum(c.items for c in texts.values())
    return [Work("search", exact, _of_subsets({key[1] for key in texts}), asked, 2.0 * size.dimension * pairs)]


def _vectors(
    component: Component, cells: Iterable[CellLoad], load: SpeechLoad, subsets: Iterable[str] | None = None
) -> Stored:
    chosen = load.corpora if subsets is None else subsets
    documents = sum(load.corpora[subset].documents for subset in chosen if subset in load.corpora)
    dimension = 0 if component.size is None else component.size.dimension
    storage = str(component.options.get("storage", "float32"))
    return stored_vectors(component.name, documents, sum(c.items for c in cells), dimension, BYTES[storage])


def _prompt_tokens(component: Component) -> float:
    prompt = component.options.get("query_prompt")
    return len(prompt) / 4 if isinstance(prompt, str) else 0.0


def _cut(component: Component, tokens: float) -> float:
    given = component.options.get("max_tokens")
    limits = [one for one in (given, component.size and component.size.max_tokens) if isinstance(one, int) and one]
    return min([tokens, *limits])


def _flat(entry: ComponentEntry) -> list[ComponentEntry]:
    found = [entry]
    for part in entry.parts:
        found += _flat(part)
    return found


def _of(written: Written | None, language: str) -> ComponentEntry | None:
    return written.get(language) if isinstance(written, Mapping) else written


def _languages(entry: SystemEntry) -> set[str]:
    """The languages that all per-language components have; none if there are no such components."""
    tables = [set(part) for part in (entry.transcriber, entry.retriever, entry.encoder) if isinstance(part, Mapping)]
    return set.intersection(*tables) if tables else set()


def _runs(entry: SystemEntry, load: SpeechLoad, config: str) -> bool:
    scope = config.partition("_")[0]
    languages = _languages(entry)
    own = {size.language for (subset, _), size in load.cells.items() if scope in (subset, size.language)}
    return not languages or own <= languages


def _of_subsets(subsets: Iterable[str]) -> str:
    return ", ".join(sorted(subsets))
