"""The sharing of offsets partitions, in virtual time: clocks that drift, nodes that sleep, requests that get lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.leases import (
    Acquire,
    Drain,
    Lead,
    LeaseInput,
    Leases,
    NodeIdConflict,
    Release,
    Renew,
    RenewResult,
    Resign,
    StopLeading,
    StoreChanged,
    Tick,
    Unreachable,
)
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, NodeInfo
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.lease_store import MemoryLeaseStore

LEASE_MS = 2_000
TIMEOUT_MS = 700


def some(count: int) -> list[TopicPartition]:
    """The first partitions."""
    return [offsets_partition(index) for index in range(count)]


@dataclass
class Clock:
    """A node's own clock: how fast it goes against the store's, and what it showed at the start."""

    rate: float
    offset: int

    def at(self, real: float) -> int:
        return int(real * self.rate) + self.offset

    def real(self, local: int) -> float:
        return (local - self.offset + 1) / self.rate


@dataclass
class Process:
    """A node's process, with what it believes."""

    world: World
    node_id: int
    incarnation: str
    clock: Clock
    leases: Leases = field(init=False)
    leading: dict[TopicPartition, int] = field(default_factory=dict)
    paused_until: float = 0.0
    cut_until: float = 0.0
    back_ms: float = 30.0
    dead: bool = False
    conflicts: int = 0
    request: int = 0

    def __post_init__(self) -> None:
        self.leases = Leases(self.node_id, self.incarnation, self.world.store.partitions, LEASE_MS)

    def hand_in(self, what: LeaseInput, request: int | None = None) -> None:
        """Take something in, when the process is awake."""
        world = self.world
        if self.dead or (request is not None and request != self.request):
            return
        if world.now < self.paused_until:
            world.at(self.paused_until, lambda: self.hand_in(what, request))
            return
        if request is not None:
            self.request += 1
        now = self.clock.at(world.now)
        for effect in self.leases.step(what, now):
            match effect:
                case Renew() | Acquire() | Release():
                    self._ask(effect)
                case Lead():
                    assert effect.partition not in self.leading
                    self.leading[effect.partition] = effect.epoch
                case StopLeading():
                    del self.leading[effect.partition]
                case NodeIdConflict():
                    self.conflicts += 1
        assert {partition: lease.epoch for partition, lease in self.leases.held.items()} == self.leading
        deadline = self.leases.next_deadline()
        if deadline is not None:
            world.at(max(world.now, self.clock.real(deadline)), lambda: self._ring(deadline))

    def _ring(self, deadline: int) -> None:
        if self.leases.next_deadline() == deadline:
            self.hand_in(Tick())

    def _ask(self, wanted: Renew | Acquire | Release) -> None:
        world, number = self.world, self.request
        random = world.random
        world.at(world.now + TIMEOUT_MS, lambda: self.hand_in(Unreachable(), number))
        if world.now < self.cut_until or random.random() < world.loss:
            return
        slow = not world.calm and random.random() < 0.02
        there = random.uniform(0, 3_000 if slow else world.there_ms)

        def arrive() -> None:
            answer = world.store.carry_out(wanted, self.node_id, self.incarnation, world.now)
            world.check()
            if not isinstance(wanted, Renew):
                world.notify()
            if random.random() >= world.loss and world.now >= self.cut_until:
                world.at(world.now + random.uniform(0, self.back_ms), lambda: self.hand_in(answer, number))

        world.at(world.now + there, arrive)

    def believes(self) -> list[TopicPartition]:
        """What it would answer for, looking at its clock first."""
        if self.dead or self.world.now < self.paused_until:
            return []
        now = self.clock.at(self.world.now)
        valid_until = self.leases.valid_until()
        return list(self.leading) if valid_until is not None and valid_until > now else []


