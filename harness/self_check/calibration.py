"""The items of the self-check, all from the embedded source `mini`: clips with their texts, queries with passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...loaders.records import Document, Query, Samples
from ...loaders.rows import speech_of
from ...loaders.sources import load_source

VERSION = "1"
"""Raised when items, levels or measures change: what was kept by another version is checked again."""

CLIPS: Mapping[str, tuple[str, ...]] = {
    "en": ("en-day-q09", "en-hea-q14", "en-enc-q05"),
    "zh": ("zh-hea-q14", "zh-fin-q17", "zh-day-q09"),
    "es": ("es-enc-q01", "es-hea-q14", "es-day-q09"),
}
"""Queries whose clips are clean, short (2.8 to 3.7 s), of other voices and matters, and without figures."""

LANGUAGES = tuple(CLIPS)
PASSAGES = 20
_PER_DOMAIN = 5


@dataclass(frozen=True, slots=True)
class Question:
    """What an answerer is asked about one clip: which of three sentences it says, and to repeat it."""

    choice: str
    repeat: str
    transcript: str


QUESTIONS: Mapping[str, Question] = {
    "en": Question(
        "Which of these sentences is spoken in the recording? Reply with the letter only.",
        "Repeat word for word what is spoken in the recording.",
        "Transcript of the recording:",
    ),
    "zh": Question("录音里说的是下面哪一句话？只回答字母。", "请逐字重复录音里说的话。", "录音的文字稿："),
    "es": Question(
        "¿Cuál de estas frases se dice en la grabación? Responde solo con la letra.",
        "Repite palabra por palabra lo que se dice en la grabación.",
        "Transcripción de la grabación:",
    ),
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """The items of one language: `relevant[i]` is the id of the passage that answers `queries[i]`."""

    language: str
    spoken: Sequence[Query]
    queries: Sequence[str]
    relevant: Sequence[str]
    passages: Sequence[Document]

    @property
    def texts(self) -> list[str]:
        """What the clips say."""
        return [query.text for query in self.spoken]

    def clips(self, rate: int) -> list[Samples]:
        """The clips, (T,) float32 at `rate`."""
        source = load_source("mini")
        return [speech_of(source, query, rate).samples for query in self.spoken]

    def equal_clips(self, rate: int) -> list[Samples]:
        """The clips, all cut to the length of the shortest: a model that ignores audio cannot tell them apart."""
        clips = self.clips(rate)
        shortest = min(map(len, clips))
        return [clip[:shortest] for clip in clips]


@lru_cache(maxsize=len(LANGUAGES))
def calibration(language: str) -> Calibration | None:
    """The items of a language, None for one that is not in the calibration."""
    if language not in CLIPS:
        return None
    source, subset = load_source("mini"), f"mini-{language}"
    queries = {query.id: query for query in source.queries(subset)}
    judged: dict[str, list[str]] = {}
    for qrel in source.qrels(subset):
        judged.setdefault(qrel.query_id, []).append(qrel.document_id)
    # Of every domain the first queries with one passage each that is no other's.
    pairs: dict[str, str] = {}
    for query_id in sorted(queries):
        domain, passage = query_id.rpartition("-")[0], judged[query_id][0]
        same = sum(other.startswith(domain) for other in pairs)
        if len(judged[query_id]) == 1 and passage not in pairs.values() and same < _PER_DOMAIN:
            pairs[query_id] = passage
    wanted = set(pairs.values())
    passages = [document for document in source.documents(subset) if document.id in wanted]
    return Calibration(
        language,
        [queries[id_] for id_ in CLIPS[language]],
        [queries[id_].text for id_ in pairs],
        list(pairs.values()),
        passages,
    )
