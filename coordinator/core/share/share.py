"""The objects of one node for share groups: leading share-partitions, and coordinating their state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.dead_letters import PRODUCE_VERSION, DeadLetters
from rejoin.coordinator.core.share.led_partitions import LedSharePartitions
from rejoin.coordinator.core.share.offsets import ShareOffsetRequests
from rejoin.coordinator.core.share.requests import ShareRequests
from rejoin.coordinator.core.share.timers import ShareTimer
from rejoin.coordinator.core.share_state.coordinator import ShareCoordinator
from rejoin.coordinator.core.share_state.group_persister import GroupPersister
from rejoin.coordinator.core.share_state.persister import Persister
from rejoin.coordinator.core.share_state.requests import ShareStateRequests
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.types import TopicIdPartition

DEAD_LETTERS: str = "dead-letters"
"""The client id of what a node writes for share groups."""


class Share:
    """Everything about share-partitions."""

    def __init__(
        self,
        ctx: StepContext,
        admission: Admission,
        cluster: ClusterMetadata,
        groups: GroupShards,
        topics: Topics,
        partitions: Partitions,
        changes: TopicChanges,
        logs: ReadableLogs,
        peers: PeerRequests,
        produce: Callable[[Token, ProduceRequest, Context], None],
        placement: Callable[[], Placement],
    ) -> None:
        self.coordinator = ShareCoordinator(ctx, cluster, topics, changes, partitions, placement)
        self.state_requests = ShareStateRequests(ctx, self.coordinator, admission, peers)
        self.persister = Persister(ctx, peers, self.coordinator)
        self.group_persister = GroupPersister(self.persister)
        self.offsets = ShareOffsetRequests(ctx, groups, topics, logs, self.persister, peers, admission)
        self.dead_letters = DeadLetters(ctx, topics, changes, partitions, logs, peers, placement)
        self.led = LedSharePartitions(ctx, topics, logs, self.persister, self.dead_letters)
        self.requests = ShareRequests(ctx, admission, logs, topics, self.led)
        self._produce = produce
        peers.serve(ProduceRequest, self._produce_own)

    def _produce_own(self, token: Token, request: Any) -> None:
        self._produce(token, request, Context(PRODUCE_VERSION, DEAD_LETTERS, by_operator=True))

    def fire(self, timer: TimerKey) -> None:
        """A timer is due."""
        match timer.kind:
            case ShareTimer.RECORD_LOCK:
                self.led.timer_fired(timer)
            case ShareTimer.PERSISTER:
                self.persister.timer_fired(timer)
            case ShareTimer.DEAD_LETTERS:
                self.dead_letters.timer_fired(timer)
            case ShareTimer.FETCH | ShareTimer.SESSION_LIMIT:
                self.requests.timer_fired(timer)
            case _:
                self.coordinator.fire(timer)

    def on_progress(self, partition: TopicIdPartition) -> None:
        """A data partition has changed."""
        self.coordinator.on_progress(partition)
        self.led.on_progress(partition)

    def topics_changed(self) -> None:
        """Topics, their settings or features have changed."""
        self.coordinator.topics_changed()
        self.requests.feature_changed()
