"""Heartbeat and Produce through ``Node.step``: without an authorizer, and with 1,000 ACLs.

``python -m benchmarks kafka.authorization``. The ratio must stay below :data:`AT_MOST`; rounds take turns.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.security.acls import AclCreation, CreateAclsRequest
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from tests.coordinator.core.driver import PARTITION, Driver

ACLS = 1_000
ROUNDS = 15
REPEATS = 1_000
AT_MOST: float = 1.2
"""Ratio of the time with ACLs to that without."""
_TOPIC, _GROUP, _READ, _WRITE = 2, 3, 3, 4
_CLIENT: Final = Context(9, "client", principal="User:alice")
_OPERATOR: Final = Context(3, "operator", by_operator=True)


class _Measured:
    """A node with one topic; with ACLs, those of a client among many others."""

    def __init__(self, acls: int) -> None:
        counter = itertools.count(1)
        settings = Settings(authorizer_class_name=STANDARD_AUTHORIZER if acls else "")
        self.driver = Driver(Node(settings, lambda: f"{next(counter):032x}"))
        self.driver.see_cluster()
        self.driver.elect(PARTITION)
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
        self.ask(BY_NAME["CreateTopics"].request.model_validate({"topics": (topic,), "timeout_ms": 1}), _OPERATOR)
        if acls:
            entries = [_entry(_GROUP, f"group-{number}", _READ) for number in range(acls - 2)]
            entries += [_entry(_GROUP, "g", _READ), _entry(_TOPIC, "t", _WRITE)]
            self.ask(CreateAclsRequest(creations=tuple(entries)), _OPERATOR)

    def ask(self, request: Request, context: Context) -> Any:
        self.driver.request("asked", request, context)
        return self.driver.replies.pop("asked")

    def time(self, request: Request) -> float:
        """Seconds of one request."""
        received = Received("asked", request, _CLIENT)
        driver = self.driver
        began = time.perf_counter()
        for _ in range(REPEATS):
            driver.step(received)
            driver.replies.clear()
        return (time.perf_counter() - began) / REPEATS


def _entry(kind: int, name: str, operation: int) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=3,
    )


def _produce(driver: Driver) -> Request:
    builder = BatchBuilder(driver.now)
    builder.append(encode_record(0, 0, b"key", b"x" * 100), driver.now)
    partition = {"index": 0, "records": bytes(builder.seal(CompressionType.NONE))}
    topics = ({"name": "t", "partition_data": (partition,)},)
    request: Request = BY_NAME["Produce"].request.model_validate({"acks": 1, "timeout_ms": 1, "topic_data": topics})
    return request


def main() -> int:
    """Print microseconds a request, and fail where the ratio is too large."""
    nodes = {"none": _Measured(0), "1,000": _Measured(ACLS)}
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    requests = {"Heartbeat": heartbeat, "Produce": _produce(nodes["none"].driver)}
    table = Table(title="A request through Node.step")
    for column in ("request", "without (µs)", f"{ACLS:,} ACLs (µs)", "ratio"):
        table.add_column(column, justify="right")
    failed = False
    for name, request in requests.items():
        best = dict.fromkeys(nodes, float("inf"))
        for _ in range(ROUNDS):
            for which, node in nodes.items():
                best[which] = min(best[which], node.time(request))
        without, with_acls = best.values()
        failed |= with_acls > AT_MOST * without
        table.add_row(name, f"{without * 1e6:.2f}", f"{with_acls * 1e6:.2f}", f"{with_acls / without:.2f}")
    printer().print(table)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
