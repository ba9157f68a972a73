"""The table of troubles: what the broker does, what a right client does about it by Kafka's protocol, and who says so.

Sources are classes of the Java client, whose reactions are the reference, and Kafka's improvement proposals (KIPs).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from rejoin.conform.clients import checks
from rejoin.conform.clients.checks import Check, of_classic
from rejoin.conform.clients.observed import HEARTBEATS, OF_COORDINATORS, OF_MEMBERS, ClientLife, is_accepted, only
from rejoin.conform.clients.stage import SecondMember, TroubleStage, last_join
from rejoin.coordinator.testing.results import NotReached, OperationRefused
from rejoin.protocol.errors import ErrorCode

Act: TypeAlias = Callable[[TroubleStage], Awaitable[None]]
_QUIET_SECONDS: Final = 4.0


@dataclass(frozen=True)
class ClientTrouble:
    """A trouble. ``before`` prepares the broker before the client starts; ``act`` follows once it has joined."""

    name: str
    done: str
    expected: str
    source: str
    check: Check
    act: Act | None = None
    before: Act | None = None


def _faulty(when_hit: Act | None = None, *, hits: int = 1, **fields: Any) -> Act:
    """Make a fault, and wait until the client has met it."""

    async def act(stage: TroubleStage) -> None:
        fault = await stage.coordinator.add_fault(count=hits, **fields)
        if await stage.until(lambda _: fault.hits > 0, stage.limits.meeting) and when_hit is not None:
            await when_hit(stage)

    return act


def _prepared(*, hits: int = 1, **fields: Any) -> Act:
    """Make a fault, without waiting for it."""

    async def before(stage: TroubleStage) -> None:
        await stage.coordinator.add_fault(count=hits, **fields)

    return before


async def _quiet(stage: TroubleStage) -> None:
    """Give the client time for what it must not do."""
    await stage.until(lambda _: False, min(_QUIET_SECONDS, stage.limits.reaction))


async def _move_coordinator(stage: TroubleStage) -> None:
    """Take the group from this broker until the client looks for its coordinator."""
    join = await _group_of(stage)
    partition = await stage.coordinator.resign(group=join)

    def has_met(life: ClientLife) -> bool:
        return life.index_of(ErrorCode.NOT_COORDINATOR, OF_COORDINATORS) is not None

    def has_asked(life: ClientLife) -> bool:
        refused = life.index_of(ErrorCode.NOT_COORDINATOR, OF_COORDINATORS)
        return refused is not None and any(only(life.after(refused), "FindCoordinator"))

    if await stage.until(has_met, stage.limits.meeting):
        await stage.until(has_asked, stage.limits.reaction)
    await stage.coordinator.elect(partition=partition)


async def _group_of(stage: TroubleStage) -> str:
    requests = (await stage.life()).requests
    asked: Any = next(only(requests, "JoinGroup", "ConsumerGroupHeartbeat")).request
    return str(asked.group_id)


async def _add_member(stage: TroubleStage) -> None:
    """A second member joins, and leaves after the client has followed."""
    join = last_join((await stage.life()).requests)
    if join is None:
        return
    other = SecondMember(stage.coordinator, join)
    async with _second_member(other):

        def has_followed(life: ClientLife) -> bool:
            beats: list[Any] = [each.request for each in only(life.requests, "Heartbeat") if is_accepted(each)]
            return 0 < other.generation <= max((each.generation_id for each in beats), default=-1)

        def has_met(life: ClientLife) -> bool:
            return life.index_of(ErrorCode.REBALANCE_IN_PROGRESS, ("Heartbeat", "OffsetCommit")) is not None

        has_met_it = await stage.until(has_met, stage.limits.meeting)
        if has_met_it and await stage.until(has_followed, stage.limits.reaction):
            await other.leave()


@asynccontextmanager
async def _second_member(other: SecondMember) -> AsyncIterator[None]:
    """Run a second member for the length of the block."""
    running = asyncio.ensure_future(other.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def _remove_member(stage: TroubleStage) -> None:
    group = await _group_of(stage)
    view: Any = await stage.coordinator.group(group)
    for member in view.members if view is not None else ():
        with suppress(OperationRefused, NotReached):
            await stage.coordinator.kick(group, member.member_id)
    await stage.until(_has_lost_membership, stage.limits.meeting)


def _has_lost_membership(life: ClientLife) -> bool:
    errors = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
    return any(life.index_of(error, (*HEARTBEATS, "OffsetCommit")) is not None for error in errors)


async def _close(stage: TroubleStage) -> None:
    if stage.program is not None:
        stage.asked_to_end = True
        stage.closed = await stage.program.close(stage.limits.closing)


async def _fence(stage: TroubleStage) -> None:
    """Another process joins with the client's group.instance.id, and gets its place; a static member alone has one."""
    join = last_join((await stage.life()).requests)
    if join is None or join.group_instance_id is None:
        return
    async with _second_member(SecondMember(stage.coordinator, join, join.group_instance_id)):

        def has_met(life: ClientLife) -> bool:
            return life.index_of(ErrorCode.FENCED_INSTANCE_ID, OF_MEMBERS) is not None

        if await stage.until(has_met, stage.limits.meeting):
            await _quiet(stage)


async def _fence_epoch(stage: TroubleStage) -> None:
    if (await stage.life()).speaks_consumer_protocol:
        await _faulty(keys="ConsumerGroupHeartbeat", error="FENCED_MEMBER_EPOCH")(stage)


