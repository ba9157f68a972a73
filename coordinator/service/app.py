"""A node in one process: runtime, journal and HTTP, started and stopped together."""

from __future__ import annotations

import asyncio
import shutil
import sys
import uuid
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from rejoin.coordinator.core.inputs import ConnectionLost, Context, FetchWaited
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.step_context import DiskSpace
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.arrivals import Arrivals
from rejoin.coordinator.service.clock import Clock, ClockFile, SystemClock
from rejoin.coordinator.service.driver import Runtime
from rejoin.coordinator.service.kafka.binding import Bound, bind, is_wildcard, listening_socket, reachable, wanted
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.options import (
    Options,
    StartFailed,
    check_control,
    control_of,
    create_topic,
    security_of,
    set_access,
)
from rejoin.coordinator.service.publisher import Publisher
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.coordinator.service.security.loopback import is_loopback
from rejoin.coordinator.service.stores import Store, open_store
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.journal.writer import JournalWriter
from rejoin.protocol.brokers.listener_address import HTTP, ListenerAddress, addresses_from
from rejoin.protocol.message import Request

if TYPE_CHECKING:
    from socket import socket

    from rejoin.coordinator.control.control import Control
    from rejoin.coordinator.service.http.peers import HttpPeers
    from rejoin.coordinator.service.http.server import Service
    from rejoin.coordinator.service.kafka.listener import KafkaListener

_HTTP: Final = "rejoin.coordinator.service.http.assembly"
_HTTP_CONTROL: Final = "rejoin.coordinator.service.http.control"


@dataclass(frozen=True, slots=True)
class CommonParts:
    """Parts that a broker shares with the others of its process."""

    store: Store
    runtime: type[Runtime]
    security: ListenerSecurity
    control: Control | None


