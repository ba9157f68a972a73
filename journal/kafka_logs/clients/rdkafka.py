"""Log lines of librdkafka about consumer groups, with the facility before the text.

By default that is little: late polls, lost sessions and fatal errors. With ``debug=cgrp`` every step is logged. Lines
name no group unless their text does. Texts are those of 0.9 to 2.x; behind the facility, lines about one broker begin
with its address and number.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template


def _line(kind: str, text: str, variant: str = "") -> Template:
    return Template(kind, text, variant=variant)


_GROUP: Final = 'Group "{group_id?}"'
_JOIN_STATE: Final = "join~[- ]~state {join_state?}"
_RESPONSE: Final = (
    "JOINGROUP: JoinGroup response: GenerationId {generation}, Protocol {assignor?}, LeaderId {leader?}, my MemberId "
)

RDKAFKA_LINES: Final[tuple[Template, ...]] = (
    # --- what is logged by default
    _line(
        "poll_timeout_exceeded",
        "MAXPOLL: Application maximum poll interval ({limit_ms}ms) exceeded by {late_ms}ms (adjust "
        "max.poll.interval.ms for long-running message processing): leaving group",
    ),
    # The error that applications get.
    _line(
        "poll_timeout_exceeded",
        "MAXPOLL: Application maximum poll interval ({limit_ms}ms) exceeded by {late_ms}ms~.*~",
        "error",
    ),
    _line(
        "heartbeat_failed",
        "SESSTMOUT: Consumer group session timed out (in join-state {join_state?}) after {waited_ms} ms without a "
        "successful response from the group coordinator (broker {coordinator?}, last error was {problem?}): revoking "
        "assignment and rejoining group",
        "session",
    ),
    _line(
        "metadata_changed",
        "PARTCNT: Topic {topic?}~(?: \\(id .*?\\))?~ partition count changed from {before} to {after}",
    ),
    _line(
        "fenced",
        "FATAL: Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id{rest}",
    ),
    _line("fatal", "FATAL: Fatal error: {problem}"),
    _line(
        "poll_timeout_exceeded",
        "MAXPOLL: Maximum application poll interval (max.poll.interval.ms) exceeded~.*~",
        "name",
    ),
    # Errors that applications get, and log by themselves; without a facility, but for the first.
    _line("topic_unavailable", "TOPICERR: Subscribed topic not available: {topic?}: {problem}"),
    _line("join_failed", "ERROR: FindCoordinator response error: {problem}", "coordinator-error"),
    _line(
        "join_failed",
        "ERROR: ~(?:JoinGroup|ConsumerGroupHeartbeat) failed: (?=Broker:|Local:)~{problem}",
        "join-error",
    ),
    _line(
        "join_failed",
        "ERROR: ~(?=Broker: (?:Group authoriz|Inconsistent group|Invalid session|Static consumer fenced))~{problem}",
        "name",
    ),
    # What a share consumer logs by default, beside late polls.
    _line("remark", 'SHARECONSUMER: The share consumer is in "Preview" {rest}', "share-preview"),
    # --- with debug=cgrp
    # Each heartbeat of a member of a share group; librdkafka does not log the epoch of an answer.
    _line(
        "epoch_sent",
        'SHAREHEARTBEAT: {coordinator?}: ShareGroupHeartbeat of group id "{group_id?}", member id "{member?}", '
        "member epoch {member_epoch}, {rest}",
    ),
    _line(
        "remark",
        'SHAREHEARTBEAT: {coordinator?}: ShareGroupHeartbeat version {version} for group "{group_id?}", {rest}',
        "share-heartbeat",
    ),
    _line(
        "heartbeat_failed", "HEARTBEAT: ShareGroupHeartbeat failed due to: {problem}: will rejoin the group", "share"
    ),
    _line("consumer_started", "INIT: librdkafka {rest}"),
    # How many topics there are stands there, and not which.
    _line("subscribing", f"SUBSCRIBE: {_GROUP}: subscribe to new subscription of {{count}} topics (join{{rest}}"),
    # Before each join up to 1.5, whose join itself debug=cgrp does not log.
    _line("subscribing", f"JOIN: {_GROUP}: join with {{count}} ({{expected}}) subscribed topic(s)", "joins"),
    _line("remark", 'HEARTBEAT: Heartbeat for group "{group_id?}" generation id {generation}', "sent"),
    _line(
        "join_sent",
        'JOIN: {coordinator?}: Joining group "{group_id?}" with {topics?} subscribed topic(s) and member id '
        '"{member?}"',
    ),
    _line("join_sent", 'JOIN: {coordinator?}: Joining group "{group_id?}" with {topics?} subscribed topic(s)', "older"),
    _line("member_id_received", f'MEMBERID: {_GROUP}: updating member id "{{was?}}" -> "{{member?}}"'),
    _line("generation_joined", _RESPONSE + "{member?}, member metadata count {count?}: (no error)"),
    _line(
        "remark",
        _RESPONSE + "{member?}, ~.*?~: Broker: Group member needs a valid member ID",
        "member-id",
    ),
    _line("generation_joined", _RESPONSE + "{member?}, {count?} members in group: (no error)", "older"),
    _line("join_failed", _RESPONSE + "{member?}, member metadata count {count?}: {problem}"),
    _line("join_failed", _RESPONSE + "{member?}, {count?} members in group: {problem}", "older"),
    _line("group_synced", "SYNCGROUP: SyncGroup response: Success ({rest}"),
    _line("join_failed", "SYNCGROUP: SyncGroup response: {problem}", "sync"),
    _line("join_failed", f"GRPSYNC: {_GROUP}: synchronization failed: {{problem?}}: rejoining", "synchronization"),
    _line("rejoin_requested", f"REJOIN: {_GROUP}: Rejoining group with{{how?}}: {{reason}}"),
    # Up to 1.5; since 1.6 the line before says the same.
    # A member that has none of its own yet, or gave up its partitions before.
    _line(
        "remark",
        f"REBALANCE: {_GROUP} is rebalancing in state {{state?}} (join~[- ]~state init) "
        "without assignment: group rejoin",
        "begins",
    ),
    _line(
        "rejoin_requested",
        f"REBALANCE: {_GROUP} is rebalancing in state {{state?}} ({_JOIN_STATE}) ~with(?:out)?~ assignment: {{reason}}",
        "older",
    ),
    _line(
        "heartbeat_failed",
        f"HEARTBEAT: {_GROUP} heartbeat error response in state {{state?}} ({_JOIN_STATE}, {{rest?}}): {{problem}}",
    ),
    _line("partition_added", f"PARTADD: {_GROUP}: add {{topic}} [{{number}}]"),
    _line("partition_removed", f"PARTDEL: {_GROUP}: delete {{topic}} [{{number}}]"),
    _line("given", f"ASSIGN: {_GROUP}: new assignment of {{count}} partition(s) in join-state {{rest}}"),
    _line("topic_unavailable", f"SUBSCRIPTION: {_GROUP}: {{problem}}~(?<=metadata matched subscription)~", "no-match"),
    _line("closing", f"CGRPTERM: {_GROUP}: waiting for {{rest?}} before terminating"),
    _line("group_left", f"LEAVE: {_GROUP}: leave (in state {{join_state}})"),
    _line("group_left", f"LEAVE: {_GROUP}: leave", "older"),
    _line("coordinator_found", f"CGRPCOORD: {_GROUP} changing coordinator {{was?}} -> {{coordinator}}"),
    _line("coordinator_lost", f"COORDCLEAR: {_GROUP} broker {{coordinator?}} is no longer coordinator"),
    _line(
        "coordinator_lost", f"COORD: {_GROUP}: marking the coordinator~(?: \\(-?\\d+\\))?~ dead: {{problem}}", "dead"
    ),
    _line(
        "remark",
        "COMMIT: {coordinator?}: OffsetCommit for {count?} partition(s) in join-state {join_state?}: {how?}: returned: "
        "Success",
        "committed",
    ),
    _line(
        "commit_failed",
        "COMMIT: {coordinator?}: OffsetCommit for {count?} partition(s) in join-state {join_state?}: {how?}: returned: "
        "{problem}",
    ),
    _line(
        "epoch",
        'HEARTBEAT: ConsumerGroupHeartbeat response received for member id "{member?}" with epoch {member_epoch}',
    ),
    _line(
        "remark",
        "COMMIT: {coordinator?}: OffsetCommit for {count?} partition(s): {how?}: returned: Success",
        "committed-older",
    ),
    _line(
        "commit_failed",
        "COMMIT: {coordinator?}: OffsetCommit for {count?} partition(s): {how?}: returned: {problem}",
        "older",
    ),
    _line(
        "commit_failed",
        f"COMMITFAIL: Offset commit ({{how?}}) failed for {{count?}} partition(s) in {_JOIN_STATE}: {{problem}}",
        "some",
    ),
)
"""In the order in which a reader tries them."""
