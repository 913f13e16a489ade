"""The templates of the report: the frame's are beside this file, a task's in the task's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...loaders.pages import render
from . import svg

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATES = Path(__file__).resolve().parents[1]
"""Templates are named by their path below `harness`, for example `report/templates/page.html`."""


def markup(template: str, **values: Any) -> Markup:
    """What a template makes of `values`, to be printed as it is by another."""
    from markupsafe import Markup

    return Markup(render(TEMPLATES, template, marker=swatch, **values))  # noqa: S704 - a template escapes what it prints


def swatch(index: int) -> Markup:
    """The marker of system number `index`, for a drawing of 14 by 14."""
    return drawing(svg.marker(index, 7, 7))


def drawing(text: str) -> Markup:
    """An SVG drawing made by `svg.figure`, which escapes its texts."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - see above
