"""How a fault delivers an answer: slowly, or cut short at the end of its connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from rejoin.coordinator.control.fault_rules import FaultRule
from rejoin.coordinator.core.inputs import Millis

_STEP_MS: Final = 100
"""The shortest time between two pieces of a slow answer."""
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class FaultyDelivery:
    """Delivers the answers that a rule applies to. ``sleep`` waits on the node's clock."""

    def __init__(self, rule: FaultRule, sleep: Callable[[Millis], Awaitable[None]]) -> None:
        self._rule = rule
        self._sleep = sleep

    @property
    def is_cut(self) -> bool:
        """Whether the connection ends with the answer."""
        return self._rule.cut_after_bytes is not None

    async def write(self, answer: bytes, transport: asyncio.WriteTransport) -> bool:
        """Write an answer, or what is left of it; returns whether the connection goes on."""
        rule = self._rule
        left = answer[: rule.cut_after_bytes]
        if rule.bytes_per_second is None:
            transport.write(left)
        else:
            for piece, wait_ms in _paced(left, rule.bytes_per_second):
                await self._sleep(wait_ms)
                if transport.is_closing():
                    return False
                transport.write(piece)
        if not self.is_cut:
            return True
        if rule.reset:
            _reset(transport)
        else:
            transport.close()
        return False


def _paced(data: bytes, bytes_per_second: int) -> Iterator[tuple[bytes, Millis]]:
    """The pieces of an answer, each with the time that passes before it."""
    size = max(1, bytes_per_second * _STEP_MS // 1_000)
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        yield piece, round(len(piece) * 1_000 / bytes_per_second)


def _reset(transport: asyncio.WriteTransport) -> None:
    """End a connection with RST instead of FIN."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()
