"""Consume, transform, produce in the laboratory: what comes out is compared with what went in, record for record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.producer import sequences
from rejoin.coordinator.core.fetch import reading
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.partitions import list_offsets, producer_state
from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
from rejoin.coordinator.core.transactions import producers, shard
from rejoin.coordinator.core.transactions.marker_writer import MarkerWriter
from rejoin.coordinator.core.transactions.markers import TransactionMarkers
from rejoin.coordinator.core.transactions.metadata import TransactionMetadata
from rejoin.coordinator.core.transactions.producers import TxnProducer, producer_error
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import BatchHeader
from rejoin.simulation.actors.transformers import OutputRecord
from rejoin.simulation.output.compare import compare, parse_axis
from rejoin.simulation.output.page import ChartEvents, render
from rejoin.simulation.output.summary import Summary, show
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import BadScenario, read_scenario, scenario_from
from rejoin.simulation.search.search import play_checked, search_seeds
from rejoin.simulation.search.transforming import transforming_scenario
from tests.docs.tables import check_table, rows_of
from tests.paths import GALLERY, ROOT
from tests.suite.long_runs import SEARCH_SEEDS


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("modes") / "journal.jsonl"


@pytest.fixture(scope="module")
def modes(journal: Path) -> Summary:
    _, summary = play(read_scenario(GALLERY / "consume_transform_produce.yaml"), journal=journal)
    assert summary.core_failures == 0
    return summary


@pytest.mark.xdist_group("modes of transactions")
def test_with_transactions_each_record_comes_out_once_and_in_order(modes: Summary) -> None:
    found = modes.readers["reads-transaction"]
    assert found.read == found.went_in == 640
    assert found.twice == found.lost == found.out_of_order == found.aborted == 0
    assert modes.transactions["transaction"].aborted > 0


@pytest.mark.xdist_group("modes of transactions")
def test_the_table_of_the_document_has_these_numbers(modes: Summary, request: pytest.FixtureRequest) -> None:
    names = {
        "reads-auto": "by auto-commit",
        "reads-after": "after the work",
        "reads-before": "before the work",
        "reads-transaction": "in transactions, `read_committed`",
        "reads-transaction-uncommitted": "in transactions, `read_uncommitted`",
    }
    head = ("offsets are committed", "read", "twice", "lost", "of aborted transactions")
    readers = [(shown, modes.readers[name]) for name, shown in names.items()]
    rows = [(shown, found.read, found.twice, found.lost, found.aborted) for shown, found in readers]
    rewrite = request.config.getoption("--rewrite")
    check_table(ROOT / "docs" / "laboratory.md", "## Transactions", rows_of(head, rows), rewrite=rewrite)


@pytest.mark.xdist_group("modes of transactions")
def test_a_reader_of_uncommitted_records_gets_those_of_aborted_transactions(modes: Summary) -> None:
    found = modes.readers["reads-transaction-uncommitted"]
    assert found.aborted == found.twice > 20
    assert found.read == found.went_in + found.aborted


@pytest.mark.xdist_group("modes of transactions")
def test_committing_before_the_work_loses_and_never_repeats(modes: Summary) -> None:
    found = modes.readers["reads-before"]
    assert found.lost > 40
    assert found.twice == 0
    assert found.read + found.lost == found.went_in


@pytest.mark.xdist_group("modes of transactions")
def test_committing_after_the_work_repeats_and_never_loses(modes: Summary) -> None:
    for name in ("reads-after", "reads-auto"):
        found = modes.readers[name]
        assert found.twice > 20
        assert found.lost == 0


@pytest.mark.xdist_group("modes of transactions")
def test_the_summary_has_the_numbers_of_readers_and_transactions(modes: Summary) -> None:
    lines = show(modes)
    reader, transactions = modes.readers["reads-transaction-uncommitted"], modes.transactions["transaction"]
    assert "  records that went in       640" in lines
    assert f"    of aborted transactions  {reader.aborted}" in lines
    assert f"  transactions               {transactions.begun}" in lines


@pytest.mark.xdist_group("modes of transactions")
def test_the_journal_has_the_counts_of_readers(modes: Summary, journal: Path) -> None:
    lines = [line for line in journal.read_text().splitlines() if "records_compared" in line]
    rows = {row["reader"]: row for row in map(json.loads, lines)}
    assert list(rows) == list(modes.readers)
    for name, found in modes.readers.items():
        row = rows[name]
        counts = [row[f"records_{each}"] for each in ("in", "read", "twice", "lost", "out_of_order", "aborted")]
        assert counts == [found.went_in, found.read, found.twice, found.lost, found.out_of_order, found.aborted]
        assert (row["records_unread"], row["records_to_come"]) == (found.unread, found.to_come)
        assert row["isolation_level"] == found.isolation
    assert (rows["reads-before"]["transform_groups"], rows["reads-before"]["commit_modes"]) == (["before"], ["before"])


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
    assert before.groups["pay"].out_lost == before.readers["ledger"].lost, "which a sweep can rank settings by"
    axes = [parse_axis("aborts=0.5", scenario), parse_axis("isolation=read_uncommitted,read_committed", scenario)]
    (_, uncommitted), (_, committed) = compare(scenario, axes, None)
    assert uncommitted.readers["ledger"].aborted > 50
    assert committed.readers["ledger"].aborted == committed.readers["ledger"].twice == 0


def test_bookings_of_a_transfer_are_in_two_partitions_and_count_together() -> None:
    text = SMALL.replace("payments: {partitions: 1}", "payments: {partitions: 3}")
    text = text.replace("to: payments", "to: payments, outputs: 2, keys: 7, aborts: 0.2")
    text = text.replace("readers:", "readers:\n  all: {topics: payments}").replace(
        "ledger: {topics: payments}", "ledger: {topics: payments, isolation: read_committed, end_offsets: 5s}"
    )
    simulation, summary = play(scenario_from(text), keep=True)
    ledger = summary.readers["ledger"]
    assert ledger.went_in == ledger.read == 2 * 400
    assert ledger.lost == ledger.twice == ledger.out_of_order == 0
    assert summary.readers["all"].aborted > 50
    partitions: dict[tuple[TopicPartition, int], set[int]] = {}
    for read in simulation.readers["ledger"].records:
        record = OutputRecord.of(read.value)
        partitions.setdefault((record.origin, record.offset), set()).add(read.partition.partition)
    assert {len(each) for each in partitions.values()} == {2}


def test_the_page_of_a_run_has_the_numbers_of_readers_and_transactions() -> None:
    marks = ChartEvents()
    simulation, summary = play(scenario_from(SMALL.replace("1m", "5s").replace("at: 20s", "at: 4s")), keep=True)
    text = render(simulation, summary, marks, "run", [])
    assert "<th>ledger</th>" in text
    assert "<th>records that went in</th>" in text
    assert "<th>producers initialised</th>" in text


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("to: payments", "to: bills", "line 12: group pay writes to topic 'bills', which is not under topics"),
        ("transform: {to: payments}", "retries: 1", "line 12: groups.pay.retries: there is no such key"),
        ("    transform: {to: payments}\n", "", "line 9: group pay commits in transactions and writes nothing"),
        ("partitions: 1", "partitions: 1, records_per_second: 1", "its records_per_second must be 0"),
        ("ledger: {topics: payments}", "ledger: {topics: orders}", "line 14: reader ledger reads topic 'orders'"),
        ("to: payments", "to: payments, outputs: 2", "group pay makes 2 records of one, each in another partition"),
        ("to: payments", "to: payments, aborts: 2", "groups.pay.transform.aborts: expected"),
        ("ledger:", "pay:", "readers 'pay': a group or producers have this name"),
    ],
)
def test_a_mistake_in_a_scenario_is_explained(old: str, new: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=re.escape(problem)):
        scenario_from(SMALL.replace(old, new, 1))


# --- the search

SEEDS = 2 * SEARCH_SEEDS
MUTATION_SEEDS = 60
"""So many seeds at the most are played until a broken rule is found."""


@pytest.mark.parametrize("start", range(0, SEEDS, 50))
def test_nothing_is_found_in_transactions_as_they_are(start: int) -> None:
    report = search_seeds(start, min(SEEDS, start + 50), schedule="transactions", shrink=False)
    assert report.failure is None, report.failure.report()
    assert report.faults > 5 * min(SEEDS, 50) // 2


def offsets_of_a_transaction_count_at_once(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: GroupOffsets, producer_id: int, partition: TopicPartition, value: OffsetCommitValue) -> None:
        self.store(partition, value)

    patch.setattr(GroupOffsets, "hold", wrong)


def a_reader_is_not_sent_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "_aborted", lambda *_: ())


def a_reader_skips_nothing(patch: pytest.MonkeyPatch) -> None:
    """The consumer takes records of aborted transactions for committed ones."""
    patch.setattr(FetchedBatches, "_is_skipped", lambda self, header, batch: header.is_control)


def the_last_stable_offset_is_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStateManager, "first_unstable_offset", None)


def listed_offsets_end_at_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    look_up = list_offsets.look_up
    patch.setattr(
        list_offsets,
        "look_up",
        lambda log, timestamp, end, epoch: look_up(log, timestamp, max(end, log.high_watermark), epoch),
    )


def one_partition_of_a_transaction_is_aborted(patch: pytest.MonkeyPatch) -> None:
    """One booking of a transfer is committed, and the other is not."""
    right = MarkerWriter._end_records

    def wrong(self: Any, partition: Any, marker: Any, on_end: Any) -> None:
        commits = marker.commits and partition.partition != 1
        right(self, partition, marker._replace(commits=commits), on_end)

    patch.setattr(MarkerWriter, "_end_records", wrong)


def epochs_of_producers_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Neither the coordinator nor the leaders mind an older one."""
    check, verify, error = ProducerStateManager.check, ProducerStateManager.check_transaction, producer_error

    def current(self: ProducerStateManager, header: BatchHeader) -> BatchHeader:
        entry = self.entries.get(header.producer_id)
        return header if entry is None else header._replace(producer_epoch=max(entry.epoch, header.producer_epoch))

    def any_epoch(metadata: TransactionMetadata, producer: TxnProducer) -> ErrorCode:
        found = error(metadata, producer)
        return ErrorCode.NONE if found is ErrorCode.PRODUCER_FENCED else found

    patch.setattr(ProducerStateManager, "check", lambda self, header: check(self, current(self, header)))
    patch.setattr(
        ProducerStateManager,
        "check_transaction",
        lambda self, header, guard, *, verifies: verify(self, current(self, header), guard, verifies=verifies),
    )
    patch.setattr(shard, "producer_error", any_epoch)


