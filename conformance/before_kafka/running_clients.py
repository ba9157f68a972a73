"""Producers and consumers as processes, what they print, and the ports that they are connected to."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_STOP_SECONDS: Final = 90.0


class AckedRecord(NamedTuple):
    """A record that a producer was acknowledged, and when that was in ms since 1970."""

    value: str
    partition: int
    offset: int
    at_ms: int


class ClientProcess:
    """A client that runs until it is stopped. ``group`` is that of a consumer, empty of a producer."""

    def __init__(self, name: str, group: str, command: list[str], folder: Path) -> None:
        self.name, self.group = name, group
        self._command, self._out = command, folder / f"{name}.out"
        self._process: asyncio.subprocess.Process

    async def start(self) -> None:
        """Start it."""
        with self._out.open("ab") as out, (self._out.with_suffix(".err")).open("ab") as err:
            # Their input stays open: a member ends with it.
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=out, stderr=err
            )

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself."""
        return self._process.returncode is not None

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        if self.has_ended:
            return
        self._process.send_signal(how)
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def _words(self, first: str) -> Iterable[list[str]]:
        # The last line may be half a line.
        whole = self._out.read_text(errors="replace").rpartition("\n")[0]
        return (words for line in whole.splitlines() if (words := line.split()) and words[0] == first)

    def acked(self) -> list[AckedRecord]:
        """Records that were acknowledged so far, in that order."""
        return [AckedRecord(words[1], int(words[2]), int(words[3]), int(words[4])) for words in self._words("acked")]

    def failed(self) -> list[str]:
        """Records that were not, with the problem."""
        return [" ".join(words[1:]) for words in self._words("failed")]

    def read(self) -> Counter[tuple[int, int]]:
        """How often each record was read, by partition and offset."""
        return Counter((int(words[2]), int(words[3])) for words in self._words("processed"))

    def said(self) -> str:
        """The end of what it said of errors."""
        return self._out.with_suffix(".err").read_text(errors="replace")[-400:]

    def ports(self) -> set[int]:
        """The ports of others that it is connected to now."""
        return remote_ports(self._process.pid)


def remote_ports(pid: int) -> set[int]:
    """The remote ports of the TCP connections that a process has."""
    inodes = set()
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                columns = line.split()
                remote = int(columns[2].rpartition(":")[2], 16)
                if columns[9] in inodes and remote:
                    found.add(remote)
    return found
