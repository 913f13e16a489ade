"""What public services take of audio: a table of facts. A server that is not listed has no limit that is known here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .server_component import AudioFormat


@dataclass(frozen=True, slots=True)
class Service:
    """`chat_formats` are those of `input_audio`, `chat_bytes` is the largest chat request that is sent (base64
    included). `source` is where this was read.
    """

    chat_formats: tuple[AudioFormat, ...]
    chat_bytes: int
    source: str


_OPENAI = Service(
    ("wav", "mp3"),
    20_000_000,
    "openai 3.57, ChatCompletionContentPartInputAudioParam (wav or mp3); 20 MB by Microsoft's page on the same "
    "models (learn.microsoft.com, Azure OpenAI audio generation)",
)
SERVICES: Mapping[str, Service] = {
    "api.openai.com": _OPENAI,
    "openai.azure.com": _OPENAI,
    "generativelanguage.googleapis.com": Service(
        ("wav", "mp3"),
        20_000_000,
        "ai.google.dev/gemini-api/docs/audio: 20 MB for a request with audio in it (files sent by themselves may be "
        "larger; the endpoint with OpenAI's protocol takes none)",
    ),
}
"""By host, or the end of one."""


def service_of(url: str) -> Service | None:
    """The service behind a URL, None for one that is not listed.

    >>> service_of("https://mine.openai.azure.com/openai/v1").chat_bytes, service_of("http://localhost:8000/v1")
    (20000000, None)
    """
    host = urlsplit(url).hostname or ""
    return next((found for end, found in SERVICES.items() if host == end or host.endswith(f".{end}")), None)
