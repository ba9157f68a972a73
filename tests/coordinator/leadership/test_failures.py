"""Three nodes, and everything that can happen to them: killed, asleep, cut off, without a database, all gone at once.

Run with ``-s`` it says what it counted: groups that kept their generation, requests that a zombie had refused, how long
groups had no coordinator, and how long consumers did not get a commit through. ``make failover`` has every failure.

These are real processes, and a lease that runs out in real time. That another node answers within the lease and a
second more is what leases promise, whatever the machine; ``BUSY_MS`` is for one that is busy with other things.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import pytest

from rejoin.client.workload.accounting import account
from rejoin.demo.scenes import events
from rejoin.journal.envelope import JournalRow
from rejoin.journal.events import client as client_events
from rejoin.journal.events.client import CommitSucceeded, ConsumerEvent, GroupSynced, PartitionsLost
from rejoin.journal.reader import read_journal
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.leadership.processes import (
    BUSY,
    LEASE_MS,
    PARTITIONS,
    TOPIC_PARTITIONS,
    Cluster,
    NodeProcess,
    group_in,
)
from tests.coordinator.service.helpers import join, sync
from tests.coordinator.storage.proxy import Wire
from tests.postgres import PostgresServer

WORKING = ("orders-app", "static-app")
AIM_MS: Final = LEASE_MS + 1_000
SLACK_MS: Final = 2_000
BUSY_MS: Final = 30_000
"""What is added to an aim on a machine that is busy with other tests: the numbers that count are printed."""
REQUEST_TIMEOUT_MS: Final = 1_500
SHORT_SESSION_MS: Final = 8_000
SITTING = [group_in(partition) for partition in range(PARTITIONS)]


class SlowWire(Wire):
    """A connection on which what a node sends can stay in flight for any time."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._to_hold: bytes | None = None
        self._passing = asyncio.Event()
        self._passing.set()

    def hold_from_commit_of(self, group: str) -> None:
        """Let nothing pass from the next commit of a group on: what comes before keeps the node's leases alive."""
        self._to_hold = f'"group":"{group}","topic":"orders"'.encode()

    @property
    def holds(self) -> bool:
        return not self._passing.is_set()

    def let_pass(self) -> None:
        self._to_hold = None
        self._passing.set()

    async def _forward(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(2**20):
                if self._to_hold is not None and self._to_hold in data:
                    self._passing.clear()
                await self._passing.wait()
                server.write(data)
                await server.drain()
        server.close()


def appends_fenced(metrics: object) -> int:
    """How many appends the database refused, as a node's metrics have it."""
    found = re.search(r"^rejoin_store_appends_fenced_total (\d+)\.0$", str(metrics), re.MULTILINE)
    assert found is not None, f"no such metric in what the node shows: {str(metrics)[:500]}"
    return int(found[1])


class Failures:
    """A cluster, and what was counted."""

    def __init__(self, cluster: Cluster, wire: SlowWire, server: PostgresServer) -> None:
        self.cluster = cluster
        self.wire = wire
        self.server = server
        self.members: dict[str, tuple[str, int]] = {}
        self.offsets = dict.fromkeys(SITTING, 0)
        self.unled_ms: dict[str, list[int]] = {}
        self.kept: dict[str, str] = {}
        self.refused: dict[str, int] = {}

    # -- one member each, that sits in its group

    async def sit(self, group: str) -> None:
        all_nodes = self.cluster.nodes
        who = {"groupInstanceId": "one"}
        wanted = {**join(group, sessionTimeoutMs=600_000), **who}
        joined = await self.cluster.ask(group, "JoinGroup", wanted, 9, all_nodes)
        assert joined["errorCode"] == 0, joined
        member_id, generation = joined["memberId"], joined["generationId"]
        synced = {**sync(group, member_id, generation, {member_id: {"orders": [0]}}), **who}
        assert (await self.cluster.ask(group, "SyncGroup", synced, 5, all_nodes))["errorCode"] == 0
        self.members[group] = (member_id, generation)
        await self.commit(group, all_nodes)

    def beat(self, group: str) -> dict[str, Any]:
        member_id, generation = self.members[group]
        return {"groupId": group, "generationId": generation, "memberId": member_id, "groupInstanceId": "one"}

    def committing(self, group: str, offset: int) -> dict[str, Any]:
        member_id, generation = self.members[group]
        partition = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}
        return {
            "groupId": group,
            "generationIdOrMemberEpoch": generation,
            "memberId": member_id,
            "groupInstanceId": "one",
            "topics": [{"name": "orders", "partitions": [partition]}],
        }

    async def commit(self, group: str, among: list[NodeProcess]) -> None:
        """Commit until it is acknowledged: over a failover, too."""
        offset = self.offsets[group] + 1
        answer = await self.cluster.ask(group, "OffsetCommit", self.committing(group, offset), 8, among)
        assert answer["topics"][0]["partitions"][0]["errorCode"] == 0, answer
        self.offsets[group] = offset

    async def stored(self, group: str, among: list[NodeProcess], partitions: int = 1) -> list[int]:
        wanted = [{"name": "orders", "partitionIndexes": list(range(partitions))}]
        body = {"groupId": group, "topics": wanted, "requireStable": True}
        answer = await self.cluster.ask(group, "OffsetFetch", body, 7, among)
        return [partition["committedOffset"] for partition in answer["topics"][0]["partitions"]]

    # -- what must be so after each failure

    async def first_answers(self, failure: str, among: list[NodeProcess], since: float) -> None:
        """Wait until each group has a coordinator that knows it, and count how long that took."""

        async def first_answer(group: str) -> int:
            answer = await self.cluster.ask(group, "Heartbeat", self.beat(group), 4, among)
            assert answer["errorCode"] == 0, f"{failure}: {group}: {answer}"
            return round((time.monotonic() - since) * 1_000)

        self.unled_ms[failure] = sorted(await asyncio.gather(*(first_answer(group) for group in SITTING)))

    async def taken_over(self, failure: str, among: list[NodeProcess], since: float) -> None:
        """As :meth:`first_answers`; no request waits longer than for the lease of the failed node, and a second."""
        await self.first_answers(failure, among, since)
        assert self.unled_ms[failure][-1] <= AIM_MS + BUSY_MS, f"{failure}: {self.unled_ms[failure]}"

    async def check(self, failure: str, before: dict[str, int], among: list[NodeProcess]) -> None:
        """All that was acknowledged is there, members are who they were and have what they had, consumers go on."""
        await self.cluster.led_by(among)
        for group in SITTING:
            answer = await self.cluster.ask(group, "Heartbeat", self.beat(group), 4, among)
            assert answer["errorCode"] == 0, f"{failure}: {group} is not what it was: {answer}"
            assert await self.stored(group, among) == [self.offsets[group]]
            await self.commit(group, among)
        for group in WORKING:
            found = await self.stored(group, among, TOPIC_PARTITIONS)

            async def goes_on(group: str = group, found: list[int] = found) -> bool:
                now = await self.stored(group, among, TOPIC_PARTITIONS)
                return all(after > before for before, after in zip(found, now, strict=True))

            await self.cluster.until(goes_on, f"{failure}: {group} does not go on")
        after = await self.generations()
        changed = {group: (before[group], after[group]) for group in before if before[group] != after[group]}
        assert not changed, f"{failure}: groups that did not keep their generation, before and after: {changed}"
        self.kept[failure] = f"{len(after)} of {len(before)}"
        for consumer in self.cluster.consumers:
            assert consumer.poll() is None, f"{failure}: consumers ended"

    async def all_assigned(self) -> bool:
        """Whether the consumers have all partitions: a cooperative rebalance is followed by another until then."""
        for group in WORKING:
            views = [await self.cluster.look(node, f"/groups/{group}") for node in self.cluster.nodes]
            members = [member for view in views if isinstance(view, dict) for member in view.get("members", ())]
            if sum(len((member["assignment"] or {}).get("orders", ())) for member in members) < TOPIC_PARTITIONS:
                return False
        return True

    async def generations(self) -> dict[str, int]:
        return {group: await self.cluster.generation(group) for group in (*WORKING, *SITTING)}

    async def leader(self, group: str) -> NodeProcess:
        leaders = await self.cluster.led_by(self.cluster.nodes)
        return next(node for node in self.cluster.nodes if node.node_id == leaders[partition_for(group, PARTITIONS)])

    def others(self, *gone: NodeProcess) -> list[NodeProcess]:
        return [node for node in self.cluster.nodes if node not in gone]

    def led(self, node: NodeProcess, leaders: dict[int, int]) -> str:
        """A sitting group that a node coordinates."""
        return next(group for group in SITTING if leaders[partition_for(group, PARTITIONS)] == node.node_id)


