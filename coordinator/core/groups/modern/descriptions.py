"""Descriptions of groups by the request of their own kind: groups as their log has them.

Kafka: KafkaApis.handleConsumerGroupDescribe, handleShareGroupDescribe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.repeated import computed_once
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Struct

D = TypeVar("D", bound=Struct)
"""A description of a group."""


class GroupDescriptions(ABC, Generic[D]):
    """Describes the groups of one kind."""

    kind: str
    """Which, as ListGroups names it."""

    def __init__(self, ctx: StepContext, shards: GroupShards, topics: TopicsMetadata, admission: Admission) -> None:
        self._ctx = ctx
        self._shards = shards
        self._topics = topics
        self._admission = admission

    @abstractmethod
    def _refused(self, group_id: str, error: ErrorCode, message: str | None = None) -> D:
        """The description of a group that cannot be described."""

    @abstractmethod
    def _read(self, shard: GroupsShard, group_id: str) -> D:
        """A group of this kind, as it is now."""

    @abstractmethod
    def _topics_in(self, described: D) -> Iterable[str]:
        """The topics that a description shows."""

    def _describe_all(self, group_ids: tuple[str, ...], request: Any, context: Context) -> tuple[D, ...]:
        """A description of each group."""
        return computed_once(group_ids, lambda group_id: self._describe(group_id, request, context))

    def _describe(self, group_id: str, request: Any, context: Context) -> D:
        shard = self._admission.admit(self._shards, request, context, group_id)
        if isinstance(shard, ErrorCode):
            return self._refused(group_id, shard)
        found: list[D] = []
        shard.kinds[self.kind].read_committed(group_id, partial(self._find, shard, group_id, found))
        if not found:
            message = f"Group {group_id} is not a {self.kind} group or not found."
            return self._refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)
        described = found[0]
        if not self._sees_topics(described, type(request), context):
            message = "The group has described topic(s) that the client is not authorized to describe."
            return self._refused(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
        if not request.include_authorized_operations:
            return described
        operations = self._admission.authorized_operations(context, Resource.GROUP, group_id)
        return described.model_copy(update={"authorized_operations": operations})

    def _find(self, shard: GroupsShard, group_id: str, found: list[D]) -> None:
        group = shard.groups.get(group_id)
        if group is not None and group.kind == self.kind:
            found.append(self._read(shard, group_id))

    def _sees_topics(self, described: D, api: type[Request], context: Context) -> bool:
        names = dict.fromkeys(self._topics_in(described))
        return all(self._admission.allows(api, context, Resource.TOPIC, name) for name in names)
