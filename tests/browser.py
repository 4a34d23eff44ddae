"""A headless Chromium, driven by its DevTools protocol through a pipe: pages as people see them, for tests."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
MISSING = "Chromium is not installed: apt-get install chromium"
_PATIENCE = 60.0  # seconds for an answer


# Chromium reads the protocol from handle 3 and writes it to 4
_AT_3_AND_4 = """
import fcntl, os, sys
handles = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
for at, handle in zip((3, 4), handles):
    os.dup2(handle, at)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one tab, which notes each request, and each message and error of the console."""

    def __init__(self, profile):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ]
        options += ["--remote-debugging-pipe", "--no-first-run", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AT_3_AND_4, str(to_browser), str(from_browser), str(CHROMIUM), *options],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._waiting, self._session = 0, b"", ""
        self.requests: list[str] = []
        self.messages: list[Any] = []
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait(_PATIENCE)
        os.close(self._in)
        os.close(self._out)

    # ---- the protocol ----

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        """The next message; what happened on the page is noted."""
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            read = os.read(self._in, 1 << 20) if ready else b""
            assert read, "the browser does not answer"
            self._waiting += read
        text, _, self._waiting = self._waiting.partition(b"\0")
        message = json.loads(text)
        name, found = message.get("method"), message.get("params")
        if name == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif name in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(found)
        return message

    # ---- what tests do ----

    def open(self, path, width=1100, scheme="light", media="screen"):
        """Show a page in a window of this width, and wait until all of it is there."""
        self.requests.clear()
        self.messages.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])
        self.call("Page.navigate", url=path.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def ask(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def shoot(self, path):
        """The whole page as a picture."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
