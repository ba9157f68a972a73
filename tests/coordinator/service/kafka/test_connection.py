"""Kafka's protocol on one connection: what is answered, in which order, and what ends it."""

from __future__ import annotations

import asyncio
import io
import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from rejoin.coordinator.core.runtime.shards import CLUSTER_ID
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.kafka.requests import WireVersion
from rejoin.coordinator.service.options import InitialTopic
from rejoin.protocol.brokers.offered_versions import ADVERTISED_FROM, offered
from rejoin.protocol.wire.errors import SchemaError
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import (
    Peer,
    api_versions,
    compact,
    framed,
    heartbeat,
    join_group,
    request,
    string,
)

ADVERTISED = {key: (ADVERTISED_FROM.get(key, first), last) for key, (first, last) in offered().items()}
UNKNOWN_MEMBER_ID = struct.pack(">h", 25)


@pytest.fixture
async def kafka(serve: Serve) -> Harness:
    """A node that listens for Kafka clients."""
    return await serve({"kafka_port": 0})


def connect(node: Harness) -> Peer:
    return Peer(node.app.endpoints[0].port)


async def metrics(node: Harness) -> str:
    async with node.session.get(node.app.url + "/metrics") as response:
        return await response.text()


async def test_a_version_that_is_not_known_is_refused_in_version_0(kafka: Harness) -> None:
    async with connect(kafka) as peer:
        peer.send(request(18, 99, 7, b"\0whatever"))
        correlation, body = await peer.receive()
        newest = offered()[18]
        assert (correlation, body) == (7, struct.pack(">hi", 35, 1) + struct.pack(">hhh", 18, *newest))
        assert (await peer.ask(api_versions(0)))[:2] == b"\0\0", "the client goes on with a version that is known"


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
async def test_the_offer_names_every_api(kafka: Harness, version: int) -> None:
    async with connect(kafka) as peer:
        body = await peer.ask(api_versions(version))
    error, rest = struct.unpack(">h", body[:2])[0], body[2:]
    assert error == 0
    if version < 3:
        count, rest, step = struct.unpack(">i", rest[:4])[0], rest[4:], 6
    else:
        count, rest, step = rest[0] - 1, rest[1:], 7
    found = {}
    for at in range(0, count * step, step):
        key, first, last = struct.unpack(">hhh", rest[at : at + 6])
        found[key] = (first, last)
    assert found == ADVERTISED


@pytest.mark.parametrize("name", ["", "-x", "x_y", "a b"])
async def test_software_must_have_a_name_of_kafkas_form(kafka: Harness, name: str) -> None:
    async with connect(kafka) as peer:
        assert (await peer.ask(api_versions(3, name=name)))[:2] == struct.pack(">h", 42)


@pytest.mark.parametrize(
    ("cluster", "node", "error"),
    [(CLUSTER_ID, 1, 0), (CLUSTER_ID, 2, 129), ("another", 1, 129), (None, 1, 42), (CLUSTER_ID, -1, 42)],
)
async def test_a_client_that_takes_it_for_another_broker_must_bootstrap_anew(
    kafka: Harness, cluster: str | None, node: int, error: int
) -> None:
    async with connect(kafka) as peer:
        assert (await peer.ask(api_versions(5, taken_for=(cluster, node))))[:2] == struct.pack(">h", error)


async def test_requests_are_answered_in_order_and_one_at_a_time(kafka: Harness) -> None:
    async with connect(kafka) as peer, connect(kafka) as other:
        peer.send(api_versions(0, 1), join_group("g", 2), api_versions(0, 3))
        assert (await peer.receive())[0] == 1
        peer.send(heartbeat("g", "unknown", correlation=4))
        assert await other.ask(heartbeat("g", "unknown")) == UNKNOWN_MEMBER_ID, "other connections are not held up"
        kafka.clock.advance(3_000)
        answers = [await peer.receive() for _ in range(3)]
    assert [correlation for correlation, _ in answers] == [2, 3, 4], "what came behind the join waited for its answer"
    assert answers[2][1] == UNKNOWN_MEMBER_ID


async def test_requests_of_one_connection_may_name_different_clients(kafka: Harness) -> None:
    """The member id that a new member is given begins with the client id of that very request."""
    # JoinGroup 4: MEMBER_ID_REQUIRED, behind throttle time, error, generation, protocol and leader.
    protocols = struct.pack(">i", 1) + string("range") + struct.pack(">i", 0)
    body = string("g") + struct.pack(">ii", 10_000, 10_000) + string("") + string("consumer") + protocols
    async with connect(kafka) as peer:
        for correlation, client in enumerate(("one", "two", "one", "on", "one", "", "longer-than-one")):
            peer.send(request(11, 4, correlation, body, client))
            answered, answer = await peer.receive()
            length = struct.unpack(">h", answer[14:16])[0]
            member_id = answer[16 : 16 + length].decode()
            assert (answered, answer[4:6], member_id[:-37]) == (correlation, struct.pack(">h", 79), client)


