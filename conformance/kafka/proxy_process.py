"""``rejoin proxy`` as a process in front of a broker: started, killed, started again."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Final, Self

from conformance.kafka.broker import HOST

_READY_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0


class ProxyFailed(Exception):
    """The proxy did not start; the text has the end of what it logged."""


class ProxyProcess:
    """One proxy, which may be started more than once. Use it as an async context manager, or start and stop it."""

    def __init__(self, broker: str, folder: Path, port: int = 0) -> None:
        """``port``: the first listener's; 0 takes any at the first start. ``folder`` gets the journal and the log."""
        self.journal = folder / "journal"
        self.log = folder / "proxy.log"
        self._broker, self._port = broker, port
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """The address of the first listener."""
        return f"{HOST}:{self._port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start it and wait until it listens."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = (sys.executable, "-m", "rejoin", "proxy", "--bootstrap-server", self._broker)
        options = ("--listen", self.address, "--journal", str(self.journal))
        with self.log.open("ab") as out:
            begin = out.tell()
            self._process = await asyncio.create_subprocess_exec(*command, *options, stdout=out, stderr=out)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while (port := self._ready_port(begin)) is None:
                    if self._process.returncode is not None:
                        raise ProxyFailed(f"ended with {self._process.returncode}: {self._logged(begin)[-2000:]}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise ProxyFailed(f"did not start: {self._logged(begin)[-2000:]}") from None
        self._port = port

    def _logged(self, begin: int) -> str:
        return self.log.read_bytes()[begin:].decode()

    def _ready_port(self, begin: int) -> int | None:
        for line in self._logged(begin).splitlines():
            if '"proxy_ready"' in line:
                return int(json.loads(line)["bootstrap_servers"].rpartition(":")[2])
        return None

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop it, and kill it when it does not."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(how)
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
