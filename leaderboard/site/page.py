"""The page: one HTML file that holds its data, its texts, its style and its script, and loads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...loaders.pages import asset, render
from .document import as_json
from .strings import STRINGS
from .tables import plain

SCRIPTS = ("core.js", "table.js", "charts.js", "system.js", "main.js")
DEFAULT_TITLE = "squtr leaderboard"
_HERE = Path(__file__).resolve().parent


def page(board: Mapping[str, Any], title: str = DEFAULT_TITLE) -> str:
    """The HTML of `board` (see `document`). The same board gives the same page."""
    from markupsafe import Markup

    assets = _HERE / "assets"
    scripts = Markup("").join(asset(assets, name) for name in SCRIPTS)
    return render(
        _HERE / "templates",
        "index.html",
        title=plain(title),
        tagline=STRINGS["en"]["tagline"],
        style=asset(assets, "style.css"),
        script=Markup('"use strict";\n(() => {\n') + scripts + Markup("})();\n"),
        strings=Markup(as_json(STRINGS)),  # noqa: S704 - `as_json` escapes "<"
        board=Markup(as_json(board)),  # noqa: S704
    )
