"""The data that an evaluation reads, by name."""

from __future__ import annotations

from pathlib import Path

from ..loaders.paired import BuiltData, PairedData

RELEASE = "release"


def is_release(name: str) -> bool:
    """Whether `name` is written as a release.

    >>> is_release("release:SQuTR.zip"), is_release("./release")
    (True, False)
    """
    return name == RELEASE or name.startswith(f"{RELEASE}:")


def open_data(name: str) -> PairedData:
    """A folder that `squtr build` wrote, or a published release with its own sound (`release:PATH`).

    Raises `DataError` for a folder that is missing, unfinished or damaged, and what the release's source raises.
    """
    if is_release(name):
        from ..loaders.sources import load_source
        from ..loaders.sources.release import ReleaseSource
        from ..loaders.sources.release_data import ReleaseData

        source = load_source(name)
        if isinstance(source, ReleaseSource):
            return ReleaseData(source)
    return BuiltData(Path(name))
