"""What is judged: a cascade of a transcriber and a retriever, an end-to-end encoder, or a ready run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

from ...errors import UsageError, unknown_name
from ..protocols import AudioTextEncoder, FrontEnd, PrecomputedRun, PrecomputedTranscripts, Retriever, Transcriber
from ..results.files import file_name
from ..text.normalizers import NORMALIZERS
from .entries import Origins

SCRIPTS = ("auto", "simplified", "none")
"""What to do with Chinese transcripts before retrieval. `auto` is `simplified` for Chinese and `none` elsewhere."""

FUSIONS = ("rrf", "score")
"""How the rankings of the n best transcripts become one: by reciprocal rank, or by score."""

EXAMPLE = "For example: 'faster-whisper:whisper-base + bm25'."
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Cascade:
    """A transcriber whose transcripts a retriever searches with.

    `transcriber` may be ready transcripts from a file, `retriever` a ready run. `script` folds Chinese transcripts to
    the corpus's script before retrieval (recognizers write either script). `normalizer` names the text normalizer of
    the error rates. `front_end` works on the sound before the transcriber hears it. With `n_best` above 1, each of the
    n best transcripts is searched with and their rankings are fused by `n_best_fusion` ("rrf" or "score").
    `display_name` replaces the name in tables. `origins` is what `write_spec` writes down: what the components were
    made from.

    Raises `UsageError` for parts that do not go together.
    """

    transcriber: Transcriber | PrecomputedTranscripts
    retriever: Retriever | PrecomputedRun
    script: str = "auto"
    normalizer: str = "default"
    _: KW_ONLY
    front_end: FrontEnd | None = None
    n_best: int = 1
    n_best_fusion: str = "rrf"
    display_name: str = ""
    origins: Origins = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.script not in SCRIPTS:
            raise unknown_name("script folding", self.script, SCRIPTS)
        if self.normalizer not in NORMALIZERS:
            raise unknown_name("normalizer", self.normalizer, NORMALIZERS)
        if self.n_best_fusion not in FUSIONS:
            raise unknown_name("fusion of the n best transcripts", self.n_best_fusion, FUSIONS)
        _check_display_name(self.display_name)
        if self.front_end is not None and self.precomputed_transcripts is not None:
            raise UsageError(
                f"a front end ({self.front_end.spec.name}) has nothing to work on before ready transcripts.",
                hint="Leave the front end out, or give a transcriber.",
            )
        self._check_n_best()

    def _check_n_best(self) -> None:
        if self.n_best < 1:
            raise UsageError(f"n_best is {self.n_best}.", hint="Give 1 (the best transcript alone) or more.")
        if self.n_best == 1:
            return
        if self.precomputed_run is not None:
            raise UsageError(
                f"n_best is {self.n_best}, but a ready run has one ranking per query.", hint="Leave n_best out."
            )
        spec = self.transcriber.spec
        offered = spec.settings.get("n_best", 1)
        if not isinstance(offered, int) or offered < self.n_best:
            raise UsageError(
                f"n_best is {self.n_best}, but {spec.name} ({spec.backend}) gives {offered!r} transcript(s) per query.",
                hint=f"Give the transcriber the option n_best: {self.n_best}, or use a backend that has it.",
            )

    @property
    def kind(self) -> str:
        """`cascade`."""
        return "cascade"

    @property
    def listener(self) -> Transcriber | None:
        """The transcriber, None for ready transcripts."""
        return cast(Transcriber, self.transcriber) if hasattr(self.transcriber, "transcribe") else None

    @property
    def precomputed_transcripts(self) -> PrecomputedTranscripts | None:
        """The ready transcripts, None for a transcriber."""
        return None if hasattr(self.transcriber, "transcribe") else self.transcriber

    @property
    def searcher(self) -> Retriever | None:
        """The retriever, None for a ready run."""
        return cast(Retriever, self.retriever) if hasattr(self.retriever, "search") else None

    @property
    def precomputed_run(self) -> PrecomputedRun | None:
        """The ready run, None for a retriever."""
        return None if hasattr(self.retriever, "search") else self.retriever

    @property
    def name(self) -> str:
        """As shown in tables: the parts' names, or `display_name`."""
        if self.display_name:
            return self.display_name
        front = f"{self.front_end.spec.name} | " if self.front_end is not None else ""
        best = f" ({self.n_best}-best)" if self.n_best > 1 else ""
        return f"{front}{self.transcriber.spec.name} + {self.retriever.spec.name}{best}"

    def folding(self, language: str) -> str:
        """The script that transcripts of this language are folded to, or `none`."""
        if self.script == "auto":
            return "simplified" if language == "zh" else "none"
        return self.script

    def supports(self, language: str) -> bool:
        """Whether both parts were made for this language."""
        return self.transcriber.supports(language) and self.retriever.supports(language)

    def as_dict(self) -> dict[str, Any]:
        """Every field as JSON object, components as their specs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "display_name": self.display_name,
            "front_end": None if self.front_end is None else self.front_end.spec.as_dict(),
            "transcriber": self.transcriber.spec.as_dict(),
            "retriever": self.retriever.spec.as_dict(),
            "script": self.script,
            "normalizer": self.normalizer,
            "n_best": self.n_best,
            "n_best_fusion": self.n_best_fusion,
        }


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """An encoder that puts spoken queries and typed documents into one space: no transcript, no error rate."""

    encoder: AudioTextEncoder
    _: KW_ONLY
    front_end: FrontEnd | None = None
    display_name: str = ""
    origins: Origins = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_display_name(self.display_name)

    @property
    def kind(self) -> str:
        """`end-to-end`."""
        return "end-to-end"

    @property
    def name(self) -> str:
        """As shown in tables: the encoder's name, or `display_name`."""
        if self.display_name:
            return self.display_name
        front = f"{self.front_end.spec.name} | " if self.front_end is not None else ""
        return f"{front}{self.encoder.spec.name}"

    def supports(self, language: str) -> bool:
        """Whether the encoder was made for this language."""
        return self.encoder.supports(language)

    def as_dict(self) -> dict[str, Any]:
        """Every field as JSON object, components as their specs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "display_name": self.display_name,
            "front_end": None if self.front_end is None else self.front_end.spec.as_dict(),
            "encoder": self.encoder.spec.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class RunOnly:
    """A ready run alone: rankings are scored, transcripts there are none."""

    run: PrecomputedRun
    display_name: str = ""
    origins: Origins = field(default=(), compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_display_name(self.display_name)

    @property
    def kind(self) -> str:
        """`run`."""
        return "run"

    @property
    def name(self) -> str:
        """As shown in tables: the run's name, or `display_name`."""
        return self.display_name or self.run.spec.name

    def supports(self, language: str) -> bool:
        """Whether the run has this language (a file decides that by what it holds)."""
        return self.run.supports(language)

    def as_dict(self) -> dict[str, Any]:
        """Every field as JSON object, the run as its spec."""
        return {
            "kind": self.kind,
            "name": self.name,
            "display_name": self.display_name,
            "run": self.run.spec.as_dict(),
        }


System = Cascade | EndToEnd | RunOnly
"""What can be evaluated."""


def check_systems(systems: Sequence[System]) -> Sequence[System]:
    """`systems`, if there are any and their names differ (a name is a row of the table and a folder of results)."""
    if not systems:
        raise UsageError("no system is given.", hint=EXAMPLE)
    seen: dict[str, str] = {}
    for name in (system.name for system in systems):
        other = seen.setdefault(file_name(name), name)
        if other is not name:
            said = f"called {name!r}" if other == name else f"called {other!r} and {name!r}, which is one folder"
            raise UsageError(f"two systems are {said}.", hint="Leave one out, or give one of them another name.")
    return systems


def _check_display_name(name: str) -> None:
    """It is a cell of a table and, by `file_name`, a folder."""
    shown = name == name.strip() and name.isprintable() and any(c.isalnum() for c in name)
    if name and not (shown and len(name.encode("utf-8")) <= _LONGEST_NAME):
        raise UsageError(
            f"the name {name[:80]!r} of a system cannot be shown in a table.",
            hint=f"Use one line of at most {_LONGEST_NAME} bytes with a letter or digit, without blanks at its ends.",
        )
