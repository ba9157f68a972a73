"""The listeners of Kafka's protocol of one node: they bind, keep the connections within limits, and stop.

Kafka: SocketServer.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any, Final

import structlog

from rejoin.coordinator.config import Settings
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.arrivals import Arrivals, close_servers
from rejoin.coordinator.service.defaults import BACKLOG
from rejoin.coordinator.service.driver import Submit
from rejoin.coordinator.service.kafka.connection import KafkaConnection
from rejoin.coordinator.service.kafka.connection_limits import ConnectionFate, ConnectionLimits, Limits
from rejoin.coordinator.service.kafka.outgoing import UnsentBytes
from rejoin.coordinator.service.kafka.requests import NotServed, RequestReader
from rejoin.coordinator.service.logs import LoggedReasons, client_name
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.coordinator.service.security.stored_credentials import StoredCredentials
from rejoin.protocol.brokers.listener_address import ListenerAddress
from rejoin.protocol.brokers.security_protocol import SecurityProtocol
from rejoin.protocol.printable import printable
from rejoin.protocol.wire.errors import SchemaError

_LOOKS: Final = 50
"""How often at most idle connections are looked for, within the time that they have."""
_MOST_WAITING: Final = 1_000
"""How many connections may wait until there is room."""
_ANSWER_READ_SECONDS: Final = 0.1
_HANDSHAKE_SECONDS: Final = 60.0
_TLS_END_SECONDS: Final = 0.5
_TLS_END_LOOKS: Final = 50
_HTTP: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC")
_TLS_HANDSHAKE: Final = b"\x16\x03"
_NUMBERS: Final = re.compile(r"-?\d+")
_METRIC: Final = "rejoin_refused_requests_total"


class KafkaListener:
    """The sockets of one node's Kafka listeners, and their connections."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        arrivals: Arrivals | None,
        submit: Submit,
        security: ListenerSecurity,
        *,
        end_wait: Callable[[PendingReply], None],
        connection_lost: Callable[[str], None],
        stored_credentials: Callable[[], StoredCredentials],
        settings_now: Callable[[], Settings],
        client_quotas: Callable[[], Limits],
        is_recorded: bool = False,
    ) -> None:
        """``end_wait`` answers a Fetch that waits. ``connection_lost`` is called with the identity of a connection
        that ends after a ShareFetch, or a request about telemetry, came by it. ``stored_credentials``,
        ``settings_now`` and ``client_quotas`` are those of the node now.
        ``is_recorded``: requests are kept by their identity, so each is an object of its own.
        """
        self.end_wait = end_wait
        self.connection_lost = connection_lost
        self.stored_credentials = stored_credentials
        self._identities = count(1)
        self.loop = asyncio.get_running_loop()
        self.submit = submit
        self.security = security
        self.is_recorded = is_recorded
        self.max_request_bytes = settings.socket_request_max_bytes
        self.max_login_bytes = min(settings.sasl_server_max_receive_size, settings.socket_request_max_bytes)
        self.max_login_ms = settings.connections_max_reauth_ms
        self._failed_login_seconds = settings.connection_failed_authentication_delay_ms / 1_000
        self.requests = RequestReader(metrics, settings.emulator_as_kafka)
        self.connections: set[KafkaConnection] = set()
        self.unsent: UnsentBytes[KafkaConnection] = UnsentBytes(self._give_up_unread)
        self._arrivals = arrivals or Arrivals()
        self._metrics = metrics
        self._limits = ConnectionLimits(settings_now, client_quotas)
        self._waiting: dict[KafkaConnection, None] = {}
        """Connections that wait until there is room, in the order in which they came."""
        self._throttled: set[KafkaConnection] = set()
        """Connections of addresses above their rate, which are closed after a while."""
        self._room: asyncio.TimerHandle | None = None
        idle_ms = settings.connections_max_idle_ms
        # Kafka: Selector.IdleExpiryManager, which a negative time turns off.
        self._idle_seconds = max(idle_ms, 1) / 1_000 if idle_ms >= 0 else math.inf
        self._refused: set[asyncio.Transport] = set()
        """Connections whose login has failed; they are closed after a while."""
        self._servers: list[asyncio.Server] = []
        self._look: asyncio.TimerHandle | None = None
        self._deliveries: set[asyncio.Task[None]] = set()
        self._logged = LoggedReasons(_METRIC)
        self._log: Any = structlog.get_logger("coordinator").bind()

    async def listen(self, bound: Sequence[tuple[ListenerAddress, socket.socket]]) -> None:
        """Accept connections on bound sockets, each under the name of its listener."""
        for endpoint, sock in bound:
            name = endpoint.listener
            tls = self.security.tls(name)
            # Kafka: a connection that is still in its handshake has no more time than an idle one.
            patience = min(_HANDSHAKE_SECONDS, self._idle_seconds) if tls is not None else None
            server = await self.loop.create_server(
                self._maker(name), sock=sock, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=patience
            )
            self._servers.append(server)

    def _maker(self, name: str) -> Any:
        protocol = self.security.protocol(name)
        if protocol is SecurityProtocol.PLAINTEXT:
            return lambda: KafkaConnection(self, name)
        from rejoin.coordinator.service.kafka.secure_connection import SaslConnection, TlsConnection  # noqa: PLC0415

        if protocol.has_sasl:
            logins = self.security.logins()
            return lambda: SaslConnection(self, name, logins)
        principals = self.security.principals()
        return lambda: TlsConnection(self, name, principals)

    async def stop_accepting(self) -> None:
        """Take no more connections."""
        servers, self._servers = self._servers, []
        await close_servers(servers)

    async def stop(self) -> None:
        """Close every connection. Answers that are ready are still written."""
        await self.stop_accepting()
        if self._look is not None:
            self._look.cancel()
            self._look = None
        open_now = [each.transport for each in self.connections if each.transport is not None]
        waiting, self._waiting = self._waiting, {}
        for connection in (*self.connections, *waiting, *self._throttled):
            connection.close()
        if self._room is not None:
            self._room.cancel()
            self._room = None
        for transport in list(self._refused):
            open_now.append(transport)
            self._close_refused(transport)
        await asyncio.sleep(0)
        if self.security.has_tls:
            await self._end_tls(open_now)

    async def _end_tls(self, transports: list[asyncio.Transport]) -> None:
        """Wait a moment for clients to end TLS as well; those that do not are cut off."""
        for _ in range(_TLS_END_LOOKS):
            if not self.connections:
                break
            await asyncio.sleep(_TLS_END_SECONDS / _TLS_END_LOOKS)
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)

    async def abort(self) -> None:
        """Reset every connection, as when a process ends."""
        await self.stop_accepting()
        connections = list(self.connections)
        for connection in connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self.stop()

    # --- connections

    def new_identity(self) -> str:
        """A name for a connection, unlike those of all others."""
        return f"connection-{next(self._identities)}"

    def opened(self, connection: KafkaConnection) -> None:
        """A connection is there: it is served, waits until there is room, or ends."""
        self._arrivals.connections += 1
        # Kafka: one that waits is in the backlog of the socket. Differs: there are 50 of them, and more cannot connect.
        if len(self._waiting) >= _MOST_WAITING:
            self._refuse(connection, "max.connections: too many others wait already")
            connection.close()
            return
        connection.hold()
        self._waiting[connection] = None
        if len(self._waiting) == 1:
            self._admit()

    def _admit(self) -> None:
        """Decide about the connections that wait, in their order."""
        if self._room is not None:
            self._room.cancel()
            self._room = None
        while self._waiting:
            connection = next(iter(self._waiting))
            fate, seconds, reason = self._limits.admit(connection.client_host, self.loop.time())
            if fate is ConnectionFate.WAITS:
                if seconds:
                    self._room = self.loop.call_later(seconds, self._admit)
                return
            del self._waiting[connection]
            match fate:
                case ConnectionFate.ACCEPTED:
                    self.connections.add(connection)
                    connection.release()
                case ConnectionFate.CLOSED:
                    self._refuse(connection, reason)
                    connection.close()
                case ConnectionFate.CLOSED_LATER:
                    self._refuse(connection, reason)
                    self._throttled.add(connection)
                    self.loop.call_later(seconds, connection.close)
        if self._look is None and self.connections and self._idle_seconds < math.inf:
            self._look = self.loop.call_later(self._idle_seconds, self._look_again)

    def closed(self, connection: KafkaConnection) -> None:
        """A connection has ended."""
        self._waiting.pop(connection, None)
        self._throttled.discard(connection)
        if connection in self.connections:
            self.connections.discard(connection)
            self._limits.closed(connection.client_host)
        self.unsent.hold(connection, 0)
        if self._waiting:
            self._admit()

    def _look_again(self) -> None:
        """Close connections that were idle for too long, oldest first. Kafka: connections.max.idle.ms.

        Sending and receiving count, waiting for an answer does not.
        """
        now = self.loop.time()
        oldest = now - self._idle_seconds
        idle = [each for each in self.connections if each.last_used <= oldest]
        for connection in sorted(idle, key=lambda each: each.last_used):
            connection.close_idle()
        # Without connections there is nothing to look for; the next one starts it again.
        self._look = None
        used = [each.last_used for each in self.connections if each.last_used > oldest]
        if used:
            due = min(used) + self._idle_seconds - now
            self._look = self.loop.call_later(max(due, self._idle_seconds / _LOOKS), self._look_again)

    def deliver(self, delivery: Coroutine[None, None, None]) -> None:
        """Run the delivery of an answer by a fault."""
        task = self.loop.create_task(delivery)
        self._deliveries.add(task)
        task.add_done_callback(self._deliveries.discard)

    def _give_up_unread(self, connection: KafkaConnection, size: int) -> None:
        """End the connection that holds most of the answers that are not read."""
        reason = f"the client does not read: {size:,} bytes of answers wait for it, the most of all connections"
        self._refuse(connection, reason, kind="the client does not read")
        # Not from within: it may be writing.
        self.loop.call_soon(connection.give_up)

    # --- what is refused

    def refuse(self, connection: KafkaConnection, problem: NotServed) -> None:
        """A request that cannot be served ends its connection; say so once for each client, API and reason.

        Where not even the API is known, the bytes may be anything, and so may the numbers in them.
        """
        kind = problem.kind if problem.api else _NUMBERS.sub("", problem.reason)
        asked = {} if problem.offered is None else {"version": problem.version, "offered": problem.offered}
        self._refuse(connection, problem.reason, problem.api, kind, **asked)

    def refuse_login(self, connection: KafkaConnection, reason: str) -> None:
        """A client that is not let in; its connection ends."""
        self._refuse(connection, reason)

    def end_refused(self, transport: asyncio.Transport, answer: bytes) -> None:
        """Answer a failed login after a while, and close. Kafka: connection.failed.authentication.delay.ms."""
        self._refused.add(transport)
        self.loop.call_later(self._failed_login_seconds, self._answer_refused, transport, answer)

    def _answer_refused(self, transport: asyncio.Transport, answer: bytes) -> None:
        if answer and not transport.is_closing():
            transport.write(answer)
            # Differs: Kafka closes at once, which some clients notice before they have read the answer.
            self.loop.call_later(_ANSWER_READ_SECONDS, self._close_refused, transport)
        else:
            self._close_refused(transport)

    def _close_refused(self, transport: asyncio.Transport) -> None:
        self._refused.discard(transport)
        # The end of TLS is an exchange, so it would not be reached without reading.
        transport.resume_reading()
        transport.close()

    def log_unwritable(self, api: str, version: int, problem: SchemaError) -> None:
        """A response that its version cannot carry. Its connection is closed; the others go on."""
        self._log.error("response_not_written", api=api, version=version, problem=str(problem))

    def refuse_size(self, connection: KafkaConnection, size: int, begins: bytes) -> None:
        """The first bytes are not the length of a request, or of one that is too large."""
        if begins.startswith(_HTTP):
            reason = "an HTTP request; this port speaks Kafka's protocol, and HTTP has another port"
        elif begins.startswith(_TLS_HANDSHAKE):
            reason = "a TLS handshake; this port has no TLS (security.protocol=PLAINTEXT)"
        elif size < 0:
            reason = f"a request of {size} bytes; expected a length of 0 or more"
        else:
            most = connection.max_request_bytes
            limit = "socket.request.max.bytes" if most == self.max_request_bytes else "the most before a login"
            reason = f"a request of {size} bytes; {limit} is {most}"
        self._refuse(connection, reason, kind=_NUMBERS.sub("", reason))

    def _refuse(self, connection: KafkaConnection, reason: str, api: str = "", kind: str = "", **asked: Any) -> None:
        self._metrics.refused[api or "none"] += 1
        client = connection.software or connection.client_host
        name = client_name(api, client, connection.client_id)
        logged = self._logged.to_log(name, reason, kind, connection.client_host)
        if logged is not None:
            self._log.warning(
                "kafka_request_refused",
                client=printable(client),
                client_id=printable(connection.client_id) or None,
                address=printable(connection.client_host),
                api=api or None,
                **asked,
                reason=printable(logged),
            )
