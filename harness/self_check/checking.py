"""The components of a system, checked one by one; what is known of one is not checked again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from ...errors import ModelError
from ..protocols import Answerer, FrontEnd, Retriever, Rewriter, Transcriber
from ..results.self_check import CheckedComponent, SelfCheck
from ..systems.system import ROLES, System
from .answer_checks import check_answerer, check_rewriter
from .audio_checks import check_audio_encoder, check_front_end, check_transcriber
from .calibration import LANGUAGES, VERSION, Calibration, calibration
from .finding import Finding
from .text_checks import check_retriever

ANY = ""
"""The language of what is the same for all."""


class Outcomes(Protocol):
    """Where outcomes are kept, by a key."""

    def check(self, key: str) -> str | None: ...

    def keep_check(self, key: str, outcome: str) -> None: ...


@dataclass(slots=True)
class Checker:
    """Checks components of systems. Outcomes are kept in `store`; what failed is not kept, but checked again.

    With `anew`, kept outcomes are replaced. `tell` is told what is checked, with 0 before and 1 after.
    """

    store: Outcomes | None = None
    tell: Callable[[str, int], None] = lambda *_: None
    anew: bool = False
    _known: dict[str, tuple[CheckedComponent, str]] = field(default_factory=dict)

    def system(self, system: System, language: str, roles: Collection[str] = ROLES) -> SelfCheck:
        """The outcome of every component in a role of these. Raises what a component raises.

        A component behind one that failed is checked too: all that is wrong is told at once.
        """
        return SelfCheck.of(found for found, _ in self._components(system, language, roles))

    def causes(self, system: System, language: str) -> dict[str, str]:
        """What the failure of a component most likely comes from, by its role."""
        return {found.role: cause for found, cause in self._components(system, language, ROLES) if cause}

    def refusal(self, system: System, language: str, roles: Collection[str] = ROLES) -> ModelError | None:
        """The failure of the first component that does not work, None if all do. Raises what a component raises."""
        for found, cause in self._components(system, language, roles):
            if found.verdict == "failed":
                return ModelError(
                    f"{found.name} ({found.role.replace('_', ' ')}) does not work: {found.note}.",
                    hint=f"Likely: {cause}. Look at it with squtr check; --no-self-check evaluates it all the same.",
                )
        return None

    def _components(
        self, system: System, language: str, roles: Collection[str]
    ) -> Iterator[tuple[CheckedComponent, str]]:
        plain = system.for_language(language)
        for role in ROLES:
            component: Any = getattr(plain, role)
            if component is not None and role in roles:
                yield self._component(plain, role, component, language)

    def _component(self, system: System, role: str, component: Any, language: str) -> tuple[CheckedComponent, str]:
        own = ANY if role == "front_end" else language
        mode = _mode(system, role, component)
        spec = component.spec
        key = f"{VERSION} {role}{mode} {spec.fingerprint} {own}"
        if key in self._known:
            return self._known[key]
        kept = None if self.store is None or self.anew else self.store.check(key)
        if kept is not None:
            found, cause = CheckedComponent.model_validate_json(kept), ""
        else:
            finding = self._checked(role, component, own, mode)
            cause = finding.cause
            found = CheckedComponent(
                role=role,
                name=spec.name,
                fingerprint=spec.fingerprint,
                language=own,
                verdict=finding.verdict,
                seen=dict(finding.seen),
                note=finding.note,
                version=VERSION,
            )
            if self.store is not None and found.verdict in {"passed", "poor"}:
                self.store.keep_check(key, found.model_dump_json())
        self._known[key] = found, cause
        return found, cause

    def _checked(self, role: str, component: Any, language: str, mode: str) -> Finding:
        if any(hasattr(component, method) for method in _PRECOMPUTED):
            return Finding("precomputed", note="made elsewhere: there is nothing to run")
        items = calibration(language or LANGUAGES[0])
        if items is None:
            return Finding("unchecked", note=f"the calibration has no {language!r}, but {', '.join(LANGUAGES)}")
        stage = f"self-check of {component.spec.name}" + (f" in {language}" if language else "")
        self.tell(stage, 0)
        found = _found(role, component, items, with_audio=not mode)
        self.tell(stage, 1)
        return found


def _found(role: str, component: Any, items: Calibration, *, with_audio: bool) -> Finding:
    if role == "answerer":
        return check_answerer(cast(Answerer, component), items, with_audio=with_audio)
    return _CHECKS[role](component, items)


_PRECOMPUTED = ("transcripts", "hits", "reply_of")
_CHECKS: Mapping[str, Callable[[Any, Calibration], Finding]] = {
    "front_end": lambda one, items: check_front_end(cast(FrontEnd, one), items),
    "transcriber": lambda one, items: check_transcriber(cast(Transcriber, one), items),
    "rewriter": lambda one, items: check_rewriter(cast(Rewriter, one), items),
    "retriever": lambda one, items: check_retriever(cast(Retriever, one), items),
    "encoder": check_audio_encoder,
}


def _mode(system: System, role: str, component: object) -> str:
    """How an answerer is asked: with audio (""), or with transcripts."""
    if role != "answerer":
        return ""
    spoken = system.transcriber is None and not system.text_only and getattr(component, "uses_audio", True)
    return "" if spoken else " with transcripts"