@pytest.fixture
async def failures(tmp_path: Path, postgres: str, postgres_server: PostgresServer) -> AsyncIterator[Failures]:
    async with SlowWire(postgres_server.port) as wire:
        through_wire = postgres.replace(f":{postgres_server.port}/", f":{wire.port}/")
        nodes = [NodeProcess(tmp_path, number, through_wire if number == 3 else postgres) for number in (1, 2, 3)]
        cluster = Cluster(tmp_path, nodes)
        found = Failures(cluster, wire, postgres_server)
        try:
            for node in nodes:
                node.start()
            await cluster.led_by(nodes)
            cluster.consume("first", "orders-app", "--assignor", "cooperative-sticky")
            cluster.consume("second", "orders-app", "--assignor", "cooperative-sticky")
            cluster.consume("fixed", "static-app", "--static", "--consumers", "2")
            for group in SITTING:
                await found.sit(group)
            await cluster.joined(dict.fromkeys(WORKING, 2), nodes)
            await cluster.until(found.all_assigned, "not all partitions are assigned")
            yield found
        finally:
            await cluster.close()


async def kill_one(found: Failures, failure: str) -> None:
    before = await found.generations()
    doomed = found.cluster.nodes[0]
    others = found.others(doomed)
    doomed.send(signal.SIGKILL)
    await found.taken_over(failure, others, time.monotonic())
    await found.check(failure, before, others)
    doomed.start()
    await found.cluster.led_by(found.cluster.nodes)


