"""Consume, transform, produce in the laboratory: what comes out is compared with what went in, record for record."""

from __future__ import annotations

import re

import pytest

from rejoin.simulation.output.compare import compare, parse_axis
from rejoin.simulation.output.summary import Summary, show
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import BadScenario, read_scenario, scenario_from
from tests.paths import GALLERY


@pytest.fixture(scope="module")
def modes() -> Summary:
    _, summary = play(read_scenario(GALLERY / "consume_transform_produce.yaml"))
    assert summary.core_failures == 0
    return summary


def test_with_transactions_each_record_comes_out_once_and_in_order(modes: Summary) -> None:
    found = modes.readers["reads-transaction"]
    assert found.read == found.went_in == 640
    assert found.twice == found.lost == found.out_of_order == found.aborted == 0
    assert modes.transactions["transaction"].aborted > 0


def test_a_reader_of_uncommitted_records_gets_those_of_aborted_transactions(modes: Summary) -> None:
    found = modes.readers["reads-transaction-uncommitted"]
    assert found.read == 690
    assert found.aborted == found.twice == 50


def test_committing_before_the_work_loses_and_never_repeats(modes: Summary) -> None:
    found = modes.readers["reads-before"]
    assert found.lost == 57
    assert found.twice == 0
    assert found.read + found.lost == found.went_in


def test_committing_after_the_work_repeats_and_never_loses(modes: Summary) -> None:
    for name, twice in (("reads-after", 48), ("reads-auto", 135)):
        found = modes.readers[name]
        assert found.twice == twice
        assert found.lost == 0


def test_the_summary_has_the_numbers_of_readers_and_transactions(modes: Summary) -> None:
    lines = show(modes)
    assert "  records that went in       640" in lines
    assert "    of aborted transactions  50" in lines
    assert "  transactions               234" in lines


SMALL = """horizon: 1m
topics:
  orders: {partitions: 2, records_per_second: 5, until: 40s}
  payments: {partitions: 1}
groups:
  pay:
    topics: orders
    consumers: 2
    commit: transaction
    processing: 150ms
    session_timeout: 6s
    transform: {to: payments}
readers:
  ledger: {topics: payments}
events:
  - {at: 20s, crash: {who: pay-1, down: 1s}}
"""


def test_variants_are_compared_by_keys_of_groups_transforms_and_readers() -> None:
    scenario = scenario_from(SMALL)
    axes = [parse_axis("commit=before,transaction", scenario)]
    (_, before), (_, transaction) = compare(scenario, axes, None)
    assert before.readers["ledger"].lost > 0 == before.readers["ledger"].twice
    assert transaction.readers["ledger"].lost == 0
    axes = [parse_axis("aborts=0.5", scenario), parse_axis("isolation=read_uncommitted,read_committed", scenario)]
    (_, uncommitted), (_, committed) = compare(scenario, axes, None)
    assert uncommitted.readers["ledger"].aborted > 50
    assert committed.readers["ledger"].aborted == committed.readers["ledger"].twice == 0


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("to: payments", "to: bills", "line 12: group pay writes to topic 'bills', which is not under topics"),
        ("transform: {to: payments}", "retries: 1", "line 12: groups.pay.retries: there is no such key"),
        ("    transform: {to: payments}\n", "", "line 9: group pay commits in transactions and writes nothing"),
        ("partitions: 1", "partitions: 1, records_per_second: 1", "its records_per_second must be 0"),
        ("ledger: {topics: payments}", "ledger: {topics: orders}", "line 14: reader ledger reads topic 'orders'"),
        ("to: payments", "to: payments, aborts: 2", "groups.pay.transform.aborts: expected"),
        ("ledger:", "pay:", "readers 'pay': a group or producers have this name"),
    ],
)
def test_a_mistake_in_a_scenario_is_explained(old: str, new: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=re.escape(problem)):
        scenario_from(SMALL.replace(old, new, 1))
