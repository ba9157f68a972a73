"""kafka-python and aiokafka: what their group coordinators log at INFO and above.

Texts are those of kafka-python 2.0, 2.2 and 3.0 and of aiokafka 0.8 to 0.14; those of kafka-python and of aiokafka 0.10
and 0.14 were recorded. kafka-python 2.0 logs no member id.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template, Version

ANY: Final[Version] = (0, 0)
"""Since some version of the library that is older than those at hand."""

_POLL_TIMEOUT: Final = (
    "onsumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the "
    "configured max_poll_interval_ms, which typically implies that the poll loop is spending too much time processing "
    "messages. You can address this either by increasing <3.0-:max_poll_interval_ms|the rebalance timeout with "
    "max_poll_interval_ms,> or by reducing the maximum size of batches returned in poll() with max_poll_records."
)
_GENERATION: Final = "<Generation {generation} (member_id: {member?}, protocol: {assignor?})~(?:, .*?)?~>"


def _line(kind: str, text: str, variant: str = "", since: Version = ANY, before: Version | None = None) -> Template:
    return Template(kind, text, since, before, variant=variant)


_TOPICS: Final = (
    _line("topic_unavailable", "Topic {topic} not found in cluster metadata"),
    _line("topic_unavailable", "Topic {topic} is not authorized for this client", "authorization"),
    _line("topic_unavailable", "Topic {topic} is not available during auto-create initialization", "creation"),
    _line("topic_unavailable", "'{topic}' is not a valid topic name", "name"),
    _line("topic_unavailable", "No partition metadata for topic ~'?~{topic?}~'?~", "leader"),
    _line("topic_unavailable", "Not authorized to read from topic {topic?}.", "read"),
    _line("topic_unavailable", "OffsetFetchRequest -- unknown topic {topic}~(?= ?)~", "offsets"),
)
"""Lines about topics that both libraries have."""

KAFKA_PYTHON_LINES: Final[tuple[Template, ...]] = (
    *_TOPICS,
    _line("subscribing", "Updating subscribed topics to: {topics}"),
    _line("consumer_started", "IO loop starting (client_id={client_id})", "", (3, 0)),
    _line("remark", "Group ~[cC]~oordinator {rest}", "lookup"),
    _line("remark", "Error sending {rest}", "send"),
    # Before 3.0, the first line that identifies a consumer: each consumer has one such thread.
    _line("consumer_started", "Starting new heartbeat thread", "thread", ANY, (3, 0)),
    _line("remark", "Stopping heartbeat thread", "thread"),
    _line("coordinator_found", "Discovered coordinator {coordinator?} for group {group_id}"),
    _line("coordinator_lost", "Marking the coordinator dead (node {coordinator?}) for group {group_id?}: {problem}"),
    _line("join_sent", "(Re-)joining group {group_id}"),
    _line("member_id_received", "Received member id {member} for group {group_id?}; will retry join-group", "", (2, 1)),
    _line(
        "generation_joined",
        f"Successfully joined group {{group_id?}} {_GENERATION}",
        "",
        (2, 1),
    ),
    _line(
        "generation_joined",
        "Successfully joined group {group_id?} with generation {generation}",
        "number",
        ANY,
        (2, 1),
    ),
    _line("remark", "Elected group leader -- performing partition assignments using {assignor}", "leader"),
    _line("join_failed", "Attempt to join group {group_id?} {problem}"),
    _line("join_failed", "Failed to join group {group_id?}: {problem}", "join", (2, 1)),
    _line("join_failed", "Unexpected error in join group response: {problem}", "response"),
    _line("join_failed", "Unexpected error from SyncGroup: {problem}", "sync-other"),
    _line("join_failed", "SyncGroup for group {group_id?} failed due to {problem}", "sync"),
    _line(
        "partitions_revoked",
        "Revoking previously assigned partitions {partitions?} for group {group_id?} on close",
        "close",
    ),
    _line("partitions_revoked", "Revoking previously assigned partitions {partitions?} for group {group_id}"),
    _line("partitions_assigned", "Setting newly assigned partitions {partitions?} for group {group_id}"),
    _line("partitions_lost", "Group {group_id?} lost membership; forcibly revoking {partitions}"),
    _line("given", "Updated partition assignment: {given}"),
    _line("rejoin_requested", "Group {group_id?} is rebalancing; rejoining.", "heartbeat"),
    _line("rejoin_requested", "Heartbeat failed for group {group_id?} because it is rebalancing", "heartbeat-older"),
    _line("poll_timeout_exceeded", f"C{_POLL_TIMEOUT}", "", (2, 1)),
    _line("poll_timeout_exceeded", "Heartbeat poll expired, leaving group", "heartbeat", ANY, (2, 1)),
    _line("poll_timeout_exceeded", "~[Cc]~onsumer poll timeout has expired{rest}", "other"),
    _line("group_left", "Leaving consumer group <-3.0:(>{group_id?}<-3.0:)><3.0-: (member {member?})>."),
    _line("remark", "LeaveGroup request {rest}", "leave"),
    _line("coordinator_lost", "Heartbeat session expired, marking coordinator dead", "session"),
    _line(
        "coordinator_lost",
        "Heartbeat failed for group {group_id?}: coordinator (node {coordinator?}) is either not started or not valid",
        "heartbeat",
    ),
    _line("fenced", "Heartbeat failed for group {group_id?} due to fenced id error: {instance}", "heartbeat"),
    _line("heartbeat_failed", "Heartbeat failed for group {group_id?}: {problem}"),
    _line("fenced", "Heartbeat thread caught fenced group_instance_id {instance} error", "thread"),
    _line(
        "heartbeat_failed", "Heartbeat: local member_id was not recognized; this consumer needs to re-join", "member"
    ),
    _line("join_failed", "Heartbeat failed: authorization error: {problem}", "authorization"),
    _line("heartbeat_failed", "Heartbeat failed: {problem}", "other"),
    _line(
        "commit_failed", "Failing OffsetCommit request since the consumer is not part of an active group", "inactive"
    ),
    _line("commit_failed", "OffsetCommit for group {group_id?} failed: {problem}"),
    _line("commit_failed", "OffsetCommit for group {group_id?} failed due to fenced id error: {problem}", "fenced"),
    _line("commit_failed", "Auto offset commit failed for group {group_id?}: {problem}", "auto"),
    _line(
        "commit_failed",
        "Group {group_id?} failed to commit partition {partition_text?} at offset {offset}: {problem}",
        "one",
    ),
    _line("remark", "Pre-rebalance offset commit failed: {problem}", "before"),
    _line("remark", "Offset commit failed: {problem}", "summary"),
    _line("consumer_closed", "Closing the KafkaConsumer.", ""),
)
"""In the order in which a reader tries them."""

AIOKAFKA_LINES: Final[tuple[Template, ...]] = (
    *_TOPICS,
    _line("consumer_started", "Updating subscribed topics to: {topics}"),
    _line("subscribing", "Subscribed to topic(s): {topics}"),
    _line("subscribing", "Subscribed to topic pattern: {pattern}", "pattern"),
    _line("remark", "Group Coordinator {rest}", "lookup"),
    _line("metadata_changed", "Metadata for topic has changed from {metadata_before} to {metadata_after}. "),
    _line("coordinator_found", "Discovered coordinator {coordinator?} for group {group_id}"),
    _line("coordinator_lost", "Marking the coordinator dead (node {coordinator?})for group {group_id}."),
    _line(
        "coordinator_lost",
        "Error sending {request?} to node {coordinator?} [{problem?}] -- marking coordinator dead",
        "send",
    ),
    _line("remark", "Error sending {rest}", "other-send"),
    _line("join_sent", "(Re-)joining group {group_id}"),
    _line("generation_joined", "Joined group '{group_id?}' (generation {generation}) with member_id {member}"),
    _line("remark", "Elected group leader -- performing partition assignments using {assignor}", "leader"),
    _line("group_synced", "Successfully synced group {group_id?} with generation {generation}"),
    _line("join_failed", "Attempt to join group failed due to {problem}"),
    _line("join_failed", "Unexpected error in join group '{group_id?}' response: {problem}", "other"),
    _line("partitions_revoked", "Revoking previously assigned partitions {partitions?} for group {group_id}"),
    _line("partitions_assigned", "Setting newly assigned partitions {partitions?} for group {group_id}"),
    _line("rejoin_requested", "Heartbeat failed for group {group_id?} because it is rebalancing"),
    _line("coordinator_lost", "Heartbeat session expired - marking coordinator dead", "session"),
    _line(
        "coordinator_lost",
        "Heartbeat failed for group {group_id?}: coordinator (node {coordinator?}) is either not started or not valid",
        "heartbeat",
    ),
    _line("heartbeat_failed", "Heartbeat failed for group {group_id?}: {problem}"),
    _line(
        "heartbeat_failed",
        "Heartbeat failed: local member_id was not recognized; resetting and re-joining group",
        "member",
    ),
    _line("heartbeat_failed", "Heartbeat failed: {problem}", "other"),
    _line("remark", "Heartbeat send request failed: {problem}", "send"),
    _line("group_left", "LeaveGroup request succeeded"),
    _line("remark", "LeaveGroup request failed: {problem}", "leave"),
    _line("commit_failed", "OffsetCommit failed for group {group_id?} due to group error ({problem?}), will rejoin"),
    _line(
        "commit_failed",
        "OffsetCommit failed for group {group_id?} on partition {partition_text?} with offset {offset?}: {problem}",
        "one",
    ),
    _line("commit_failed", "OffsetCommit failed before join, ignoring: {problem}", "before"),
    _line("commit_failed", "Auto offset commit failed: {problem}", "auto"),
    _line("commit_failed", "OffsetCommit failed for {problem}", "other"),
    _line("commit_failed", "Failed to commit on finallization: {problem}", "close"),
)
"""In the order in which a reader tries them."""
