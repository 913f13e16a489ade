"""Running the Hub on two ports of loopback: its own, and its storage's, which is another origin as in real life."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from .app import HubApp
from .faults import Fault
from .storage import Storage


@dataclass(frozen=True)
class LocalHub:
    """A running Hub."""

    app: HubApp

    @property
    def endpoint(self) -> str:
        return self.app.address

    @property
    def storage(self) -> Storage:
        return self.app.storage

    @property
    def log(self) -> list[str]:
        return self.app.log

    def inject(self, *faults: Fault) -> None:
        self.app.faults.extend(faults)

    def count(self, beginning: str) -> int:
        """Requests in the log that begin so."""
        return sum(line.startswith(beginning) for line in self.log)


@contextmanager
def serve(storage: Storage) -> Iterator[LocalHub]:
    """Serve `storage` until the end of the block."""
    app = HubApp(storage)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    own, large = (s.getsockname()[1] for s in sockets)
    app.address, app.storage_address = f"http://127.0.0.1:{own}", f"http://127.0.0.1:{large}"
    app.storage_port = large
    server = uvicorn.Server(uvicorn.Config(app, http="h11", lifespan="off", log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        if time.monotonic() > deadline or not thread.is_alive():
            raise RuntimeError("the local Hub did not start")
        time.sleep(0.01)
    try:
        yield LocalHub(app)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        for listening in sockets:
            listening.close()
