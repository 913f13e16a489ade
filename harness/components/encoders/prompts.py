"""Published text encoders: their prompts, as the model cards say (and SQuTR, arXiv 2602.12783), and languages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ....errors import IntegrityError
from ..retrievers.lexical_tokens import primary_language
from ..weights import published_name

Role = Literal["query", "document"]
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
_BGE_EN = "Represent this sentence for searching relevant passages: "
_BGE_ZH = "为这个句子生成表示以用于检索相关文章："
_WEB = "Instruct: Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True, slots=True)
class PublishedPrompts:
    """What is put before a query and before a document; `languages` are codes, empty for many.

    `query_task` and `document_task` name the adapters of a model that has some, "" for none. How token vectors become
    one (the mean, the first or the last token) is in the model's own configuration.
    """

    query: str = ""
    document: str = ""
    languages: tuple[str, ...] = ()
    query_task: str = ""
    document_task: str = ""

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
_E5_EN = {
    f"e5-{size}{version}": PublishedPrompts("query: ", "passage: ", ("en",))
    for size in ("small", "base", "large")
    for version in ("", "-v2")
}
_QWEN3 = {f"qwen3-embedding-{size}": PublishedPrompts(f"{_WEB}\nQuery:") for size in ("0.6b", "4b", "8b")}
_STELLA = {f"stella_en_{size}_v5": PublishedPrompts(f"{_WEB}.\nQuery: ", "", ("en",)) for size in ("400m", "1.5b")}
_GTE = {
    **{f"gte-{size}": PublishedPrompts("", "", ("en",)) for size in ("small", "base", "large")},
    **{f"gte-{size}-zh": PublishedPrompts("", "", ("zh",)) for size in ("small", "base", "large")},
    **{f"gte-{size}-en-v1.5": PublishedPrompts("", "", ("en",)) for size in ("base", "large")},
    "gte-multilingual-base": PublishedPrompts(),
    "gte-modernbert-base": PublishedPrompts("", "", ("en",)),
    **{f"gte-qwen2-{size}-instruct": PublishedPrompts(f"{_WEB}\nQuery: ") for size in ("1.5b", "7b")},
}
_JINA = {
    **{f"jina-embeddings-v2-{size}-en": PublishedPrompts("", "", ("en",)) for size in ("small", "base")},
    # Bilingual, with English.
    **{f"jina-embeddings-v2-base-{code}": PublishedPrompts("", "", (code, "en")) for code in ("zh", "es", "de")},
    "jina-embeddings-v3": PublishedPrompts(
        "Represent the query for retrieving evidence documents: ",
        "Represent the document for retrieval: ",
        query_task="retrieval.query",
        document_task="retrieval.passage",
    ),
}

PUBLISHED: Mapping[str, PublishedPrompts] = {
    **_BGE,
    "bge-m3": PublishedPrompts(),
    **_E5,
    **_E5_EN,
    "multilingual-e5-large-instruct": PublishedPrompts(f"{_WEB}\nQuery: "),
    "multilingual-e5-small-q4": _E5["multilingual-e5-small"],
    "embeddinggemma-300m": PublishedPrompts("task: search result | query: ", "title: none | text: "),
    "all-minilm-l6-v2": PublishedPrompts("", "", ("en",)),
    **_STELLA,
    **_QWEN3,
    **_GTE,
    **_JINA,
}


def published_prompts(model: str) -> PublishedPrompts | None:
    """The prompts published for a model, by the last part of its name; None for one that is not listed.

    >>> published_prompts("intfloat/multilingual-e5-large").query
    'query: '
    >>> published_prompts("someone/other") is None
    True
    """
    return PUBLISHED.get(published_name(model))


def prompt_of(role: Role, given: str | None, model: str | Path, folder: Path) -> str:
    """What goes before a text: as `given`, else as published for the model, else as its own configuration names it."""
    if given is not None:
        return given
    published = published_prompts(str(model))
    if published is not None:
        return published.query if role == "query" else published.document
    return own_prompt(folder, role)


def own_prompt(folder: Path, role: Role) -> str:
    """The prompt that a model's own configuration holds for `role`, "" if none."""
    file = folder / "config_sentence_transformers.json"
    try:
        prompts: Any = json.loads(file.read_text(encoding="utf-8")).get("prompts") or {}
        return next((str(prompts[name]) for name in _PROMPT_NAMES[role] if prompts.get(name)), "")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError, AttributeError) as error:
        raise IntegrityError(f"the model's configuration {file} cannot be read: {error}.") from error
