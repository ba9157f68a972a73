"""One broker as a transport sees it: its connection, what waits for it, and the versions that it speaks.

A connection is ready once it is connected, has logged in where there is an authenticator, and has answered ApiVersions.
Requests that come before wait, in order. When it is lost, everything that waits has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import random
from ssl import SSLContext
from time import monotonic
from typing import Final, TypeAlias

from rejoin.client.core.errors import KafkaError, UnsupportedVersionError
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.kafka.address import BrokerAddress
from rejoin.client.transports.kafka.connection import BrokerConnection, UnansweredError, open_connection
from rejoin.client.transports.nodes import NodeState, ReconnectBackoff
from rejoin.client.transports.probing import Spoken, wrong_protocol
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.registry import API_VERSIONS, Api
from rejoin.protocol.wire.errors import SchemaError
from rejoin.release import release

SETUP_TIMEOUT_SECONDS: Final = 10.0
"""How long connecting, logging in and ApiVersions may take. Source: Kafka's socket.connection.setup.timeout.ms."""

_INTRODUCES_ITSELF: Final = 3

Authenticator: TypeAlias = Callable[[BrokerConnection], Awaitable[int]]
"""Logs in on a connection, before anything else is sent, and again before that login ends (KIP-368).

Returns for how many ms the login lasts, 0 for as long as the connection. Raises KafkaError where it is refused.
"""

_SESSION_SHARE: Final = 0.85
_SESSION_JITTER: Final = 0.1
"""Kafka: SaslClientAuthenticator. So much of a login passes before the next, and up to so much more."""


@dataclass(frozen=True, slots=True)
class Security:
    """Security of connections: TLS, and the login."""

    ssl: SSLContext | None = None
    authenticate: Authenticator | None = None


