"""Names of share-partitions, and of the internal topic that keeps their state (KIP-932)."""

from __future__ import annotations

from typing import Final, NamedTuple

SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"

SHARE_GROUP_STATE_TOPIC_ID: Final = "c2hhcmVfZ3JvdXBfc3RhdA"
"""Constant over nodes and runs. Kafka's is random."""

_PARTS: Final = 3
_UUID_LENGTH: Final = 22
_LONGEST_NUMBER: Final = 11


class SharePartitionKey(NamedTuple):
    """A share-partition: a group, and a partition of a topic by its id."""

    group_id: str
    topic_id: str
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The text by which its coordinator is found. Kafka: SharePartitionKey.asCoordinatorKey."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


def parse_coordinator_key(key: str) -> SharePartitionKey | None:
    """A share-partition from the text by which its coordinator is found, or none. A group id may have colons."""
    parts = key.rsplit(":", _PARTS - 1)
    if len(parts) != _PARTS or not parts[0].strip() or not _is_uuid(parts[1]) or not _is_int32(parts[2]):
        return None
    return SharePartitionKey(parts[0], parts[1], int(parts[2]))


def _is_uuid(text: str) -> bool:
    return len(text) == _UUID_LENGTH and all(each.isascii() and (each.isalnum() or each in "-_") for each in text)


def _is_int32(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    is_number = digits.isascii() and digits.isdigit() and len(text) <= _LONGEST_NUMBER
    return is_number and -(2**31) <= int(text) < 2**31
