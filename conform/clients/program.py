"""The client as a process: started in a process group of its own, its output bounded, and ended with all it started."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from rejoin.conform.clients.records import read_line
from rejoin.conform.clients.stage import PlayedNames
from rejoin.protocol.types import TopicPartition

_ADDRESS: Final = re.compile(r" object at 0x[0-9a-f]+")
"""The place of an object in memory, which Python prints and which is another one in each run."""

MOST_OUTPUT_BYTES: Final = 16 * 2**20
KEPT_OUTPUT_BYTES: Final = 4_096
_PIECE: Final = 2**16
_END_SECONDS: Final = 5.0
_ENDED_BY_SIGTERM: Final = 128 + signal.SIGTERM
"""Exit code of JVMs and shells that SIGTERM ended."""


class NotStarted(Exception):
    """The command cannot be started."""


class ClientProcess:
    """A running command."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._printed = 0
        self._tail = b""
        self._line = b""
        self.processed: list[tuple[TopicPartition, int]] = []
        self._reading = asyncio.ensure_future(self._read())
        self._ended_at: float | None = None
        """When the program was first seen to have ended."""

    @classmethod
    async def start(cls, command: Sequence[str], bootstrap_servers: str, names: PlayedNames | None = None) -> Self:
        """Start a command. Raises NotStarted."""
        names = names or PlayedNames()
        variables = {
            "BOOTSTRAP_SERVERS": bootstrap_servers,
            "TOPIC": names.topic,
            "GROUP_ID": names.group,
            "OUTPUT_TOPIC": names.output_topic,
            "TRANSACTIONAL_ID": names.transactional_id,
        }
        filled = [_filled(word, variables) for word in command]
        try:
            process = await asyncio.create_subprocess_exec(
                *filled,
                env=os.environ | variables,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            why = getattr(problem, "strerror", None) or problem
            raise NotStarted(f"{command[0]}: {why}; expected a program after --") from None
        return cls(process)

    @property
    def problem(self) -> str | None:
        """End of the program in words, or that it prints too much; None while it runs, and until its output is read."""
        if self._printed > MOST_OUTPUT_BYTES:
            return f"printed more than {MOST_OUTPUT_BYTES >> 20} MiB"
        code = self._process.returncode
        if code is None or not self._has_said_all():
            return None
        ended = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        last = _ADDRESS.sub("", self._last_line())
        return f"{ended} ({last})" if last and code else ended

    def _has_said_all(self) -> bool:
        """Whether the output of the program, which has ended, is read; a child of it may hold the pipe open."""
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        return self._reading.done() or time.monotonic() > self._ended_at + _END_SECONDS

    async def close(self, seconds: float) -> bool:
        """Send SIGTERM; whether it ended by itself, and not by the signal."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        code = self._process.returncode
        return code is not None and code >= 0 and code != _ENDED_BY_SIGTERM

    async def kill(self) -> None:
        """Kill the process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        # To its end, so that the pipe is closed; a program that left the process group may hold it open.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._reading, _END_SECONDS)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while piece := await self._process.stdout.read(_PIECE):
            self._printed += len(piece)
            self._tail = (self._tail + piece)[-KEPT_OUTPUT_BYTES:]
            if self._printed <= MOST_OUTPUT_BYTES:
                *lines, rest = (self._line + piece).split(b"\n")
                self._line = rest[-KEPT_OUTPUT_BYTES:]
                self.processed += filter(None, map(read_line, lines))

    def _last_line(self) -> str:
        said = [each.strip() for each in self._tail.decode(errors="replace").splitlines() if each.strip()]
        return said[-1][:200] if said else ""


def _filled(word: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
