"""Frames at random to Kafka's listener: nothing breaks, and a group and a log beside them stay as they are.

``REJOIN_FUZZ_FRAMES`` says how many, ``REJOIN_FUZZ_SEED`` draws others.

Each frame is followed by a small request on its connection, so that its end is seen: an answer, none, or the end of
the connection. ``make fuzz-frames`` sends many more.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.embedded.consumer_protocol import decode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.alter_configs import IncrementalAlterConfigsRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest
from rejoin.protocol.messages.records.fetch import FetchRequest
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest
from rejoin.protocol.registry import APIS, BY_KEY, BY_NAME, DEFINED
from rejoin.protocol.wire.codec import codec_of, read_request_header
from rejoin.protocol.wire.record_batch import HEADER_SIZE, parse_header
from tests.coordinator.core.groups.streams.test_broker_scripts import scripts
from tests.coordinator.core.partitions.real_topic import batch
from tests.protocol.wire.messages import random_message

EXAMPLES: Final = int(os.environ.get("REJOIN_FUZZ_FRAMES", "1500"))
SEED: Final = int(os.environ.get("REJOIN_FUZZ_SEED", "1"))
PARKED_SECONDS: Final = 0.05
PATIENCE: Final = 60.0
MORE_BYTES: Final = 60 * 2**20
PROBE: Final = struct.pack(">ihhih", 10, 18, 0, 0x7FFF0001, -1)
"""ApiVersions 0, and what its answer begins with."""
PROBE_ID: Final = 0x7FFF0001
SERVED: Final = [
    (BY_KEY[key], version) for key, (first, last) in offered().items() for version in range(first, last + 1)
]


class Connection:
    """A client's end of a connection, without asyncio."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def receive(self, seconds: float = PATIENCE) -> bytes | None:
        """The next frame; empty where the connection has ended, none where there is no frame yet."""
        self.sock.settimeout(seconds)
        try:
            while len(self._data) < 4 or len(self._data) < 4 + int.from_bytes(self._data[:4], "big"):
                more = self.sock.recv(2**20)
                if not more:
                    return b""
                self._data += more
        except TimeoutError:
            return None
        except OSError:
            return b""
        end = 4 + int.from_bytes(self._data[:4], "big")
        frame, self._data = self._data[4:end], self._data[end:]
        return frame

    def ask(self, request: Request, version: int) -> Any:
        """An answer that must come."""
        api = next(api for api in APIS if api.request is type(request))
        codec = codec_of(api.key, version)
        assert codec is not None
        self.sock.sendall(codec.request_frame(7, "beside", request))
        frame = self.receive()
        assert frame, "the connection beside the others was closed"
        return codec.read_response_frame(frame)[1]

    def close(self) -> None:
        self.sock.close()


class Beside:
    """A member of a group and a log that no frame names."""

    def __init__(self, port: int) -> None:
        self._connection = Connection(port)
        self._member = ""
        self._generation = 0
        self._join()
        self._connection.ask(_produce("kept", batch("a", "b", "c")), 9)

    def _join(self) -> None:
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0"),)
        request = JoinGroupRequest(
            group_id="kept",
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=protocols,
        )
        joined = self._connection.ask(request, 3)
        self._member, self._generation = joined.member_id, joined.generation_id
        request_sync = SyncGroupRequest(
            group_id="kept", generation_id=self._generation, member_id=self._member, assignments=()
        )
        assert self._connection.ask(request_sync, 3).error_code is ErrorCode.NONE

    def check(self) -> None:
        """The member is in its generation, and the log has its three records."""
        request = HeartbeatRequest(group_id="kept", generation_id=self._generation, member_id=self._member)
        assert self._connection.ask(request, 3).error_code is ErrorCode.NONE
        partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = (ListOffsetsTopic(name="kept", partitions=(partition,)),)
        found = self._connection.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), 2)
        assert found.topics[0].partitions[0].offset == 3

    def topics(self) -> list[tuple[str, int]]:
        """All topics, each with its number of partitions."""
        found = self._connection.ask(MetadataRequest(topics=None), 9)
        return [(topic.name, len(topic.partitions)) for topic in found.topics]

    def close(self) -> None:
        self._connection.close()


