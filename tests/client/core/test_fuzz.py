"""Consumers among random answers, failures, delays and calls: nothing breaks, every call ends, and peace heals them."""

from __future__ import annotations

from random import Random

import pytest

from rejoin.client.core.errors import KafkaError, WakeupError
from rejoin.client.core.inputs import (
    CommitAsked,
    CommittedAsked,
    Failure,
    OffsetReset,
    Paused,
    RebalanceEnforced,
    Resumed,
    Sought,
    Woken,
)
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.registry import BY_REQUEST
from tests.client.core.bench import Bench, tp

ERRORS = {
    "FindCoordinator": [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED],
    "JoinGroup": [
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.NOT_COORDINATOR,
        E.UNKNOWN_MEMBER_ID,
        E.REBALANCE_IN_PROGRESS,
        E.GROUP_MAX_SIZE_REACHED,
        E.UNKNOWN_SERVER_ERROR,
    ],
    "SyncGroup": [
        E.NOT_COORDINATOR,
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
        E.REBALANCE_IN_PROGRESS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    ],
    "Heartbeat": [
        E.NOT_COORDINATOR,
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
        E.REBALANCE_IN_PROGRESS,
        E.GROUP_AUTHORIZATION_FAILED,
        E.FENCED_INSTANCE_ID,
    ],
    "OffsetCommit": [
        E.NOT_COORDINATOR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
        E.REBALANCE_IN_PROGRESS,
        E.OFFSET_METADATA_TOO_LARGE,
        E.REQUEST_TIMED_OUT,
    ],
    "OffsetFetch": [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.UNSTABLE_OFFSET_COMMIT],
    "ListOffsets": [E.UNKNOWN_TOPIC_OR_PARTITION],
    "LeaveGroup": [E.UNKNOWN_MEMBER_ID],
    "Metadata": [],
}


