"""DescribeShareGroupOffsets: where share-partitions begin, and how many records they have left.

The values are those that were last written. Kafka: GroupCoordinatorService.describeShareGroupOffsets, KIP-1226.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.share.sessions import SharedPartition
from rejoin.coordinator.core.share_state.group_persister import Results
from rejoin.coordinator.core.share_state.persister import Persister
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rejoin.protocol.messages.share.share_group_offsets import (
    DescribedOffsetsGroup,
    DescribedOffsetsPartition,
    DescribedOffsetsRequestGroup,
    DescribedOffsetsTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from rejoin.protocol.messages.share.share_group_state import PartitionSummary

UNKNOWN: Final = -1
LATEST: Final = -1
LIST_OFFSETS_VERSION: Final = 7
FIRST_LEADER_EPOCH: Final = 0

OnGroup: TypeAlias = Callable[[DescribedOffsetsGroup], None]
OnEnd: TypeAlias = Callable[[int | None], None]


class _Wanted(NamedTuple):
    """A partition that is asked for, and why it cannot be looked at."""

    topic: str
    shared: SharedPartition
    error: ErrorCode = ErrorCode.NONE


class ShareOffsetRequests:
    """Describes the offsets of share groups that are coordinated here."""

    def __init__(
        self,
        ctx: StepContext,
        groups: GroupShards,
        topics: Topics,
        logs: ReadableLogs,
        persister: Persister,
        peers: PeerRequests,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._logs = logs
        self._persister = persister
        self._peers = peers
        self._admission = admission

    def describe(self, token: Token, request: DescribeShareGroupOffsetsRequest, context: Context) -> None:
        pending = _PendingGroups(self._ctx, token, len(request.groups))
        for number, group in enumerate(request.groups):
            self._describe_group(request, group, context, partial(pending.done, number))
        pending.begun()

    def _describe_group(
        self,
        request: DescribeShareGroupOffsetsRequest,
        group: DescribedOffsetsRequestGroup,
        context: Context,
        on_end: OnGroup,
    ) -> None:
        machine = self._admission.admit(self._groups, request, context, group.group_id)
        if isinstance(machine, ErrorCode):
            on_end(DescribedOffsetsGroup(group_id=group.group_id, error_code=machine))
            return
        wanted = self._wanted(request, group, machine, context)
        if not wanted:
            on_end(DescribedOffsetsGroup(group_id=group.group_id))
            return
        results: Results = Results(
            [each.shared for each in wanted], partial(self._described, group.group_id, wanted, on_end)
        )
        for each in wanted:
            on_result = partial(results.done, each.shared)
            if each.error is not ErrorCode.NONE or each.topic not in self._topics:
                on_result(_unknown(each.shared.partition, each.error))
                continue
            on_summary = partial(self._summarized, each, on_result)
            self._persister.summary(group.group_id, each.shared, FIRST_LEADER_EPOCH, on_summary)

    def _wanted(
        self,
        request: DescribeShareGroupOffsetsRequest,
        group: DescribedOffsetsRequestGroup,
        machine: GroupsShard,
        context: Context,
    ) -> list[_Wanted]:
        """The partitions to describe. A topic that is not there has no id, and all of its partitions are unknown."""
        found = []
        if group.topics is None:
            share_group = machine.groups.get(group.group_id)
            states = share_group.state_partitions if isinstance(share_group, ShareGroup) else None
            for topic_id, state in ({} if states is None else states.initialized).items():
                name = self._topics.named(topic_id)
                if name is not None and self._admission.allows(type(request), context, Resource.TOPIC, name):
                    found += [_Wanted(name, SharedPartition(topic_id, index)) for index in sorted(state.partitions)]
            return found
        for number, topic in enumerate(group.topics):
            error = self._admission.authorize(request, context, Resource.TOPIC, topic.topic_name)
            is_there = topic.topic_name in self._topics and error is ErrorCode.NONE
            topic_id = self._topics.id_of(topic.topic_name) if is_there else f"{number}"
            found += [
                _Wanted(topic.topic_name, SharedPartition(topic_id, index), error)
                for index in dict.fromkeys(topic.partitions)
            ]
        return found

    def _summarized(
        self, wanted: _Wanted, on_result: Callable[[DescribedOffsetsPartition], None], summary: PartitionSummary
    ) -> None:
        index = wanted.shared.partition
        start, count = summary.start_offset, summary.delivery_complete_count
        if summary.error_code is not ErrorCode.NONE:
            # Kafka: the error is not passed on.
            on_result(_unknown(index, ErrorCode.NONE))
        elif UNKNOWN in (start, count):
            on_result(_described(index, summary, UNKNOWN))
        else:
            self._end_of(wanted, lambda end: on_result(_described(index, summary, _lag(end, start, count))))

    def _end_of(self, wanted: _Wanted, on_end: OnEnd) -> None:
        """The end of a log, which another node may lead."""
        topic, (topic_id, index) = wanted.topic, wanted.shared
        found = self._logs.find(topic, index, topic_id)
        if not isinstance(found, ErrorCode):
            on_end(found.log.high_watermark)
            return
        leader, _ = self._logs.leader_of(topic, index)
        if leader is None or self._peers.is_own(leader.node_id):
            on_end(None)
            return
        asked = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
        self._peers.ask(leader.node_id, request, LIST_OFFSETS_VERSION, partial(_listed, on_end))

    @staticmethod
    def _described(
        group_id: str,
        wanted: list[_Wanted],
        on_end: OnGroup,
        results: dict[SharedPartition, DescribedOffsetsPartition],
    ) -> None:
        topics: dict[tuple[str, str], list[DescribedOffsetsPartition]] = {}
        for each in wanted:
            topics.setdefault((each.topic, each.shared.topic_id), []).append(results[each.shared])
        described = [
            DescribedOffsetsTopic(topic_name=name, topic_id=topic_id, partitions=tuple(partitions))
            if not topic_id.isdigit()
            else DescribedOffsetsTopic(topic_name=name, partitions=tuple(partitions))
            for (name, topic_id), partitions in topics.items()
        ]
        on_end(DescribedOffsetsGroup(group_id=group_id, topics=tuple(described)))


def _lag(end: int | None, start: int, count: int) -> int:
    return UNKNOWN if end is None else end - start - count


def _unknown(index: int, error: ErrorCode) -> DescribedOffsetsPartition:
    return DescribedOffsetsPartition(partition_index=index, start_offset=UNKNOWN, error_code=error)


def _described(index: int, summary: PartitionSummary, lag: int) -> DescribedOffsetsPartition:
    return DescribedOffsetsPartition(
        partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=lag
    )


def _listed(on_end: OnEnd, response: Response | None) -> None:
    if isinstance(response, ListOffsetsResponse):
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code is ErrorCode.NONE:
                    on_end(each.offset)
                    return
    on_end(None)


class _PendingGroups:
    """A request, until the last of its groups is described."""

    def __init__(self, ctx: StepContext, token: Token, count: int) -> None:
        self._ctx = ctx
        self._token = token
        self._groups: list[DescribedOffsetsGroup] = [DescribedOffsetsGroup()] * count
        self._left = count + 1

    def begun(self) -> None:
        """All groups are asked."""
        self._count_down()

    def done(self, number: int, group: DescribedOffsetsGroup) -> None:
        """A group is described."""
        self._groups[number] = group
        self._count_down()

    def _count_down(self) -> None:
        self._left -= 1
        if not self._left:
            self._ctx.reply(self._token, DescribeShareGroupOffsetsResponse(groups=tuple(self._groups)))
