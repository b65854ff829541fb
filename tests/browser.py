"""A headless Chromium, driven through a pipe: opens a page, scrolls through it, reads it."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1600,1400",
    "--remote-debugging-pipe",
]
# Tables show only the rows that fit, so all boxes are scrolled through.
READ_ALL = """
(async () => {
  const seen = new Set();
  const take = () => document.body.innerText.split("\\n").forEach(line => seen.add(line.trim()));
  take();
  for (const box of [...document.querySelectorAll("*")]) {
    if (box.scrollHeight <= box.clientHeight + 20) continue;
    if (getComputedStyle(box).overflowY === "visible") continue;
    for (let y = 0; y < box.scrollHeight; y += 200) {
      box.scrollTop = y;
      await new Promise(resolve => setTimeout(resolve, 50));
      take();
    }
  }
  return [...seen].join("\\n");
})()
"""


class Browser:
    """One page of a browser of its own; ends with the `with` block.

    Args:
        folder: for its profile.
    """

    def __init__(self, folder: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        arguments = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "browser", *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._ids = itertools.count(1)
        self._buffer = b""
        self._session = ""

    def __enter__(self) -> Browser:
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def open(self, url: str, until: str, timeout: float) -> str:
        """Return the page's whole text, once `until` occurs in it (or time is up)."""
        self._send("Page.navigate", url=url)
        end = time.monotonic() + timeout
        while until not in self._evaluate("document.body.innerText") and time.monotonic() < end:
            time.sleep(0.3)
        return str(self._evaluate(READ_ALL))

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self._send("Page.captureScreenshot")["data"]))

    def _evaluate(self, script: str) -> Any:
        found = self._send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        return found["result"].get("value") or ""

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "result" in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._in, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found
