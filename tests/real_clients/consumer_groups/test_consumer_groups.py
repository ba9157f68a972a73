"""confluent-kafka in groups of the consumer protocol, and in one that moves from the classic protocol and back.

The test drives the clock, so no session ends because a machine is slow. Heartbeats go by the machine's clock.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from rejoin.coordinator.core.views import ConsumerGroupView, ConsumerMemberView, MemberView
from rejoin.coordinator.testing import BlockingFault, BlockingGroupCoordinator, running_in_thread

PATIENCE_SECONDS = 120.0
STANDSTILL_SECONDS = 5.0
"""After that the members lose their connections. librdkafka 2.16 waits for the answer to a heartbeat as long as its
interval is. If the answer is late it asks for its assignment again only on a new connection, and so it would keep what
it should give up until its rebalance timeout."""
HEARTBEAT_MS = 100
SESSION_MS = 45_000
REGEX_PAUSE_MS = 10_001
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
}
JOINS_AGAIN_AFTER = KafkaError.REBALANCE_IN_PROGRESS
"""What Kafka answers to a JoinGroup that waits while its group becomes one of the consumer protocol. librdkafka reports
that to its user, with an error whose ``retriable()`` is false, and joins again."""
CLASSIC = {"heartbeat.interval.ms": HEARTBEAT_MS, "session.timeout.ms": SESSION_MS}

VICTIM = """
import sys
from confluent_kafka import Consumer
servers, group_id, topic = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": servers,
        "group.id": group_id,
        "group.protocol": "consumer",
        "client.id": "victim",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
)
consumer.subscribe([topic])
while True:
    consumer.poll(0.1)
