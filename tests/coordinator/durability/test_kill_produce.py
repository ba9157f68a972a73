"""kill -9 under producers and consumers that speak Kafka's protocol: each record is there once, and in order.

``REJOIN_KILL_PRODUCE_ROUNDS`` says how often, and for PostgreSQL too; ``REJOIN_KILL_SEED`` draws other moments.

Each producer has one request in flight: after a restart a partition recognizes only the last batch of a producer, here
as in Kafka. With more of them, answers that are lost with the broker can end in OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.coordinator.durability.producers import FollowingConsumer, NumberingProducer, check_log, go_on
from tests.coordinator.durability.service import PATIENCE, Service, stop_all

GIVEN = os.environ.get("REJOIN_KILL_PRODUCE_ROUNDS")
ROUNDS = int(GIVEN or "2")
SEED = int(os.environ.get("REJOIN_KILL_SEED", "1"))
TOPIC, PARTITIONS = "orders", 3
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "broker.session.timeout.ms": "1000",
}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"] if GIVEN else ["sqlite"])
def test_every_record_is_there_once_and_in_order(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    dice = random.Random(SEED)
    store = ["--data", str(tmp_path / "data")]
    if kind == "postgres":
        store = ["--store", request.getfixturevalue("postgres")]
    service = Service(tmp_path, store, SETTINGS, f"{TOPIC}:{PARTITIONS}")
    service.start()
    producers = [NumberingProducer([service.kafka_port], TOPIC, number, in_flight=1) for number in range(PARTITIONS)]
    consumer = FollowingConsumer(service.kafka_port, TOPIC)
    threads: list[NumberingProducer | FollowingConsumer] = [*producers, consumer]
    try:
        for thread in threads:
            thread.start()
        for _ in range(ROUNDS):
            go_on(producers)
            time.sleep(dice.uniform(0, 0.1))
            service.kill()
            service.start()
        go_on(producers)
        consumer.wait_until_it_consumes()
        for thread in threads:
            thread.stop()
            thread.join(PATIENCE)
        check_log(service.kafka_port, producers)
        assert consumer.problems == []
        assert all(offset == number for (_, offset), number in consumer.seen.items())
    finally:
        for thread in threads:
            thread.stop()
        assert service.process is not None
        stop_all([service.process])
    assert service.said("coordinator") == "", "nothing failed inside"


def test_the_node_that_is_left_serves_all_that_was_acknowledged(tmp_path: Path, postgres: str) -> None:
    nodes = []
    for node_id in (1, 2):
        folder = tmp_path / str(node_id)
        folder.mkdir()
        settings = {**SETTINGS, "broker.id": str(node_id)}
        nodes.append(Service(folder, ["--store", postgres], settings, f"{TOPIC}:{PARTITIONS}"))
    for node in nodes:
        node.start()
    ports = [node.kafka_port for node in nodes]
    producers = [NumberingProducer(ports, TOPIC, number, pause_s=0.01, in_flight=1) for number in range(PARTITIONS)]
    try:
        for producer in producers:
            producer.start()
        go_on(producers)
        nodes[0].kill()
        go_on(producers)
        nodes[0].start()
        go_on(producers)
        nodes[1].kill()
        go_on(producers)
        for producer in producers:
            producer.stop()
            producer.join(PATIENCE)
        check_log(ports[0], producers)
    finally:
        for producer in producers:
            producer.stop()
        stop_all([node.process for node in nodes if node.process is not None])
    assert nodes[0].said("coordinator") == "", "nothing failed inside"
