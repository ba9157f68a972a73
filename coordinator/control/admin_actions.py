"""Actions of an administrator, and failures: members removed, partitions moved, topics grown, snapshots restored."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from pydantic import Field, model_validator

from rejoin.coordinator.control.access.principals import GivenPrincipals
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import NotFound, NotPossible, RequestFailed, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.fault_injection.fault_injector import FaultInjector
from rejoin.coordinator.control.fault_injection.faults import Faults
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.core.inputs import CompactionWanted, Context, Millis, Received, SessionLost, Token
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.topics.config_requests import AlterOperation, ResourceType
from rejoin.coordinator.core.views import GroupView, MemberView, StreamsMemberView, TopicView
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.storage.base import OffsetsLog
from rejoin.coordinator.storage.memory import LogSnapshot, MemoryLog
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from rejoin.protocol.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.registry import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    LEAVE_GROUP,
    STREAMS_GROUP_HEARTBEAT,
)
from rejoin.protocol.types import ZERO_UUID, TopicPartition
from rejoin.transcript.sizes import size_of
from rejoin.transcript.steps import StepRecorder, StepsSnapshot

ADMIN: Final = "admin"
_RATE: Final = "emulator.records.per.second"

KEPT_SNAPSHOT_BYTES: Final = 512 * 2**20
_COLLECTED_BYTES: Final = 8 * 2**20
"""A reset that drops more than this gives it back at once."""


class MemberKey(Body):
    """A member, by its member id, its group instance id, or a client id that no other member has."""

    group: str = Field(description="the group's id")
    member: str | None = Field(
        default=None, description="a member id, also of a member that has an id and has not joined yet"
    )
    instance: str | None = Field(default=None, description="a group instance id")
    client_id: str | None = Field(default=None, description="a client id; exactly one member must have it")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(each is not None for each in (self.member, self.instance, self.client_id)) != 1:
            raise ValueError("expected exactly one of member, instance and client_id")
        return self


class PartitionKey(Body):
    """An offsets partition, by its number or by a group in it."""

    partition: int | None = Field(default=None, ge=0, description="the offsets partition")
    group: str | None = Field(default=None, description="a group, for its offsets partition")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.partition is None) == (self.group is None):
            raise ValueError("expected exactly one of partition and group")
        return self


class TopicTarget(Body):
    """A topic as it shall be: it is created, or grown to so many partitions."""

    topic: str = Field(description="the topic's name")
    partitions: int = Field(ge=1, le=100_000, description="number of partitions to have; never fewer than now")
    records_per_second: float | None = Field(
        default=None, ge=0, le=1e9, description="rate of each partition, for a new topic"
    )


class TopicKey(Body):
    """A topic."""

    topic: str = Field(description="the topic's name")


class CompactionScope(Body):
    """The topics whose logs are compacted."""

    topic: str | None = Field(default=None, description="the topic's name; unless given, all compacted topics")


class SnapshotKey(Body):
    """A snapshot, by the name that making it answered with."""

    snapshot: str = Field(description="the snapshot's name")
    at_ms: int | None = Field(default=None, description="accepted as the snapshot answered with; ignored")
    mark: int | None = Field(default=None, description="accepted as the snapshot answered with; ignored")


class GroupConfigs(Body):
    """Settings of a group of its own, by name, as ``kafka-configs.sh --entity-type groups`` changes them."""

    group: str = Field(description="the group's id")
    configs: dict[str, str | int | bool | None] = Field(
        min_length=1, description="new values by name; null: the broker's default again"
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node's whole state at one instant. ``tokens`` are those that waited then."""

    name: str
    at: Millis
    node: Node
    leading: dict[TopicPartition, int]
    log: LogSnapshot
    steps: StepsSnapshot
    size: int
    """The memory it takes, about."""


