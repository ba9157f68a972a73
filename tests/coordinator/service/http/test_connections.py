"""What a connection may send before there is a request: heads in time, and HTTP."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import ssl
import struct

import pytest

from rejoin.coordinator.service import logs
from rejoin.coordinator.service.http.connections import binary_client
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import join


def first_request(key: int, version: int, client_id: str, rest: bytes = b"") -> bytes:
    """The first request of a client, as it is on the wire."""
    body = struct.pack(">hhih", key, version, 1, len(client_id)) + client_id.encode() + rest
    return struct.pack(">i", len(body)) + body


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


API_VERSIONS = first_request(18, 4, "rdkafka", b"\0" + compact("librdkafka") + compact("2.16.0") + b"\0")


@pytest.mark.parametrize(
    ("data", "client"),
    [
        (API_VERSIONS, " (librdkafka 2.16.0)"),
        (first_request(18, 0, "sarama"), " (sarama)"),
        (first_request(3, 1, ""), ""),
        (API_VERSIONS[:20], ""),
        (b"\0", ""),
        (first_request(18, 3, "x", b"\0" + compact("\x1b[2J") + compact("1")), ""),
    ],
)
def test_the_client_is_known_by_its_first_request(data: bytes, client: str) -> None:
    assert binary_client(data) == client


async def test_a_kafka_client_is_refused_and_named_once(serve: Serve) -> None:
    logs.configure("warning", out := io.StringIO())
    try:
        node = await serve()
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            writer.write(API_VERSIONS)
            assert await reader.read() == b"", "a Kafka client could not read an answer"
            writer.close()
    finally:
        logs.configure("critical")
    assert [json.loads(line)["problem"] for line in out.getvalue().splitlines()] == [
        "a Kafka client (librdkafka 2.16.0) spoke the binary protocol; this port is HTTP"
    ]
    assert (await node.get("/healthz"))["status"] == "ok"


async def test_a_tls_handshake_is_refused_and_logged_once(serve: Serve) -> None:
    logs.configure("warning", out := io.StringIO())

    def shake_hands(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as plain, pytest.raises(OSError, match=r"(?i)eof|reset"):
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")

    try:
        node = await serve()
        for _ in range(2):
            await asyncio.to_thread(shake_hands, node.port)
    finally:
        logs.configure("critical")
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert (line["event"], line["client"]) == ("binary_protocol", "127.0.0.1")
    assert line["problem"] == "a TLS handshake; this port is HTTP without TLS, http:// and not https://"
    assert (await node.get("/healthz"))["status"] == "ok"


async def test_a_head_that_does_not_arrive_ends_its_connection(serve: Serve) -> None:
    node = await serve({"head_seconds": 0.2})
    parked = await node.parked("JoinGroup", join("g", await node.member_id("g")))
    async with asyncio.timeout(30):
        for sent in (b"", b"POST /v1/heart", b"GET / HTTP/1.1\r\nHost: x\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            writer.write(sent)
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"}")
        await asyncio.sleep(0.5)
        writer.write(b"GET ")
        assert b"HTTP/1.1 408 " in await reader.read(), "a second head has to arrive as well"
        writer.close()
    assert not parked.done(), "a request that waits for its answer is in time"
    node.clock.advance(3_000)
    assert (await parked)["errorCode"] == 0


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POSTED = b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = POSTED.replace(b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")


def head_seconds(pieces: list[bytes]) -> float:
    """How long a head may take: long enough for one in pieces, however busy the machine is between two of them."""
    return 0.2 if len(pieces) == 1 else 1.5


@pytest.mark.parametrize(
    "pieces",
    [
        [HEALTH + b"GET "],
        [HEALTH + HEALTH + b"G"],
        [HEALTH, b"G"],
        [POSTED + b"POST /v1/heartbeat HTTP/1.1\r\n"],
        [POSTED[:-1], b"}POST"],
        [POSTED[:40], POSTED[40:] + b"POST"],
        [POSTED[:-2], b"{}", b"POST"],
        [CHUNKED, b"POST"],
    ],
)
async def test_half_a_head_behind_a_request_ends_its_connection(serve: Serve, pieces: list[bytes]) -> None:
    node = await serve({"head_seconds": head_seconds(pieces)})
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.01)
        answers = await reader.read()
        writer.close()
    first, *_, last = answers.split(b"HTTP/1.1 ")[1:]
    assert first[:3] in (b"200", b"400"), "the whole request is answered"
    assert last[:3] == b"408"


@pytest.mark.parametrize(
    "pieces",
    [
        [HEALTH],
        [HEALTH * 3],
        [HEALTH * 100],
        [POSTED],
        [POSTED[:-1], b"}"],
        [POSTED[:-2] + b"{", b"}" + HEALTH],
        [POSTED[:40], POSTED[40:]],
        [POSTED[:-4], POSTED[-4:-1], b"}"],
        [CHUNKED + HEALTH],
        [CHUNKED[:-9], CHUNKED[-9:]],
    ],
)
async def test_whole_requests_leave_their_connection_open(serve: Serve, pieces: list[bytes]) -> None:
    node = await serve({"head_seconds": head_seconds(pieces)})
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.01)
        await reader.readuntil(b"}")
        await asyncio.sleep(1.2 * head_seconds(pieces))
        assert not reader.at_eof()
        writer.write(HEALTH.replace(b"Host: x", b"Host: x\r\nConnection: close"))
        assert b"HTTP/1.1 200 OK" in await reader.read()
        writer.close()


async def test_a_head_behind_a_parked_request_waits_with_it(serve: Serve) -> None:
    node = await serve({"head_seconds": 0.2})
    body = json.dumps(join("g", await node.member_id("g"))).encode()
    head = b"POST /v1/join-group HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(head % len(body) + body + b"POST")
        await asyncio.sleep(0.5)
        assert not reader.at_eof()
        node.clock.advance(3_000)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in await reader.read()
        writer.close()
