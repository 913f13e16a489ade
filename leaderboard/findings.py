"""What is wrong with a submission: findings, each a sentence that names the place and the value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["error", "warning"]
Tell = Callable[[str, str], None]
"""Takes where and what."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An error refuses the submission; a warning is for the one who merges it."""

    level: Level
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.message}" if self.where else f"{self.level}: {self.message}"


@dataclass(slots=True)
class Findings:
    """Collects findings; of the same place only the first few are kept, so that a broken table is not ten thousand."""

    found: list[Finding] = field(default_factory=list)
    most: int = 100

    def error(self, where: str, message: str) -> None:
        """Note what refuses the submission."""
        self._add("error", where, message)

    def warn(self, where: str, message: str) -> None:
        """Note what someone should look at."""
        self._add("warning", where, message)

    def _add(self, level: Level, where: str, message: str) -> None:
        finding = Finding(level, where, message)
        if len(self.found) < self.most and finding not in self.found:
            self.found.append(finding)

    @property
    def errors(self) -> list[Finding]:
        """Only what refuses the submission."""
        return [finding for finding in self.found if finding.level == "error"]


def close(a: float, b: float, tolerance: float = 1e-9) -> bool:
    """Whether two numbers are the same but for the order of summation.

    >>> close(0.1 + 0.2, 0.3), close(0.3, 0.3001)
    (True, False)
    """
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def between(bounds: tuple[float, float] | None) -> str:
    """Bounds as they stand in a message.

    >>> between((0.05, 0.25)), between(None)
    ('0.05 to 0.25', 'none')
    """
    return "none" if bounds is None else f"{number(bounds[0])} to {number(bounds[1])}"


def number(value: float | None) -> str:
    """A number as it stands in a message.

    >>> number(0.123456789), number(None)
    ('0.123457', 'null')
    """
    return "null" if value is None else f"{value:.6g}"
