"""What a component raises, as an error of squtr that says where."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import ModelError, SqutrError
from .library_log import shown_warnings

_METHOD = re.compile(r"\w+\.\w+ \((.+?)\)(?: (?:on|of|with) |$)")
_OURS = str(Path(__file__).parents[2])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@contextmanager
def sentences(what: str) -> Iterator[None]:
    """Whatever a component raises, as a `ModelError` that begins with `what`; errors of squtr stay as they are.

    What libraries warn of meanwhile is shown with the component's name.
    """
    try:
        with shown_warnings(_component_in(what)):
            yield
    except SqutrError:
        raise
    except Exception as error:
        raise as_error(what, error) from error


def _component_in(what: str) -> str:
    """The name in `CLASS.METHOD (NAME) on …`; without one, what stands before `on`.

    >>> _component_in("BM25Retriever.search (BM25) with 3 texts"), _component_in("BM25 on the texts of the self-check")
    ('BM25', 'BM25')
    """
    named = _METHOD.match(what)
    return named[1] if named else what.partition(" on ")[0]


def as_error(what: str, error: Exception) -> ModelError:
    """The error for an exception of code that is not ours: its words, and the file and line of the user's code."""
    words = " ".join(str(error).split()).rstrip(".")[:300]
    place = place_of(error)
    found = ModelError(
        f"{what} failed: {type(error).__name__}{f': {words}' if words else ''}{f' ({place})' if place else ''}.",
        hint="Mend it, and run again: what was done is kept. Add --debug to see the whole trace.",
    )
    found.trace = "".join(traceback.format_exception(error))
    return found


def place_of(error: BaseException) -> str:
    """`FILE, line N`, the innermost place in code that is neither ours nor an installed package's; "" without one."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if frame.lineno is not None and not frame.filename.startswith((_OURS, "<", *_LIBRARIES)):
            return f"{Path(frame.filename).name}, line {frame.lineno}"
    return ""
