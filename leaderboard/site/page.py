"""The page: one HTML file that holds its data, its texts, its style and its script, and loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from importlib import resources
from typing import Any

from .document import as_json
from .strings import STRINGS
from .tables import plain

SCRIPTS = ("core.js", "table.js", "charts.js", "system.js", "main.js")
DEFAULT_TITLE = "squtr leaderboard"


def page(board: Mapping[str, Any], title: str = DEFAULT_TITLE) -> str:
    """The HTML of `board` (see `document`). The same board gives the same page."""
    style = asset("style.css")
    script = '"use strict";\n(() => {\n' + "".join(asset(name) for name in SCRIPTS) + "})();\n"
    # Were a name ever to escape its quoting, the browser still runs and loads nothing but this.
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    name = html.escape(plain(title))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="description" content="{html.escape(STRINGS["en"]["tagline"])}">\n'
        f"<title>{name}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<header id="frame"></header>\n<main id="content" tabindex="-1">\n'
        f"<noscript><h1>{name}</h1><p>This page needs JavaScript. The same numbers without it: "
        '<a href="leaderboard.csv">leaderboard.csv</a>.</p></noscript>\n'
        "</main>\n"
        f'<script type="application/json" id="strings">{as_json(STRINGS)}</script>\n'
        f'<script type="application/json" id="data">{as_json(board)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def asset(name: str) -> str:
    """A file of the page's assets."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
