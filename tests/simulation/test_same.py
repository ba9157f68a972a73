"""Same seed, same bytes; and what is skipped changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Input, Received
from rejoin.journal.events import coordinator as coordinator_events
from rejoin.journal.events import simulation as simulation_events
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import EVENT_TYPES
from rejoin.journal.reader import read_journal
from rejoin.journal.schema import JournalSchema, events_in
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.schedules import SCHEDULES, random_scenario
from rejoin.simulation.simulation import Simulation
from tests import paths
from tests.journal.few_records import with_few_records

ROOT = paths.ROOT
SEEDS = int(os.environ.get("REJOIN_IDLE_SEEDS", "3"))
"""How many seeds are played with and without skipping; ``make idle-seeds`` plays a thousand."""


def quieter(seed: int) -> dict[str, Any]:
    """A random scenario in which consumers often have nothing to do, with long pauses between the faults."""
    random = Random(f"idle/{seed}")
    data = random_scenario(seed)
    for group in data["groups"].values():
        group["commit"] = random.choice(("after", "after-async", "before", "none"))
        group["poll"] = random.choice(("100ms", "333ms", "500ms", "1s"))
    for topic in data["topics"].values():
        topic["records_per_second"] = random.choice((0, 0, 0.01, 0.1))
    stretch = random.choice((1, 3))
    for event in data["events"]:
        event["at"] = f"{int(event['at'].removesuffix('ms')) * stretch}ms"
    data["horizon"] = f"{int(data['horizon'].removesuffix('ms')) * stretch}ms"
    return data


def busier(seed: int) -> dict[str, Any]:
    """A random scenario in which consumers always have records to process."""
    random = Random(f"busy/{seed}")
    data = quieter(seed)
    for group in data["groups"].values():
        group["commit"] = random.choice(("after", "after-async", "auto", "before", "none"))
        group["auto_commit_interval"] = random.choice(("200ms", "1s", "5s"))
        group["processing"] = random.choice(("1ms", "20ms", "exp(30ms)", "200ms/poll", "exp(900ms)/poll"))
    for topic in data["topics"].values():
        topic["records_per_second"] = random.choice((0, 0.2, 1, 5, 20))
    return data


def events(data: dict[str, Any], *, skip: bool) -> tuple[list[tuple[Millis, str, Event]], Simulation]:
    seen: list[tuple[Millis, str, Event]] = []

    def on_event(actor: Actor, event: Event, now: Millis) -> None:
        seen.append((now, actor.name, event))

    simulation, _ = play(Scenario.model_validate(data), skip=skip, listeners=[on_event])
    return seen, simulation


def leased(seed: int) -> dict[str, Any]:
    """A random scenario in which nodes lose their leases, and consumers have little to do or much."""
    data = SCHEDULES["failovers"](seed)
    random = Random(f"idle/{seed}")
    for group in data["groups"].values():
        group["commit"] = random.choice(("after", "after-async", "auto", "before", "none"))
        group["processing"] = random.choice(("1ms", "20ms", "exp(30ms)", "200ms/poll"))
    for topic in data["topics"].values():
        topic["records_per_second"] = random.choice((0, 0, 0.2, 1, 5))
    return data


def moving(seed: int) -> dict[str, Any]:
    """The same with consumer groups, and with groups whose members move to the other protocol while they run."""
    random = Random(f"moving/{seed}")
    data = random.choice((quieter, busier, leased))(seed)
    for group in data["groups"].values():
        group["protocol"] = random.choice(("consumer", "consumer", "classic"))
        group["remote_assignor"] = random.choice((None, "uniform", "range"))
    at = f"{random.randint(20_000, 90_000)}ms"
    deploy = {"group": random.choice(list(data["groups"])), "every": "3s", "down": "1s"}
    if random.random() < 0.5:
        deploy["protocol"] = random.choice(("classic", "consumer"))
    data["events"].append({"at": at, "deploy": deploy})
    data["coordinator"]["settings"] |= {
        "group.consumer.session.timeout.ms": random.choice((8_000, 20_000)),
        "group.consumer.heartbeat.interval.ms": random.choice((1_000, 3_000, 5_000)),
        "group.consumer.assignment.interval.ms": random.choice((0, 1_000)),
        "group.consumer.migration.policy": random.choice(("bidirectional", "bidirectional", "upgrade", "disabled")),
    }
    return data


@pytest.mark.parametrize("make", [quieter, leased, busier, moving])
@pytest.mark.parametrize("start", range(0, SEEDS, 10))
def test_what_is_skipped_changes_no_event(make: Callable[[int], dict[str, Any]], start: int) -> None:
    intervals = 0
    for seed in range(start, min(SEEDS, start + 10)):
        data = make(seed)
        plain, _ = events(data, skip=False)
        skipped, simulation = events(data, skip=True)
        for one, other in zip(plain, skipped, strict=False):
            assert one == other, f"seed {seed}"
        assert len(plain) == len(skipped), f"seed {seed}"
        assert simulation.idle is not None
        intervals += simulation.idle.skipped_intervals + simulation.idle.record_loops
    assert intervals > 0, "some intervals were skipped"


@pytest.mark.parametrize("commit", ["after", "after-async"])
def test_requests_in_flight_fail_in_the_order_in_which_they_were_sent(commit: str) -> None:
    data = steady(commit)
    data["horizon"] = "60s"
    data["groups"]["app"]["heartbeat_interval"] = "500ms"
    data["network"] = {"latency": "uniform(1ms,200ms)", "longest": "200ms"}
    data["coordinator"] = {"log_latency": "exp(100ms)"}
    data["events"] = [{"at": f"{10 + 8 * number}s", "failover": {"group": "app", "down": "1s"}} for number in range(6)]
    plain, _ = events(data, skip=False)
    skipped, simulation = events(data, skip=True)
    assert plain == skipped
    assert simulation.idle is not None
    assert simulation.idle.record_loops > 6


@pytest.mark.parametrize("commit", ["after", "after-async", "auto", "before", "none"])
def test_records_in_short_give_the_same_journal_and_the_same_numbers(commit: str, tmp_path: Path) -> None:
    data = steady(commit)
    shown = []
    for skip in (True, False):
        path = tmp_path / f"{skip}.jsonl"
        play(Scenario.model_validate(data), skip=skip, journal=path)
        # Without a listener no events are made of the records, and the numbers must not depend on them.
        _, summary = play(Scenario.model_validate(data), skip=skip)
        shown.append((path.read_bytes(), summary.groups["app"]))
    assert shown[0] == shown[1]
    assert shown[0][1].processed > 1_000


def test_the_cores_are_left_out_while_records_are_processed() -> None:
    played: Counter[str] = Counter()

    class CommitCounter(Watcher):
        def before(self, node: NodeActor, what: Input) -> None:
            if isinstance(what, Received):
                played[type(what.request).__name__] += 1

    def prepare(simulation: Simulation) -> None:
        for node in simulation.cluster.nodes:
            node.watchers.append(CommitCounter())

    _, summary = play(Scenario.model_validate(steady("after")), prepare=prepare)
    assert summary.groups["app"].processed > 1_000
    assert played["OffsetCommitRequest"] < 30, "each consumer's first commits, and those around its metadata"


def steady(commit: str) -> dict[str, Any]:
    """Three consumers that are never without records for long."""
    return {
        "horizon": "7m",
        "topics": {"t": {"partitions": 6, "records_per_second": 1}},
        "groups": {"app": {"topics": ["t"], "consumers": 3, "commit": commit, "processing": "exp(2ms)"}},
    }


def test_a_month_of_quiet_takes_no_more_than_what_happens_in_it() -> None:
    quiet = {
        "horizon": "30d",
        "topics": {"t": {"partitions": 6}},
        "groups": {"app": {"topics": ["t"], "consumers": 3, "commit": "after"}},
    }
    simulation, _ = play(Scenario.model_validate(quiet))
    assert simulation.world.steps < 10_000, "ten-minute looks for expired offsets, and hardly anything else"


SCRIPT = """
import sys
from pathlib import Path
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.run import play
play(scenario_from(sys.argv[1]), 7, journal=Path(sys.argv[2]))
"""


def journal_of(path: Path, hash_seed: str) -> bytes:
    scenario = paths.GALLERY / "coordinator_failover_in_mid_rebalance.yaml"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, with_few_records(scenario.read_text()), str(path)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return path.read_bytes()


def test_same_seed_same_bytes_in_every_process(tmp_path: Path) -> None:
    first = journal_of(tmp_path / "first.jsonl", "1")
    second = journal_of(tmp_path / "second.jsonl", "2")
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()
    assert len(first) > 10_000


def test_another_seed_is_another_run() -> None:
    data = quieter(1)
    one, _ = events({**data, "seed": 1}, skip=True)
    other, _ = events({**data, "seed": 2}, skip=True)
    assert one != other


def test_the_journal_has_the_events_of_a_service(tmp_path: Path) -> None:
    seen, _ = events(random_scenario(3), skip=True)
    play(Scenario.model_validate(random_scenario(3)), journal=tmp_path / "journal")
    event_types = [
        event
        for event in vars(coordinator_events).values()
        if isinstance(event, type) and issubclass(event, Event) and event not in (Event, coordinator_events.GroupEvent)
    ]
    rows = list(
        read_journal(tmp_path / "journal", JournalSchema([*event_types, *EVENT_TYPES, *events_in(simulation_events)]))
    )
    assert {row.envelope.source for row in rows} == {"simulation"}
    outside = [row for row in rows if row.envelope.node == "outside"]
    done = [event for _, _, event in seen if isinstance(event, simulation_events.LabEvent)]
    assert len(rows) - len(outside) == len(seen) - len(done)
    # What a service would not know has a stream of its own, and that says where the run ended.
    assert [row.event for row in outside if row.envelope.event not in {"records_in_hand", "run_ended"}] == done
    assert outside[-1].envelope.event == "run_ended"


def test_one_file_has_the_same_rows_as_a_directory(tmp_path: Path) -> None:
    scenario = Scenario.model_validate(random_scenario(4))
    play(scenario, journal=tmp_path / "all.jsonl")
    play(scenario, journal=tmp_path / "journal")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    segments = [path.read_text().splitlines() for path in sorted((tmp_path / "journal").glob("*.jsonl"))]
    assert sorted(lines) == sorted(line for segment in segments for line in segment)
    assert json.loads(lines[0])["seq"] == 1