class Node:
    """``rejoin serve`` as a process."""

    def __init__(self, folder: Path) -> None:
        port_file = folder / "port"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--kafka-port", "0"]
        command += ["--kafka-port-file", str(port_file), "--topic", "orders:3", "--topic", "kept:1"]
        command += ["--log-level", "error", "-c", "group.initial.rebalance.delay.ms=0"]
        self._log = folder / "log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while not port_file.exists() or not port_file.read_text():
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.01)
        self.port = int(port_file.read_text())

    def logged(self) -> str:
        return self._log.read_text()

    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    started = Node(tmp_path)
    yield started
    started.process.terminate()
    started.process.wait(PATIENCE)


# --- frames


def _produce(topic: str, records: bytes, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topics = (TopicProduceData(name=topic, partition_data=(data,)),)
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topics)


def request_frame(dice: random.Random) -> bytes:
    """A request of any API and version."""
    api, version = dice.choice(SERVED)
    if api.request is ProduceRequest and dice.random() < 0.7:
        changed: Any = {dice.choice(BATCH_FIELDS): dice.choice((0, 1, -1, 5, 127))} if dice.random() < 0.5 else {}
        records = bytearray(batch("x", "y", **changed))
        if dice.random() < 0.3:
            records[dice.randrange(len(records))] = dice.randrange(256)
        request: Request = _produce("orders", bytes(records), dice.choice((0, 1, 2, 3, -1)), dice.choice((-1, 1, 0, 2)))
        version = min(version, BY_NAME["Produce"].max_version)
    else:
        request = random_message(api.request, version, dice)
        if "max_wait_ms" in type(request).model_fields:
            # What waits longer than its connection is there is waited for all the same.
            request = request.model_copy(update={"max_wait_ms": dice.choice((0, 1, 20, -1))})
    codec = codec_of(api.key, version)
    assert codec is not None
    return codec.request_frame(dice.randrange(2**31 - 1), dice.choice(("", "client", "größe")), request)


BATCH_FIELDS: Final = ("producer_id", "producer_epoch", "base_sequence", "attributes", "last_offset_delta", "magic")


def mutated(frame: bytes, dice: random.Random) -> bytes:
    """The same with some other bytes behind its length."""
    body = bytearray(frame[4:])
    for _ in range(dice.choice((1, 1, 2, 5, 20))):
        body[dice.randrange(len(body))] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
    return frame[:4] + bytes(body)


def cut(frame: bytes, dice: random.Random) -> bytes:
    """A request whose end is missing, in a frame that says so, or with more behind it."""
    body = frame[4:]
    body = body[: dice.randrange(len(body))] if dice.random() < 0.7 else body + dice.randbytes(dice.randint(1, 9))
    return struct.pack(">i", len(body)) + body


def noise(dice: random.Random) -> bytes:
    """Random bytes, in a frame of their length or in none."""
    data = dice.randbytes(dice.choice((0, 1, 7, 8, 14, 40, 300)))
    return data if dice.random() < 0.3 else struct.pack(">i", len(data)) + data


@cache
def streams_frames() -> list[bytes]:
    """Requests that were recorded on a broker with streams groups."""
    bodies = [bytes.fromhex(step["request_hex"]) for each in scripts() for step in each["steps"] if "body" in step]
    return [struct.pack(">i", len(body)) + body for body in bodies]


def some_frame(dice: random.Random) -> bytes:
    kind = dice.random()
    if kind < 0.05:
        frame = dice.choice(streams_frames())
        return frame if dice.random() < 0.3 else mutated(frame, dice)
    if kind < 0.4:
        return request_frame(dice)
    if kind < 0.7:
        return mutated(request_frame(dice), dice)
    return cut(request_frame(dice), dice) if kind < 0.9 else noise(dice)


# --- what comes back


def check_answer(sent: bytes, frame: bytes) -> None:
    """An answer to this request, in its version, that does not say that something failed inside."""
    key, version, correlation_id = struct.unpack_from(">hhi", sent, 4)
    codec = codec_of(key, version)
    assert struct.unpack_from(">i", frame)[0] == correlation_id
    if codec is None:
        assert DEFINED[key].name == "ApiVersions", "the one refusal that is an answer"
        return
    response = codec.read_response_frame(frame)[1]
    if ErrorCode.UNKNOWN_SERVER_ERROR in set(errors_in(response)):
        request = codec.read_request(sent[4:], read_request_header(sent[4:]).body_at)
        assert is_unexpected_to_kafka(request), (request, response)