def markers_are_sent_once(patch: pytest.MonkeyPatch) -> None:
    """A partition whose leader is away gets none."""
    right = TransactionMarkers._go_on

    def wrong(self: TransactionMarkers, ending: Any) -> None:
        ending.left.clear()
        right(self, ending)

    patch.setattr(TransactionMarkers, "_go_on", wrong)


def a_new_coordinator_forgets_what_was_decided(patch: pytest.MonkeyPatch) -> None:
    for module in (shard, producers):
        patch.setattr(module, "IS_DECIDED", frozenset())


def batches_need_not_follow_one_another(patch: pytest.MonkeyPatch) -> None:
    """Leaders do not compare sequences, and the producer sends any number of batches of a new epoch."""
    patch.setattr(producer_state, "_follows", lambda *_: True)
    patch.setattr(sequences, "may_send", lambda *_: True)


def the_marker_of_offsets_is_an_abort(patch: pytest.MonkeyPatch) -> None:
    """Records are committed, and the offsets with them are not."""
    _end_otherwise(patch, "_end_offsets", commits=False)


def an_abort_is_a_commit_for_records(patch: pytest.MonkeyPatch) -> None:
    """Records are committed, and the offsets with them are aborted."""
    _end_otherwise(patch, "_end_records", commits=True)


