"""Log lines of KafkaJS, franz-go and sarama about consumer groups.

The first two write a message with named values. Those of KafkaJS are fields of JSON, under :data:`KAFKAJS_FIELDS`;
those of franz-go are written as its BasicLogger does (``message; name: value, name: value``), whichever logger wrote
them. Texts are those of KafkaJS 2.2, franz-go 1.22 and sarama 1.61, recorded; sarama logs nothing until its ``Logger``
is set.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template

KAFKAJS_FIELDS: Final = {
    "groupId": "group_id",
    "clientId": "client_id",
    "memberId": "member",
    "groupProtocol": "assignor",
    "error": "problem",
    "memberAssignment": "given",
    "topic": "topic",
    "unknownPartitions": "unknown_partitions",
}
"""Fields of JSON, and what lines of other clients call the same."""


def _line(kind: str, text: str, variant: str = "") -> Template:
    return Template(kind, text, variant=variant)


KAFKAJS_LINES: Final[tuple[Template, ...]] = (
    _line("consumer_started", "[Consumer] Starting"),
    _line("consumer_restarting", "[Consumer] Restarting the consumer in {waited_ms}ms"),
    _line("generation_joined", "[ConsumerGroup] Consumer has joined the group"),
    _line("rejoin_requested", "[Runner] The group is rebalancing, re-joining"),
    _line("metadata_changed", "[ConsumerGroup] Topic has been updated, resync group"),
    _line("heartbeat_failed", "[Runner] {reason?}, re-joining the group", "runner"),
    _line("group_left", "[Consumer] Stopped"),
    _line("crashed", "[Consumer] Crash: {problem}"),
    _line("commit_failed", "[Connection] Response OffsetCommit(key: 8, version: {version})"),
    _line("heartbeat_response", "[Connection] Response Heartbeat(key: 12, version: {version})"),
    _line("response", "[Connection] Response {api}(key: {number}, version: {version})"),
    _line("coordinator_lost", "[Connection] Connection error: {problem}"),
)
"""In the order in which a reader tries them."""

_GROUP: Final = "group: {group_id?}"

FRANZ_GO_LINES: Final[tuple[Template, ...]] = (
    _line("consumer_started", "beginning to manage the group lifecycle; group: {group_id}"),
    _line("consumer_started", "beginning to manage the next-gen group lifecycle; group: {group_id}", "next"),
    _line("join_sent", "joining group; group: {group_id}"),
    _line(
        "member_id_received",
        f"join returned MemberIDRequired, rejoining with response's MemberID; {_GROUP}, member_id: {{member}}",
    ),
    _line(
        "generation_joined",
        f"joined, balancing group; {_GROUP}, member_id: {{member?}}, instance_id: {{instance?}}, "
        "generation: {generation}, balance_protocol: {assignor?}, leader: {leader}",
        "leader",
    ),
    _line(
        "generation_joined",
        f"joined; {_GROUP}, member_id: {{member?}}, instance_id: {{instance?}}, generation: {{generation}}, "
        "leader: {leader}",
    ),
    _line("group_synced", f"synced; {_GROUP}, assigned: {{assigned}}"),
    _line("session_begun", f"new group session begun; {_GROUP}, added: {{added?}}, lost: {{lost}}"),
    _line("rejoin_requested", f"heartbeat errored; {_GROUP}, err: REBALANCE_IN_PROGRESS{{rest}}"),
    _line("heartbeat_failed", f"heartbeat errored; {_GROUP}, err: {{problem}}"),
    _line(
        "coordinator_lost",
        f"group manage loop errored; {_GROUP}, err: unable to dial{{problem?}}, consecutive_errors{{rest}}",
    ),
    _line("join_failed", f"group manage loop errored; {_GROUP}, err: {{problem}}"),
    _line("join_failed", f"join group failed; {_GROUP}, err: {{problem}}", "join"),
    _line("join_failed", f"sync group failed; {_GROUP}, err: {{problem}}", "sync"),
    _line("group_left", f"leaving group; {_GROUP}, member_id: {{member?}}~(?:, .*)?~"),
    _line("commit_failed", f"default commit failed; {_GROUP}, err: {{problem}}"),
    _line(
        "commit_failed",
        f"in default commit: unable to commit offsets for topic partition; {_GROUP}, topic: {{topic?}}, "
        "partition: {number}, error: {problem}",
        "one",
    ),
    _line("assignment", "balanced; plan: {assignments}"),
    _line("join_failed", f"fetch offsets failed with non-retryable error; {_GROUP}, err: {{problem}}", "offsets"),
    # The error that applications get from a poll.
    _line("join_failed", "unable to join group session: {problem}", "session"),
    _line(
        "topic_unavailable",
        "immediate metadata update had inner errors, re-updating; errors: {problem?}, update_after: {rest}",
    ),
)
"""In the order in which a reader tries them."""

_SESSION: Final = "consumergroup/session/{member}/{generation}"
_SUBJECT: Final = "~(?:consumer ?gr?oup )?~"
"""Versions that also look up coordinators of transactions say which kind they want."""

SARAMA_LINES: Final[tuple[Template, ...]] = (
    _line("consumer_started", "Initializing new client"),
    _line("join_sent", f"client/coordinator requesting coordinator for {_SUBJECT}{{group_id}} from {{coordinator}}"),
    _line("coordinator_found", f"client/coordinator coordinator for {_SUBJECT}{{group_id?}} is #{{coordinator}}"),
    _line("coordinator_lost", "client/coordinator no available broker to send consumer metadata request to"),
    _line("coordinator_lost", "client/coordinator request to broker {coordinator?} failed: {problem}", "request"),
    _line("coordinator_lost", f"client/coordinator coordinator for {_SUBJECT}{{group_id?}} is not available", "none"),
    _line("partition_added", "consumer/broker/{broker?} added subscription to {topic}/{number}"),
    _line("partition_removed", "consumer/broker/{broker?} closed dead subscription to {topic}/{number}"),
    _line("session_ended", f"{_SESSION} heartbeat loop stopped"),
    _line("remark", f"{_SESSION} released", "released"),
    _line(
        "metadata_changed",
        "consumergroup/{group_id?} loop check partition number goroutine find partitions in topics [{topic}] changed "
        "from {before} to {after}",
    ),
    _line("rejoin_requested", "cluster/consumer ~\\S* ?~ rebalance", "cluster"),
    _line("group_left", "Closing Client"),
    _line("join_failed", "client was not authorized to access group {group_id?} while attempting to find coordinator"),
    _line("topic_unavailable", "client is not authorized to access this topic. The topics were:~ +~[{topics}]"),
    # Errors that applications get from the group, and log by themselves.
    _line("session_error", "kafka: error while consuming {topic?}/~-?~{number}: {problem}"),
    _line("session_error", "kafka server: {problem}", "server"),
)
"""In the order in which a reader tries them."""
