"""Faults of the transport: an answer that is cut, and one whose bytes come slowly."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.testing import GroupCoordinator, NoAnswer, running
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.registry import PRODUCE
from rejoin.protocol.wire.codec import codec_of
from tests.coordinator.control.samples import beat, stable
from tests.coordinator.service.kafka.frames import Peer, heartbeat

UNKNOWN_MEMBER_ID = struct.pack(">h", 25)
ANSWER = struct.pack(">iih", 6, 1, 25)
"""The whole frame of a heartbeat's answer: length, correlation id, error."""
BEAT = b'{"groupId": "g", "generationId": 1, "memberId": "m"}'


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3}) as started:
        yield started


def connect(coordinator: GroupCoordinator) -> Peer:
    return Peer(coordinator.app.endpoints[0].port)


@pytest.mark.parametrize(("count", "arrives"), [(0, b""), (3, ANSWER[:3]), (9, ANSWER[:9]), (10, ANSWER), (99, ANSWER)])
async def test_an_answer_is_cut_and_its_connection_closed(
    coordinator: GroupCoordinator, count: int, arrives: bytes
) -> None:
    await coordinator.add_fault(keys="Heartbeat", cut_after_bytes=count)
    async with connect(coordinator) as peer, connect(coordinator) as other:
        peer.send(heartbeat("g", "m"), heartbeat("g", "m", correlation=2))
        assert await peer.rest() == arrives, "what was sent behind it gets no answer"
        (sent,) = await coordinator.requests("Heartbeat")
        answer: Any = sent.response
        assert (answer and answer.error_code.name) == ("UNKNOWN_MEMBER_ID" if arrives == ANSWER else None)
        assert await other.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID, "the rule was for one request"


async def test_a_connection_is_reset_in_the_middle_of_an_answer(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(keys="Heartbeat", cut_after_bytes=4, reset=True)
    reader, writer = await asyncio.open_connection("127.0.0.1", coordinator.app.endpoints[0].port)
    writer.write(struct.pack(">i", len(heartbeat("g", "m"))) + heartbeat("g", "m"))
    async with asyncio.timeout(30):
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)) as ended:
            await reader.readexactly(10)
    assert ended.type is ConnectionResetError
    writer.close()


async def test_a_request_whose_answer_is_cut_was_applied(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    fault = await coordinator.add_fault(keys="Heartbeat", cut_after_bytes=2)
    with pytest.raises(NoAnswer):
        await coordinator.call(beat(member_id))
    assert fault.hits == 1
    assert "fault 1: after, cut after 2 bytes" in await coordinator.transcript()


async def test_the_bytes_of_an_answer_come_one_by_one_on_the_nodes_clock(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="Heartbeat", bytes_per_second=2)
    async with connect(coordinator) as peer:
        peer.send(heartbeat("g", "m"), heartbeat("g", "m", correlation=2))
        await fault.wait()
        advanced = await coordinator.advance(4_500)
        assert [fired.after_ms for fired in advanced.fired] == [500 * n for n in range(1, 10)]
        assert fault.held == 1, "one byte is missing"
        await coordinator.advance(500)
        assert [await peer.receive(), await peer.receive()] == [(1, UNKNOWN_MEMBER_ID), (2, UNKNOWN_MEMBER_ID)]


async def test_a_slow_answer_is_cut_in_the_middle(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="Heartbeat", bytes_per_second=1_000, cut_after_bytes=5)
    async with connect(coordinator) as peer:
        peer.send(heartbeat("g", "m"))
        await fault.wait()
        assert await coordinator.advance_to_next()
        assert await peer.rest() == ANSWER[:5]


async def test_an_error_is_delivered_like_any_answer(coordinator: GroupCoordinator) -> None:
    for count in (10, 9):
        await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR", cut_after_bytes=count)
        async with connect(coordinator) as peer:
            peer.send(heartbeat("g", "m"))
            assert await peer.rest() == (ANSWER[:8] + struct.pack(">h", 16))[:count]
    answers: list[Any] = [each.response for each in await coordinator.requests("Heartbeat")]
    assert [each and each.error_code.name for each in answers] == ["NOT_COORDINATOR", None]


async def test_a_produce_with_acks_of_0_has_no_answer_that_could_arrive(coordinator: GroupCoordinator) -> None:
    """Over HTTP it has one, as every request."""
    partition = PartitionProduceData(index=0, records=b"")
    topic = TopicProduceData(name="orders", partition_data=(partition,))
    ask = ProduceRequest(acks=0, timeout_ms=1_000, topic_data=(topic,))
    codec = codec_of(PRODUCE.key, 9)
    assert codec is not None
    for fault in ("INVALID_RECORD", None):
        if fault is not None:
            await coordinator.add_fault(keys="Produce", error=fault)
        async with connect(coordinator) as peer:
            peer.send_bytes(codec.request_frame(1, "over-wire", ask))
            assert await peer.rest() == b""
    await coordinator.call(ask, version=9, client_id="over-http")
    sent = await coordinator.requests("Produce")
    assert [(each.client_id, each.response is None) for each in sent] == [
        ("over-wire", True),
        ("over-wire", True),
        ("over-http", False),
    ]


async def test_a_coordinator_that_stops_ends_a_slow_answer(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="Heartbeat", bytes_per_second=1)
    async with connect(coordinator) as peer:
        peer.send(heartbeat("g", "m"))
        await fault.wait()
        await coordinator.app.stop()
        assert await peer.rest() == b""


async def test_http_answers_are_cut_and_slow_too(coordinator: GroupCoordinator) -> None:
    headers = {"Content-Type": "application/json"}
    url = f"{coordinator.url}/v1/heartbeat"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as session:
        await coordinator.add_fault(keys="Heartbeat", cut_after_bytes=40)
        with pytest.raises(aiohttp.ClientError):
            async with session.post(url, data=BEAT, headers=headers) as cut:
                await cut.read()
        fault = await coordinator.add_fault(keys="Heartbeat", bytes_per_second=50)
        asking = asyncio.ensure_future(session.post(url, data=BEAT, headers=headers))
        await fault.wait()
        await coordinator.advance_until_idle()
        assert (await (await asking).json())["errorCode"] == 25


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"cut_after_bytes": -1}, "cut_after_bytes: expected greater than or equal to 0"),
        ({"bytes_per_second": 0}, "bytes_per_second: expected greater than or equal to 1"),
        ({"reset": True, "latency_ms": 1}, "reset needs cut_after_bytes"),
        ({"when": "drop_response", "cut_after_bytes": 1}, "when drop_response answers nothing"),
    ],
)
async def test_rules_that_make_no_sense(coordinator: GroupCoordinator, rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        await coordinator.add_fault(**rule)