def _end_otherwise(patch: pytest.MonkeyPatch, method: str, *, commits: bool) -> None:
    right = getattr(MarkerWriter, method)

    def wrong(self: Any, partition: Any, marker: Any, on_end: Any) -> None:
        right(self, partition, marker._replace(commits=commits), on_end)

    patch.setattr(MarkerWriter, method, wrong)


MUTATIONS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int]] = [
    (offsets_of_a_transaction_count_at_once, "the_log_differs_from_memory", 0),
    (the_marker_of_offsets_is_an_abort, "a_marker_was_never_decided", 0),
    (an_abort_is_a_commit_for_records, "a_marker_was_never_decided", 6),
    (a_reader_is_not_sent_what_was_aborted, "a_record_of_an_aborted_transaction_is_read", 0),
    (a_reader_skips_nothing, "a_record_of_an_aborted_transaction_is_read", 0),
    (one_partition_of_a_transaction_is_aborted, "a_transaction_is_read_before_it_is_whole", 0),
    (listed_offsets_end_at_the_high_watermark, "a_listed_end_passes_an_open_transaction", 0),
    (the_last_stable_offset_is_the_high_watermark, "a_last_stable_offset_passes_an_open_transaction", 0),
    (epochs_of_producers_are_not_compared, "a_fenced_producer_writes", 23),
    (markers_are_sent_once, "a_complete_transaction_is_open_in_a_log", 168),
    (a_new_coordinator_forgets_what_was_decided, "a_transaction_never_ends", 62),
    (batches_need_not_follow_one_another, "a_transformed_record_overtakes_another", 0),
]
"""Broken rules, the check that must find each, and the first seed to play."""


@pytest.mark.parametrize(("mutation", "check", "first"), MUTATIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_rule_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], check: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    for seed in range(first, first + MUTATION_SEEDS):
        violation = play_checked(transforming_scenario(seed)).violation
        if violation is not None:
            assert violation.check == check, f"seed {seed}: {violation}"
            return
    raise AssertionError(f"{MUTATION_SEEDS} seeds, and nothing was found")
