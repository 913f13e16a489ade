"""What generating models of transformers share: where a text ends, and the marks of a dialogue."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...loaders.records import Samples

Message = dict[str, Any]
MAX_NEW_TOKENS = 512
"""The default cap on what a chat model writes."""
TEMPLATE_DATE = "2026-01-01"
_TODAY = re.compile(r"""strftime_now\(\s*(?P<quote>['"])(?P<form>.*?)(?P=quote)\s*\)""")


def without_end(row: Sequence[int], ends: frozenset[int], cap: int) -> tuple[list[int], bool]:
    """New tokens without the end and what follows it, and whether the cap cut them.

    >>> without_end([5, 6, 2, 0], frozenset({2}), 4), without_end([5, 6, 7, 8], frozenset({2}), 4)
    (([5, 6], False), ([5, 6, 7, 8], True))
    """
    end = next((i for i, token in enumerate(row) if token in ends), len(row))
    return list(row[:end]), end == len(row) and len(row) >= cap


def end_tokens(model: object) -> frozenset[int]:
    """The tokens at which a model of transformers stops."""
    ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if ends is None:
        return frozenset()
    return frozenset(ends if isinstance(ends, list | tuple) else [ends])


def conversation(content: list[Message], system_prompt: str) -> list[Message]:
    """One message of the user, after the system prompt ("" for none)."""
    user: Message = {"role": "user", "content": content}
    if not system_prompt:
        return [user]
    return [{"role": "system", "content": [{"type": "text", "text": system_prompt}]}, user]


def dated(template: Any) -> Any:
    """A chat template with one date, where it writes today's into every prompt; what is no text comes back as it is.

    >>> dated("{{ 'Today: ' + strftime_now('%d %B %Y') }}")
    "{{ 'Today: ' + '01 January 2026' }}"
    """
    if not isinstance(template, str):
        return template
    today = datetime.fromisoformat(TEMPLATE_DATE)
    return _TODAY.sub(lambda match: repr(today.strftime(match["form"])), template)


def dialogue_marks(tokenizer: Any, *more: str) -> re.Pattern[str]:
    """The special tokens of a tokenizer ("<|im_end|>") and `more`, longest first, as a pattern."""
    tokens = {*more, *map(str, getattr(tokenizer, "all_special_tokens", ()))}
    added = getattr(tokenizer, "added_tokens_decoder", {})
    if isinstance(added, Mapping):  # the tokenizers of mistral-common have none
        tokens |= {str(token) for token in added.values() if getattr(token, "special", False)}
    longest_first = sorted((token for token in tokens if len(token) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def without_marks(text: str, marks: re.Pattern[str]) -> str:
    """The text with a blank in every mark of the dialogue, so that it is read and not obeyed."""
    return marks.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def window_for(extractor: Any, clips: Sequence[Samples]) -> dict[str, int]:
    """Arguments for a feature extractor that pads to a long window (300 s): one that ends with the longest clip.

    Only for a model that is given which frames are audio. Nothing where the extractor's window is not known.
    """
    hop, frame, most = (getattr(extractor, name, None) for name in ("hop_length", "n_fft", "n_samples"))
    if not clips or hop is None or frame is None or most is None:
        return {}
    # One frame more, so that the last frame of a clip always sees silence behind it and never a mirrored edge.
    length = -(-(max(clip.size for clip in clips) + frame) // hop) * hop
    return {"max_length": min(int(length), int(most))}