class World:
    def __init__(self, seed: int, partitions: int) -> None:
        self.random = Random(seed)
        self.store = MemoryLeaseStore(
            some(partitions), LEASE_MS, lambda node_id: Broker(node_id, "127.0.0.1", 9_000 + node_id)
        )
        self.now = 0.0
        self.loss = 0.0
        self.there_ms = 30.0
        self.calm = False
        self.processes: list[Process] = []
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._count = count()

    def at(self, when: float, what: Callable[[], object]) -> None:
        heappush(self._queue, (when, next(self._count), what))

    def start(self, node_id: int, rate: float = 1.0) -> Process:
        process = Process(self, node_id, f"{node_id}-{len(self.processes)}", Clock(rate, self.random.randint(0, 10**6)))
        self.processes.append(process)
        process.hand_in(Tick())
        return process

    def notify(self) -> None:
        for process in self.processes:
            if self.random.random() >= self.loss and self.now >= process.cut_until:
                self.at(self.now + self.random.uniform(0, 20), partial(process.hand_in, StoreChanged()))

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, what = heappop(self._queue)
            what()
            self.check()
        self.now = until

    def check(self) -> None:
        led: dict[TopicPartition, Process] = {}
        for process in self.processes:
            for partition in process.believes():
                assert partition not in led, f"{partition} is led twice at {self.now}"
                led[partition] = process

    def living(self) -> list[Process]:
        return [process for process in self.processes if not process.dead and not process.leases.left]

    def counts(self) -> list[int]:
        return sorted(len(process.believes()) for process in self.living())


def assert_balanced(world: World, partitions: int) -> None:
    """Everything is led, and evenly."""
    counts = world.counts()
    assert sum(counts) == partitions
    assert max(counts) - min(counts) <= 1


def test_one_node_leads_everything_and_a_second_one_gets_its_half() -> None:
    world = World(1, 50)
    world.start(1)
    world.run(200)
    assert world.counts() == [50]
    world.start(2)
    world.run(1_000)
    assert world.counts() == [25, 25], "handed over at once, not when a lease runs out"


def test_a_dead_nodes_partitions_are_led_by_the_others_when_its_leases_run_out() -> None:
    world = World(2, 50)
    for node_id in (1, 2, 3):
        world.start(node_id)
    world.run(10_000)
    assert_balanced(world, 50)
    world.processes[0].dead = True
    world.run(10_000 + LEASE_MS + 200)
    assert_balanced(world, 50)
    assert world.counts() == [25, 25]


def test_a_node_that_drains_hands_everything_over_at_once() -> None:
    world = World(3, 50)
    for node_id in (1, 2, 3):
        world.start(node_id)
    world.run(10_000)
    world.processes[1].hand_in(Drain())
    assert world.processes[1].leading == {}
    world.run(10_400)
    assert world.processes[1].leases.left
    assert_balanced(world, 50)


def test_a_partition_that_was_resigned_is_led_by_another_node_and_not_given_back_soon() -> None:
    world = World(4, 10)
    first, second = world.start(1), world.start(2)
    world.run(5_000)
    partition = next(iter(first.leading))
    first.hand_in(Resign(partition))
    world.run(6_000)
    assert partition in second.leading
    assert_balanced(world, 10)


def test_a_lone_node_that_resigns_leads_again_in_a_new_epoch() -> None:
    world = World(5, 4)
    alone = world.start(1)
    world.run(1_000)
    epoch = alone.leading[offsets_partition(2)]
    alone.hand_in(Resign(offsets_partition(2)))
    world.run(2_000)
    assert alone.leading[offsets_partition(2)] == epoch + 1


def test_a_node_that_wakes_after_its_leases_have_run_out_leads_nothing_from_the_first_instant() -> None:
    world = World(6, 6)
    sleeper = world.start(1)
    world.start(2)
    world.run(5_000)
    assert sleeper.believes()
    sleeper.paused_until = 5_000 + 3 * LEASE_MS
    world.run(sleeper.paused_until - 1)
    assert world.counts() == [0, 6]
    world.run(sleeper.paused_until)
    assert sleeper.believes() == []
    world.run(sleeper.paused_until + 1_000)
    assert_balanced(world, 6)


def test_a_node_cut_off_from_the_store_gives_up_before_anybody_else_may_have_its_partitions() -> None:
    world = World(7, 6)
    lonely = world.start(1)
    world.run(3_000)
    lonely.cut_until = 20_000
    world.run(3_000 + LEASE_MS)
    assert lonely.leading == {}
    assert all((row.expires_at or 0) > world.now - LEASE_MS for row in world.store.leases.values())
    world.run(22_000)
    assert world.counts() == [6]


@pytest.mark.parametrize("back_ms", [1.0, 650.0])
@pytest.mark.parametrize("seed", range(10))
def test_a_slow_clock_and_slow_answers_do_not_make_a_lease_longer(seed: int, back_ms: float) -> None:
    world = World(seed, 6)
    world.calm = True
    world.there_ms = 1.0
    slow, quick = world.start(1, rate=0.91), world.start(2, rate=1.09)
    slow.back_ms = back_ms
    for cut_at in range(8_000, 40_000, 8_000):
        world.run(cut_at + world.random.uniform(0, 2_000))
        assert slow.leading, "there is something to lose"
        slow.cut_until = world.now + 2 * LEASE_MS
        world.run(slow.cut_until)
        assert len(quick.leading) == 6


