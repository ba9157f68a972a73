"""The context of every function of the consumer's core: the step, and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rejoin.client.assignors import Assignor, RebalanceProtocol
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.base_context import BaseContext
from rejoin.client.core.effects import Effect
from rejoin.client.core.inputs import Millis, OffsetAndMetadata, OffsetReset, Reset
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.events.client import Offsets
from rejoin.protocol.registry import Api
from rejoin.protocol.types import TopicPartition

Deserializer: TypeAlias = Callable[[bytes], Any]

LogEnd: TypeAlias = Callable[[TopicPartition, Millis], int | None]
"""The next offset of a partition's log at an instant."""


class StepContext(BaseContext[Effect]):
    """A step of a consumer."""

    __slots__ = ("assignors", "config", "deserializers", "identity", "log_end", "reads_records", "rebalance_protocol")

    def __init__(
        self,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        jitter: Callable[[], float],
        versions: Mapping[Api, int],
        log_end: LogEnd | None,
        reads_records: bool = False,
        deserializers: tuple[Deserializer | None, Deserializer | None] = (None, None),
    ) -> None:
        super().__init__(config.retry_backoff_ms, config.retry_backoff_max_ms, jitter, versions)
        self.config = config
        self.assignors = {assignor.name: assignor for assignor in assignors}
        self.rebalance_protocol = common_protocol(assignors)
        self.log_end = log_end
        self.reads_records = reads_records
        self.deserializers = deserializers
        self.identity: dict[str, Any] = {
            "client_id": config.client_id,
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
        }
        """The consumer's identity, as events carry it."""

    @property
    def group_id(self) -> str:
        group_id = self.config.group_id
        assert group_id is not None, "only a consumer with a group is a member"
        return group_id

    def reset_policy(self) -> Reset | None:
        """Where a partition without a position starts, or none where that is an error."""
        match self.config.auto_offset_reset:
            case "latest":
                return OffsetReset.LATEST
            case "earliest":
                return OffsetReset.EARLIEST
            case "none":
                return None
        ago = self.config.reset_duration_ms
        assert ago is not None, "there is no fourth policy"
        return self.now - ago


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most advanced rebalance protocol that every assignor can serve. Raises ValueError when there is none."""
    shared = [
        protocol for protocol in RebalanceProtocol if all(protocol in assignor.protocols for assignor in assignors)
    ]
    if not shared:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"the assignors {names} have no rebalance protocol in common")
    return max(shared, key=lambda protocol: protocol.value)


def by_topic(partitions: Iterable[tuple[str, int]]) -> PartitionsByTopic:
    """Partitions as events show them."""
    shown: PartitionsByTopic = {}
    for topic, partition in sorted(partitions):
        shown.setdefault(topic, []).append(partition)
    return shown


def offsets_by_topic(offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Offsets:
    """Offsets as events show them."""
    shown: Offsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        shown.setdefault(topic, {})[partition] = offset if isinstance(offset, int) else offset.offset
    return shown