async def wake_a_zombie(found: Failures, failure: str) -> None:
    """A node is stopped while its append is in flight; that reaches the database when others lead."""
    before = await found.generations()
    zombie = found.cluster.nodes[2]
    others = found.others(zombie)
    fenced_before = appends_fenced(await found.cluster.look(zombie, "/metrics"))
    group, unwritten = await append_in_flight(found, zombie)
    waiting = [unwritten]
    zombie.send(signal.SIGSTOP)
    stopped_at = time.monotonic()
    # These are read when it wakes, and nothing of its memory says that it has been asleep.
    waiting += [asyncio.ensure_future(_patiently(found, zombie, "Heartbeat", found.beat(group), 4)) for _ in range(3)]
    waiting += [
        asyncio.ensure_future(_patiently(found, zombie, "OffsetCommit", found.committing(group, 900 + n), 8))
        for n in range(3)
    ]
    await found.taken_over(failure, others, stopped_at)
    await found.commit(group, others)
    found.wire.let_pass()
    zombie.send(signal.SIGCONT)
    answers = await asyncio.gather(*waiting)
    refused = sum("16" in re.findall(r'"errorCode":\s*(\d+)', answer) for answer in answers)
    assert refused == len(answers), answers
    fenced = fenced_before

    async def is_refused() -> bool:
        nonlocal fenced
        fenced = appends_fenced(await found.cluster.look(zombie, "/metrics"))
        return fenced > fenced_before

    await found.cluster.until(is_refused, "the database took what the zombie sent")
    found.refused = {"by the zombie itself": refused, "by the database": fenced - fenced_before}
    await found.check(failure, before, found.cluster.nodes)


async def append_in_flight(found: Failures, node: NodeProcess) -> tuple[str, asyncio.Task[str]]:
    """Commit for a group of a node, and hold the write in flight to the database."""
    while True:
        group = found.led(node, await found.cluster.led_by(found.cluster.nodes))
        found.wire.hold_from_commit_of(group)
        committing = asyncio.create_task(_patiently(found, node, "OffsetCommit", found.committing(group, 800), 8))

        async def is_held_or_refused(committing: asyncio.Task[str] = committing) -> bool:
            return found.wire.holds or committing.done()

        await found.cluster.until(is_held_or_refused, "the node does not append")
        if found.wire.holds:
            return group, committing


