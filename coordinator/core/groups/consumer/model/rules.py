"""Rules of consumer groups that Kafka has changed from release to release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from rejoin.coordinator.core.groups.modern.epochs import FIRST_EPOCH, first_epoch
from rejoin.protocol.brokers.releases import has_reached


@dataclass(frozen=True, slots=True)
class ConsumerGroupRules:
    """The rules of the newest release, or of an older one."""

    first_epoch: int = FIRST_EPOCH
    """Epoch of a group that is not written yet."""
    rests_when_empty: bool = True
    """Whether the assignment epoch follows when the last member goes. Kafka: since 4.4 (KAFKA-20442)."""
    shows_pending: bool = True
    """Whether descriptions show partitions that a member still has to revoke. Kafka: since 4.3."""
    commits_by_partition: bool = True
    """Whether a member may commit what it owned at an older epoch. Kafka: since 4.3 (KIP-1251)."""
    follows_subscription: bool = True
    """Whether a member gives up a topic as soon as it unsubscribes. Kafka: since 4.2 (KAFKA-19431).

    Before, a member that had revoked partitions and was asked for more moved to the next epoch.
    """
    readmits_at_epoch_0: bool = True
    """Whether a member that is known may join again. Kafka: since 4.2 (KAFKA-19233)."""
    has_assignment_interval: bool = True
    """Whether assignments are computed at intervals. Kafka: since 4.3."""


@cache
def rules_of(release: str) -> ConsumerGroupRules:
    """The rules of a release; empty: the newest."""
    since_4_2, since_4_3, since_4_4 = (has_reached(release, each) for each in ("4.2", "4.3", "4.4"))
    return ConsumerGroupRules(
        first_epoch=first_epoch(release),
        rests_when_empty=since_4_4,
        shows_pending=since_4_3,
        commits_by_partition=since_4_3,
        follows_subscription=since_4_2,
        readmits_at_epoch_0=since_4_2,
        has_assignment_interval=since_4_3,
    )


NEWEST_RULES: Final = rules_of("")
