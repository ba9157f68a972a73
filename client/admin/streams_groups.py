"""Describe streams groups and change their offsets from outside (KIP-1071).

Source: Kafka's KafkaAdminClient, as far as its streams group tool needs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.client.admin.admin import Admin, GroupDescription, MemberDescription
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_describe import (
    DescribedStreamsGroup,
    DescribedSubtopology,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from rejoin.protocol.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescription(GroupDescription):
    """A streams group; its tasks and topology are in the answer of its coordinator. Members have no partitions here."""

    described: DescribedStreamsGroup

    @property
    def subtopologies(self) -> tuple[DescribedSubtopology, ...]:
        """The parts of the topology."""
        topology = self.described.topology
        return (topology.subtopologies if topology is not None else None) or ()

    @property
    def input_topics(self) -> list[str]:
        """Topics that the application reads and does not write itself, in the order of the subtopologies."""
        return list(dict.fromkeys(topic for each in self.subtopologies for topic in each.source_topics))

    @property
    def internal_topics(self) -> list[str]:
        """Repartition and changelog topics of the application."""
        names = (
            topic.name
            for each in self.subtopologies
            for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
        )
        sources = set(self.input_topics)
        return [name for name in dict.fromkeys(names) if name not in sources]

    def partitions_of_active_tasks(self) -> list[TopicPartition]:
        """The partitions that members read, by topic and partition."""
        read = {
            each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
            for each in self.subtopologies
        }
        return sorted(
            {
                TopicPartition(topic, partition)
                for member in self.described.members
                for tasks in member.assignment.active_tasks
                for topic in read.get(tasks.subtopology_id, ())
                for partition in tasks.partitions
            }
        )


class StreamsGroupAdmin(Admin):
    """An admin client of streams groups. Offsets are those of input topics."""

    listed_protocols = frozenset({"streams"})

    async def describe(self, group_id: str, *, topology: bool = False) -> StreamsGroupDescription:
        """One streams group. Raises CodedError for an unknown one, and for one of another kind."""

        def request(version: int) -> StreamsGroupDescribeRequest:
            asked = StreamsGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
            return asked.model_copy(update={"include_topology_description": topology}) if version else asked

        async def ask(to: Endpoint) -> tuple[ErrorCode, StreamsGroupDescription]:
            described = (await self._ask(request, StreamsGroupDescribeResponse, to=to)).groups[0]
            if described.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
                raise CodedError(described.error_code, described.error_message or "")
            return described.error_code, _described(described, to)

        return await self._at_coordinator(group_id, ask)

    async def committed_input(self, group_id: str) -> dict[TopicPartition, int]:
        """Committed offsets of the input topics, by topic and partition."""
        inputs = set((await self.describe(group_id)).input_topics)
        committed = await self.committed(group_id)
        return {partition: offset for partition, offset in committed.items() if partition.topic in inputs}


def _described(described: DescribedStreamsGroup, coordinator: Endpoint) -> StreamsGroupDescription:
    members = tuple(
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            (),
            member_epoch=member.member_epoch,
        )
        for member in described.members
    )
    return StreamsGroupDescription(
        described.group_id,
        described.group_state,
        described.assignor_name or "",
        coordinator,
        members,
        described.group_epoch,
        described.assignment_epoch,
        described=described,
    )
