"""Drives the controller of several brokers: sets its timer, and sends its decisions to every broker in contact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rejoin.coordinator.core.cluster.replica_requests import ControllerRequest, decided
from rejoin.coordinator.core.effects import AlterPartition
from rejoin.coordinator.core.inputs import Broker, ClusterSeen, Elected, Millis, Resigned, TopicsRecords
from rejoin.coordinator.in_process_brokers.runtime import BrokerRuntime
from rejoin.coordinator.leadership.controller import Controller
from rejoin.coordinator.service.clock import Alarm, Clock
from rejoin.coordinator.storage.replicated import ReplicatedLogs
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.replication.quorum_changes import UnregisterBrokerRequest, UnregisterBrokerResponse
from rejoin.protocol.records.topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition


class ControllerDriver:
    """The controller, and the runtimes of the brokers that it decides about.

    A broker that cannot be reached keeps what it knew, and leads what it led. Logs refuse what it appends.
    """

    def __init__(
        self,
        controller: Controller,
        clock: Clock,
        logs: ReplicatedLogs,
        in_contact: Callable[[int], bool],
    ) -> None:
        self.controller = controller
        self._clock = clock
        self._logs = logs
        self._in_contact = in_contact
        self._runtimes: dict[int, BrokerRuntime] = {}
        self._leading: dict[int, dict[LogPartition, int]] = {}
        self._known: dict[int, ClusterSeen] = {}
        self._names: dict[str, str] = {}
        self._unsent: dict[int, list[AlterPartition]] = {}
        self._alarm: Alarm | None = None
        self._is_publishing = False
        self._is_stale = False

    # --- brokers

    def add(self, runtime: BrokerRuntime) -> None:
        """A broker that is about to start."""
        node_id = runtime.node.settings.broker_id
        self._runtimes[node_id] = runtime
        runtime.alter_partition = lambda wanted: self._alter_partition(node_id, wanted)

    def register(self, broker: Broker) -> None:
        """A broker has started, with nothing in memory."""
        self._leading[broker.node_id] = {}
        self._known.pop(broker.node_id, None)
        self._unsent.pop(broker.node_id, None)
        self.controller.register(broker)
        self.publish()

    def shut_down(self, node_id: int) -> None:
        """A broker wants to stop: its partitions get other leaders, as far as possible."""
        self.controller.fence(node_id)
        self.publish()

    def contact_changed(self, node_id: int) -> None:
        """A broker can be reached again, or not any more."""
        runtime = self._runtimes[node_id]
        if self._in_contact(node_id):
            self.controller.regain_contact(runtime.broker)
            for wanted in self._unsent.pop(node_id, ()):
                self.controller.alter_partition(node_id, wanted.partition, wanted.epoch, wanted.isr)
        else:
            self.controller.lose_contact(node_id, self._clock.now())
        self.publish()

    def clear(self) -> None:
        """Forget all partitions, and all brokers until they register again."""
        self.controller.clear()
        for known in (self._leading, self._known, self._names, self._unsent):
            known.clear()
        self.stop()

    def stop(self) -> None:
        """Set no timer any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None

    # --- partitions

    def create(self, partitions: Sequence[TopicPartition], replicas: Sequence[tuple[int, ...]]) -> None:
        """Partitions of internal topics, which are there from the beginning."""
        for partition, placed in zip(partitions, replicas, strict=True):
            self.controller.create(partition, placed)
        self.publish()

    def on_topics(self, records: TopicsRecords) -> None:
        """The topics have changed, and every broker that can be reached knows."""
        for record in records:
            match record:
                case TopicRecord():
                    self._names[record.data.topic_id] = record.data.name
                    if record.data.records_per_second is not None:
                        self.controller.synthetic_topics.add(record.data.topic_id)
                case PartitionRecord():
                    data = record.data
                    for index, replicas in enumerate(data.replicas, data.partition_id):
                        name = self._names[data.topic_id]
                        self.controller.create(TopicIdPartition(data.topic_id, index, name), replicas)
                case RemoveTopicRecord():
                    self.controller.remove(record.data.topic_id)
        self.publish()

    def _alter_partition(self, by: int, wanted: AlterPartition) -> None:
        if not self._in_contact(by):
            self._unsent.setdefault(by, []).append(wanted)
            return
        self.controller.alter_partition(by, wanted.partition, wanted.epoch, wanted.isr)
        self.publish()

    def answer(self, request: Request) -> Response:
        """Decide on a request that a broker passes on, and let all brokers know."""
        if isinstance(request, UnregisterBrokerRequest):
            answer = self._unregister(request)
        else:
            assert isinstance(request, ControllerRequest), f"{type(request).__name__} is no request for a controller"
            changes, keys = self.controller.decide()
            answer = decided(changes, request)
            self.controller.apply(changes, keys)
        self.publish()
        self._logs.catch_up()
        return answer

    def _unregister(self, request: UnregisterBrokerRequest) -> Response:
        if self.controller.unregister(request.broker_id):
            return UnregisterBrokerResponse()
        text = f"Broker ID {request.broker_id} is not currently registered"
        return request.error_response(0, ErrorCode.BROKER_ID_NOT_REGISTERED, text)

    def _elapse(self) -> None:
        self._alarm = None
        self.controller.elapse(self._clock.now())
        self.publish()

    # --- what brokers know

    def publish(self) -> None:
        """Send the state of the cluster to every broker in contact, and elect the leaders among them."""
        # A broker that receives one change may ask for the next.
        self._is_stale = True
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._is_stale:
                self._is_stale = False
                self._publish()
        finally:
            self._is_publishing = False
        self._set_alarm()

    def _publish(self) -> None:
        seen = self.controller.cluster()
        assert seen.registrations is not None, "the controller knows all partitions"
        for partition, registration in seen.registrations.items():
            if registration.leader >= 0:
                self._logs.begin_epoch(partition, registration.leader_epoch, registration.leader, registration.replicas)
        reached = [each for each in self._leading if self._in_contact(each)]
        for node_id in reached:
            if self._known.get(node_id) != seen:
                self._known[node_id] = seen
                self._runtimes[node_id].hand_in(seen)
        wanted = {
            node_id: {
                partition: registration.leader_epoch
                for partition, registration in seen.registrations.items()
                if registration.leader == node_id
            }
            for node_id in reached
        }
        for node_id in reached:
            self._resign(node_id, wanted[node_id])
        for node_id in reached:
            self._elect(node_id, wanted[node_id])

    def _resign(self, node_id: int, wanted: dict[LogPartition, int]) -> None:
        runtime, leading = self._runtimes[node_id], self._leading[node_id]
        for partition in [each for each in leading if each not in wanted]:
            del leading[partition]
            if isinstance(partition, TopicPartition):
                runtime.stop_leading(partition)
            else:
                runtime.hand_in(Resigned(partition))

    def _elect(self, node_id: int, wanted: dict[LogPartition, int]) -> None:
        runtime, leading = self._runtimes[node_id], self._leading[node_id]
        elected = {partition: epoch for partition, epoch in wanted.items() if leading.get(partition) != epoch}
        if not elected:
            return
        leading |= elected
        with runtime.at_debug_level():
            for partition, epoch in elected.items():
                if isinstance(partition, TopicPartition):
                    runtime.start_leading(partition, epoch)
                else:
                    runtime.hand_in(Elected(partition, epoch))

    # --- time

    def next_deadline(self) -> Millis | None:
        """When the session of a broker out of contact ends, or none."""
        return self.controller.next_deadline()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadline = self.controller.next_deadline()
        if deadline is not None:
            self._alarm = self._clock.call_at(deadline, self._elapse)
