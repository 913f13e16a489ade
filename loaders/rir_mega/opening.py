"""The benchmark's data by name: a built folder, the published set, or either of them on the Hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...errors import DataError
from .manifest import benchmark_of
from ..sources.names import COMMIT
from .data import RirMegaData
from .manifest import RIR_MEGA
from .published import PUBLISHED, PublishedData, download, open_published

_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]*/\w[\w.-]*(?:@\w[\w./-]*)?", re.ASCII)


def open_pairs(name: str, *, api: Any = None) -> RirMegaData | PublishedData:
    """Open data by name.

    - a folder that `squtr build rir_mega` wrote, or one that holds the published set;
    - `published`: the published set on the Hub; `published:FOLDER` or `published:ORG/NAME[@REVISION]`: elsewhere;
    - `ORG/NAME[@REVISION]`: a built folder that was pushed to the Hub, or a set of the published form.

    An existing folder goes before the Hub. `api` replaces the Hub's client. Raises `DataError` for what is missing,
    unfinished or damaged, `HubError` where the Hub cannot be reached.
    """
    if name == PUBLISHED or name.startswith(f"{PUBLISHED}:"):
        return open_published(name.partition(":")[2], api=api)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return RirMegaData(folder) if benchmark_of(folder) else PublishedData(folder)
    if _REPOSITORY.fullmatch(name) and not folder.exists():
        repository, _, revision = name.partition("@")
        path = download(repository, revision, api=api)
        if benchmark_of(path) == RIR_MEGA:
            return RirMegaData(path)
        return PublishedData(path, name=repository, revision=path.name if COMMIT.fullmatch(path.name) else "")
    raise DataError(
        f"{name} does not exist.",
        hint=f"Run `squtr build rir_mega` first, or give a folder, {PUBLISHED}, or ORG/NAME[@REVISION] on the Hub.",
    )
