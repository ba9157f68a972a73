"""Formats every event as one line of text, the same in transcripts, timelines and the demo.

A line begins with its subject (a group, a topic, an offsets partition) and two spaces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from rejoin.journal.events import consumer_groups, share_groups, share_partitions, streams_groups, transactions
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import Cause, CommittedOffset, Ownership
from rejoin.journal.share_formatting import share_partition_line
from rejoin.journal.streams_formatting import streams_line

REMOVED_BECAUSE = {
    "left": "left",
    "session-expiry": "no heartbeat in time",
    "did-not-rejoin": "did not rejoin in time",
    "sync-expiry": "no SyncGroup",
    "over-capacity": "the group is full",
    "rebalance-expiry": "did not give up its partitions in time",
}

BEGAN_BECAUSE: dict[str, Callable[[str], str]] = {
    "join-new": lambda member: f"{member} joined",
    "rejoin-metadata": lambda member: f"{member} joined again with changed metadata",
    "rejoin-leader": lambda member: f"the leader {member} joined again",
    "static-metadata": lambda member: f"{member} restarted while a rebalance was being completed",
    "static-protocol": lambda member: f"{member} restarted with other protocols",
    "leave": lambda member: f"{member} left",
    "session-expiry": lambda member: f"{member} sent no heartbeat in time",
    "sync-expiry": lambda member: f"{member} sent no SyncGroup in time",
    "store-failure": lambda member: f"the assignment of {member} could not be stored",
    "over-capacity": lambda _: "the group is larger than group.max.size",
    "downgrade": lambda member: f"{member} was the last with the consumer protocol",
    "upgrade": lambda member: f"{member} is the first with the consumer protocol",
    "rebalance-expiry": lambda member: f"{member} did not give up its partitions in time",
    "did-not-rejoin": lambda member: f"{member} did not rejoin in time",
    "topic-metadata": lambda _: "the subscribed topics have changed",
    "regex-resolved": lambda _: "a regular expression matches other topics",
    "settings-changed": lambda _: "settings of the assignment changed",
    "assignor-changed": lambda member: f"with {member} most members ask for another assignor",
    "partitions-initialized": lambda member: "other share-partitions are initialised than the members have",
    "failover": lambda _: "loaded before all members had reached the epoch",
}


DEFAULT_REASON = "need to re-join with the given member-id"
"""The reason of every client that joins with the id from MEMBER_ID_REQUIRED. It is left out."""


def client_reason(reason: str | None) -> str:
    """The client's reason after a colon; empty where it has none."""
    return f": {reason}" if reason and not reason.startswith(DEFAULT_REASON) else ""


def cause_text(cause: Cause) -> str:
    """The cause of a rebalance, with the client's reason."""
    member = cause.member_id or "a member"
    if cause.group_instance_id:
        member = f"{member} ({cause.group_instance_id})"
    because = BEGAN_BECAUSE.get(cause.cause)  # logs of old brokers do not say it
    return (because(member) if because else "the log does not say why") + client_reason(cause.client_reason)


