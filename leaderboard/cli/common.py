"""Output that the commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from ..strict_json import is_hidden
from ..validate import Validation


def say(text: str) -> None:
    """Print a line of output. What came from a stranger's file cannot steer the terminal."""
    print("".join(f"\\u{ord(char):04x}" if char != "\n" and is_hidden(char) else char for char in text))  # noqa: T201


def note(text: str) -> None:
    """Print a line about what is happening, on stderr."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def say_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(value, ensure_ascii=True, indent=2, allow_nan=False))  # noqa: T201


def say_validations(validations: Iterable[Validation], *, quiet: bool = False) -> None:
    """Print what was found; `quiet`: not of files in which nothing was found."""
    for validation in validations:
        if not validation.findings and quiet:
            continue
        state = "ok" if validation.ok else "refused"
        scored = ", re-scored from its records" if validation.who == "re-scored" else ""
        say(f"{validation.path}: {state}{scored}")
        for finding in validation.findings:
            say(f"  {finding}")
