"""Events of share-partitions: the records that the members of a share group have in flight (KIP-932).

The leader of a partition emits them, for each share group that reads it. Records are named by runs: neighbours of one
delivery count and one holder are one event, so a batch of 500 costs as much as one record. What waits for the share
coordinator is an event when it is stored; what is rolled back is none.
"""

from __future__ import annotations

from typing import Literal

from rejoin.journal.events.base import Long
from rejoin.journal.events.coordinator import GroupEvent

AcknowledgedAs = Literal["gap", "accept", "release", "reject", "renew"]
"""The verdict of a member on records. Kafka: AcknowledgeType."""

ReleasedBecause = Literal["session-closed", "disconnected", "session-evicted"]
"""Why records are given back without an acknowledgement: the member closed its session, its connection is gone, or
another session took the place."""

ArchivedBecause = Literal["reject", "delivery-limit", "gap", "log-start", "compacted", "aborted"]
"""Why records will not be delivered again, beside that they were accepted."""


class SharePartitionEvent(GroupEvent):
    """An event about the share-partition of a group and a partition."""

    topic: str
    partition: int


class ShareRecordsEvent(SharePartitionEvent):
    """An event about a run of records, first and last offset inclusive."""

    first_offset: Long
    last_offset: Long
    delivery_count: int


class ShareRecordsAcquired(ShareRecordsEvent):
    """A member holds these records until their lock runs out. The delivery that begins is counted already."""

    member_id: str
    lock_ms: int


class ShareRecordsAcknowledged(ShareRecordsEvent):
    """The holder has said what becomes of these records, and it is stored. A renewal is not stored: it locks anew."""

    member_id: str
    type: AcknowledgedAs
    held_ms: int


class ShareLocksExpired(ShareRecordsEvent):
    """The locks of these records ran out before their holder acknowledged them."""

    member_id: str
    held_ms: int


class ShareRecordsReleased(ShareRecordsEvent):
    """These records are given back without acknowledgement, as the session of their holder is gone."""

    member_id: str
    reason: ReleasedBecause


class ShareRecordsArchived(ShareRecordsEvent):
    """These records will not be delivered again, though no member accepted them."""

    reason: ArchivedBecause


class ShareRecordsDeadLettered(ShareRecordsEvent):
    """These records have their dead letters in a topic (KIP-1191); or not, with the error. They are archived anyway."""

    dead_letter_topic: str
    error: str | None


class SharePartitionLoaded(SharePartitionEvent):
    """The leader has read the state from the share coordinator, and members can acquire.

    ``reset``: share.auto.offset.reset, where the state had no offset. ``skipped_records``: offsets of the log before
    the start that this set aside.
    """

    start_offset: Long
    state_epoch: int
    leader_epoch: int
    reset: Literal["earliest", "latest", "by_duration"] | None
    skipped_records: Long | None


class ShareWindowMoved(SharePartitionEvent):
    """The window has another start or end. Empty, both are the next offset; else the end is the last record."""

    start_offset: Long
    end_offset: Long
    in_flight: int


class ShareWindowFull(SharePartitionEvent):
    """The window has as many records as share.partition.max.record.locks allows: only what is released is delivered."""

    start_offset: Long
    end_offset: Long
    limit: int


class SharePersisterFailed(SharePartitionEvent):
    """The share coordinator did not read or store the state. Acknowledgements are rolled back."""

    operation: Literal["read", "write"]
    error: str
