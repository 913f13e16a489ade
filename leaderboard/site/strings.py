"""What the page says, in each language of its interface. Names of systems, metrics and settings are not translated.

The rows of `strings.json` are a key and its text in each language. `{n}` and the like are filled in by the page, which
takes a text from here and nowhere else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

UI_LANGUAGES: Final = ("en", "zh", "es")

_ROWS: Final[list[list[str]]] = json.loads(Path(__file__).with_name("strings.json").read_text(encoding="utf-8"))

STRINGS: Final[dict[str, dict[str, str]]] = {
    language: {row[0]: row[place] for row in _ROWS} for place, language in enumerate(UI_LANGUAGES, start=1)
}
"""The texts of each language by key."""
KEYS: Final = tuple(row[0] for row in _ROWS)
"""Every key, as often as it is written: a test looks for doubles."""
