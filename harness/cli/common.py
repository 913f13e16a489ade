"""What several commands share: lists as options, options of some kinds of data only, progress on stderr, output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import UsageError
from ..progress import Bars, counting

__all__ = ["Bars", "Extend", "check_options", "counting", "note", "say", "say_json"]


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


def say_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))  # noqa: T201