"""


@pytest.fixture(scope="module")
def coordinator() -> Iterator[BlockingGroupCoordinator]:
    """One for all tests here; each has topics and groups of its own."""
    with running_in_thread(clock="virtual", settings=SETTINGS) as running:
        yield BlockingGroupCoordinator(running)


class Group:
    """A group and its confluent-kafka consumers by name. Each commits what it has consumed before it gives it up."""

    def __init__(self, coordinator: BlockingGroupCoordinator, group_id: str, subscription: str) -> None:
        self.coordinator = coordinator
        self.group_id = group_id
        self.subscription = subscription
        self.consumers: dict[str, Consumer] = {}
        self.seen: Counter[str] = Counter()
        self.lost: list[str] = []
        self.refused_commits: list[str] = []

    def join(self, name: str, *, protocol: str = "consumer", instance: str | None = None) -> None:
        config: dict[str, Any] = {
            "bootstrap.servers": self.coordinator.bootstrap_servers,
            "client.id": name,
            "group.id": self.group_id,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
        if instance is not None:
            config["group.instance.id"] = instance
        if protocol == "classic":
            config |= CLASSIC
        consumer = self.consumers[name] = Consumer(config)
        consumer.subscribe([self.subscription], on_revoke=self._commit, on_lost=lambda *_: self.lost.append(name))

    def _commit(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError._NO_OFFSET:  # nothing was consumed since the last commit
                self.refused_commits.append(str(problem))

    def leave(self, name: str) -> None:
        self.consumers.pop(name).close()

    def close(self) -> None:
        for name in list(self.consumers):
            self.leave(name)

    def poll(self) -> None:
        for consumer in self.consumers.values():
            for message in consumer.consume(1_000, 0.02):
                error = message.error()
                if error is None:
                    self.seen[(message.value() or b"").decode()] += 1
                else:
                    assert error.code() == JOINS_AGAIN_AFTER, (error.name(), error.str())

    def poll_until(self, condition: Callable[[], bool]) -> None:
        began = time.monotonic()
        faults: list[BlockingFault] = []
        helped = 0
        while not condition():
            waited = time.monotonic() - began
            assert waited < PATIENCE_SECONDS, f"not reached: {self.assignments()}, {self.view()}"
            if waited > (helped + 1) * STANDSTILL_SECONDS:
                helped += 1
                faults += self._lose_answers()
            self.poll()
        for fault in faults:
            fault.remove()

    def _lose_answers(self) -> list[BlockingFault]:
        """Let the next heartbeat of each member be the last one on its connection."""
        view = self.view()
        return [
            self.coordinator.add_fault(keys="ConsumerGroupHeartbeat", member=each.member_id, when="drop_response")
            for each in ([] if view is None else view.members)
            if isinstance(each, ConsumerMemberView) and not each.is_classic
        ]

    def poll_until_shared(self, topics: dict[str, int], members: int | None = None) -> None:
        """Poll until coordinator and consumers agree that all partitions are owned, each by one."""
        wanted = {(topic, partition) for topic, count in topics.items() for partition in range(count)}
        expected = len(self.consumers) if members is None else members

        def is_shared() -> bool:
            view = self.view()
            if view is None or view.state != "Stable" or len(view.members) != expected:
                return False
            owned = [partition for each in self.assignments().values() for partition in each]
            if expected == len(self.consumers) and sorted(owned) != sorted(wanted):
                return False
            granted = [pair for member in view.members for pair in _pairs(member)]
            return sorted(granted) == sorted(wanted)

        self.poll_until(is_shared)

    def view(self) -> Any:
        return self.coordinator.group(self.group_id)

    def epoch(self) -> int:
        view = self.view()
        assert isinstance(view, ConsumerGroupView)
        return view.group_epoch

    def member(self, client_id: str) -> MemberView | None:
        view = self.view()
        members: list[MemberView] = [] if view is None else view.members
        return next((each for each in members if each.client_id == client_id), None)

    def epoch_of(self, client_id: str) -> int | None:
        member = self.member(client_id)
        return member.member_epoch if isinstance(member, ConsumerMemberView) else None

    def assignments(self) -> dict[str, set[tuple[str, int]]]:
        return {
            name: {(each.topic, each.partition) for each in consumer.assignment()}
            for name, consumer in self.consumers.items()
        }

    def let_each_beat(self) -> None:
        """Wait for two heartbeats of each member: time may then go on by less than a session."""
        for name in self.consumers:
            seen = len(self.coordinator.requests("ConsumerGroupHeartbeat", name))
            self.poll_until(
                lambda name=name, seen=seen: (  # type: ignore[misc]
                    len(self.coordinator.requests("ConsumerGroupHeartbeat", name)) > seen + 1
                )
            )


def _pairs(member: MemberView) -> list[tuple[str, int]]:
    return [(topic, partition) for topic, partitions in (member.assignment or {}).items() for partition in partitions]


@contextmanager
def group(
    coordinator: BlockingGroupCoordinator, name: str, topic: str, subscription: str | None = None
) -> Iterator[Group]:
    found = Group(coordinator, name, subscription or topic)
    try:
        yield found
    finally:
        found.close()


def test_three_members_become_four_and_one_is_killed(coordinator: BlockingGroupCoordinator) -> None:
    coordinator.set_topic("orders", 8)
    coordinator.produce("orders", None, [(f"key-{n}", f"{n}") for n in range(40)])
    with group(coordinator, "orders-app", "orders") as orders:
        for name in ("one", "two", "three"):
            orders.join(name)
        orders.poll_until_shared({"orders": 8})
        victim = subprocess.Popen([sys.executable, "-c", VICTIM, coordinator.bootstrap_servers, "orders-app", "orders"])
        try:
            orders.poll_until_shared({"orders": 8}, members=4)
            orders.poll_until(lambda: sorted(map(len, orders.assignments().values())) == [2, 2, 2])
            before = orders.assignments()
        finally:
            victim.kill()
            victim.wait()
        coordinator.expire("orders-app", client_id="victim")
        orders.poll_until_shared({"orders": 8})
        assert all(before[name] <= owned for name, owned in orders.assignments().items()), "no member gave anything up"
        coordinator.produce("orders", None, [(f"key-{n}", f"{n}") for n in range(40, 60)])
        orders.poll_until(lambda: len(orders.seen) == 60)
        assert orders.lost == []


def test_a_static_member_that_restarts_causes_no_rebalance(coordinator: BlockingGroupCoordinator) -> None:
    coordinator.set_topic("static", 4)
    with group(coordinator, "static-app", "static") as static:
        static.join("old", instance="i")
        static.join("other", instance="j")
        static.poll_until_shared({"static": 4})
        had, epoch = static.assignments()["old"], static.epoch()
        static.leave("old")
        static.poll_until(lambda: static.epoch_of("old") == -2)
        static.join("new", instance="i")
        static.poll_until_shared({"static": 4})
        assert static.assignments()["new"] == had
        assert static.epoch() == epoch


def test_a_regular_expression_begins_to_match(coordinator: BlockingGroupCoordinator) -> None:
    coordinator.set_topic("pattern-a", 2)
    with group(coordinator, "pattern-app", "pattern-a", "^pattern-.*") as pattern:
        pattern.join("one")
        pattern.join("two")
        pattern.poll_until_shared({"pattern-a": 2})
        member = pattern.member("one")
        assert isinstance(member, ConsumerMemberView)
        assert member.subscribed_regex == "(^pattern-.*)", "librdkafka puts its expressions into one"
        coordinator.set_topic("pattern-b", 2)
        coordinator.produce("pattern-b", None, [("key", "matched")])
        pattern.let_each_beat()
        coordinator.advance(REGEX_PAUSE_MS)
        pattern.poll_until_shared({"pattern-a": 2, "pattern-b": 2})
        pattern.poll_until(lambda: pattern.seen["matched"] == 1)


def test_a_topic_grows(coordinator: BlockingGroupCoordinator) -> None:
    coordinator.set_topic("growing", 2)
    with group(coordinator, "growing-app", "growing") as growing:
        growing.join("one")
        growing.join("two")
        growing.poll_until_shared({"growing": 2})
        coordinator.set_topic("growing", 6)
        growing.poll_until_shared({"growing": 6})
        coordinator.produce("growing", 5, ["in the new partition"])
        growing.poll_until(lambda: growing.seen["in the new partition"] == 1)


def test_a_group_moves_to_the_consumer_protocol_and_back_while_it_consumes(
    coordinator: BlockingGroupCoordinator, record_property: Callable[[str, object], None]
) -> None:
    coordinator.set_topic("moving", 6)
    written = 0

    def produce() -> None:
        nonlocal written
        coordinator.produce("moving", None, [(f"key-{n}", f"{n}") for n in range(written, written + 20)])
        written += 20

    def replace(old: str, new: str, protocol: str) -> None:
        """Replace a member by one of another protocol, with records before, between and after."""
        produce()
        moving.poll()
        moving.leave(old)
        produce()
        moving.join(new, protocol=protocol)
        moving.poll_until_shared({"moving": 6})
        produce()

    def kind() -> tuple[bool, int]:
        view = moving.view()
        assert view is not None
        is_consumer = isinstance(view, ConsumerGroupView)
        return is_consumer, sum(isinstance(each, ConsumerMemberView) and each.is_classic for each in view.members)

    with group(coordinator, "moving-app", "moving") as moving:
        for name in ("a", "b", "c"):
            moving.join(name, protocol="classic")
        moving.poll_until_shared({"moving": 6})
        assert kind() == (False, 0)
        for number, (old, new) in enumerate((("a", "A"), ("b", "B"), ("c", "C"))):
            replace(old, new, "consumer")
            assert kind() == (True, 2 - number)
        for number, (old, new) in enumerate((("A", "a2"), ("B", "b2"))):
            replace(old, new, "classic")
            assert kind() == (True, 1 + number)
        replace("C", "c2", "classic")
        assert kind() == (False, 0)
        moving.poll_until(lambda: len(moving.seen) == written)
    duplicates = sum(moving.seen.values()) - written
    record_property("records while the group moves", written)
    record_property("of them read twice", duplicates)
    record_property("commits refused", len(moving.refused_commits))
    assert set(moving.seen) == {str(n) for n in range(written)}, "nothing is lost"
    assert duplicates == 0 or moving.refused_commits, "a record comes twice only where a commit was refused"
    assert moving.lost == []
