"""Ports that stay free until they are bound: the system hands them to no program that asks for any port."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import suppress
from typing import Final

_PORTS: Final = range(30_000, 32_700)
"""Below those that a system hands out by itself, so that no process takes a port while its owner is down."""

_WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_next_ports: Final = itertools.count(_WORKER * 400 + os.getpid() * 31)
"""Processes of tests begin far from one another."""


def free_port() -> int:
    """A port that this process has not had before."""
    while True:
        port = _PORTS[next(_next_ports) % len(_PORTS)]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
