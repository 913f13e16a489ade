"""HTML pages from Jinja2 templates: everything that is printed is escaped, a missing value is an error.

A page has a folder of templates. Its templates find each other by name, and `common/page.html` of this package, the
skeleton of a self-contained page that runs and loads nothing but its own style and script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import DataError, StorageError
from .shards import replace_file

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

Saved = TypeVar("Saved", bound=BaseModel)
TEMPLATES = Path(__file__).resolve().parent / "templates"
MAX_AUDIO_BYTES = 150_000_000
"""Audio on one page, as stored: browsers grow slow above."""
_AUDIO_TYPES = {b"fLaC": "audio/flac", b"RIFF": "audio/wav", b"OggS": "audio/ogg"}


def render(folder: Path, template: str, **values: Any) -> str:
    """The text of a template of `folder`. Raises `jinja2.UndefinedError` for a name that `values` lack."""
    return _environment(folder).get_template(template).render(**values)


def asset(folder: Path, name: str) -> Markup:
    """A style or script beside the templates, printed as it is."""
    from markupsafe import Markup

    return Markup((folder / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of the package


def json_data(value: Any) -> Markup:
    """JSON for the inside of a `<script type="application/json">`, which no text in it can close.

    >>> str(json_data({"title": "</script>"}))
    '{"title": "\\\\u003c/script>"}'
    """
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return Markup(text)  # noqa: S704 - "<" is escaped


def audio_url(content: bytes) -> str:
    """A `data:` address that holds an audio file."""
    kind = _AUDIO_TYPES.get(content[:4], "audio/mpeg")
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def write_page(path: Path, text: str) -> Path:
    """Write a page to a temporary name and rename it. Raises `StorageError`."""
    try:
        replace_file(path, text.encode("utf-8"))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error}.", hint="Check space and permissions.") from error
    return path


def read_saved(path: Path, model: type[Saved]) -> Saved:
    """What a review page saved as a download. Raises `DataError` if it is missing or of another form."""
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Save the marks from the review page first.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{path} is no file of marks ({place}: {first['msg']}).", hint="Give the file that the review page saved."
        ) from error


@functools.cache
def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable,
    )
    environment.filters["csp_hash"] = _csp_hash
    return environment


def _printable(value: Any) -> Any:
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return "".join(c if c >= " " or c in "\t\n" else "\ufffd" for c in value)


def _csp_hash(content: str) -> Markup:
    """What a Content-Security-Policy calls an inline style or script."""
    from markupsafe import Markup

    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
    return Markup(f"'sha256-{digest}'")  # noqa: S704 - a digest
