"""Headless Chromium, driven over its DevTools protocol through a pipe: clicks, keys, and what a page asks for."""

import json
import os
import select
import subprocess
import time
from urllib.parse import quote

import numpy as np
import pytest

from tests.javascript.engines import chromium

_PATIENCE = 60  # seconds
_FIRST = 20  # descriptors from here on are not those that Chromium reads and writes, 3 and 4


class Browser:
    """One tab. `requests` are the addresses that pages asked for, `complaints` their errors and messages."""

    def __init__(self, profile):
        command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += ["--remote-debugging-pipe", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"]
        command += [f"--user-data-dir={profile}", "--window-size=1280,900", "about:blank"]
        fcntl = pytest.importorskip("fcntl", reason="Chromium is driven through pipes of POSIX")
        read, theirs_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, _FIRST) for fd in os.pipe())
        theirs_in, write = (fcntl.fcntl(fd, fcntl.F_DUPFD, _FIRST) for fd in os.pipe())

        def connect():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self._process = subprocess.Popen(
            command, close_fds=False, preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._read, self._write, self._buffer, self._number = read, write, b"", 0
        self._events, self.requests, self.complaints = [], [], []
        target = self._send("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        attached = self._send("Target.attachToTarget", {"targetId": target, "flatten": True}, None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def close(self):
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=_PATIENCE)
        os.close(self._read)
        os.close(self._write)

    def send(self, method, **parameters):
        """Call a method of the protocol, and return its result."""
        return self._send(method, parameters, self._session)

    def _send(self, method, parameters, session):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self):
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._read, 1 << 16)
        first, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(first)
        kind, parameters = message.get("method"), message.get("params", {})
        if kind is not None:
            self._events.append(kind)
        if kind == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        if kind == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        if kind in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening"):
            self.complaints.append(json.dumps(parameters)[:500])
        return message

    def open(self, address, width=1280, height=900):
        """Open a page, and wait until it has loaded."""
        mobile = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.send("Page.navigate", url="about:blank")
        self._events.clear()
        self.requests.clear()
        self.complaints.clear()
        self.send("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            self._receive()
        self.wait("document.querySelector('main') !== null")

    def value(self, expression):
        """Return the value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition="document.querySelector('[aria-busy]') === null"):
        """Wait until a condition holds; by default that all computation is finished."""
        until = time.monotonic() + _PATIENCE
        while not self.value(condition):
            assert time.monotonic() < until, f"never: {condition}"
            time.sleep(0.02)

    def place(self, selector):
        """Scroll an element into view, and return the place of its middle, and its width."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', "
            "inline: 'center'}); const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
        )
        return box[0] + box[2] / 2, box[1] + box[3] / 2, box[2]

    def mouse(self, kind, x, y):
        """Press, move or release the mouse."""
        self.send(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y,
            button="left",
            buttons=0 if kind == "Released" else 1,
            clickCount=1,
        )

    def click(self, selector):
        """Click the middle of an element, once nothing is computed that could move it."""
        self.wait()
        x, y, _ = self.place(selector)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def key(self, name, code=None, text=None):
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, " ": 32}
        common = {"key": name, "code": code or name, "windowsVirtualKeyCode": codes[name]}
        text = {"Enter": "\r", " ": " "}.get(name, text)
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path):
        """Write a picture of the whole page."""
        import base64

        data = self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


def shown_posterior(browser):
    """Return the probabilities in the order of the classes, whatever the order of the lines."""
    return browser.value(
        "[...document.querySelectorAll('.answers td[data-value]')]"
        ".sort((a, b) => a.dataset.class - b.dataset.class).map((e) => Number(e.dataset.value))"
    )


def address_of(path, **state):
    return f"{path.as_uri()}#{quote(json.dumps(state))}"


def python_posterior(model, row):
    return np.array(list(model.scorer()(row).values()))


def table_under(browser, anchor):
    return browser.value(
        f"[...document.querySelectorAll('section[aria-labelledby=\"{anchor}\"] tbody tr')]"
        ".map((r) => [...r.cells].map((c) => c.textContent))"
    )
