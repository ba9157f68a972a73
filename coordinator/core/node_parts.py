"""The parts of a node, made and connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.apis import RulesByRequest
from rejoin.coordinator.core.cluster.leaders import Leaders
from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.fetch.offsets_topic import OffsetsTopic
from rejoin.coordinator.core.fetch.requests import FetchRequests
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.requests import GroupRequests
from rejoin.coordinator.core.groups.share.persister import LazyPersister
from rejoin.coordinator.core.inputs import (
    Millis,
)
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.quotas.client_rates import ClientRates
from rejoin.coordinator.core.quotas.muted import MutedConnections
from rejoin.coordinator.core.quotas.request_times import RequestTimes
from rejoin.coordinator.core.request_handlers import RequestHandlers
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata, Shards
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC


class NodeParts:
    """Parts of a node. Each part knows the others by its arguments here.

    Raises ``ValueError`` when a denial in the settings cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        new_id: Callable[[], str],
        *,
        topics_logged: bool = False,
        defers_events: bool = False,
        file_users: FileUsers = NO_USERS,
    ) -> None:
        self.settings = settings
        self._ctx = StepContext(settings, new_id, defers_events=defers_events, file_users=file_users)
        self.earliest_deadline: Callable[[], Millis | None] = self._ctx.deadlines.earliest
        """An instant before which nothing is due, or none; ``next_deadline`` may be later. Costs nothing."""
        self._cluster = ClusterMetadata()
        self._partitions = Partitions(self._ctx, self._cluster)
        self._topics = Topics(settings, new_id, self._ctx.emit, self._partitions)
        # A store of which nothing is said, as in transcripts and simulations, is like a log with followers.
        self._topics_logged = topics_logged
        self._groups = GroupShards(self._ctx, self._topics, self._has_followers)
        self._shards: dict[str, Shards[Any]] = {OFFSETS_TOPIC: self._groups}
        admission = Admission(RulesByRequest(), self._ctx, self._cluster)
        self._changes = TopicChanges(self._ctx, self._topics, self._groups, self._partitions, logged=topics_logged)
        offsets_topic = self._groups.observer = OffsetsTopic(self._ctx, self._groups)
        logs = self._logs = ReadableLogs(self._ctx, self._cluster, self._topics, self._partitions, offsets_topic)
        self._muted = MutedConnections(self._ctx)
        rates = ClientRates(self._ctx, self._muted)
        times = self._times = RequestTimes(self._ctx, rates)
        self._fetches = FetchRequests(self._ctx, logs, admission, rates, times)
        self._partitions.observe(self._fetches)
        offsets_topic.on_progress = self._fetches.on_progress
        self._changes.on_applied = self._on_topics_changed
        self._requests = RequestHandlers(
            self._ctx,
            admission,
            self._cluster,
            self._groups,
            self._topics,
            self._partitions,
            self._changes,
            Leaders(self._cluster, self._groups, self._topics, self._partitions),
            logs,
            GroupRequests(self._ctx, self._groups, admission),
            self._fetches,
            PeerRequests(self._ctx),
            rates,
        )
        self._groups.persister = LazyPersister(self._requests.group_persister)

    def _has_followers(self) -> bool:
        return not (self._topics_logged and self._cluster.is_one_broker)

    def _on_topics_changed(self) -> None:
        """Topics, settings, features or what is kept beside them have changed."""
        self._fetches.on_topics_changed()
        if (share := self._requests.share_if_used) is not None:
            share.topics_changed()
        if self._ctx.security.tokens.by_id:
            self._requests.tokens.look_later()
