"""Waits until everything that arrived over the network so far has been handed in.

The event loop may have been late: a long step, a stopped process. What came meanwhile waits in sockets, connections
wait to be accepted, and a deadline that passed meanwhile must not win over them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

_PASSES: Final = 8
"""Passes of the loop from a connection that waits to be accepted to its request, with some to spare."""
_MOST_SECONDS: Final = 1.0
"""How long new connections can put a deadline off."""


class Arrivals:
    """Knows how many connections have been accepted. A pass of the loop reads what waits in those that are open."""

    def __init__(self) -> None:
        self.connections = 0
        """Counted by the server."""

    def then(self, call: Callable[[], None]) -> None:
        """Call once everything that has arrived is handed in."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + _MOST_SECONDS
        connections, passes = self.connections, 0

        def after_a_pass() -> None:
            nonlocal connections, passes
            # Some loops accept one connection in each pass, so each of them starts the count again.
            passes = passes + 1 if connections == self.connections else 0
            connections = self.connections
            if passes < _PASSES and loop.time() < latest:
                loop.call_soon(after_a_pass)
            else:
                call()

        loop.call_soon(after_a_pass)


async def close_servers(servers: Sequence[asyncio.Server]) -> None:
    """Take no more connections. Those that were accepted by now have got their protocol.

    Without that, asyncio drops a connection that waits for its protocol, without closing it: its client would wait
    for an answer until it gives up.
    """
    loop = asyncio.get_running_loop()
    for server in servers:
        # Other loops have servers of their own, without this gap.
        if isinstance(server, asyncio.Server):
            for each in server.sockets:
                loop.remove_reader(each)
    for _ in range(_PASSES):
        await asyncio.sleep(0)
    for server in servers:
        server.close()
