"""What libraries warn of while a component loads and runs: shown, once for each component, unless it is `HARMLESS`."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import sysconfig
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import TextIO

HARMLESS = (
    r".*LOAD REPORT",  # read and judged by `loading_report`
    r"Token indices sequence length is longer than",  # texts are cut later, where they are encoded
    r"Both `max_new_tokens` .* and `max_length`",  # the first is the one that is meant
    r"Setting `pad_token_id` to `eos_token_id`",
    r"Passing `generation_config` together with generation-related arguments",
    r"You are using a model of type `nvomniembed`",  # which is a thinker of Qwen2.5-Omni (`encoders.audio_models`)
    r"A custom logits processor of type",  # Whisper's own, made from its own configuration
    r"trust_remote_code: (True|False)$",  # FunASR tells what it was given
)
"""Lines of transformers and FunASR that say nothing about how a model is used here, as text for `re.match`."""

_LONGEST = 400
_FOR_DEVELOPERS = (DeprecationWarning, PendingDeprecationWarning, SyntaxWarning, ImportWarning, ResourceWarning)
_PACKAGES = tuple({Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")})
_harmless = re.compile("|".join(f"(?:{line})" for line in HARMLESS), re.DOTALL)
_component: ContextVar[str] = ContextVar("component", default="")


@contextlib.contextmanager
def shown_warnings(component: str) -> Iterator[None]:
    """Shows what libraries warn of in this thread within the block: `squtr: COMPONENT: LIBRARY warns: …`, on stderr.

    Warnings (`warnings`) and log records of installed packages from that level on, each text once for each component
    (Python itself gives a warning once for each place in the library's code), `HARMLESS` lines never. What is for the
    library's own developers, as deprecations, and what a user's own code warns of goes its usual way. In nested blocks
    the outermost names the component.
    """
    if _component.get():
        yield
        return
    token = _component.set(component)
    try:
        with _HOOKS.set():
            yield
    finally:
        _component.reset(token)


@contextlib.contextmanager
def quiet(component: str = "") -> Iterator[None]:
    """No progress bar and none of the `HARMLESS` lines of transformers; what was set before comes back.

    With a name, what remains is shown as in `shown_warnings`.
    """
    from transformers.utils import logging as library

    shown = library.is_progress_bar_enabled()
    handlers = [*library.get_logger("transformers").handlers, *logging.getLogger().handlers]
    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    for handler in handlers:
        handler.addFilter(_not_harmless)
    try:
        with shown_warnings(component) if component else contextlib.nullcontext():
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(_not_harmless)
        if shown:
            library.enable_progress_bar()  # type: ignore[no-untyped-call]


def _not_harmless(record: logging.LogRecord) -> bool:
    return not (record.name.startswith("transformers") and _harmless.match(record.getMessage()))


class _Hooks:
    """Those of the process, as loggers and `warnings` are the process's, while any thread is in a block."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._blocks = 0
        self._undo = contextlib.ExitStack()
        self._lines: set[tuple[str, str, str]] = set()

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        with self._lock:
            if not self._blocks:
                self._hook()
            self._blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    self._undo.close()

    def _hook(self) -> None:
        ours = _Ours(logging.WARNING)
        # That of transformers passes nothing on to the root.
        for logger in (logging.getLogger(), logging.getLogger("transformers")):
            for handler in logger.handlers:
                handler.addFilter(_not_ours)
                self._undo.callback(handler.removeFilter, _not_ours)
            logger.addHandler(ours)
            self._undo.callback(logger.removeHandler, ours)
        before = warnings.showwarning

        def show(  # noqa: PLR0917 - as `warnings.showwarning`
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            library = "" if issubclass(category, _FOR_DEVELOPERS) else _warning_library(sys._getframe(1), filename)
            if file is None and library and _component.get():
                self.show(library, str(message))
            else:
                before(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        self._undo.callback(setattr, warnings, "showwarning", before)

    def show(self, library: str, text: str) -> None:
        words = " ".join(text.split())
        key = (_component.get(), library, words)
        with self._lock:
            if key in self._lines or _harmless.match(text):
                return
            self._lines.add(key)
        short = words if len(words) <= _LONGEST else f"{words[:_LONGEST]} …"
        print(f"squtr: {key[0]}: {library} warns: {short}", file=sys.stderr, flush=True)  # noqa: T201


class _Ours(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if not _not_ours(record):
            _HOOKS.show(library_of(record.pathname), record.getMessage())


def _not_ours(record: logging.LogRecord) -> bool:
    """Whether a record goes its usual way."""
    return record.levelno < logging.WARNING or not _component.get() or not library_of(record.pathname)


def _warning_library(frame: FrameType | None, filename: str) -> str:
    """The library whose code warns: a `stacklevel` may name its caller's file, which is ours."""
    while frame is not None and Path(frame.f_code.co_filename).name == "warnings.py":
        frame = frame.f_back
    return library_of(frame.f_code.co_filename if frame else "") or library_of(filename)


def library_of(filename: str) -> str:
    """The installed package that a file belongs to by its path; "" for any other file, and for ours.

    >>> import numpy
    >>> library_of(numpy.__file__), library_of("mine.py")
    ('numpy', '')
    """
    path = Path(filename)
    found = next((path.relative_to(folder) for folder in _PACKAGES if path.is_relative_to(folder)), None)
    name = "" if found is None else found.parts[0].removesuffix(".py")
    return "" if name == "squtr" else name


_HOOKS = _Hooks()
