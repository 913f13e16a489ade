"""What is evaluated: a chain of components, one class for all tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

from ...errors import UsageError, unknown_name
from ..protocols import (
    Answerer,
    AudioTextEncoder,
    FrontEnd,
    PrecomputedRun,
    PrecomputedTranscripts,
    Retriever,
    Rewriter,
    Transcriber,
)
from ..results.files import file_name
from ..text.normalizers import NORMALIZERS
from .entries import Origins, Role, chain_name

SCRIPTS = ("auto", "simplified", "none")
"""What to do with Chinese transcripts before retrieval. `auto` is `simplified` for Chinese and `none` elsewhere."""

FUSIONS = ("rrf", "score")

TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "transcript": ("{text}",),
    "named_transcript": ("{name}", "{text}"),
    "no_transcript": (),
    "text_only_note": (),
}
"""What an answerer's prompt has in place of the audio: templates that a system may replace, and what each must hold."""

EXAMPLE = "For example: 'whisper-base + bm25'."
_LONGEST_NAME = 200

Kind = Literal["cascade", "end-to-end", "run", "transcriber", "answerer"]
T = TypeVar("T")
PerLanguage: TypeAlias = "T | Mapping[str, T]"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A chain of components: front end → transcriber → rewriter → retriever, or an answerer, or an encoder, or
    precomputed output.

    - transcriber and retriever: a cascade, whose transcripts are searched with. `transcriber` may be precomputed
      transcripts, `retriever` a precomputed run. With a `rewriter`, what it makes of them is searched with;
    - encoder: end-to-end, one space for audio and documents; a retriever that is a precomputed run, alone: a run;
    - transcriber alone: speech recognition, or with a rewriter, whose texts are then the hypotheses;
    - answerer: answers questions about audio; behind a transcriber it is an LLM that is given transcripts; with
      `text_only` it is given neither: the text-only baseline.

    A component may be a mapping of language to component. `script` folds Chinese transcripts to the corpus's script
    before retrieval (transcribers write either script). `normalizer` names the text normalizer of the error rates, ""
    the benchmark's. With `n_best` above 1, each of the n best transcripts is searched with and their rankings are fused
    by `n_best_fusion` ("rrf" or "score"); a rewriter is given all of them, and makes one text. `templates` replace
    those of an answerer's prompt (see `TEMPLATES`). `display_name` replaces the name in tables. `preset` names the
    published decode settings of the transcriber; it decides nothing itself. `origins` is what `write_spec` writes down:
    what the components were made from.

    Raises `UsageError` for parts that do not go together.
    """

    front_end: PerLanguage[FrontEnd] | None = None
    transcriber: PerLanguage[Transcriber | PrecomputedTranscripts] | None = None
    rewriter: PerLanguage[Rewriter] | None = None
    retriever: PerLanguage[Retriever | PrecomputedRun] | None = None
    encoder: PerLanguage[AudioTextEncoder] | None = None
    answerer: PerLanguage[Answerer] | None = None
    text_only: bool = False
    script: str = "auto"
    normalizer: str = ""
    n_best: int = 1
    n_best_fusion: str = "rrf"
    templates: Mapping[str, str] = field(default_factory=dict)
    display_name: str = ""
    preset: str = ""
    origins: Origins = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.script, SCRIPTS, "script folding"),
            (self.normalizer, ("", *NORMALIZERS), "normalizer"),
            (self.n_best_fusion, FUSIONS, "fusion of the n best transcripts"),
            *((name, tuple(TEMPLATES), "template") for name in self.templates),
        ):
            if value not in known:
                raise unknown_name(what, value, [name for name in known if name])
        for name, template in self.templates.items():
            if missing := [held for held in TEMPLATES[name] if held not in template]:
                raise UsageError(
                    f"the template {name} lacks {' and '.join(missing)}: {template!r}.",
                    hint="Write it where the transcript belongs.",
                )
        _check_display_name(self.display_name)
        for language in self.languages or ("",):
            _check_chain(self.for_language(language) if language else self)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that every per-language component has; () if none is per language."""
        tables = [set(part) for part in self._parts.values() if isinstance(part, Mapping)]
        if not tables:
            return ()
        common = set.intersection(*tables)
        if not common:
            raise UsageError("the components per language have no language in common.", hint="Name the same languages.")
        return tuple(sorted(common))

    @property
    def _parts(self) -> dict[Role, Any]:
        return {role: part for role in ROLES if (part := getattr(self, role)) is not None}

    def for_language(self, language: str) -> System:
        """The system with the components of one language. Raises `UsageError` for a language that it lacks."""
        if not any(isinstance(part, Mapping) for part in self._parts.values()):
            return self
        chosen: dict[str, Any] = {}
        for role, part in self._parts.items():
            if isinstance(part, Mapping):
                if language not in part:
                    raise UsageError(
                        f"{self.name} has no {role} for {language!r}.", hint=f"It has {', '.join(sorted(part))}."
                    )
                chosen[role] = part[language]
        return replace(self, **chosen, display_name=self.name)

    @property
    def distinct(self) -> list[System]:
        """The system for each of its languages; itself where no component is per language."""
        return [self.for_language(language) for language in self.languages] or [self]

    @property
    def kind(self) -> Kind:
        if self.answerer is not None:
            return "answerer"
        if self.encoder is not None:
            return "end-to-end"
        if self.transcriber is not None:
            return "transcriber" if self.retriever is None else "cascade"
        return "run"

    @property
    def model_transcriber(self) -> Transcriber | None:
        """The transcriber, None for precomputed transcripts and without one."""
        return cast("Transcriber | None", self._with("transcriber", "transcribe"))

    @property
    def precomputed_transcripts(self) -> PrecomputedTranscripts | None:
        """The precomputed transcripts, None for a transcriber and without one."""
        return cast("PrecomputedTranscripts | None", self._with("transcriber", "transcripts"))

    @property
    def searcher(self) -> Retriever | None:
        """The retriever, None for a precomputed run and without one."""
        return cast("Retriever | None", self._with("retriever", "search"))

    @property
    def precomputed_run(self) -> PrecomputedRun | None:
        """The precomputed run, None for a retriever and without one."""
        return cast("PrecomputedRun | None", self._with("retriever", "hits"))

    def _with(self, role: Role, method: str) -> object | None:
        """The component of a role if it has this method. Raises `UsageError` where it is per language."""
        part = getattr(self, role)
        if isinstance(part, Mapping):
            raise UsageError(
                f"{self.name} has one {role} per language.", hint="Take the system of one language: for_language(…)."
            )
        return part if hasattr(part, method) else None

    @property
    def is_precomputed(self) -> bool:
        """Whether its output was made elsewhere: a run, or replies."""
        return self.kind == "run" or any(hasattr(one.answerer, "reply_of") for one in self.distinct)

    @property
    def name(self) -> str:
        if self.display_name:
            return self.display_name
        names = {role: shown_name(part) for role, part in self._parts.items()}
        return chain_name(names, text_only=self.text_only, n_best=self.n_best)

    def folding(self, language: str) -> str:
        """The script that transcripts of this language are folded to, or `none`."""
        if self.script == "auto":
            return "simplified" if language == "zh" else "none"
        return self.script

    def supports(self, language: str) -> bool:
        if self.languages and language not in self.languages:
            return False
        plain = self.for_language(language)
        roles = ("transcriber", "rewriter", "retriever", "encoder", "answerer")
        return all(getattr(plain, role).supports(language) for role in roles if getattr(plain, role) is not None)

    def components(self, language: str) -> dict[str, dict[str, Any]]:
        plain = self.for_language(language)
        return {role: cast(dict[str, Any], part.spec.as_dict()) for role, part in plain._parts.items()}

    def as_dict(self) -> dict[str, Any]:
        """Every field as a JSON object, components as their specs."""
        written = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in {*ROLES, "origins", "templates"}
        }
        specs: dict[str, Any] = {
            role: {language: one.spec.as_dict() for language, one in part.items()}
            if isinstance(part, Mapping)
            else part.spec.as_dict()
            for role, part in self._parts.items()
        }
        return {"kind": self.kind, "name": self.name, **written, "templates": dict(self.templates), **specs}

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the sha256 of what decides its output: everything but its name."""
        content = {key: value for key, value in self.as_dict().items() if key not in {"name", "display_name", "preset"}}
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:16]

    def without_front_end(self) -> System:
        """The same without its front end, as it is called then."""
        name = self.display_name
        if name and self.front_end is not None:
            name = name.removeprefix(f"{shown_name(self.front_end)} | ")
        return replace(self, front_end=None, display_name=name)

    def text_only_baseline(self) -> System:
        """Its answerer without audio or transcripts. Raises `UsageError` for precomputed replies."""
        if self.is_precomputed:
            raise UsageError(
                f"{self.name} was made elsewhere and cannot be prompted without audio.",
                hint="Leave the text-only baseline out, or evaluate precomputed replies alone.",
            )
        # Only what decides its output: systems that share an answerer share the baseline.
        note = {key: value for key, value in self.templates.items() if key == "text_only_note"}
        return System(answerer=self.answerer, text_only=True, templates=note, origins=self.origins)


ROLES: tuple[Role, ...] = ("front_end", "transcriber", "rewriter", "retriever", "encoder", "answerer")


def shown_name(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part.spec.name)
    return " / ".join(dict.fromkeys(str(one.spec.name) for one in part.values()))


def _check_chain(system: System) -> None:
    """Raise `UsageError` unless the components go together."""
    present = set(system._parts)
    chains: tuple[set[str], ...] = (
        {"transcriber", "retriever"}, {"transcriber"}, {"encoder"}, {"answerer"}, {"transcriber", "answerer"},
    )  # fmt: skip
    run_alone = present - {"front_end"} == {"retriever"} and system.precomputed_run is not None
    if system.rewriter is not None and ("transcriber" not in present or "answerer" in present):
        raise UsageError(
            f"a rewriter ({shown_name(system.rewriter)}) stands behind a transcriber, before a retriever or alone.",
            hint="For example: 'whisper-base + rewrite:<model> + bm25'.",
        )
    if present - {"front_end", "rewriter"} not in chains and not run_alone:
        listed = " and ".join(sorted(present)) or "nothing"
        raise UsageError(f"a system of {listed} is no chain that can be evaluated.", hint=EXAMPLE)
    if system.front_end is not None and (system.precomputed_transcripts is not None or run_alone or system.text_only):
        raise UsageError(
            f"a front end ({shown_name(system.front_end)}) has nothing to work on before precomputed output.",
            hint="Leave the front end out, or give a transcriber.",
        )
    if system.front_end is not None and present == {"front_end", "answerer"}:
        raise UsageError(
            "a front end stands before a transcriber or an encoder, not before an answerer.", hint="Leave it out."
        )
    if system.text_only and present != {"answerer"}:
        raise UsageError("the text-only baseline is an answerer alone.", hint="Leave the transcriber out.")
    if system.precomputed_transcripts is not None and "answerer" in present:
        raise UsageError(
            "precomputed transcripts are by the id of a query, and questions have none.", hint="Give a transcriber."
        )
    if hasattr(system.answerer, "reply_of") and (system.text_only or "transcriber" in present):
        raise UsageError(
            f"precomputed replies ({shown_name(system.answerer)}) take neither transcripts nor a prompt.",
            hint="Evaluate the replies alone.",
        )
    if system.templates and system.answerer is None:
        raise UsageError("templates are for the prompt of an answerer, and there is none.", hint="Leave them out.")
    if system.rewriter is not None and system.precomputed_run is not None:
        raise UsageError(
            f"a precomputed run was searched already, and nothing is left for {shown_name(system.rewriter)} to change.",
            hint="Leave the rewriter out, or give a retriever.",
        )
    _check_n_best(system)


def _check_n_best(system: System) -> None:
    if system.n_best < 1:
        raise UsageError(f"n_best is {system.n_best}.", hint="Give 1 (the best transcript alone) or more.")
    # Not by its spec, for which weights are looked for and servers asked.
    given = getattr(system.rewriter, "n_best", system.n_best)
    if given != system.n_best:
        raise UsageError(
            f"n_best is {system.n_best}, but the rewriter takes {given} transcript(s) per query.",
            hint="Set n_best of the system; its rewriter then takes as many.",
        )
    if system.n_best == 1:
        return
    if system.kind != "cascade" and system.rewriter is None:
        raise UsageError(f"n_best is {system.n_best}, but nothing is searched with transcripts.", hint="Leave it out.")
    if system.precomputed_run is not None:
        raise UsageError(
            f"n_best is {system.n_best}, but a precomputed run has one ranking per query.", hint="Leave n_best out."
        )
    spec = cast(Transcriber, system.transcriber).spec
    offered = spec.settings.get("n_best", 1)
    if not isinstance(offered, int) or offered < system.n_best:
        raise UsageError(
            f"n_best is {system.n_best}, but {spec.name} ({spec.backend}) gives {offered!r} transcript(s) per query.",
            hint=f"Give the transcriber the option n_best: {system.n_best}, or use a backend that has it.",
        )


def check_systems(systems: Sequence[System]) -> Sequence[System]:
    """`systems`, if there are any and their names differ (a name is a row of the table and a folder of results)."""
    if not systems:
        raise UsageError("no system is given.", hint=EXAMPLE)
    seen: dict[str, str] = {}
    for name in (system.name for system in systems):
        other = seen.setdefault(file_name(name), name)
        if other is not name:
            both = f"called {name!r}" if other == name else f"called {other!r} and {name!r}, which is one folder"
            raise UsageError(
                f"two systems are {both}.", hint="Leave one out, or name one of them: 'other=whisper-base + bm25'."
            )
    return systems


def with_text_only_baselines(systems: Sequence[System]) -> list[System]:
    """`systems`, with the text-only baseline behind each that uses audio; one that several share is there once."""
    found = list(systems)
    fingerprints = {system.fingerprint for system in found}
    for system in systems:
        uses_audio = system.transcriber is not None or getattr(system.answerer, "uses_audio", True)
        if system.text_only or system.is_precomputed or not uses_audio:
            continue
        baseline = system.text_only_baseline()
        if baseline.fingerprint not in fingerprints:
            fingerprints.add(baseline.fingerprint)
            found.append(baseline)
    return list(check_systems(found))


def _check_display_name(name: str) -> None:
    """It is a cell of a table and, by `file_name`, a folder."""
    shown = name == name.strip() and name.isprintable() and any(c.isalnum() for c in name)
    if name and not (shown and len(name.encode("utf-8")) <= _LONGEST_NAME):
        raise UsageError(
            f"the name {name[:80]!r} of a system cannot be shown in a table.",
            hint=f"Use one line of at most {_LONGEST_NAME} bytes with a letter or digit, without blanks at its ends.",
        )
