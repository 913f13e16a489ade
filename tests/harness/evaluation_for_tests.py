"""Components for tests of the pipeline: they hear by a table, and count what they are asked."""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import soundfile

from squtr.harness.components.retrievers.composite import Composite
from squtr.harness.evaluation.run import Evaluation
from squtr.harness.protocols import ComponentSpec, DocumentLookup, Hit, Hypothesis, Transcript
from squtr.harness.results.envelope import RunRecord
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData, SpeechData
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import Document, Query, SpokenQuery

from ..loaders.collections_for_tests import make_collection
from .encoders_for_tests import HashedWordsEncoder
from .fakes import sound_key


def built(folder: Path, *conditions: str, queries: int = 5, documents: int = 12) -> BuiltData:
    """A small data set in English and Chinese, query i answered by document i."""
    root = make_collection(folder / "collection", queries=queries, documents=documents)
    build(open_recipe(str(root), conditions=list(conditions)), folder / "data")
    return BuiltData(folder / "data")


def truth_of(data: SpeechData) -> dict[str, SpokenQuery]:
    """The query of every sound, by the key of its samples."""
    table: dict[str, SpokenQuery] = {}
    for subset in data.subsets:
        for condition in data.conditions:
            for query in data.spoken(subset, condition):
                samples, _ = soundfile.read(io.BytesIO(query.audio), dtype="float32")
                table[sound_key(samples)] = query
    return table


def by_config(evaluation: Evaluation | Sequence[RunRecord], system: str = "") -> dict[str, RunRecord]:
    records = evaluation.records if isinstance(evaluation, Evaluation) else evaluation
    return {r.result.data.config: r for r in records if system in {"", r.result.system.name}}


class NBest:
    """Hears the truth and other words, as the n best: what `told` says of a query, else the truth alone."""

    sample_rate = 24_000

    def __init__(
        self, truth: Mapping[str, SpokenQuery], told: Mapping[tuple[str, str], Sequence[tuple[str, float]]], n: int = 3
    ) -> None:
        self.truth, self.told = truth, told
        self.spec = ComponentSpec("transcriber", "test", "n-best", revision="1", settings={"n_best": n})

    def supports(self, language: str) -> bool:
        return True

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        found = []
        for clip in clips:
            query = self.truth[sound_key(clip)]
            best = [Hypothesis(t, s) for t, s in self.told.get((query.subset, query.id), [(query.text, 0.0)])]
            found.append(Transcript(best[0].text, seconds=0.25, hypotheses=tuple(best)))
        return found


class Negative:
    """A front end that turns the wave upside down, which is easy to undo; it refuses some sounds."""

    sample_rate = 24_000

    def __init__(self, refused: Sequence[str] = (), broken: Sequence[str] = ()) -> None:
        self.refused, self.broken, self.clips = refused, broken, 0
        self.spec = ComponentSpec("front_end", "test", "negative", revision="1")

    def enhance(self, clips: Sequence[np.ndarray]) -> list[np.ndarray]:
        from squtr.errors import AudioError

        if any(sound_key(clip) in self.refused for clip in clips):
            raise AudioError("there is no negative of this sound.")
        self.clips += len(clips)
        return [np.full_like(clip, np.nan) if sound_key(clip) in self.broken else -clip for clip in clips]


class Toy:
    """An encoder of sound and text: a sound has the vector of its text. It fails on some sounds."""

    sample_rate = 24_000

    def __init__(self, truth: Mapping[str, SpokenQuery], failed: Sequence[tuple[str, str]] = ()) -> None:
        self.truth, self.failed = truth, failed
        self.words = HashedWordsEncoder()
        self.heard: Counter[str] = Counter()
        self.spec = ComponentSpec("audio_text_encoder", "test", "toy", revision="1")
        self._lock = threading.Lock()

    def supports(self, language: str) -> bool:
        return True

    def encode_audio(self, clips: Sequence[np.ndarray], *, language: str) -> np.ndarray:
        queries = [self.truth[sound_key(clip)] for clip in clips]
        with self._lock:
            self.heard.update(sound_key(clip) for clip in clips)
            vectors = self.words.encode([q.text for q in queries], role="query")
        wrong = [i for i, q in enumerate(queries) if (q.id, q.condition) in self.failed]
        vectors[wrong] = np.nan
        return vectors

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> np.ndarray:
        with self._lock:
            return self.words.encode(texts, role=role)


class Backwards(Composite):
    """A reranker: the first stage's documents, the last first."""

    def __init__(self, first: Any, depth: int = 5) -> None:
        super().__init__([first], depth)
        self.asked = 0

    @property
    def spec(self) -> ComponentSpec:
        settings = {"depth": self._depth, "parts": self._part_settings()}
        return ComponentSpec("retriever", "test", f"backwards({self._parts[0].spec.name})", settings=settings)

    def part_depth(self, k: int) -> int:
        return self._depth

    def combine(
        self, queries: Sequence[str], rankings: Sequence[Sequence[Sequence[Hit]]], documents: DocumentLookup, *, k: int
    ) -> list[list[Hit]]:
        self.asked += len(queries)
        for ranking in rankings[0]:
            assert len(ranking) <= self._depth
            documents.by_id([hit.document_id for hit in ranking])
        return [[Hit(h.document_id, float(i)) for i, h in enumerate(r)][::-1][:k] for r in rankings[0]]


class SharedSounds:
    """Data whose clips are given, for one subset `s` in English."""

    recipe: Mapping[str, Any] = {"sources": [{"name": "synthetic", "version": "1", "license": "CC0-1.0"}]}
    revision, manifest_sha256, benchmark, split = "1", "", "", "test"
    edges: Mapping[str, Sequence[float]] = {}
    subsets: Mapping[str, str] = {"s": "en"}

    def __init__(
        self,
        queries: Sequence[tuple[str, str]],
        sounds: Mapping[str, Sequence[bytes]],
        documents: Sequence[Document],
        relevant: Mapping[str, Mapping[str, int]],
    ) -> None:
        self.conditions = list(sounds)
        self._queries = [Query(id_, "s", "en", text) for id_, text in queries]
        self._sounds, self._documents, self._relevant = sounds, documents, relevant

    def queries(self, subset: str) -> Sequence[Query]:
        return self._queries

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        return self._queries

    def has_corpus(self, subset: str) -> bool:
        return True

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Any:
        clips = self._sounds[condition]
        for i in range(len(self._queries))[start:stop]:
            q = self._queries[i]
            yield SpokenQuery(q.id, "s", "en", q.text, clips[i], 0.5, condition)

    def documents(self, subset: str) -> Sequence[Document]:
        return self._documents

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        return {id_: dict(grades) for id_, grades in self._relevant.items()}
