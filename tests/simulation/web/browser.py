"""A headless Chromium, driven over the DevTools protocol by aiohttp's websocket."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import which
from typing import Any, Final

import aiohttp

CHROMIUM: Final = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := which(name))), None
)
PATIENCE_S: Final = 120.0
"""How long a condition is waited for: long enough for a machine that is busy with other things."""


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._last = 0
        self.problems: list[str] = []
        """Exceptions and messages of the console that are errors."""
        self.addresses: list[str] = []
        """All that was asked for over the network."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol. Raises :class:`RuntimeError` when it fails."""
        self._last += 1
        await self._socket.send_json({"id": self._last, "method": method, "params": params})
        while True:
            message = json.loads(await asyncio.wait_for(self._socket.receive_str(), PATIENCE_S))
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.problems.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.addresses.append(params["request"]["url"])

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression; promises are awaited."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    async def wait_for(self, condition: str) -> None:
        """Wait, in the page, until a condition holds."""
        script = (
            f"new Promise(done => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 20); look(); }})"
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not await self._holds(script):
                    pass
        except TimeoutError:
            raise AssertionError(f"it never came to {condition}; problems: {self.problems}") from None

    async def _holds(self, script: str) -> bool:
        """Whether a script ended well; not when the page it ran in has given way to the next one meanwhile."""
        try:
            return bool(await self.evaluate(script))
        except RuntimeError as problem:
            if "navigated" in str(problem) or "context" in str(problem):
                return False
            raise

    async def open(self, address: str) -> None:
        """Go to an address."""
        self.problems.clear()
        self.addresses.clear()
        await self.call("Page.navigate", url="about:blank")
        await self.call("Page.navigate", url=address)

    async def press(self, key: str, text: str | None = None) -> None:
        """Press a key and let it go."""
        code = {" ": "Space"}.get(key, key)
        extra = {"text": text} if text else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code, **extra)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code)

    async def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Have a window of this size, and light or dark."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self) -> bytes:
        """What is on the screen, as PNG."""
        taken = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(taken["data"])


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A browser with one tab. Its profile is in the folder."""
    assert CHROMIUM is not None
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--mute-audio"),
        *("--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking", "--disable-sync"),
        *("--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(profile / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
                targets = await response.json()
            target = next(each for each in targets if each["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.call(f"{domain}.enable")
                yield page
                # So it ends its own processes, too. The socket may be closed before the answer.
                with suppress(RuntimeError, TypeError, aiohttp.ClientError):
                    await page.call("Browser.close")
                async with asyncio.timeout(PATIENCE_S):
                    await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def _port(file: Path, process: asyncio.subprocess.Process) -> int:
    """The port of the browser, as soon as it has written it."""
    async with asyncio.timeout(PATIENCE_S):
        while process.returncode is None:
            lines = _lines(file)
            if len(lines) > 1:
                return int(lines[0])
            await asyncio.sleep(0.02)
    raise AssertionError(f"the browser ended with {process.returncode}")
