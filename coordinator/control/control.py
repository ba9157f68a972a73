"""All of the control, put together around one node. The HTTP routes and the Python kit are made on it."""

from __future__ import annotations

import uuid
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.access.actions import AccessActions
from rejoin.coordinator.control.access.principals import GivenPrincipals
from rejoin.coordinator.control.admin_actions import AdminActions
from rejoin.coordinator.control.advertising import AdvertisedAddress
from rejoin.coordinator.control.broker_actions import BrokerActions
from rejoin.coordinator.control.clock_driver import ClockDriver
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import NotPossible, unknown
from rejoin.coordinator.control.evidence import Evidence
from rejoin.coordinator.control.fault_injection.fault_actions import FaultActions
from rejoin.coordinator.control.fault_injection.fault_injector import FaultInjector
from rejoin.coordinator.control.node_interface import ControlledRuntime, ControlledService, EventFeed
from rejoin.coordinator.control.share_groups import ShareGroupActions
from rejoin.coordinator.control.streams_groups import StreamsGroupActions
from rejoin.coordinator.control.topic_records import NewRecords, TopicRecords
from rejoin.coordinator.control.waiting import GroupWaiter
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS
from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.storage.base import OffsetsLog
from rejoin.protocol.brokers.listener_address import ListenerAddress
from rejoin.protocol.message import Request
from rejoin.transcript.steps import RecordedNode, StepRecorder


class Control(FaultActions):
    """Made before the runtime, whose node and clock it provides; complete once it is attached to it."""

    access: AccessActions
    groups: GroupWaiter
    clock_driver: ClockDriver
    actions: AdminActions
    injector: FaultInjector
    evidence: Evidence
    records: TopicRecords
    share_groups: ShareGroupActions
    streams_groups: StreamsGroupActions

    def __init__(
        self,
        settings: Settings,
        clock: VirtualClock,
        *,
        topics_logged: bool = False,
        is_durable: bool = False,
        file_users: FileUsers = NO_USERS,
    ) -> None:
        """``is_durable``: what is kept over restarts must not meet its own ids again."""
        super().__init__()
        self._file_users = file_users
        self._settings = settings
        self._topics_logged = topics_logged
        self._is_durable = is_durable
        self.clock = clock
        self.recorder = StepRecorder()
        self._principals = GivenPrincipals()
        self._ids = 0
        self.brokers: BrokerActions | None = None
        """Actions on each of several brokers; none with one."""
        self.node = self.new_node(settings)

    def attach(
        self,
        runtime: ControlledRuntime,
        feed: EventFeed,
        log: OffsetsLog,
        service: ControlledService,
    ) -> None:
        """Stand around a runtime."""
        self._runtime = runtime
        self._service = service
        self.injector = FaultInjector(self.clock, self.faults, self.recorder, self._principals)
        self.clock_driver = ClockDriver(self.clock, runtime, self.injector, self.recorder)
        self.groups = GroupWaiter(runtime, self.clock, feed)
        self.actions = AdminActions(
            runtime,
            self.clock,
            log,
            self.injector,
            self.faults,
            self._principals,
            self.recorder,
            lambda: self.new_node(self._settings),
            service.create_initial_topics,
            None if self.brokers is None else self.brokers.reset,
        )
        self.access = AccessActions(self._principals, self.clock, self.actions.ask)
        self.records = TopicRecords(runtime, self.clock)
        self.share_groups = ShareGroupActions(runtime, self.clock, self.groups)
        self.streams_groups = StreamsGroupActions(runtime, self.clock, self.groups, self.actions.ask)
        self.evidence = Evidence(self._settings, runtime, self.recorder, is_replayable=self.brokers is None)

    def begin(self) -> None:
        """The node leads its partitions: what happens from here on is evidence."""
        self.recorder.begin(self.clock.now())

    def submit(self, request: Request, context: Context, broker: int | None = None) -> PendingReply:
        """Hand in a request, through the fault rules: at a broker, or else at the one that serves it."""
        if broker is None:
            target = self._runtime.target_of(request, context.api_version)
        else:
            target = self._runtime.broker_named(broker)
        return self.injector.submit_to(target, request, context)

    def group_ids(self) -> list[str]:
        """Every group."""
        return self._runtime.node.group_ids()

    def describe_group(self, group_id: str) -> GroupView | None:
        """A group as its coordinator sees it, or none."""
        return self._runtime.node.describe_group(group_id)

    @property
    def broker_actions(self) -> BrokerActions:
        """Actions on each of several brokers. Raises :class:`NotPossible` where there is only one."""
        if self.brokers is None:
            detail = "there is one broker only; start several: rejoin serve --brokers 3, or brokers=3 in a test"
            raise NotPossible("one-broker", detail)
        return self.brokers

    def stop(self) -> None:
        """Let go of everything that is held."""
        self.injector.stop()
        self.faults.clear()

    def node_ids(self) -> list[int]:
        """The brokers of this process."""
        return [self._runtime.broker.node_id] if self.brokers is None else self.brokers.node_ids()

    async def produce(self, produced: NewRecords) -> dict[str, Any]:
        """Write records to a topic, unless only the coordinator writes to it."""
        if produced.topic in INTERNAL_TOPICS:
            detail = f"{produced.topic!r} is the coordinator's own and cannot be written; expected another topic"
            raise NotPossible("internal-topic", detail)
        return await self.records.produce(produced)

    def status(self) -> dict[str, Any]:
        """Where everything stands."""
        faults = len(self.faults.all())
        servers = self._service.bootstrap_servers or None
        return {**self.clock_driver.shown(), "mark": self.recorder.mark, "faults": faults, "bootstrap_servers": servers}

    def advertise(self, wanted: AdvertisedAddress) -> dict[str, Any]:
        """Send clients of a listener to another address. Those that are connected learn of it from new Metadata."""
        listeners = [each.listener for each in self._service.endpoints]
        name = wanted.listener or next(iter(listeners), "")
        if name not in listeners:
            raise unknown("listener", name, listeners)
        self.clock.catch_up()
        if not self._service.advertise(ListenerAddress(name, wanted.host, wanted.port)):
            detail = "several nodes have the addresses of their start; name them in advertised.listeners"
            raise NotPossible("not-alone", detail)
        return {
            "bootstrap_servers": self._service.bootstrap_servers,
            "listeners": {each.listener: each.address for each in self._service.endpoints},
        }

    def new_node(self, settings: Settings) -> RecordedNode:
        """A node whose steps are recorded."""
        return RecordedNode(
            settings,
            self._new_id,
            self.recorder,
            topics_logged=self._topics_logged,
            file_users=self._file_users,
        )

    def _new_id(self) -> str:
        """UUIDs in the order in which they are made, the same in every run, so that a test can be repeated."""
        if self._is_durable:
            return str(uuid.uuid4())
        self._ids += 1
        return str(uuid.UUID(int=(self._ids << 80) | (4 << 76) | (2 << 62) | self._ids))
