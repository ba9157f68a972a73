"""The life of a share consumer over a socket, on Rejoin, kfake and a real Kafka.

A member of a share group fetches up to 500 records at a time; each ShareFetch accepts what the one before gave. Batches
of the log have 50 records of 100 bytes. Every server is a process of its own and works alone while it is measured, once
it has served as many fetches as warm a JVM a little. Those whose runtime is not there are left out, and named.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import socket
import struct
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from rich.table import Table

from benchmarks import printer
from benchmarks.kafka.throughput import kfake, rejoin
from benchmarks.server_load import ServerProcess
from rejoin.protocol.message import Request
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record

RECORDS: Final = 100_000
WARM_UP: Final = 20_000
OTHERS: Final = ("kfake", "Kafka 4.4")
BATCH: Final = 50
FETCH: Final = 500
PATIENCE_SECONDS: Final = 60.0
GROUP: Final = "shared"
_ACCEPT: Final = 1
_VERSIONS: Final = {
    "CreateTopics": 7,
    "FindCoordinator": 4,
    "IncrementalAlterConfigs": 1,
    "Produce": 9,
    "ShareFetch": 1,
    "ShareGroupHeartbeat": 1,
}
_ONE_NODE: Final = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Settings without which Kafka's share groups wait for three brokers."""


class Cost(NamedTuple):
    """The time of a server for all records, in seconds: of its processor, and of the clock."""

    cpu: float
    seconds: float


class Wire:
    """A connection with one request at a time."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._sent = 0

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, name: str, body: dict[str, Any]) -> Any:
        """The response to a request that is given as JSON."""
        return self.send(name, BY_NAME[name].request.from_json(json.dumps(body)))

    def send(self, name: str, request: Request) -> Any:
        codec = codec_of(BY_NAME[name].key, _VERSIONS[name])
        assert codec is not None, "a version that is known"
        self._sent += 1
        self._socket.sendall(codec.request_frame(self._sent, "bench", request))
        (size,) = struct.unpack(">i", self._stream.read(4))
        return codec.read_response_frame(self._stream.read(size))[1]


def _produce(wire: Wire, topic: str, records: int) -> None:
    builder = BatchBuilder(0)
    for offset in range(BATCH):
        builder.append(encode_record(0, offset, b"key", b"x" * 100), 0)
    batch = bytes(builder.seal(CompressionType.NONE))
    api = BY_NAME["Produce"].request
    for _ in range(records // BATCH):
        # A request has one batch for a partition.
        partition = {"index": 0, "records": batch}
        topics = ({"name": topic, "partition_data": (partition,)},)
        answer = wire.send("Produce", api.model_validate({"acks": -1, "timeout_ms": 30_000, "topic_data": topics}))
        error = answer.responses[0].partition_responses[0].error_code
        assert not error, f"Produce: {error}"


def _create(wire: Wire, topic: str) -> str:
    wanted = {"name": topic, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    (created,) = wire.ask("CreateTopics", {"topics": [wanted], "timeoutMs": 30_000}).topics
    assert not created.error_code, f"CreateTopics: {created.error_code}"
    return str(created.topic_id)


def _join(wire: Wire, member: str, topic: str) -> None:
    """Join the share group, and wait until it has its partition."""
    reset = {"name": "share.auto.offset.reset", "configOperation": 0, "value": "earliest"}
    resource = {"resourceType": 32, "resourceName": GROUP, "configs": [reset]}
    wire.ask("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False})
    until, epoch = time.monotonic() + PATIENCE_SECONDS, 0
    while True:
        wire.ask("FindCoordinator", {"keyType": 0, "coordinatorKeys": [GROUP]})
        joins = {"groupId": GROUP, "memberId": member, "memberEpoch": epoch, "subscribedTopicNames": [topic]}
        answer = wire.ask("ShareGroupHeartbeat", joins)
        if not answer.error_code:
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
        assert time.monotonic() < until, f"the member gets its partition: {answer}"
        time.sleep(0.2)


class _Member:
    """A member's session with the leader of its one partition."""

    def __init__(self, wire: Wire, member: str, topic_id: str) -> None:
        self._wire = wire
        self._member = member
        self._topic_id = topic_id
        self._epoch = 0
        self._rows: Any = ()

    def consume(self, records: int) -> None:
        """Fetch until so many records are accepted; what the last fetch gave is accepted with the next one."""
        accepted, until = 0, time.monotonic() + PATIENCE_SECONDS
        while accepted < records:
            assert time.monotonic() < until, f"{accepted} of {records} records were accepted"
            accepted += sum(row.last_offset - row.first_offset + 1 for row in self._rows)
            self._fetch()

    def _fetch(self) -> None:
        acknowledges = [
            {"firstOffset": row.first_offset, "lastOffset": row.last_offset, "acknowledgeTypes": [_ACCEPT]}
            for row in self._rows
        ]
        partitions = [{"partitionIndex": 0, "acknowledgementBatches": acknowledges}]
        named = [{"topicId": self._topic_id, "partitions": partitions}]
        body = {
            "groupId": GROUP,
            "memberId": self._member,
            "shareSessionEpoch": self._epoch,
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 2**20,
            "maxRecords": FETCH,
            "batchSize": FETCH,
            "topics": named if acknowledges or not self._epoch else [],
            "forgottenTopicsData": [],
        }
        answer = self._wire.ask("ShareFetch", body)
        assert not answer.error_code, f"ShareFetch: {answer.error_code} {answer.error_message}"
        parts = [part for topic in answer.responses for part in topic.partitions]
        assert not any(part.acknowledge_error_code for part in parts), "acknowledgements are stored"
        self._epoch += 1
        self._rows = [row for part in parts for row in part.acquired_records]


