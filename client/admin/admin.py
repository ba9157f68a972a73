"""The admin client: groups, their offsets and topics from outside. Its bases have the calls of other subjects.

Source: Kafka's KafkaAdminClient, as far as its tools need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final, NamedTuple, TypeAlias, TypeVar

from rejoin.client.admin.acls import AclCalls
from rejoin.client.admin.asking import BACKOFF_SECONDS
from rejoin.client.admin.configs import ConfigCalls
from rejoin.client.admin.quotas import QuotaCalls
from rejoin.client.admin.replicas import ReplicaCalls
from rejoin.client.admin.scram_users import ScramCalls
from rejoin.client.config import ConsumerConfig
from rejoin.client.core import requests
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError, KafkaError, KafkaTimeoutError, UnsupportedVersionError
from rejoin.client.core.inputs import OffsetAndMetadata
from rejoin.client.core.state.membership import NO_GENERATION
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumerGroup,
)
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from rejoin.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rejoin.protocol.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitResponse
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from rejoin.protocol.messages.records.list_offsets import ListOffsetsResponse
from rejoin.protocol.messages.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rejoin.protocol.registry import FIND_COORDINATOR, OFFSET_FETCH
from rejoin.protocol.types import ZERO_UUID, TopicPartition

MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors after which the coordinator is looked up again and the request repeated."""

