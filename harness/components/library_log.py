"""What libraries say while they load and run: warnings of wrong use are shown, progress bars and known lines not."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator

HARMLESS = (
    r".*LOAD REPORT",  # read and judged by `loading_report`
    r"Token indices sequence length is longer than",  # texts are cut later, where they are encoded
    r"Both `max_new_tokens` .* and `max_length`",  # the first is the one that is meant
    r"Setting `pad_token_id` to `eos_token_id`",
    r"Passing `generation_config` together with generation-related arguments",
    r"You are using a model of type `nvomniembed`",  # which is a thinker of Qwen2.5-Omni (`encoders.audio_models`)
    r"A custom logits processor of type",  # Whisper's own, made from its own configuration
)
"""Lines of transformers that say nothing about how a model is used here, as text for `re.match`."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bar and none of the `HARMLESS` lines of transformers; what was set before comes back."""
    from transformers.utils import logging as library

    shown = library.is_progress_bar_enabled()
    handlers = [*library.get_logger("transformers").handlers, *logging.getLogger().handlers]
    known = _Known()
    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    for handler in handlers:
        handler.addFilter(known)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(known)
        if shown:
            library.enable_progress_bar()  # type: ignore[no-untyped-call]


class _Known(logging.Filter):
    _pattern = re.compile("|".join(f"(?:{line})" for line in HARMLESS), re.DOTALL)

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.name.startswith("transformers") and self._pattern.match(record.getMessage()))
