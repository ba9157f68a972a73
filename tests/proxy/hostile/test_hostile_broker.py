"""Brokers whose answers lie: one connection ends, and neither memory nor listeners grow without bound."""

from __future__ import annotations

import asyncio
import random
import struct
from typing import Any

import pytest

from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.security import kafka_security
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.registry import METADATA
from rejoin.proxy import broker_table
from rejoin.proxy.listeners.metadata_brokers import with_our_brokers
from tests.protocol.wire.messages import random_message
from tests.proxy.wire import FrameClient, ScriptedBroker, Stand, codec, proxied

ALL_TOPICS = MetadataRequest(topics=None)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
VERSION = 9


class Ours:
    def local(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        return "proxy.of.ours", node_id % 50_000 + 1


def broker(node_id: int, host: str = "127.0.0.1", port: int = 9_092) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node_id, host=host, port=port)


def metadata(*brokers: MetadataResponseBroker, topics: int = 0) -> MetadataResponse:
    return MetadataResponse(brokers=brokers, topics=(MetadataResponseTopic(name="t" * 200),) * topics)


def claims(count: int, brokers: bytes = b"") -> bytes:
    """A frame of Metadata 4 that claims so many brokers."""
    body = struct.pack(">iii", 1, 0, count) + brokers
    return struct.pack(">i", len(body)) + body


LIES: dict[str, Any] = {
    "a-million": claims(1_000_000),
    "a-count-beyond-its-message": claims(3, struct.pack(">ih", 1, 4) + b"host"),
    "a-length-beyond-its-message": claims(1, struct.pack(">ih", 1, 30_000) + b"host"),
    "more-than-there-can-be": metadata(*(broker(each) for each in range(1_001))),
    "no-port": metadata(broker(1, port=70_000)),
    "a-negative-port": metadata(broker(1, port=-1)),
    "a-host-of-30-kB": metadata(broker(1, "h" * 30_000)),
    "no-host": metadata(broker(1, "")),
}


async def still_served(stand: Stand, beside: FrameClient) -> None:
    stand.broker.on_raw = None
    stand.broker.answers["Heartbeat"] = HeartbeatResponse()
    assert await beside.ask(HEARTBEAT) == HeartbeatResponse()


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_absurd_brokers_end_one_connection(lie: Any) -> None:
    async with proxied(ScriptedBroker({"Metadata": lie, "Heartbeat": HeartbeatResponse()})) as stand:
        beside, client = await stand.client(), await stand.client()
        await beside.ask(HEARTBEAT)
        client.send(ALL_TOPICS, 4)
        assert await client.at_end() == b""
        assert len(stand.proxy.brokers.by_id) == 0
        assert stand.proxy.counters.refused == 1
        await still_served(stand, beside)


async def test_brokers_that_come_and_go_get_no_more_listeners_than_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_table, "MOST_BROKERS", 5)
    number = 0

    def answered(_: MetadataRequest) -> MetadataResponse:
        nonlocal number
        number += 1
        return metadata(broker(number))

    async with proxied(ScriptedBroker({"Metadata": answered})) as stand:
        beside = await stand.client()
        for _ in range(5):
            await beside.ask(ALL_TOPICS)
        for refused in range(3):
            client = await stand.client()
            client.send(ALL_TOPICS)
            assert await client.at_end() == b""
            assert (len(stand.proxy.brokers.by_id), stand.proxy.counters.brokers_refused) == (5, refused + 1)
        await still_served(stand, beside)


async def test_odd_brokers_get_listeners() -> None:
    odd = metadata(broker(1), broker(2), broker(2**31 - 1, "127.0.0.2"), broker(-7, "somewhere", 0))
    async with proxied(ScriptedBroker({"Metadata": odd})) as stand:
        client = await stand.client()
        *ours, none = (await client.ask(ALL_TOPICS)).brokers
        assert len({each.port for each in ours}) == 3, "two brokers at one address have listeners of their own"
        assert none == broker(-7, "somewhere", 0), "no broker has such an id"


