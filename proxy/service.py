"""The proxy as a service: its listeners, its connections, and what it counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import structlog

from rejoin.client.transports.kafka.address import BrokerAddress
from rejoin.client.transports.kafka.broker import Security
from rejoin.client.transports.kafka.connection import open_connection
from rejoin.coordinator.service.defaults import BACKLOG
from rejoin.coordinator.service.logs import LoggedReasons, client_name
from rejoin.protocol.printable import printable
from rejoin.proxy.broker_table import BrokerRoute, BrokerTable
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.listeners.cluster_brokers import find_brokers
from rejoin.proxy.plans import Plan, Plans
from rejoin.proxy.relay import Relay

if TYPE_CHECKING:
    from rejoin.proxy.answers import BrokerSide
    from rejoin.proxy.listeners.client_login import ClientLogin, ClientProtection

CONNECT_SECONDS: Final = 10.0
"""How long a broker has to accept a connection, handshake and login included."""
FIRST_PAUSE_SECONDS: Final = 0.02
LONGEST_PAUSE_SECONDS: Final = 1.0
"""How long a client is held whose broker cannot be reached, before its connection is closed."""
_HANDSHAKE_SECONDS: Final = 10.0
_LOGIN_SHARE: Final = 0.85
"""How much of a login at a broker passes before its connection ends. Source: Kafka's SaslClientAuthenticator."""


class Watch(Protocol):
    """Looks at exchanges that are over."""

    watched: frozenset[int]
    """The keys of the APIs that it wants to see."""

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Take an exchange whose answer, where it has one, is with the client."""

    def connection_ended(self, relay: Relay) -> None:
        """Take notice of a connection's end."""


class Rules(Protocol):
    """Rules that choose requests, and decide what becomes of them."""

    def may_take(self, exchange: ProxiedRequest) -> bool:
        """Whether a rule might choose this request, of which only the header is known."""

    def takes(self, relay: Relay, exchange: ProxiedRequest, frame: bytes) -> bool:
        """Whether a rule has taken the request; it is then the rule that forwards or answers it."""

    def deliver(self, relay: Relay, exchange: ProxiedRequest, frame: bytes) -> None:
        """Deliver the broker's answer as the rule wants that has marked the exchange."""


class NothingWatched:
    """A watch that looks at nothing."""

    watched: frozenset[int] = frozenset()

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Nothing."""

    def connection_ended(self, relay: Relay) -> None:
        """Nothing."""


@dataclass(slots=True)
class Counters:
    """Counts of all that passed through, since the start."""

    connections: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    """Requests by API."""
    unknown: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Requests of an API or version whose form is not known here, by both. They pass."""
    not_looked_at: int = 0
    """Requests and answers that were too large, or not readable, for the watch."""
    refused: int = 0
    """Connections that ended since their bytes could not be passed on."""
    unreachable: int = 0
    """Connections that ended since the broker behind them did not accept one."""
    brokers_refused: int = 0
    """Answers that named brokers for which there can be no listener: too many, or at no address."""
    handshakes_failed: int = 0
    """TLS handshakes with clients that failed."""
    logins_refused: int = 0
    """Logins of clients that the proxy itself refused."""

    def totals(self) -> dict[str, Any]:
        """Every count by its name; requests whose form is not known by ``KEY:VERSION``."""
        return {
            "connections": self.connections,
            "requests": self.requests.total(),
            "unknown": {f"{key}:{version}": count for (key, version), count in sorted(self.unknown.items())},
            "not_looked_at": self.not_looked_at,
            "refused": self.refused,
            "unreachable": self.unreachable,
        }


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Where the proxy stands. ``host`` and ``port`` are its own; ``advertised_host`` is what clients connect to."""

    bootstrap: tuple[tuple[str, int], ...]
    host: str = "127.0.0.1"
    port: int = 0
    advertised_host: str = ""
    upstream: Security = field(default_factory=Security)
    clients: ClientProtection | None = None
    """TLS and logins of the proxy's own listeners; none: connections in the clear, and logins at the brokers."""
    release: str = ""
    """The release of Kafka whose versions are the newest that clients are offered."""
    finds_brokers: bool = False
    """Whether the proxy asks for the brokers itself when it starts, and does not wait for a client to ask."""
    drain_seconds: float = 10.0
    """How long requests in flight have to be answered when the proxy stops."""


