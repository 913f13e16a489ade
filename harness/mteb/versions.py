"""Which `mteb` this package works with, checked before it is imported (which takes seconds)."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from ...errors import MissingExtraError, missing_extra

EXTRA = "mteb"
LEAST, BELOW = (2, 26), (2, 27)
"""The tested versions: at least the first, below the second. The bridge follows `mteb`'s own classes closely."""


def check_version(installed: str) -> None:
    """Raise `MissingExtraError` for a version of `mteb` that was not tested.

    >>> check_version("2.26.24")
    >>> check_version("2.30.1")
    Traceback (most recent call last):
    ...
    squtr.errors.MissingExtraError: mteb 2.30.1 is installed, but squtr is tested with mteb 2.26 only. Run: ...
    """
    numbers = tuple(int(part) if part.isdigit() else -1 for part in installed.split(".")[:2])
    if not LEAST <= numbers < BELOW:
        raise MissingExtraError(
            f"mteb {installed} is installed, but squtr is tested with mteb {_dotted(LEAST)} only.",
            hint=f"Run: pip install 'mteb>={_dotted(LEAST)},<{_dotted(BELOW)}'",
        )


def installed_version() -> str:
    try:
        return version("mteb")
    except PackageNotFoundError:
        return ""


def load_bridge() -> ModuleType:
    """The module `bridge`, which imports `mteb`. Raises `MissingExtraError` if it is missing or of another version."""
    installed = installed_version()
    if not installed:
        raise missing_extra("mteb", EXTRA)
    check_version(installed)
    try:
        return importlib.import_module(".bridge", __package__)
    except (ImportError, OSError) as error:
        # Typically a torchaudio that does not fit torch: mteb imports it where it is installed.
        raise MissingExtraError(
            f"mteb {installed} does not import: {' '.join(str(error).split())}.",
            hint="Mend or remove the package that it names (often torchaudio), or install squtr[mteb] afresh.",
        ) from error


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
