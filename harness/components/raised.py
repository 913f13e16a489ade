"""What a component raises, as an error of squtr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import ModelError, SqutrError


@contextmanager
def sentences(what: str) -> Iterator[None]:
    """Whatever a component raises, as a `ModelError` that begins with `what`; errors of squtr stay as they are."""
    try:
        yield
    except SqutrError:
        raise
    except Exception as error:
        raise ModelError(
            f"{what} failed: {type(error).__name__}: {error}.",
            hint="Fix it, then run the evaluation again: what was done is kept.",
        ) from error
