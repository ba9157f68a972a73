"""One life, seen by the coordinator and by a proxy in front of it: equal tables, but for what no request shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rejoin.pipeline.tables import group_tables
from rejoin.pipeline.tables.commits import commits
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from tests.proxy.lives import ClassicMember, Life, events_in, life

_WHERE: Final = ("run_id", "source", "node", "rebalance_id", "file", "line", "from_source", "from_seq", "seq")
"""Columns with the source itself."""
_JUDGED: Final = ("confidence", "software", "same_process_as", "group_instance_id")
"""Columns that only one of the two has for its reason: requests show software and connections, and are interpreted."""
UNSEEN: Final = {
    "rebalances": {"absent", "protocol", "generation_to", "members_after", "initial"},
    "member_sessions": {"session_timeout_ms", "protocols"},
    "ownership": set(),
    "commits": {"state"},
}
"""Columns of which a request may show nothing: they are null then, and nothing else."""


def tables_of(events: pa.Table) -> dict[str, list[dict[str, Any]]]:
    rebalances = group_tables.rebalances(events)
    made: dict[str, Any] = {
        "rebalances": rebalances,
        "member_sessions": group_tables.member_sessions(events, rebalances),
        "ownership": group_tables.ownership(events),
        "commits": commits(events),
    }
    found = {name: table.to_pylist() for name, table in made.items()}
    # How many partitions a topic has, so that some never have an owner, only the coordinator knows.
    owned = [row for row in found["ownership"] if row["kind"] == "owned"]
    found["ownership"] = sorted(owned, key=lambda row: (row["topic"], row["partition"], row["from_ms"]))
    return found


def differences(known: Path, seen: Path) -> Iterator[str]:
    """Rows of the coordinator's tables that are missing in the proxy's, without those that cannot be seen."""
    ours, theirs = tables_of(events_in(known)), tables_of(events_in(seen))
    for name, rows in ours.items():
        if len(rows) != len(theirs[name]):
            yield f"{name}: {len(rows)} rows, the proxy has {len(theirs[name])}"
        for number, (row, other) in enumerate(zip(rows, theirs[name], strict=False)):
            for column in row.keys() - {*_WHERE, *_JUDGED}:
                is_unseen = other[column] is None and column in UNSEEN[name]
                if other[column] != row[column] and not is_unseen:
                    yield f"{name} {number} {column}: {row[column]}, the proxy has {other[column]}"


async def of_one(life: Life, *members: ClassicMember) -> None:
    """Complete the rebalance that these members have sent JoinGroup for; the first gives each one partition."""
    await life.broker.wait_for_group("g", waiting=len(members))
    await life.broker.advance_to_next()
    for member in members:
        await member.joined()
    await share_out(*members)


async def share_out(*members: ClassicMember) -> None:
    given = {member.member_id: {"orders": [number]} for number, member in enumerate(members)}
    await members[0].sync(given)
    for member in members[1:]:
        await member.sync()


async def rejoin(*members: ClassicMember) -> None:
    """All members join again, and the rebalance completes when the last has."""
    for member in members:
        await member.send_join()
    for member in members:
        await member.joined()
    await share_out(*members)


async def test_a_classic_group(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        broker = one.broker
        first, second = await one.member("first"), await one.member("second")
        await first.send_join()
        await of_one(one, first)
        await broker.advance(1_000)
        # A second member.
        await second.send_join()
        await broker.wait_for_group("g", waiting=1)
        await broker.advance(200)
        assert await first.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        await first.send_join()
        await first.joined()
        await second.joined()
        await share_out(first, second)
        await first.commit({0: 5, 1: 7})
        await broker.advance(1_000)
        await first.commit({0: 9})
        # The second one crashes.
        for _ in range(14):
            await broker.advance(3_000)
            assert await first.beat() is ErrorCode.NONE
        await broker.advance(3_000)
        assert await first.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        await rejoin(first)
        # A static member comes, and restarts.
        static = await one.member("static", "i-1")
        await broker.advance(1_000)
        await static.send_join()
        await broker.wait_for_group("g", waiting=1)
        await first.beat()
        await first.send_join()
        await first.joined()
        await static.joined()
        await share_out(first, static)
        await broker.advance(5_000)
        again = await one.member("static", "i-1")
        await again.send_join()
        await again.joined()
        await again.sync()
        assert await static.beat() is ErrorCode.FENCED_INSTANCE_ID
        # A deployment: the first leaves, and another comes in its place.
        await broker.advance(1_000)
        await first.leave()
        assert await again.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        await rejoin(again)
        await broker.advance(2_000)
        new = await one.member("first")
        await new.send_join()
        await broker.wait_for_group("g", waiting=1)
        await again.beat()
        await again.send_join()
        await again.joined()
        await new.joined()
        await share_out(again, new)
        await broker.advance(1_000)
        assert (await first.commit({0: 10})).topics[0].partitions[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert "\n".join(differences(one.known, one.seen)) == ""


async def test_a_group_of_the_consumer_protocol(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        broker = one.broker
        await (await one.client()).ask(MetadataRequest(topics=None))
        first, second = await one.modern("a" * 22), await one.modern("b" * 22)
        await first.beat(0)
        await broker.advance(3_000)
        await first.beat()
        # A second member gets partitions once the first has given them up.
        await second.beat(0)
        await broker.advance(3_000)
        await first.beat()
        await broker.advance(500)
        await first.beat()
        await second.beat()
        # It crashes, and comes back.
        for _ in range(18):
            await broker.advance(3_000)
            await first.beat()
        assert (await second.beat()).error_code is ErrorCode.UNKNOWN_MEMBER_ID
        second.has = ()
        await second.beat(0)
        await broker.advance(1_000)
        await first.beat()
        await first.beat()
        await second.beat()
        # One leaves, then the other.
        await broker.advance(3_000)
        await second.beat(-1)
        await first.beat()
        await broker.advance(3_000)
        await first.beat(-1)
    assert "\n".join(differences(one.known, one.seen)) == ""
