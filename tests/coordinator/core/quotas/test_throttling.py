"""Clients above their quotas are slowed down: on a virtual clock, where thirty seconds take milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    QuotaAlteration,
    QuotaEntityData,
    QuotaOperation,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.types import ZERO_UUID
from tests.coordinator.core.driver import TOPIC, DrivenNode
from tests.coordinator.core.partitions.real_topic import RealTopic as Driven
from tests.coordinator.core.partitions.real_topic import batch

MEGABYTE = 1_000_000
PRODUCER, CONSUMER, MUTATIONS = "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate"


def limit(driven: DrivenNode, key: str, value: float | None, **entity: str | None) -> None:
    """Set a limit of an entity, whose types are ``user`` and ``client_id``; with no value remove it."""
    parts = tuple(
        QuotaEntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()
    )
    op = QuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
    entry = QuotaAlteration(entity=parts, ops=(op,))
    answer = driven.ask(AlterClientQuotasRequest(entries=(entry,), validate_only=False), 1)
    assert answer.entries[0].error_code is ErrorCode.NONE


class Client:
    """A client with a connection of its own: it sends a request once the one before it is answered."""

    def __init__(self, driven: Driven, user: str = "alice", client_id: str = "app", connection: str = "1") -> None:
        self.driven = driven
        self.user = user
        self.client_id = client_id
        self.connection = connection

    def send(self, request: Request, version: int) -> object:
        token = object()
        context = Context(version, self.client_id, "/127.0.0.1", f"User:{self.user}", connection=self.connection)
        self.driven.request(token, request, context)
        return token

    def ask(self, request: Request, version: int) -> Any:
        """The answer, for which time passes where the connection is muted."""
        token = self.send(request, version)
        while token not in self.driven.replies:
            self.driven.fire()
        return self.driven.replies[token]

    def produce(self, size: int) -> int:
        """Produce a record of so many bytes; returns the throttle time."""
        data = PartitionProduceData(index=0, records=batch("x" * size))
        topic = TopicProduceData(name=TOPIC, partition_data=(data,))
        answer = self.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)), 12)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE
        found: int = answer.throttle_time_ms
        return found

    def fetch(self) -> Any:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10 * MEGABYTE)
        topic = FetchTopic(topic=TOPIC, partitions=(partition,))
        return self.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10 * MEGABYTE, topics=(topic,)), 12)

    def create(self, name: str, partitions: int, version: int = 7) -> Any:
        return self.ask(CreateTopicsRequest(topics=(_topic(name, partitions),), timeout_ms=1_000), version)


def _topic(name: str, partitions: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())


def test_sixty_megabytes_at_one_a_second_take_a_minute_of_the_brokers_time() -> None:
    driven = Driven()
    limit(driven, PRODUCER, MEGABYTE, user="alice")
    client = Client(driven)
    began = driven.now
    taken_ms = []
    for _ in range(2):
        for _ in range(120):
            client.produce(MEGABYTE // 4)
        client.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
        taken_ms.append(driven.now - began)
    # A client that has been silent may send what ten windows allow at once: the first half is faster.
    assert 20_000 <= taken_ms[0] <= 30_000
    assert 54_000 <= taken_ms[1] <= 66_000


@pytest.mark.parametrize("size", [MEGABYTE // 4, MEGABYTE])
def test_a_producer_reaches_its_quota_after_what_ten_windows_allow_at_once(size: int) -> None:
    """A client that sends without a pause fills one window and waits for its end, so sums are averaged over eleven."""
    driven = Driven()
    limit(driven, PRODUCER, MEGABYTE, user="alice")
    client = Client(driven)
    began, sent = driven.now, 0
    sums: list[int] = []
    while len(sums) < 59:
        client.produce(size)
        sums += [sent] * ((driven.now - began) // 1_000 - len(sums))
        sent += size
    reached = (sum(sums[48:59]) - sum(sums[15:26])) / 11 / 33
    assert 0.9 * MEGABYTE <= reached <= 1.1 * MEGABYTE


def test_a_throttled_client_is_answered_at_once_and_its_next_request_waits() -> None:
    driven = Driven()
    limit(driven, PRODUCER, 1_000, user="alice")
    client = Client(driven)
    began = driven.now
    throttle_ms = client.produce(20_000)
    assert driven.now == began
    assert throttle_ms > 9_000
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    waiting = [client.send(heartbeat, 4) for _ in range(2)]
    elsewhere = Client(driven, connection="2").send(heartbeat, 4)
    assert elsewhere in driven.replies
    driven.elapse(throttle_ms - 1)
    assert not driven.replies.keys() & set(waiting)
    driven.elapse(1)
    assert driven.replies.keys() >= set(waiting)


def test_a_connection_that_is_muted_again_keeps_what_it_has_sent_since() -> None:
    driven = Driven()
    limit(driven, MUTATIONS, 1, user="alice")
    client = Client(driven)
    first = client.create("a", 20, version=5).throttle_time_ms
    topics = [_topic(name, 5) for name in "bc"]
    tokens = [client.send(CreateTopicsRequest(topics=(topic,), timeout_ms=1_000), 5) for topic in topics]
    driven.elapse(first)
    second: Any = driven.replies[tokens[0]]
    assert second.throttle_time_ms == 5_000
    assert tokens[1] not in driven.replies
    driven.elapse(5_000)
    assert tokens[1] in driven.replies


def test_the_most_special_quota_counts() -> None:
    driven = Driven()
    entities: list[dict[str, str | None]] = [
        {"client_id": None},
        {"client_id": "app"},
        {"user": None},
        {"client_id": None, "user": None},
        {"client_id": "app", "user": None},
        {"user": "alice"},
        {"client_id": None, "user": "alice"},
        {"client_id": "app", "user": "alice"},
    ]
    throttled = []
    for number, entity in enumerate(entities):
        # Each is wider than those before it, so that it counts exactly if the client is throttled less.
        limit(driven, PRODUCER, 100.0 * 2**number, **entity)
        driven.elapse(3_700_000)
        throttled.append(Client(driven, connection=str(number)).produce(500_000))
    assert throttled == sorted(throttled, reverse=True)
    assert len(set(throttled)) == len(throttled)
    for entity in reversed(entities):
        driven.elapse(3_700_000)
        assert Client(driven, connection=str(entity)).produce(500_000) == throttled.pop()
        limit(driven, PRODUCER, None, **entity)
    assert Client(driven, connection="last").produce(500_000) == 0


@pytest.mark.parametrize(
    ("entity", "shares_clients", "shares_users"),
    [
        ({"user": "alice"}, True, False),
        ({"user": None}, True, False),
        ({"client_id": "app"}, False, True),
        ({"client_id": None}, False, True),
        ({"client_id": None, "user": None}, False, False),
    ],
)
def test_rates_are_added_up_by_what_the_quota_names(
    entity: dict[str, str | None], shares_clients: bool, shares_users: bool
) -> None:
    driven = Driven()
    limit(driven, PRODUCER, 10_000, **entity)
    assert Client(driven).produce(99_000) == 0
    others = {
        "client": Client(driven, client_id="other", connection="2").produce(9_000) > 0,
        "user": Client(driven, user="bob", connection="3").produce(9_000) > 0,
    }
    assert others == {"client": shares_clients, "user": shares_users}


def test_a_fetch_above_the_quota_is_answered_without_records() -> None:
    driven = Driven()
    client = Client(driven)
    client.produce(20_000)
    limit(driven, CONSUMER, 1_000, client_id="app")
    answer = client.fetch()
    assert answer.throttle_time_ms > 9_000
    assert answer.responses == ()
    began = driven.now
    limit(driven, CONSUMER, 3_000, client_id="app")
    answer = client.fetch()
    assert driven.now - began > 9_000
    assert answer.throttle_time_ms == 0
    assert answer.responses[0].partitions[0].records


def test_topics_beyond_the_quota_are_refused_to_new_clients_and_old_ones_are_slowed_down() -> None:
    driven = Driven()
    limit(driven, MUTATIONS, 1, user="alice")
    client = Client(driven)
    assert client.create("a", 20).throttle_time_ms == 0
    refused = client.create("b", 1)
    assert refused.topics[0].error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.throttle_time_ms == 9_000
    deletion = DeleteTopicsRequest(topics=(DeleteTopicState(name="a", topic_id=ZERO_UUID),), timeout_ms=1_000)
    old = DeleteTopicsRequest(topic_names=("a",), timeout_ms=1_000)
    began = driven.now
    assert client.ask(deletion, 6).responses[0].error_code is ErrorCode.NONE
    assert driven.now - began == 9_000
    client.create("a", 1, version=5)
    assert client.ask(old, 4).throttle_time_ms > 0


def test_who_has_no_quota_is_not_slowed_down_by_those_of_others() -> None:
    driven = Driven()
    limit(driven, PRODUCER, 1, user="bob")
    limit(driven, CONSUMER, 1, user="alice")
    assert Client(driven).produce(500_000) == 0
