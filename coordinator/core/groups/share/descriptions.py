"""ShareGroupDescribe: groups as their log has them. Kafka: KafkaApis.handleShareGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.coordinator.core.groups.modern.descriptions import GroupDescriptions
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.groups.share.assignor import SIMPLE
from rejoin.coordinator.core.groups.share.model.member import ShareMember
from rejoin.coordinator.core.groups.share.model.state import SHARE
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import utf16_sorted
from rejoin.protocol.messages.share.share_group_describe import (
    DescribedShareAssignment,
    DescribedShareGroup,
    DescribedShareGroupMember,
    DescribedShareTopic,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


class ShareGroupDescriptions(GroupDescriptions[DescribedShareGroup]):
    """Describes share groups."""

    kind = SHARE

    def describe(self, token: Token, request: ShareGroupDescribeRequest, context: Context) -> None:
        groups = self._describe_all(request.group_ids, request, context)
        self._ctx.reply(token, ShareGroupDescribeResponse(groups=groups))

    def _refused(self, group_id: str, error: ErrorCode, message: str | None = None) -> DescribedShareGroup:
        return DescribedShareGroup(group_id=group_id, error_code=error, error_message=message)

    def _read(self, shard: GroupsShard, group_id: str) -> DescribedShareGroup:
        group = shard.kinds.share.group(group_id)
        assert group is not None, "the group is of this kind"
        return DescribedShareGroup(
            group_id=group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=SIMPLE,
            members=tuple(self._member(member) for member in group.members.values()),
        )

    def _member(self, member: ShareMember) -> DescribedShareGroupMember:
        metadata = member.metadata
        return DescribedShareGroupMember(
            member_id=member.member_id,
            rack_id=metadata.rack_id,
            member_epoch=member.current.epoch,
            client_id=metadata.client_id,
            client_host=metadata.client_host,
            subscribed_topic_names=tuple(utf16_sorted(metadata.topic_names)),
            assignment=self._assignment(member),
        )

    def _assignment(self, member: ShareMember) -> DescribedShareAssignment:
        """Partitions of topics that still exist."""
        named = (
            (topic_id, self._topics.named(topic_id), indexes) for topic_id, indexes in member.current.assigned.items()
        )
        return DescribedShareAssignment(
            topic_partitions=tuple(
                DescribedShareTopic(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(indexes)))
                for topic_id, name, indexes in named
                if name is not None
            )
        )

    def _topics_in(self, described: DescribedShareGroup) -> Iterable[str]:
        return (topic.topic_name for member in described.members for topic in member.assignment.topic_partitions)