class App:
    """A running node. Use it as an async context manager, or call ``start`` and ``stop``."""

    def __init__(self, options: Options, parts: CommonParts | None = None) -> None:
        self._options = options
        self._parts = parts
        self.node_id = options.settings.broker_id
        self._log: Any = structlog.get_logger("coordinator").bind()
        settings = options.settings
        check_control(options)
        self.security = security_of(options) if parts is None else parts.security
        self.metrics = Metrics()
        self.store = store = self._open_store()
        try:
            self.control = self._make_control()
            core = self.new_node()
        except ValueError as problem:
            raise StartFailed(str(problem)) from None
        run_id, node = uuid.uuid4().hex, str(settings.broker_id)
        journal = JournalWriter(options.journal, run_id, "coordinator", node) if options.journal is not None else None
        self.publisher = Publisher(run_id, node, self.metrics, journal)
        given = self.control.clock if self.control is not None else options.clock
        clock = given or SystemClock(asyncio.get_running_loop())
        # The alarms of a driven clock ring at their instants, so it sees to stalls itself.
        self.arrivals = arrivals = Arrivals()
        self.runtime = (Runtime if parts is None else parts.runtime)(
            core,
            clock,
            store.log,
            self.publisher,
            store.leadership,
            store.topics_log,
            arrivals if given is None else None,
            data_logs=store.data_logs,
        )
        store.attach(self.runtime)
        self._peers: HttpPeers | None = None
        if options.store is not None:
            # Imported here: a node alone does without.
            from rejoin.coordinator.service.http.peers import HttpPeers  # noqa: PLC0415

            try:
                self._peers = HttpPeers(self.runtime, self.security)
            except ValueError as problem:
                raise StartFailed(str(problem)) from None
        if self.control is not None and parts is None:
            self.control.clock.let_in = arrivals.then
            self.control.attach(self.runtime, self.publisher.feed, store.log, self)
        self._service: Service | None = None
        self.kafka = _kafka_listener(options, self, arrivals)
        self._clock_file = _clock_file(options, clock)
        self._stopped = False
        self._is_bound = False
        self._listener: socket | None = None
        self._bound: Bound = []
        self.host = options.host
        self.port = options.port
        self.endpoints: tuple[ListenerAddress, ...] = ()
        """The listeners of Kafka's protocol, each with the address that it advertises."""
        self.bound_ports: dict[str, int] = {}
        """The port that each of them has on this machine."""

    def _open_store(self) -> Store:
        options = self._options
        if self._parts is not None:
            return self._parts.store
        return open_store(options.log, options.data, options.store, options.settings, self.metrics)

    def _make_control(self) -> Control | None:
        if self._parts is not None:
            return self._parts.control
        if self._options.control is None:
            return None
        is_durable = self.store.is_durable
        return control_of(self._options, self.security, is_durable=is_durable, topics_logged=is_durable)

    def new_node(self) -> Node:
        """The core with nothing in memory. Raises ``ValueError`` for settings that it cannot use."""
        node, data = self._make_node(), self._options.data
        if data is not None:
            node.measure_disk(lambda: _space_of(data))
        if self.control is None:
            # A recorded node could not be played again.
            node.measure_work(perf_counter)
        return node

    def _make_node(self) -> Node:
        settings, parts = self._options.settings, self._parts
        if self.control is not None:
            return self.control.node if parts is None else self.control.new_node(settings)
        logged = parts is not None or self.store.is_durable
        users = self.security.file_users()
        return Node(settings, lambda: str(uuid.uuid4()), topics_logged=logged, defers_events=True, file_users=users)

    def submit(self, request: Request, context: Context) -> PendingReply:
        """Hand in a request, through the fault rules where there are some."""
        if self.control is None:
            return self.runtime.submit(request, context)
        return self.control.injector.submit_to(self.runtime, request, context)

    @property
    def service(self) -> Service:
        """The HTTP side, put together when it is first asked for: a node without a socket starts without."""
        if self._service is None:
            self._service = import_module(_HTTP).http_service(self, self._options)
        return self._service

    @property
    def url(self) -> str:
        """The base URL of the service."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "https" if self.security.protocol(HTTP).has_tls else "http"
        return f"{scheme}://{host}:{self.port}"

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients connect; empty without a listener for them."""
        return self.endpoints[0].address if self.endpoints else ""

    def advertise(self, address: ListenerAddress) -> bool:
        """Send clients of a listener to another address; false where this node is not the only one."""
        if not self.runtime.advertise(address):
            return False
        self.endpoints = self.runtime.broker.endpoints
        return True

    async def start(self) -> None:
        """Bind, start leading, create the topics, and serve.

        With leases this can take a while: a node that was killed waits for its previous lease to expire. Such a node
        serves the views while it starts.
        """
        options = self._options
        try:
            self.bind()
            listener = self._listener
            if listener is not None and self.runtime.leadership.lease_ms is not None:
                await self.service.listen(listener)
            host = options.advertised_host or reachable(options.host)
            await self.runtime.start(host, self.port, self.endpoints, self._without_host())
            if self.control is not None and self._parts is None:
                self.control.begin()
            if self._clock_file is not None:
                self.runtime.node.saw(self._clock_file.newest())
            if self._parts is None:
                await self.create_initial_topics()
            if self.kafka is not None:
                await self.kafka.listen(self._bound)
            if listener is not None:
                await _load(_HTTP, *([_HTTP_CONTROL] if self.control is not None else []))
                await self.service.begin(listener)
        except BaseException:
            await self.abandon()
            raise
        if self._clock_file is not None:
            self._clock_file.begin()
        if self._parts is None:
            self.log_listening()

    def bind(self) -> None:
        """Take the ports; does nothing the second time. Clients that connect wait until the node has started."""
        options = self._options
        if self._is_bound:
            return
        self._is_bound = True
        if options.listen:
            try:
                self._listener = listening_socket(options.host, options.port)
            except ValueError as problem:
                raise StartFailed(str(problem)) from problem
            self.port = self._listener.getsockname()[1]
        self._prepare_security()
        self._bound = self._bind_kafka()

    async def abandon(self) -> None:
        """Give up what a node has that could not start, or was not started because another could not."""
        if self._stopped:
            return
        self._stopped = True
        if self.kafka is not None:
            await self.kafka.stop()
        for _, each in self._bound:
            each.close()
        if self._service is not None:
            await self._service.abandon()
        if self._listener is not None:
            self._listener.close()
        self.security.close()
        with suppress(StoreProblem):
            await self.runtime.stop()
        await self.store.close()
        self.publisher.close()

    def log_listening(self) -> None:
        """Log where clients reach this node."""
        if self._listener is not None:
            kafka_at = ",".join(each.address for each in self.endpoints) or None
            ca = {"tls_ca": self.security.ca_location} if self.security.ca_location else {}
            self._log.info("listening", url=self.url, kafka=kafka_at, node_id=self.node_id, **ca)

    async def stop(self) -> None:
        """Answer parked requests, close the connections, the log and the journal."""
        if self._stopped:
            return
        self._stopped = True
        self._log.info("shutting_down")
        owned = self.control if self._parts is None else None
        if owned is not None:
            owned.stop()
        if self.kafka is not None:
            await self.kafka.stop_accepting()
        # While the service still answers, so that clients look for another coordinator.
        await self.runtime.drain()
        if self.kafka is not None:
            await self.kafka.stop()
        if self._service is not None:
            await self._service.stop()
        if self._parts is None:
            self.security.close()
        if self._peers is not None:
            await self._peers.close()
        if self._clock_file is not None:
            self._clock_file.end()
        await self.runtime.stop()
        await self.store.close()
        self.publisher.close()
        if owned is not None:
            owned.clock.stop()
        self._log.info("stopped")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _bind_kafka(self, port: int | None = None) -> Bound:
        """Bind the listeners of Kafka's protocol; ``port`` is that of before."""
        if self.kafka is None:
            return []
        options = self._options
        settings = options.settings
        if port is None:
            port = options.kafka_port if options.listen else None
        try:
            bound = bind(
                self._checked(wanted(settings, options.host, port, self.security.default)),
                addresses_from(settings.advertised_listeners),
                options.advertised_host,
                "listeners" if settings.listeners else "--kafka-port",
            )
        except ValueError as problem:
            raise StartFailed(str(problem)) from None
        self.endpoints = tuple(endpoint for endpoint, _ in bound)
        self.bound_ports = {endpoint.listener: each.getsockname()[1] for endpoint, each in bound}
        return bound

    def _without_host(self) -> frozenset[str]:
        """The listeners whose clients are sent to the host that they connected to."""
        options = self._options
        if options.advertised_host:
            return frozenset()
        named = {each.listener for each in addresses_from(options.settings.advertised_listeners) if each.host}
        listeners = wanted(options.settings, options.host, options.kafka_port, self.security.default)
        bound = (ListenerAddress(HTTP, options.host, options.port), *listeners)
        return frozenset(each.listener for each in bound if is_wildcard(each.host) and each.listener not in named)

    def _prepare_security(self) -> None:
        """Read certificates and users before anything is bound."""
        settings, options = self._options.settings, self._options
        if options.listen:
            named = wanted(settings, options.host, options.kafka_port, self.security.default)
            names = [HTTP, *(each.listener for each in named)]
            try:
                if not is_loopback(options.host):
                    self.security.check_exposed(HTTP, options.host or "every address")
                for name in names:
                    self.security.prepare(name)
            except ValueError as problem:
                raise StartFailed(str(problem)) from None

    def _checked(self, listeners: tuple[ListenerAddress, ...]) -> tuple[ListenerAddress, ...]:
        """Listeners of Kafka's protocol, none of which is open to other machines without a login."""
        for each in listeners:
            if not is_loopback(each.host):
                self.security.check_exposed(each.listener, each.host or "every address")
        return listeners

    async def create_initial_topics(self) -> None:
        """Create the topics of the options, with their ACLs and quotas."""
        for topic in self._options.topics:
            await create_topic(self.runtime, topic, may_exist=self.store.is_durable)
        await set_access(self.runtime, self._options)


