"""Acts of the troubles: faults of the broker, other members of the group, and signals to the program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias

from rejoin.conform.clients.observed import HEARTBEATS, OF_COORDINATORS, ClientLife, is_accepted, only
from rejoin.conform.clients.second_member import SecondMember
from rejoin.conform.clients.stage import PARTITIONS, TroubleStage, has_joined, last_join
from rejoin.coordinator.testing.results import NotReached, OperationRefused
from rejoin.protocol.errors import ErrorCode

Act: TypeAlias = Callable[[TroubleStage], Awaitable[None]]
NEW_PARTITIONS: Final = 2
"""Partitions that are added to a topic."""


def stacked(api: str, errors: Sequence[ErrorCode]) -> Act:
    """Answer the next requests of an API with these errors, one each."""

    async def before(stage: TroubleStage) -> None:
        for error in errors:
            await stage.coordinator.add_fault(keys=api, error=error.name)

    return before


def stacked_and_met(api: str, errors: Sequence[ErrorCode]) -> Act:
    """Stack these errors, and wait until the client has met the first one."""

    async def act(stage: TroubleStage) -> None:
        await stacked(api, errors)(stage)
        await stage.until(lambda life: life.index_of(errors[0], (api,)) is not None, stage.limits.meeting)

    return act


def refused_for_good(api: str, errors: Sequence[ErrorCode]) -> Act:
    """Answer with these errors, and with the last one from then on."""

    async def before(stage: TroubleStage) -> None:
        await stacked(api, errors[:-1])(stage)
        await stage.coordinator.add_fault(keys=api, error=errors[-1].name, count=-1)

    return before


def faulty(when_hit: Act | None = None, *, hits: int = 1, **fields: Any) -> Act:
    """Make a fault, and wait until the client has met it."""

    async def act(stage: TroubleStage) -> None:
        fault = await stage.coordinator.add_fault(count=hits, **fields)
        if await stage.until(lambda _: fault.hits > 0, stage.limits.meeting) and when_hit is not None:
            await when_hit(stage)

    return act


def prepared(*, hits: int = 1, **fields: Any) -> Act:
    """Make a fault, without waiting for it."""

    async def before(stage: TroubleStage) -> None:
        await stage.coordinator.add_fault(count=hits, **fields)

    return before


async def quiet(stage: TroubleStage) -> None:
    """Give the client time for what it must not do."""
    await stage.until(lambda _: False, stage.limits.watched)


async def move_coordinator(stage: TroubleStage) -> None:
    """Take the group from this broker until the client looks for its coordinator."""
    join = await group_of(stage)
    partition = await stage.coordinator.resign(group=join)

    def has_met(life: ClientLife) -> bool:
        return life.index_of(ErrorCode.NOT_COORDINATOR, OF_COORDINATORS) is not None

    def has_asked(life: ClientLife) -> bool:
        refused = life.index_of(ErrorCode.NOT_COORDINATOR, OF_COORDINATORS)
        return refused is not None and any(only(life.after(refused), "FindCoordinator"))

    if await stage.until(has_met, stage.limits.meeting):
        await stage.until(has_asked, stage.limits.reaction)
    await stage.coordinator.elect(partition=partition)


async def group_of(stage: TroubleStage) -> str:
    requests = (await stage.life()).requests
    asked: Any = next(only(requests, "JoinGroup", "ConsumerGroupHeartbeat")).request
    return str(asked.group_id)


async def add_member(stage: TroubleStage) -> None:
    """A second member joins, and leaves after the client has followed."""
    join = last_join((await stage.life()).requests)
    if join is None:
        return
    other = SecondMember(stage.coordinator, join)
    async with second_member(other):

        def has_followed(life: ClientLife) -> bool:
            beats: list[Any] = [each.request for each in only(life.requests, "Heartbeat") if is_accepted(each)]
            return 0 < other.generation <= max((each.generation_id for each in beats), default=-1)

        def has_met(life: ClientLife) -> bool:
            return life.index_of(ErrorCode.REBALANCE_IN_PROGRESS, ("Heartbeat", "OffsetCommit")) is not None

        has_met_it = await stage.until(has_met, stage.limits.meeting)
        if has_met_it and await stage.until(has_followed, stage.limits.reaction):
            await other.leave()


async def hold_up_rebalance(stage: TroubleStage) -> None:
    """A rebalance waits some seconds for a member that sends heartbeats and does not join."""
    async with _held_rebalance(stage) as holder:
        if holder is None or not await stage.until(_waits_for_join, stage.limits.meeting):
            return
        await stage.until(lambda _: False, stage.limits.held)
        holder.holds = False

        def has_followed(life: ClientLife) -> bool:
            joins = [index for index, each in enumerate(life.requests) if each.api == "JoinGroup"]
            return any(map(is_accepted, only(life.requests[joins[-1] :], "Heartbeat")))

        await stage.until(has_followed, stage.limits.reaction)


async def close_in_rebalance(stage: TroubleStage) -> None:
    """SIGTERM while the client's JoinGroup waits for another member."""
    async with _held_rebalance(stage) as holder:
        if holder is not None and await stage.until(_waits_for_join, stage.limits.meeting):
            closing = asyncio.ensure_future(close(stage))
            # A broker reads no LeaveGroup behind a JoinGroup of the same connection that still waits.
            await stage.until(lambda _: False, stage.limits.held / 3)
            holder.holds = False
            await closing


