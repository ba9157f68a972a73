"""Our consumer over Kafka's protocol against our own coordinator: real records, groups, and connections that break."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rejoin.client import Consumer, KafkaError, KafkaTransport, TopicPartition
from rejoin.client.admin.admin import Admin
from rejoin.client.core.errors import NoOffsetForPartitionError, OffsetOutOfRangeError, RecordDeserializationError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord, TimestampType
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.client.workload.worker import Work, run_worker
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.coordinator.storage.proxy import Cut, Wire

AT = 1_700_000_000_000
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 50,
    "session_timeout_ms": 6_000,
    "fetch_max_wait_ms": 20,
}


@pytest.fixture
async def kafka() -> AsyncIterator[GroupCoordinator]:
    """A coordinator with a topic of two partitions, of which the first has ten records."""
    async with running(topics={"orders": 2}, settings={"group.initial.rebalance.delay.ms": 0}) as coordinator:
        await fill(coordinator, 0, 0, 10)
        yield coordinator


async def fill(coordinator: GroupCoordinator, partition: int, start: int, end: int) -> None:
    """Write the numbers from start to end, a second apart."""
    records = [{"key": f"k{n}", "value": str(n), "timestamp": AT + n * 1_000} for n in range(start, end)]
    await coordinator.produce("orders", partition, records)


def reader(kafka: GroupCoordinator, *topics: str, **settings: Any) -> Consumer:
    return Consumer(*topics, **{"bootstrap_servers": kafka.bootstrap_servers, **QUICK, **settings})


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """So many records, and no more."""
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += await consumer.poll(500)
    assert len(found) == count
    return found


async def test_real_records_arrive_with_all_they_have(kafka: GroupCoordinator) -> None:
    await kafka.produce("orders", 1, [{"key": "a", "value": "b", "headers": {"h": "x"}, "timestamp": AT}, "plain"])
    async with reader(kafka, "orders", group_id="g") as consumer:
        records = await read(consumer, 12)
        first, second = (record for record in records if record.partition == 1)
        assert first == ("orders", 1, 0, AT, b"a", b"b", (("h", b"x"),), TimestampType.CREATE_TIME, 0, None)
        assert (second.offset, second.key, second.value) == (1, None, b"plain")
        assert [record.value for record in records if record.partition == 0] == [b"%d" % n for n in range(10)]
        await consumer.commit()
        committed = await consumer.committed(P0)
        assert committed is not None
        assert committed.offset == await consumer.position(P0) == 10
        assert consumer.lag(P0) == 0


async def test_a_group_shares_real_records_and_goes_on_where_it_committed(kafka: GroupCoordinator) -> None:
    await fill(kafka, 1, 0, 10)
    async with reader(kafka, "orders", group_id="g", max_poll_records=7) as one:
        before = await one.poll(10_000)
        async with reader(kafka, "orders", group_id="g") as two:
            values: dict[int, list[int]] = {0: [], 1: []}
            for record in before:
                values[record.partition].append(int(record.value))
            async with asyncio.timeout(30):
                while not (len(values[0]) == len(values[1]) == 10 and one.assignment() and two.assignment()):
                    for records in await asyncio.gather(one.poll(100), two.poll(100)):
                        for record in records:
                            values[record.partition].append(int(record.value))
            assert values == {0: list(range(10)), 1: list(range(10))}
            assert sorted(one.assignment() + two.assignment()) == [P0, P1]


async def test_positions_by_hand(kafka: GroupCoordinator) -> None:
    async with reader(kafka) as consumer:
        await consumer.assign([P0])
        assert await consumer.beginning_offsets([P0, P1]) == {P0: 0, P1: 0}
        assert await consumer.end_offsets([P0]) == {P0: 10}
        assert await consumer.offsets_for_times({P0: AT + 6_500}) == {P0: 7}
        assert await consumer.offsets_for_times({P0: AT + 60_000}) == {P0: None}
        consumer.seek(P0, 8)
        assert [record.offset for record in await read(consumer, 2)] == [8, 9]
        consumer.seek_to_beginning(P0)
        assert (await read(consumer, 10))[0].offset == 0
        consumer.seek_to_end(P0)
        assert await consumer.position(P0) == 10
        consumer.pause(P0)
        await fill(kafka, 0, 10, 11)
        assert len(await consumer.poll(100)) == 0
        consumer.resume(P0)
        assert [record.value for record in await read(consumer, 1)] == [b"10"]


@pytest.mark.parametrize(
    ("policy", "offsets"), [("earliest", [0, 1]), ("latest", [10, 11]), ("by_duration:PT0S", [10, 11])]
)
async def test_where_a_reader_without_a_position_starts(
    kafka: GroupCoordinator, policy: str, offsets: list[int]
) -> None:
    async with reader(kafka, auto_offset_reset=policy, max_poll_records=2) as consumer:
        await consumer.assign([P0])
        assert await consumer.position(P0) == offsets[0]
        await fill(kafka, 0, 10, 12)
        assert [record.offset for record in await read(consumer, 2)] == offsets
        consumer.seek(P0, 1_000)
        await consumer.poll(500)
        assert await consumer.position(P0) in {0, 2, 12}


async def test_without_a_policy_a_missing_or_wrong_position_is_an_error(kafka: GroupCoordinator) -> None:
    async with reader(kafka, auto_offset_reset="none") as consumer:
        await consumer.assign([P0])
        with pytest.raises(NoOffsetForPartitionError):
            await consumer.poll(30_000)
        consumer.seek(P0, 1_000)
        with pytest.raises(OffsetOutOfRangeError, match="position 1000 is out of range for partition orders-0"):
            await consumer.poll(10_000)


async def test_deserializers_make_keys_and_values_and_a_bad_record_can_be_passed_over(kafka: GroupCoordinator) -> None:
    await kafka.produce("orders", 0, ["ten", "11"])
    async with reader(kafka, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        await consumer.assign([P0])
        records = await read(consumer, 10)
        assert (records[3].key, records[3].value) == ("k3", 3)
        for _ in range(2):
            with pytest.raises(RecordDeserializationError, match="orders-0 at offset 10 cannot be") as caught:
                await consumer.poll(10_000)
        consumer.seek(P0, caught.value.offset + 1)
        assert [(record.key, record.value) for record in await read(consumer, 1)] == [(None, 11)]


async def test_small_fetches_and_iteration_lose_nothing(kafka: GroupCoordinator) -> None:
    for start in range(10, 40):
        await fill(kafka, 0, start, start + 1)
    async with reader(kafka, "orders", group_id="g", max_partition_fetch_bytes=150, fetch_max_bytes=150) as consumer:
        values = []
        async for record in consumer:
            values.append(int(record.value))
            if len(values) == 25:
                await consumer.commit()
                break
    assert values == list(range(25))
    async with reader(kafka, "orders", group_id="g") as consumer:
        assert [int(record.value) for record in await read(consumer, 15)] == list(range(25, 40))


async def test_errors_of_a_moved_partition_are_tried_again(kafka: GroupCoordinator) -> None:
    async with reader(kafka) as consumer:
        await consumer.assign([P0])
        await read(consumer, 10)
        end = 10
        for error in ("NOT_LEADER_OR_FOLLOWER", "FETCH_SESSION_ID_NOT_FOUND", "UNKNOWN_TOPIC_ID"):
            fault = await kafka.add_fault(keys="Fetch", error=error, count=1)
            await fill(kafka, 0, end, end + 1)
            assert [record.offset for record in await read(consumer, 1)] == [end]
            end += 1
            await fault.wait()


async def test_nothing_is_lost_or_read_twice_when_connections_break(unused_tcp_port: int) -> None:
    dice = random.Random(4)
    address = f"PLAINTEXT://127.0.0.1:{unused_tcp_port}"
    async with Wire(unused_tcp_port) as wire:
        settings = {"listeners": address, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{wire.port}"}
        async with (
            running(topics={"orders": 1}, settings={**settings, "group.initial.rebalance.delay.ms": 0}) as kafka,
            Consumer(
                "orders",
                bootstrap_servers=f"127.0.0.1:{wire.port}",
                group_id="g",
                reconnect_backoff_ms=1,
                retry_backoff_ms=1,
                max_poll_records=3,
                **QUICK,
            ) as consumer,
        ):
            values: list[int] = []
            for number in range(12):
                await fill(kafka, 0, number * 5, number * 5 + 5)
                if number == 6:
                    wire.is_closed = True
                    wire.break_all()
                    with pytest.raises((TimeoutError, KafkaError)):
                        await consumer.commit(timeout_ms=50)
                    wire.is_closed = False
                else:
                    wire.cut = dice.choice((Cut.REQUEST, Cut.HALF_REQUEST, Cut.ANSWER))
                async with asyncio.timeout(30):
                    while len(values) < number * 5 + 5:
                        values += [int(record.value) for record in await consumer.poll(20)]
            assert values == list(range(60))
            assert wire.cuts >= 5


async def test_rejoin_consume_reads_over_kafkas_protocol(kafka: GroupCoordinator) -> None:
    nothing = parse_processing_time("0")
    work = Work(
        topics=("orders",),
        pattern=None,
        client_ids=("one", "two"),
        instance_ids=(),
        assignors=(),
        settings={**QUICK, "bootstrap_servers": (kafka.bootstrap_servers,), "group_id": "g"},
        commit="sync",
        processing_time=nothing,
        revoke_time=nothing,
        assign_time=nothing,
        seed=0,
        node="one",
        run_id="test",
    )
    stop = asyncio.Event()
    consuming = asyncio.create_task(run_worker(work, until=stop))
    await kafka.wait_for_committed("g", {P0: 10}, timeout_ms=30_000)
    group = await kafka.group("g")
    assert group is not None
    assert sorted(member.client_id for member in group.members) == ["one", "two"]
    stop.set()
    assert await consuming == 0


@pytest.mark.parametrize("release", ["0.11.0", "2.1", "2.8"])
async def test_an_older_broker_is_spoken_to_in_its_own_versions(release: str) -> None:
    settings = {"group.initial.rebalance.delay.ms": 0, "emulator.as.kafka": release}
    async with running(topics={"orders": 1}, settings=settings) as kafka:
        await fill(kafka, 0, 0, 10)
        async with reader(kafka, "orders", group_id="g") as consumer:
            assert len(await read(consumer, 10)) == 10
            await consumer.commit()
            assert await consumer.end_offsets([P0]) == {P0: 10}
        await fill(kafka, 0, 10, 11)
        async with reader(kafka, "orders", group_id="g", auto_offset_reset="none") as consumer:
            assert [record.offset for record in await read(consumer, 1)] == [10]
        async with KafkaTransport([kafka.bootstrap_servers]) as transport:
            admin = Admin(transport)
            assert [group.group_id for group in await admin.list_groups()] == ["g"]
            assert await admin.committed("g") == {P0: 11}
            assert await admin.offsets({P0: -1}) == {P0: 11}
