"""Actions on each of several brokers in one process, and on the leaders of partitions."""

from __future__ import annotations

from typing import Any, Literal, Protocol, Self

from pydantic import Field, model_validator

from rejoin.coordinator.control.errors import NotFound, NotPossible, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body, Numbers, Texts
from rejoin.coordinator.core.inputs import NO_LEADER, PartitionRegistration
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import LogPartition

End = Literal["clients", "controller"] | int


class LinkEnds(Body):
    """Who a broker is cut off from."""

    clients: bool = Field(
        default=False, description="its clients: the broker accepts their connections and does not answer"
    )
    controller: bool = Field(
        default=False, description="the controller: after broker.session.timeout.ms other brokers lead its partitions"
    )
    brokers: Numbers = Field(default=(), description="ids of other brokers: neither side replicates from the other")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.clients or self.controller or self.brokers):
            raise ValueError("expected at least one of clients, controller and brokers")
        return self


class LedPartition(Body):
    """A partition, by topic and number, or the offsets partition of a group."""

    topic: str | None = Field(default=None, description="the topic's name, such as orders or __transaction_state")
    partition: int | None = Field(default=None, ge=0, description="the partition's number")
    group: str | None = Field(default=None, description="a group, for its offsets partition")

    @model_validator(mode="after")
    def _one(self) -> Self:
        named = (self.topic is not None, self.partition is not None, self.group is not None)
        if named not in ((True, True, False), (False, False, True)):
            raise ValueError("expected topic and partition, or group")
        return self


class NewLeader(LedPartition):
    """A partition, and the broker that shall lead it."""

    to: int | None = Field(default=None, description="an in-sync broker; unless given, the next in-sync replica")
    unclean: bool = Field(
        default=False, description="allow a replica that is not in sync; records that it lacks are lost"
    )


class PartitionsQuery(Body):
    """Which partitions."""

    topics: Texts = Field(default=(), description="topics; unless given, all except internal topics")


class Brokers(Protocol):
    """The brokers of this process."""

    def node_ids(self) -> list[int]:
        """The id of every broker, running or not."""

    def shown(self, node_id: int) -> dict[str, Any]:
        """State of a broker."""

    async def stop_broker(self, node_id: int) -> None:
        """Stop it cleanly."""

    async def kill_broker(self, node_id: int) -> None:
        """End it as by kill -9."""

    async def start_broker(self, node_id: int) -> None:
        """Start it again."""

    def pause_broker(self, node_id: int) -> None:
        """Let it stand still."""

    def resume_broker(self, node_id: int) -> None:
        """Let it go on."""

    def cut_off(self, node_id: int, *, clients: bool, controller: bool, brokers: tuple[int, ...]) -> None:
        """Cut it off from some."""

    def heal(self, node_id: int) -> None:
        """Let it reach all again."""

    def state(self, node_id: int) -> str:
        """running, paused or stopped."""

    def registrations(self) -> dict[LogPartition, PartitionRegistration]:
        """All partitions, as the controller knows them."""

    def move(self, partition: LogPartition, to: int, *, unclean: bool) -> bool:
        """Let another broker lead; false where it cannot."""

    def elect_preferred(self) -> list[LogPartition]:
        """Let preferred leaders lead; returns what moved."""

    async def reset(self) -> None:
        """Start all of them anew, with nothing in their logs."""


