"""A headless Chromium, driven by its own protocol: pages, keys, screenshots, what a page complains about."""

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.interop.page_server import CHROMIUM_OPTIONS, find_chromium
from tests.support.patience import PATIENCE_SECONDS

POLL_SECONDS = 0.05
KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), "ArrowDown": ("", 40), "ArrowUp": ("", 38)}


class PageFailed(AssertionError):
    """The page did not become what a test waits for, or complained."""


class Page:
    """One tab. `complaints` are errors of scripts, violations of the policy, and what could not be loaded."""

    def __init__(self, socket: ClientConnection, session: str, pages: "dict[str, Page]") -> None:
        """`pages` are those of the browser by session: what one waits for comes among what is told of all."""
        self._socket = socket
        self._session = session
        self._pages = pages
        pages[session] = self
        self._ids = itertools.count(1)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.addScriptToEvaluateOnNewDocument", source=_LISTENING)

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        """A command of the protocol and its result."""
        number = next(self._ids)
        command = {"id": number, "method": method, "params": parameters, "sessionId": self._session}
        self._socket.send(json.dumps(command))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE_SECONDS))
            if told.get("id") == number:
                if "error" in told:
                    raise PageFailed(f"{method}: {told['error']['message']}")
                result: dict[str, Any] = told["result"]
                return result
            if told.get("sessionId") in self._pages:
                self._pages[told["sessionId"]]._note(told)

    def _note(self, told: dict[str, Any]) -> None:
        parameters = told.get("params", {})
        match told.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"])[:2000])
            case "Log.entryAdded" if parameters["entry"]["source"] == "security":
                self.complaints.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    def close(self) -> None:
        """Close the tab. What was told of it is forgotten."""
        del self._pages[self._session]
        self.send("Page.close")

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise. Raises PageFailed."""
        outcome = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in outcome:
            raise PageFailed(f"{script[:200]}: {json.dumps(outcome['exceptionDetails'])[:1000]}")
        return outcome["result"].get("value")

    def wait(self, script: str) -> Any:
        """The first value of an expression that is true. Raises PageFailed with what the page shows instead."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with contextlib.suppress(PageFailed):
                value = self.run(f"Promise.resolve({script}).then((value) => value instanceof Node || value)")
                if value:
                    return value
            if time.monotonic() > until:
                raise PageFailed(f"never true: {script}\n{self.text()[:3000]}\n{self.complaints}")
            time.sleep(POLL_SECONDS)

    def text(self) -> str:
        """What the page shows."""
        shown: str = self.run("document.body.innerText")
        return shown

    def sees(self, text: str) -> None:
        """Wait until the page shows the text."""
        self.wait(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that fits and has the text in it or in its name, when it is there."""
        self.wait(f"(() => {{ const one = {_found(selector, text)}; one?.click(); return Boolean(one); }})()")

    def type(self, selector: str, text: str) -> None:
        """Focus a field, choose what is in it, and write over it."""
        found = _found(selector, "")
        reached = "return one && document.activeElement === one"
        self.wait(f"(() => {{ const one = {found}; one?.focus(); one?.select(); {reached}; }})()")
        self.send("Input.insertText", text=text)
        # The page draws what was typed before anything else happens, as between two moves of a person.
        self.run("new Promise((go) => setTimeout(go))")

    def press(self, key: str, *, shift: bool = False) -> None:
        text, code = KEYS.get(key, (key, ord(key[0].upper())))
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        self.send("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def size(self, width: int, height: int, *, is_dark: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        # The page learns of it a little later.
        self.wait(f"innerWidth === {width} && innerHeight === {height}")
        self.wait(f"matchMedia('(prefers-color-scheme: dark)').matches === {json.dumps(is_dark)}")

    def picture(self, scale: float = 1) -> bytes:
        """What is in the window, as PNG."""
        size = self.run("({x: scrollX, y: scrollY, width: innerWidth, height: innerHeight})")
        taken = self.send("Page.captureScreenshot", format="png", clip={**size, "scale": scale})
        return base64.b64decode(taken["data"])


def _found(selector: str, text: str) -> str:
    named = "(one.innerText ?? '') + ' ' + (one.getAttribute('aria-label') ?? '')"
    return (
        f"[...document.querySelectorAll({json.dumps(selector)})].find((one) => ({named}).includes({json.dumps(text)}))"
    )


_LISTENING = """
globalThis.violations = [];
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) =>
  violations.push(`${violatedDirective} ${blockedURI} ${sample}`),
);
"""


@contextlib.contextmanager
def chromium(folder: Path, errors_max: int = 2000, more_options: Sequence[str] = ()) -> Iterator["Chromium"]:
    """A browser whose profile is in the folder. The caller has seen that `find_chromium` finds one."""
    command = find_chromium()
    assert command is not None
    port_file = folder / "DevToolsActivePort"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "chromium.log"
    options = [*CHROMIUM_OPTIONS, "--remote-debugging-port=0", f"--user-data-dir={folder}", "--hide-scrollbars"]
    options += more_options
    with log.open("wb") as output:
        process = subprocess.Popen(
            [command, *options, "about:blank"], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (port_file.exists() and port_file.read_text().count("\n")):
            if process.poll() is not None or time.monotonic() > until:
                raise PageFailed(log.read_text(errors="replace")[-errors_max:])
            time.sleep(POLL_SECONDS)
        port, path = port_file.read_text().split("\n")[:2]
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, compression=None, proxy=None) as socket:
            browser = Chromium(socket)
            yield browser
            browser.close()
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


class Chromium:
    """A running browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1_000_000)
        self._pages: dict[str, Page] = {}

    def page(self) -> Page:
        """A new tab of its own, which shares no storage with others."""
        context = self._send("Target.createBrowserContext")["browserContextId"]
        target = self._send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self._socket, session, self._pages)

    def close(self) -> None:
        """End it; its processes end a little later."""
        self._send("Browser.close")

    def _send(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE_SECONDS))
            if told.get("id") == number:
                result: dict[str, Any] = told["result"]
                return result