async def _patiently(found: Failures, node: NodeProcess, api: str, body: dict[str, Any], version: int) -> str:
    headers = {"Kafka-Api-Version": str(version), "Content-Type": "application/json"}
    async with found.cluster.session.post(
        node.url + BY_NAME[api].path,
        data=json.dumps(body),
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=120),
    ) as got:
        return await got.text()


async def cut_one_off(found: Failures, failure: str) -> None:
    before = await found.generations()
    lonely = found.cluster.nodes[2]
    group = found.led(lonely, await found.cluster.led_by(found.cluster.nodes))
    others = found.others(lonely)
    found.wire.is_closed = True
    found.wire.break_all()
    cut_at = time.monotonic()
    await found.taken_over(failure, others, cut_at)
    answer = await found.cluster.call(lonely, "Heartbeat", found.beat(group), 4)
    assert answer["errorCode"] == 16, "it is alive, and knows that it does not lead"
    await found.check(failure, before, others)
    found.wire.is_closed = False
    await found.cluster.led_by(found.cluster.nodes)


async def kill_the_database(found: Failures, failure: str) -> None:
    before = await found.generations()
    all_nodes = found.cluster.nodes
    group = SITTING[0]
    leader = await found.leader(group)
    found.server.kill()
    found.wire.break_all()
    # Nothing is acknowledged that could not be read again.
    answer = json.loads(
        await _patiently(found, leader, "OffsetCommit", found.committing(group, found.offsets[group]), 8)
    )
    assert answer["topics"][0]["partitions"][0]["errorCode"] in BUSY
    beaten = json.loads(await _patiently(found, leader, "Heartbeat", found.beat(group), 4))
    assert beaten["errorCode"] in {0, 16}
    found.server.start()
    started_at = time.monotonic()
    await found.first_answers(failure, all_nodes, started_at)
    await found.check(failure, before, all_nodes)


async def restart_all(found: Failures, failure: str) -> None:
    before = await found.generations()
    for node in found.cluster.nodes:
        node.send(signal.SIGKILL)
    for node in found.cluster.nodes:
        node.start()
    await found.first_answers(failure, found.cluster.nodes, time.monotonic())
    await found.check(failure, before, found.cluster.nodes)


Fail: TypeAlias = Callable[[Failures, str], Awaitable[None]]

FAILURES: Final[dict[str, Fail]] = {
    "kill -9 of a node": kill_one,
    "SIGSTOP of a node": wake_a_zombie,
    "a node cut off from PostgreSQL": cut_one_off,
    "kill -9 of PostgreSQL": kill_the_database,
    "kill -9 of all nodes": restart_all,
}
ALONE: Final = ("SIGSTOP of a node", "kill -9 of PostgreSQL")
"""The failures that no test of ``durability`` has: others are played only where REJOIN_FAILURES is ``all``."""
PLAYED: Final = FAILURES if os.environ.get("REJOIN_FAILURES") == "all" else {name: FAILURES[name] for name in ALONE}


def test_a_metric_that_is_not_there_is_no_nought() -> None:
    assert appends_fenced("# TYPE x counter\nrejoin_store_appends_fenced_total 3.0\n") == 3
    for shown in (None, "", "rejoin_store_appends_total 3\n"):
        with pytest.raises(AssertionError, match="no such metric"):
            appends_fenced(shown)


async def test_groups_live_through_everything_that_happens_to_their_coordinators(failures: Failures) -> None:
    journal = failures.cluster.folder / "consumers"
    spans: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for failure, fail in PLAYED.items():
        before = commits_so_far(journal, *WORKING)
        await fail(failures, failure)
        spans[failure] = (before, commits_so_far(journal, *WORKING))
    await failures.cluster.end_consumers()
    print(f"\nlease: {LEASE_MS} ms")
    for failure, millis in failures.unled_ms.items():
        since = ", counted from the new start" if FAILURES[failure] in {kill_the_database, restart_all} else ""
        print(f"{failure}: first answers of the {len(millis)} groups' coordinators after {shown(millis)} ms{since}")
    for failure, kept in failures.kept.items():
        print(f"{failure}: {kept} groups kept their generation")
    for who, count in failures.refused.items():
        print(f"requests to a zombie refused {who}: {count}")
    instants = committed(check_journal(journal), *WORKING)
    for failure, (first, last) in spans.items():
        # From the last commit before the failure to the first one after it.
        gaps = {
            client: longest_gap(instants[client][max(0, first.get(client, 0) - 1) : count + 1])
            for client, count in last.items()
        }
        print(f"{failure}: consumers' longest times between two commits, in ms: {gaps}")


