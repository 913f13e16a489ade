"""Published text encoders: the prompts that they were trained or published with, and their languages.

SQuTR (arXiv 2602.12783) gives every query the prompt that its encoder's authors prescribe; a forgotten prompt costs
accuracy without any error. What is written here is what the model cards say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .lexical_tokens import primary_language

_BGE_EN = "Represent this sentence for searching relevant passages: "
_BGE_ZH = "为这个句子生成表示以用于检索相关文章："
_WEB = "Instruct: Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True, slots=True)
class PublishedPrompts:
    """What is put before a query and before a document; `languages` are codes, empty for many."""

    query: str = ""
    document: str = ""
    languages: tuple[str, ...] = ()

    def supports(self, language: str) -> bool:
        """Whether the encoder was made for `language`.

        >>> PUBLISHED["all-minilm-l6-v2"].supports("en-GB"), PUBLISHED["all-minilm-l6-v2"].supports("zh")
        (True, False)
        """
        return not self.languages or primary_language(language) in self.languages


_BGE = {
    f"bge-{size}-{language}-v1.5": PublishedPrompts(prompt, "", (language,))
    for size in ("small", "base", "large")
    for language, prompt in (("en", _BGE_EN), ("zh", _BGE_ZH))
}
_E5 = {f"multilingual-e5-{size}": PublishedPrompts("query: ", "passage: ") for size in ("small", "base", "large")}
_QWEN3 = {f"qwen3-embedding-{size}": PublishedPrompts(f"{_WEB}\nQuery:") for size in ("0.6b", "4b", "8b")}
_STELLA = {f"stella_en_{size}_v5": PublishedPrompts(f"{_WEB}.\nQuery: ", "", ("en",)) for size in ("400m", "1.5b")}

PUBLISHED: Mapping[str, PublishedPrompts] = {
    **_BGE,
    "bge-m3": PublishedPrompts(),
    **_E5,
    "multilingual-e5-small-q4": _E5["multilingual-e5-small"],
    "embeddinggemma-300m": PublishedPrompts("task: search result | query: ", "title: none | text: "),
    "all-minilm-l6-v2": PublishedPrompts("", "", ("en",)),
    **_STELLA,
    **_QWEN3,
}
"""The last part of a repository's name, in lower case, to its prompts."""


def published_prompts(model: str) -> PublishedPrompts | None:
    """The prompts published for a model, by the last part of its name; None for one that is not listed.

    >>> published_prompts("intfloat/multilingual-e5-large").query
    'query: '
    >>> published_prompts("someone/other") is None
    True
    """
    return PUBLISHED.get(model.rstrip("/").rsplit("/", maxsplit=1)[-1].lower())
