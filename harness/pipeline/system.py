"""The system that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...errors import UsageError
from ..protocols import Retriever
from ..systems.system import Cascade, EndToEnd, RunOnly, System, check_systems

__all__ = ["Cascade", "EndToEnd", "RunOnly", "System", "cached_retriever", "check_systems", "parse_system"]


def parse_system(
    text: str, *, cache: Path | None = None, transcriber_options: Mapping[str, object] | None = None
) -> Cascade:
    """The cascade written as `<transcriber> + <retriever>`, for example `faster-whisper:whisper-base + bm25`.

    With `cache`, embeddings are kept below that folder. Raises `UsageError` for another form and `UnknownNameError` for
    an unknown part.
    """
    parts = [part.strip() for part in text.split("+")]
    if len(parts) != 2 or not all(parts):
        raise UsageError(
            f"the system {text!r} is not written as '<transcriber> + <retriever>'.",
            hint="For example: 'faster-whisper:whisper-base + bm25'.",
        )
    from ..backends import load_transcriber

    return Cascade(load_transcriber(parts[0], **(transcriber_options or {})), cached_retriever(parts[1], cache))


def cached_retriever(name: str, cache: Path | None) -> Retriever:
    """The retriever of that name; a dense one keeps its embeddings below `cache` (None keeps nothing)."""
    from ..backends import load_retriever

    if cache is None or name.partition(":")[0] != "dense":
        return load_retriever(name)
    from ..backends.embedding_cache import DirectoryEmbeddingCache

    return load_retriever(name, cache=DirectoryEmbeddingCache(cache / "embeddings"))