async def test_consumers_whose_first_server_is_stopped_go_on_with_the_others(tmp_path: Path, postgres: str) -> None:
    """It takes what is sent to it and answers nothing, and it is both their coordinator and the first they would ask.

    It is stopped until sessions would have ended on the node that took over, had no member come there.
    """
    nodes = [NodeProcess(tmp_path, number, postgres) for number in (1, 2, 3)]
    cluster = Cluster(tmp_path, nodes)
    hung, others = nodes[0], nodes[1:]
    impatient = ("-c", f"request.timeout.ms={REQUEST_TIMEOUT_MS}")
    try:
        for node in nodes:
            node.start()
        group = await cluster.group_led_by(hung, *impatient, session_ms=SHORT_SESSION_MS)
        before = await cluster.generation(group)
        other = group_in(next(p for p, led in (await cluster.led_by(nodes)).items() if led == others[0].node_id))
        hung.send(signal.SIGSTOP)
        stopped_at = time.monotonic()
        cluster.consume("late", other, *impatient, session_ms=SHORT_SESSION_MS)
        await cluster.joined({other: 1}, others)
        woken_at = stopped_at + (LEASE_MS + SHORT_SESSION_MS + SLACK_MS) / 1_000
        await asyncio.sleep(max(0.0, woken_at - time.monotonic()))
        assert await cluster.generation(group, others) == before
        hung.send(signal.SIGCONT)
        await cluster.led_by(nodes)
        assert await cluster.generation(group) == before
        await cluster.end_consumers()
    finally:
        await cluster.close()
    rows = check_journal(tmp_path / "consumers")
    lost = [row.event for row in rows if isinstance(row.event, PartitionsLost)]
    assert [event for event in lost if event.group_id in (group, other)] == []
    synced = [row.event for row in rows if isinstance(row.event, GroupSynced)]
    assert max(event.generation for event in synced if event.group_id == group) == before
    theirs = committed(rows, group)
    assert len(theirs) == 2
    gaps = {client: longest_gap(instants) for client, instants in theirs.items()}
    print(f"\nSIGSTOP of the first server: consumers' longest times between two commits, in ms: {gaps}")
    # A request is given up, and perhaps another, where the lease had not run out by then.
    assert max(gaps.values()) <= AIM_MS + 2 * REQUEST_TIMEOUT_MS + BUSY_MS


# -- what consumers wrote down


def shown(millis: list[int]) -> str:
    return ", ".join(map(str, millis))


def committed(rows: Iterable[JournalRow], *groups: str) -> dict[str, list[int]]:
    """When the commits of each consumer of these groups were acknowledged."""
    found: dict[str, list[int]] = {}
    for row in rows:
        if isinstance(row.event, CommitSucceeded) and row.event.group_id in groups:
            found.setdefault(row.event.client_id, []).append(row.envelope.at_ms)
    return {client: sorted(found[client]) for client in sorted(found)}


def commits_so_far(journal: Path, *groups: str) -> dict[str, int]:
    """How many commits of each consumer of these groups are in the journal."""
    rows = read_journal(journal, events(client_events, ConsumerEvent), source="client")
    return {client: len(instants) for client, instants in committed(rows, *groups).items()}


def longest_gap(instants: list[int]) -> int:
    """The longest time between two of a consumer's instants, which are of one clock."""
    return max((after - before for before, after in pairwise(instants)), default=0)


def check_journal(journal: Path) -> list[JournalRow]:
    """Nothing was lost, and in no generation did two members have the same partition."""
    rows = list(read_journal(journal, events(client_events, ConsumerEvent), source="client"))
    accounts = account(row.event for row in rows)
    assert sum(each.processed for each in accounts) > 0
    assert sum(each.lost for each in accounts) == 0
    owners: dict[tuple[str | None, int, int], str] = {}
    for row in rows:
        if isinstance(row.event, GroupSynced):
            event = row.event
            for partition in event.partitions.get("orders", ()):
                key = (event.group_id, event.generation, partition)
                assert owners.setdefault(key, event.member_id) == event.member_id, f"{key} has two owners"
    return rows