async def _coordinator_unavailable(stage: TroubleStage) -> None:
    await _prepared(keys="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", hits=4)(stage)
    await _faulty(keys=HEARTBEATS, error="COORDINATOR_NOT_AVAILABLE")(stage)


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
        before=_prepared(keys="JoinGroup", when="drop_response"),
    ),
    ClientTrouble(
        "coordinator-loading",
        "the first four JoinGroups are answered COORDINATOR_LOAD_IN_PROGRESS",
        "join again, with time in between",
        "AbstractCoordinator.JoinGroupResponseHandler; retry.backoff.ms",
        of_classic(partial(checks.joins_after, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "JoinGroup")),
        before=_prepared(keys="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", hits=4),
    ),
    ClientTrouble(
        "sync-refused",
        "the first SyncGroup is answered REBALANCE_IN_PROGRESS",
        "join again with the same member id",
        "AbstractCoordinator.SyncGroupResponseHandler",
        of_classic(partial(checks.joins_after, ErrorCode.REBALANCE_IN_PROGRESS, "SyncGroup")),
        before=_prepared(keys="SyncGroup", error="REBALANCE_IN_PROGRESS"),
    ),
    ClientTrouble(
        "coordinator-moves",
        "the broker leads the group no more, and answers NOT_COORDINATOR, until it is asked for the coordinator",
        "ask FindCoordinator, and go on as the same member",
        "AbstractCoordinator.markCoordinatorUnknown; KIP-848 for the consumer protocol",
        partial(checks.finds_coordinator, ErrorCode.NOT_COORDINATOR),
        act=_move_coordinator,
    ),
    ClientTrouble(
        "coordinator-unavailable",
        "a heartbeat and then four FindCoordinators are answered COORDINATOR_NOT_AVAILABLE",
        "ask FindCoordinator again and again, with time in between, and go on as the same member",
        "AbstractCoordinator.HeartbeatResponseHandler; retry.backoff.ms",
        partial(checks.finds_coordinator, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        act=_coordinator_unavailable,
    ),
    ClientTrouble(
        "new-member",
        "a second member joins the group, and leaves again",
        "join and sync with the same member id, and use the new generation from then on",
        "AbstractCoordinator.HeartbeatResponseHandler, REBALANCE_IN_PROGRESS",
        of_classic(
            partial(checks.rejoins, ErrorCode.REBALANCE_IN_PROGRESS, ("Heartbeat", "OffsetCommit"), "same", True)
        ),
        act=_add_member,
    ),
    ClientTrouble(
        "removed",
        "an administrator removes the member, as the end of its session would",
        "join with an empty member id; send no heartbeats and no commits with the old one",
        "AbstractCoordinator.resetStateOnResponseError, UNKNOWN_MEMBER_ID",
        of_classic(partial(checks.rejoins, ErrorCode.UNKNOWN_MEMBER_ID, ("Heartbeat", "OffsetCommit"), "none", False)),
        act=_remove_member,
    ),
    ClientTrouble(
        "illegal-generation",
        "a heartbeat is answered ILLEGAL_GENERATION",
        "join again; send no heartbeats and no commits with the old generation",
        "AbstractCoordinator.resetStateOnResponseError, ILLEGAL_GENERATION",
        of_classic(partial(checks.rejoins, ErrorCode.ILLEGAL_GENERATION, ("Heartbeat",), "any", False)),
        act=_faulty(keys="Heartbeat", error="ILLEGAL_GENERATION"),
    ),
    ClientTrouble(
        "fenced",
        "another process joins with the group.instance.id of the client, which then gets FENCED_INSTANCE_ID",
        "stop: neither join nor send heartbeats nor commit",
        "KIP-345; AbstractCoordinator.HeartbeatResponseHandler",
        of_classic(checks.stays_fenced),
        act=_fence,
    ),
    ClientTrouble(
        "epoch-fenced",
        "a ConsumerGroupHeartbeat is answered FENCED_MEMBER_EPOCH",
        "join with epoch 0 and the same member id",
        "KIP-848; ConsumerHeartbeatRequestManager",
        partial(checks.begins_with_epoch_0, ErrorCode.FENCED_MEMBER_EPOCH),
        act=_fence_epoch,
    ),
    ClientTrouble(
        "connection-cut",
        "a heartbeat gets no answer, and its connection ends",
        "connect again, and go on as the same member",
        "AbstractCoordinator.CoordinatorResponseHandler.onFailure",
        checks.reconnects,
        act=_faulty(keys=HEARTBEATS, when="drop_response"),
    ),
    ClientTrouble(
        "commit-refused",
        "an OffsetCommit is answered COORDINATOR_LOAD_IN_PROGRESS",
        "commit these offsets or later ones",
        "ConsumerCoordinator.OffsetCommitResponseHandler",
        partial(checks.commits_again, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        act=_faulty(keys="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS"),
    ),
    ClientTrouble(
        "commit-answer-lost",
        "an OffsetCommit gets no answer, and its connection ends",
        "commit these offsets or later ones",
        "ConsumerCoordinator.OffsetCommitResponseHandler",
        partial(checks.commits_again, None),
        act=_faulty(keys="OffsetCommit", when="drop_response"),
    ),
    ClientTrouble(
        "commit-of-removed",
        "an OffsetCommit is answered UNKNOWN_MEMBER_ID, and the member is removed",
        "join again; send no heartbeats and no commits with the old member id",
        "ConsumerCoordinator.OffsetCommitResponseHandler",
        of_classic(partial(checks.rejoins, ErrorCode.UNKNOWN_MEMBER_ID, ("OffsetCommit",), "any", False)),
        act=_faulty(_remove_member, keys="OffsetCommit", error="UNKNOWN_MEMBER_ID"),
    ),
    ClientTrouble(
        "close",
        "the program gets SIGTERM",
        "leave the group, unless it has a group.instance.id",
        "AbstractCoordinator.maybeLeaveGroup; KIP-345",
        checks.leaves,
        act=_close,
    ),
)

BY_NAME: Final = {each.name: each for each in TROUBLES}
