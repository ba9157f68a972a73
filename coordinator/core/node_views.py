"""Questions about a node, which change nothing: views of groups, offsets, topics, logs and timers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core import describe
from rejoin.coordinator.core.groups.group import Group, GroupKind
from rejoin.coordinator.core.inputs import (
    Millis,
    TopicsRecords,
)
from rejoin.coordinator.core.node_parts import NodeParts
from rejoin.coordinator.core.security.client_quotas import QuotaEntity
from rejoin.coordinator.core.security.delegation_tokens import DelegationTokens
from rejoin.coordinator.core.security.scram_credentials import ScramCredentials
from rejoin.coordinator.core.views import (
    GroupView,
    LogSlice,
    NodeView,
    OffsetView,
    ShareStateView,
    TimerView,
    TopicView,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition


class NodeViews(NodeParts):
    """A node as it can be looked at."""

    @property
    def effective_settings(self) -> Settings:
        """The settings of the start, with what was changed since."""
        return self._ctx.settings

    @property
    def client_quotas(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """The limits of users, client ids and addresses now."""
        return self._ctx.security.client_quotas.limits

    @property
    def scram_credentials(self) -> ScramCredentials:
        """Users of SCRAM that clients have made, and those that they have removed."""
        return self._ctx.security.scram

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """Tokens by which clients can log in."""
        return self._ctx.security.tokens

    def describe(self) -> NodeView:
        """The node in short."""
        return describe.of_node(self.settings.broker_id, self._cluster, self._groups)

    def group_ids(self) -> list[str]:
        """Every group of this node, sorted."""
        return sorted(group.group_id for group in self._groups.groups())

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        """The node that leads each partition, as far as this one knows."""
        return self._cluster.leaders

    def describe_group(self, group_id: str) -> GroupView | None:
        """One group, or none where this node has no such group."""
        found = self._kind_and_group(group_id)
        return None if found is None else found[0].view(found[1])

    def summarize_group(self, group_id: str) -> GroupView | None:
        """One group for callers that look at it often: a streams group without its topology and list of tasks."""
        found = self._kind_and_group(group_id)
        return None if found is None else found[0].summary(found[1])

    def _kind_and_group(self, group_id: str) -> tuple[GroupKind[Any], Group] | None:
        shard = self._groups.machine_of(group_id)
        group = None if shard is None else shard.groups.get(group_id)
        return None if shard is None or group is None else (shard.kind_of(group), group)

    def describe_offsets(self, group_id: str, now: Millis) -> list[OffsetView]:
        """The committed offsets of a group, by topic and partition."""
        offsets = self._groups.offsets(group_id)
        return [] if offsets is None else describe.of_offsets(offsets, self._topics, self._partitions, now)

    def share_state(self, group_id: str, topic: str, partition: int, now: Millis) -> ShareStateView | None:
        """A share-partition, or none where it is not in memory here: nothing was fetched from it."""
        share = self._requests.share_if_used
        led = None if share is None else share.led.named(group_id, topic, partition)
        return None if led is None else describe.of_share_partition(led, now)

    def share_states(self, group_id: str, now: Millis) -> list[ShareStateView]:
        """The share-partitions of a group that are in memory here, by topic and partition."""
        share = self._requests.share_if_used
        led = [] if share is None else [each for each in share.led.all() if each.group_id == group_id]
        found = [describe.of_share_partition(each, now) for each in led]
        return sorted(found, key=lambda each: (each.topic, each.partition))

    def has_share_session(self, group_id: str, member_id: str) -> bool:
        """Whether a member has a share session here."""
        share = self._requests.share_if_used
        return share is not None and share.requests.has_session(group_id, member_id)

    def describe_topics(self, now: Millis) -> list[TopicView]:
        """Every topic, by name."""
        return self._topics.describe(now)

    def compacted_topics(self) -> list[str]:
        """The names of the topics whose logs are compacted."""
        return self._partitions.compacted_topics()

    def read_log(self, topic: str, partition: int, offset: int, max_bytes: int, now: Millis) -> LogSlice | ErrorCode:
        """The batches of a partition from an offset on, or why they cannot be read here."""
        self._ctx.now = now
        found = self._logs.find(topic, partition)
        if isinstance(found, ErrorCode):
            return found
        log, end = found.log, found.log.high_watermark
        offset = max(offset, log.log_start_offset)
        records = log.read(offset, max_bytes, end, at_least_one=True) if offset < end else b""
        return LogSlice(bytes(records), log.log_start_offset, end)

    def timers(self) -> list[TimerView]:
        """Every timer, in the order in which they fire."""
        return [describe.of_timer(key, at) for at, key in self._ctx.deadlines.due()]

    def due(self, now: Millis) -> list[TimerView]:
        """The timers that fire at ``now`` or before, in the order in which they do."""
        return [describe.of_timer(key, at) for at, key in self._ctx.deadlines.due(now)]

    def topic_ids(self) -> list[str]:
        """The id of every topic, by name."""
        return [topic.topic_id for _, topic in sorted(self._topics.by_name.items())]

    def damaged_partitions(self) -> list[TopicPartition]:
        """The data partitions of this node whose logs cannot be read, in order."""
        return self._partitions.damaged()

    def topic_named(self, topic_id: str) -> str | None:
        """The name of the topic with this id, or none where there is no such topic."""
        return self._topics.named(topic_id)

    @property
    def topics_version(self) -> int:
        """How far the topics log is known; 0 where there is none."""
        return self._changes.version

    @property
    def topics_stored(self) -> bool:
        """Whether every change of the topics that was wanted here is stored, or refused."""
        return self._changes.is_empty

    def topics_records(self) -> TopicsRecords:
        """All topics as they are, as the topics log could keep them."""
        return (*self._ctx.features.records(), *self._topics.records(), *self._ctx.security.records())