@contextmanager
def _connected(address: str) -> Iterator[Wire]:
    wire = Wire(address)
    try:
        yield wire
    finally:
        wire.close()


def measure_one(address: str, pid: int) -> Cost:
    """A share consumer's life on one server."""
    member = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with _connected(address) as wire:
        topic_id = _create(wire, "bench")
        # No fetch finds nothing: kfake's records are null then, which the protocol does not allow.
        _produce(wire, "bench", WARM_UP + RECORDS + 4 * FETCH)
        _join(wire, member, "bench")
        server = ServerProcess(pid, 0, has_passing_threads=True)  # as a JVM has
        consumer = _Member(wire, member, topic_id)
        consumer.consume(WARM_UP)
        cpu, began = server.cpu_seconds(), time.perf_counter()
        consumer.consume(RECORDS)
        return Cost(server.cpu_seconds() - cpu, time.perf_counter() - began)


def measure() -> dict[str, Cost]:
    """Each server that can run here."""
    found: dict[str, Cost] = {}
    with rejoin() as (address, pid):
        found["Rejoin"] = measure_one(address, pid)
    if "kfake" in OTHERS and shutil.which("go"):
        with kfake() as (address, pid):
            found["kfake"] = measure_one(address, pid)
    if "Kafka 4.4" in OTHERS and shutil.which("mvn") and shutil.which("java"):
        found["Kafka 4.4"] = asyncio.run(_measure_kafka())
    return found


async def _measure_kafka() -> Cost:
    # Imported here: what starts a broker is not needed for the others.
    from conformance.kafka.broker import Cluster, class_path  # noqa: PLC0415

    async with Cluster(await class_path(), 1, _ONE_NODE) as cluster:
        host, port = cluster.addresses[1]
        return await asyncio.to_thread(measure_one, f"{host}:{port}", cluster.pid(1))


def main() -> int:
    """Measure and print."""
    found = measure()
    own = found["Rejoin"]
    table = Table(title=f"{RECORDS:,} records by ShareFetch, {FETCH} at a time, accepted with the next one")
    for column in ("server", "µs CPU each", "records/s", "Rejoin's CPU is", "Rejoin's time is"):
        table.add_column(column, justify="left" if column == "server" else "right")
    for name, cost in found.items():
        table.add_row(
            name,
            f"{cost.cpu / RECORDS * 1e6:.2f}",
            f"{RECORDS / cost.seconds:,.0f}",
            f"{own.cpu / max(cost.cpu, 0.01):.2f} ×",
            f"{own.seconds / cost.seconds:.2f} ×",
        )
    console = printer()
    console.print(table)
    missing = [name for name in OTHERS if name not in found]
    if missing:
        console.print(f"not here: {', '.join(missing)} (they want Go, or Java and Maven)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
