"""How much there is to do on some data: clips, seconds, documents and tokens; real data is sampled, not read whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from ...loaders.data import SpeechData, check_config, config_subsets
from ...loaders.partial import PartialData
from ..results.envelope import TEXT_CONDITION
from ..text.languages import is_written_without_spaces
from .inference import Cell
from .options import Options
from .plan import all_configs, expand_configs
from .stand_in import StandInSpeech

TOKENS_PER_WORD, TOKENS_PER_CHARACTER = 1.4, 1.0
"""Tokens of a text by its words, or by its characters in a language without blanks between words."""
_SAMPLE = 64
_SAMPLED_CLIPS = 8


@dataclass(frozen=True, slots=True)
class CellLoad:
    language: str
    items: int
    seconds: float
    """The mean length of a clip; 0 for typed queries."""
    tokens: float
    """The mean of a query or transcript."""
    text_bytes: float


@dataclass(frozen=True, slots=True)
class CorpusLoad:
    language: str
    documents: int
    tokens: float


@dataclass(frozen=True, slots=True)
class SpeechLoad:
    """`configs` are what is evaluated, `cells` what of every subset and condition, `corpora` by subset."""

    configs: Sequence[str]
    cells: Mapping[Cell, CellLoad]
    corpora: Mapping[str, CorpusLoad]


def speech_load(data: SpeechData, configs: Sequence[str] | None, options: Options) -> SpeechLoad:
    """The load of some configs (None: all); where there is a corpus, `text` comes with every scope."""
    part: Any = data
    if options.partial:
        part = PartialData(data, limit=options.limit, fraction=options.fraction, seed=options.seed)
    named = list(expand_configs(part, configs) if configs is not None else all_configs(part))
    for name in named:
        check_config(part, name)
    if any(map(data.has_corpus, data.subsets)):
        scopes = dict.fromkeys(name.removesuffix(f"_{config_subsets(part, name)[1]}") for name in named)
        named = list(dict.fromkeys([*(f"{scope}_{TEXT_CONDITION}" for scope in scopes), *named]))
    cells: dict[Cell, CellLoad] = {}
    for config in named:
        subsets, condition = config_subsets(part, config)
        for subset in subsets:
            if (subset, condition) not in cells:
                cells[subset, condition] = _cell(data, part, subset, condition)
    all_subsets = dict.fromkeys(subset for subset, _ in cells)
    corpora = {subset: _corpus(data, subset) for subset in all_subsets if data.has_corpus(subset)}
    return SpeechLoad(named, cells, corpora)


def tokens_of(texts: Iterable[str], language: str) -> float:
    """The mean number of tokens of some texts, by words or characters.

    >>> tokens_of(["one two", "three"], "en"), tokens_of([], "en")
    (2.0999999999999996, 0.0)
    """
    texts = list(texts)
    if not texts:
        return 0.0
    if is_written_without_spaces(language):
        return fmean(map(len, texts)) * TOKENS_PER_CHARACTER
    return fmean(len(text.split()) for text in texts) * TOKENS_PER_WORD


def _cell(data: SpeechData, part: SpeechData, subset: str, condition: str) -> CellLoad:
    language = data.subsets[subset]
    rows = part.queries(subset) if condition == TEXT_CONDITION else part.rows(subset, condition)
    some = [query.text for query in islice(rows, _SAMPLE)]
    text_bytes = fmean(len(text.encode("utf-8")) for text in some) if some else 0.0
    seconds = 0.0 if condition == TEXT_CONDITION else _mean_seconds(data, subset, condition)
    return CellLoad(language, len(rows), seconds, tokens_of(some, language), text_bytes)


def _mean_seconds(data: SpeechData, subset: str, condition: str) -> float:
    if isinstance(data, StandInSpeech):
        return data.seconds(subset)
    clips = [row.duration_s for row in data.spoken(subset, condition, start=0, stop=_SAMPLED_CLIPS)]
    return fmean(clips) if clips else 0.0


def _corpus(data: SpeechData, subset: str) -> CorpusLoad:
    documents, language = data.documents(subset), data.subsets[subset]
    some = [document.contents for document in documents[: 4 * _SAMPLE]]
    return CorpusLoad(language, len(documents), tokens_of(some, language))
