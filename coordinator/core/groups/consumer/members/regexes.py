"""Subscriptions by regular expression: RE2's syntax, matched against whole names of topics.

All expressions of a group are resolved together and aside: the node asks for it with ``ResolveRegexes`` and goes on.
Only heartbeats start a resolution. Kafka: GroupMetadataManager.maybeUpdateRegularExpressions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.core.effects import ResolveRegexes
from rejoin.coordinator.core.groups.consumer.model.changes import Changes, Writes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata
from rejoin.coordinator.core.groups.consumer.model.records import epoch_record, regex_record
from rejoin.coordinator.core.groups.consumer.model.subscriptions import ResolvedRegex
from rejoin.coordinator.core.groups.consumer.regex_resolution import is_valid
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.epochs import REFRESH_MS, RefreshDeadline
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, metadata_hash
from rejoin.coordinator.core.inputs import Context, RegexesResolved
from rejoin.coordinator.core.runtime.appends import ShardLog
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import Cause
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.groups.consumer_groups import regular_expression_record

SHORTEST_PAUSE_MS: Final = 10_000
"""Between two resolutions of a group."""


class RegexChange(NamedTuple):
    """Change of a member's regular expression by a heartbeat."""

    changed: bool = False
    bumps_epoch: bool = False
    """Whether the topics of the new expression are known already."""
    wants_resolution: bool = False
    dropped: frozenset[str] = frozenset()
    """The topics of the old expression, if no member has it any more. The member gives them up with its next step."""


UNCHANGED: Final = RegexChange()


class Regexes:
    """The expressions of one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        log: ShardLog,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        writes: Writes,
    ) -> None:
        self._ctx = ctx
        self._log = log
        self._groups = groups
        self._topics = topics
        self._writes = writes
        self._authorizer = ctx.security.authorizer
        self._running: dict[str, None] = {}
        """The groups whose expressions are being resolved. Kafka: one that is deleted meanwhile stays until the end."""
        self.created_at = topics.version
        """The version of the topics when one was created last, or when this shard began."""

    def subscribe(
        self, group: ConsumerGroup, before: ConsumerMemberMetadata, after: ConsumerMemberMetadata, changes: Changes
    ) -> RegexChange | ErrorCode:
        """A member may have another expression; the counts of the group have it already."""
        old, new = before.topic_regex, after.topic_regex
        if old == new:
            return UNCHANGED
        subscriptions = group.subscriptions
        dropped: frozenset[str] = frozenset()
        if old and old not in subscriptions.regexes:
            changes.defer(regular_expression_record(group.group_id, old, None))
            if old in subscriptions.resolved:
                dropped = subscriptions.resolved[old].topics
        if not new:
            return RegexChange(changed=True, bumps_epoch=True, dropped=dropped)
        if subscriptions.regexes[new] == 1:
            if not is_valid(new):
                return ErrorCode.INVALID_REGULAR_EXPRESSION
            return RegexChange(changed=True, wants_resolution=True, dropped=dropped)
        return RegexChange(changed=True, bumps_epoch=new in subscriptions.resolved, dropped=dropped)

    def resolve_if_due(self, group: ConsumerGroup, context: Context, *, wanted: bool) -> None:
        """Ask for a resolution, if one is wanted and none is under way."""
        subscriptions = group.subscriptions
        if not subscriptions.regexes or group.group_id in self._running:
            return
        now, resolved = self._ctx.now, subscriptions.resolved
        last = next(iter(resolved.values()), None)
        if last is not None and now <= last.resolved_at + SHORTEST_PAUSE_MS:
            return
        refresh_ms = self._ctx.settings.group_consumer_regex_refresh_interval_ms
        is_due = (
            wanted
            or len(subscriptions.regexes) != len(resolved)
            or last is None
            or self.created_at > last.version
            or now > last.resolved_at + refresh_ms
        )
        if is_due:
            self._running[group.group_id] = None
            self._ctx.effects.append(
                ResolveRegexes(
                    self._log.partition,
                    self._log.epoch,
                    group.group_id,
                    tuple(subscriptions.regexes),
                    self._visible(context),
                    self._topics.version,
                )
            )

    def _visible(self, context: Context) -> tuple[str, ...]:
        """The topics that the client may describe; the others are left out silently."""
        names = self._topics.names()
        if self._authorizer.allows_everything:
            return tuple(names)
        allows = self._authorizer.allows
        return tuple(name for name in names if allows(context, Operation.DESCRIBE, Resource.TOPIC, name))

    def resolved(self, what: RegexesResolved) -> None:
        """The topics of a group's expressions have been found."""
        self._running.pop(what.group_id, None)
        group = self._groups.get(what.group_id)
        if what.topics is None or not isinstance(group, ConsumerGroup):
            return
        changes = self._writes.begin()
        changes.cause = Cause(cause="regex-resolved")
        is_changed = False
        for regex, topics in what.topics.items():
            if regex not in group.subscriptions.regexes:
                continue
            before = group.subscriptions.resolved.get(regex)
            is_changed |= topics != (frozenset() if before is None else before.topics)
            changes.resolves_regexes |= before is None or topics != before.topics
            found = ResolvedRegex(frozenset(topics), what.version, self._ctx.now)
            changes.write(regex_record(group.group_id, regex, found))
        new_hash = metadata_hash(group.subscriptions.topics, self._topics)
        if is_changed or new_hash != group.metadata_hash:
            changes.write(epoch_record(group.group_id, group.next_epoch, new_hash))
            group.refresh = RefreshDeadline(self._ctx.now + REFRESH_MS, group.epoch)
        self._writes.commit(group.group_id, changes, lambda _: None)