def _waits_for_join(life: ClientLife) -> bool:
    joins = [each for each in only(life.requests, "JoinGroup") if each.mark > life.since]
    return bool(joins) and joins[-1].response is None


@asynccontextmanager
async def _held_rebalance(stage: TroubleStage) -> AsyncIterator[SecondMember | None]:
    """Two members join; the second one's rebalance waits for the first, since that one sends heartbeats alone."""
    join = last_join((await stage.life()).requests)
    if join is None:
        yield None
        return
    holder, third = SecondMember(stage.coordinator, join), SecondMember(stage.coordinator, join)
    async with AsyncExitStack() as members:
        await members.enter_async_context(second_member(holder))
        if not await stage.until(lambda _: holder.generation > 0, stage.limits.meeting):
            yield None
            return
        await stage.one_more_heartbeat(stage.limits.meeting)
        await stage.begin()
        holder.holds = True
        await members.enter_async_context(second_member(third))
        yield holder


@asynccontextmanager
async def second_member(other: SecondMember) -> AsyncIterator[None]:
    """Run a second member for the length of the block."""
    running = asyncio.ensure_future(other.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def remove_member(stage: TroubleStage) -> None:
    group = await group_of(stage)
    view: Any = await stage.coordinator.group(group)
    for member in view.members if view is not None else ():
        with suppress(OperationRefused, NotReached):
            await stage.coordinator.kick(group, member.member_id)
    await stage.until(_has_lost_membership, stage.limits.meeting)


async def remove_twice(stage: TroubleStage) -> None:
    """Remove the member, and once more as soon as it has joined again."""
    await remove_member(stage)

    def has_joined_again(life: ClientLife) -> bool:
        return has_joined(replace(life, requests=tuple(each for each in life.requests if each.mark > life.since)))

    if await stage.until(has_joined_again, stage.limits.reaction):
        await stage.begin()
        await remove_member(stage)


async def grow_topic(stage: TroubleStage) -> None:
    """Add partitions, which get records from then on, too."""
    await stage.coordinator.set_topic(stage.names.topic, PARTITIONS + NEW_PARTITIONS)

    def has_met(life: ClientLife) -> bool:
        seen = any(each.mark > life.since for each in only(life.requests, "Metadata"))
        return seen or life.speaks_consumer_protocol

    await stage.until(has_met, stage.limits.meeting)


async def restart_brokers(stage: TroubleStage) -> None:
    """Stop every broker, and start it again after some seconds."""
    brokers = [each.broker for each in await stage.coordinator.brokers()]
    for broker in brokers:
        await stage.coordinator.stop_broker(broker)
    await stage.until(lambda _: False, stage.limits.away)
    await stage.begin()
    for broker in brokers:
        await stage.coordinator.start_broker(broker)


def _has_lost_membership(life: ClientLife) -> bool:
    errors = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
    return any(life.index_of(error, (*HEARTBEATS, "OffsetCommit")) is not None for error in errors)


async def close(stage: TroubleStage) -> None:
    if stage.program is not None:
        stage.asked_to_end = True
        stage.closed = await stage.program.close(stage.limits.closing)
        stage.hangs = not stage.closed and stage.program.problem is None


async def fence(stage: TroubleStage) -> None:
    """Another process joins with the client's group.instance.id, and gets its place; a static member alone has one."""
    join = last_join((await stage.life()).requests)
    if join is None or join.group_instance_id is None:
        return
    async with second_member(SecondMember(stage.coordinator, join, join.group_instance_id)):

        def has_met(life: ClientLife) -> bool:
            return life.fenced_at() is not None

        if await stage.until(has_met, stage.limits.meeting):
            await quiet(stage)


async def fence_epoch(stage: TroubleStage) -> None:
    if (await stage.life()).speaks_consumer_protocol:
        await faulty(keys="ConsumerGroupHeartbeat", error="FENCED_MEMBER_EPOCH")(stage)


async def coordinator_unavailable(stage: TroubleStage) -> None:
    await prepared(keys="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", hits=4)(stage)
    await faulty(keys=HEARTBEATS, error="COORDINATOR_NOT_AVAILABLE")(stage)