class Storm:
    """A consumer and everything that can happen to it, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.bench = bench = Bench(
            assignors=[random.choice(["range", "cooperative-sticky"])],
            topics={"t": 4, "u": 2},
            ends={"t-0": 50, "t-1": 50, "u-0": 20},
            committed={"t-0": 3},
            auto_offset_reset="earliest",
            enable_auto_commit=random.random() < 0.5,
            group_instance_id="i" if random.random() < 0.3 else None,
            max_poll_interval_ms=20_000,
            session_timeout_ms=10_000,
            max_poll_records=7,
        )
        bench.auto.clear()
        self.generation = 0
        self.tokens = 0
        self.asked: list[str] = []
        bench.subscribe("t")

    def blow(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choices([self.answer, self.fail, self.wait, self.call, self.poll], weights=[6, 1, 3, 2, 3])[0]()
            self.check()

    def check(self) -> None:
        bench = self.bench
        assert len({send.request_id for send in bench.open}) == len(bench.open)
        joins = [send for send in bench.open if BY_REQUEST[type(send.request)].name in {"JoinGroup", "SyncGroup"}]
        assert len(joins) <= 1, "one attempt at a time"
        for error in bench.raised:
            assert isinstance(error, KafkaError)

    # -- what can happen

    def answer(self, *, well: bool = False) -> None:
        bench = self.bench
        if not bench.open:
            return
        send = bench.open[0] if well else self.random.choice(bench.open)
        api = BY_REQUEST[type(send.request)].name
        bench.open.remove(send)
        bench.open.insert(0, send)
        errors = ERRORS[api]
        if errors and not well and self.random.random() < 0.4:
            bench.answer(api, self.random.choice(errors))
        elif api == "JoinGroup":
            self.join()
        elif api == "SyncGroup":
            topic = "t" if "t" in bench.core.subscribed_topics() else "u"
            if not well and self.random.random() < 0.1:
                topic = "other"
            count = self.random.randrange(3) if not well else 1
            bench.answer(api, assigned=[f"{topic}-{index}" for index in range(count)])
        else:
            bench.answer(api)

    def join(self) -> None:
        bench = self.bench
        member_id = bench.join_request().member_id
        if not member_id and not bench.config.is_static:
            bench.give_member_id(f"m{self.random.randrange(1_000)}")
            return
        self.generation += 1
        member_id = member_id or f"s{self.generation}"
        if self.random.random() < 0.5:
            bench.joined(
                self.generation, member_id=member_id, leader=member_id, members=(bench.member(member_id, "t", "u"),)
            )
        else:
            bench.joined(self.generation, member_id=member_id)

    def fail(self) -> None:
        bench = self.bench
        if bench.open:
            send = self.random.choice(bench.open)
            bench.open.remove(send)
            bench.open.insert(0, send)
            bench.fail(BY_REQUEST[type(send.request)].name, self.random.choice(list(Failure)))

    def wait(self) -> None:
        self.bench.advance(self.random.choice([1, 10, 100, 500, 3_000, 25_000]))

    def poll(self) -> None:
        if not self.bench.core.polling:
            self.bench.poll(self.random.choice([0, 10, 1_000, 30_000]))

    def call(self) -> None:
        bench, random = self.bench, self.random
        self.tokens += 1
        token = f"call-{self.tokens}"
        owned = tuple(bench.core.assignment()) or tuple(tp("t-0"))
        match random.randrange(12):
            case 0 | 1:
                self.asked.append(token)
                bench.step(CommitAsked(token, None, sync=True, timeout_ms=5_000))
            case 2 | 3:
                self.asked.append(token)
                bench.step(CommitAsked(token, None, sync=False))
            case 4:
                self.asked.append(token)
                bench.step(CommittedAsked(token, owned, timeout_ms=5_000))
            case 5:
                bench.step(RebalanceEnforced())
            case 6:
                to: list[int | OffsetReset] = [5, OffsetReset.EARLIEST, OffsetReset.LATEST]
                bench.step(Sought(owned, random.choice(to)))
            case 7:
                bench.step(Paused(owned) if random.random() < 0.5 else Resumed(owned))
            case 8:
                if not bench.core.polling:
                    bench.unsubscribe()
                bench.subscribe(*random.choice([["t"], ["u"], ["t", "u"]]))
            case 9:
                bench.listener_raises = random.choice(
                    [{}, {"assigned": RuntimeError("a")}, {"revoked": WakeupError("w")}, {"lost": ValueError("l")}]
                )
            case 10:
                bench.step(Woken())
            case _:
                bench.ends["t-0"] += 5

    # -- peace

    def calm(self) -> None:
        """All requests succeed from now on; the user polls."""
        bench = self.bench
        bench.listener_raises = {}
        bench.subscribe("t")
        for _ in range(400):
            if not bench.core.polling:
                bench.poll(500)
            while bench.open:
                self.answer(well=True)
            bench.advance(100)
            if bench.core.is_stable:
                return
        raise AssertionError(f"never again: {bench.core.member_state} {bench.core.generation} {bench.take()[-20:]}")


@pytest.mark.parametrize("seed", range(150))
def test_peace_heals(seed: int) -> None:
    storm = Storm(seed)
    storm.blow(120)
    storm.calm()
    bench = storm.bench
    for _ in range(70):
        if not bench.core.polling:
            bench.poll(100)
        while bench.open:
            storm.answer(well=True)
        bench.advance(100)
    unanswered = [token for token in storm.asked if bench.done_with(token) is None]
    assert unanswered == [], "every call ends"


@pytest.mark.parametrize("seed", range(150, 250))
def test_every_consumer_can_be_closed(seed: int) -> None:
    storm = Storm(seed)
    storm.blow(80)
    bench = storm.bench
    bench.close()
    bench.advance(31_000)
    assert bench.core.closed
    assert len([line for line in bench.take() if line.startswith("close ->")]) == 1
    assert bench.core.next_deadline() is None
