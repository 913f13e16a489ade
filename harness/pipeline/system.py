"""The system that is judged: a cascade of a transcriber and a retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError, unknown_name
from ..protocols import Retriever, Transcriber

SCRIPTS = ("auto", "simplified", "none")
"""What to do with Chinese transcripts before retrieval. `auto` is `simplified` for Chinese and `none` elsewhere."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """A transcriber whose transcripts a retriever searches with.

    `script` folds Chinese transcripts to the corpus's script before retrieval (recognisers write either script).
    `normalizer` names the text normaliser of the error rates.
    """

    transcriber: Transcriber
    retriever: Retriever
    script: str = "auto"
    normalizer: str = "default"

    def __post_init__(self) -> None:
        if self.script not in SCRIPTS:
            raise unknown_name("script folding", self.script, SCRIPTS)

    @property
    def name(self) -> str:
        """As shown in tables: the two parts' names."""
        return f"{self.transcriber.spec.name} + {self.retriever.spec.name}"

    def folding(self, language: str) -> str:
        """The script that transcripts of this language are folded to, or `none`."""
        if self.script == "auto":
            return "simplified" if language == "zh" else "none"
        return self.script

    def supports(self, language: str) -> bool:
        """Whether both parts were made for this language."""
        return self.transcriber.supports(language) and self.retriever.supports(language)


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


def check_systems(systems: Sequence[Cascade]) -> Sequence[Cascade]:
    """`systems`, if there are any and their names differ (a name is a row of the table and a folder of results)."""
    if not systems:
        raise UsageError("no system is given.", hint="For example: 'faster-whisper:whisper-base + bm25'.")
    seen: dict[str, Cascade] = {}
    for system in systems:
        if system.name in seen:
            raise UsageError(
                f"two systems are called {system.name!r}.", hint="Leave one out, or give a component another name."
            )
        seen[system.name] = system
    return systems
