"""``rejoin serve -- COMMAND``: a program beside a node, and evidence of the groups where the program failed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rejoin.coordinator.commands.serve_options import ServeOptions
from rejoin.output import print_aside

if TYPE_CHECKING:
    from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
    from rejoin.coordinator.service.app import App

NOT_FOUND: Final = 127
NOT_STARTED: Final = 126
"""Exit codes as shells have them; a command that was ended by signal N has 128 + N."""

MOST_GROUPS: Final = 10
"""Groups that are explained; the journal has all."""

MOST_REQUESTS: Final = 500
"""Requests that are listed where there can be no transcript."""

_WHY_SECONDS: Final = 60


class BesideNode:
    """A command with the folder for its evidence. The folder is made with the options, and is gone after a success."""

    def __init__(self, command: Sequence[str], evidence: Path) -> None:
        self._command = list(command)
        self._folder = evidence / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self._journal = self._folder / "journal"
        self._made_parent = not evidence.exists()
        self._groups: list[str] = []
        self._code = 0

    def options(self, given: ServeOptions) -> ServeOptions:
        """The options with which a node has evidence: the control API and a journal."""
        if given.journal is None:
            given = replace(given, journal=str(self._journal))
        else:
            self._journal = Path(given.journal)
        return replace(given, control=True, log_level="warning" if given.log_level == "info" else given.log_level)

    async def run(self, node: App | BrokerCluster) -> int:
        """Run the command to its end and return its exit code; take evidence from the node where it failed."""
        addresses = {"BOOTSTRAP_SERVERS": node.bootstrap_servers, "REJOIN_URL": node.url}
        try:
            process = await asyncio.create_subprocess_exec(*self._command, env=os.environ | addresses)
        except OSError as problem:
            print_aside(f"rejoin serve: {self._command[0]}: {problem.strerror}; expected a program after --")
            return NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_STARTED
        with _passing_signals(process):
            code = await process.wait()
        self._code = 128 - code if code < 0 else code
        if self._code:
            self._take_evidence(node)
        return self._code

    def _take_evidence(self, node: App | BrokerCluster) -> None:
        assert node.control is not None
        self._groups = node.control.group_ids()
        self._folder.mkdir(parents=True, exist_ok=True)
        text = node.control.evidence.transcript_or_requests(" ".join(self._command), MOST_REQUESTS)
        (self._folder / "transcript.txt").write_text(text, encoding="utf-8")

    def end(self) -> None:
        """Explain each group after a failure, and remove the folder after a success. The node has stopped by now."""
        if not self._code:
            shutil.rmtree(self._folder, ignore_errors=True)
            if self._made_parent:
                with suppress(OSError):
                    self._folder.parent.rmdir()  # unless it has evidence of others
            return
        said = [_why(group, self._journal) for group in self._groups[:MOST_GROUPS]]
        if len(self._groups) > MOST_GROUPS:
            said.append(f"{len(self._groups) - MOST_GROUPS} more groups: rejoin why GROUP {self._journal}\n")
        text = "\n".join(said) or "There was no consumer group.\n"
        (self._folder / "why.txt").write_text(text, encoding="utf-8")
        print_aside(f"\n{self._command[0]} ended with {self._code}. Evidence: {self._folder}\n\n{text}")


def _why(group: str, journal: Path) -> str:
    command = [sys.executable, "-m", "rejoin", "why", group, str(journal)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_WHY_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{group}: rejoin why took longer than {_WHY_SECONDS} s; the journal is {journal}\n"
    return ended.stdout or ended.stderr


@contextmanager
def _passing_signals(process: asyncio.subprocess.Process) -> Iterator[None]:
    """Have the command get the signals that this process gets, unless its terminal has sent them to both."""
    loop = asyncio.get_running_loop()

    def passed(number: signal.Signals) -> None:
        if number is signal.SIGINT and _is_in_foreground():
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(number, passed, number)
    yield


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False
