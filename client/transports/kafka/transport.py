"""Requests over Kafka's own protocol: the transport of one client.

    transport = KafkaTransport(["localhost:9092"])
    response = await transport.send(None, MetadataRequest(topics=None), 13, timeout_ms=5_000, client_id="me")

A node has a connection for data and one as the coordinator: a broker answers in order, so a Fetch or a JoinGroup that
waits would hold up what comes behind it. For the same reason each client has a transport of its own.

Source: Kafka's NetworkClient and ConsumerNetworkClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.kafka.address import BrokerAddress, broker_address
from rejoin.client.transports.kafka.broker import BrokerNode, Security, SubmittedRequest
from rejoin.client.transports.kafka.connection import BrokerConnection
from rejoin.client.transports.nodes import ReconnectBackoff
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.registry import BY_REQUEST, DEFINED, Api

_BOOTSTRAP_ID = -1
_GOODBYE_SECONDS = 1.0
"""How long a broker has for its part in the end of a TLS connection."""


class KafkaTransport:
    """Connections of one client to a cluster; see :class:`rejoin.client.transports.base.Transport`."""

    keeps_order = True
    carries_records = True

    def __init__(
        self,
        servers: Sequence[str],
        *,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        security: Security | None = None,
    ) -> None:
        self.versions: dict[Api, int] = {}
        self.on_disconnect: Callable[[], object] | None = None
        self._for_client = partial(
            KafkaTransport,
            tuple(servers),
            reconnect_backoff_ms=reconnect_backoff_ms,
            reconnect_backoff_max_ms=reconnect_backoff_max_ms,
            security=security,
        )
        self._backoff = ReconnectBackoff.of_ms(reconnect_backoff_ms, reconnect_backoff_max_ms)
        self._security = security or Security()
        self._bootstrap = [
            Endpoint(_BOOTSTRAP_ID - number, *broker_address(server)) for number, server in enumerate(servers)
        ]
        self._known: list[Endpoint] = []
        self._brokers: dict[Endpoint, BrokerNode] = {}
        self._connections: set[BrokerConnection] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def for_client(self) -> KafkaTransport:
        """A transport with connections of its own."""
        return self._for_client()

    async def close(self) -> None:
        for broker in self._brokers.values():
            broker.close("the client is closed")
        self._brokers.clear()
        if connections := list(self._connections):
            # TLS ends with a message of either side, which the loop must still be there for.
            await asyncio.wait([each.ended for each in connections], timeout=_GOODBYE_SECONDS)
            for each in connections:
                each.abort()
        await asyncio.sleep(0)

    def disconnect(self, to: Endpoint) -> None:
        broker = self._brokers.get(to)
        if broker is not None:
            broker.close("the connection was given up")

    def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> asyncio.Future[Response]:
        """See :class:`rejoin.client.transports.base.Transport`; there is no task for each request."""
        loop = asyncio.get_running_loop()
        api = _api_of(request)
        pending = SubmittedRequest(api, request, version, loop.create_future())
        broker = self._broker(to or self._least_loaded(), client_id)
        broker.submit(pending)
        if timeout_ms <= 0:
            pending.fail(TransportError(Failure.TIMEOUT, f"{broker.address}: the answer is not waited for"))
        elif not pending.future.done():
            pending.timer = loop.call_later(timeout_ms / 1_000, self._timed_out, pending, timeout_ms)
            pending.future.add_done_callback(partial(self._done, pending))
        return pending.future

    def _done(self, pending: SubmittedRequest, future: asyncio.Future[Response]) -> None:
        if pending.timer is not None:
            pending.timer.cancel()
        if not future.cancelled() and future.exception() is None:
            response = future.result()
            if isinstance(response, MetadataResponse):
                self._learn(response)

    @staticmethod
    def _timed_out(pending: SubmittedRequest, timeout_ms: int) -> None:
        broker = pending.broker
        assert broker is not None, "a request is with a broker from the start"
        reason = f"no answer within {timeout_ms} ms"
        detail = f"{broker.address}: {reason}"
        if not broker.is_ready and broker.last_problem:
            detail = broker.last_problem
        pending.fail(TransportError(Failure.TIMEOUT, detail))
        broker.time_out(reason)

    # -- nodes

    def _least_loaded(self) -> Endpoint:
        """The node to ask when any will do: one that answers, is connected, and has the fewest requests waiting."""
        # Kafka: leastLoadedNode. Differs: it starts to look at a random node.
        return min([*self._known, *self._bootstrap], key=self._reluctance)

    def _reluctance(self, endpoint: Endpoint) -> tuple[float, bool, bool, int]:
        broker = self._brokers.get(endpoint)
        is_bootstrap = endpoint.node_id < 0
        if broker is None:
            return 0.0, is_bootstrap, True, 0
        return broker.failed_at, is_bootstrap, not broker.is_ready, broker.in_flight

    def _broker(self, endpoint: Endpoint, client_id: str) -> BrokerNode:
        broker = self._brokers.get(endpoint)
        if broker is None:
            broker = self._brokers[endpoint] = BrokerNode(
                address=BrokerAddress(endpoint.host, endpoint.port),
                client_id=client_id,
                security=self._security,
                backoff=self._backoff,
                on_versions=self._take_versions,
                on_lost=self._lost,
                connections=self._connections,
            )
        return broker

    def _lost(self) -> None:
        if self.on_disconnect is not None:
            self.on_disconnect()

    def _learn(self, response: MetadataResponse) -> None:
        if response.brokers:
            self._known = [Endpoint(node.node_id, node.host, node.port) for node in response.brokers]
            self._close_those_that_left()

    def _close_those_that_left(self) -> None:
        """Close connections to addresses that the cluster does not name any more.

        A node with another address now is not at the old one. One that is not named at all may be, so what waits there
        is left to its answer.
        """
        named = {endpoint.node_id: (endpoint.host, endpoint.port) for endpoint in self._known}
        for endpoint, broker in list(self._brokers.items()):
            if endpoint.node_id < 0 or named.get(endpoint.node_id) == (endpoint.host, endpoint.port):
                continue
            if endpoint.node_id in named or not broker.in_flight:
                del self._brokers[endpoint]
                broker.close("the node has another address, or has left the cluster")

    def _take_versions(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        for key, (_, newest) in ranges.items():
            api = DEFINED.get(key)
            if api is not None and newest < self.versions.get(api, api.max_version):
                self.versions[api] = max(newest, api.min_version)


def _api_of(request: Request) -> Api:
    api = BY_REQUEST.get(type(request))
    if api is None:
        api = next(each for each in DEFINED.values() if each.request is type(request))
    return api