T = TypeVar("T")
Ask: TypeAlias = Callable[[Endpoint], Awaitable[tuple[ErrorCode, T]]]


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member with its assignment, decoded from DescribeGroups.

    Members of classic groups have no epoch and no target assignment. ``upgraded`` is whether a member of a consumer
    group uses the consumer protocol, where the answer says so.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] = ()
    member_epoch: int | None = None
    upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group of either kind, as DescribeGroups or ConsumerGroupDescribe shows it. Classic groups have no epochs."""

    group_id: str
    state: str
    assignor: str
    coordinator: Endpoint
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


class GroupListing(NamedTuple):
    """Groups by id, and the problem of each node that did not answer. Kafka: ListGroupsResult."""

    groups: list[ListedGroup]
    unanswered: tuple[str, ...]


class Admin(AclCalls, ConfigCalls, QuotaCalls, ReplicaCalls, ScramCalls):
    """An admin client of Kafka or Rejoin. Every call gives up after ``timeout_ms`` with KafkaTimeoutError."""

    # Kafka: the tool lists groups of type consumer, and simple ones.
    listed_protocols: frozenset[str] = frozenset({"consumer", ""})
    """Protocol types of the groups that this client lists."""

    async def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """Every group of the cluster, by id. Raises KafkaTimeoutError where a node of it does not answer."""
        listing = await self.list_reachable_groups(states, types)
        if listing.unanswered:
            raise KafkaTimeoutError(listing.unanswered[0])
        return listing.groups

    async def list_reachable_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> GroupListing:
        """The groups of the nodes that answer. All are asked at once, so that one that hangs holds up no other."""
        request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))

        async def ask(node: Endpoint) -> ListGroupsResponse | KafkaTimeoutError:
            try:
                return await self._ask(request, ListGroupsResponse, to=node, timeout_ms=self._timeout_ms // 2)
            except KafkaTimeoutError as problem:
                return problem

        found: dict[str, ListedGroup] = {}
        unanswered = []
        for response in await asyncio.gather(*[ask(node) for node in await self._nodes()]):
            if isinstance(response, KafkaTimeoutError):
                unanswered.append(str(response))
            elif response.error_code is not ErrorCode.NONE:
                raise CodedError(response.error_code)
            else:
                found.update((group.group_id, group) for group in response.groups)
        listed = self.listed_protocols
        groups = [found[group_id] for group_id in sorted(found) if found[group_id].protocol_type in listed]
        return GroupListing(groups, tuple(unanswered))

    async def describe(self, group_id: str) -> GroupDescription:
        """One group; an unknown one is Dead. Raises KafkaError for one that is not of consumers."""

        async def ask(to: Endpoint) -> tuple[ErrorCode, GroupDescription]:
            response = await self._ask(DescribeGroupsRequest(groups=(group_id,)), DescribeGroupsResponse, to=to)
            described = response.groups[0]
            # From v6 on an unknown group is an error; before, it is Dead. A group of the other kind is unknown here.
            if described.error_code is ErrorCode.GROUP_ID_NOT_FOUND or described.group_state == "Dead":
                return await self._describe_consumer_group(group_id, to)
            return described.error_code, _group(described, to)

        return await self._at_coordinator(group_id, ask)

    async def _describe_consumer_group(self, group_id: str, to: Endpoint) -> tuple[ErrorCode, GroupDescription]:
        # Differs: Kafka's DescribeConsumerGroupsHandler asks for this kind first, and for a classic group afterwards.
        request = ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
        dead = GroupDescription(group_id, "Dead", "", to, ())
        try:
            response = await self._ask(request, ConsumerGroupDescribeResponse, to=to)
        except UnsupportedVersionError:
            return ErrorCode.NONE, dead
        described = response.groups[0]
        if described.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return ErrorCode.NONE, dead
        return described.error_code, _consumer_group(described, to)

    async def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """The offsets the group has committed, by topic and partition."""
        return {partition: each.offset for partition, each in (await self.committed_with_epochs(group_id)).items()}

    async def committed_with_epochs(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything the group has committed, by topic and partition."""

        def request(version: int) -> OffsetFetchRequest:
            if version < 8:
                return OffsetFetchRequest(group_id=group_id, topics=None)
            return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))

        async def ask(to: Endpoint) -> tuple[ErrorCode, dict[TopicPartition, OffsetAndMetadata]]:
            response = await self._ask(request, OffsetFetchResponse, to=to)
            version = self._version(OFFSET_FETCH)
            offsets = {
                partition: OffsetAndMetadata(
                    committed.committed_offset, committed.metadata or "", committed.committed_leader_epoch
                )
                for partition, committed in requests.fetched_offsets(response, version)
                if committed.committed_offset >= 0
            }
            return requests.offset_fetch_error(response, version), dict(sorted(offsets.items()))

        return await self._at_coordinator(group_id, ask)

    async def offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Offsets by time (-1 the end, -2 the beginning); None where the partition is unknown or has none."""
        if not timestamps:
            return {}
        asked = dict(sorted(timestamps.items()))
        found: dict[TopicPartition, int | None] = {}
        for node, partitions in (await self._by_leader(asked)).items():
            some = {partition: asked[partition] for partition in partitions}
            make = partial(requests.list_offsets, some, "read_uncommitted")
            response = await self._ask(make, ListOffsetsResponse, to=node)
            found |= {
                partition: offset if error is ErrorCode.NONE and offset >= 0 else None
                for partition, error, offset in requests.listed_offsets(response)
            }
        return {partition: found.get(partition) for partition in asked}

    async def _by_leader(self, partitions: Iterable[TopicPartition]) -> dict[Endpoint | None, list[TopicPartition]]:
        """Partitions by the node that leads them; over HTTP any node answers for all."""
        if not self._transport.carries_records:
            return {None: list(partitions)}
        wanted = sorted(partitions)
        response = await self._describe_topics({topic for topic, _ in wanted})
        nodes = {node.node_id: Endpoint(node.node_id, node.host, node.port) for node in response.brokers}
        leaders = {
            TopicPartition(topic.name or "", each.partition_index): nodes.get(each.leader_id)
            for topic in response.topics
            for each in topic.partitions
        }
        led: dict[Endpoint | None, list[TopicPartition]] = {}
        for partition in wanted:
            led.setdefault(leaders.get(partition), []).append(partition)
        return led

    async def topics(self) -> list[MetadataResponseTopic]:
        """Every topic of the cluster, by name."""
        response = await self._describe_topics(None)
        return sorted(response.topics, key=lambda topic: topic.name or "")

    async def cluster(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """The brokers that are up with their racks, and topics: none unless some are named, all for None."""
        return await self._describe_topics(topics)

    async def _describe_topics(self, topics: Iterable[str] | None) -> MetadataResponse:
        names = None if topics is None else sorted(topics)

        def make(version: int) -> Request:
            return requests.metadata(names, create=False, version=version)

        return await self._ask(make, MetadataResponse)

    async def delete_topics(self, names: Sequence[str]) -> tuple[DeletableTopicResult, ...]:
        """Delete topics; the result of each."""

        def request(version: int) -> DeleteTopicsRequest:
            if version < 6:
                return DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=self._timeout_ms)
            topics = tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names)
            return DeleteTopicsRequest(topics=topics, timeout_ms=self._timeout_ms)

        return (await self._ask(request, DeleteTopicsResponse)).responses

    async def partitions(self, topics: Iterable[str]) -> dict[str, int | ErrorCode]:
        """Topics with their number of partitions or their error."""
        response = await self._describe_topics(topics)
        return {
            topic.name or "": len(topic.partitions) if topic.error_code is ErrorCode.NONE else topic.error_code
            for topic in response.topics
        }

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set offsets of a group without members. Raises CodedError with the first error of any partition."""
        config = ConsumerConfig(group_id=group_id)
        given = {partition: OffsetAndMetadata(offset) for partition, offset in sorted(offsets.items())}
        request = requests.offset_commit(config, group_id, NO_GENERATION, given, as_member=False)

        async def ask(to: Endpoint) -> tuple[ErrorCode, None]:
            response = await self._ask(request, OffsetCommitResponse, to=to)
            errors = [partition.error_code for topic in response.topics for partition in topic.partitions]
            return next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE), None

        await self._at_coordinator(group_id, ask)

    async def delete_group(self, group_id: str) -> None:
        """Delete an Empty group. Raises CodedError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""

        async def ask(to: Endpoint) -> tuple[ErrorCode, None]:
            response = await self._ask(DeleteGroupsRequest(groups_names=(group_id,)), DeleteGroupsResponse, to=to)
            return response.results[0].error_code, None

        await self._at_coordinator(group_id, ask)

    async def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        """Forget committed offsets: the error of the group as a whole, and of each partition."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(set(partitions)):
            topics.setdefault(topic, []).append(partition)
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes),
                )
                for topic, indexes in topics.items()
            ),
        )

        async def ask(to: Endpoint) -> tuple[ErrorCode, OffsetDeleteResponse]:
            response = await self._ask(request, OffsetDeleteResponse, to=to)
            return response.error_code if response.error_code in MOVED else ErrorCode.NONE, response

        response = await self._at_coordinator(group_id, ask)
        return response.error_code, {
            TopicPartition(topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }

    # -- asking

    async def _nodes(self) -> list[Endpoint]:
        response = await self._describe_topics(())
        return [Endpoint(node.node_id, node.host, node.port) for node in response.brokers]

    async def _at_coordinator(self, group_id: str, ask: Ask[T]) -> T:
        """Ask the group's coordinator, and look it up again while it moves. Raises CodedError for other errors."""
        until = monotonic() + self._timeout_ms / 1_000
        while True:
            error, to = await self._find(group_id)
            if to is not None:
                error, result = await ask(to)
                if error is ErrorCode.NONE:
                    return result
            if error not in MOVED:
                raise CodedError(error)
            if monotonic() + BACKOFF_SECONDS >= until:
                raise KafkaTimeoutError(f"group {group_id}: {error.name}")
            await asyncio.sleep(BACKOFF_SECONDS)

    async def _find(self, group_id: str) -> tuple[ErrorCode, Endpoint | None]:
        response = await self._ask(partial(requests.find_coordinator, group_id), FindCoordinatorResponse)
        found = requests.coordinator_found(response, group_id, self._version(FIND_COORDINATOR))
        if found.error_code is not ErrorCode.NONE:
            return found.error_code, None
        return ErrorCode.NONE, Endpoint(found.node_id, found.host, found.port)


def _group(described: DescribedGroup, coordinator: Endpoint) -> GroupDescription:
    if described.protocol_type not in {"consumer", ""}:
        raise KafkaError(f"GroupId {described.group_id} is not a consumer group ({described.protocol_type}).")
    members = tuple(
        MemberDescription(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _assigned(member.member_assignment),
        )
        for member in described.members
    )
    return GroupDescription(described.group_id, described.group_state, described.protocol_data, coordinator, members)


def _consumer_group(described: DescribedConsumerGroup, coordinator: Endpoint) -> GroupDescription:
    members = tuple(
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _partitions(member.assignment),
            _partitions(member.target_assignment),
            member.member_epoch,
            # Kafka: DescribeConsumerGroupsHandler.
            None if member.member_type == -1 else member.member_type == 1,
        )
        for member in described.members
    )
    return GroupDescription(
        described.group_id,
        described.group_state,
        described.assignor_name,
        coordinator,
        members,
        described.group_epoch,
        described.assignment_epoch,
    )


def _partitions(assignment: DescribedAssignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    if not data:
        return ()
    try:
        return decode_assignment(data).partitions
    except ValueError:
        return ()
