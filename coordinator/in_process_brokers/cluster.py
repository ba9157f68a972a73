"""Several brokers in one process: each with its core, its runtime and its listeners, on shared logs in memory.

They share a controller, which is always there, and the links between them, which a test can cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Self

import structlog

from rejoin.coordinator.control.broker_actions import BrokerActions
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.core.inputs import FollowersFetched, PartitionRegistration, Replicated
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.in_process_brokers.broker import BrokerApp
from rejoin.coordinator.in_process_brokers.controlled_brokers import ControlledBrokers, Feeds
from rejoin.coordinator.in_process_brokers.controller_driver import ControllerDriver
from rejoin.coordinator.in_process_brokers.links import CONTROLLER, Links
from rejoin.coordinator.in_process_brokers.peers import BrokerPeers
from rejoin.coordinator.in_process_brokers.topics import TopicsRegistry
from rejoin.coordinator.leadership.controller import Controller
from rejoin.coordinator.service.clock import SystemClock
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.options import Options, StartFailed, check_control, control_of, security_of
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.coordinator.service.stores import coordinator_partitions
from rejoin.coordinator.storage.replicated import ReplicatedLogs
from rejoin.protocol.brokers.listener_address import HIGHEST_PORT, ListenerAddress, addresses_from, addresses_text
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import LogPartition

MOST_BROKERS: Final = 100


class BrokerCluster:
    """All brokers, started and stopped together. Their ids are 1 to ``brokers``; ports count up from those given."""

    def __init__(self, options: Options, brokers: int) -> None:
        _check(options, brokers)
        self._log: Any = structlog.get_logger("coordinator").bind()
        settings = options.settings
        self._has_socket = options.listen
        self.security = security_of(options)
        self._links = Links()
        self._logs = ReplicatedLogs(self._replicates)
        self._logs.on_fetched = self._on_fetched
        self._logs.on_replicated = self._on_replicated
        self.control: Control | None = None
        if options.control is not None:
            self.control = _control_of(options, self.security)
        clock = self.control.clock if self.control is not None else options.clock
        controller = Controller(settings.broker_session_timeout_ms)
        self._driver = ControllerDriver(
            controller, clock or SystemClock(asyncio.get_running_loop()), self._logs, self._in_contact
        )
        self._topics = TopicsRegistry(self._in_contact, self._driver.on_topics)
        self.apps: list[BrokerApp] = []
        for node_id in range(1, brokers + 1):
            self.apps.append(
                BrokerApp(
                    _options_of(options, node_id), self._logs, self._driver, self._topics, self.security, self.control
                )
            )
        for app in self.apps:
            app.runtime.reach(BrokerPeers(app, self.apps, self._replicates, self._ask_controller))
        if self.control is not None:
            self._attach(self.control)

    def _attach(self, control: Control) -> None:
        control.brokers = BrokerActions(self, self.apps[0].runtime.node.settings.offsets_topic_num_partitions)
        control.clock.let_in = self._let_in
        runtime = ControlledBrokers(self.apps, self._driver)
        feed = Feeds([app.publisher.feed for app in self.apps])
        control.attach(runtime, feed, self._logs, self)

    def _let_in(self, call: Callable[[], None]) -> None:
        """Call once all brokers have handed in all arrivals."""
        left = len(self.apps)

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                call()

        for app in self.apps:
            app.arrivals.then(done)

    # --- where it is

    @property
    def runtime(self) -> Any:
        """The runtime of the first broker."""
        return self.apps[0].runtime

    @property
    def url(self) -> str:
        """The base URL of the first broker, where the control API is as well."""
        return self.apps[0].url

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients connect: every broker; empty without listeners for them."""
        return ",".join(app.bootstrap_servers for app in self.apps if app.bootstrap_servers)

    @property
    def port(self) -> int:
        """The HTTP port of the first broker."""
        return self.apps[0].port

    @property
    def metrics(self) -> Metrics:
        """The metrics of the first broker; each has its own."""
        return self.apps[0].metrics

    @property
    def bound_ports(self) -> dict[str, int]:
        """The ports of the first broker's listeners on this machine."""
        return self.apps[0].bound_ports

    @property
    def endpoints(self) -> tuple[ListenerAddress, ...]:
        """The listeners of Kafka's protocol of all brokers."""
        return tuple(endpoint for app in self.apps for endpoint in app.endpoints)

    def advertise(self, _: ListenerAddress) -> bool:
        """Brokers have the addresses that they were registered with."""
        return False

    # --- starting and stopping

    async def create_initial_topics(self) -> None:
        """Create the initial topics, through the first broker."""
        await self.apps[0].create_initial_topics()

    async def start(self) -> None:
        """Bind all ports, start every broker, then create the initial topics."""
        started: list[BrokerApp] = []
        try:
            for app in self.apps:
                app.bind()
            for app in self.apps:
                await app.start()
                started.append(app)
            self._create_internal_topics()
            if self.control is not None:
                self.control.begin()
            await self.apps[0].create_initial_topics()
        except BaseException:
            for app in self.apps:
                await (app.stop() if app in started else app.abandon())
            self._driver.stop()
            self.security.close()
            raise
        for app in self.apps:
            app.log_listening()

    def _create_internal_topics(self) -> None:
        settings = self.apps[0].runtime.node.settings
        placement = Placement(tuple(self.node_ids()), settings.offsets_topic_replication_factor)
        internal = coordinator_partitions(settings)
        self._driver.create(internal, placement.replicas(0, len(internal)))

    async def reset(self) -> None:
        """Start every broker anew on its ports, with empty logs and without topics."""
        for app in self.apps:
            if app.runtime.is_up:
                await app.kill_broker()
        self._links.heal_all()
        self._logs.clear()
        self._topics.clear()
        self._driver.clear()
        for app in self.apps:
            await app.start_broker()
        self._create_internal_topics()

    async def stop(self) -> None:
        """Answer parked requests, and close everything."""
        if self.control is not None:
            self.control.stop()
        for app in self.apps:
            if app.runtime.is_paused or app.runtime.is_cut_off:
                app.runtime.kill()
        for app in self.apps:
            await app.stop()
        self._driver.stop()
        self.security.close()
        if self.control is not None:
            self.control.clock.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- who reaches whom

    def _app(self, node_id: int) -> BrokerApp:
        return self.apps[node_id - 1]

    def _is_awake(self, node_id: int) -> bool:
        runtime = self._app(node_id).runtime
        return runtime.is_up and not runtime.is_paused

    def _in_contact(self, node_id: int) -> bool:
        return self._is_awake(node_id) and self._links.are_there(node_id, CONTROLLER)

    def _replicates(self, leader: int, follower: int) -> bool:
        return self._is_awake(leader) and self._is_awake(follower) and self._links.are_there(leader, follower)

    def _ask_controller(self, node_id: int, request: Request) -> Response | None:
        return self._driver.answer(request) if self._in_contact(node_id) else None

    def _on_fetched(self, leader: int, fetched: FollowersFetched) -> None:
        self._app(leader).runtime.hand_in(fetched)

    def _on_replicated(self, follower: int, replicated: Replicated) -> None:
        self._app(follower).runtime.hand_in(replicated)

    def _changed(self, node_id: int) -> None:
        """Something has changed between a broker and the others."""
        self._driver.contact_changed(node_id)
        self._logs.catch_up()

    # --- what a test does to them

    def node_ids(self) -> list[int]:
        return list(range(1, len(self.apps) + 1))

    def state(self, node_id: int) -> str:
        runtime = self._app(node_id).runtime
        if not runtime.is_up:
            return "stopped"
        return "paused" if runtime.is_paused else "running"

    def shown(self, node_id: int) -> dict[str, Any]:
        app = self._app(node_id)
        leads = [each for each in self._driver.controller.partitions.values() if each.leader == node_id]
        return {
            "broker": node_id,
            "state": self.state(node_id),
            "is_fenced": node_id not in self._driver.controller.brokers,
            "kafka": app.bootstrap_servers or None,
            "url": app.url if self._has_socket else None,
            "cut_off_from": {
                "clients": app.runtime.is_cut_off,
                "controller": not self._links.are_there(node_id, CONTROLLER),
                "brokers": [each for each in self._links.ends_cut_from(node_id) if each != CONTROLLER],
            },
            "leads": len(leads),
        }

    async def stop_broker(self, node_id: int) -> None:
        await self._app(node_id).stop_broker()
        self._changed(node_id)

    async def kill_broker(self, node_id: int) -> None:
        await self._app(node_id).kill_broker()
        self._changed(node_id)

    async def start_broker(self, node_id: int) -> None:
        await self._app(node_id).start_broker()
        self._logs.catch_up()

    def pause_broker(self, node_id: int) -> None:
        self._app(node_id).runtime.pause()
        self._changed(node_id)

    def resume_broker(self, node_id: int) -> None:
        runtime = self._app(node_id).runtime
        # What the controller has decided comes before what clients have sent.
        runtime.is_paused = False
        self._changed(node_id)
        runtime.resume()

    def cut_off(self, node_id: int, *, clients: bool, controller: bool, brokers: tuple[int, ...]) -> None:
        runtime = self._app(node_id).runtime
        if clients and not runtime.is_cut_off:
            runtime.cut_off()
        for other in brokers:
            self._links.cut(node_id, other)
        if controller:
            self._links.cut(node_id, CONTROLLER)
        self._changed(node_id)

    def heal(self, node_id: int) -> None:
        for other in self._links.ends_cut_from(node_id):
            self._links.heal(node_id, other)
        runtime = self._app(node_id).runtime
        if runtime.is_up:
            self._changed(node_id)
        if runtime.is_cut_off:
            runtime.heal()

    def registrations(self) -> dict[LogPartition, PartitionRegistration]:
        return self._driver.controller.partitions

    def move(self, partition: LogPartition, to: int, *, unclean: bool) -> bool:
        controller = self._driver.controller
        moved = controller.elect_unclean(partition, to) if unclean else controller.move(partition, to)
        self._driver.publish()
        self._logs.catch_up()
        return moved

    def elect_preferred(self) -> list[LogPartition]:
        moved = self._driver.controller.elect_preferred()
        self._driver.publish()
        self._logs.catch_up()
        return moved


