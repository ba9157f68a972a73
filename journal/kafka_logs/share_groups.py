"""Log lines of Kafka's brokers about share groups (KIP-932), both written and read here.

Members join, leave and are fenced in the lines of :mod:`rejoin.journal.kafka_logs.consumer_groups`. Texts and levels
were compared with the classes of 4.2.0, 4.3.0 and 4.4.0, and with the log of a 4.4.0. At INFO a broker says nothing of
records: locks that run out, releases and archived records have no line at any level.
"""

from __future__ import annotations

import re
from typing import Final

from rejoin.journal.kafka_logs.template import JAVA_SINCE, Template, Version

SHARE_PARTITION: Final = "kafka.server.share.SharePartition"
_PERSISTER: Final = "org.apache.kafka.server.share.persister.PersisterStateManager"
_TOPICS: Final = "org.apache.kafka.server.DefaultAutoTopicCreationManager"
_GROUP: Final = "GroupId "
_SHARED: Final = "{group}-{topic_id}:{topic}-{number}"
_KEY: Final = "SharePartitionKey{groupId={group}, topicIdPartition={topic_id}:{topic}-{number}}"
_ASSIGNOR: Final = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
STATE_TOPIC: Final = "__share_group_state"
NO_TOPIC_ID: Final = "A" * 22
"""The topic id of zeros, which stands where the id of a topic is not known."""
SILENT_BUMPS: Final = ("leave", "session-expiry")
"""Causes of a new epoch that share groups do not log: the member that is gone has a line, and the next target."""


def assignor_text(name: str) -> str:
    """An assignor of share groups as Kafka prints it: the object, whose hash is another in each process."""
    return f"{_ASSIGNOR}@0" if name == "simple" else name


def assignor_name(text: str) -> str:
    """The name of an assignor that a line has as an object."""
    return "simple" if re.fullmatch(rf"{re.escape(_ASSIGNOR)}@[0-9a-f]+", text) else text


def _line(
    kind: str, text: str, logger: str, level: str, variant: str = "", since: Version = (4, 2), bracket: str = ""
) -> Template:
    return Template(kind, text, since, None, logger, level, bracket, variant)


SHARE_GROUP_LINES: Final[tuple[Template, ...]] = (
    _line(
        "modern_subscribed",
        "Member {member?} updated its subscribed topics to: [{topics}].",
        "",
        "INFO",
        "share",
        JAVA_SINCE,
        _GROUP,
    ),
    _line("modern_metadata", "Computed new metadata hash: {metadata_hash}.", "", "INFO", "share", bracket=_GROUP),
)
"""Lines of the group coordinator that it prints at INFO for share groups, and at DEBUG for consumer groups."""

SHARE_PARTITION_LINES: Final[tuple[Template, ...]] = (
    _line(
        "share_loaded",
        f"Initialized share partition: {_SHARED} with persister read state: {{head?}}stateEpoch={{state_epoch}},"
        "startOffset={offset}{rest?}, cached state: {cached}",
        SHARE_PARTITION,
        "DEBUG",
    ),
    _line(
        "share_full",
        f"Share partition {_SHARED} has reached max in-flight records limit: {{limit}}. Cannot acquire more records, "
        "inflight records count: {in_flight}",
        SHARE_PARTITION,
        "DEBUG",
    ),
    _line(
        "share_failed",
        f"Failed to write the share group state for share partition: {_SHARED}",
        SHARE_PARTITION,
        "ERROR",
        "write",
    ),
    _line(
        "share_failed",
        f"Failed to write the share group state for share partition: {_SHARED}. Invalid {{problem}}",
        SHARE_PARTITION,
        "ERROR",
        "write-invalid",
    ),
    _line("share_failed", f"Failed to initialize the share partition: {_SHARED}", SHARE_PARTITION, "ERROR", "read"),
    _line(
        "share_failed",
        f"Failed to initialize the share partition: {_SHARED}. Invalid {{problem}}",
        SHARE_PARTITION,
        "ERROR",
        "read-invalid",
    ),
    _line(
        "share_unreached",
        f"Exhausted max retries to find coordinator for {{handler?}} using key {_KEY} without success.",
        _PERSISTER,
        "ERROR",
    ),
    _line(
        "share_unreached",
        f"Unable to find coordinator for {{handler?}} using key {_KEY}: {{problem}}.",
        _PERSISTER,
        "ERROR",
        "error",
    ),
    # --- the topic of the share coordinators
    _line(
        "share_state_refused",
        f"Auto topic creation failed for {STATE_TOPIC} with error '{{problem}}': {{why?}}<4.4-:.>",
        _TOPICS,
        "WARN",
        since=(4, 3),
    ),
)
"""Lines of the brokers that lead partitions, in the order in which a reader tries them."""


def share_line(kind: str, version: Version, variant: str = "") -> Template | None:
    """The line of a kind that a version prints; none where it is silent."""
    lines = (*SHARE_GROUP_LINES, *SHARE_PARTITION_LINES)
    return next((each for each in lines if (each.kind, each.variant) == (kind, variant) and each.is_in(version)), None)