_MOST_UNKNOWN: Final = 200


def system_ms() -> float:
    """The system's clock."""
    return time() * 1_000


class Proxy:
    """Listens for clients of one cluster. ``start`` and ``stop`` belong to the running loop."""

    def __init__(
        self,
        options: ProxyOptions,
        watch: Watch | None = None,
        rules: Rules | None = None,
        now_ms: Callable[[], float] = system_ms,
    ) -> None:
        """``now_ms``: the clock by which the instants of exchanges are, in ms since 1970."""
        self.options = options
        self.now_ms = now_ms
        self.release = options.release
        self.watch: Watch = watch if watch is not None else NothingWatched()
        self.rules = rules
        self.plans = Plans(self.watch.watched)
        self.counters = Counters()
        self.relays: set[Relay] = set()
        self.upstream: set[BrokerSide] = set()
        """Connections to brokers; with TLS they may end later than their clients'."""
        self.brokers: BrokerTable
        self._servers: dict[int, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._names = 0
        self._stopping = False
        self._no_relay = asyncio.Event()
        """Set while there is no connection."""
        self._no_relay.set()
        self._logged = LoggedReasons("rejoin_proxy_refused_total")
        self.log: Any = structlog.get_logger("proxy").bind()

    # --- life

    async def start(self) -> None:
        """Listen. Raises ``ValueError`` where the port cannot be had."""
        options = self.options
        advertised = options.advertised_host or ("127.0.0.1" if options.host in ("", "0.0.0.0") else options.host)
        self._loop = asyncio.get_running_loop()
        if options.clients is not None:
            options.clients.listeners.on_failed_handshake = self._handshake_failed
        self.brokers = BrokerTable(options.host, options.port, advertised, list(options.bootstrap), self._listen_soon)
        await self._listen(self.brokers.first)
        if options.finds_brokers:
            self._begin(find_brokers(self))

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.brokers.first.local_port

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the proxy."""
        host, _ = self.brokers_address()
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def brokers_address(self) -> tuple[str, int]:
        """The host that is advertised, and the first listener's port."""
        return self.brokers.advertised_host, self.port

    async def stop(self, *, drain: bool = False) -> None:
        """Close the listeners and the connections; with ``drain`` once what was asked is answered."""
        self._stopping = True
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        if drain:
            for relay in list(self.relays):
                relay.drain()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.options.drain_seconds):
                    await self._no_relay.wait()
        for relay in list(self.relays):
            relay.end()
        await asyncio.sleep(0)
        self._abort_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # A connection that came about meanwhile has its transport by now, and a transport ends in the loop's next turn.
        self._abort_all()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.brokers.close()

    def _abort_all(self) -> None:
        for relay in list(self.relays):
            relay.abort()
        for side in list(self.upstream):
            side.abort()

    def _listen_soon(self, route: BrokerRoute) -> None:
        self._begin(self._listen(route))

    def call_later(self, seconds: float, call: Callable[[], object]) -> asyncio.TimerHandle:
        """Call once, after so many seconds of the loop."""
        return self._loop.call_later(seconds, call)

    def _begin(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, route: BrokerRoute) -> None:
        if self._stopping:
            return
        tls = None if self.options.clients is None else self.options.clients.tls
        self._servers[route.node_id] = await self._loop.create_server(
            lambda: self._relay(route).client,
            sock=route.sock,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls is not None else None,
        )
        self.log.info("proxy_listens", broker=route.node_id if route.node_id >= 0 else None, port=route.local_port)

    # --- connections

    def _relay(self, route: BrokerRoute) -> Relay:
        self._names += 1
        return Relay(self, route, f"connection-{self._names}")

    def new_login(self, relay: Relay) -> ClientLogin | None:
        """The login that a client has to do at the proxy itself; none where the brokers ask for it."""
        clients = self.options.clients
        if clients is None or not clients.has_logins:
            return None
        from rejoin.proxy.listeners.client_login import ClientLogin  # noqa: PLC0415 (most proxies pass logins on)

        return ClientLogin(relay, clients)

    def loop_time(self) -> float:
        """Seconds of the event loop."""
        return self._loop.time()

    def opened(self, relay: Relay) -> None:
        """A client has connected: connect to the broker behind."""
        self.counters.connections += 1
        self.relays.add(relay)
        self._no_relay.clear()
        relay.is_connecting = True
        self._begin(self._connect_then_part(relay))

    def closed(self, relay: Relay) -> None:
        """A client's connection has ended."""
        self.relays.discard(relay)
        if relay.login is not None:
            relay.login.end()
        if not self.relays:
            self._no_relay.set()
        self.watch.connection_ended(relay)

    async def _connect_then_part(self, relay: Relay) -> None:
        try:
            await self._connect(relay)
        finally:
            relay.is_connecting = False
            relay.part()

    async def _connect(self, relay: Relay) -> None:
        route = relay.route
        host, port = route.address()
        upstream = self.options.upstream
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if upstream.authenticate is not None:
                    found = await self._logged_in(BrokerAddress(host, port))
                    if found is None:
                        raise ConnectionError("the connection ended with the login")
                    transport, lifetime_ms = found
                    if lifetime_ms:
                        self.call_later(lifetime_ms / 1_000 * _LOGIN_SHARE, lambda: self._end_login(relay))
                    transport.set_protocol(relay.broker)
                    relay.broker.connection_made(transport)
                else:
                    await self._loop.create_connection(
                        lambda: relay.broker,
                        host,
                        port,
                        ssl=upstream.ssl,
                        server_hostname=host if upstream.ssl is not None else None,
                    )
        except Exception as problem:
            route.tries += 1
            route.failures += 1
            self.counters.unreachable += 1
            self._warn("proxy_broker_unreachable", relay, f"{host}:{port}: {str(problem) or type(problem).__name__}")
            # Clients wait longer and longer for a broker that refuses them, but not for one that accepts and closes.
            await asyncio.sleep(min(FIRST_PAUSE_SECONDS * 2 ** min(route.failures, 10), LONGEST_PAUSE_SECONDS))
            relay.end()
            return
        route.failures = 0
        if relay.client.transport is None:
            relay.end()
            return
        relay.client.go_on()

    def _end_login(self, relay: Relay) -> None:
        """End a connection whose login at the broker is nearly over, between two requests; the client comes again."""
        if relay not in self.relays:
            return
        if relay.client.splitter.has_part:
            self.call_later(1.0, lambda: self._end_login(relay))
        else:
            relay.drain()

    async def _logged_in(self, address: BrokerAddress) -> tuple[asyncio.Transport, int] | None:
        """A connection with its login, and how many ms that lasts; 0: as long as the connection."""
        upstream = self.options.upstream
        connection = await open_connection(address, "rejoin-proxy", upstream.ssl)
        assert upstream.authenticate is not None, "only called with a login"
        try:
            lifetime_ms = await upstream.authenticate(connection)
        except BaseException:
            connection.close("the login was refused")
            raise
        transport = connection.hand_over()
        return None if transport is None else (cast("asyncio.Transport", transport), lifetime_ms)

    # --- counted and logged

    def count(self, plan: Plan) -> None:
        """A request of this version has come."""
        counters = self.counters
        counters.requests[plan.name] += 1
        if plan.codec is None:
            asked = (plan.key, plan.version)
            if asked in counters.unknown or len(counters.unknown) < _MOST_UNKNOWN:
                counters.unknown[asked] += 1

    def refused(self, relay: Relay, reason: str) -> None:
        """A connection ends since what came on it cannot be passed on."""
        self.counters.refused += 1
        self._warn("proxy_connection_refused", relay, reason)

    def login_refused(self, relay: Relay, reason: str) -> None:
        """The proxy has refused a client's login."""
        self.counters.logins_refused += 1
        self._warn("proxy_login_refused", relay, reason)

    def _handshake_failed(self, reason: str) -> None:
        self.counters.handshakes_failed += 1
        logged = self._logged.to_log("tls_handshake_failed", reason, "", "")
        if logged is not None:
            self.log.warning("tls_handshake_failed", reason=printable(logged))

    def _warn(self, event: str, relay: Relay, reason: str) -> None:
        logged = self._logged.to_log(client_name(event, relay.client_host), reason, "", relay.client_host)
        if logged is not None:
            self.log.warning(event, address=printable(relay.client_host), reason=printable(logged))