def test_the_second_process_of_a_node_id_is_refused_while_the_first_one_lives() -> None:
    world = World(8, 6)
    first = world.start(1)
    world.run(3_000)
    second = world.start(1)
    world.run(9_000)
    assert second.conflicts > 0
    assert second.leading == {}
    assert len(first.leading) == 6
    first.dead = True
    world.run(9_000 + 2 * LEASE_MS)
    assert len(second.leading) == 6


FAULTS = st.lists(
    st.tuples(
        st.integers(0, 12_000),
        st.integers(0, 4),
        st.sampled_from(("pause", "cut", "crash", "drain", "join", "resign", "duplicate", "lossy")),
        st.integers(50, 8_000),
    ),
    max_size=14,
)


def inflict(world: World, which: int, kind: str, length: int) -> None:
    living = world.living()
    random = world.random
    if kind == "join":
        ids = {process.node_id for process in living}
        world.start(next(node_id for node_id in count(1) if node_id not in ids), random.uniform(0.95, 1.05))
        return
    if kind == "lossy":
        world.loss = 0.3
        world.at(world.now + length, lambda: setattr(world, "loss", 0.0))
        return
    if not living:
        return
    process = living[which % len(living)]
    match kind:
        case "pause":
            process.paused_until = world.now + length
        case "cut":
            process.cut_until = world.now + length
        case "crash":
            process.dead = True
            world.at(world.now + length, lambda: world.start(process.node_id, process.clock.rate))
        case "drain":
            process.hand_in(Drain())
        case "resign" if process.leading:
            process.hand_in(Resign(random.choice(list(process.leading))))
        case "duplicate":
            duplicate = world.start(process.node_id)
            world.at(world.now + length, lambda: setattr(duplicate, "dead", True))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 12), FAULTS)
def test_never_two_leaders_and_in_the_end_all_is_led_and_evenly(
    seed: int, nodes: int, partitions: int, faults: list[tuple[int, int, str, int]]
) -> None:
    world = World(seed, partitions)
    for node_id in range(1, nodes + 1):
        world.start(node_id, world.random.uniform(0.95, 1.05))
    for at, which, kind, length in faults:
        world.at(at, partial(inflict, world, which, kind, length))
    world.run(20_000)
    world.calm = True
    world.run(24_000)
    if not world.living():
        world.start(1)
    world.run(34_000)
    node_ids = sorted({process.node_id for process in world.living()})
    counts = [sum(len(p.believes()) for p in world.living() if p.node_id == node_id) for node_id in node_ids]
    assert sum(counts) == partitions
    assert max(counts) - min(counts) <= 1
    before = {process.incarnation: dict(process.leading) for process in world.living()}
    world.run(40_000)
    assert before == {process.incarnation: dict(process.leading) for process in world.living()}, "calm is calm"


def test_what_was_seen_of_others_runs_out_unless_it_is_seen_again() -> None:
    leases = Leases(1, "mine", some(2), LEASE_MS)
    view = LeadershipView(
        (NodeInfo(1, "mine", "a", 1, LEASE_MS), NodeInfo(2, "other", "b", 2, 900)),
        (
            LeaseInfo(offsets_partition(0), 3, 2, "other", 900),
            LeaseInfo(offsets_partition(1), 5, 2, "other", None),
        ),
    )
    leases.step(Tick(), 1_000)
    leases.step(RenewResult((), view), 1_100)
    mine = Broker(1, "a", 1)
    assert leases.next_expiry(1_100) == 2_000
    assert leases.view_at(1_999).leases[0].ms_left == 1
    assert leases.cluster(mine, view, leases.view_age_ms(1_999)).leaders == {offsets_partition(0): 2}
    assert [node.is_alive for node in leases.view_at(2_000).nodes] == [True, False]
    known = leases.cluster(mine, view, leases.view_age_ms(2_000))
    assert known.leaders == {}
    assert [broker.node_id for broker in known.brokers] == [1, 2], "it may be alive, with no way to show it"
    assert leases.next_expiry(2_000) is None
    assert leases.view_at(9_000).leases[1].ms_left is None, "a released lease does not expire"
