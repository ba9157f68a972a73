"""Consumers that read from followers (KIP-392): answers as Kafka recorded them, copies that lag, and a client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from conformance.fetching.script import RACKS, SELECTOR, Reader, play, play_without_follower
from rejoin.client import Consumer, TopicPartition
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.in_process_brokers.test_leaders import TOPIC, metadata, produce, three

GOLDEN = Path(__file__).parents[2] / "golden" / "follower-reads.jsonl"
RACKED = {"broker.rack": ",".join(RACKS), "replica.selector.class": SELECTOR}


def reader_of(coordinator: GroupCoordinator) -> Reader:
    async def ask(broker: int, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        request = BY_NAME[api].request.parse(json.dumps(body), version)
        response = await coordinator.call(request, version, broker=broker)
        answer: dict[str, Any] = json.loads(response.to_json(version))
        return answer

    return Reader(ask)


async def test_leaders_and_followers_answer_as_kafka_does() -> None:
    recorded = [json.loads(line) for line in GOLDEN.read_text().splitlines()][1:]
    async with running(brokers=3, clock="virtual", topics={}, socket=False, settings=RACKED) as coordinator:
        reader = reader_of(coordinator)
        await reader.prepare()
        seen: dict[str, Any] = {"racks": await reader.write()}
        seen |= await play(reader)
        await coordinator.stop_broker(2)
        seen |= await play_without_follower(reader)
    assert len(recorded) == len(seen)
    assert {each["asked"]: each["seen"] for each in recorded} == seen


async def fetch(coordinator: GroupCoordinator, broker: int, offset: int = 0, **wanted: Any) -> Any:
    partition = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1_000, current_leader_epoch=wanted.pop("epoch", -1)
    )
    topic = FetchTopic(topic_id=(await metadata(coordinator, 1)).topics[0].topic_id, partitions=(partition,))
    limits = {"max_wait_ms": 0, "min_bytes": 1, "rack_id": "b", "forgotten_topics_data": (), **wanted}
    response: Any = await coordinator.call(FetchRequest(topics=(topic,), **limits), 16, broker=broker)
    return response.responses[0].partitions[0]


async def test_a_follower_that_is_cut_off_shows_what_it_knew_and_catches_up() -> None:
    async with three(**RACKED) as coordinator:
        await produce(coordinator, "a", broker=1)
        assert (await fetch(coordinator, 2)).high_watermark == 1
        await coordinator.cut_off(2, brokers=(1,))
        await produce(coordinator, "b", broker=1, acks=1)
        # In sync still, but the leader knows that it lacks what the consumer wants.
        assert (await fetch(coordinator, 1, 1)).preferred_read_replica == 3
        behind = await fetch(coordinator, 2, 1)
        assert (behind.error_code, behind.high_watermark, behind.records) == (ErrorCode.NONE, 1, b"")
        assert (await fetch(coordinator, 2, 2)).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
        await coordinator.heal(2)
        caught_up = await fetch(coordinator, 2, 1)
        assert (caught_up.high_watermark, len(caught_up.records) > 0) == (2, True)


async def test_a_fetch_at_a_follower_waits_for_the_high_watermark_and_ends_with_the_epoch() -> None:
    async with three(**RACKED) as coordinator:
        parked = asyncio.ensure_future(fetch(coordinator, 2, max_wait_ms=5_000))
        await asyncio.sleep(0)
        await coordinator.cut_off(3, brokers=(1,))
        await produce(coordinator, "a", broker=1, acks=1)
        assert not parked.done(), "broker 3 is in sync, and has not copied it"
        await coordinator.heal(3)
        assert (await parked).high_watermark == 1
        parked = asyncio.ensure_future(fetch(coordinator, 2, 1, epoch=0, max_wait_ms=5_000))
        await asyncio.sleep(0)
        await coordinator.move_leader(TOPIC, 0, to=3)
        assert (await parked).error_code is ErrorCode.FENCED_LEADER_EPOCH


async def test_a_copy_is_cut_off_where_the_new_leader_has_less() -> None:
    async with three(**RACKED) as coordinator:
        await produce(coordinator, "a", broker=1)
        await fetch(coordinator, 3)
        await coordinator.cut_off(2, brokers=(1,))
        await produce(coordinator, "b", broker=1, acks=1)
        assert (await fetch(coordinator, 3, 1)).high_watermark == 1, "broker 2 is in sync, and has not copied it"
        await coordinator.move_leader(TOPIC, 0, to=2)
        cut = await fetch(coordinator, 3, 1)
        assert (cut.error_code, cut.high_watermark) == (ErrorCode.NONE, 1)
        assert (await fetch(coordinator, 3, 2)).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_consumer_reads_in_its_rack_and_goes_back_when_the_follower_is_away() -> None:
    settings = {**RACKED, "broker.session.timeout.ms": 300}
    async with running(brokers=3, topics={TOPIC: 3}, settings=settings) as coordinator:
        cluster = coordinator.app
        assert isinstance(cluster, BrokerCluster)

        def bytes_out() -> list[int]:
            return [app.metrics.api("Fetch").bytes_out for app in cluster.apps]

        await coordinator.produce(TOPIC, 1, ["x" * 10_000])
        client: dict[str, Any] = {"bootstrap_servers": coordinator.bootstrap_servers, "auto_offset_reset": "earliest"}
        async with Consumer(**client, client_rack="a", fetch_max_wait_ms=20) as consumer, asyncio.timeout(20):
            await consumer.assign([TopicPartition(TOPIC, 1)])
            records: list[Any] = []
            while not records:
                records += await consumer.poll(200)
            at_first, at_leader, _ = bytes_out()
            assert at_first > 10_000 > at_leader, "broker 2 leads, and broker 1 is in the rack of the consumer"
            await coordinator.kill_broker(1)
            await coordinator.produce(TOPIC, 1, ["y" * 10_000])
            while len(records) < 2:
                records += await consumer.poll(200)
            assert bytes_out()[1] > 10_000
