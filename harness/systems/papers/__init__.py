"""The systems that papers evaluated, one spec file per paper: `paper:<name>`."""

from __future__ import annotations

from pathlib import Path

from ....errors import unknown_name

PREFIX = "paper:"
_FOLDER = Path(__file__).resolve().parent
PAPERS = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def is_paper(text: str) -> bool:
    return text.startswith(PREFIX)


def paper_file(text: str) -> Path:
    """The spec file that `paper:<name>` means. Raises `UnknownNameError`.

    >>> paper_file("paper:squtr").name
    'squtr.yaml'
    """
    name = text.removeprefix(PREFIX)
    if name not in PAPERS:
        raise unknown_name("paper", name, PAPERS)
    return _FOLDER / f"{name}.yaml"
