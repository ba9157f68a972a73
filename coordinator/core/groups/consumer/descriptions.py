"""ConsumerGroupDescribe: groups as their log has them. Kafka: KafkaApis.handleConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rejoin.coordinator.core.groups.consumer.members.target import preferred_assignor
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember, CurrentAssignment
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.runtime.repeated import computed_once
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import utf16_sorted
from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
    DescribedTopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def _owned(current: CurrentAssignment) -> dict[str, set[int]]:
    """Partitions that a member owns, including those that it still has to revoke."""
    owned: dict[str, set[int]] = {}
    for partitions in (current.assigned, current.pending):
        for topic_id, epochs in partitions.items():
            owned.setdefault(topic_id, set()).update(epochs)
    return owned


class ConsumerGroupDescriptions:
    """Describes consumer groups."""

    def __init__(self, ctx: StepContext, shards: GroupShards, topics: TopicsMetadata, admission: Admission) -> None:
        self._ctx = ctx
        self._shards = shards
        self._topics = topics
        self._admission = admission

    def describe(self, token: Token, request: ConsumerGroupDescribeRequest, context: Context) -> None:
        groups = computed_once(request.group_ids, lambda group_id: self._describe(group_id, request, context))
        self._ctx.reply(token, ConsumerGroupDescribeResponse(groups=groups))

    def _describe(
        self, group_id: str, request: ConsumerGroupDescribeRequest, context: Context
    ) -> DescribedConsumerGroup:
        shard = self._admission.admit(self._shards, request, context, group_id)
        if isinstance(shard, ErrorCode):
            return DescribedConsumerGroup(group_id=group_id, error_code=shard)
        described = self._committed(shard, group_id)
        if described is None:
            return DescribedConsumerGroup(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {group_id} is not a consumer group or not found.",
            )
        if not self._sees_topics(described, context):
            return DescribedConsumerGroup(
                group_id=group_id,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message="The group has described topic(s) that the client is not authorized to describe.",
            )
        if not request.include_authorized_operations:
            return described
        operations = self._admission.authorized_operations(context, Resource.GROUP, group_id)
        return described.model_copy(update={"authorized_operations": operations})

    def _committed(self, shard: GroupsShard, group_id: str) -> DescribedConsumerGroup | None:
        found: list[DescribedConsumerGroup] = []

        def read() -> None:
            group = shard.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                found.append(self._described(group, shard.kinds.consumer.default_assignor))

        shard.kinds.consumer.writes.committed(group_id, read)
        return found[0] if found else None

    def _described(self, group: ConsumerGroup, default_assignor: str) -> DescribedConsumerGroup:
        return DescribedConsumerGroup(
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=preferred_assignor(group.subscriptions.server_assignors) or default_assignor,
            members=tuple(self._member(group, member) for member in group.members.values()),
        )

    def _member(self, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumerGroupMember:
        metadata = member.metadata
        return DescribedConsumerGroupMember(
            member_id=member.member_id,
            instance_id=metadata.instance_id,
            rack_id=metadata.rack_id,
            member_epoch=member.current.epoch,
            client_id=metadata.client_id,
            client_host=metadata.client_host,
            subscribed_topic_names=tuple(utf16_sorted(metadata.topic_names)),
            subscribed_topic_regex=metadata.topic_regex,
            assignment=self._assignment(_owned(member.current)),
            target_assignment=self._assignment(group.target_of(member.member_id)),
            member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
        )

    def _assignment(self, partitions: Mapping[str, Collection[int]]) -> DescribedAssignment:
        """Partitions of topics that still exist."""
        named = ((topic_id, self._topics.named(topic_id), indexes) for topic_id, indexes in partitions.items())
        return DescribedAssignment(
            topic_partitions=tuple(
                DescribedTopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(indexes)))
                for topic_id, name, indexes in named
                if name is not None
            )
        )

    def _sees_topics(self, described: DescribedConsumerGroup, context: Context) -> bool:
        names: Iterable[str] = dict.fromkeys(
            topic.topic_name
            for member in described.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        )
        allows = self._admission.allows
        return all(allows(ConsumerGroupDescribeRequest, context, Resource.TOPIC, name) for name in names)
