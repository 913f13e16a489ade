"""The one exception tree of squtr.

Every error that squtr raises on purpose derives from `SqutrError`. Its message is one sentence that names the
file, id and value concerned; `hint`, when there is one, is a second sentence that says what to do next. The command
line prints both without a trace-back and exits with `exit_code`.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path

EXIT_FAILED = 1
EXIT_USAGE = 2
READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class SqutrError(Exception):
    """Base of all errors of squtr.

    `message` says what is wrong, `hint` what to do next (may be empty). `str(error)` is both. `trace` is that of an
    exception which was raised elsewhere, "" where there was none.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint
        self.trace = ""

    def __str__(self) -> str:
        # Behind a list, on a line of its own.
        between = "\n" if "\n" in self.message else " "
        return f"{self.message}{between}{self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword arguments do not survive a process pool otherwise.
        return (_rebuild, (type(self), self.message, self.hint, self.trace))


def _rebuild(cls: type[SqutrError], message: str, hint: str, trace: str) -> SqutrError:
    error = cls(message, hint=hint)
    error.trace = trace
    return error


class UsageError(SqutrError):
    """The call itself is wrong: an unknown name, a value out of range, options that contradict each other."""

    exit_code = EXIT_USAGE


class UnknownNameError(UsageError, ValueError):
    """A language, condition, config, source, backend, voice or metric that does not exist."""


class MissingExtraError(SqutrError, ImportError):
    """An optional dependency is not installed."""


class DataError(SqutrError, ValueError):
    """Data that squtr reads is wrong: an id, a text, a grade, a table."""


class AudioError(DataError):
    """Audio cannot be used: unreadable, silent, not finite, empty, DC only."""


class RecipeMismatchError(DataError):
    """An output folder already holds something made from another recipe."""


class IntegrityError(DataError):
    """Stored bytes do not match their checksum or manifest."""


class SynthesisError(SqutrError):
    """A text cannot be spoken with the chosen engine or voice."""


class ModelError(SqutrError):
    """Weights cannot be found or loaded, or a model returned something unusable."""


class HubError(SqutrError):
    """The Hub refused, or cannot be reached."""


class FetchError(SqutrError):
    """A download failed: there is no network, or a server refused or broke off."""


class StorageError(SqutrError, OSError):
    """The disk refused: no space, no permission."""


class SqutrWarning(UserWarning):
    """What went on, and should be known: something was replaced, left out, or counted as failed."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """The choice that looks most like `name`, or "" if none is near.

    >>> nearest("hihg_noise", ["clean", "high_noise"])
    'high_noise'
    >>> nearest("xyz", ["clean", "high_noise"])
    ''
    """
    found = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return found[0] if found else ""


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> UnknownNameError:
    """The error for an unknown `name` of some `kind`, which lists the choices and suggests the nearest.

    >>> str(unknown_name("condition", "cleen", ["clean", "reverb"]))
    "unknown condition 'cleen'. Did you mean 'clean'? Known: clean, reverb."
    """
    listed = sorted(set(choices))
    guess = nearest(name, listed)
    shown = ", ".join(listed) if listed else "none"
    hint = f"Did you mean {guess!r}? " if guess else ""
    return UnknownNameError(f"unknown {kind} {name!r}.", hint=f"{hint}Known: {shown}.")


def missing_extra(module: str, extra: str) -> MissingExtraError:
    """The error for an optional dependency that is not installed, with the line that installs it.

    >>> str(missing_extra("faster_whisper", "asr"))
    "the module 'faster_whisper' is not installed. Run: pip install 'squtr[asr]'"
    """
    return MissingExtraError(f"the module {module!r} is not installed.", hint=f"Run: pip install 'squtr[{extra}]'")


def disk_hint(error: OSError, folder: Path | str, otherwise: str = "choose another folder") -> str:
    """The hint for a write below `folder` that was refused; `otherwise` is what else helps, a clause.

    >>> disk_hint(OSError(errno.ENOSPC, ""), "/data")
    'Free space there, or choose another folder.'
    >>> disk_hint(OSError(errno.EROFS, ""), "/data", "set SQUTR_HOME")
    '/data is read-only: make it writable, or set SQUTR_HOME.'
    >>> disk_hint(OSError(errno.EDQUOT, ""), "/data")
    'The quota is used up: free space there, or choose another folder.'
    >>> disk_hint(OSError(errno.EIO, ""), "/data")
    'Check the disk, or choose another folder.'
    """
    if error.errno in READ_ONLY:
        return f"{folder} is read-only: make it writable, or {otherwise}."
    if error.errno == errno.EDQUOT:
        return f"The quota is used up: free space there, or {otherwise}."
    if error.errno == errno.ENOSPC:
        return f"Free space there, or {otherwise}."
    return f"Check the disk, or {otherwise}."
