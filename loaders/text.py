"""Text from outside, made text that every file can hold."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What stands for a character that could not be read: in a text it says that something was lost."""


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
