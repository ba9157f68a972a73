"""The controller of several brokers in one process: which of them are alive, and which leads each partition.

A broker that is out of contact is fenced after ``broker.session.timeout.ms``: its partitions get other leaders, out of
those replicas in sync that are alive. Each change of a leader is a new leader epoch.

Differs: Kafka counts the session from the last heartbeat, which may be two seconds old; here contact has no gaps.

Kafka: ReplicationControlManager, PartitionChangeBuilder, BrokerHeartbeatManager.
"""

from __future__ import annotations

from dataclasses import replace

from rejoin.coordinator.core.cluster.replica_changes import ReplicaChanges, completed, led_by
from rejoin.coordinator.core.inputs import NO_LEADER, Broker, ClusterSeen, Millis, PartitionRegistration
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition


class Controller:
    """Decides; each method leaves ``partitions`` and ``brokers`` as they are from then on."""

    def __init__(self, session_timeout_ms: Millis) -> None:
        self.partitions: dict[LogPartition, PartitionRegistration] = {}
        self.brokers: dict[int, Broker] = {}
        """Live brokers, with the addresses for clients."""
        self.registered: set[int] = set()
        """Brokers that may be named as replicas: live ones, and those that are expected again."""
        self.synthetic_topics: set[str] = set()
        """Ids of topics without logs: a replica is in sync as soon as it is alive."""
        self._session_timeout_ms = session_timeout_ms
        self._sessions_end: dict[int, Millis] = {}
        """Brokers that are out of contact, and when they are fenced."""

    def cluster(self) -> ClusterSeen:
        """The cluster as every broker sees it that is in contact."""
        brokers = tuple(broker for _, broker in sorted(self.brokers.items()))
        leaders = {
            partition: registration.leader
            for partition, registration in self.partitions.items()
            if isinstance(partition, TopicPartition) and registration.leader != NO_LEADER
        }
        return ClusterSeen(brokers, leaders, dict(self.partitions))

    def clear(self) -> None:
        """Forget all brokers and partitions."""
        self.partitions.clear()
        self.brokers.clear()
        self.registered.clear()
        self.synthetic_topics.clear()
        self._sessions_end.clear()

    # --- brokers

    def register(self, broker: Broker) -> None:
        """Add a broker that has started. It leads the partitions that have no leader and count it in sync."""
        node_id = broker.node_id
        self.brokers[node_id] = broker
        self.registered.add(node_id)
        self._sessions_end.pop(node_id, None)
        for partition, registration in list(self.partitions.items()):
            isr = registration.isr
            if self._has_no_lag(partition) and node_id in registration.replicas and node_id not in isr:
                isr = (*isr, node_id)
                self.partitions[partition] = replace(registration, isr=isr)
            if registration.leader == NO_LEADER and node_id in isr:
                self._lead(partition, node_id, isr)
            self._complete(partition)

    def unregister(self, node_id: int) -> bool:
        """Forget a broker; false where there is none of this id. One that runs is not served until it starts again."""
        if node_id not in self.registered:
            return False
        self.fence(node_id)
        self.registered.discard(node_id)
        return True

    def lose_contact(self, node_id: int, now: Millis) -> None:
        """Begin the session timeout of a broker whose heartbeats stop now."""
        if node_id in self.brokers:
            self._sessions_end.setdefault(node_id, now + self._session_timeout_ms)

    def regain_contact(self, broker: Broker) -> None:
        """End that timeout, as heartbeats come again; a broker that was fenced is registered anew."""
        if self._sessions_end.pop(broker.node_id, None) is None and broker.node_id in self.registered:
            self.register(broker)

    def fence(self, node_id: int) -> None:
        """Let a broker lead nothing, as it stops or its session is over; it stays in sync where no other is."""
        self.brokers.pop(node_id, None)
        self._sessions_end.pop(node_id, None)
        for partition, registration in list(self.partitions.items()):
            if node_id not in registration.isr and registration.leader != node_id:
                continue
            isr = tuple(each for each in registration.isr if each != node_id) or registration.isr
            if registration.leader == node_id:
                self._lead(partition, self._next_leader(registration, isr), isr)
            else:
                self.partitions[partition] = replace(registration, isr=isr)

    # --- time

    def next_deadline(self) -> Millis | None:
        """When the first session ends, or none."""
        return min(self._sessions_end.values(), default=None)

    def elapse(self, now: Millis) -> None:
        """Fence the brokers whose sessions are over."""
        for node_id in [node_id for node_id, end in self._sessions_end.items() if end <= now]:
            self.fence(node_id)

    # --- partitions

    def create(self, partition: LogPartition, replicas: tuple[int, ...]) -> None:
        """Add a partition with replicas at these brokers; the first that is alive leads it."""
        if partition in self.partitions:
            return
        isr = tuple(each for each in replicas if each in self.brokers)
        leader = isr[0] if isr else NO_LEADER
        self.partitions[partition] = PartitionRegistration(replicas, isr or replicas, leader, 0)

    def remove(self, topic_id: str) -> None:
        """Remove the partitions of a topic."""
        self.synthetic_topics.discard(topic_id)
        for partition in list(self.partitions):
            if isinstance(partition, TopicIdPartition) and partition.topic_id == topic_id:
                del self.partitions[partition]

    def move(self, partition: LogPartition, to: int) -> bool:
        """Let another replica lead; false where it is not in sync, or not alive."""
        registration = self.partitions[partition]
        if to not in registration.isr or to not in self.brokers:
            return False
        self._lead(partition, to, registration.isr)
        return True

    def elect_preferred(self) -> list[LogPartition]:
        """Let the first replica of each partition lead where it is alive and in sync; returns those that moved."""
        return [
            partition
            for partition, registration in self.partitions.items()
            if registration.leader != registration.replicas[0] and self.move(partition, registration.replicas[0])
        ]

    def elect_unclean(self, partition: LogPartition, leader: int) -> bool:
        """Elect a replica that may be out of sync: records that it lacks are lost. False if it is not alive."""
        registration = self.partitions[partition]
        if leader not in registration.replicas or leader not in self.brokers:
            return False
        self._lead(partition, leader, registration.isr if leader in registration.isr else (leader,))
        return True

    def alter_partition(self, by: int, partition: LogPartition, epoch: int, isr: tuple[int, ...]) -> None:
        """A leader wants other replicas in sync. Those of an older epoch, or not alive, do not count."""
        registration = self.partitions.get(partition)
        if registration is None or (registration.leader, registration.leader_epoch) != (by, epoch):
            return
        live = tuple(each for each in registration.replicas if each in isr and each in self.brokers)
        if by in live:
            self.partitions[partition] = replace(registration, isr=live)
            self._complete(partition)

    def decide(self) -> tuple[ReplicaChanges, dict[tuple[str, int], LogPartition]]:
        """Begin a decision on elections and reassignments, which :meth:`apply` carries out."""
        keys = {(partition.topic, partition.partition): partition for partition in self.partitions}
        by_key = {key: self.partitions[partition] for key, partition in keys.items()}
        return ReplicaChanges(by_key, self.brokers, self.registered), keys

    def apply(self, changes: ReplicaChanges, keys: dict[tuple[str, int], LogPartition]) -> None:
        """Carry out what was decided. Replicas that are added come into sync as they catch up."""
        for key, wanted in changes.changed.items():
            partition = keys[key]
            isr = wanted.isr
            if self._has_no_lag(partition):
                isr += tuple(each for each in wanted.adding if each in self.brokers and each not in isr)
            self.partitions[partition] = replace(wanted, isr=isr)
            self._complete(partition)

    def _complete(self, partition: LogPartition) -> None:
        """End a reassignment whose new replicas are in sync."""
        self.partitions[partition] = completed(self.partitions[partition], self.brokers)

    def _has_no_lag(self, partition: LogPartition) -> bool:
        """Whether a replica is in sync as soon as it is alive: that of an internal topic, or of one without logs."""
        return isinstance(partition, TopicPartition) or partition.topic_id in self.synthetic_topics

    def _next_leader(self, registration: PartitionRegistration, isr: tuple[int, ...]) -> int:
        """The first replica that is in sync and alive."""
        live = (each for each in registration.replicas if each in isr and each in self.brokers)
        return next(live, NO_LEADER)

    def _lead(self, partition: LogPartition, leader: int, isr: tuple[int, ...]) -> None:
        self.partitions[partition] = led_by(replace(self.partitions[partition], isr=isr), leader)
