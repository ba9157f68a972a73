"""What the core costs for the requests that carry the most: commits, fetches, a group of a thousand, many names.

CPU time from the JSON of the request to the JSON of the response, records written as a log would write them. There is
no HTTP, no disk and no waiting in it, so that runs on different days can be compared.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.node_step import Replies, started
from rejoin.coordinator.core.effects import Append, Reply
from rejoin.coordinator.core.inputs import Context, Elapsed, Received, Stored
from rejoin.coordinator.storage.codec import encode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.transcript.driver import NodeDriver

MEMBERS = 1_000
PARTITIONS = 1_000
COMMITS = 2_000
NAMES = 2_000
ROUNDS = 7
TOPIC: Final = "orders"


class Service:
    """A node as a service drives it, without the service."""

    def __init__(self) -> None:
        self.replies = Replies()
        self.driver: NodeDriver = started(self.replies)
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=(), configs=())
        self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1), 5, 0)

    def ask(self, request: Request, version: int, token: int) -> None:
        self.receive(type(request), request.to_json(version), version, token)

    def assert_succeeded(self, token: int) -> None:
        """Nothing is measured of a request that is refused."""
        assert '"errorCode":0' in (body := self.replies.by_token[token].model_dump_json(by_alias=True)), body

    def receive(self, request_type: type[Request], body: bytes, version: int, token: int) -> None:
        """Read a request, handle it, write what is to be stored, and answer."""
        request = request_type.parse(body, version)
        self.apply(Received(token, request, Context(version, "client")), version)

    def apply(self, what: Any, version: int) -> None:
        """One step, and those that follow from it."""
        node = self.driver.node
        for effect in node.step(what, self.driver.now):
            if isinstance(effect, Reply):
                self.replies.by_token[effect.token] = effect.response
                effect.response.to_json(version)
            elif isinstance(effect, Append):
                for record in effect.records:
                    encode(record)
                self.apply(Stored(effect.partition, effect.epoch, effect.append_id), version)


def commit_of(partitions: int, offset: int) -> bytes:
    marks = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for index in range(partitions)
    )
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=marks),)
    return OffsetCommitRequest(group_id="g", member_id="", topics=topics).to_json(8)


def small_commits() -> float:
    """Microseconds a commit of one partition."""
    service = Service()
    bodies = [commit_of(1, number) for number in range(COMMITS)]

    def run() -> None:
        for number, body in enumerate(bodies):
            service.receive(OffsetCommitRequest, body, 8, number)
        service.assert_succeeded(0)

    return cpu_us(run) / COMMITS


def large_commit() -> float:
    """Microseconds a commit of many partitions."""
    service = Service()
    body = commit_of(PARTITIONS, 5)
    return cpu_us(lambda: service.receive(OffsetCommitRequest, body, 8, 1))


def large_fetch() -> float:
    """Microseconds a fetch of many partitions."""
    service = Service()
    service.receive(OffsetCommitRequest, commit_of(PARTITIONS, 5), 8, 1)
    service.assert_succeeded(1)
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=tuple(range(PARTITIONS))),)
    fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),))
    body = fetch.to_json(8)
    return cpu_us(lambda: service.receive(OffsetFetchRequest, body, 8, 2))


def large_group() -> float:
    """Microseconds until all members of a new group have joined, each with its own request."""
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff"),)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    body = request.to_json(3)

    def run() -> None:
        service = services.pop()
        for member in range(MEMBERS):
            service.receive(JoinGroupRequest, body, 3, member)
        service.apply(Elapsed(), 3)
        assert len(service.replies.by_token) == MEMBERS, "the join phase has ended"

    services = [Service() for _ in range(ROUNDS)]
    return cpu_us(run)


def find_coordinators() -> float:
    """Microseconds a FindCoordinator of many keys."""
    service = Service()
    body = FindCoordinatorRequest(key_type=0, coordinator_keys=group_names()).to_json(4)
    service.receive(FindCoordinatorRequest, body, 4, 1)
    assert sum(each.error_code == 0 for each in service.replies.by_token[1].coordinators) == NAMES
    return cpu_us(lambda: service.receive(FindCoordinatorRequest, body, 4, 1))


def describe_groups() -> float:
    """Microseconds a DescribeGroups of many names."""
    service = Service()
    body = DescribeGroupsRequest(groups=group_names()).to_json(5)
    service.receive(DescribeGroupsRequest, body, 5, 1)
    assert sum(each.error_code == 0 for each in service.replies.by_token[1].groups) == NAMES
    return cpu_us(lambda: service.receive(DescribeGroupsRequest, body, 5, 1))


def create_topics() -> float:
    """Microseconds a CreateTopics of many topics with one partition each."""
    topics = tuple(
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        for name in group_names()
    )
    body = CreateTopicsRequest(topics=topics, timeout_ms=1).to_json(5)
    services = [Service() for _ in range(ROUNDS)]
    return cpu_us(lambda: services.pop().receive(CreateTopicsRequest, body, 5, 1))


def group_names() -> tuple[str, ...]:
    return tuple(f"name-{number}" for number in range(NAMES))


def cpu_us(run: Callable[[], None]) -> float:
    """The median CPU time of some rounds, in microseconds."""
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return statistics.median(found) * 1e6


MEASURED: Final[dict[str, tuple[Callable[[], float], Callable[[], int]]]] = {
    "OffsetCommit of one partition": (small_commits, lambda: 1),
    "OffsetCommit of many partitions": (large_commit, lambda: PARTITIONS),
    "OffsetFetch of many partitions": (large_fetch, lambda: PARTITIONS),
    "JoinGroup of many members": (large_group, lambda: MEMBERS),
    "FindCoordinator of many keys": (find_coordinators, lambda: NAMES),
    "DescribeGroups of many names": (describe_groups, lambda: NAMES),
    "CreateTopics of many topics": (create_topics, lambda: NAMES),
}
"""What is measured, and over how many entries."""


def main() -> None:
    """Print microseconds of CPU, in all and for each entry."""
    table = Table(title="Requests through the core, JSON to JSON")
    for column in ("request", "entries", "µs", "µs an entry"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for name, (measure, entries) in MEASURED.items():
        spent, count = measure(), entries()
        table.add_row(name, f"{count:,}", f"{spent:,.0f}", f"{spent / count:.1f}")
    printer().print(table)


if __name__ == "__main__":
    main()
