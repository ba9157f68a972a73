"""One play of a real client: its answers are released in an order, and its records are judged at the end.

The clock of the broker stands while an answer is held, and goes on as the machine's when none is. A client that has to
wait for its answers so loses no session by that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from rejoin.conform.clients import records
from rejoin.conform.clients.acts import group_of, second_member
from rejoin.conform.clients.observed import SHOWN, ClientLife, line, only
from rejoin.conform.clients.playing import SETTINGS, StartClient
from rejoin.conform.clients.second_member import SecondMember
from rejoin.conform.clients.stage import (
    OUTPUT_TOPIC,
    PARTITIONS,
    TOPIC,
    TimeLimits,
    TroubleStage,
    has_joined,
    last_join,
)
from rejoin.conform.exploring.held_answers import AnswerHolder
from rejoin.conform.exploring.orders import DROP, Act, Chooser
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.results import NotReached, OperationRefused
from rejoin.coordinator.testing.starting import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

FIRST_RECORDS: Final = 5
MOST: Final = {Act.RECORDS: 8, Act.JOIN: 3, Act.REMOVE: 1, Act.LEADER: 4}
"""How often an act is offered in one play."""

_LOOK_SECONDS: Final = 0.01
_QUIET_LOOKS: Final = 3
_LONGEST_QUIET_SECONDS: Final = 1.0
_WAIT_SECONDS: Final = 0.15
_MEET_SECONDS: Final = 0.4
_LEAVE_SECONDS: Final = 10.0
_LOST_SECONDS: Final = 2.0
_AFTER_SECONDS: Final = 0.5
"""Time for records to come twice, and for lines of output to arrive."""


@dataclass(frozen=True)
class PlayedOrder:
    """A play: the choices that were made, and what went wrong, if anything did."""

    order: tuple[str, ...]
    problem: str = ""
    is_played: bool = True
    unmet: int = 0
    """Choices of a list that could not be made: no such answer was held, or nothing of the kind was possible."""

    seconds: float = 0.0
    transcript: str = ""


async def play(chooser: Chooser, start: StartClient, limits: TimeLimits, brokers: int = 1) -> PlayedOrder:
    """Start brokers and a client, release its answers as chosen, let it finish, and judge."""
    began = time.monotonic()
    topics = {TOPIC: PARTITIONS, OUTPUT_TOPIC: 1}
    async with running(clock="virtual", topics=topics, settings=SETTINGS, brokers=brokers) as coordinator:
        run = _Run(coordinator, chooser, limits, brokers)
        try:
            problem, is_played = await run.through(start)
        finally:
            await run.end()
        transcript = await coordinator.transcript() if brokers == 1 else await run.shown()
    return PlayedOrder(tuple(run.order), problem, is_played, run.unmet, time.monotonic() - began, transcript)


class _Run:
    """A client on its broker, turn by turn."""

    def __init__(self, coordinator: GroupCoordinator, chooser: Chooser, limits: TimeLimits, brokers: int) -> None:
        self._coordinator = coordinator
        self._brokers = brokers
        self._chooser = chooser
        self._limits = limits
        self._stage = TroubleStage(coordinator, limits)
        self._holder = AnswerHolder()
        self._other: SecondMember | None = None
        self._other_runs = AsyncExitStack()
        self._written = 0
        self._done = dict.fromkeys(MOST, 0)
        self._time = time.monotonic()
        self._lost_since: float | None = None
        self.order: list[str] = []
        self.unmet = 0

    async def through(self, start: StartClient) -> tuple[str, bool]:
        """Play; the problem, if there is one, and whether it was played at all."""

        async def install(control: Control) -> None:
            control.injector.answer_gate = self._holder.gate

        await self._coordinator.do(install)
        await self._write(FIRST_RECORDS)
        self._time = time.monotonic()
        program = self._stage.program = await start(self._coordinator)
        if not await self._naturally_until(has_joined, self._limits.start):
            why = program.problem or f"joined no group within {self._limits.start:g} s"
            return f"the program {why}", False
        self._holder.close()
        while not program.problem and await self._turn():
            pass
        self._holder.open()
        await self._leave()
        await self._write(1)  # shows that each partition is still read
        await self._naturally_until(self._is_decided, self._limits.reaction)
        await self._naturally_until(lambda _: False, _AFTER_SECONDS)
        life = await self._life()
        if program.problem:
            return f"the program {program.problem}", True
        if not life.processed:
            return "the program printed no line: processed TOPIC PARTITION OFFSET", False
        verdict = records.problem_of(life)
        return (verdict.reason if verdict is not None else self._missing(life)), True

    async def end(self) -> None:
        """End what runs."""
        self._holder.open()
        await self._other_runs.aclose()
        if self._stage.program is not None:
            await self._stage.program.kill()

    async def _turn(self) -> bool:
        """One choice, and all that the client does by itself after it; false at the end."""
        await self._let_client_go_on()
        life = await self._life()
        acts = await self._acts(life)
        choice = self._chooser.next([each.api for each in self._holder.held], acts)
        if choice is None:
            return False
        self.order.append(str(choice))
        match choice:
            case Act.RECORDS | Act.JOIN | Act.LEAVE | Act.REMOVE | Act.LEADER if choice not in acts:
                self.unmet += 1
            case Act.NATURAL:
                if self._holder.held:
                    self._holder.release(self._holder.held[0])
            case Act.WAIT:
                await self._sleep(_WAIT_SECONDS)
            case Act.RECORDS:
                self._done[Act.RECORDS] += 1
                await self._write(1)
            case Act.JOIN:
                await self._join(life)
            case Act.LEAVE:
                await self._leave()
            case Act.REMOVE:
                await self._remove()
            case Act.LEADER:
                await self._move_leaders()
            case _:
                await self._release(choice)
        return True

    async def _life(self) -> ClientLife:
        """Requests of the client up to now, with the answers that it got; a commit counts without its answer."""
        life = await self._stage.life()
        replaced = {id(each) for each in self._holder.replaced}
        if not replaced:
            return life
        requests = tuple(
            each._replace(response=None) if id(each.request) in replaced and each.api != "OffsetCommit" else each
            for each in life.requests
        )
        return replace(life, requests=requests)

    async def _acts(self, life: ClientLife) -> list[Act]:
        """Acts that are possible beside releasing answers.

        The second member joins a group in which the client is, and the client is removed from one in which it is alone:
        the second member would otherwise lead the group, and it assigns nothing.
        """
        acts = [Act.RECORDS] if self._brokers == 1 else [Act.RECORDS, Act.LEADER]
        if self._other is None and await self._members():
            acts += [Act.REMOVE] if last_join(life.requests) is None else [Act.REMOVE, Act.JOIN]
        acts = [each for each in acts if self._done[each] < MOST[each]]
        if self._other is not None and self._other.generation >= 0:
            acts.append(Act.LEAVE)
        return acts

    async def _members(self) -> list[str]:
        """Ids of the members of the client's group."""
        view: Any = await self._coordinator.group(await group_of(self._stage))
        return [] if view is None else [each.member_id for each in view.members]

    async def _release(self, choice: str) -> None:
        """Release the oldest held answer of an API, or what is to come in its place."""
        api, _, instead = choice.partition(" ")
        end = time.monotonic() + _MEET_SECONDS
        while (answer := self._holder.first_of(api)) is None:
            if time.monotonic() > end:
                self.unmet += 1
                return
            await self._sleep(_LOOK_SECONDS)
        if instead == DROP:
            self._holder.drop(answer)
        elif instead:
            self._holder.refuse(answer, ErrorCode[instead])
        else:
            self._holder.release(answer)

    async def _write(self, count: int) -> None:
        await self._coordinator.produce(TOPIC, None, count)
        self._written += count

    async def _join(self, life: ClientLife) -> None:
        like = last_join(life.requests)
        assert like is not None, "offered only to members of the classic protocol"
        self._done[Act.JOIN] += 1
        self._other = SecondMember(self._coordinator, like)
        await self._other_runs.enter_async_context(second_member(self._other))

    async def _leave(self) -> None:
        """The second member leaves, if it is there; before the end of its first join there is nothing to leave."""
        other = self._other
        if other is None:
            return
        end = time.monotonic() + _LEAVE_SECONDS
        while not other.member_id and time.monotonic() < end:
            await self._sleep(_LOOK_SECONDS)
        await other.leave()
        self._other = None
        await self._other_runs.aclose()

    async def _remove(self) -> None:
        self._done[Act.REMOVE] += 1
        group = await group_of(self._stage)
        for member in await self._members():
            with suppress(OperationRefused, NotReached):
                await self._coordinator.kick(group, member)

    async def _move_leaders(self) -> None:
        self._done[Act.LEADER] += 1
        for partition in range(PARTITIONS):
            with suppress(OperationRefused, NotReached):
                await self._coordinator.move_leader(TOPIC, partition)

    async def shown(self) -> str:
        """Requests for coordinators with their answers; a transcript is of one broker."""
        return "".join(f"{line(each)}\n" for each in only((await self._life()).requests, *SHOWN))

    # --- time

    async def _sleep(self, seconds: float) -> None:
        """Let real time pass, and the broker's with it unless an answer is held."""
        was_held = bool(self._holder.held)
        await asyncio.sleep(seconds)
        now = time.monotonic()
        millis = int((now - self._time) * 1_000)
        if was_held or self._holder.held:
            self._time = now
        elif millis:
            self._time += millis / 1_000
            await self._coordinator.advance(millis)

    async def _let_client_go_on(self) -> None:
        """Wait until the client has sent all that it sends by itself: no request, answer or output for 30 ms."""
        end = time.monotonic() + _LONGEST_QUIET_SECONDS
        quiet, seen = 0, self._seen()
        while quiet < _QUIET_LOOKS and time.monotonic() < end:
            await self._sleep(_LOOK_SECONDS)
            quiet, seen = (quiet + 1 if self._seen() == seen else 0), self._seen()

    def _seen(self) -> tuple[int, int]:
        program = self._stage.program
        return self._holder.count, 0 if program is None else len(program.processed)

    async def _naturally_until(self, condition: Any, seconds: float) -> bool:
        """With nothing held, wait until a condition holds; false where it does not in time, or the program ended."""
        end, seen = time.monotonic() + seconds, (-1, -1)
        while True:
            if self._seen() != seen:
                seen = self._seen()
                if condition(await self._life()):
                    return True
            program = self._stage.program
            if time.monotonic() > end or (program is not None and program.problem):
                return False
            await self._sleep(_LOOK_SECONDS)

    # --- the records

    def _is_decided(self, life: ClientLife) -> bool:
        """Whether every record was processed, or one is lost for good: a later offset is committed, for a while now.

        A client may commit before the program has printed the record.
        """
        if not self._missing(life):
            return True
        if records.problem_of(life) is None:
            self._lost_since = None
            return False
        self._lost_since = self._lost_since or time.monotonic()
        return time.monotonic() - self._lost_since > _LOST_SECONDS

    def _missing(self, life: ClientLife) -> str:
        """Records that were never processed, though nothing was held any more, in words; empty where there are none."""
        there = set(life.processed)
        for partition in range(PARTITIONS):
            at = TopicPartition(TOPIC, partition)
            missing = [offset for offset in range(self._written) if (at, offset) not in there]
            if missing:
                later = any(each == at and offset > missing[0] for each, offset in there)
                ending = "though later ones were" if later else f"within {self._limits.reaction:g} s"
                return f"never processed {_offsets(missing)} of partition {partition}, {ending}"
        return ""


def _offsets(offsets: Sequence[int]) -> str:
    named = ", ".join(map(str, offsets[: records.MOST_NAMED]))
    left = len(offsets) - records.MOST_NAMED
    return f"{named} and {left} more" if left > 0 else named
