"""What several commands share: lists as options, options of some kinds of data only, progress on stderr, output."""

from __future__ import annotations

import argparse
import json
import math
import sys
import traceback
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import SqutrWarning, UsageError
from ..progress import Bars, counting

__all__ = [
    "Bars", "Extend", "check_options", "counting", "duration", "note", "say", "say_json", "table_text", "told_warnings",
    "trace_of",
]  # fmt: skip


class Extend(argparse.Action):
    """A list option (`nargs="+"`) that may be repeated; the first value given replaces the default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        held = getattr(namespace, self.dest, self.default)
        before = [] if held is self.default else held
        setattr(namespace, self.dest, [*before, *(values or ())])


def check_options(
    arguments: argparse.Namespace, options: Mapping[str, Collection[str]], kind: str, subject: str
) -> dict[str, Any]:
    """The given options of `kind`; `options` are their names by kind of data, with `default=argparse.SUPPRESS`.

    Raises `UsageError` for a given option that is one of other kinds only.
    """
    for other, names in options.items():
        for name in names:
            if name not in options[kind] and hasattr(arguments, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} does not apply to {subject}.", hint=f"It is an option for {other}."
                )
    return {name: getattr(arguments, name) for name in options[kind] if hasattr(arguments, name)}


def say(text: str) -> None:
    print(text)  # noqa: T201


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def told_warnings() -> Iterator[None]:
    """Our own warnings as sentences on stderr, each once; those of others as before."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, SqutrWarning):
                note(f"squtr: {message}")
            else:
                others(message, category, *place, **more)

        warnings.showwarning = show
        yield


def trace_of(error: BaseException) -> str:
    """The trace of an error, with that of an exception which was raised elsewhere."""
    own = "".join(traceback.format_exception(error)).rstrip()
    elsewhere = getattr(error, "trace", "")
    return f"{elsewhere}\n{own}" if elsewhere and error.__cause__ is None else own


def say_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))  # noqa: T201


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns of text; the first is the head.

    >>> print(table_text([("a", "b"), ("long", "1")]))
    a     b
    long  1
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def duration(seconds: float) -> str:
    """A duration to read.

    >>> duration(0.4), duration(75), duration(9000), duration(400000), duration(math.nan)
    ('1 s', '75 s', '2.5 h', '4.6 days', 'unknown')
    """
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86400 else f"{seconds / 86400:.1f} days"