async def test_a_request_may_come_in_pieces(kafka: Harness) -> None:
    whole = framed(heartbeat("g", "m", correlation=1)) + framed(heartbeat("g", "m", correlation=2))
    async with connect(kafka) as peer:
        for at in range(len(whole)):
            peer.send_bytes(whole[at : at + 1])
        assert [(await peer.receive())[0] for _ in range(2)] == [1, 2]


async def test_a_flexible_request_has_tagged_fields_behind_its_client_id(kafka: Harness) -> None:
    tags = b"\x01\x63\x02\xff\xff"  # one, which is unknown
    body = compact("g") + struct.pack(">i", 1) + compact("m") + b"\0" + b"\0"
    async with connect(kafka) as peer:
        answer = await peer.ask(request(12, 4, 1, tags + body))
    assert answer == b"\0" + struct.pack(">i", 0) + UNKNOWN_MEMBER_ID + b"\0"


async def test_a_client_id_may_be_null(kafka: Harness) -> None:
    async with connect(kafka) as peer:
        answer = await peer.ask(struct.pack(">hhih", 12, 0, 1, -1) + string("g") + struct.pack(">i", 1) + string("m"))
    assert answer == UNKNOWN_MEMBER_ID


async def test_a_member_that_disconnects_while_it_joins_stays_until_its_session_ends(kafka: Harness) -> None:
    async with connect(kafka) as peer:
        peer.send(join_group("g", 1), api_versions(0, 2))
        async with connect(kafka) as other:
            await other.ask(api_versions(0))
    assert (await kafka.get("/groups/g"))["state"] == "PreparingRebalance"
    kafka.clock.advance(3_000)
    assert (await kafka.get("/groups/g"))["state"] == "CompletingRebalance"
    kafka.clock.advance(60_000)
    assert (await kafka.get("/groups/g"))["state"] == "Empty"


@asynccontextmanager
async def logged() -> AsyncIterator[Callable[[], list[dict[str, str]]]]:
    logs.configure("warning", out := io.StringIO())
    try:
        yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    finally:
        logs.configure("critical")


NOT_A_REQUEST = {
    "an HTTP request": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request; this port speaks Kafka's protocol"),
    "a TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a TLS handshake; this port has no TLS"),
    "a negative length": (struct.pack(">i", -1), "a request of -1 bytes"),
    "a length beyond the limit": (
        struct.pack(">i", 2_001),
        "a request of 2001 bytes; socket.request.max.bytes is 2000",
    ),
    "no header": (framed(b"\0\x12\0"), "expected a request header"),
    "an unknown API": (framed(request(999, 0, 1)), "a request with API key 999, which is not offered"),
    "an unknown version": (framed(request(12, 9, 1, b"\0")), "version 9; expected 0 to 4"),
    "a body that ends early": (framed(heartbeat("g", "m")[:-1]), "memberId"),
    "a string that is longer than the frame": (framed(request(12, 0, 1, b"\x7f\xff")), "groupId"),
    "text that is not UTF-8": (framed(request(12, 0, 1, b"\0\2\xff\xfe" + bytes(4) + string("m"))), "groupId"),
    "a client id beyond the frame": (framed(struct.pack(">hhih", 12, 0, 1, 500)), "clientId: length 500"),
}


@pytest.mark.parametrize("case", NOT_A_REQUEST)
async def test_what_cannot_be_read_ends_its_own_connection_and_is_logged_once(serve: Serve, case: str) -> None:
    sent, reason = NOT_A_REQUEST[case]
    async with logged() as lines:
        node = await serve({"kafka_port": 0}, socket_request_max_bytes=2_000)
        async with connect(node) as beside:
            before = await node.get("/groups")
            for _ in range(3):
                async with connect(node) as peer:
                    peer.send_bytes(sent)
                    assert await peer.rest() == b""
            assert await beside.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
            assert await node.get("/groups") == before
    (line,) = lines()
    assert (line["event"], line["level"]) == ("kafka_request_refused", "warning")
    assert reason in line["reason"]
    assert 'rejoin_refused_requests_total{api="' in await metrics(node)


