"""A local server that speaks OpenAI's protocol for audio and embeddings, with faults that a test switches on."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import soundfile

JSON = "application/json"
HTML_PAGE = b"<!DOCTYPE html><html><body>Welcome to the dashboard</body></html>"


@dataclass
class Fault:
    """What the server does instead of answering, `times` times (-1 for ever); `status` 0 answers as usual."""

    status: int = 0
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = -1
    slow_s: float = 0.0
    drip_s: float = 0.0
    """Every byte of the body after such a time."""
    truncate: bool = False
    hang_up: bool = False
    path: str = ""
    """Only for paths that end so."""
    after: int = 0
    """So many of these are answered as usual first."""


@dataclass
class Call:
    path: str
    key: str
    fields: dict[str, Any]
    samples: np.ndarray | None = None


class ModelServer(ThreadingHTTPServer):
    """Transcripts say how long and how loud a clip is; embeddings follow from the text's sha256."""

    daemon_threads = True

    def __init__(self, key: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = key
        self.calls: list[Call] = []
        self.fault: Fault | None = None
        self.models: Any = {"object": "list", "data": [{"id": "tiny", "root": "org/tiny-v2", "created": 1_700_000_000}]}
        self.width = 8
        self.change: Any = None
        """Called with the list of embeddings (dicts), may return another."""
        self.reply: str | None = None
        """What it answers to every chat; None for a server without chats."""
        self.refuse_longer = 0
        self.running, self.most = 0, 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""

    def paths(self) -> list[str]:
        return [call.path for call in self.calls]

    def taken_fault(self, path: str) -> Fault | None:
        with self.lock:
            fault = self.fault
            if fault is None or fault.times == 0 or not path.endswith(fault.path):
                return None
            if fault.after:
                fault.after -= 1
                return None
            fault.times -= 1
            return fault


@contextmanager
def model_server(key: str = "") -> Iterator[ModelServer]:
    server = ModelServer(key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def heard(samples: np.ndarray, language: str) -> str:
    """What the server writes for a clip."""
    return f"{language} {samples.size} {int(np.abs(samples).max() * 100)}"


def embedding(text: str, width: int) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return [float(x) for x in np.float32(3 * np.random.default_rng(seed).standard_normal(width))]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""

    def do_GET(self) -> None:
        self._record({}, None)
        if self._faulty() or self._locked():
            return
        if self.path == "/v1/models" and self.server.models is not None:
            self._send(200, json.dumps(self.server.models).encode())
        else:
            self._send(404, b'{"detail":"Not Found"}')

    def do_POST(self) -> None:
        with self.server.lock:
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
        try:
            self._post()
        finally:
            with self.server.lock:
                self.server.running -= 1

    def _post(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        fields, samples = _form(body, kind) if kind.startswith("multipart/") else (json.loads(body), None)
        self._record(fields, samples)
        if self._faulty() or self._locked():
            return
        if self.path == "/v1/audio/transcriptions" and samples is not None:
            self._transcribe(fields, samples)
        elif self.path == "/v1/embeddings":
            self._embed(fields)
        elif self.path == "/v1/chat/completions" and self.server.reply is not None:
            choice = {"message": {"content": self.server.reply}, "finish_reason": "stop"}
            self._send(200, json.dumps({"choices": [choice]}).encode())
        else:
            self._send(404, b'{"detail":"Not Found"}')

    def _transcribe(self, fields: dict[str, Any], samples: np.ndarray) -> None:
        text = heard(samples, fields["language"])
        if fields["response_format"] == "text":
            self._send(200, f"{text}\n".encode(), "text/plain; charset=utf-8")
        else:
            extra = {"segments": []} if fields["response_format"] == "verbose_json" else {}
            self._send(200, json.dumps({"text": f" {text}", **extra}).encode())

    def _embed(self, fields: dict[str, Any]) -> None:
        texts = fields["input"]
        limit = self.server.refuse_longer
        if any(not text for text in texts) or (limit and any(len(text) > limit for text in texts)):
            self._send(400, b'{"error":{"message":"input is too long or empty","type":"BadRequestError"}}')
            return
        width = fields.get("dimensions", self.server.width)
        rows: list[dict[str, Any]] = [
            {"object": "embedding", "index": i, "embedding": embedding(text, width)} for i, text in enumerate(texts)
        ]
        if fields["encoding_format"] == "base64":
            for row in rows:
                row["embedding"] = base64.b64encode(np.asarray(row["embedding"], "<f4").tobytes()).decode()
        rows.reverse()  # the index counts, not the place
        if self.server.change is not None:
            rows = self.server.change(rows)
        self._send(200, json.dumps({"object": "list", "data": rows, "model": fields["model"]}).encode())

    def _record(self, fields: dict[str, Any], samples: np.ndarray | None) -> None:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        with self.server.lock:
            self.server.calls.append(Call(self.path, key, fields, samples))

    def _locked(self) -> bool:
        if not self.server.key or self.server.calls[-1].key == self.server.key:
            return False
        sent = self.headers.get("Authorization", "")
        self._send(401, json.dumps({"error": {"message": f"Incorrect API key provided: {sent}"}}).encode())
        return True

    def _faulty(self) -> bool:
        fault = self.server.taken_fault(self.path)
        if fault is None:
            return False
        time.sleep(fault.slow_s)
        if fault.hang_up:
            self.close_connection = True
            self.connection.close()
            return True
        if not fault.status:
            return False
        # A server that repeats the key where it should not.
        body = fault.body.replace(b"{key}", self.server.calls[-1].key.encode())
        self._send(fault.status, body, headers=fault.headers, truncate=fault.truncate, drip_s=fault.drip_s)
        return True

    def _send(
        self,
        status: int,
        body: bytes,
        kind: str = JSON,
        *,
        headers: dict[str, str] | None = None,
        truncate: bool = False,
        drip_s: float = 0.0,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if drip_s:
            for i in range(len(body)):
                time.sleep(drip_s)
                self.wfile.write(body[i : i + 1])
                self.wfile.flush()
            return
        self.wfile.write(body[: len(body) // 2] if truncate else body)
        if truncate:
            self.close_connection = True


def _form(body: bytes, kind: str) -> tuple[dict[str, Any], np.ndarray | None]:
    assert re.match(r"multipart/form-data; boundary=\S+", kind)
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    fields: dict[str, Any] = {}
    samples = None
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if name == "file":
            samples, rate = soundfile.read(io.BytesIO(content), dtype="float32")
            assert rate == 16_000
            assert part.get_filename() in ("clip.flac", "clip.wav")
        elif name in fields:
            known = fields[name]
            fields[name] = [*(known if isinstance(known, list) else [known]), content.decode()]
        else:
            fields[name] = content.decode()
    return fields, samples
