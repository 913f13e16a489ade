"""A web server on loopback with the faults that downloads meet."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Web:
    """What the server holds, how it fails, and what it was asked.

    `breaks`: how many bytes each of the next answers sends before the connection ends. `statuses`: what the next
    answers say instead of sending anything.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    etags: bool = True
    says_length: bool = True
    breaks: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def serve() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            name = self.path.partition("?")[0].lstrip("/")
            asked = self.headers.get("Range", "")
            web.asked.append((name, asked))
            self.close_connection = True
            if web.statuses:
                return self.say(web.statuses.pop(0))
            if name not in web.files:
                return self.say(404)
            content = web.files[name]
            etag = f'"{hashlib.md5(content).hexdigest()}"'
            start = 0
            if web.ranges and asked and self.headers.get("If-Range", etag) == etag:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    return self.say(416, {"Content-Range": f"bytes */{len(content)}"})
            headers = {"ETag": etag} if web.etags else {}
            if asked and start:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            body = content[start:]
            if web.says_length:
                headers["Content-Length"] = str(len(body))
            self.send_response(206 if start else 200)
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body[: web.breaks.pop(0)] if web.breaks else body)
            return None

        def say(self, status: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for key, value in {**(headers or {}), "Content-Length": "0"}.items():
                self.send_header(key, value)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
