"""What the self-check saw of a system's components, as it stands in every result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from pydantic import Field, model_validator

from .files import FileModel

Verdict = Literal["passed", "precomputed", "unchecked", "poor", "failed"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From best to worst."""
NOT_CHECKED: Final = "not checked"


class CheckedComponent(FileModel):
    """One component in one language.

    `passed`: it works on the calibration. `poor`: it works so badly there that its scores are to be read with care;
    `failed`: it does not work, and is not scored. `precomputed`: made elsewhere, there is nothing to run. `unchecked`:
    the calibration does not know the language. `seen` has what was measured (`wer`, `cer`, `above_irrelevant`, …),
    `note` says it in words. `version` is that of the calibration, `fingerprint` that of the component.
    """

    role: str
    name: str
    fingerprint: str
    language: str
    verdict: Verdict
    seen: dict[str, float] = Field(default_factory=dict)
    note: str = ""
    version: str = ""


class SelfCheck(FileModel):
    """The components of a system; without any, it was not checked. `verdict` is the worst of theirs."""

    verdict: Literal[Verdict, "not checked"] = NOT_CHECKED
    components: list[CheckedComponent] = Field(default_factory=list)

    @classmethod
    def of(cls, components: Iterable[CheckedComponent]) -> SelfCheck:
        """
        >>> SelfCheck.of([]).verdict
        'not checked'
        """
        found = list(components)
        return cls(verdict=_worst(found), components=found)

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores must know: of every component that did not pass, what was seen."""
        return [f"{one.name}: {one.note}" for one in self.components if one.verdict != "passed"]

    @property
    def words(self) -> str:
        """The verdict, with what was seen of every component that did not pass."""
        return f"{self.verdict} ({'; '.join(self.notes)})" if self.notes else self.verdict

    @model_validator(mode="after")
    def _fits(self) -> SelfCheck:
        if self.verdict != _worst(self.components):
            raise ValueError(f"the verdict is {self.verdict!r}, but its components say {_worst(self.components)!r}")
        return self


def _worst(components: Iterable[CheckedComponent]) -> Literal[Verdict, "not checked"]:
    found = [one.verdict for one in components]
    return max(found, key=VERDICTS.index) if found else NOT_CHECKED
