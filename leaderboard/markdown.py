"""Text of strangers in Markdown: shown as it is, never as markup."""

from __future__ import annotations

import re

from .strict_json import is_hidden

# An underscore inside a word is no markup.
_MARKUP = re.compile(r"([\\`*{}\[\]<>#|~&$@:]|(?<![^\W_])_|_(?![^\W_]))")


def plain(text: str, most: int = 300) -> str:
    """`text` on one line with every sign of Markdown and HTML escaped, invisible characters replaced, cut at `most`.

    >>> plain("<img src=x onerror=alert(1)> | [a](javascript:b)")
    '\\\\<img src=x onerror=alert(1)\\\\> \\\\| \\\\[a\\\\](javascript\\\\:b)'
    """
    line = "".join("\N{REPLACEMENT CHARACTER}" if is_hidden(char) else char for char in " ".join(text.split()))
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return _MARKUP.sub(r"\\\1", line)
