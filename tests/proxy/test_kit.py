"""The kit for tests with a proxy in the coordinator's place, and every kind of fault as confluent-kafka sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from rejoin.coordinator.testing import BlockingGroupCoordinator, NotReached, OperationRefused, running_in_thread
from rejoin.coordinator.testing.failure_report import failure_report

ORDERS = [TopicPartition("orders", 0, 5), TopicPartition("orders", 1, 6)]
CLIENT = {
    "group.id": "g",
    "client.id": "one",
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 20,
    "retry.backoff.ms": 10,
    "log_level": 0,
}
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}


class Stand(NamedTuple):
    """A proxy in front of a cluster, and a client that has committed through it."""

    kit: BlockingGroupCoordinator
    consumer: Consumer

    def commit(self) -> list[int]:
        return [each.offset for each in self.consumer.commit(offsets=ORDERS, asynchronous=False)]

    def committed(self) -> list[int]:
        return [each.offset for each in self.consumer.committed(ORDERS, timeout=20)]


@contextmanager
def stand(**options: Any) -> Iterator[Stand]:
    with (
        running_in_thread(topics={"orders": 3}, settings=AT_ONCE, **options) as cluster,
        running_in_thread(proxy=cluster.bootstrap_servers) as proxied,
    ):
        kit = BlockingGroupCoordinator(proxied)
        consumer = Consumer({"bootstrap.servers": kit.bootstrap_servers, **CLIENT})
        try:
            made = Stand(kit, consumer)
            made.commit()
            yield made
        finally:
            kit.clear_faults()
            consumer.close()


def outcome(act: Callable[[], list[int]]) -> Any:
    try:
        return act()
    except KafkaException as problem:
        return problem.args[0].name()


def test_a_client_sees_each_kind_of_fault() -> None:
    both, none = [5, 6], [0, 0]
    with stand() as made:
        commit, committed = made.commit, made.committed
        cases: list[tuple[Callable[[], list[int]], dict[str, Any], Any, int]] = [
            (commit, {"error": "GROUP_AUTHORIZATION_FAILED"}, "GROUP_AUTHORIZATION_FAILED", 0),
            (commit, {"error": "OFFSET_METADATA_TOO_LARGE", "partitions": 1}, "OFFSET_METADATA_TOO_LARGE", 0),
            (commit, {"error": "COORDINATOR_LOAD_IN_PROGRESS", "when": "after"}, both, 0),
            (committed, {"when": "drop_request"}, both, 0),
            (committed, {"when": "drop_response"}, both, 0),
            (committed, {"cut_after_bytes": 10}, both, 0),
            (committed, {"cut_after_bytes": 0, "reset": True}, both, 0),
            (committed, {"bytes_per_second": 1_000}, both, 50),
            (committed, {"latency_ms": 100}, both, 100),
            (committed, {"latency_ms": 100, "when": "after"}, both, 100),
            (committed, {"throttle_ms": 10}, both, 0),
            (committed, {"wrong": "offset_zero"}, none, 0),
            (committed, {"when": "observe"}, both, 0),
        ]
        for act, rule, wanted, least_ms in cases:
            fault = made.kit.add_fault(keys="OffsetCommit" if act == commit else "OffsetFetch", **rule)
            began = monotonic()
            assert (rule, outcome(act)) == (rule, wanted)
            assert (monotonic() - began) * 1_000 >= least_ms * 0.9, rule
            assert (rule, fault.hits) == (rule, 1)


def test_a_rule_with_pause_holds_a_client_until_it_is_released() -> None:
    with stand() as made, ThreadPoolExecutor(1) as threads:
        fault = made.kit.add_fault(keys="OffsetFetch", client_id="one", pause=True)
        asked = threads.submit(made.committed)
        fault.wait()
        assert not asked.done()
        assert fault.release() == 1
        assert asked.result(20) == [5, 6]


def leaders(consumer: Consumer) -> list[int]:
    found = consumer.list_topics("orders", timeout=20).topics["orders"].partitions
    return [found[number].leader for number in sorted(found)]


def test_brokers_coordinators_rebalances_and_metadata_as_a_client_sees_them() -> None:
    both = [5, 6]
    with stand(brokers=2) as made:
        kit, consumer = made.kit, made.consumer
        away = kit.add_fault(client_id="one", node=(1, 2), keys="OffsetFetch", when="drop_request", count=2)
        assert (made.committed(), away.hits) == (both, 2)
        others = kit.add_fault(client_id="two", when="drop_request", count=-1)
        moved = kit.add_fault(keys="OffsetCommit", group="g", error="NOT_COORDINATOR", count=2)
        assert (made.commit(), moved.hits, others.hits) == (both, 2, 0)
        others.remove()
        right = leaders(consumer)
        stale = kit.add_fault(keys="Metadata", wrong="stale_leader", count=-1)
        assert leaders(consumer) != right
        stale.remove()
        assert leaders(consumer) == right
        delayed = kit.add_fault(keys="JoinGroup", latency_ms=400, when="after", count=-1)
        began = monotonic()
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            assert monotonic() - began < 60
            consumer.poll(0.02)
        assert monotonic() - began >= 0.4
        assert delayed.hits >= 1
        delayed.remove()


def test_rules_that_a_cluster_cannot_have_are_refused() -> None:
    with stand() as made:
        for rule, problem in (
            ({"keys": "Heartbeat", "topic": "orders", "error": "NOT_COORDINATOR"}, "topic"),
            ({"keys": "Heartbeat", "version": 99, "error": "NOT_COORDINATOR"}, "version"),
            ({"keys": "Produce", "wrong": "flipped_bit"}, "flipped_bit"),
            ({"keys": "Heartbeet"}, "is it Heartbeat"),
        ):
            with pytest.raises(ValueError, match=problem):
                made.kit.add_fault(**rule)


def test_requests_groups_and_evidence_are_those_of_the_cluster() -> None:
    with stand() as made:
        kit = made.kit
        mark = kit.mark()
        kit.add_fault(keys="OffsetCommit", error="GROUP_AUTHORIZATION_FAILED")
        outcome(made.commit)
        (sent,) = kit.requests(api="OffsetCommit", client_id="one", since=mark)
        assert sent.errors() == ["GROUP_AUTHORIZATION_FAILED"]
        group = kit.wait_for_group("g", state="Empty", members=0)
        assert group is not None
        assert kit.group("g") == group
        assert kit.group("unknown") is None
        assert kit.wait_for_committed("g", {("orders", 0): 5}) == {("orders", 0): 5, ("orders", 1): 6}
        with pytest.raises(NotReached, match="has not committed orders-0 to 9 within 1 ms; committed: orders-0=5"):
            kit.wait_for_committed("g", {("orders", 0): 9}, timeout_ms=1)
        report = failure_report(kit.behind, "It failed.")
        assert not report.is_transcript
        assert report.text.startswith("# It failed.\n")
        assert "one  OffsetCommit v" in report.text
        assert "GROUP_AUTHORIZATION_FAILED" in report.text


def test_what_needs_a_coordinator_of_ours_is_refused() -> None:
    with stand() as made:
        kit = made.kit
        calls: list[Callable[[], object]] = [
            lambda: kit.advance(1),
            lambda: kit.expire("g", client_id="one"),
            lambda: kit.produce("orders", 0, 1),
            kit.snapshot,
            kit.broker_log,
            lambda: kit.stop_broker(1),
            lambda: kit.url,
        ]
        for call in calls:
            with pytest.raises(OperationRefused, match="real cluster"):
                call()


def test_a_proxy_takes_no_options_of_a_coordinator() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"proxy": "127.0.0.1:9092", "topics": {"orders": 1}, "clock": "virtual"}, "leave out clock and topics"),
        ({"proxy": "kafka:99999"}, "proxy: .*99999"),
    ]
    for options, problem in cases:
        with pytest.raises(ValueError, match=problem), running_in_thread(**options):
            pass