def _check(options: Options, brokers: int) -> None:
    """Raise :class:`StartFailed` for options that several brokers in one process cannot have."""
    if not 1 <= brokers <= MOST_BROKERS:
        raise StartFailed(f"--brokers {brokers}: expected 1 to {MOST_BROKERS}")
    check_control(options)
    for name, given in (("--data", options.data), ("--store", options.store)):
        if given is not None:
            raise StartFailed(
                f"--brokers {brokers} with {name}: expected one of the two; brokers in one process keep their logs in "
                "memory, and nodes that share a database run in processes of their own"
            )
    settings = options.settings
    if "broker_id" in settings.model_fields_set:
        raise StartFailed(
            f"--brokers {brokers} with broker.id={settings.broker_id}: expected one of the two; brokers in one process "
            f"have the ids 1 to {brokers}"
        )
    if settings.listeners:
        raise StartFailed(
            f"--brokers {brokers} with listeners: expected --kafka-port, from which the ports of the brokers count up"
        )
    advertised = [("advertised.listeners", each.port) for each in addresses_from(settings.advertised_listeners)]
    for name, port in (("--port", options.port), ("--kafka-port", options.kafka_port or 0), *advertised):
        if port and port + brokers - 1 > HIGHEST_PORT:
            raise StartFailed(f"{name} {port} with --brokers {brokers}: expected so many free ports from there on")


def _options_of(options: Options, node_id: int) -> Options:
    """The options of one broker."""
    advertised = [
        each._replace(port=each.port and each.port + node_id - 1)
        for each in addresses_from(options.settings.advertised_listeners)
    ]
    racks = options.settings.broker_rack.split(",")
    own = {
        "broker_id": node_id,
        "advertised_listeners": addresses_text(advertised),
        "broker_rack": racks[(node_id - 1) % len(racks)].strip(),
    }
    settings = options.settings.model_copy(update=own)
    return replace(
        options,
        settings=settings,
        port=options.port and options.port + node_id - 1,
        kafka_port=options.kafka_port and options.kafka_port + node_id - 1,
        journal=None if options.journal is None else options.journal / f"broker-{node_id}",
    )


def _control_of(options: Options, security: ListenerSecurity) -> Control:
    try:
        return control_of(options, security, is_durable=False, topics_logged=True)
    except ValueError as problem:
        raise StartFailed(str(problem)) from None
