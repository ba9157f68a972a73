"""Several brokers as clients reach them: one is cut off, all speak TLS, and ``rejoin serve --brokers 3`` loses one."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

from rejoin.client import Consumer, Producer, TopicPartition
from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from tests.certificates import Authority
from tests.coordinator.commands.test_serve import PATIENCE
from tests.coordinator.commands.test_serve import running as process_running
from tests.coordinator.in_process_brokers.test_leaders import TOPIC, latest, metadata, produce, three, values

ASSIGNED = [TopicPartition(TOPIC, number) for number in range(3)]
CONSUMER: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}


async def test_a_broker_cut_off_from_its_clients_leads_on_and_answers_them_later() -> None:
    async with three() as coordinator:
        await coordinator.cut_off(3, brokers=1)
        parked = asyncio.ensure_future(produce(coordinator, "parked", broker=1))
        await asyncio.sleep(0)  # It has arrived.
        assert (await latest(coordinator, 1)).offset == 0
        await coordinator.cut_off(1, clients=True)
        sent = asyncio.ensure_future(produce(coordinator, "sent", broker=1, acks=1))
        await coordinator.advance(60_000)
        assert not parked.done()
        assert not sent.done()
        seen = await metadata(coordinator, 2)
        assert [broker.node_id for broker in seen.brokers] == [1, 2, 3]
        assert (await coordinator.partition(TOPIC, 0)).leader == 1
        assert await values(coordinator) == [b"parked"]
        await coordinator.heal(1)
        assert (await parked).error_code is ErrorCode.REQUEST_TIMED_OUT
        assert ((await sent).error_code, (await sent).base_offset) == (ErrorCode.NONE, 1)
        assert await values(coordinator) == [b"parked", b"sent"]


async def test_clients_of_a_broker_that_is_cut_off_work_with_the_others() -> None:
    async with running(brokers=3, topics={TOPIC: 3}) as coordinator:
        await coordinator.produce(TOPIC, None, 1)
        async with Consumer(bootstrap_servers=coordinator.bootstrap_servers, **CONSUMER) as consumer:
            await consumer.assign(ASSIGNED)
            assert await read(consumer, 3) == {0: 1, 1: 1, 2: 1}
            await coordinator.cut_off(1, clients=True)
            sent = asyncio.ensure_future(coordinator.produce(TOPIC, 0, 1))
            for number in (1, 2):
                await coordinator.produce(TOPIC, number, 1)
            assert await read(consumer, 2) == {1: 1, 2: 1}
            assert not sent.done()
            await coordinator.heal(1)
            await sent
            assert await read(consumer, 1) == {0: 1}


async def test_after_a_reset_clients_find_the_brokers_where_they_were_with_empty_logs() -> None:
    async with running(brokers=2, topics={TOPIC: 3}) as coordinator:
        servers = coordinator.bootstrap_servers
        for _ in range(2):
            async with Producer(bootstrap_servers=servers) as producer:
                stored = [await producer.send_and_wait(TOPIC, "a", partition=number) for number in range(3)]
            assert [each.offset for each in stored] == [0, 0, 0]
            await coordinator.reset()
        assert coordinator.bootstrap_servers == servers


async def test_a_transaction_goes_on_when_its_coordinator_moves_and_when_it_dies() -> None:
    async with running(brokers=3, topics={TOPIC: 3}) as coordinator:
        servers = coordinator.bootstrap_servers
        id_partition = partition_for("shop", 50)
        async with Producer(bootstrap_servers=servers, transactional_id="shop", retry_backoff_ms=20) as producer:
            await producer.init_transactions()
            for number, aborts in enumerate((False, True, False)):
                await producer.begin_transaction()
                await producer.send_and_wait(TOPIC, f"{number}", partition=1)
                led = await coordinator.partition(TRANSACTION_STATE_TOPIC, id_partition)
                if number < 2:
                    moved = await coordinator.move_leader(TRANSACTION_STATE_TOPIC, id_partition)
                    assert (moved.leader != led.leader, moved.leader_epoch > led.leader_epoch) == (True, True)
                else:
                    assert led.leader is not None
                    await coordinator.kill_broker(led.leader)
                await (producer.abort_transaction() if aborts else producer.commit_transaction())
        settings = CONSUMER | {"bootstrap_servers": servers, "isolation_level": "read_committed"}
        async with Consumer(**settings) as consumer, asyncio.timeout(30):
            await consumer.assign(ASSIGNED)
            seen: list[bytes | None] = []
            while seen[-1:] != [b"2"]:
                seen += [record.value for record in await consumer.poll(200)]
        assert seen == [b"0", b"2"]


async def test_every_broker_speaks_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = {"ssl.keystore.location": str(authority.issue("CN=localhost").keystore)}
    secured: dict[str, Any] = {"security.protocol": "SSL", "ssl.truststore.location": str(authority.location)}
    trust = ssl.create_default_context(cafile=authority.location)
    async with running(brokers=3, topics={TOPIC: 3}, settings=settings) as coordinator:
        for broker in await coordinator.brokers():
            assert str(broker.url).startswith("https://")
            host, port = str(broker.kafka).split(":")
            _, writer = await asyncio.open_connection(host, int(port), ssl=trust)
            writer.close()
            await writer.wait_closed()
        servers = {"bootstrap_servers": coordinator.bootstrap_servers.split(",")[0], **secured}
        async with Producer(**servers) as producer:
            for number in range(3):
                await producer.send_and_wait(TOPIC, b"x", partition=number)
        async with Consumer(**servers, **CONSUMER) as consumer:
            await consumer.assign(ASSIGNED)
            assert await read(consumer, 3) == {0: 1, 1: 1, 2: 1}


async def test_rejoin_serve_with_three_brokers(tmp_path: Path) -> None:
    ports = tmp_path / "kafka-ports"
    options = ["--brokers", "3", "--control", "--kafka-port-file", str(ports), "--topic", "orders:3"]
    options += ["-c", "broker.session.timeout.ms=1000", "--log-level", "info"]
    with process_running(tmp_path, *options) as process:
        kafka = [int(line) for line in ports.read_text().splitlines()]
        assert len(set(kafka)) == len(set(process.ports)) == 3
        servers = f"127.0.0.1:{kafka[1]}"
        async with (
            Producer(bootstrap_servers=servers, retry_backoff_ms=20) as producer,
            Consumer(bootstrap_servers=servers, retry_backoff_ms=20, **CONSUMER) as consumer,
        ):
            await consumer.assign(ASSIGNED)
            for number in range(3):
                await producer.send_and_wait(TOPIC, b"x", partition=number)
            assert await read(consumer, 3) == {0: 1, 1: 1, 2: 1}
            killed = await asyncio.to_thread(process.call, "/control/brokers/1/kill", {})
            assert killed["state"] == "stopped"
            written = await producer.send_and_wait(TOPIC, b"y", partition=0)
            assert written.offset == 1
            assert await read(consumer, 1) == {0: 1}
        process.process.terminate()
        assert process.process.wait(PATIENCE) == 0
    events = [json.loads(line) for line in process.log.read_text().splitlines()]
    assert [event["topic"] for event in events if event["event"] == "topic_created"] == [TOPIC]


async def read(consumer: Consumer, count: int) -> dict[int, int]:
    """How many of the next records each partition has."""
    found: dict[int, int] = {}
    async with asyncio.timeout(60):
        while sum(found.values()) < count:
            for record in await consumer.poll(500):
                found[record.partition] = found.get(record.partition, 0) + 1
    return found
