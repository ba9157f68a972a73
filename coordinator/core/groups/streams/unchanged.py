"""Heartbeats of streams groups that change nothing, answered without a look at the steps of the others.

As ``ConsumerHeartbeats.answer_unchanged``. What the answer depends on is checked once and kept: for the group until
``quiet_until``, for the member as its ``unchanged`` answer. Each change of a group, and each heartbeat that is not
answered here, ends the first.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.epochs import REFRESH_MS
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, metadata_hash
from rejoin.coordinator.core.groups.streams.group_settings import StreamsSettings
from rejoin.coordinator.core.groups.streams.members.responses import StreamsResponses
from rejoin.coordinator.core.groups.streams.members.target import StreamsTargets
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest

_news: Final = attrgetter(
    *("active_tasks", "standby_tasks", "warmup_tasks", "task_offsets", "task_end_offsets"),
    *("topology", "process_id", "user_endpoint", "client_tags", "rack_id"),
    *("rebalance_timeout_ms", "shutdown_application"),
)
_NO_NEWS: Final = (*(None,) * 10, -1, False)
"""The fields of a heartbeat that has nothing new."""


class UnchangedHeartbeats:
    """Answers the heartbeats without change of one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        writes: Writes[RecordChanges],
        targets: StreamsTargets,
        responses: StreamsResponses,
        settings: StreamsSettings,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._writes = writes
        self._targets = targets
        self._responses = responses
        self._settings = settings

    def answer(self, token: Token, request: StreamsGroupHeartbeatRequest, context: Context) -> bool:
        """Answer a heartbeat that only says that its member is there, if there is nothing to say to it."""
        group = self._groups.get(request.group_id)
        if type(group) is not StreamsGroup:
            return False
        member = group.members.get(request.member_id)
        if member is None or request.member_epoch != group.assignment_epoch:
            return False
        if not _says_nothing_new(member, request, context):
            return False
        endpoint_epoch = request.endpoint_information_epoch
        if endpoint_epoch != group.memory.endpoint_epoch:
            return False
        ctx = self._ctx
        if ctx.now >= group.quiet_until and not self._is_quiet(group):
            return False
        reply = member.unchanged
        if reply is None or reply.endpoint_information_epoch != endpoint_epoch:
            if not self._has_arrived(group, member):
                return False
            reply = member.unchanged = self._responses.unchanged(group, member)
        ctx.deadlines.set(member.session_key, ctx.now + self._settings.session_timeout_ms(group.group_id))
        ctx.reply(token, reply)
        return True

    def _has_arrived(self, group: StreamsGroup, member: StreamsMember) -> bool:
        """Whether a member has all that it should have, and no status is its own."""
        current, target = member.current, group.targets.get(member.member_id)
        return (
            current.is_reconciled_to(group.assignment_epoch)
            and member.metadata.topology_epoch == group.validated_topology_epoch
            and target == current.assigned.without_epochs()
            and not self._responses.missing_tags(group.group_id, member)
        )

    def _is_quiet(self, group: StreamsGroup) -> bool:
        """Whether a heartbeat that says nothing new changes nothing, as long as nothing else does."""
        memory, topology, now = group.memory, group.topology, self._ctx.now
        is_quiet = (
            group.epoch == group.assignment_epoch
            and topology is not None
            and topology.epoch == group.validated_topology_epoch
            and memory.configured is not None
            and memory.configured.is_ready
            and memory.shutdown_requested_by is None
            and not group.needs_epoch
            and not self._writes.is_writing(group.group_id)
            and not self._targets.is_in_initial_delay(group)
            and self._settings.assignment_configs(group.group_id) == group.assignment_configs
        )
        if is_quiet and group.refresh.is_due(group.epoch, now):
            # Kafka: a group that its first heartbeat made has no deadline, and each heartbeat looks at its topics.
            is_quiet = metadata_hash(group.required_topics(), self._topics) == group.metadata_hash
        if is_quiet:
            group.quiet_until = group.refresh.at if group.refresh.at > now else now + REFRESH_MS
        return is_quiet


def _says_nothing_new(member: StreamsMember, request: StreamsGroupHeartbeatRequest, context: Context) -> bool:
    """Whether a heartbeat only says that the member is there."""
    metadata = member.metadata
    return (
        0 < request.member_epoch == member.current.epoch
        and _news(request) == _NO_NEWS
        and request.instance_id == metadata.instance_id
        and context.client_id == metadata.client_id
        and context.client_host == metadata.client_host
    )
