"""What every function of the core is given beside the state: the time, the effects so far, and what never changes.

Every part of the consumer says how long it can wait (:meth:`StepContext.wake`) each time it is looked at; the smallest
of these is the next deadline. Nothing else remembers timers, so none can go stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rejoin.client.assignors import Assignor, RebalanceProtocol
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.effects import Effect
from rejoin.client.core.inputs import Millis, OffsetAndMetadata
from rejoin.journal.events.client import Offsets, Partitions
from rejoin.protocol.registry import Api
from rejoin.protocol.types import TopicPartition

RETRY_BACKOFF_JITTER = 0.2

LogEnd: TypeAlias = Callable[[TopicPartition, Millis], int]
"""The next offset of a partition's log at an instant."""


class StepContext:
    """One step: the time it takes place at and the effects it has had so far."""

    __slots__ = (
        "assignors",
        "config",
        "effects",
        "identity",
        "jitter",
        "log_end",
        "next_wake",
        "now",
        "rebalance_protocol",
        "versions",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        jitter: Callable[[], float],
        versions: Mapping[Api, int],
        log_end: LogEnd | None,
    ) -> None:
        self.config = config
        self.assignors = {assignor.name: assignor for assignor in assignors}
        self.rebalance_protocol = common_protocol(assignors)
        self.jitter = jitter
        self.versions = versions
        self.log_end = log_end
        self.identity: dict[str, Any] = {
            "client_id": config.client_id,
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
        }
        """The consumer's identity, as events carry it."""
        self.now: Millis = 0
        self.effects: list[Effect] = []
        self.next_wake: Millis | None = None

    def begin(self, now: Millis) -> None:
        """Start a step."""
        self.now = now
        self.effects = []
        self.next_wake = None

    def emit(self, effect: Effect) -> None:
        """Add an effect, or an event."""
        self.effects.append(effect)

    def wake(self, at: Millis) -> None:
        """Come back at this time at the latest."""
        if self.next_wake is None or at < self.next_wake:
            self.next_wake = at

    @property
    def group_id(self) -> str:
        group_id = self.config.group_id
        assert group_id is not None, "only a consumer with a group is a member"
        return group_id

    def version(self, api: Api) -> int:
        """The version this consumer speaks: the newest, unless it was given another."""
        return self.versions.get(api, api.max_version)

    def backoff(self, attempts: int) -> int:
        """The wait before retry number ``attempts``, counted from 0: exponential, with 20 % of jitter (KIP-580)."""
        # Kafka: ExponentialBackoff.
        config = self.config
        longest = max(config.retry_backoff_max_ms, config.retry_backoff_ms)
        term = min(config.retry_backoff_ms * 2 ** min(attempts, 30), longest)
        factor = 1 - RETRY_BACKOFF_JITTER + 2 * RETRY_BACKOFF_JITTER * self.jitter()
        return min(int(term * factor), longest)


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most advanced rebalance protocol that every assignor can serve. Raises ValueError when there is none."""
    shared = [
        protocol for protocol in RebalanceProtocol if all(protocol in assignor.protocols for assignor in assignors)
    ]
    if not shared:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"the assignors {names} have no rebalance protocol in common")
    return max(shared, key=lambda protocol: protocol.value)


def by_topic(partitions: Iterable[tuple[str, int]]) -> Partitions:
    """Partitions as events show them."""
    shown: Partitions = {}
    for topic, partition in sorted(partitions):
        shown.setdefault(topic, []).append(partition)
    return shown


def offsets_by_topic(offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Offsets:
    """Offsets as events show them."""
    shown: Offsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        shown.setdefault(topic, {})[partition] = offset if isinstance(offset, int) else offset.offset
    return shown
