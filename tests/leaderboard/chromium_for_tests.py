"""A real Chromium without a window, driven through its own protocol: what is clicked is what a reader would click."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip


def find_chromium() -> str:
    """Its path, "" if this machine has none."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


class Browser:
    """One page of a running Chromium. `problems` are what its console said of errors and refused content."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.loop, self.socket = loop, socket
        self.numbers = itertools.count(1)
        self.problems: list[str] = []
        self.requests: list[str] = []

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.loop.run_until_complete(asyncio.wait_for(self._send(method, parameters), 60))

    async def _send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(self.numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self.socket.receive()).data)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return dict(message["result"])
            self._note(message.get("method", ""), message.get("params", {}))

    def _note(self, event: str, said: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(one.get("value")) for one in said["args"]))
        elif event == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.problems.append(said["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])

    def open(self, address: str) -> None:
        """Go there from an empty page, so that it is loaded anew, and wait until the page is drawn."""
        self.send("Page.navigate", url="about:blank")
        self.requests.clear()
        self.send("Page.navigate", url=address)
        self.wait("document.documentElement && document.documentElement.dataset.ready")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(f"Boolean({condition})"):
                return
            time.sleep(0.02)
        raise AssertionError(f"never true: {condition}; {self.problems}")

    def go(self, address: str) -> None:
        """Follow a link within the page."""
        self.run(f"location.hash = {json.dumps(address)}")
        self.run("new Promise(done => setTimeout(done, 0))")

    def click(self, selector: str) -> None:
        """Press and release the mouse in the middle of an element (of its first line)."""
        place = self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); if (!one) return null;"
            " one.scrollIntoView({block: 'center', inline: 'center'}); const box = one.getClientRects()[0];"
            " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        assert place, f"no {selector}"
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        self.run("new Promise(done => setTimeout(done, 0))")

    def press(self, key: str, code: int) -> None:
        """Press a key: ("Tab", 9), ("Enter", 13)."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)
        self.run("new Promise(done => setTimeout(done, 0))")

    def choose(self, selector: str, value: str) -> None:
        """Choose an option, as a reader does."""
        self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
            " one.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        self.run("new Promise(done => setTimeout(done, 0))")

    def write(self, selector: str, text: str) -> None:
        """Write into a field, key by key."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        for letter in text:
            self.send("Input.insertText", text=letter)

    def texts(self, selector: str) -> list[str]:
        found = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.innerText.trim())")
        return list(found)

    def look(self, width: int, *, dark: bool = False, height: int = 900) -> None:
        """The size and the colors of the reader's screen."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """A running Chromium with one page, its profile thrown away afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        loop = asyncio.new_event_loop()
        try:
            port = _port(Path(profile), process)
            session = loop.run_until_complete(_session())
            socket = loop.run_until_complete(_connect(session, port))
            browser = Browser(loop, socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.send(f"{domain}.enable")
            yield browser
            loop.run_until_complete(socket.close())
            loop.run_until_complete(session.close())
        finally:
            process.terminate()
            process.wait(timeout=20)
            loop.close()


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        said = profile / "DevToolsActivePort"
        if said.is_file() and (lines := said.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    raise RuntimeError(f"Chromium did not start (status {process.poll()})")


async def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()


async def _connect(session: aiohttp.ClientSession, port: int) -> aiohttp.ClientWebSocketResponse:
    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
        pages = await answer.json(content_type=None)
    address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
    return await session.ws_connect(address, max_msg_size=0)
