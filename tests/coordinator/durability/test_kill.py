"""kill -9 again and again, under load: nothing that was acknowledged is lost, and nothing needs repair.

``REJOIN_KILL_ROUNDS`` says how often, ``REJOIN_KILL_SEED`` draws other moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rejoin.demo.scenes import events
from rejoin.journal.events import client as client_events
from rejoin.journal.events import coordinator as coordinator_events
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CommitSucceeded, ConsumerEvent, GroupSynced, PositionsFound
from rejoin.journal.events.coordinator import GroupLoaded
from rejoin.journal.reader import read_journal
from tests.coordinator.durability.service import PATIENCE, Committer, Service, stop_all

ROUNDS = int(os.environ.get("REJOIN_KILL_ROUNDS", "2"))
SEED = int(os.environ.get("REJOIN_KILL_SEED", "1"))
GROUP, TOPIC, PARTITIONS = "orders-app", "orders", 6
SETTINGS = {
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "8",
    "broker.session.timeout.ms": "1000",
}


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Service:
    if request.param == "sqlite":
        store = ["--data", str(tmp_path / "data")]
    else:
        store = ["--store", request.getfixturevalue("postgres")]
    return Service(tmp_path, store, SETTINGS, f"{TOPIC}:{PARTITIONS}:100")


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_stable(service: Service, members: int) -> bool:
    view = service.look(f"/groups/{GROUP}")
    if view is None or view["state"] != "Stable" or len(view["members"]) != members:
        return False
    owned = [index for member in view["members"] for index in (member["assignment"] or {}).get(TOPIC, ())]
    return sorted(owned) == list(range(PARTITIONS))


def test_nothing_acknowledged_is_lost(service: Service) -> None:
    dice = random.Random(SEED)
    service.start()
    processes = [service.consume(f"consumer-{number}", GROUP, TOPIC) for number in range(2)]
    committers = [Committer(service.port, number, TOPIC) for number in range(4)]
    try:
        for committer in committers:
            committer.start()
        until(lambda: is_stable(service, 4), "the group was never Stable")
        for round_number in range(ROUNDS):
            before = [committer.acknowledged for committer in committers]
            if round_number % 3 == 2:
                # In the middle of a rebalance: one process comes and another goes.
                processes.append(service.consume(f"consumer-{round_number}", GROUP, TOPIC))
                leaving = processes.pop(0)
                leaving.send_signal(signal.SIGTERM)
                until(partial(has_ended, leaving), "a consumer does not stop")
            until(partial(moved_on, committers, before), "commits do not go on")
            time.sleep(dice.uniform(0, 0.25))
            generation = stable_generation(service)
            service.kill()
            service.start()
            found = shown_generation(service)
            assert found >= generation, f"generation {generation} was complete and is gone: the newest is {found}"
            check(service, processes, committers)
        until(lambda: is_stable(service, 4), "the group did not become Stable by itself")
        # No kill comes after these commits, so the answer of each is seen.
        stored = committed_offsets(service)
        until(lambda: all_go_on(service, stored), "commits of the group do not go on")
        check(service, processes, committers)
    finally:
        for committer in committers:
            committer.stop()
        for committer in committers:
            committer.join(PATIENCE)
        stop_all(processes)
        if service.process is not None:
            stop_all([service.process])
    assert all(committer.looked >= ROUNDS for committer in committers)
    check_journals(service.folder / "journal")


def shown_generation(service: Service) -> int:
    """The newest generation of the group."""
    until(lambda: service.look(f"/groups/{GROUP}") is not None, "the group is not shown")
    return int((service.look(f"/groups/{GROUP}") or {})["generation"])


def stable_generation(service: Service) -> int:
    """The newest generation that is known to be complete; 0 in the middle of a rebalance."""
    view = service.look(f"/groups/{GROUP}")
    return int(view["generation"]) if view is not None and view["state"] == "Stable" else 0


def committed_offsets(service: Service) -> dict[int, int]:
    """Partition to committed offset of the group, of those that have one."""
    view = service.look(f"/groups/{GROUP}")
    return {row["partition"]: row["offset"] for row in view["offsets"]} if view is not None else {}


def all_go_on(service: Service, stored: dict[int, int]) -> bool:
    found = committed_offsets(service)
    return all(found.get(partition, -1) > stored.get(partition, -1) for partition in range(PARTITIONS))


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def moved_on(committers: list[Committer], before: list[int]) -> bool:
    return any(each.problem for each in committers) or all(
        each.acknowledged > then + 3 for each, then in zip(committers, before, strict=True)
    )


def check(service: Service, processes: list[subprocess.Popen[bytes]], committers: list[Committer]) -> None:
    """No consumer has missed anything or given up."""
    assert [committer.problem for committer in committers if committer.problem] == []
    for process in processes:
        assert process.poll() is None, f"consumers ended: {process.args!r}"


def check_journals(journal: Path) -> None:
    """Compare what consumers and coordinators wrote down. Rows of several processes are in order by generation only."""
    loads = [
        row.event.generation
        for row in read_journal(journal, events(coordinator_events, Event), source="coordinator")
        if isinstance(row.event, GroupLoaded) and row.event.group_id == GROUP
    ]
    # A coordinator that is killed takes along the events that it had not written yet; the last one was not killed.
    assert len(loads) >= max(1, ROUNDS // 3)
    owners: dict[tuple[int, int], str] = {}
    newest: dict[str, int] = {}
    committed: dict[Any, dict[int, int]] = {}
    found: list[tuple[int, Any, int]] = []
    for row in read_journal(journal, events(client_events, ConsumerEvent), source="client"):
        event = row.event
        if isinstance(event, GroupSynced):
            assert event.generation >= newest.get(event.member_id, 0), (
                f"{event.member_id} is back in an older generation"
            )
            newest[event.member_id] = event.generation
            for partition in event.partitions.get(TOPIC, ()):
                owner = owners.setdefault((event.generation, partition), event.member_id)
                assert owner == event.member_id, (
                    f"partition {partition} has two owners in generation {event.generation}"
                )
        elif isinstance(event, CommitSucceeded):
            for key, offset in by_partition(event.positions):
                of_generations = committed.setdefault(key, {})
                of_generations[event.generation] = max(offset, of_generations.get(event.generation, 0))
        elif isinstance(event, PositionsFound) and event.origin == "committed":
            found += [(event.generation, key, offset) for key, offset in by_partition(event.positions)]
    for generation, key, offset in found:
        # A commit of an older generation is acknowledged before a newer one is complete, or not at all.
        before = max((most for of, most in committed.get(key, {}).items() if of < generation), default=0)
        assert offset >= before, f"{key}: {before} was committed, {offset} was found"
    assert len(committed) == PARTITIONS


def by_partition(offsets: dict[str, dict[Any, int]]) -> list[tuple[tuple[str, int], int]]:
    return [((topic, int(partition)), found) for topic, by in offsets.items() for partition, found in by.items()]
