"""A proxy's connection without sockets: frames go in at both ends, and what comes out is kept."""

from __future__ import annotations

from typing import Any, cast

from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.registry import BY_REQUEST
from rejoin.proxy.relay import Relay
from rejoin.proxy.service import Proxy
from tests.proxy.wire import codec

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
ANSWER = HeartbeatResponse()


class WrittenTransport:
    """A transport that is never full."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Nothing: frames come when a test says so."""

    resume_reading = close = abort = pause_reading


class BareConnection:
    """A client's connection and the broker's."""

    def __init__(self, proxy: Proxy) -> None:
        self.relay = Relay(proxy, proxy.brokers.first, "connection-1")
        self.to_client, self.to_broker = WrittenTransport(), WrittenTransport()
        self.relay.client.transport = cast(Any, self.to_client)
        self.relay.broker.transport = cast(Any, self.to_broker)
        self._number = 0

    def exchange(self, request: Request, response: Response | None, version: int) -> None:
        """A request that passes, and its answer where there is one."""
        self._number += 1
        form = codec(BY_REQUEST[type(request)].key, version)
        self.relay.client.data_received(form.request_frame(self._number, "c", request))
        if response is not None:
            self.relay.broker.data_received(form.response_frame(self._number, response))
