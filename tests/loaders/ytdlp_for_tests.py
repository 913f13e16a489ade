"""A module of yt-dlp's shape: the parts that squtr calls, with the signatures of yt-dlp 2026.10.26.

`test_escucha_fetch` compares the signatures with the installed package where there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any


class YoutubeDLError(Exception):
    def __init__(self, msg: str | None = None) -> None:
        super().__init__(msg)
        self.msg = msg


class ExtractorError(YoutubeDLError):
    def __init__(
        self,
        msg: str,
        tb: Any = None,
        expected: bool = False,
        cause: Any = None,
        video_id: str | None = None,
        ie: str | None = None,
    ) -> None:
        super().__init__(msg)
        self.expected = expected


class GeoRestrictedError(ExtractorError):
    def __init__(self, msg: str, countries: Any = None, **kwargs: Any) -> None:
        super().__init__(msg, **{**kwargs, "expected": True})
        self.countries = countries


class DownloadError(YoutubeDLError):
    def __init__(self, msg: str, exc_info: Any = None) -> None:
        super().__init__(msg)
        self.exc_info = exc_info


Answer = Callable[[str, Path, dict[str, Any]], Path]
"""Called with the address, where to write without an ending, and the options."""


def module(answer: Answer, asked: list[str]) -> ModuleType:
    """The module `yt_dlp`, whose downloads are what `answer` writes."""

    class YoutubeDL:
        def __init__(self, params: dict[str, Any] | None = None, auto_init: bool = True) -> None:
            self.params = params or {}

        def __enter__(self) -> YoutubeDL:
            return self

        def __exit__(self, *args: object) -> None:
            self.close()

        def close(self) -> None:
            pass

        def extract_info(
            self,
            url: str,
            download: bool = True,
            ie_key: str | None = None,
            extra_info: Any = None,
            process: bool = True,
            force_generic_extractor: bool = False,
        ) -> dict[str, Any]:
            asked.append(url)
            template = self.params["outtmpl"]["default"]
            assert template.endswith(".%(ext)s")
            stem = Path(self.params["paths"]["home"]) / template.removesuffix(".%(ext)s").replace("%%", "%")
            try:
                path = answer(url, stem, self.params)
            except ExtractorError as error:
                raise DownloadError(f"\x1b[0;31mERROR:\x1b[0m {error}", sys.exc_info()) from error
            for hook in self.params["progress_hooks"]:
                hook({"status": "downloading", "downloaded_bytes": 5, "total_bytes": 10})
                hook({"status": "finished"})
            return {"id": stem.name, "ext": path.suffix[1:], "requested_downloads": [{"filepath": str(path)}]}

    made = ModuleType("yt_dlp")
    made.YoutubeDL = YoutubeDL  # type: ignore[attr-defined]
    made.version = ModuleType("yt_dlp.version")  # type: ignore[attr-defined]
    made.version.__version__ = "2026.10.26"
    made.utils = ModuleType("yt_dlp.utils")  # type: ignore[attr-defined]
    for error in (YoutubeDLError, ExtractorError, GeoRestrictedError, DownloadError):
        setattr(made.utils, error.__name__, error)
    return made


@contextmanager
def installed(answer: Answer) -> Iterator[list[str]]:
    """The module in place of the real one; gives the addresses that were asked for."""
    asked: list[str] = []
    before = sys.modules.get("yt_dlp")
    sys.modules["yt_dlp"] = module(answer, asked)
    try:
        yield asked
    finally:
        if before is None:
            del sys.modules["yt_dlp"]
        else:
            sys.modules["yt_dlp"] = before
