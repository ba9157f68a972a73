"""Describe share groups and change their start offsets from outside (KIP-932).

Source: Kafka's KafkaAdminClient, as far as its share group tool needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rejoin.client.admin.admin import MOVED, Admin, GroupDescription, MemberDescription
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_group_describe import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from rejoin.protocol.messages.share.share_group_offsets import (
    AlteredOffsetsRequestPartition,
    AlteredOffsetsRequestTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeletedOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribedOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from rejoin.protocol.types import TopicPartition


class StartOffset(NamedTuple):
    """A share-partition as its coordinator has it; none where something is not known."""

    offset: int | None
    leader_epoch: int | None
    lag: int | None


class ShareGroupAdmin(Admin):
    """An admin client of share groups: start offsets take the place of committed ones."""

    listed_protocols = frozenset({"share"})

    async def describe(self, group_id: str) -> GroupDescription:
        """One share group; an unknown one, or one of another kind, is Dead."""

        async def ask(to: Endpoint) -> tuple[ErrorCode, GroupDescription]:
            request = ShareGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
            described = (await self._ask(request, ShareGroupDescribeResponse, to=to)).groups[0]
            if described.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
                return ErrorCode.NONE, GroupDescription(group_id, "Dead", "", to, ())
            return described.error_code, _share_group(described, to)

        return await self._at_coordinator(group_id, ask)

    async def start_offsets(self, group_id: str) -> dict[TopicPartition, StartOffset]:
        """Start offset and lag of each share-partition, by topic and partition."""
        request = DescribeShareGroupOffsetsRequest(
            groups=(DescribedOffsetsRequestGroup(group_id=group_id, topics=None),)
        )

        async def ask(to: Endpoint) -> tuple[ErrorCode, dict[TopicPartition, StartOffset]]:
            group = (await self._ask(request, DescribeShareGroupOffsetsResponse, to=to)).groups[0]
            found = {
                TopicPartition(topic.topic_name, each.partition_index): StartOffset(
                    _known(each.start_offset), _known(each.leader_epoch), _known(each.lag)
                )
                for topic in group.topics
                for each in topic.partitions
                if each.error_code is ErrorCode.NONE
            }
            return group.error_code, dict(sorted(found.items()))

        return await self._at_coordinator(group_id, ask)

    async def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """The known start offsets, by topic and partition."""
        found = await self.start_offsets(group_id)
        return {partition: each.offset for partition, each in found.items() if each.offset is not None}

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set start offsets of a group without members. Raises CodedError with the first error of any partition."""
        topics: dict[str, list[AlteredOffsetsRequestPartition]] = {}
        for (topic, partition), offset in sorted(offsets.items()):
            altered = AlteredOffsetsRequestPartition(partition_index=partition, start_offset=offset)
            topics.setdefault(topic, []).append(altered)
        request = AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=tuple(
                AlteredOffsetsRequestTopic(topic_name=topic, partitions=tuple(altered))
                for topic, altered in topics.items()
            ),
        )

        async def ask(to: Endpoint) -> tuple[ErrorCode, None]:
            response = await self._ask(request, AlterShareGroupOffsetsResponse, to=to)
            errors = [response.error_code]
            errors += [each.error_code for topic in response.responses for each in topic.partitions]
            return next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE), None

        await self._at_coordinator(group_id, ask)

    async def forget_topics(self, group_id: str, topics: Iterable[str]) -> tuple[ErrorCode, dict[str, ErrorCode]]:
        """Forget the offsets of topics: the error of the group as a whole, and of each topic."""
        request = DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=tuple(DeletedOffsetsRequestTopic(topic_name=topic) for topic in sorted(set(topics))),
        )

        async def ask(to: Endpoint) -> tuple[ErrorCode, DeleteShareGroupOffsetsResponse]:
            response = await self._ask(request, DeleteShareGroupOffsetsResponse, to=to)
            return response.error_code if response.error_code in MOVED else ErrorCode.NONE, response

        try:
            response = await self._at_coordinator(group_id, ask)
        except CodedError as problem:
            return problem.error, {}
        return response.error_code, {topic.topic_name: topic.error_code for topic in response.responses}


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _share_group(described: DescribedShareGroup, coordinator: Endpoint) -> GroupDescription:
    members = tuple(
        MemberDescription(
            member.member_id,
            None,
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            ),
            member_epoch=member.member_epoch,
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
