"""A headless Chromium, controlled by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT = 30
"""Seconds for one answer of the browser."""

OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0")


@dataclass
class Page:
    """An open page, and its errors."""

    socket: websocket.WebSocket
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """Every requested address."""
    _loaded: bool = False
    _number: int = 0

    def send(self, method: str, **parameters: object) -> dict[str, object]:
        self._number += 1
        self.socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while (message := json.loads(self.socket.recv())).get("id") != self._number:
            self._note(message)
        if "error" in message:
            raise AssertionError(f"{method}: {message['error']}")
        result: dict[str, object] = message["result"]
        return result

    def _note(self, message: dict[str, object]) -> None:
        parameters = message.get("params")
        assert isinstance(parameters, dict)
        match message["method"]:
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(str(parameters["entry"]["text"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(str(parameters["args"]))
            case "Network.requestWillBeSent":
                self.requests.append(str(parameters["request"]["url"]))
            case "Page.loadEventFired":
                self._loaded = True

    def open(self, path: Path, *, scripts: bool = True, address: str = "") -> None:
        """Open a file; `address` is the part after its name."""
        if address:  # a page that differs by its hash alone is not loaded again
            self.send("Page.navigate", url="about:blank")
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._loaded = False
        self.send("Page.navigate", url=path.as_uri() + address)
        while not self._loaded:
            self._note(json.loads(self.socket.recv()))
        if scripts:  # the first frame after the load event has drawn everything
            self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> object:
        """Return the value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result.get("value")

    def text(self, selector: str) -> list[str]:
        """Return the text of the elements."""
        result = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)")
        assert isinstance(result, list)
        return result

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def resize(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Return a picture of the page or of the window, as PNG or WebP."""
        form = path.suffix.removeprefix(".")
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole, format=form)["data"]
        path.write_bytes(base64.b64decode(str(data)))


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Yield a page in a browser with a profile in `folder`."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program, "these tests need Chromium: apt-get install chromium"
    command = [program, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        address = next(line.split()[-1] for line in process.stderr if line.startswith("DevTools listening on"))
        base = address.split("/devtools/")[0]
        browser = websocket.create_connection(address, timeout=TIMEOUT, suppress_origin=True)
        try:
            browser.send(json.dumps({"id": 1, "method": "Target.createTarget", "params": {"url": "about:blank"}}))
            target = json.loads(browser.recv())["result"]["targetId"]
            socket = websocket.create_connection(
                f"{base}/devtools/page/{target}", timeout=TIMEOUT, suppress_origin=True
            )
            yield Page(socket)
            socket.close()
        finally:
            browser.close()
            process.terminate()
