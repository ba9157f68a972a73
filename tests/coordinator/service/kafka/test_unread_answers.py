"""Answers that clients do not read: they cost no copy of the log, let others have their turn, and come whole later."""

from __future__ import annotations

import asyncio
import ssl
import tracemalloc
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import uvloop

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.kafka.outgoing import UnsentBytes
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.registry import DELETE_RECORDS, FETCH
from tests.certificates import Authority
from tests.coordinator.service.kafka.frames import Peer, api_versions
from tests.coordinator.service.kafka.test_large_frames import TOPIC, batch, frame, produce, response

PIECE = 900_000
BATCHES = 9
READERS = 10
TLS_READERS = 3
"""TLS is encrypted in chunks, so it needs no more of them."""

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}


def values() -> list[bytes]:
    return [bytes([number]) * PIECE for number in range(BATCHES)]


def fetch(correlation: int, at: int = 0) -> bytes:
    """A Fetch of all that the partition has from an offset on."""
    wanted = FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=2**26)
    topics = (FetchTopic(topic=TOPIC, partitions=(wanted,)),)
    return frame(FETCH, 11, correlation, FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=2**26, topics=topics))


def records_of(body: bytes) -> bytes:
    (found,) = response(FETCH, 11, body).responses[0].partitions
    assert found.error_code == 0
    return bytes(found.records)


async def fill(peer: Peer) -> None:
    for number, value in enumerate(values()):
        peer.send_bytes(produce(number, (0, batch(value))))
        await peer.receive()


async def unread(port: int, tls: ssl.SSLContext | None, readers: int) -> None:
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(Peer(port, tls))
        await fill(writer)
        writer.send_bytes(fetch(99))
        whole = records_of((await writer.receive())[1])
        assert len(whole) > BATCHES * PIECE
        peers = [await stack.enter_async_context(Peer(port, tls)) for _ in range(readers)]
        tracemalloc.start()
        try:
            for peer in peers:
                # What follows is answered behind it, and not before it was read.
                peer.send_bytes(fetch(1) + fetch(2, BATCHES - 1))
                peer.send(api_versions(0, 3))
            for _ in range(20):
                await writer.ask(api_versions(0))
            assert tracemalloc.get_traced_memory()[1] < (readers + 1) * 2 * 2**20
        finally:
            tracemalloc.stop()
        # The log drops its batches; those who were answered before still get them.
        gone = DeleteRecordsPartition(partition_index=0, offset=BATCHES)
        topics = (DeleteRecordsTopic(name=TOPIC, partitions=(gone,)),)
        request = DeleteRecordsRequest(topics=topics, timeout_ms=1_000)
        for peer in peers[:1]:
            writer.send_bytes(frame(DELETE_RECORDS, 1, 1, request))
            await writer.receive()
            number, body = await peer.receive()
            assert (number, records_of(body)) == (1, whole)
        for peer in peers[1:]:
            number, body = await peer.receive()
            assert (number, records_of(body)) == (1, whole)
        for peer in peers:
            assert [(await peer.receive())[0] for _ in range(2)] == [2, 3]


def run(loop: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_fetch_that_is_not_read_costs_no_copy_of_the_log(loop: str) -> None:
    async def main() -> None:
        options = Options(settings=Settings(), port=0, kafka_port=0, topics=(InitialTopic(TOPIC, 1, None),))
        async with App(options) as app:
            await unread(app.endpoints[0].port, None, READERS)

    run(loop, main)


@pytest.mark.parametrize("loop", LOOPS)
def test_large_answers_over_tls_come_whole_and_in_order(loop: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.issue("CN=localhost")

    async def main() -> None:
        settings = Settings(
            listeners="SSL://127.0.0.1:0",
            ssl_certificate_location=str(server.certificate),
            ssl_key_location=str(server.key),
        )
        options = Options(settings=settings, port=0, topics=(InitialTopic(TOPIC, 1, None),))
        async with App(options) as app:
            await unread(app.bound_ports["SSL"], ssl.create_default_context(cafile=authority.location), TLS_READERS)

    run(loop, main)


def test_the_connection_that_holds_most_is_given_up() -> None:
    given_up: list[tuple[str, int]] = []
    unsent = UnsentBytes[str](lambda name, size: given_up.append((name, size)), 100)
    unsent.hold("a", 60)
    unsent.hold("b", 30)
    unsent.hold("b", 40)
    assert given_up == []
    unsent.hold("c", 1)
    assert (given_up, unsent.total) == ([("a", 60)], 41)
    unsent.hold("a", 0)
    unsent.hold("b", 0)
    assert unsent.total == 1
