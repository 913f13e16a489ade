"""yt-dlp, the program that fetches audio from an address (extra `squtr[questions]`), and what its refusals mean."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...errors import AudioError, MissingExtraError, SqutrWarning, missing_extra
from .statuses import Status

EXTRA = "questions"
FFMPEG_TIMEOUT_S = 3600


class FetchTool(Protocol):
    @property
    def name(self) -> str:
        """Name and version, for the status files."""
        ...

    def fetch(self, url: str, folder: Path, stem: str, progress: Callable[[int, int], None] | None = None) -> Path:
        """The audio at `url` as `stem` and an ending in `folder`; continues a partial file. Raises `RefusedError`."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    status: Status
    reason: str


class RefusedError(Exception):
    """A site or the network refused; `refusal` says which status that is."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


_MEANINGS: tuple[tuple[Status, str], ...] = (
    (
        "geo_blocked",
        r"geo.?restrict|not available (?:in|from) your (?:country|location|region)|blocked it in your country|"
        r"not made this video available in your country|unavailable in your (?:country|region)",
    ),
    (
        "private",
        r"private video|video is private|this video is only available (?:to|for) |members.only|join this channel|"
        r"log ?in|sign in|registered users|requires payment|this (?:playlist|content) is private|HTTP Error 401\b",
    ),
    (
        "removed",
        r"(?:has been|was) (?:removed|deleted|terminated)|no longer (?:available|exists)|video unavailable|"
        r"does ?n[o']t exist|account .{0,40}terminated|removed by the uploader|copyright|HTTP Error (?:404|410|451)\b|"
        r"video is unavailable|content is not available|this video is not available",
    ),
)
"""What a refusal's text means; the first that fits. Signing in "to confirm you're not a bot" is about the caller's
address and not about the video: that is tried again."""
_TRY_AGAIN = re.compile(r"not a bot|rate.?limit|too many requests|HTTP Error (?:403|429|5\d\d)\b", re.IGNORECASE)


def status_of(message: str, *, geo_restricted: bool = False) -> Status:
    """What a refusal's text means.

    >>> status_of("ERROR: [youtube] x: Private video. Sign in if you've been granted access")
    'private'
    >>> status_of("ERROR: [youtube] x: Sign in to confirm you're not a bot"), status_of("HTTP Error 404: Not Found")
    ('failed', 'removed')
    """
    if geo_restricted:
        return "geo_blocked"
    if _TRY_AGAIN.search(message):
        return "failed"
    return next((status for status, pattern in _MEANINGS if re.search(pattern, message, re.IGNORECASE)), "failed")


class YtDlp:
    """yt-dlp as a library; `options` are further ones of its `YoutubeDL`. Raises `MissingExtraError` without it."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        try:
            self._module = importlib.import_module("yt_dlp")
        except ImportError as error:
            raise missing_extra("yt_dlp", EXTRA) from error
        self._options = dict(options or {})

    @property
    def name(self) -> str:
        return f"yt-dlp {self._module.version.__version__}"

    def fetch(self, url: str, folder: Path, stem: str, progress: Callable[[int, int], None] | None = None) -> Path:

        def hook(state: Mapping[str, Any]) -> None:
            if progress is not None and state.get("status") == "downloading":
                total = state.get("total_bytes") or state.get("total_bytes_estimate") or 0
                progress(int(state.get("downloaded_bytes") or 0), int(total))

        options = {
            "format": "bestaudio/best",
            "outtmpl": {"default": f"{stem.replace('%', '%%')}.%(ext)s"},
            "paths": {"home": str(folder)},
            "noplaylist": True,
            "continuedl": True,
            "overwrites": False,
            "quiet": True,
            "noprogress": True,
            "logger": _Log(),
            "progress_hooks": [hook],
            "retries": 3,
            "fragment_retries": 3,
            "socket_timeout": 30,
            "restrictfilenames": False,
            **self._options,
        }
        try:
            with self._module.YoutubeDL(options) as downloader:
                info = downloader.extract_info(url, download=True)
        except self._module.utils.DownloadError as error:
            message = _plain(str(error))
            cause = error.exc_info[1] if getattr(error, "exc_info", None) else None
            restricted = isinstance(cause, self._module.utils.GeoRestrictedError)
            raise RefusedError(Refusal(status_of(message, geo_restricted=restricted), message)) from error
        except (self._module.utils.YoutubeDLError, OSError) as error:
            raise RefusedError(Refusal("failed", _plain(str(error)) or type(error).__name__)) from error
        for part in (info or {}).get("requested_downloads") or ():
            path = Path(part["filepath"])
            if path.is_file():
                return path
        raise RefusedError(Refusal("failed", f"{self.name} fetched no file from {url}."))


class _Log:
    """Errors are raised besides. Warnings are shown: of formats that are missing, so that other audio is taken."""

    def debug(self, message: str) -> None: ...

    def info(self, message: str) -> None: ...

    def warning(self, message: str) -> None:
        warnings.warn(f"yt-dlp warns: {_plain(message)}", SqutrWarning, stacklevel=2)

    def error(self, message: str) -> None: ...


def _plain(message: str) -> str:
    """A message without colors, "ERROR:" or "WARNING:" and more than 400 characters."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", message).strip()
    return " ".join(re.sub(r"^(?:ERROR|WARNING):\s*", "", text).split())[:400]


def find_ffmpeg(given: str = "") -> str:
    """The path of ffmpeg: `given`, that of the system, or that of the package imageio-ffmpeg; "" if there is none."""
    if given:
        return given
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        return ""


def convert_by_ffmpeg(source: Path, target: Path, rate: int, ffmpeg: str) -> None:
    """Any file that ffmpeg reads, as mono FLAC at `rate` Hz. Raises `AudioError`, or `MissingExtraError` without it."""
    if not ffmpeg:
        raise MissingExtraError(
            f"{source.name} can only be converted by ffmpeg, which is not installed.",
            hint=f"Install ffmpeg, or run: pip install 'squtr[{EXTRA}]'",
        )
    command = [ffmpeg, "-nostdin", "-v", "error", "-y", "-i", str(source), "-vn", "-ac", "1", "-ar", str(rate)]
    command += ["-map_metadata", "-1", "-sample_fmt", "s16", "-f", "flac", str(target)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FFMPEG_TIMEOUT_S)  # noqa: S603
    except OSError as error:
        raise AudioError(f"{ffmpeg} cannot be run: {error}.", hint="Give its path with --ffmpeg.") from error
    except subprocess.TimeoutExpired as error:
        raise AudioError(f"{source.name} was not converted within an hour.", hint="Convert it by hand.") from error
    if done.returncode:
        reason = " ".join(done.stderr.split())[-300:]
        raise AudioError(f"{source.name} cannot be converted: {reason}.", hint="Play it to see whether it is intact.")
