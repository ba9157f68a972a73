"""Parts of a consumer's loop while it is played in short: :mod:`rejoin.simulation.record_loop`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Literal

from rejoin.coordinator.core.effects import Append
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange

if TYPE_CHECKING:
    from rejoin.client.core.consumer import ConsumerCore
    from rejoin.coordinator.core.topics.synthetic_log import SyntheticLog
    from rejoin.simulation.topic_log import TopicLog

COMMIT_KINDS: Final[dict[str, Literal["auto", "async"]]] = {"auto": "auto", "after-async": "async"}
"""The kind of a commit in the modes in which no call waits for it."""


class Phase(Enum):
    """Where the loop is."""

    POLLING = auto()
    PROCESSING = auto()
    COMMITTING = auto()


@dataclass(slots=True)
class Position:
    """A partition: its log, and how far the consumer has come in it."""

    partition: TopicPartition
    log: SyntheticLog
    records_per_second: float
    position: int
    end: int = 0


@dataclass(slots=True)
class Commit:
    """A commit in flight. ``exchange`` and ``append`` are those of the cores once these play on."""

    sent_at: Millis
    arrives_at: Millis
    offsets: list[tuple[TopicPartition, int]]
    has_arrived: bool = False
    is_answered: bool = False
    exchange: Exchange | None = None
    append: Append | None = None


@dataclass(slots=True)
class Heartbeat:
    """A heartbeat in flight. ``exchange`` is the cores' once these play on."""

    sent_at: Millis
    is_answered: bool = False
    exchange: Exchange | None = None


def positions_of(core: ConsumerCore, topics: Mapping[str, TopicLog]) -> list[Position]:
    """How far a consumer has come, in the order in which its partitions give records next."""
    positions = core.positions()
    return [
        Position(
            each,
            topics[each.topic].partitions[each.partition],
            topics[each.topic].records_per_second,
            positions[each],
            positions[each],
        )
        for each in core.partitions_in_order()
    ]
