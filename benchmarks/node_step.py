"""One heartbeat through ``Node.step``: what it costs, and that it costs the same however many groups there are."""

from __future__ import annotations

import itertools
import time
from typing import Any

from rich.table import Table

from benchmarks import printer
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context, Elapsed, Received
from rejoin.coordinator.core.node import Node
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.transcript.driver import NodeDriver, NodeLogs

MEMBERS = 100
BEATS = 200_000
ROUNDS = 5
GROUPS = (1, 100, 2_000)


class Replies:
    """Keeps the replies of a node, by token."""

    def __init__(self) -> None:
        self.by_token: dict[object, Any] = {}

    def on_reply(self, token: object, response: object) -> None:
        self.by_token[token] = response

    def on_event(self, event: object) -> None:
        pass


def started(replies: Replies) -> NodeDriver:
    """A node that leads everything, and whose log stores at once."""
    counter = itertools.count()
    settings = Settings(group_initial_rebalance_delay_ms=0)
    driver = NodeDriver(Node(settings, lambda: f"{next(counter):032x}"), NodeLogs(), replies, 0)
    driver.see_cluster()
    for index in range(settings.offsets_topic_num_partitions):
        driver.elect(offsets_partition(index))
    return driver


def beating_groups(count: int) -> tuple[NodeDriver, list[Received]]:
    """Groups of 100 members, Stable, and one heartbeat of each member of at most 100 groups."""
    replies = Replies()
    driven = started(replies)
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    beats = []
    for number in range(count):
        group_id = f"group-{number}"
        for member in range(MEMBERS):
            request = JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=1_800_000,
                rebalance_timeout_ms=300_000,
                member_id="",
                protocol_type="benchmark",
                protocols=protocols,
            )
            driven.step(Received((number, member), request, Context(3, "c")))
        driven.step(Elapsed())
        members: list[Any] = [replies.by_token.pop((number, member)) for member in range(MEMBERS)]
        for index, joined in enumerate(members):
            sync = SyncGroupRequest(
                group_id=group_id,
                generation_id=1,
                member_id=joined.member_id,
                assignments=(),
            )
            driven.step(Received(("sync", index), sync, Context(4, "c")))
        if number % max(1, count // 100) == 0:
            beats += [
                Received(
                    None,
                    HeartbeatRequest(group_id=group_id, generation_id=1, member_id=joined.member_id),
                    Context(4, "c"),
                )
                for joined in members
            ]
    return driven, beats


def main() -> None:
    """Print microseconds a heartbeat for so many groups of 100 members, and the ratio to one group.

    Heartbeats of 10,000 members, of up to 100 groups, miss the processor's caches; those of one group show that nothing
    is looked through.
    """
    table = Table(title="One heartbeat through Node.step, groups of 100 members")
    for column in ("groups", "members", "members that beat", "µs a heartbeat (best of 5)", "of one group"):
        table.add_column(column, justify="right")
    prepared: dict[tuple[int, int], tuple[NodeDriver, list[Received]]] = {}
    for count in GROUPS:
        driven, beats = beating_groups(count)
        prepared |= {(count, len(some)): (driven, some) for some in (beats[:MEMBERS], beats)}
    best = dict.fromkeys(prepared, float("inf"))
    for _ in range(ROUNDS):
        for measured, (driven, beats) in prepared.items():
            step = driven.node.step
            repeats = max(1, BEATS // len(beats) // ROUNDS)
            now = driven.now
            began = time.perf_counter()
            for _ in range(repeats):
                now += 1
                for beat in beats:
                    step(beat, now)
            best[measured] = min(best[measured], (time.perf_counter() - began) / (repeats * len(beats)))
            driven.now = now
    of_one = best[GROUPS[0], MEMBERS]
    for (count, beating), seconds in best.items():
        row = (f"{count:,}", f"{count * MEMBERS:,}", f"{beating:,}", f"{seconds * 1e6:.2f}", f"{seconds / of_one:.2f}")
        table.add_row(*row)
    printer().print(table)


if __name__ == "__main__":
    main()
