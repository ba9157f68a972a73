"""ConsumerGroupDescribe: groups as their log has them. Kafka: KafkaApis.handleConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rejoin.coordinator.core.groups.consumer.members.target import preferred_assignor
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember, CurrentAssignment
from rejoin.coordinator.core.groups.consumer.model.rules import ConsumerGroupRules
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.groups.modern.descriptions import GroupDescriptions
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context, Token
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


def _owned(current: CurrentAssignment, rules: ConsumerGroupRules) -> dict[str, set[int]]:
    """Partitions that a member owns, including those that it still has to revoke."""
    owned: dict[str, set[int]] = {}
    for partitions in (current.assigned, current.pending) if rules.shows_pending else (current.assigned,):
        for topic_id, epochs in partitions.items():
            owned.setdefault(topic_id, set()).update(epochs)
    return owned


class ConsumerGroupDescriptions(GroupDescriptions[DescribedConsumerGroup]):
    """Describes consumer groups."""

    kind = CONSUMER

    def describe(self, token: Token, request: ConsumerGroupDescribeRequest, context: Context) -> None:
        groups = self._describe_all(request.group_ids, request, context)
        self._ctx.reply(token, ConsumerGroupDescribeResponse(groups=groups))

    def _refused(self, group_id: str, error: ErrorCode, message: str | None = None) -> DescribedConsumerGroup:
        return DescribedConsumerGroup(group_id=group_id, error_code=error, error_message=message)

    def _read(self, shard: GroupsShard, group_id: str) -> DescribedConsumerGroup:
        kind = shard.kinds.consumer
        return self._described(kind.group(group_id), kind.default_assignor)

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
            assignment=self._assignment(_owned(member.current, group.rules)),
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

    def _topics_in(self, described: DescribedConsumerGroup) -> Iterable[str]:
        return (
            topic.topic_name
            for member in described.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        )