async def test_metadata_of_any_size_passes_while_it_arrives() -> None:
    frame = codec(3, VERSION).response_frame(1, metadata(broker(5), topics=20_000))
    stream = ScriptedBroker()
    stream.on_raw = lambda _: frame[:3_000_000]
    async with proxied(stream) as stand:
        client = await stand.client()
        client.send(ALL_TOPICS, VERSION)
        size = int.from_bytes(await client.reader.readexactly(4), "big")
        begun = await client.reader.readexactly(2_900_000)
        stream.writers[0].write(frame[3_000_000:])
        answer = codec(3, VERSION).read_response_frame(begun + await client.reader.readexactly(size - len(begun)))[1]
        assert isinstance(answer, MetadataResponse)
        assert (answer.brokers[0].node_id, len(answer.topics)) == (5, 20_000)
        assert answer.brokers[0].port == stand.proxy.brokers.by_id[5].local_port


async def test_brokers_that_never_end_are_given_up() -> None:
    endless = ScriptedBroker()
    endless.on_raw = lambda _: struct.pack(">iiii", 2**31 - 1, 1, 0, 900) + bytes(3_000_000)
    async with proxied(endless) as stand:
        client = await stand.client()
        client.send(ALL_TOPICS, 4)
        await client.at_end()
        assert stand.proxy.counters.refused == 1


async def test_an_answer_of_two_gigabytes_passes_in_pieces() -> None:
    huge = ScriptedBroker()
    huge.on_raw = lambda _: struct.pack(">ii", 2**31 - 1, 1) + bytes(2_000_000)
    async with proxied(huge) as stand:
        client = await stand.client()
        client.send(HEARTBEAT)
        assert await client.reader.readexactly(2_000_008)
        (relay,) = stand.proxy.relays
        assert relay.broker.splitter._held == []
        assert relay.broker.splitter._rest == b""


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("unknown", codec(12, 4).response_frame(77, HeartbeatResponse())),
        ("negative", b"\x80\0\0\0"),
        ("out-of-order", codec(12, 4).response_frame(2, HeartbeatResponse())),
        ("too-short", b"\0\0\0\x02\0\0"),
        ("empty", b"\0\0\0\0"),
    ],
)
async def test_answers_to_no_request_end_one_connection(api: str, answer: bytes) -> None:
    async with proxied(ScriptedBroker({"Heartbeat": HeartbeatResponse()})) as stand:
        beside, client = await stand.client(), await stand.client()
        await beside.ask(HEARTBEAT)
        stand.broker.on_raw = lambda _: answer
        client.send(HEARTBEAT)
        client.send(HEARTBEAT)
        assert await client.at_end() == b"", api
        await still_served(stand, beside)


async def test_an_answer_that_was_never_asked_for_ends_one_connection() -> None:
    async with proxied(ScriptedBroker({"Heartbeat": HeartbeatResponse()})) as stand:
        beside, client = await stand.client(), await stand.client()
        await beside.ask(HEARTBEAT)
        await client.ask(HEARTBEAT)
        for writer in stand.broker.writers[1:]:
            writer.write(codec(12, 4).response_frame(9, HeartbeatResponse()))
        assert await client.at_end() == b""
        await still_served(stand, beside)


async def test_a_torn_handshake_of_a_broker_ends_one_connection() -> None:
    async def tear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x16\x03\x03\x40\0\x02")
        writer.close()

    torn = await asyncio.start_server(tear, "127.0.0.1", 0)
    port = torn.sockets[0].getsockname()[1]
    upstream = kafka_security(ClientSecurityConfig(security_protocol="SSL"))
    try:
        async with proxied(bootstrap=(("127.0.0.1", port),), upstream=upstream) as stand:
            client = await stand.client()
            client.send(HEARTBEAT)
            assert await client.at_end() == b""
            assert stand.proxy.counters.unreachable == 1
    finally:
        torn.close()
        await torn.wait_closed()


@pytest.mark.parametrize("version", range(METADATA.min_version, METADATA.max_version + 1))
def test_only_the_brokers_of_metadata_change(version: int) -> None:
    dice = random.Random(version)
    form = codec(METADATA.key, version)
    for _ in range(20):
        theirs: Any = random_message(MetadataResponse, version, dice)
        ours = [
            each.model_copy(update={"host": "proxy.of.ours", "port": each.node_id % 50_000 + 1})
            if each.node_id >= 0
            else each
            for each in theirs.brokers
        ]
        frame = form.response_frame(7, theirs)
        wanted = form.response_frame(7, theirs.model_copy(update={"brokers": tuple(ours)}))
        assert with_our_brokers(frame, form, Ours()) == wanted
        for cut in range(8, len(frame), 1 + len(frame) // 40):
            begun = with_our_brokers(frame[:cut], form, Ours())
            assert begun is None or begun + frame[cut:] == wanted
