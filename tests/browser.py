"""A headless Chromium for tests, driven through its DevTools over two pipes; needs nothing but the browser."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
    "--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
#: the end of the pipes in the browser, which its interface fixes
_READS, _WRITES = 3, 4


def find_chromium() -> str | None:
    """Where a Chromium is, if anywhere."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in a browser that starts with it. `errors` is what the page's console and its scripts complained of."""

    def __init__(self, program: str) -> None:
        self.errors: list[str] = []
        self._session: str | None = None
        self._number = 0
        self._rest = b""
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        there, self._out = os.pipe()
        self._in, back = os.pipe()
        # a shell puts the ends where the browser looks for them: what runs between fork and exec must not be Python
        wiring = f'exec {_READS}<&{there} {_WRITES}>&{back}; exec "$@"'
        command = ["bash", "-c", wiring, "bash", program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(there, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(there)
        os.close(back)
        self._loaded = False
        self._session = self.call("Target.attachToTarget", targetId=self._page(), flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.resize(1400, 900)

    def _page(self) -> str:
        for _ in range(200):
            found = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
            if found:
                return found[0]["targetId"]
            time.sleep(0.05)
        raise RuntimeError("the browser opens no page")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools; events that come before its answer are looked at."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._event(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._in, 1 << 20)
            if not got:
                raise RuntimeError("the browser is gone")
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _event(self, event: dict[str, Any]) -> None:
        kind, said = event.get("method"), event.get("params", {})
        if kind == "Page.loadEventFired":
            self._loaded = True
        elif kind == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif kind == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(said["entry"]["text"])

    def open(self, path: Path, fragment: str = "") -> float:
        """Load a page afresh; seconds until its load event."""
        self._navigate("about:blank")
        started = time.perf_counter()
        self._navigate(f"{path.as_uri()}{fragment and '#' + fragment}")
        return time.perf_counter() - started

    def _navigate(self, url: str) -> None:
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._event(self._read())

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"].get("exception", {}).get("description", script))
        return done["result"].get("value")

    def go(self, fragment: str) -> None:
        """Another view of the page, drawn."""
        drawn = "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        self.run(f"new Promise((done) => {{ location.hash = {json.dumps(fragment)}; {drawn} }})")

    def text(self, selector: str) -> str:
        """What somebody reads in the first element that fits."""
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def count(self, selector: str) -> int:
        """How many elements fit."""
        return self.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def press(self, key: str) -> None:
        """A key, as the keyboard sends it."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.run("new Promise((done) => setTimeout(done, 20))")

    def type(self, text: str) -> None:
        """Text into what has the focus; then time for what waits for the end of typing."""
        self.call("Input.insertText", text=text)
        self.run("new Promise((done) => setTimeout(done, 120))")

    def resize(self, width: int, height: int) -> None:
        """The size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as the system has it."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def choose_file(self, selector: str, path: Path) -> None:
        """A file in a field for files."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def wait_for(self, selector: str, seconds: float = 20) -> None:
        """Let the page work until an element is there. Raises TimeoutError where it does not come."""
        end = time.perf_counter() + seconds
        while not self.count(selector):
            if time.perf_counter() > end:
                raise TimeoutError(f"no element {selector!r}")
            self.run("new Promise((done) => setTimeout(done, 20))")

    def screenshot(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)