class BrokerActions:
    """Checks what is asked for, and does it."""

    def __init__(self, brokers: Brokers, offsets_partitions: int) -> None:
        self._brokers = brokers
        self._offsets_partitions = offsets_partitions

    # --- brokers

    def node_ids(self) -> list[int]:
        """The id of every broker, running or not."""
        return self._brokers.node_ids()

    async def reset(self) -> None:
        """Start all brokers anew: no groups, no topics, no offsets, and every link is there."""
        await self._brokers.reset()

    def all(self) -> dict[str, Any]:
        """State of every broker."""
        return {"brokers": [self._brokers.shown(node_id) for node_id in self._brokers.node_ids()]}

    async def stop(self, node_id: str) -> dict[str, Any]:
        """Stop a broker cleanly: leaders move first."""
        wanted = self._in_state(node_id, "running")
        await self._brokers.stop_broker(wanted)
        return self._brokers.shown(wanted)

    async def kill(self, node_id: str) -> dict[str, Any]:
        """End a broker; the others find out when its session is over."""
        wanted = self._in_state(node_id, "running", "paused")
        await self._brokers.kill_broker(wanted)
        return self._brokers.shown(wanted)

    async def start(self, node_id: str) -> dict[str, Any]:
        """Start a broker that is stopped."""
        wanted = self._in_state(node_id, "stopped")
        await self._brokers.start_broker(wanted)
        return self._brokers.shown(wanted)

    def pause(self, node_id: str) -> dict[str, Any]:
        """Let a broker stand still: it takes connections and requests, and does nothing."""
        wanted = self._in_state(node_id, "running")
        self._brokers.pause_broker(wanted)
        return self._brokers.shown(wanted)

    def resume(self, node_id: str) -> dict[str, Any]:
        """Let a paused broker go on."""
        wanted = self._in_state(node_id, "paused")
        self._brokers.resume_broker(wanted)
        return self._brokers.shown(wanted)

    def cut_off(self, ends: LinkEnds, node_id: str) -> dict[str, Any]:
        """Cut a broker off from its clients, from the controller, or from other brokers."""
        wanted = self._in_state(node_id, "running", "paused")
        for other in ends.brokers:
            if self._find(str(other)) == wanted:
                raise NotPossible("same-broker", f"broker {wanted} cannot be cut off from itself; name another")
        self._brokers.cut_off(wanted, clients=ends.clients, controller=ends.controller, brokers=ends.brokers)
        return self._brokers.shown(wanted)

    def heal(self, node_id: str) -> dict[str, Any]:
        """Let a broker reach all again."""
        wanted = self._find(node_id)
        self._brokers.heal(wanted)
        return self._brokers.shown(wanted)

    def _find(self, node_id: str) -> int:
        known = self._brokers.node_ids()
        if not node_id.isdecimal() or int(node_id) not in known:
            raise unknown("broker", node_id, [str(each) for each in known])
        return int(node_id)

    def _in_state(self, node_id: str, *states: str) -> int:
        found = self._find(node_id)
        state = self._brokers.state(found)
        if state not in states:
            raise NotPossible("wrong-state", f"broker {found} is {state}; expected one that is {' or '.join(states)}")
        return found

    # --- partitions

    def partitions(self, wanted: PartitionsQuery) -> dict[str, Any]:
        """Leader, leader epoch, replicas and replicas in sync of partitions."""
        for topic in wanted.topics:
            self._check_topic(topic)
        shown = [
            _shown(partition, registration)
            for partition, registration in self._brokers.registrations().items()
            if (partition.topic in wanted.topics if wanted.topics else not partition.topic.startswith("__"))
        ]
        return {"partitions": sorted(shown, key=lambda each: (each["topic"], each["partition"]))}

    def partition(self, wanted: LedPartition) -> dict[str, Any]:
        """Leader and replicas of one partition."""
        return _shown(*self._registration(wanted))

    def move(self, wanted: NewLeader) -> dict[str, Any]:
        """Let another broker lead a partition, in a new epoch."""
        partition, registration = self._registration(wanted)
        to = self._find(str(wanted.to)) if wanted.to is not None else _next_in_sync(registration)
        if not self._brokers.move(partition, to, unclean=wanted.unclean):
            detail = (
                f"broker {to} cannot lead {partition.topic}-{partition.partition}: replicas "
                f"{list(registration.replicas)}, in sync {list(registration.isr)}; expected one that runs and "
                "is in sync"
                f"{' or a replica' if wanted.unclean else ', or unclean'}"
            )
            raise NotPossible("not-in-sync", detail)
        return _shown(partition, self._brokers.registrations()[partition])

    def elect_preferred(self) -> dict[str, Any]:
        """Let the first replica of each partition lead where it is in sync."""
        moved = self._brokers.elect_preferred()
        registrations = self._brokers.registrations()
        return {"moved": [_shown(partition, registrations[partition]) for partition in moved]}

    def _registration(self, wanted: LedPartition) -> tuple[LogPartition, PartitionRegistration]:
        topic, number = wanted.topic, wanted.partition
        if wanted.group is not None:
            topic, number = offsets_partition(partition_for(wanted.group, self._offsets_partitions))
        found = {
            partition.partition: (partition, registration)
            for partition, registration in self._brokers.registrations().items()
            if partition.topic == topic
        }
        self._check_topic(str(topic))
        if number not in found:
            detail = f"topic {topic!r} has no partition {number}; expected 0 to {len(found) - 1}"
            raise NotFound("unknown-partition", detail)
        return found[number]

    def _check_topic(self, name: str) -> None:
        topics = {partition.topic for partition in self._brokers.registrations()}
        if name not in topics:
            raise unknown("topic", name, sorted(topics))


def _next_in_sync(registration: PartitionRegistration) -> int:
    """The replica in sync behind the leader, round robin; the leader where it is the only one."""
    isr = [each for each in registration.replicas if each in registration.isr]
    if registration.leader not in isr:
        return isr[0]
    return isr[(isr.index(registration.leader) + 1) % len(isr)]


def _shown(partition: LogPartition, registration: PartitionRegistration) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "leader": None if registration.leader == NO_LEADER else registration.leader,
        "leader_epoch": registration.leader_epoch,
        "replicas": list(registration.replicas),
        "isr": list(registration.isr),
    }
