"""The loop that ARCHITECTURE.md shows drives a node, as it stands there."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import (
    AlterPartition,
    Append,
    AppendTopics,
    DeleteLog,
    FollowLog,
    HighWatermarkMoved,
    ReadLog,
    Reply,
    ResolveRegexes,
    SendRequest,
)
from rejoin.coordinator.core.groups.consumer.regex_resolution import resolve_regexes
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elapsed,
    Elected,
    LogRead,
    NodeAnswered,
    Received,
    Stored,
)
from rejoin.coordinator.core.node import Node
from rejoin.journal.events.coordinator import RebalanceCompleted
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_subscription
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.types import TopicPartition
from tests.docs.texts import TEXTS

[LOOP] = re.findall(r"```python\n(def drive\(.*?)```", TEXTS["ARCHITECTURE.md"], re.DOTALL)
OFFSETS = TopicPartition("__consumer_offsets", 0)
OF_CLUSTERS = (AlterPartition, FollowLog, HighWatermarkMoved)
EFFECTS = (Reply, Append, ReadLog, DeleteLog, ResolveRegexes, SendRequest, AppendTopics, *OF_CLUSTERS)


class Log:
    """Keeps everything, and says so at once."""

    def append(self, effect: Append, inbox: deque[Any]) -> None:
        inbox.append(Stored(effect.partition, effect.epoch, effect.append_id))

    def read(self, effect: ReadLog, inbox: deque[Any]) -> None:
        inbox.append(LogRead(effect.partition, effect.epoch, (), end=True))


class Cluster:
    """No other node is to be reached."""

    def carry_out(self, effect: Any, inbox: deque[Any]) -> None:
        assert isinstance(effect, SendRequest), "this node has neither a topics log nor a controller"
        inbox.append(NodeAnswered(effect.send_id, None))


class Clock:
    """Stands still until its next wakeup."""

    def __init__(self) -> None:
        self.time = 1_000
        self.wakeup: int | None = None

    def now(self) -> int:
        return self.time

    def wake_at(self, at: int | None) -> None:
        self.wakeup = at


def test_the_loop_drives_a_group_until_it_is_stable() -> None:
    scope: dict[str, Any] = {each.__name__: each for each in EFFECTS}
    scope |= {"Elapsed": Elapsed, "resolve_regexes": resolve_regexes}
    exec(LOOP, scope)
    node = Node(Settings(offsets_topic_num_partitions=1), lambda: "uuid")
    clock = Clock()
    answers: dict[str, Any] = {}
    events: list[Any] = []

    def drive(*inputs: Any) -> None:
        scope["drive"](node, Log(), Cluster(), deque(inputs), clock, answers.__setitem__, events.append)

    def ask(token: str, request: Request, version: int) -> None:
        drive(Received(token, request, Context(version, client_id="c")))

    drive(ClusterSeen((Broker(1, "localhost", 9095),), {OFFSETS: 1}), Elected(OFFSETS, 1))
    metadata = encode_subscription(Subscription(("orders",)))
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )
    ask("first", join, 9)
    member_id = answers["first"].member_id
    ask("second", join.model_copy(update={"member_id": member_id}), 9)
    assert "second" not in answers
    assert clock.wakeup == 4_000
    clock.time = clock.wakeup
    drive(Elapsed())
    assert answers["second"].leader == member_id
    share = SyncGroupRequestAssignment(member_id=member_id, assignment=b"")
    ask("sync", SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=(share,)), 4)
    assert answers["sync"].error_code == 0
    assert any(isinstance(event, RebalanceCompleted) for event in events)