def is_unexpected_to_kafka(request: Any) -> bool:
    """Whether Kafka itself may answer a request with UNKNOWN_SERVER_ERROR."""
    if isinstance(request, ProduceRequest):
        # A codec that Kafka does not know, or bytes that the codec cannot unpack.
        found = [data.records for topic in request.topic_data for data in topic.partition_data]
        return any(records and len(records) >= HEADER_SIZE and parse_header(records).codec for records in found)
    if isinstance(request, WriteTxnMarkersRequest):
        return any(marker.producer_id < 0 or marker.producer_epoch < 0 for marker in request.markers)
    if isinstance(request, IncrementalAlterConfigsRequest):
        return any(config.config_operation not in range(4) for each in request.resources for config in each.configs)
    if isinstance(request, OffsetFetchRequest):
        # An epoch without a member id, for a group of the consumer protocol.
        return any(group.member_id is None and group.member_epoch >= 0 for group in request.groups)
    if isinstance(request, JoinGroupRequest):
        # A subscription that cannot be read, for a group of the consumer protocol.
        return bool(request.protocols) and not _is_subscription(request.protocols[0].metadata)
    if isinstance(request, StreamsGroupHeartbeatRequest):
        # Two of one id in a topology, and endpoints in a group whose topics are not all there.
        return True
    if isinstance(request, FetchRequest):
        # A negative size, of a partition that has something to read.
        partitions = [partition for topic in request.topics for partition in topic.partitions]
        sizes = [request.max_bytes, *(partition.partition_max_bytes for partition in partitions)]
        return min(sizes) < 0 or request.isolation_level not in (0, 1)
    return getattr(request, "isolation_level", 0) not in (0, 1)


def _is_subscription(metadata: bytes) -> bool:
    try:
        decode_subscription(metadata)
    except ValueError:
        return False
    return True


def errors_in(value: Any) -> Iterator[Any]:
    """All error codes of a response."""
    if isinstance(value, ErrorCode):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from errors_in(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from errors_in(each)


def exchange(connection: Connection, sent: bytes) -> str:
    """Send a frame and see what becomes of it: answered, not answered, parked, or the end of the connection.

    Where a busy machine holds up what comes behind an answer, that is slow, and says nothing about the connection.
    """
    try:
        connection.sock.sendall(sent + PROBE)
    except OSError:
        return "closed"
    frame = connection.receive(PARKED_SECONDS)
    if frame is None:
        return "parked"
    if not frame:
        return "closed"
    if struct.unpack_from(">i", frame)[0] == PROBE_ID:
        return "unanswered"
    check_answer(sent, frame)
    following = connection.receive(PARKED_SECONDS)
    if following is None:
        return "slow"
    return "answered" if following and struct.unpack_from(">i", following)[0] == PROBE_ID else "closed"


def test_frames_at_random_break_nothing(node: Node) -> None:
    dice = random.Random(SEED)
    beside = Beside(node.port)
    seen: Counter[str] = Counter()
    memory = 0
    connection = Connection(node.port)
    for number in range(EXAMPLES):
        if number == EXAMPLES // 3:
            memory = node.memory()  # what is made at the first request of each version is there
        sent = some_frame(dice)
        topics = beside.topics() if number % 10 == 0 else None
        end = exchange(connection, sent)
        if end == "closed" and topics is not None:
            assert beside.topics() == topics, "what is refused changes nothing"
        seen[end] += 1
        if end in ("closed", "parked", "slow"):
            connection.close()
            connection = Connection(node.port)
        if number % 20 == 0:
            beside.check()
    connection.close()
    beside.check()
    beside.close()
    grown = node.memory() - memory
    print(f"{dict(seen)}; {grown / 2**20:.1f} MiB more")
    assert node.logged() == "", "nothing failed inside"
    assert seen["answered"] + seen["slow"] > EXAMPLES // 5
    assert seen["closed"] > EXAMPLES // 10
    assert grown < MORE_BYTES
