"""Servers for the benchmark of the proxy: a broker whose answers are ready, a proxy that copies bytes, and ours."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, cast

from benchmarks.kafka.batches import framed
from rejoin.coordinator.service import logs
from rejoin.posix import calm_collector
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.records.fetch import (
    FetchablePartitionResponse,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rejoin.protocol.messages.records.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from rejoin.protocol.registry import BY_NAME, FETCH, HEARTBEAT, PRODUCE, Api
from rejoin.protocol.wire.codec import codec_of
from rejoin.proxy.control.running import controlled_proxy
from rejoin.proxy.line_file import LineFile
from rejoin.proxy.service import Proxy, ProxyOptions
from rejoin.proxy.watch import RequestWatch

RECORD_BYTES: Final = 2**20
"""Bytes of the records of one Produce and of one Fetch."""
_VERSIONS: Final = {HEARTBEAT.key: 4, FETCH.key: 16, PRODUCE.key: 10}
"""The first versions of Fetch and Produce that may name new leaders."""
_HEAD_BYTES: Final = 6
"""A frame's length, and the key of its API."""


def _requests() -> dict[Api, tuple[Request, Response]]:
    records = bytes(RECORD_BYTES)
    fetched = FetchablePartitionResponse(partition_index=0, high_watermark=1, last_stable_offset=1, records=records)
    sent = TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=records),))
    stored = TopicProduceResponse(name="orders", partition_responses=(PartitionProduceResponse(index=0),))
    orders = "AAAAAAAAAAAAAAAAAAAAAQ"
    asked = FetchTopic(
        topic_id=orders, partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=RECORD_BYTES),)
    )
    return {
        HEARTBEAT: (
            HeartbeatRequest(group_id="orders-app", generation_id=1, member_id="c-1-00000000-0000-0000-0000-0"),
            HeartbeatResponse(),
        ),
        FETCH: (
            FetchRequest(max_wait_ms=500, min_bytes=1, topics=(asked,)),
            FetchResponse(responses=(FetchableTopicResponse(topic_id=orders, partitions=(fetched,)),)),
        ),
        PRODUCE: (ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(sent,)), ProduceResponse(responses=(stored,))),
    }


def request_frames() -> dict[str, bytes]:
    """Requests as they travel, by the name of their API."""
    return {api.name: framed(api, _VERSIONS[api.key], request) for api, (request, _) in _requests().items()}


def answer_frames() -> dict[str, bytes]:
    """The answers as they travel, by the name of their API."""
    found = {}
    for api, (_, response) in _requests().items():
        codec = codec_of(api.key, _VERSIONS[api.key])
        assert codec is not None, "the version is known"
        found[api.name] = codec.response_frame(1, response)
    return found


class _FixedBroker(asyncio.Protocol):
    """Gives the answer that is ready as soon as a request is whole."""

    def __init__(self, answers: dict[int, bytes]) -> None:
        self._answers = answers
        self._head = b""
        self._left = self._key = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        at, end = 0, len(data)
        while at < end:
            if not self._left:
                data, at, self._head = self._head + data[at:], 0, b""
                end = len(data)
                if end < _HEAD_BYTES:
                    self._head = data
                    return
                self._left = 4 + int.from_bytes(data[:4], "big")
                self._key = int.from_bytes(data[4:_HEAD_BYTES], "big")
            taken = min(self._left, end - at)
            self._left -= taken
            at += taken
            if not self._left:
                self._transport.write(self._answers[self._key])


async def start_broker(listener: socket.socket) -> asyncio.Server:
    """A broker without which no proxy can be measured."""
    answers = {BY_NAME[name].key: answer for name, answer in answer_frames().items()}
    return await asyncio.get_running_loop().create_server(lambda: _FixedBroker(answers), sock=listener)


class _CopySide(asyncio.Protocol):
    """One end of a connection: what comes goes to the other end."""

    def __init__(self, peer: _CopySide | None = None) -> None:
        self.peer = peer
        self.transport: Any = None
        self._waiting: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        peer = self.peer
        if peer is not None:
            peer.transport.write(data)
        else:
            self._waiting.append(data)

    def meet(self, peer: _CopySide) -> None:
        """Send the other end what has come already."""
        self.peer = peer
        peer.transport.writelines(self._waiting)
        self._waiting.clear()

    def pause_writing(self) -> None:
        if self.peer is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.peer is not None:
            self.peer.peer = None  # what it still reads goes nowhere
            self.peer.transport.close()


class _CopyClient(_CopySide):
    """The end of a client; the one to the broker is opened for it."""

    def __init__(self, upstream: int) -> None:
        super().__init__()
        self._upstream = upstream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._opening = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        _, broker = await loop.create_connection(lambda: _CopySide(self), "127.0.0.1", self._upstream)
        self.meet(broker)


async def start_copying(listener: socket.socket, upstream: int) -> asyncio.Server:
    """The proxy that knows no Kafka: the least that can stand between a client and a broker."""
    calm_collector()
    return await asyncio.get_running_loop().create_server(lambda: _CopyClient(upstream), sock=listener)


async def start_proxy(
    listener: socket.socket, upstream: int, journal: Path | None = None, *, is_controlled: bool = False
) -> Any:
    """``rejoin proxy``, with what its options add."""
    logs.configure("warning")
    port = cast(int, listener.getsockname()[1])
    listener.close()
    options = ProxyOptions(bootstrap=(("127.0.0.1", upstream),), port=port)
    watch = None if journal is None else RequestWatch(LineFile(journal / "kafka-request.log"))
    stack = AsyncExitStack()
    if is_controlled:
        await controlled_proxy(stack, options, watch, "127.0.0.1", 0, None)
    else:
        proxy = Proxy(options, watch)
        await proxy.start()
        stack.push_async_callback(proxy.stop)
    calm_collector()
    return stack