async def test_a_noisy_client_does_not_keep_others_out_of_the_log(serve: Serve) -> None:
    async def refused(node: Harness, software: str, version: int) -> None:
        async with connect(node) as peer:
            await peer.ask(api_versions(3, name=software))
            peer.send(request(12, version, 1, b"\0"))
            assert await peer.rest() == b""

    async with logged() as lines:
        node = await serve({"kafka_port": 0})
        for number in range(150):
            async with connect(node) as peer:
                peer.send_bytes(struct.pack(">i", 2**31 - 1 - number))
                assert await peer.rest() == b""
        for number in range(25):
            await refused(node, "noisy", 100 + number)
        for _ in range(2):
            await refused(node, "calm", 100)
    found = [(line["client"].partition(" ")[0], line["reason"].partition(";")[0]) for line in lines()]
    noise = [("noisy", f"version {100 + number}") for number in range(20)]
    assert found == [
        ("127.0.0.1", "a request of 2147483647 bytes"),
        *noise,
        ("noisy", "20 reasons are logged already"),
        ("calm", "version 100"),
    ]
    assert lines()[-2]["reason"].endswith("; others are counted in rejoin_refused_requests_total and not logged")
    assert 'rejoin_refused_requests_total{api="Heartbeat"} 27' in await metrics(node)


async def test_what_was_answered_before_is_still_written(kafka: Harness) -> None:
    async with connect(kafka) as peer:
        peer.send(api_versions(0, 1), request(999, 0, 2), api_versions(0, 3))
        assert (await peer.receive())[0] == 1
        assert await peer.rest() == b""


async def test_a_response_that_cannot_be_written_ends_its_own_connection(
    kafka: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SchemaError("topics.name", "cannot be written", "a string")

    async with connect(kafka) as peer, connect(kafka) as other:
        assert await other.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        with monkeypatch.context() as broken:
            broken.setattr(WireVersion, "write", fail)
            with pytest.raises(asyncio.IncompleteReadError):
                await peer.ask(heartbeat("g", "m"))
        assert await other.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID


async def test_requests_are_counted_with_those_of_http(kafka: Harness) -> None:
    async with connect(kafka) as peer:
        await peer.ask(heartbeat("g", "m"))
    assert 'requests_total{error="UNKNOWN_MEMBER_ID",request="Heartbeat"} 1' in await metrics(kafka)


def produce(acks: int, topic: str, records: bytes, correlation: int) -> bytes:
    """Produce 3 of one partition."""
    data = struct.pack(">i", 1) + string(topic) + struct.pack(">iii", 1, 0, len(records)) + records
    return request(0, 3, correlation, struct.pack(">hhi", -1, acks, 1_000) + data)


async def test_a_produce_with_acks_of_0_is_not_answered(serve: Serve) -> None:
    node = await serve({"kafka_port": 0, "topics": (InitialTopic("orders", 1),)})
    batch = sealed(
        BatchHeader(0, 0, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1), write_records([DefaultRecord(0, 0, None, b"a")])
    )
    async with connect(node) as peer:
        peer.send(produce(0, "orders", batch, 1), produce(1, "orders", batch, 2), api_versions(0, 3))
        correlation, body = await peer.receive()
        assert (correlation, struct.unpack(">hq", body[20:30])) == (2, (0, 1)), "behind the one without an answer"
        assert (await peer.receive())[0] == 3
        peer.send(produce(0, "nowhere", batch, 4), api_versions(0, 5))
        assert await peer.rest() == b"", "an error cannot be said but by closing"


async def test_records_that_are_refused_for_their_time_are_logged_once_with_what_to_do(serve: Serve) -> None:
    async with logged() as lines:
        node = await serve({"kafka_port": 0, "topics": (InitialTopic("orders", 1),)})
        too_new = node.clock.now() + 3_600_001
        header = BatchHeader(0, 0, -1, 2, 0, 0, 0, too_new, too_new, -1, -1, -1, 1)
        batch = sealed(header, write_records([DefaultRecord(0, 0, None, b"a")]))
        async with connect(node) as peer:
            for _ in range(2):
                body = await peer.ask(produce(1, "orders", batch, 1))
                assert struct.unpack_from(">h", body, 20) == (32,), "INVALID_TIMESTAMP"
    (line,) = lines()
    assert (line["event"], line["topic"], line["error"]) == ("request_refused", "orders", "INVALID_TIMESTAMP")
    assert f"clock is at {node.clock.now()}, and message.timestamp.after.max.ms is 3600000" in line["reason"]
