"""One trouble played: a broker of its own, a fresh start of the client, the trouble, and the verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from rejoin.conform.clients import records
from rejoin.conform.clients.course import ClientCourse, course_of
from rejoin.conform.clients.observed import SHOWN, ClientLife, ClientOutcome, ClientVerdict, line, lines, only
from rejoin.conform.clients.stage import (
    LOOK_SECONDS,
    OUTPUT_TOPIC,
    PARTITIONS,
    TOPIC,
    ClientProgram,
    JudgingBroker,
    PlayedNames,
    TimeLimits,
    TroubleStage,
    has_joined,
)
from rejoin.conform.clients.trouble import ClientTrouble
from rejoin.coordinator.testing.results import OperationRefused
from rejoin.coordinator.testing.starting import running

StartClient: TypeAlias = Callable[[Any], Awaitable[ClientProgram]]

SETTINGS: Final[dict[str, Any]] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
}
_FIRST_RECORDS: Final = 10
_FEED_SECONDS: Final = 0.25
_LONGER_SECONDS: Final = 5.0
_OUTPUT_SECONDS: Final = 2.0
"""Longest time for a line of output to arrive."""


@dataclass(frozen=True)
class PlayedTrouble:
    """A trouble with its verdict, and the whole life as a transcript."""

    trouble: ClientTrouble
    verdict: ClientVerdict
    seconds: float
    course: ClientCourse | None = None
    transcript: str = ""


async def play(
    trouble: ClientTrouble, start: StartClient, limits: TimeLimits, *, has_socket: bool = True
) -> PlayedTrouble:
    """Start a broker and a client, make the trouble, and judge."""
    topics = {TOPIC: PARTITIONS, OUTPUT_TOPIC: 1}
    async with running(topics=topics, settings=SETTINGS, socket=has_socket, brokers=trouble.brokers) as coordinator:
        # A transcript is of one broker.
        return await play_on(trouble, coordinator, start, limits, has_transcript=trouble.brokers == 1)


async def play_on(
    trouble: ClientTrouble,
    broker: JudgingBroker,
    start: StartClient,
    limits: TimeLimits,
    names: PlayedNames | None = None,
    *,
    has_transcript: bool = True,
) -> PlayedTrouble:
    """Start a client on a broker that has the topics, make the trouble, and judge."""
    began = time.monotonic()
    stage = TroubleStage(broker, limits, names)
    await broker.produce(stage.names.topic, None, _FIRST_RECORDS)
    if trouble.before is not None:
        await trouble.before(stage)
    feeding = asyncio.ensure_future(_feed(stage))
    try:
        stage.program = await start(broker)
        verdict = await _judged(trouble, stage)
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError):
            await feeding
        if stage.program is not None:
            await stage.program.kill()
    if has_transcript:
        transcript = await broker.transcript(claim=f"{trouble.name}: {trouble.done}.")
    else:
        transcript = "".join(f"{line(each)}\n" for each in only((await stage.life()).requests, *SHOWN))
    course = course_of(await stage.life())
    return PlayedTrouble(trouble, verdict, time.monotonic() - began, course, transcript)


async def _judged(trouble: ClientTrouble, stage: TroubleStage) -> ClientVerdict:
    program, limits = stage.program, stage.limits
    assert program is not None
    if not await stage.until(has_asked if trouble.act is None else has_joined, limits.start):
        return ClientVerdict(ClientOutcome.NOT_PLAYED, _why_not_joined(await stage.life(), program, limits))
    if trouble.act is not None:
        # Some join twice at their start, since they see the topic's partitions late.
        await stage.one_more_heartbeat(min(_LONGER_SECONDS, limits.meeting))
        await stage.begin()
        await trouble.act(stage)
    if await stage.until(lambda life: is_settled(trouble, life), limits.reaction):
        # Some react, and go on beside that as if nothing had happened. Others are in the middle of the next rebalance.
        await stage.one_more_heartbeat(min(_LONGER_SECONDS, limits.reaction))
        await stage.until(lambda life: is_settled(trouble, life), limits.reaction)
    if trouble.is_watched:
        await stage.until(lambda _: False, limits.watched)
    verdict = trouble.check(await stage.life())
    if verdict.outcome is ClientOutcome.PASSED:
        verdict = await _problem_of_records(stage) or verdict
    if trouble.before is None and program.problem and not has_joined(await stage.life()):
        return ClientVerdict(ClientOutcome.NOT_PLAYED, _why_not_joined(await stage.life(), program, limits))
    if verdict.outcome is not ClientOutcome.PASSED and program.problem and not stage.asked_to_end:
        return replace(verdict, reason=f"{verdict.reason}; the program {program.problem}")
    return verdict


async def _problem_of_records(stage: TroubleStage) -> ClientVerdict | None:
    """A failure of the records that the program says it has processed, once its output had time to arrive."""
    end = time.monotonic() + min(_OUTPUT_SECONDS, stage.limits.reaction)
    while (problem := records.problem_of(await stage.life())) is not None and time.monotonic() < end:
        await asyncio.sleep(LOOK_SECONDS)
    return problem


def has_asked(life: ClientLife) -> bool:
    """Whether the client sent a request for a group."""
    return bool(lines(life.requests))


def is_settled(trouble: ClientTrouble, life: ClientLife) -> bool:
    """Whether there is nothing to wait for: the client passed, or cannot meet the trouble any more."""
    outcome = trouble.check(life).outcome
    return outcome is ClientOutcome.PASSED or (outcome is ClientOutcome.NOT_APPLICABLE and trouble.act is not None)


def _why_not_joined(life: ClientLife, program: ClientProgram, limits: TimeLimits) -> str:
    problem = program.problem
    if problem:
        return f"the program {problem} before it had joined a group"
    within = f"within {limits.start:g} s"
    if not life.requests:
        return f"the program did not connect to BOOTSTRAP_SERVERS {within}"
    if not lines(life.requests):
        return f"the program connected, and asked for no group {within}"
    return f"the program got no assignment {within}"


async def _feed(stage: TroubleStage) -> None:
    """Write a record to each partition now and then, so that there is something to commit."""
    while True:
        await asyncio.sleep(_FEED_SECONDS)
        with suppress(OperationRefused):  # while all brokers are away
            await stage.coordinator.produce(stage.names.topic, None, 1)
