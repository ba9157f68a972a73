"""Groups through ``Node.step``: heartbeats of consumer, streams and classic groups; joins in large consumer groups."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable
from time import process_time
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context, Elapsed, Received
from rejoin.coordinator.core.node import Node
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsTopology
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.streams.topology import Subtopology
from rejoin.transcript.driver import NodeDriver, NodeLogs

GROUPS = (1, 100, 10_000)
BEATS = 20_000
ROUNDS = 5
SIZES = (1_000, 10_000, 40_000)
JOINS = 50
AIM: Final = 1.5
"""The most classic heartbeats that a heartbeat without change may cost."""
STREAMS_AIM: Final = 1.3
"""The most heartbeats without change of a consumer group that one of a streams group may cost."""
GROWTH: Final = 2.0
"""The most that a join may cost in the largest group, by what it costs in one with a fortieth of the members."""

_INTERVAL_MS: Final = 10
"""The assignment interval. All joins together take far less than a session, so no member is removed between them."""


class Replies:
    """Keeps the last reply of a node."""

    def __init__(self) -> None:
        self.last: Any = None

    def on_reply(self, token: object, response: object) -> None:
        self.last = response

    def on_event(self, event: object) -> None:
        pass


class Groups:
    """A node that leads everything, and whose log stores at once."""

    def __init__(self) -> None:
        counter = itertools.count()
        settings = Settings(
            group_initial_rebalance_delay_ms=0,
            group_consumer_assignment_interval_ms=_INTERVAL_MS,
            group_streams_initial_rebalance_delay_ms=0,
        )
        self.replies = Replies()
        self.driver = NodeDriver(Node(settings, lambda: f"{next(counter):032x}"), NodeLogs(), self.replies)
        self.driver.see_cluster()
        for index in range(settings.offsets_topic_num_partitions):
            self.driver.elect(offsets_partition(index))

    def ask(self, request: Any, version: int) -> Any:
        self.driver.step(Received(None, request, Context(version, "c")))
        return self.replies.last

    def size(self, group_id: str) -> int:
        """How many members a group has."""
        group = self.driver.node.describe_group(group_id)
        return 0 if group is None else len(group.members)

    def create_topic(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1_000), 7)

    def join(self, group_id: str, member_id: str) -> Any:
        """A member joins; it is given what is free of its target."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        return self.ask(request, 1)

    def join_with_target(self, group_id: str, member_id: str) -> Any:
        """A member joins when the assignment interval has passed; the target is computed."""
        self.driver.now += _INTERVAL_MS
        return self.join(group_id, member_id)

    def join_streams(self, group_id: str) -> StreamsGroupHeartbeatRequest:
        """The only member of a streams group, which gets all tasks; returns its heartbeat without change."""
        empty: dict[str, Any] = dict.fromkeys(Subtopology.model_fields, ())
        subtopology = Subtopology(**empty | {"subtopology_id": "0", "source_topics": ("t",)})
        request = StreamsGroupHeartbeatRequest(
            group_id=group_id,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            endpoint_information_epoch=-1,
            topology=StreamsTopology(epoch=0, subtopologies=(subtopology,)),
            process_id="p",
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
        )
        joined = self.ask(request, 1)
        assert joined.active_tasks, "the member has all tasks"
        return StreamsGroupHeartbeatRequest(
            group_id=group_id,
            member_id="m",
            member_epoch=joined.member_epoch,
            endpoint_information_epoch=joined.endpoint_information_epoch,
        )

    def join_classic(self, group_id: str) -> str:
        """The only member of a classic group, which becomes Stable."""
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=300_000,
            member_id="",
            protocol_type="benchmark",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        self.driver.step(Received(None, request, Context(3, "c")))
        self.driver.step(Elapsed())
        member_id = str(self.replies.last.member_id)
        self.ask(SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member_id, assignments=()), 4)
        return member_id


