"""Java's consumer: what its coordinator and membership managers log at INFO and above, behind their prefix.

Texts of 2.0 to 3.8 were compared with Kafka's sources, those of 4.4 with recorded logs of all three consumers. Lines of
the share consumer have the prefix ``[ShareConsumer ...]``.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import OLDEST, Template, Version

PREFIX: Final = "[Consumer {static}clientId={client_id}, groupId={group_id}] "
"""The prefix of each line; ``static`` is empty, or ``instanceId=ID, `` of a static member."""

LOGGERS: Final = (
    "ConsumerCoordinator",
    "AbstractCoordinator",
    "ConsumerMembershipManager",
    "ShareMembershipManager",
    "StreamsMembershipManager",
    "StreamsGroupHeartbeatRequestManager",
    "StreamsRebalanceListenerInvoker",
    "ShareConsumerImpl",
    "AbstractMembershipManager",
    "MembershipManagerImpl",
    "CoordinatorRequestManager",
    "HeartbeatRequestManager",
    "CommitRequestManager",
    "ConsumerRebalanceListenerInvoker",
)
"""The classes whose lines are about the group; what others of the client log is passed over."""

_GENERATION: Final = "Generation{generationId={generation}, memberId='{member?}', protocol='{assignor?}'}"
_POLL_TIMEOUT: Final = (
    "onsumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the "
    "configured max.poll.interval.ms, which typically implies that the poll loop is spending too much time processing "
    "messages. You can address this either by increasing max.poll.interval.ms or by reducing the maximum size of "
    "batches returned in poll() with max.poll.records."
)
_HEARTBEAT: Final = "~(?:Consumer|Share|Streams)?GroupHeartbeat(?:Request)?~"
_MEMBER: Final = "Member {member} with epoch {member_epoch}"


def _line(kind: str, text: str, since: Version = OLDEST, before: Version | None = None, variant: str = "") -> Template:
    return Template(kind, text, since, before, variant=variant)


JAVA_LINES: Final[tuple[Template, ...]] = (
    _line("subscribing", "Subscribed to topic(s): {topics}"),
    _line("subscribing", "Subscribed to topics: {topics}", (4, 0), variant="share"),
    _line("remark", "Unsubscribed all topics", (4, 0), variant="share-unsubscribed"),
    _line("remark", "Completed releasing assignment and leaving group to close consumer.", (4, 0), variant="closed"),
    _line("subscribing", "Subscribed to pattern: '{pattern}'", variant="pattern"),
    # --- the coordinator
    _line("coordinator_found", "Discovered group coordinator {coordinator}"),
    _line(
        "coordinator_lost",
        "Group coordinator {coordinator?} is unavailable or invalid<2.8-: due to cause: {problem?}.|, will attempt "
        r"rediscovery>~(?: ?isDisconnected: \w+\.)?~<2.8-: Rediscovery will be attempted.>",
    ),
    _line("coordinator_lost", "Marking the coordinator {coordinator?} dead", OLDEST, (1, 2), "dead"),
    _line("remark", "Requesting disconnect from last known coordinator {coordinator}", (3, 0), variant="disconnect"),
    _line(
        "remark",
        "Consumer has been disconnected from the group coordinator for {waited_ms}ms",
        (2, 7),
        variant="disconnected",
    ),
    # --- the way into a generation
    _line("join_sent", "(Re-)joining group"),
    _line(
        "member_id_received",
        "Request joining group due to: need to re-join with the given member-id: {member}",
        (2, 8),
    ),
    _line("rejoin_requested", "Request joining group due to: {reason}", (2, 8)),
    _line(
        "rejoin_requested",
        "Requesting to re-join the group and trigger rebalance since the assignment metadata has changed from "
        "{metadata_before} to {metadata_after}",
        (2, 7),
        (3, 0),
        variant="metadata",
    ),
    _line("rejoin_requested", "Attempt to heartbeat failed since group is rebalancing", OLDEST, (3, 1), "heartbeat"),
    _line("generation_joined", f"Successfully joined group with generation {_GENERATION}", (2, 7)),
    _line("generation_joined", "Successfully joined group with generation {generation}", OLDEST, (2, 7), "number"),
    _line("assignment", "Finished assignment for group at generation {generation}: {assignments}", (2, 4)),
    _line(
        "assignment_skipped",
        "Skipped assignment for returning static leader at generation {generation}. The static leader will continue "
        "with its existing assignment.",
        (3, 2),
    ),
    _line("group_synced", f"Successfully synced group in generation {_GENERATION}", (2, 7)),
    _line("join_failed", "JoinGroup failed: {problem}", (2, 7)),
    _line("join_failed", "JoinGroup failed due to {problem}", (2, 7), variant="due"),
    _line("join_failed", "SyncGroup failed: {problem}", (2, 7), variant="sync"),
    _line("join_failed", "SyncGroup failed due to {problem}", (2, 7), variant="sync-due"),
    _line("join_failed", "Attempt to join group failed due to {problem}", OLDEST, (2, 7), "older"),
    _line(
        "join_failed",
        "Generation data was cleared by heartbeat thread to {problem?}. Initiating rejoin~.*~",
        variant="cleared",
    ),
    _line("join_failed", "Generation data was cleared by heartbeat thread to {problem}", (2, 7), variant="cleared-now"),
    _line("join_failed", "Rebalance failed.~.*~", variant="rebalance"),
    # --- partitions
    _line("remark", "Updating assignment with{update}", (2, 4), variant="update"),
    _line("given", "Notifying assignor about the new {given}", (2, 5)),
    _line("partitions_assigned", "Adding newly assigned partitions: {partitions}", (2, 4)),
    _line("partitions_assigned", "Setting newly assigned partitions {partitions}", OLDEST, (2, 4), "set"),
    _line("partitions_revoked", "Revoke previously assigned partitions {partitions}", (2, 4)),
    _line("partitions_revoked", "Revoking previously assigned partitions {partitions}", variant="revoking"),
    _line("partitions_lost", "Lost previously assigned partitions {partitions}", (2, 4)),
    _line("remark", "Giving away all assigned partitions as lost since generation{why}", (2, 4), variant="give-away"),
    _line("remark", "Need to revoke partitions {partitions} and re-join the group", (2, 4), (3, 0), "need"),
    _line("remark", "The pause flag in partitions {partitions} will be removed due to {why}", (3, 0), variant="pause"),
    _line("remark", "The following {topics}", variant="following"),
    # --- topics
    _line("topic_unavailable", "Error while fetching metadata with correlation id {rest?} : {{topic_errors}}"),
    _line(
        "topic_unavailable",
        "The metadata response from the cluster reported a recoverable issue with correlation id {rest?} : "
        "{{topic_errors}}",
        (4, 0),
        variant="recoverable",
    ),
    _line("topic_unavailable", "Topic authorization failed for topics [{topics}]", variant="authorization"),
    _line("topic_unavailable", "Metadata response reported invalid topics [{topics}]", variant="invalid"),
    _line(
        "topic_unavailable",
        "Not authorized to read from ~(?:topic (?=\\S+\\.)|partition (?=\\S+-\\d+\\.))~{topic?}~(?:-\\d+)?\\.~",
        variant="read",
    ),
    _line("topic_unavailable", "Not authorized to commit to topics [{topics}]", variant="commit"),
    _line("join_failed", "A ~(?=group authorization error)~{problem}", variant="authorization"),
    # --- out of the group
    _line("membership_reset", "Resetting generation <3.0-:{and?}>due to: {reason}", (2, 8)),
    _line("poll_timeout_exceeded", f"~(?:This member will leave the group because )?~<4.0-:C|c>{_POLL_TIMEOUT}"),
    _line("poll_timeout_exceeded", "~.*[Cc]~onsumer poll timeout has expired{rest}", variant="other"),
    _line(
        "group_left",
        "Member {member?} sending LeaveGroup request to coordinator {coordinator?}<2.4-: due to {reason}>",
        (2, 2),
    ),
    _line("remark", "LeaveGroup request {problem}", variant="leave"),
    _line(
        "coordinator_lost",
        "Attempt to heartbeat failed since coordinator {coordinator?} is either not started or not valid<-2.7:.>",
        variant="heartbeat",
    ),
    _line(
        "heartbeat_failed",
        "Attempt to heartbeat with <-2.5:>~(?:stale )?~Generation{generation_text?} and group instance id {instance?} "
        "failed due to {problem?}, {consequence}",
        (2, 6),
    ),
    _line(
        "heartbeat_failed",
        "Attempt to heartbeat failed since generation {generation} is not current",
        OLDEST,
        (2, 6),
        "generation",
    ),
    _line(
        "heartbeat_failed",
        "Attempt to heartbeat failed for since member id {member} is not valid.",
        OLDEST,
        (2, 6),
        "member",
    ),
    _line("fenced", "Caught fenced group.instance.id {instance} error in heartbeat thread", (2, 4)),
    _line("fenced", "Received fatal exception: group.instance.id gets fenced", (2, 3), variant="received"),
    # --- commits
    _line(
        "commit_failed",
        "Failing OffsetCommit request since the consumer is not part of an active group",
        (2, 4),
        variant="not-member",
    ),
    _line("commit_failed", f"OffsetCommit failed with {_GENERATION}: {{problem}}", (2, 6)),
    _line(
        "commit_failed",
        "OffsetCommit failed with {generation_text} due to group instance id {instance} fenced",
        (2, 6),
        variant="fenced",
    ),
    _line(
        "commit_failed",
        "OffsetCommit failed for member {member} with stale member epoch error. Last epoch sent: {problem}",
        (3, 7),
        variant="stale",
    ),
    _line("commit_failed", "OffsetCommit failed with {problem}", (3, 7), variant="error"),
    _line(
        "commit_failed", "~(?:As|S)ynchronous auto-commit of offsets ~{committed?} failed: {problem}", variant="auto"
    ),
    _line("commit_failed", "Auto-commit of offsets {committed?} failed~.*~", (3, 7), variant="auto-async"),
    _line(
        "commit_failed",
        "Asynchronous auto-commit of offsets failed: {problem}",
        (2, 7),
        variant="before-join",
    ),
    _line("commit_failed", "Offset commit with offsets {committed?} failed~.*~", variant="callback"),
    _line(
        "commit_failed",
        "Offset commit failed on partition {topic}-{number} at offset {offset}: {problem}",
        variant="partition",
    ),
    # --- the streams protocol (KIP-1071)
    _line("streams_status", "Membership is in the following statuses: {statuses}", (4, 2)),
    _line(
        "streams_given",
        "Assigning active tasks {{active?}}, standby tasks {{standby?}}, and warm-up tasks {{warmup?}} to the member.",
        (4, 2),
    ),
    _line("streams_refused", "StreamsGroupHeartbeatRequest failed due to unexpected error {problem}: {rest}", (4, 2)),
    _line(
        "streams_refused",
        "StreamsGroupHeartbeatRequest failed ~(?:for member .* )?~due to "
        "~(?=STREAMS_|GROUP_MAX|UNSUPPORTED|GROUP_ID_NOT)~{problem}: {rest}",
        (4, 2),
        variant="known",
    ),
    _line(
        "streams_refused",
        "StreamsGroupHeartbeatRequest failed because of an ~(?=unsupported version exception)~{problem}: {rest}",
        (4, 2),
        variant="version",
    ),
    _line(
        "remark",
        "~(?:Received Streams group configuration|Assigned tasks with local epoch|Revoking previously assigned"
        "|Marking (?:lost )?partitions|Invoking tasks?|Dynamic member|Completed leaving|The on(?:Tasks|AllTasks)"
        "|Broker requested topology|Leaving newly assigned)~{rest}",
        (4, 2),
        variant="streams",
    ),
    # --- the consumer protocol
    _line("member_state", f"{_MEMBER} transitioned from {{state_before}} to {{state}}.", (3, 7)),
    _line("fatal", f"{_MEMBER} transitioned to fatal state", (3, 7)),
    _line(
        "remark",
        "Member {member} received heartbeat interval {waited_ms}ms from the group coordinator",
        (4, 3),
        variant="interval",
    ),
    _line(
        "heartbeat_failed",
        "ShareGroupHeartbeatRequest failed ~(?=for member .* because epoch|because member .*unknown)~{problem}",
        (4, 0),
        variant="share",
    ),
    _line(
        "heartbeat_failed",
        f"{_HEARTBEAT} failed ~(?=for member .* because epoch|because member .*unknown)~{{problem}}",
        (3, 7),
    ),
    _line(
        "fenced",
        f"{_HEARTBEAT} failed due to ~(?:fenced|unreleased|the) ?~instance id {{instance?}}~(?::| was)~{{rest}}",
        (3, 7),
        variant="epoch",
    ),
    _line("join_failed", f"{_HEARTBEAT} failed due to {{problem}}", (3, 7), variant="heartbeat"),
    _line(
        "coordinator_lost",
        f"{_HEARTBEAT} failed because the group coordinator {{coordinator?}} is ~(?:incorrect|not available)~{{rest}}",
        (3, 7),
        variant="heartbeat-epoch",
    ),
    _line("remark", f"{_HEARTBEAT} failed because {{rest}}", (3, 7), variant="heartbeat"),
    _line(
        "remark",
        "Time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, exceeded "
        "approximately by {late_ms} ms. Member {member} will rejoin the group now.",
        (3, 8),
        variant="late",
    ),
    _line("reconciling", "Reconciling assignment with local epoch {local_epoch}{update}", (3, 7)),
    _line("remark", "Member {member} {rest}", variant="member"),
    _line(
        "remark",
        "~(?:Found no committed offset|Setting offset|The following partitions|Auto-commit|Reconciliation"
        "|Interrupting reconciliation|Heartbeat|Unsubscribed|Close timed out|Could not|Not authorized|FindCoordinator"
        "|Heartbeat thread|Ignoring the returned|User provided listener|We received an assignment|Group coordinator"
        "|Commit of offsets|Kafka consumer has been closed|Topic authorization)~{rest}",
        variant="other",
    ),
)
"""In the order in which a reader tries them."""