@dataclass(slots=True, eq=False)
class SubmittedRequest:
    """A request whose caller waits."""

    api: Api
    request: Request
    version: int
    future: asyncio.Future[Response]
    timer: asyncio.TimerHandle | None = None
    broker: BrokerNode | None = None

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, eq=False, kw_only=True)
class BrokerNode(NodeState):
    """A broker at one address, connected when it is first asked.

    ``on_versions`` gets what ApiVersions answered; ``on_lost`` is called when the broker has ended the connection.
    """

    address: BrokerAddress
    client_id: str
    security: Security
    backoff: ReconnectBackoff
    on_versions: Callable[[Mapping[int, tuple[int, int]]], None]
    on_lost: Callable[[], None]
    connections: set[BrokerConnection]
    """All that have not ended, of every broker."""
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    last_problem: str = ""
    _login_due_at: float | None = None
    _connection: BrokerConnection | None = None
    _opening: asyncio.Task[None] | None = None
    _waiting: list[SubmittedRequest] = field(default_factory=list)

    @property
    def is_ready(self) -> bool:
        return self._connection is not None

    def submit(self, pending: SubmittedRequest) -> None:
        """Send a request, as soon as the connection is ready. Its future always ends."""
        self.in_flight += 1
        pending.broker = self
        pending.future.add_done_callback(self._ended)
        connection, is_due = self._connection, self._login_due_at is not None and monotonic() >= self._login_due_at
        if connection is not None and self._opening is None and not is_due:
            self._transmit(connection, pending)
            return
        self._waiting.append(pending)
        if self._opening is None:
            steps = self._open() if connection is None else self._log_in_again(connection)
            self._opening = asyncio.get_running_loop().create_task(steps)

    def close(self, reason: str) -> None:
        """End the connection; whatever waits for an answer fails."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.on_lost = None
            connection.close(reason)
        self._fail_waiting(TransportError(Failure.DISCONNECT, f"{self.address}: {reason}"))

    def time_out(self, reason: str) -> None:
        """A request was not answered in time: the broker is left alone for a while."""
        # Kafka: NetworkClient.handleTimedOutRequests. Nothing behind such a request would be answered either.
        if self.is_ready or not self.last_problem:
            self.last_problem = f"{self.address}: {reason}"
        self.fail(self.backoff, self.last_problem)
        self.close(reason)

    def _ended(self, _: asyncio.Future[Response]) -> None:
        self.in_flight -= 1

    def _fail_waiting(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for pending in waiting:
            pending.fail(error)

    # -- opening

    async def _open(self) -> None:
        wait = self.usable_at - monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        try:
            async with asyncio.timeout(SETUP_TIMEOUT_SECONDS):
                connection = await self._set_up()
        except TimeoutError:
            error = TransportError(Failure.DISCONNECT, f"{self.address}: no connection within 10 s")
            self._opening_failed(error, error.detail)
        except TransportError as error:
            self._opening_failed(error, error.detail)
        except KafkaError as error:
            self._opening_failed(error, str(error))
        else:
            self._opening = None
            self._become_ready(connection)

    def _opening_failed(self, error: Exception, detail: str) -> None:
        self._opening = None
        self.last_problem = detail
        self.fail(self.backoff, detail)
        self._fail_waiting(error)

    async def _set_up(self) -> BrokerConnection:
        """A connection that is ready. Raises WrongProtocolError where the address turns out to speak another one."""
        try:
            return await self._introduce()
        except UnansweredError as error:
            asked = Spoken(is_http=False, has_tls=self.security.ssl is not None)
            wrong = None if self.has_answered else await wrong_protocol(self.address, asked)
            if wrong is not None:
                raise wrong from error
            text = f"{error.detail} before it answered ApiVersions; it was asked in {asked} (security.protocol)"
            raise TransportError(error.failure, text) from error

    async def _introduce(self) -> BrokerConnection:
        self.versions = {}
        connection = await open_connection(self.address, self.client_id, self.security.ssl)
        self.connections.add(connection)
        connection.ended.add_done_callback(lambda _: self.connections.discard(connection))
        try:
            await self._log_in(connection)
            self.versions = await ask_versions(connection)
        except TransportError as error:
            raise UnansweredError(error.failure, error.detail) from error
        finally:
            if not self.versions:
                connection.close("the connection could not be set up")
        return connection

    async def _log_in(self, connection: BrokerConnection) -> None:
        self._login_due_at = None
        if self.security.authenticate is not None:
            lifetime_ms = await self.security.authenticate(connection)
            if lifetime_ms > 0:
                share = _SESSION_SHARE + _SESSION_JITTER * random()
                self._login_due_at = monotonic() + lifetime_ms * share / 1_000

    async def _log_in_again(self, connection: BrokerConnection) -> None:
        """Log in on a connection in use. New requests wait; earlier ones are answered."""
        # Kafka: KafkaChannel.maybeBeginClientReauthentication. The next request begins it, and no timer.
        try:
            await self._log_in(connection)
        except (TransportError, KafkaError) as error:
            self._connection = connection.on_lost = None
            connection.close("the login could not be repeated")
            self._opening_failed(error, str(error))
        else:
            self._opening = None
            self._transmit_waiting(connection)

    def _become_ready(self, connection: BrokerConnection) -> None:
        self.succeed()
        self._connection = connection
        connection.on_lost = self._lost
        if not connection.is_open:
            self._lost("the broker closed the connection")
            return
        self.on_versions(self.versions)
        self._transmit_waiting(connection)

    def _transmit_waiting(self, connection: BrokerConnection) -> None:
        waiting, self._waiting = self._waiting, []
        for pending in waiting:
            self._transmit(connection, pending)

    def _lost(self, reason: str) -> None:
        self._connection = None
        self.last_problem = f"{self.address}: {reason}"
        self.fail(self.backoff, self.last_problem)
        self._fail_waiting(TransportError(Failure.DISCONNECT, self.last_problem))
        self.on_lost()

    # -- sending

    def _transmit(self, connection: BrokerConnection, pending: SubmittedRequest) -> None:
        if pending.future.done():
            return
        try:
            version = self._version(pending)
        except (TransportError, KafkaError) as error:
            pending.fail(error)
            return
        try:
            answer = connection.ask(pending.api, pending.request, version)
        except SchemaError as error:
            pending.fail(KafkaError(f"{pending.api.name} v{version} cannot be written: {error}"))
            return
        future = pending.future

        def answered(answer: asyncio.Future[Response]) -> None:
            error = answer.exception()
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                self.succeed()
                future.set_result(answer.result())

        answer.add_done_callback(answered)

    def _version(self, pending: SubmittedRequest) -> int:
        """The version to send: what was asked for, or the broker's newest where the request can be written in it."""
        api, version = pending.api, pending.version
        known = self.versions.get(api.key)
        if known is None or version < known[0]:
            spoken = "no version" if known is None else f"versions {known[0]} to {known[1]}"
            raise UnsupportedVersionError(f"{self.address} speaks {spoken} of {api.name}; expected {version} or older")
        if version <= known[1]:
            return version
        if known[1] < api.min_version:
            text = f"{self.address} speaks {api.name} up to version {known[1]}; expected {api.min_version} at least"
            raise UnsupportedVersionError(text)
        if not pending.request.fits(known[1]):
            # The client makes it again: it knows the versions by now.
            text = f"{self.address}: {api.name} v{version} was not sent, as the broker speaks it up to v{known[1]}"
            raise TransportError(Failure.DISCONNECT, text)
        return known[1]


async def ask_versions(connection: BrokerConnection) -> dict[int, tuple[int, int]]:
    """The versions of each API that a broker speaks, by key. Raises TransportError and UnsupportedVersionError."""
    # Kafka: NetworkClient.handleInitiateApiVersionRequests, handleApiVersionsResponse.
    request = ApiVersionsRequest(client_software_name="rejoin", client_software_version=release())
    version = API_VERSIONS.max_version
    while True:
        sent = request if version >= _INTRODUCES_ITSELF else ApiVersionsRequest()
        response = await connection.ask(API_VERSIONS, sent, version)
        assert isinstance(response, ApiVersionsResponse)
        ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        if response.error_code is ErrorCode.NONE:
            return ranges
        newest = ranges.get(API_VERSIONS.key, (0, 0))[1]
        if response.error_code is not ErrorCode.UNSUPPORTED_VERSION or newest >= version:
            raise UnsupportedVersionError(f"{connection.address}: ApiVersions was answered {response.error_code.name}")
        version = newest
