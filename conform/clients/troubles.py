"""The table of troubles: what the broker does, what a right client does about it by Kafka's protocol, and who says so.

Sources are classes of the Java client, whose reactions are the reference, and Kafka's improvement proposals (KIPs).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rejoin.conform.clients import acts, checks, transactions
from rejoin.conform.clients.checks import of_classic
from rejoin.conform.clients.error_troubles import ERROR_TROUBLES
from rejoin.conform.clients.observed import HEARTBEATS
from rejoin.conform.clients.stage import PARTITIONS
from rejoin.conform.clients.trouble import ClientTrouble
from rejoin.protocol.errors import ErrorCode as E

TROUBLES: Final = (
    ClientTrouble(
        "calm",
        "nothing",
        "join with the member id that the broker gave, and send heartbeats",
        "KIP-394; AbstractCoordinator",
        checks.lives_calmly,
    ),
    ClientTrouble(
        "join-answer-lost",
        "the first JoinGroup gets no answer, and its connection ends",
        "join again",
        "AbstractCoordinator.joinGroupIfNeeded",
        of_classic(partial(checks.joins_after, None, "JoinGroup")),
        before=acts.prepared(keys="JoinGroup", when="drop_response"),
    ),
    ClientTrouble(
        "coordinator-loading",
        "the first four JoinGroups are answered COORDINATOR_LOAD_IN_PROGRESS",
        "join again, with time in between",
        "AbstractCoordinator.JoinGroupResponseHandler; retry.backoff.ms",
        of_classic(partial(checks.joins_after, E.COORDINATOR_LOAD_IN_PROGRESS, "JoinGroup")),
        before=acts.prepared(keys="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", hits=4),
    ),
    ClientTrouble(
        "sync-refused",
        "the first SyncGroup is answered REBALANCE_IN_PROGRESS",
        "join again with the same member id",
        "AbstractCoordinator.SyncGroupResponseHandler",
        of_classic(partial(checks.joins_after, E.REBALANCE_IN_PROGRESS, "SyncGroup")),
        before=acts.prepared(keys="SyncGroup", error="REBALANCE_IN_PROGRESS"),
    ),
    ClientTrouble(
        "coordinator-moves",
        "the broker leads the group no more, and answers NOT_COORDINATOR, until it is asked for the coordinator",
        "ask FindCoordinator, and go on as the same member",
        "AbstractCoordinator.markCoordinatorUnknown; KIP-848 for the consumer protocol",
        partial(checks.finds_coordinator, E.NOT_COORDINATOR),
        act=acts.move_coordinator,
    ),
    ClientTrouble(
        "coordinator-unavailable",
        "a heartbeat and then four FindCoordinators are answered COORDINATOR_NOT_AVAILABLE",
        "ask FindCoordinator again and again, with time in between, and go on as the same member",
        "AbstractCoordinator.HeartbeatResponseHandler; retry.backoff.ms",
        partial(checks.finds_coordinator, E.COORDINATOR_NOT_AVAILABLE),
        act=acts.coordinator_unavailable,
    ),
    ClientTrouble(
        "new-member",
        "a second member joins the group, and leaves again",
        "join and sync with the same member id, and use the new generation from then on",
        "AbstractCoordinator.HeartbeatResponseHandler, REBALANCE_IN_PROGRESS",
        of_classic(partial(checks.rejoins, E.REBALANCE_IN_PROGRESS, ("Heartbeat", "OffsetCommit"), "same", True)),
        act=acts.add_member,
    ),
    ClientTrouble(
        "removed",
        "an administrator removes the member, as the end of its session would",
        "join with an empty member id; send no heartbeats and no commits with the old one",
        "AbstractCoordinator.resetStateOnResponseError, UNKNOWN_MEMBER_ID",
        of_classic(partial(checks.rejoins, E.UNKNOWN_MEMBER_ID, ("Heartbeat", "OffsetCommit"), "none", False)),
        act=acts.remove_member,
    ),
    ClientTrouble(
        "illegal-generation",
        "a heartbeat is answered ILLEGAL_GENERATION",
        "join again; send no heartbeats and no commits with the old generation",
        "AbstractCoordinator.resetStateOnResponseError, ILLEGAL_GENERATION",
        of_classic(partial(checks.rejoins, E.ILLEGAL_GENERATION, ("Heartbeat",), "any", False)),
        act=acts.faulty(keys="Heartbeat", error="ILLEGAL_GENERATION"),
    ),
    ClientTrouble(
        "fenced",
        "another process joins with the group.instance.id of the client, which then gets FENCED_INSTANCE_ID "
        "(UNKNOWN_MEMBER_ID where its requests do not name it)",
        "stop: neither join nor send heartbeats nor commit",
        "KIP-345; AbstractCoordinator.HeartbeatResponseHandler",
        of_classic(checks.stays_fenced),
        act=acts.fence,
    ),
    ClientTrouble(
        "epoch-fenced",
        "a ConsumerGroupHeartbeat is answered FENCED_MEMBER_EPOCH",
        "join with epoch 0 and the same member id",
        "KIP-848; ConsumerHeartbeatRequestManager",
        partial(checks.begins_with_epoch_0, E.FENCED_MEMBER_EPOCH),
        act=acts.fence_epoch,
    ),
    ClientTrouble(
        "connection-cut",
        "a heartbeat gets no answer, and its connection ends",
        "connect again, and go on as the same member",
        "AbstractCoordinator.CoordinatorResponseHandler.onFailure",
        checks.reconnects,
        act=acts.faulty(keys=HEARTBEATS, when="drop_response"),
    ),
    ClientTrouble(
        "commit-refused",
        "an OffsetCommit is answered COORDINATOR_LOAD_IN_PROGRESS",
        "commit these offsets or later ones",
        "ConsumerCoordinator.OffsetCommitResponseHandler",
        partial(checks.commits_again, E.COORDINATOR_LOAD_IN_PROGRESS),
        act=acts.faulty(keys="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS"),
    ),
    ClientTrouble(
        "commit-answer-lost",
        "an OffsetCommit gets no answer, and its connection ends",
        "commit these offsets or later ones",
        "ConsumerCoordinator.OffsetCommitResponseHandler",
        partial(checks.commits_again, None),
        act=acts.faulty(keys="OffsetCommit", when="drop_response"),
    ),
    ClientTrouble(
        "commit-of-removed",
        "an OffsetCommit is answered UNKNOWN_MEMBER_ID, and the member is removed",
        "join again; send no heartbeats and no commits with the old member id",
        "ConsumerCoordinator.OffsetCommitResponseHandler",
        of_classic(partial(checks.rejoins, E.UNKNOWN_MEMBER_ID, ("OffsetCommit",), "any", False)),
        act=acts.faulty(acts.remove_member, keys="OffsetCommit", error="UNKNOWN_MEMBER_ID"),
    ),
    ClientTrouble(
        "close",
        "the program gets SIGTERM",
        "leave the group, unless it has a group.instance.id",
        "AbstractCoordinator.maybeLeaveGroup; KIP-345",
        checks.leaves,
        act=acts.close,
    ),
    ClientTrouble(
        "close-in-rebalance",
        "the program gets SIGTERM while its JoinGroup waits for another member, which joins 2 seconds later",
        "end and leave the group",
        "AbstractCoordinator.maybeLeaveGroup; ConsumerCoordinator.close",
        of_classic(checks.leaves_in_rebalance),
        act=acts.close_in_rebalance,
    ),
    ClientTrouble(
        "slow-rebalance",
        "another member holds up a rebalance for 6 seconds, in which JoinGroup gets no answer",
        "wait for the answer, and go on as the same member with the new generation",
        "AbstractCoordinator.sendJoinGroupRequest: the rebalance timeout and 5 s",
        of_classic(checks.waits_for_join),
        act=acts.hold_up_rebalance,
    ),
    ClientTrouble(
        "removed-twice",
        "an administrator removes the member, and again as soon as it has joined",
        "join with an empty member id; send no heartbeats and no commits with the old one",
        "AbstractCoordinator.resetStateOnResponseError, UNKNOWN_MEMBER_ID",
        of_classic(partial(checks.rejoins, E.UNKNOWN_MEMBER_ID, ("Heartbeat", "OffsetCommit"), "none", False)),
        act=acts.remove_twice,
    ),
    ClientTrouble(
        "topic-grown",
        f"the topic gets {acts.NEW_PARTITIONS} more partitions",
        "see them in its metadata, join again, and fetch from each",
        "ConsumerCoordinator.rejoinNeededOrPending; KIP-848: the broker assigns them",
        partial(checks.reads_new_partitions, PARTITIONS, acts.NEW_PARTITIONS),
        act=acts.grow_topic,
    ),
    ClientTrouble(
        "brokers-restart",
        "both brokers stop, and start again 3 seconds later on the same ports",
        "connect again, ask FindCoordinator, and go on as the same member",
        "AbstractCoordinator.ensureCoordinatorReady",
        checks.survives_restart,
        act=acts.restart_brokers,
        brokers=2,
    ),
    *ERROR_TROUBLES,
    ClientTrouble(
        "producer-fenced",
        "another producer begins with the transactional id of the client",
        "stop: neither begin anew with this transactional id nor go on as the old producer",
        "KIP-447; TransactionManager, PRODUCER_FENCED and INVALID_PRODUCER_EPOCH",
        transactions.stays_fenced,
        act=transactions.fence_producer,
        is_watched=True,
    ),
    ClientTrouble(
        "transaction-refused",
        "a TxnOffsetCommit is answered ILLEGAL_GENERATION",
        "abort the transaction",
        "KIP-447; TransactionManager.TxnOffsetCommitHandler",
        transactions.aborts,
        act=transactions.refuse_offsets,
    ),
)

BY_NAME: Final = {each.name: each for each in TROUBLES}
