"""Text from outside, made text that every file can hold."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from ..errors import DataError, SqutrWarning

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What stands for a character that could not be read: in a text it says that something was lost."""

_HALF = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
"""An escape of one half of a surrogate pair, lone or not."""

_IDS = frozenset({"ids", "audios", "audio", "audio_path", "document", "file", "query", "utterance"})
"""Keys of ids that do not end in "id"."""


def valid_text(text: str) -> str:
    """`text` with every lone half of a surrogate pair replaced by U+FFFD, and the two halves of a pair joined.

    No UTF-8 file can hold the halves: they come from JSON whose escapes were cut in the middle of a character.

    >>> valid_text("caf\\u00e9"), valid_text("smile \\ud83d") == "smile \\N{REPLACEMENT CHARACTER}"
    ('café', True)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def has_replacement(text: str) -> bool:
    """Whether a text holds U+FFFD: it was no valid text where it came from, or what wrote it lost a character.

    >>> has_replacement("smile \\N{REPLACEMENT CHARACTER}"), has_replacement("smile")
    (True, False)
    """
    return REPLACEMENT in text


def parse_json(text: str, where: str, replaced: list[str]) -> Any:
    """The value of a JSON text, its strings valid (`valid_text`); `where` is added to `replaced` for each changed one.

    Raises `json.JSONDecodeError`, and `DataError` for an id (a key that ends in "id", and others) that no file can
    hold: two of them could become equal.

    >>> parse_json('{"id": "a", "text": "b"}', "queries.jsonl, line 1", [])
    {'id': 'a', 'text': 'b'}
    """
    value = json.loads(text)
    return value if _HALF.search(text) is None else _valid(value, "", where, replaced)


def tell_replaced(replaced: Sequence[str], name: str) -> None:
    """Warn once of what `parse_json` changed in a file."""
    if replaced:
        warnings.warn(
            f"{name}: half a character (a lone surrogate) was replaced by U+FFFD in {len(replaced)} texts; "
            f"the first: {replaced[0]}.",
            SqutrWarning,
            stacklevel=2,
        )


def _valid(value: Any, key: str, where: str, replaced: list[str]) -> Any:
    if isinstance(value, dict):
        broken = next((name for name in value if valid_text(name) != name), None)
        if broken is not None:
            raise DataError(f"{where}: the key {broken!r} holds half a character.", hint="Mend the key.")
        return {name: _valid(one, name, where, replaced) for name, one in value.items()}
    if isinstance(value, list):
        return [_valid(one, key, where, replaced) for one in value]
    if not isinstance(value, str) or (found := valid_text(value)) == value:
        return value
    if key.casefold().endswith("id") or key in _IDS:
        raise DataError(f"{where}: {key!r} holds half a character (a lone surrogate): {value!r}.", hint="Mend the id.")
    replaced.append(where)
    return found
