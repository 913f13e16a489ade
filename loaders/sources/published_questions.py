"""Published sets of questions about audio: what their repositories look like, and where they are fetched from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedQuestions:
    """A published set: `tables` are paths in the repository, the preferred first; `address` is where they lie.

    `home` is its page, for messages; `license` what it states.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    address: str
    home: str
    license: str
    language: str


PUBLISHED_QUESTIONS: Mapping[str, PublishedQuestions] = {
    row.name: row
    for row in (
        PublishedQuestions(
            "escucha",
            "ESCUCHA (arXiv 2607.17812): questions about Spanish audio, which lies at its publishers' addresses",
            ("data/tsv/ESCUCHA.json", "data/tsv/ESCUCHA.tsv"),
            "https://raw.githubusercontent.com/ferugit/ESCUCHA/main",
            "github.com/ferugit/ESCUCHA",
            "unknown",
            "es",
        ),
    )
}
"""The sets that `squtr fetch questions NAME` fetches. ESCUCHA's paper names the repository; it states no license."""