def _clock_file(options: Options, clock: Clock) -> ClockFile | None:
    """A node under control has the time that it is given, and needs none."""
    return ClockFile(options.data, clock) if options.data is not None and options.control is None else None


async def _load(*modules: str) -> None:
    """Load modules in a thread, so that Kafka clients are answered meanwhile."""
    for name in modules:
        if name not in sys.modules:
            await asyncio.to_thread(import_module, name)


def _kafka_listener(options: Options, app: App, arrivals: Arrivals | None) -> KafkaListener | None:
    if not options.settings.listeners and (options.kafka_port is None or not options.listen):
        return None
    from rejoin.coordinator.service.kafka.listener import KafkaListener  # noqa: PLC0415
    from rejoin.coordinator.service.security.stored_credentials import StoredCredentials  # noqa: PLC0415

    def end_wait(pending: PendingReply) -> None:
        # Under control what a node is handed in is recorded, and goes by the clock of the test.
        if app.control is None:
            app.runtime.hand_in(FetchWaited(pending))

    def connection_lost(connection: str) -> None:
        app.runtime.hand_in(ConnectionLost(connection))

    def stored_credentials() -> StoredCredentials:
        node = app.runtime.node
        return StoredCredentials(node.scram_credentials, node.delegation_tokens, app.runtime.clock.now)

    given = (options.settings, app.metrics, arrivals, app.runtime.submit if app.control is None else app.submit)
    return KafkaListener(
        *given,
        app.security,
        end_wait=end_wait,
        connection_lost=connection_lost,
        stored_credentials=stored_credentials,
        settings_now=lambda: app.runtime.node.effective_settings,
        client_quotas=lambda: app.runtime.node.client_quotas,
        is_recorded=bool(app.control),
    )


def _space_of(folder: Path) -> DiskSpace:
    """The sizes of the disk that a folder is on."""
    usage = shutil.disk_usage(folder)
    return DiskSpace(usage.total, usage.free)