def partitions(indexes: list[int]) -> str:
    """Partition numbers, with consecutive ones as a range: ``0-3,7``."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def owned(topics: dict[str, list[int]]) -> str:
    """The partitions of one member: ``orders:0-3 clicks:1``; a dash for none."""
    return " ".join(f"{topic}:{partitions(indexes)}" for topic, indexes in sorted(topics.items()) if indexes) or "-"


def ownership(members: Ownership) -> str:
    return ", ".join(f"{member_id} {owned(topics)}" for member_id, topics in members.items())


def offsets(committed: list[CommittedOffset]) -> str:
    return " ".join(f"{entry.topic}:{entry.partition}={entry.offset}" for entry in committed) or "nothing"


def format_event(event: Event) -> str:
    """The event in one line."""
    subject = ""
    if isinstance(event, events.GroupEvent):
        subject = f"{event.group_id or '(empty id)'}  "
    elif isinstance(event, transactions.ProducerEvent):
        subject = f"{event.transactional_id}  " if event.transactional_id else ""
    elif isinstance(event, transactions.TransactionalLogEvent):
        subject = f"{event.topic}:{event.partition}  "
    return subject + _format(event)


@singledispatch
def _format(event: Event) -> str:
    fields = " ".join(f"{name}={value}" for name, value in event.model_dump(exclude={"group_id"}).items())
    return f"{event.name} {fields}"


@_format.register
def _(event: events.GroupCreated) -> str:
    return "created by a commit from outside" if event.simple else "created"


@_format.register
def _(event: events.GroupLoaded) -> str:
    members = f"{len(event.members)} members"
    return f"loaded: {event.state}, generation {event.generation}, {members}, {event.offset_count} offsets"


@_format.register
def _(event: events.GroupStateChanged) -> str:
    return f"{event.previous_state} -> {event.state}"


@_format.register
def _(event: events.GroupDeleted) -> str:
    return f"deleted ({event.reason}), {event.offset_count} offsets with it"


@_format.register
def _(event: events.MemberIdHandedOut) -> str:
    return f"{event.member_id} may join"


@_format.register
def _(event: events.PendingMemberRemoved) -> str:
    return f"{event.member_id} may no longer join ({REMOVED_BECAUSE[event.cause]})"


@_format.register
def _(event: events.MemberJoined) -> str:
    static = f" as {event.group_instance_id}" if event.group_instance_id else ""
    return f"{event.member_id} joined{static}{client_reason(event.client_reason)}"


@_format.register
def _(event: events.MemberRejoined) -> str:
    changed = " with changed metadata" if event.changed else ""
    return f"{event.member_id} rejoined{changed}{client_reason(event.client_reason)}"


@_format.register
def _(event: events.StaticMemberReplaced) -> str:
    effect = "" if event.rebalance or event.state == "PreparingRebalance" else ", without a rebalance"
    return f"{event.group_instance_id} is back: {event.member_id} replaces {event.old_member_id}{effect}"


@_format.register
def _(event: events.StaticMemberRestored) -> str:
    return (
        f"{event.group_instance_id} is {event.member_id} again, {event.refused_member_id} could not be stored "
        f"({event.error})"
    )


@_format.register
def _(event: events.MemberFenced) -> str:
    return f"{event.member_id} fenced in {event.api}: {event.group_instance_id} is {event.current_member_id} now"


@_format.register
def _(event: events.MemberRemoved) -> str:
    static = f" ({event.group_instance_id})" if event.group_instance_id else ""
    return f"{event.member_id}{static} removed ({REMOVED_BECAUSE[event.cause]}){client_reason(event.client_reason)}"


@_format.register
def _(event: events.LeaderChanged) -> str:
    if event.leader is None:
        return f"{event.previous_leader} no longer leads; the group has no leader"
    return f"{event.leader} leads"


@_format.register
def _(event: events.RebalanceStarted) -> str:
    kind = "first rebalance" if event.initial else "rebalance"
    limit = "" if event.join_timeout_ms is None else f" (at most {event.join_timeout_ms} ms)"
    return f"{kind}: {cause_text(event.cause)}{limit}"


@_format.register
def _(event: events.RebalanceDelayExtended) -> str:
    return f"waits another {event.delay_ms} ms for more members"


@_format.register
def _(event: events.JoinPhaseRepeated) -> str:
    return f"no member rejoined; only static members are left, waiting another {event.join_timeout_ms} ms"


@_format.register
def _(event: events.JoinPhaseEnded) -> str:
    absent = f", absent: {' '.join(event.absent)}" if event.absent else ""
    return f"generation {event.generation}: {' '.join(event.members)}, {event.leader} leads, {event.protocol}{absent}"


@_format.register
def _(event: events.AssignmentReceived) -> str:
    missing = f", nothing for {' '.join(event.without_assignment)}" if event.without_assignment else ""
    return f"assignment from {event.leader} for generation {event.generation}{missing}"


@_format.register
def _(event: events.AssignmentStoreFailed) -> str:
    return f"assignment of generation {event.generation} not stored ({event.error})"


@_format.register
def _(event: events.RebalanceCompleted) -> str:
    attempts = f" in {event.attempts} attempts" if event.attempts > 1 else ""
    return (
        f"rebalanced in {event.rebalance_ms} ms{attempts}, {event.moved} moved, {event.regained} regained: "
        f"{ownership(event.owned_after)}"
    ).rstrip(": ")


@_format.register
def _(event: events.GroupEmptied) -> str:
    return f"generation {event.generation} is empty"


@_format.register
def _(event: events.OffsetsCommitted) -> str:
    committer = event.member_id or "outside the group"
    held = f", held by producer {event.producer_id}" if event.producer_id is not None else ""
    return f"committed by {committer}: {offsets(event.offsets)}{held}"


@_format.register
def _(event: events.CommitRefused) -> str:
    return f"commit by {event.member_id or 'outside the group'} refused ({event.error})"


@_format.register
def _(event: events.TransactionEnded) -> str:
    return f"producer {event.producer_id} {'committed' if event.committed else 'aborted'}: {offsets(event.offsets)}"


@_format.register
def _(event: events.OffsetsDeleted) -> str:
    return f"offsets gone ({event.reason}): {offsets(event.offsets)}"


@_format.register
def _(event: events.PartitionElected) -> str:
    return f"offsets partition {event.partition}  elected in epoch {event.epoch}"


@_format.register
def _(event: events.PartitionLoaded) -> str:
    return f"offsets partition {event.partition}  loaded {event.records} records, {event.groups} groups"


@_format.register
def _(event: events.PartitionResigned) -> str:
    return f"offsets partition {event.partition}  resigned with {event.groups} groups"


@_format.register
def _(event: events.AppendFailed) -> str:
    return f"offsets partition {event.partition}  append of {event.records} records failed ({event.error})"


@_format.register
def _(event: events.TopicCreated) -> str:
    return f"{event.topic}  topic created with {event.partition_count} partitions"


@_format.register
def _(event: events.TopicGrown) -> str:
    return f"{event.topic}  topic grew from {event.previous_partition_count} to {event.partition_count} partitions"


@_format.register
def _(event: events.TopicDeleted) -> str:
    return f"{event.topic}  topic deleted"


@_format.register
def _(event: events.ClientMetricsReported) -> str:
    who = event.member_id or event.client_id or event.client_instance_id
    poll, rebalance = event.poll_interval_max_ms, event.rebalance_latency_max_ms
    said = [f"{name} of up to {ms} ms" for name, ms in (("polls", poll), ("rebalances", rebalance)) if ms is not None]
    return f"{who}  measured {', '.join(said) or 'neither polls nor rebalances'}"


# --- groups of the consumer protocol


@_format.register
def _(event: consumer_groups.GroupEpochBumped) -> str:
    return f"group epoch {event.generation}: {cause_text(event.cause)}"


@_format.register
def _(event: consumer_groups.TargetAssignmentComputed) -> str:
    changed = ownership(event.target) if event.target else "nothing new"
    return f"target of epoch {event.generation} by {event.assignor}: {changed}"


@_format.register
def _(event: consumer_groups.RegexResolved) -> str:
    return f"{event.pattern} matches {' '.join(event.topics) or 'no topic'}"


@_format.register
def _(event: consumer_groups.RevocationRequested) -> str:
    limit = f" (at most {event.rebalance_timeout_ms} ms)"
    return f"{event.member_id} is to give up {owned(event.partitions)}, still in epoch {event.member_epoch}{limit}"


@_format.register
def _(event: consumer_groups.RevocationCompleted) -> str:
    return f"{event.member_id} has given up {owned(event.partitions)} after {event.revocation_ms} ms"


@_format.register
def _(event: consumer_groups.PartitionsAwaited) -> str:
    held = ", ".join(f"{owned(topics)} of {member_id}" for member_id, topics in event.holders.items())
    return f"{event.member_id} in epoch {event.member_epoch} waits for {held or 'what is free by now'}"


@_format.register
def _(event: consumer_groups.MemberReconciled) -> str:
    return f"{event.member_id} reached epoch {event.member_epoch}: {owned(event.partitions)}"


@_format.register
def _(event: consumer_groups.MemberEpochFenced) -> str:
    return f"{event.member_id} fenced with epoch {event.member_epoch}: it is in {event.current_epoch}"


@_format.register
def _(event: consumer_groups.StaticMemberLeft) -> str:
    return f"{event.group_instance_id} left for a moment and keeps {owned(event.partitions)}: {event.member_id}"


@_format.register
def _(event: consumer_groups.GroupConverted) -> str:
    return f"a {event.group_type} group from epoch {event.generation} on, through {event.member_id or 'a member'}"


REFUSED_BECAUSE = {
    "policy": "group.consumer.migration.policy does not allow it",
    "classic-member": "group.consumer.migration.policy is disabled, so that it cannot join",
    "size": "it has more members than the other protocol allows",
    "protocol-type": "its members are no consumers",
    "no-protocol": "it has not chosen an assignor that all members support",
    "unreadable": "a subscription or an assignment cannot be read",
    "user-data": "its assignor hands out user data, which would be lost",
}


@_format.register
def _(event: consumer_groups.ConversionRefused) -> str:
    why = REFUSED_BECAUSE[event.reason] + (f" ({event.culprit})" if event.culprit else "")
    return f"{event.member_id or 'a member'} cannot make it a {event.group_type} group: {why}"


# --- share groups


@_format.register
def _(event: share_groups.SharePartitionsInitializing) -> str:
    return f"state of {owned(event.partitions)} is asked for, with state epoch {event.generation}"


@_format.register
def _(event: share_groups.SharePartitionsInitialized) -> str:
    if event.error is not None:
        return f"{owned(event.partitions)} could not be initialised: {event.error}"
    return f"{owned(event.partitions)} can be shared"


@_format.register
def _(event: share_groups.SharePartitionsDeleted) -> str:
    topics = " ".join(event.topics)
    return f"state of {topics} deleted" if event.error is None else f"state of {topics} not deleted: {event.error}"


@_format.register
def _(event: streams_groups.StreamsGroupEvent) -> str:
    return streams_line(event)


@_format.register
def _(event: share_partitions.SharePartitionEvent) -> str:
    return share_partition_line(event)


# --- transactions


def _producer(event: transactions.ProducerEvent | transactions.TransactionalLogEvent) -> str:
    return f"producer {event.producer_id} epoch {event.producer_epoch}"


ENDED_BECAUSE = {"timeout": " (transaction.timeout.ms)", "fencing": " (another InitProducerId)", "client": "", None: ""}


@_format.register
def _(event: transactions.ProducerIdInitialized) -> str:
    before = "" if event.previous_producer_id is None else f", after producer {event.previous_producer_id}"
    return f"{_producer(event)} initialized{before}"


@_format.register
def _(event: transactions.TransactionStarted) -> str:
    return f"transaction of {_producer(event)} started: {owned(event.partitions)}"


@_format.register
def _(event: transactions.PartitionsAddedToTxn) -> str:
    return f"added to the transaction: {owned(event.partitions)}"


@_format.register
def _(event: transactions.TransactionPrepared) -> str:
    state = "PrepareCommit" if event.committed else "PrepareAbort"
    return f"{state} after {event.open_ms} ms{ENDED_BECAUSE[event.ended_by]}"


@_format.register
def _(event: transactions.TransactionCompleted) -> str:
    state = "CompleteCommit" if event.committed else "CompleteAbort"
    return f"{state}, markers after {event.markers_ms} ms"


@_format.register
def _(event: transactions.TransactionalIdExpired) -> str:
    return "transactional id expired"


@_format.register
def _(event: transactions.ProducerFenced) -> str:
    where = f" on {event.topic}:{event.partition}" if event.topic is not None else ""
    return f"{_producer(event)} fenced in {event.api}{where}: the epoch is {event.current_epoch}"


@_format.register
def _(event: transactions.TransactionsLoaded) -> str:
    return f"{event.topic}:{event.partition}  loaded {event.transactional_ids} transactional ids"


@_format.register
def _(event: transactions.TransactionOpened) -> str:
    return f"transaction of {_producer(event)} begins at {event.first_offset}"


@_format.register
def _(event: transactions.TransactionMarkerWritten) -> str:
    ends = "" if event.end_offset is None else f", LSO {event.last_stable_offset} of {event.end_offset}"
    return f"{'COMMIT' if event.committed else 'ABORT'} marker of {_producer(event)}{ends}"


@_format.register
def _(event: transactions.LastStableOffsetHeld) -> str:
    return f"LSO {event.last_stable_offset} of {event.end_offset}, held for {event.held_ms} ms by {_producer(event)}"
