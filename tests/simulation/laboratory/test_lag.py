"""The lag of a group in any instant of a run, and its commits."""

from __future__ import annotations

from rejoin.simulation.laboratory.lag import lag_between
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.scenario.reading import scenario_from

SCENARIO = """\
horizon: 60s
topics:
  orders: {partitions: 2, records_per_second: 10}
groups:
  app: {topics: orders, consumers: 1, session_timeout: 10s}
  late: {topics: orders, consumers: 0, reset: latest}
  never: {topics: orders, consumers: 0}
  sharing: {protocol: share, topics: orders, consumers: 1}
events:
  - {at: 20s, crash: {who: app-1, down: 20s}}
"""


def _played() -> LaboratoryRun:
    run = LaboratoryRun(scenario_from(SCENARIO))
    for _ in run.play():
        pass
    return run


def test_lag_grows_while_nobody_consumes_and_goes_with_the_commit_after() -> None:
    run = _played()

    found = lag_between(run.simulation, run.commits, run.shared, "app", 0, 60_000, 61)

    records = dict(zip(found["at"], found["records"], strict=True))
    assert records[19_000] <= 120  # auto.commit.interval.ms is 5 s, and two partitions get 20 records a second
    assert records[39_000] - records[24_000] == 300
    assert records[55_000] <= 120
    oldest = dict(zip(found["at"], found["oldest"], strict=True))
    assert 15_000 <= oldest[39_000] - oldest[24_000] <= 15_100


def test_commits_are_those_of_the_group_in_the_order_of_its_partitions() -> None:
    run = _played()

    commits = lag_between(run.simulation, run.commits, run.shared, "app", 0, 60_000, 2)["commits"]

    of_first = [(at, offset) for at, topic, index, offset in commits if (topic, index) == ("orders", 0)]
    assert of_first == sorted(of_first)
    assert not [at for at, _ in of_first if 21_000 < at < 40_000]


def test_a_partition_without_a_commit_counts_from_its_beginning_unless_the_group_begins_at_the_end() -> None:
    run = _played()

    assert lag_between(run.simulation, run.commits, run.shared, "never", 0, 60_000, 2)["records"] == [0, 1_200]
    assert lag_between(run.simulation, run.commits, run.shared, "late", 0, 60_000, 2)["records"] == [0, 0]


def test_lag_of_a_share_group_is_what_it_has_neither_accepted_nor_archived() -> None:
    scenario = scenario_from(
        """\
horizon: 60s
topics: {jobs: {partitions: 2}}
producers: {shop: {topics: jobs, records_per_second: 20, until: 40s}}
groups:
  workers: {protocol: share, topics: jobs, consumers: 1, max_poll_records: 1, processing: 100ms}
events:
  - {at: 20s, pause: {who: workers-1, for: 10s}}
"""
    )
    run = LaboratoryRun(scenario)
    for _ in run.play():
        pass

    found = lag_between(run.simulation, run.commits, run.shared, "workers", 0, 60_000, 61)

    records = dict(zip(found["at"], found["records"], strict=True))
    oldest = dict(zip(found["at"], found["oldest"], strict=True))
    assert records[29_000] - records[21_000] == 160
    assert oldest[29_000] - oldest[21_000] == 8_000
    assert run.summary is not None
    assert records[60_000] == run.summary.groups["workers"].behind > 0
    assert run.summary.groups["workers"].late > 0
    assert found["commits"] == []
