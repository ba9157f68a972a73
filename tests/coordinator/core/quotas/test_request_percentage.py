"""The time that a node works on a client's requests is limited: with times that are given, on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.records.fetch import FetchRequest
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest
from tests.coordinator.core.driver import DrivenNode
from tests.coordinator.core.partitions.real_topic import RealTopic as Driven
from tests.coordinator.core.quotas.test_throttling import CONSUMER, Client, limit

PERCENTAGE = "request_percentage"
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
"""Its answer in version 0 has no throttle time."""
WINDOW_MS = 1_000


def throttled(client: Client, request: Request = HEARTBEAT, version: int = 4) -> int:
    """The throttle time of an answer."""
    found: int = client.ask(request, version).throttle_time_ms
    return found


def working(seconds: float) -> Any:
    """A stopwatch for a node whose handlers take so long."""

    def readings() -> Iterator[float]:
        at = 0.0
        while True:
            yield at
            yield at + seconds
            at += 100.0

    return readings().__next__


def test_a_client_that_floods_is_throttled_by_one_window_at_most_and_gets_its_percentage() -> None:
    driven = Driven(emulator_request_time_ms=5.0)
    limit(driven, PERCENTAGE, 1, user="alice")
    client = Client(driven)
    began, times = driven.now, []
    while driven.now - began < 60_000:
        times.append(throttled(client))
    # Ten windows without a request allow 100 ms of work at once.
    assert times[:20] == [0] * 20
    assert times[20] == 500
    assert max(times) <= WINDOW_MS
    assert 0.9 <= len(times) * 5.0 / 60_000 * 100 <= 1.2


def test_work_is_measured_where_no_time_is_given() -> None:
    driven = Driven()
    driven.node.measure_work(working(0.05))
    limit(driven, PERCENTAGE, 1, client_id="app")
    client = Client(driven)
    assert [throttled(client) for _ in range(3)] == [0, 0, WINDOW_MS]
    assert throttled(Client(driven, client_id="other", connection="2")) == 0


def test_on_a_virtual_clock_requests_take_no_time_unless_it_is_given() -> None:
    driven = Driven()
    limit(driven, PERCENTAGE, 0.001, user="alice")
    assert {throttled(Client(driven)) for _ in range(50)} == {0}


@pytest.mark.parametrize(
    "entity",
    [{"client_id": None}, {"user": None}, {"user": "alice"}, {"client_id": "app", "user": "alice"}],
)
def test_the_quota_of_each_entity_counts(entity: dict[str, str | None]) -> None:
    driven = Driven(emulator_request_time_ms=1_000.0)
    limit(driven, PERCENTAGE, 1, **entity)
    assert throttled(Client(driven)) == WINDOW_MS
    limit(driven, PERCENTAGE, None, **entity)
    driven.elapse(WINDOW_MS)
    assert throttled(Client(driven)) == 0


def test_a_throttled_connection_is_muted_also_where_the_answer_has_no_field_for_it() -> None:
    driven = Driven(emulator_request_time_ms=1_000.0)
    limit(driven, PERCENTAGE, 1, user="alice")
    client = Client(driven)
    assert client.ask(HEARTBEAT, 0).throttle_time_ms == 0
    token = client.send(HEARTBEAT, 4)
    driven.elapse(WINDOW_MS - 1)
    assert token not in driven.replies
    driven.elapse(1)
    assert token in driven.replies


def parked_join(driven: DrivenNode) -> str:
    """A parked JoinGroup of alice, who has little time."""
    limit(driven, PERCENTAGE, 1, user=None)
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        member_id="",
        group_instance_id="one",
        reason=None,
    )
    driven.request("join", join, Context(9, "app", "/127.0.0.1", "User:alice", connection="1"))
    assert "join" not in driven.replies
    return "join"


def test_a_parked_request_is_charged_for_its_work_with_its_answer() -> None:
    driven = DrivenNode(group_initial_rebalance_delay_ms=3_000)
    driven.node.measure_work(working(0.5))
    token = parked_join(driven)
    driven.elapse(3_000)
    answer: Any = driven.replies[token]
    assert answer.throttle_time_ms == WINDOW_MS


def test_a_copy_of_a_node_counts_by_itself() -> None:
    driven = DrivenNode(group_initial_rebalance_delay_ms=3_000, emulator_request_time_ms=500.0)
    token = parked_join(driven)
    original = driven.node
    driven.node = original.copy(lambda waits: ("copy", waits))
    driven.elapse(3_000)
    answer: Any = driven.replies["copy", token]
    assert answer.throttle_time_ms == WINDOW_MS
    driven.node = original
    driven.elapse(0)
    answer = driven.replies[token]
    assert answer.throttle_time_ms == WINDOW_MS


def test_requests_of_brokers_and_those_without_an_answer_do_not_count() -> None:
    driven = Driven(emulator_request_time_ms=1_000.0)
    limit(driven, PERCENTAGE, 1, user="alice")
    client = Client(driven)
    client.send(ProduceRequest(acks=0, timeout_ms=1_000, topic_data=()), 12)
    client.send(FetchRequest(replica_id=1, max_wait_ms=0, min_bytes=0, topics=()), 12)
    client.send(WriteTxnMarkersRequest(markers=()), 1)
    operator = Context(4, "app", "/127.0.0.1", "User:alice", by_operator=True, connection="1")
    driven.request(object(), HEARTBEAT, operator)
    assert not driven.node._muted.until
    assert throttled(client, MetadataRequest(topics=()), 12) == WINDOW_MS


def test_a_fetch_that_is_throttled_has_no_records_and_its_bytes_do_not_count() -> None:
    driven = Driven()
    client = Client(driven)
    client.produce(20_000)
    driven.node.measure_work(working(1.0))
    limit(driven, PERCENTAGE, 1, user="alice")
    limit(driven, CONSUMER, 2_500, user="alice")
    answer = client.fetch()
    assert answer.throttle_time_ms == WINDOW_MS
    assert answer.responses == ()
    limit(driven, PERCENTAGE, None, user="alice")
    answer = client.fetch()
    assert answer.throttle_time_ms == 0
    assert answer.responses[0].partitions[0].records


def test_the_longer_of_two_throttle_times_is_answered() -> None:
    driven = Driven(emulator_request_time_ms=1_000.0)
    limit(driven, PERCENTAGE, 1, user="alice")
    limit(driven, "controller_mutation_rate", 1, user="alice")
    client = Client(driven)
    assert client.create("a", 30).throttle_time_ms == WINDOW_MS
    assert client.create("b", 1, version=5).throttle_time_ms > 9_000