def heartbeats(groups: int) -> list[float]:
    """Microseconds of heartbeats without change, to each group in turn and all to one of them.

    The best of some rounds, in which the six take turns. In that order: each consumer group, each classic and each
    streams group, then one group of each kind.
    """
    node = Groups()
    node.create_topic("t", 4)
    modern, classic, streams = [], [], []
    for number in range(groups):
        epoch = node.join(f"modern-{number}", "m").member_epoch
        request = ConsumerGroupHeartbeatRequest(group_id=f"modern-{number}", member_id="m", member_epoch=epoch)
        modern.append(Received(None, request, Context(1, "c")))
        member_id = node.join_classic(f"classic-{number}")
        beat = HeartbeatRequest(group_id=f"classic-{number}", generation_id=1, member_id=member_id)
        classic.append(Received(None, beat, Context(4, "c")))
        streams.append(Received(None, node.join_streams(f"streams-{number}"), Context(1, "c")))
    each = (modern, classic, streams)
    kinds = (*each, *(beats[-1:] * groups for beats in each))
    best = [float("inf")] * len(kinds)
    repeats = max(1, BEATS // groups)
    for _ in range(ROUNDS):
        for which, beats in enumerate(kinds):
            best[which] = min(best[which], _seconds(node, beats, repeats) / (repeats * len(beats)))
    return [seconds * 1e6 for seconds in best]


def _seconds(node: Groups, beats: list[Received], repeats: int) -> float:
    step, now = node.driver.node.step, node.driver.now
    began = process_time()
    for _ in range(repeats):
        for beat in beats:
            step(beat, now)
    return process_time() - began


def large_group(members: int, joins: int) -> Groups:
    """A group of so many members that has a target, and partitions for some more to join."""
    node = Groups()
    node.create_topic("t", 2 * members + 4 * joins)
    names = [f"member-{number:05d}" for number in range(members)]
    for name in names:
        node.join("g", name)
    # The first that comes now computes the target of all; the first owns everything until it says otherwise.
    node.driver.now += _INTERVAL_MS
    for name in names:
        node.join("g", name)
    return node


def joins(members: int) -> tuple[float, float, float]:
    """Microseconds in a group of so many: of a join without a target, of one that computes it, of the end of a session.

    Each join that computes the target does so for itself alone, and two partitions move to it, however large the group
    is. The sessions of all end at once; that is divided by their number.
    """
    node = large_group(members, JOINS)
    gc.disable()
    with_target = [_seconds_of(node.join_with_target, "g", f"with-{number:05d}") for number in range(JOINS)]
    without = [_seconds_of(node.join, "g", f"without-{number:05d}") for number in range(JOINS)]
    assert node.size("g") == members + 2 * JOINS, "no member was removed between the joins"
    node.driver.now += Settings().group_consumer_session_timeout_ms
    removal = _seconds_of(node.driver.step, Elapsed())
    gc.enable()
    assert node.size("g") == 0, "the sessions of all have ended"
    return min(without) * 1e6, min(with_target) * 1e6, removal * 1e6 / (members + 2 * JOINS)


def _seconds_of(work: Callable[..., object], *arguments: Any) -> float:
    began = process_time()
    work(*arguments)
    return process_time() - began


def main() -> int:
    """Print both tables. Returns 1 where the aim is missed."""
    table = Table(box=None, pad_edge=False)
    kinds = ("consumer, µs", "classic, µs", "streams, µs")
    one_group = (f"one group: {kinds[0]}", *kinds[1:])
    for heading in ("groups", *kinds, "consumer × classic", "streams × consumer", *one_group):
        table.add_column(heading, justify="right")
    worst = worst_of_streams = 0.0
    for groups in GROUPS:
        modern, classic, streams, *one = heartbeats(groups)
        worst, worst_of_streams = max(worst, modern / classic), max(worst_of_streams, streams / modern)
        cells = (f"{value:.2f}" for value in (modern, classic, streams, modern / classic, streams / modern, *one))
        table.add_row(f"{groups:,}", *cells)
    console = printer()
    console.print(table)
    console.print(f"a heartbeat without change: {worst:.2f} × a classic one, aim ≤ {AIM:g}")
    console.print(f"one of a streams group: {worst_of_streams:.2f} × one of a consumer group, aim ≤ {STREAMS_AIM:g}")
    table = Table(box=None, pad_edge=False)
    for heading in ("members", "a join, µs", "with a target, µs", "× the smallest group", "the end of a session, µs"):
        table.add_column(heading, justify="right")
    smallest = growth = 0.0
    for members in SIZES:
        without, target, removal = joins(members)
        smallest = smallest or target
        growth = target / smallest
        table.add_row(f"{members:,}", f"{without:.0f}", f"{target:.0f}", f"{growth:.2f}", f"{removal:.0f}")
    console.print(table)
    console.print(f"a join in the largest group: {growth:.2f} × one in the smallest, aim ≤ {GROWTH:g}")
    return int(worst > AIM or worst_of_streams > STREAMS_AIM or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