class AdminActions:
    """Actions on a node from outside, beside Kafka's requests."""

    def __init__(
        self,
        runtime: ControlledRuntime,
        clock: VirtualClock,
        log: OffsetsLog,
        injector: FaultInjector,
        faults: Faults,
        principals: GivenPrincipals,
        recorder: StepRecorder,
        new_node: Callable[[], Node],
        create_initial_topics: Callable[[], Awaitable[None]],
        reset_brokers: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._log = log
        self._injector = injector
        self._faults = faults
        self._principals = principals
        self._recorder = recorder
        self._new_node = new_node
        self._create_initial_topics = create_initial_topics
        self._reset_brokers = reset_brokers
        self.kept_bytes = KEPT_SNAPSHOT_BYTES
        """Most bytes of all snapshots together; beyond it the oldest ones are dropped."""
        self._snapshots: dict[str, Snapshot] = {}
        self._made = 0

    # --- members

    def expire(self, which: MemberKey) -> dict[str, Any]:
        """Let a member's session run out now: what a client that vanishes looks like after its session timeout."""
        self._clock.catch_up()
        view, member = self._find(which)
        member_id = member if isinstance(member, str) else member.member_id
        if not isinstance(member, str) and not member.is_new and (member.awaiting_join or member.awaiting_sync):
            parked = "JoinGroup" if member.awaiting_join else "SyncGroup"
            detail = f"{member_id} waits in {parked}, so its session cannot expire; remove the member with kick"
            raise NotPossible("cannot-expire", detail)
        self._runtime.hand_in(SessionLost(view.group_id, member_id))
        return {"group": view.group_id, "member": member_id}

    async def kick(self, which: MemberKey) -> dict[str, Any]:
        """Remove a member as an administrator does: by a LeaveGroup from outside."""
        self._clock.catch_up()
        view, member = self._find(which)
        member_id = member if isinstance(member, str) else member.member_id
        if isinstance(member, StreamsMemberView):
            error = await self._leave_for(view.group_id, member)
        else:
            request = LeaveGroupRequest(group_id=view.group_id, members=(MemberIdentity(member_id=member_id),))
            answer = cast(LeaveGroupResponse, await self.ask(request, LEAVE_GROUP.max_version))
            error = answer.members[0].error_code if answer.members else answer.error_code
        if error is not ErrorCode.NONE:
            raise NotPossible("not-kicked", f"{member_id} cannot be removed from {view.group_id!r}: {error.name}")
        return {"group": view.group_id, "member": member_id}

    async def _leave_for(self, group_id: str, member: StreamsMemberView) -> ErrorCode:
        """Leave in the name of a member of a streams group, from which LeaveGroup removes none."""
        request = StreamsGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member.member_id,
            member_epoch=-1,
            endpoint_information_epoch=0,
            instance_id=member.group_instance_id,
        )
        answer = await self.ask(request, STREAMS_GROUP_HEARTBEAT.max_version)
        return cast(StreamsGroupHeartbeatResponse, answer).error_code

    async def set_group(self, wanted: GroupConfigs) -> dict[str, Any]:
        """Change settings of a group, which need not exist yet. Raises :class:`NotPossible` for unfit ones."""
        self._clock.catch_up()
        changes = tuple(
            IncrementallyAlterableConfig(
                name=name,
                config_operation=AlterOperation.DELETE if value is None else AlterOperation.SET,
                value=None if value is None else str(value).lower() if isinstance(value, bool) else str(value),
            )
            for name, value in wanted.configs.items()
        )
        resource = IncrementalAlterConfigsResource(
            resource_type=ResourceType.GROUP, resource_name=wanted.group, configs=changes
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        answer = await self.ask(request, INCREMENTAL_ALTER_CONFIGS.max_version)
        (result,) = cast(IncrementalAlterConfigsResponse, answer).responses
        if result.error_code is not ErrorCode.NONE:
            detail = f"group {wanted.group!r}: {result.error_code.name}: {result.error_message}"
            raise NotPossible("configs-refused", detail)
        return {"group": wanted.group, "configs": {each.name: each.value for each in changes}}

    def _find(self, which: MemberKey) -> tuple[GroupView, MemberView | str]:
        """The group and the member that is meant; an id that was only handed out is given as it is."""
        view = self._runtime.node.describe_group(which.group)
        if view is None:
            raise unknown("group", which.group, self._runtime.node.group_ids())
        if which.member is not None and which.member in view.pending_members:
            return view, which.member
        found = [
            member
            for member in view.members
            if which.member in (None, member.member_id)
            and which.instance in (None, member.group_instance_id)
            and which.client_id in (None, member.client_id)
        ]
        if len(found) == 1:
            return view, found[0]
        there = ", ".join(f"{m.member_id} (client id {m.client_id})" for m in view.members) or "no members"
        wanted = which.member or which.instance or which.client_id
        how_many = f"{len(found)} members are" if found else "no member is"
        detail = f"{how_many} {wanted!r} in group {which.group!r}, expected exactly one; its members: {there}"
        raise (NotPossible if found else NotFound)("unknown-member", detail)

    # --- offsets partitions

    def resign(self, which: PartitionKey) -> dict[str, Any]:
        """Stop leading an offsets partition: its groups are elsewhere now; waiting requests get NOT_COORDINATOR."""
        partition = self._partition(which)
        if partition not in self._runtime.leading:
            raise NotPossible(
                "not-leading", f"this node does not lead offsets partition {partition.partition}; elect it first"
            )
        self._clock.catch_up()
        self._runtime.resign(partition)
        return {"topic": partition.topic, "partition": partition.partition, "leading": False}

    def elect(self, which: PartitionKey) -> dict[str, Any]:
        """Lead an offsets partition, in a new epoch: its groups are loaded from the offsets log."""
        partition = self._partition(which)
        self._clock.catch_up()
        if not self._runtime.elect(partition):
            detail = "nodes that share a store elect leaders by themselves; resign the partition at its leader instead"
            raise NotPossible("not-alone", detail)
        return {"topic": partition.topic, "partition": partition.partition, "leading": True}

    def _partition(self, which: PartitionKey) -> TopicPartition:
        count = self._runtime.node.settings.offsets_topic_num_partitions
        if which.group is not None:
            return offsets_partition(partition_for(which.group, count))
        assert which.partition is not None, "one of the two is given"
        if which.partition >= count:
            detail = f"there is no offsets partition {which.partition}; expected 0 to {count - 1}"
            raise NotFound("unknown-partition", detail)
        return offsets_partition(which.partition)

    # --- topics

    async def set_topic(self, wanted: TopicTarget) -> dict[str, Any]:
        """Create a topic, or let it grow."""
        self._clock.catch_up()
        before = self._topics().get(wanted.topic)
        result: Any
        if before is None:
            rate = wanted.records_per_second
            configs = () if rate is None else (CreatableTopicConfig(name=_RATE, value=str(rate)),)
            creatable = CreatableTopic(
                name=wanted.topic,
                num_partitions=wanted.partitions,
                replication_factor=-1,
                assignments=(),
                configs=configs,
            )
            created = await self.ask(CreateTopicsRequest(topics=(creatable,)), CREATE_TOPICS.max_version)
            result = cast(CreateTopicsResponse, created).topics[0]
        elif before.partitions == wanted.partitions:
            return before.model_dump(mode="json", by_alias=False)
        else:
            grown = CreatePartitionsTopic(name=wanted.topic, count=wanted.partitions, assignments=None)
            request = CreatePartitionsRequest(topics=(grown,), timeout_ms=1_000, validate_only=False)
            answer = await self.ask(request, CREATE_PARTITIONS.max_version)
            result = cast(CreatePartitionsResponse, answer).results[0]
        if result.error_code is not ErrorCode.NONE:
            raise NotPossible(
                "topic-refused", f"topic {wanted.topic!r}: {result.error_code.name}: {result.error_message}"
            )
        return self._topics()[wanted.topic].model_dump(mode="json", by_alias=False)

    async def delete_topic(self, wanted: TopicKey) -> dict[str, Any]:
        """Delete a topic with its records. Raises :class:`NotFound` and :class:`NotPossible`."""
        self._clock.catch_up()
        if wanted.topic not in self._topics():
            raise unknown("topic", wanted.topic, [*self._topics()])
        states = (DeleteTopicState(name=wanted.topic, topic_id=ZERO_UUID),)
        answer = await self.ask(DeleteTopicsRequest(topics=states, timeout_ms=1_000), DELETE_TOPICS.max_version)
        (result,) = cast(DeleteTopicsResponse, answer).responses
        if result.error_code is not ErrorCode.NONE:
            detail = f"topic {wanted.topic!r}: {result.error_code.name}: {result.error_message}"
            raise NotPossible("topic-refused", detail)
        return {"topic": wanted.topic}

    def compact(self, scope: CompactionScope) -> dict[str, Any]:
        """Clean compacted logs now, whatever the share of them that is dirty. Their newest batch stays as it is."""
        self._clock.catch_up()
        compacted = self._runtime.node.compacted_topics()
        if scope.topic is not None and scope.topic not in compacted:
            raise self._not_compacted(scope.topic)
        self._runtime.hand_in(CompactionWanted(scope.topic))
        return {"topics": compacted if scope.topic is None else [scope.topic]}

    def _not_compacted(self, name: str) -> NotFound | NotPossible:
        if name == OFFSETS_TOPIC:
            detail = f"{name!r} is compacted by the store as it grows, never on command; expected another topic"
            return NotPossible("not-compacted", detail)
        topics = self._topics()
        if name not in topics:
            return unknown("topic", name, list(topics))
        if topics[name].records_per_second is not None:
            detail = f"the logs of {name!r} are synthetic and never compacted; expected a topic with real logs"
            return NotPossible("synthetic-topic", detail)
        detail = f"topic {name!r} is not compacted; set its cleanup.policy to compact first"
        return NotPossible("not-compacted", detail)

    def _topics(self) -> dict[str, TopicView]:
        return {topic.topic: topic for topic in self._runtime.node.describe_topics(self._clock.now())}

    # --- snapshots

    def snapshot(self) -> dict[str, Any]:
        """Keep the whole state: groups, offsets, topics, timers, log, recorded steps, and the instant."""
        log = self._memory()
        self._clock.catch_up()
        self._made += 1
        name = str(self._made)
        node = self._runtime.node.copy(lambda token: token)
        contents, steps = log.contents(), self._recorder.keep()
        self._snapshots[name] = Snapshot(
            name,
            self._clock.now(),
            node,
            self._runtime.leading,
            contents,
            steps,
            size_of(contents) + steps.size,
        )
        while sum(each.size for each in self._snapshots.values()) > self.kept_bytes and len(self._snapshots) > 1:
            del self._snapshots[next(iter(self._snapshots))]
        return {"snapshot": name, "at_ms": self._clock.now(), "mark": self._recorder.mark}

    def restore(self, which: SnapshotKey) -> dict[str, Any]:
        """Go back to a snapshot, in time too. Requests that began to wait since then get NOT_COORDINATOR.

        Requests that waited then and still do go on waiting; those that were answered since get no second answer.
        """
        log = self._memory()
        kept = self._snapshots.get(which.snapshot)
        if kept is None:
            raise unknown("snapshot", which.snapshot, list(self._snapshots))
        waited = {id(token) for token in kept.node.waiting()}
        self._send_away(waited)
        self._go_on_with(kept.node.copy(_or_abandoned), kept.leading, kept.at)
        log.go_back(kept.log)
        self._recorder.go_back(kept.steps)
        return {"snapshot": kept.name, "at_ms": kept.at, "mark": self._recorder.mark}

    async def reset(self) -> dict[str, Any]:
        """Begin anew: no groups, no offsets, no rules, no recorded steps; topics as at the start. Time goes on.

        ACLs and quotas are those of the start, and principals that were given are taken away. Several brokers all run
        again, and their connections have ended.
        """
        log = self._memory() if self._reset_brokers is None else None
        collected = self._recorder.size + sum(each.size for each in self._snapshots.values())
        self._faults.clear()
        self._principals.clear()
        self._send_away(set())
        self._recorder.is_on = False
        self._snapshots.clear()
        self._clock.catch_up()
        if self._reset_brokers is not None:
            await self._reset_brokers()
        elif log is not None:
            log.go_back(LogSnapshot({}, {}, {}))
            self._go_on_with(self._new_node(), {}, None)
            self._runtime.lead_everything()
        self._recorder.begin(self._clock.now())
        await self._create_initial_topics()
        if collected > _COLLECTED_BYTES:
            gc.collect()
        return {"at_ms": self._clock.now(), "mark": self._recorder.mark}

    def _go_on_with(self, node: Node, leading: dict[TopicPartition, int], at: Millis | None) -> None:
        if at is not None:
            self._clock.jump(at)
        self._runtime.go_on_with(node, leading)

    def _send_away(self, but: set[int]) -> None:
        """Answer those that wait: for them, this node is not the coordinator any more."""
        self._injector.drop_held()
        asked = {id(s.what.token): s.what for s in self._recorder.all() if isinstance(s.what, Received)}
        for token in self._runtime.node.waiting():
            if id(token) in but or not isinstance(token, PendingReply):
                continue
            received = asked.get(id(token))
            if received is None:
                token.failed = True
            else:
                token.response = received.request.error_response(
                    received.context.api_version, ErrorCode.NOT_COORDINATOR
                )
            token.settle()

    def _memory(self) -> MemoryLog:
        if self._reset_brokers is not None:
            detail = "a snapshot needs a single broker, and there are several; reset restarts all of them"
            raise NotPossible("several-brokers", detail)
        if not isinstance(self._log, MemoryLog):
            detail = (
                "snapshots and resets need one node with an offsets log in memory; this node keeps its log in a store"
            )
            raise NotPossible("log-not-in-memory", detail)
        return self._log

    async def ask(self, request: Any, version: int) -> Response:
        """The answer to a request of the operator. Raises :class:`RequestFailed`."""
        answer = await self._runtime.submit(request, Context(version, ADMIN, by_operator=True)).answer()
        if answer is None:
            raise RequestFailed(f"{type(request).__name__} failed")
        return answer


def _or_abandoned(token: Token) -> Token:
    """The token, if its requester still waits; else one that nothing waits for."""
    assert isinstance(token, PendingReply)
    gone = token.response is not None or token.failed or (token.future is not None and token.future.done())
    return PendingReply() if gone else token
