"""Applications under faults: each task has one owner, and none is without one when all is quiet again."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rejoin.client.core.group.streams.tasks import TaskId
from rejoin.journal.events.base import Event
from rejoin.journal.events.streams_members import StreamsTaskRestored, StreamsTasksAssigned
from rejoin.simulation.actors.streams.thread import StreamsThread
from rejoin.simulation.kernel import Actor
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import BadScenario, scenario_from
from rejoin.simulation.simulation import Simulation

APPLICATION: Final = """
horizon: 4m
topics:
  lines: {{partitions: 4, records_per_second: 2, until: 170s}}
coordinator:
  nodes: 2
  settings:
    group.streams.initial.rebalance.delay.ms: 0
    group.streams.assignment.interval.ms: 0
groups:
  counts:
    protocol: {protocol}
    topics: lines
    consumers: 3
    start: {{every: 1s}}
    revive: 5s
    streams:
      threads: {threads}
      standby_replicas: 1
      commit_interval: 3s
      processing_guarantee: {guarantee}
      probing_interval: 20s
      subtopologies:
        - {{writes: words}}
        - {{reads: words, stores: {{counts: {{restore: 1ms, records: 2000}}}}}}
events:
{events}
"""

FAULTS: Final = (
    "- {at: 40s, crash: {who: any-of-counts, down: 10s}}",
    "- {at: 60s, stop: {who: counts-2, down: 5s}}",
    "- {at: 75s, cut: {who: counts-3, for: 8s}}",
    "- {at: 90s, failover: {group: counts, down: 3s}}",
    "- {at: 105s, reset: {who: any-of-counts}}",
    "- {at: 115s, scale: {group: counts, to: 2}}",
    "- {at: 125s, scale: {group: counts, to: 4}}",
)


def text(protocol: str = "streams", guarantee: str = "at_least_once", threads: int = 1, events: Any = FAULTS) -> str:
    return APPLICATION.format(
        protocol=protocol, guarantee=guarantee, threads=threads, events="\n".join(events) or "  []"
    )


class Watched:
    """Each change of tasks: which thread has which as active, checked against all others that are up."""

    def __init__(self) -> None:
        self.simulation: Simulation | None = None
        self.twice_in_a_process: list[tuple[int, str, TaskId]] = []
        self.restored: list[StreamsTaskRestored] = []

    def on_event(self, actor: Actor, event: Event, now: int) -> None:
        if isinstance(event, StreamsTaskRestored):
            self.restored.append(event)
        if isinstance(event, StreamsTasksAssigned) and isinstance(actor, StreamsThread):
            others = [each for each in actor.instance.threads if each is not actor]
            for task in actor.tasks.tasks:
                if any(task in other.tasks.tasks for other in others):
                    self.twice_in_a_process.append((now, actor.name, task))


def run(source: str, seed: int) -> tuple[Simulation, Watched]:
    watched = Watched()
    simulation, summary = play(scenario_from(source), seed, listeners=[watched.on_event])
    assert summary.core_failures == 0
    return simulation, watched


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_each_task_has_one_owner_whatever_happens(protocol: str, guarantee: str, seed: int) -> None:
    simulation, _ = run(text(protocol, guarantee), seed)
    summary = simulation.tasks.summary_of("counts", simulation.world.now)
    threads = [each for each in simulation.consumers.values() if isinstance(each, StreamsThread) and each.is_up]
    active = sorted(task for each in threads for task in each.tasks.active())
    assert active == sorted(TaskId(part, index) for part in "01" for index in range(4))
    assert all(set(each.tasks.active()) == set(each.tasks.running()) for each in threads), "all state is restored"
    assert simulation.tasks.without_owner("counts") == []
    for task in (TaskId("1", index) for index in range(4)):
        homes = [each.instance.name for each in threads if task in each.tasks.tasks]
        assert len(homes) == len(set(homes)) == 2, "active in one process, and standby in another"
    ledgers = {key: each for key, each in simulation.accounting.ledgers.items() if key[0] == "counts"}
    assert len(ledgers) == 8
    assert all(not each.lost() for each in ledgers.values())
    for (_, topic, partition), ledger in ledgers.items():
        written = simulation.cluster.topics[topic].end(partition, simulation.world.now)
        assert ledger.spans == [(0, written)], "each record is processed, the last ones too"
    if guarantee == "exactly_once_v2":
        assert sum(each.twice for each in ledgers.values()) == 0
        lines = sum(each.processed for (_, topic, _), each in ledgers.items() if topic == "lines")
        words = sum(each.processed for (_, topic, _), each in ledgers.items() if topic != "lines")
        assert lines == words
    assert summary.tasks == 8


@pytest.mark.parametrize("seed", range(2))
def test_no_two_threads_of_a_process_have_the_same_task(seed: int) -> None:
    simulation, watched = run(text(threads=2, events=FAULTS[:2]), seed)
    assert watched.twice_in_a_process == []
    assert simulation.tasks.summary_of("counts", simulation.world.now).tasks == 8
    assert simulation.tasks.without_owner("counts") == []


def test_a_crash_at_least_once_keeps_state_up_to_the_last_commit_and_exactly_once_none() -> None:
    crash = ["- {at: 60s, crash: {who: counts-1, down: 1s}}"]
    read = {}
    for guarantee in ("at_least_once", "exactly_once_v2"):
        alone = text(guarantee=guarantee, events=crash).replace("consumers: 3", "consumers: 1")
        _, watched = run(alone.replace("standby_replicas: 1", "standby_replicas: 0"), 1)
        read[guarantee] = [each.restored_records for each in watched.restored if each.subtopology_id == "1"][4:]
    assert len(read["at_least_once"]) == len(read["exactly_once_v2"]) == 4
    assert all(records < 20 for records in read["at_least_once"])
    assert all(records > 2_000 for records in read["exactly_once_v2"])


def test_keys_bound_a_compacted_changelog() -> None:
    source = text(events=()).replace("records: 2000", "records: 2000, keys: 50")
    _, watched = run(source, 1)
    assert {each.restored_records for each in watched.restored if each.state_from == "changelog"} == {50}


def test_equal_seeds_have_equal_runs() -> None:
    played = []
    for _ in range(2):
        simulation, watched = run(text(events=FAULTS[:3]), 5)
        played.append((simulation.world.steps, watched.restored))
    assert played[0] == played[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("protocol: streams", "protocol: consumer"), "cannot use the protocol consumer"),
        (("reads: words", "reads: wrds"), "writes 'words', which no subtopology reads"),
        (("{writes: words}", "{writes: lists}"), "writes 'lists', which no subtopology reads"),
        (("{writes: words}", "{}"), "reads 'words', which no subtopology writes"),
        (("{writes: words}", "{writes: words, sources: other}"), "which is not among the topics"),
        (("revive: 5s", "commit: after"), "which has no commit: say processing_guarantee"),
        (("standby_replicas: 1", "standby_replicas: 3"), "standby_replicas"),
        (("    streams:\n", "    unknown:\n"), "unknown"),
        (("- {at: 40s, crash", "- {at: 30s, enforce: {who: counts-1}}\n- {at: 40s, crash"), "enforce has no effect"),
    ],
)
def test_mistakes_about_applications_are_explained(change: tuple[str, str], message: str) -> None:
    assert change[0] in text()
    with pytest.raises(BadScenario) as problem:
        scenario_from(text().replace(*change))
    assert message in str(problem.value)
