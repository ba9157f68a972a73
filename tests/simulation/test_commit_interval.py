"""Transactions that take in several polls, in the laboratory: when they end, and what is done again."""

from __future__ import annotations

import re

import pytest

from rejoin.simulation.output.summary import Summary
from rejoin.simulation.output.transformed_records import ReaderSummary, TransactionSummary
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import BadScenario, scenario_from

SCENARIO = """horizon: 1m
topics:
  orders: {partitions: 3, records_per_second: 5, until: 40s}
  payments: {partitions: 1}
groups:
  pay:
    topics: orders
    consumers: 2
    assignor: range
    commit: transaction
    session_timeout: 6s
    revive: 2s
    transform: {to: payments, commit_interval: 10s}
readers:
  ledger: {topics: payments, isolation: read_committed}
coordinator: {settings: {group.consumer.min.session.timeout.ms: 6000}}
events: []
"""
RECORDS = 600
COOPERATIVE = ("assignor: range", "assignor: cooperative-sticky")
CONSUMER_PROTOCOL = (
    "assignor: range\n    commit: transaction\n    session_timeout: 6s",
    "protocol: consumer\n    commit: transaction\n    settings: {consumer.session.timeout.ms: 6000}",
)
BY_PARTITION = ("10s}", "10s, transactional_id: partition}")


def played(events: str, *changes: tuple[str, str]) -> tuple[ReaderSummary, TransactionSummary]:
    text = SCENARIO
    for old, new in (*changes, ("events: []", f"events: [{events}]")):
        assert old in text
        text = text.replace(old, new)
    summary: Summary
    _, summary = play(scenario_from(text))
    assert summary.core_failures == 0
    return summary.readers["ledger"], summary.transactions["pay"]


def check_once(reader: ReaderSummary) -> None:
    """Each record came out once, in order."""
    assert reader.read == reader.went_in == RECORDS
    assert reader.twice == reader.lost == reader.out_of_order == reader.aborted == 0


@pytest.mark.parametrize("change", [(), (COOPERATIVE,), (CONSUMER_PROTOCOL,), (BY_PARTITION,)])
def test_it_is_committed_before_partitions_are_revoked_and_before_its_process_stops(
    change: tuple[tuple[str, str], ...],
) -> None:
    reader, pay = played("{at: 22s, scale: {group: pay, to: 3}}, {at: 30s, stop: {who: pay-1, down: 10m}}", *change)
    check_once(reader)
    assert pay.committed == pay.begun
    assert pay.handled == RECORDS, "nothing is done again"


@pytest.mark.parametrize("change", [(), (COOPERATIVE,), (CONSUMER_PROTOCOL,)])
def test_it_is_aborted_where_its_partitions_are_lost(change: tuple[tuple[str, str], ...]) -> None:
    reader, pay = played("{at: 22s, pause: {who: pay-1, for: 15s}}", *change)
    check_once(reader)
    assert (pay.aborted, pay.committed) == (1, pay.begun - 1)
    assert pay.handled_again > 50, "all that it took in is done again"


def test_a_handler_that_holds_it_open_is_waited_for() -> None:
    """Its heartbeats go on, so its partitions stay its own; the transaction ends with the next poll."""
    reader, pay = played("{at: 22s, stuck: {who: pay-1, for: 15s}}")
    check_once(reader)
    assert pay.committed == pay.begun
    assert reader.longest_delay > 20_000


def test_what_its_user_aborts_is_read_again_from_its_beginning() -> None:
    reader, pay = played("", ("10s}", "3s, aborts: 0.3}"), ("horizon: 1m", "horizon: 3m"))
    check_once(reader)
    assert pay.aborted > 3
    assert pay.handled_again > 100


def test_the_coordinator_aborts_it_where_its_timeout_is_shorter() -> None:
    """Every ten seconds it looks for those that are too old. The next one is aborted as well."""
    reader, pay = played("", ("10s}", "25s, transaction_timeout: 5s}"))
    assert reader.read == pay.committed == reader.lost == 0 < pay.aborted
    assert pay.handled_again > RECORDS
    check_once(played("", ("10s}", "25s, transaction_timeout: 26s}"))[0])


def test_transactions_are_fewer_and_readers_wait_for_longer() -> None:
    found = [played("", ("10s}", f"{interval}}}")) for interval in ("0", "1s", "4s", "10s")]
    for reader, _ in found:
        check_once(reader)
    counts, delays = [pay.begun for _, pay in found], [reader.median_delay for reader, _ in found]
    assert counts == sorted(counts, reverse=True)
    assert delays == sorted(delays)
    assert counts[0] > 15 * counts[-1]
    assert delays[-1] > 10 * delays[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("10s}", "10s, records: 5}", "give one"),
        ("commit: transaction", "commit: after", "has no transactions; say 'commit: transaction', or leave it out"),
        ("10s}", "10}", "expected a length of time with its unit"),
    ],
)
def test_settings_that_do_not_fit_are_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=problem) as refused:
        scenario_from(SCENARIO.replace(old, new))
    assert re.search(r"commit_interval|line 13", str(refused.value))
