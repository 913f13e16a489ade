"""The release as it was published, its own noisy audio included, in the form that the harness evaluates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from ...errors import AudioError, DataError, UsageError, unknown_name
from ..audio import decode_audio, encode_flac, resample
from ..conditions.noise import NAMED_LEVELS_DB
from ..corpus import Corpus
from ..mixing import limit_peak
from ..origins import Origin
from ..recipe import choose_queries, choose_subsets
from ..records import NAN, SAMPLE_RATE, Query, SpokenQuery
from .archive import read_recording
from .release import CLEAN, ReleaseSource, parse_noise_id

_HIGHEST = 32767 / 32768


@dataclass(frozen=True, slots=True)
class _Recording:
    audio: bytes = b""
    duration_s: float = 0.0
    gain_db: float = 0.0


class ReleaseData:
    """`SpeechData` of a release. Conditions are those that every chosen subset has recordings of.

    The published audio is passed on as it is, without loss where it has 16 bits at 24 kHz: nothing is mixed, leveled
    or checked for silence (only what 16 bits cannot hold is turned down, see `gain_db`). A clip that is missing comes
    as a row without audio (`b""`, 0 s) and one that cannot be decoded as the bytes that it has, so that an evaluation
    counts both as failures and the pairing holds. `limit` queries per subset are drawn by the keyed rule (0: all).
    """

    manifest_sha256 = ""
    benchmark = ReleaseSource.benchmark
    split: str = "test"
    edges: Mapping[str, Sequence[float]] = MappingProxyType({})

    def __init__(
        self,
        source: ReleaseSource,
        *,
        languages: Sequence[str] | None = None,
        subsets: Sequence[str] | None = None,
        limit: int = 0,
        seed: int = 0,
    ) -> None:
        if limit < 0:
            raise UsageError(f"the limit is {limit}.", hint="Give the number of queries per subset, or 0 for all.")
        self.source = source
        self._limit = limit
        self._seed = seed
        self.subsets: Mapping[str, str] = MappingProxyType(choose_subsets(source, languages, subsets))
        self._variants = self._common_conditions()
        self.conditions: Sequence[str] = tuple(self._variants)
        self._corpora: WeakValueDictionary[str, Corpus] = WeakValueDictionary()

    def _common_conditions(self) -> dict[str, str]:
        every = [self.source.variants(subset) for subset in self.subsets]
        names = {f"noise_snr_{level:g}": name for name, level in NAMED_LEVELS_DB.items()}
        shared = {
            CLEAN if level is None else names.get(variant, f"snr_{level:g}"): variant
            for variant, level in every[0].items()
            if all(variant in variants for variants in every)
        }
        if not shared:
            raise DataError(
                f"{self.source.tree.label} has no condition that all of {', '.join(self.subsets)} share.",
                hint="Choose fewer subsets, or complete the release.",
            )
        return shared

    @property
    def _origin(self) -> Origin:
        version = self.source.fingerprint(tuple(self._variants.values()))[:12]
        return Origin(self.source.name, version, self.source.license, tuple(self.subsets))

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        return {
            "sources": [asdict(self._origin)],
            "subsets": dict(self.subsets),
            "conditions": list(self.conditions),
            "noise": [asdict(Origin("as published", subsets=tuple(self.subsets)))],
            "rirs": [],
            "limit": self._limit,
            "seed": self._seed,
            "splits": ["test"],
            "sample_rate": SAMPLE_RATE,
            "benchmark": self.benchmark,
        }

    @cached_property
    def revision(self) -> str:
        canonical = json.dumps(self.recipe, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def _check(self, subset: str) -> None:
        if subset not in self.subsets:
            raise unknown_name("subset", subset, self.subsets)

    def queries(self, subset: str) -> Sequence[Query]:
        self._check(subset)
        return choose_queries(self.source.queries(subset), self._limit, self._seed)

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        if condition not in self._variants:
            raise unknown_name("condition of the release:", condition, self._variants)
        return self.queries(subset)

    def has_corpus(self, subset: str) -> bool:
        self._check(subset)
        return True

    def documents(self, subset: str) -> Corpus:
        self._check(subset)
        corpus = self._corpora.get(subset)
        if corpus is None:
            corpus = self._corpora[subset] = Corpus.of(self.source.documents(subset))
        return corpus

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        grades: dict[str, dict[str, int]] = {query.id: {} for query in self.queries(subset)}
        for qrel in self.source.qrels(subset):
            if qrel.query_id in grades:
                grades[qrel.query_id][qrel.document_id] = qrel.score
        return grades

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        self._check(subset)
        if condition not in self._variants:
            raise unknown_name("condition of the release:", condition, self._variants)
        variant = self._variants[condition]
        level = self.source.variants(subset)[variant]
        clips = self.source.clips(subset, variant)
        for query in self.queries(subset)[start:stop]:
            clip = clips.get(query.id)
            file = None if clip is None else self.source.recording(subset, variant, clip)
            recording = _Recording() if file is None else self._recording(file, query)
            noise_id = "" if clip is None or level is None else clip.noise_id
            yield SpokenQuery(
                id=query.id,
                subset=subset,
                language=query.language,
                text=query.text,
                audio=recording.audio,
                duration_s=recording.duration_s,
                condition=condition,
                snr_db=NAN if level is None else level,
                noise_id=noise_id,
                noise_family=parse_noise_id(noise_id).family,
                gain_db=recording.gain_db,
                seed=self._seed,
            )

    def _recording(self, file: str, query: Query) -> _Recording:
        name = f"the recording {file} of query {query.id!r}"
        content = read_recording(self.source.tree, file)
        try:
            samples, rate = decode_audio(content, name)
        except AudioError:
            # The harness fails on the same bytes in the same way, and counts it.
            return _Recording(content)
        samples, gain_db = resample(samples, rate), 0.0
        if samples.size and (samples.max() > _HIGHEST or samples.min() < -1.0):
            samples, gain_db = limit_peak(samples, _HIGHEST)
        return _Recording(encode_flac(samples, name), samples.size / SAMPLE_RATE, gain_db)
