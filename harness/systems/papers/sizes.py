"""How large the data of the papers is: counts and means as published, for plans that are made before it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SubsetSize:
    """A text collection: mean lengths of queries and documents are in words, for Chinese in characters.

    `seconds` is the mean length of a spoken query; `documents` 0 is speech with transcripts alone.
    """

    language: str
    queries: int
    seconds: float
    query_length: float
    documents: int = 0
    qrels: int = 0
    document_length: float = 0.0


@dataclass(frozen=True, slots=True)
class SpeechSize:
    """Data of speech: `source` says where the numbers are from, `download` is the release in bytes (0: not known)."""

    benchmark: str
    source: str
    conditions: tuple[str, ...]
    subsets: Mapping[str, SubsetSize]
    download: int = 0


@dataclass(frozen=True, slots=True)
class QuestionSize:
    """Questions about audio. Lengths of audio in s; `comparative` are about two clips, `spoken` have a spoken version.

    `options` maps numbers of options to how many questions have so many; `following` are instructions without options.
    """

    benchmark: str
    source: str
    language: str
    questions: int
    following: int
    comparative: int
    spoken: int
    options: Mapping[int, int]
    shortest_s: float
    median_s: float
    mean_s: float
    longest_s: float


STAND_INS: Mapping[str, SpeechSize | QuestionSize] = {
    "squtr": SpeechSize(
        "squtr",
        "arXiv 2602.12783, table 1 and section 3: 76.4 h English and 114.0 h Chinese over four conditions",
        ("clean", "low_noise", "medium_noise", "high_noise"),
        {
            "fiqa": SubsetSize("en", 648, 5.98, 10.77, 57_638, 1_706, 132.32),
            "hotpotqa": SubsetSize("en", 7_405, 5.98, 17.61, 5_233_329, 14_810, 46.30),
            "nq": SubsetSize("en", 3_452, 5.98, 9.16, 2_681_468, 4_201, 78.88),
            "duretrieval": SubsetSize("zh", 2_000, 3.98, 9.29, 100_001, 9_839, 398.59),
            "medicalretrieval": SubsetSize("zh", 1_000, 3.98, 17.94, 100_999, 1_000, 122.04),
            "t2retrieval": SubsetSize("zh", 22_812, 3.98, 10.94, 118_605, 118_932, 874.12),
        },
        21_069_841_248,
    ),
    "rir_mega": SpeechSize(
        "rir_mega",
        "1,600 test pairs (the paper's repository); lengths of LibriSpeech test-clean, 5.4 h and 52,576 words in 2,620",
        ("clean", "reverb"),
        {"librispeech": SubsetSize("en", 1_600, 5.4 * 3600 / 2_620, 52_576 / 2_620)},
        1_130_000_000,
    ),
    "escucha": QuestionSize(
        "escucha",
        "arXiv 2607.17812: 163 h in 1,000 questions",
        "es",
        questions=1_000,
        following=100,
        comparative=254,
        spoken=100,
        options={4: 848, 3: 45, 2: 7},
        shortest_s=6.7,
        median_s=86.2,
        mean_s=586.5,
        longest_s=85 * 60.0,
    ),
}
