"""Consume, transform, produce in the laboratory: what comes out is compared with what went in, record for record."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.producer import sequences
from rejoin.coordinator.core.fetch import reading
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.partitions import list_offsets, producer_state
from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
from rejoin.coordinator.core.transactions import shard
from rejoin.coordinator.core.transactions.marker_writer import MarkerWriter
from rejoin.coordinator.core.transactions.markers import TransactionMarkers
from rejoin.coordinator.core.transactions.metadata import TransactionMetadata
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


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("modes") / "journal.jsonl"


@pytest.fixture(scope="module")
def modes(journal: Path) -> Summary:
    _, summary = play(read_scenario(GALLERY / "consume_transform_produce.yaml"), journal=journal)
    assert summary.core_failures == 0
    return summary


def test_with_transactions_each_record_comes_out_once_and_in_order(modes: Summary) -> None:
    found = modes.readers["reads-transaction"]
    assert found.read == found.went_in == 640
    assert found.twice == found.lost == found.out_of_order == found.aborted == 0
    assert modes.transactions["transaction"].aborted > 0


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


def test_a_reader_of_uncommitted_records_gets_those_of_aborted_transactions(modes: Summary) -> None:
    found = modes.readers["reads-transaction-uncommitted"]
    assert found.aborted == found.twice > 20
    assert found.read == found.went_in + found.aborted


def test_committing_before_the_work_loses_and_never_repeats(modes: Summary) -> None:
    found = modes.readers["reads-before"]
    assert found.lost > 40
    assert found.twice == 0
    assert found.read + found.lost == found.went_in


def test_committing_after_the_work_repeats_and_never_loses(modes: Summary) -> None:
    for name in ("reads-after", "reads-auto"):
        found = modes.readers[name]
        assert found.twice > 20
        assert found.lost == 0


def test_the_summary_has_the_numbers_of_readers_and_transactions(modes: Summary) -> None:
    lines = show(modes)
    reader, transactions = modes.readers["reads-transaction-uncommitted"], modes.transactions["transaction"]
    assert "  records that went in       640" in lines
    assert f"    of aborted transactions  {reader.aborted}" in lines
    assert f"  transactions               {transactions.begun}" in lines


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


# --- findings that others have published

one_process = pytest.mark.xdist_group("findings")
"""Each finding is played once."""


@cache
def finding(name: str, *changes: tuple[str, str]) -> Summary:
    """A scenario of the gallery, or what becomes of it with other settings."""
    text = (GALLERY / f"{name}.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    _, summary = play(scenario_from(text))
    assert summary.core_failures == 0
    return summary


def counts(summary: Summary, reader: str = "ledger") -> tuple[int, int, int]:
    """How many records went in, how many were read, and how many of these are copies."""
    found = summary.readers[reader]
    assert found.lost == found.out_of_order == 0
    return found.went_in, found.read, found.twice


@one_process
def test_a_delayed_commit_ends_a_later_transaction_before_version_2() -> None:
    name = "delayed_end_of_a_transaction"
    before = finding(name)
    assert counts(before) == (200, 206, 6)
    assert before.transactions["pay"].fenced == 1
    now = finding(name, ("emulator.transaction.version: 1", "emulator.transaction.version: 2"))
    assert counts(now) == (200, 200, 0)
    assert now.transactions["pay"].fenced == 0


@one_process
def test_a_hanging_transaction_stops_readers_of_committed_records() -> None:
    name = "hanging_transaction"
    hangs = finding(name)
    assert counts(hangs) == (240, 53, 0)
    assert hangs.readers["ledger"].unread == 187
    assert counts(hangs, "audit") == (240, 242, 2)
    verified = finding(name, (", transaction.partition.verification.enable: false", ""))
    assert counts(verified) == (240, 240, 0)
    version_2 = finding(name, ("emulator.transaction.version: 1, ", "emulator.transaction.version: 2, "))
    assert counts(version_2) == (240, 240, 0)


@one_process
def test_a_zombie_with_the_same_transactional_id_is_fenced() -> None:
    name = "zombie_with_the_same_transactional_id"
    fenced = finding(name)
    assert counts(fenced) == (300, 300, 0)
    assert fenced.transactions["pay"].fenced == 1
    assert counts(finding(name, ("commit: transaction", "commit: after"))) == (300, 304, 4)


@one_process
def test_records_of_aborted_transactions_are_read_by_default() -> None:
    summary = finding("aborted_records_are_read")
    assert summary.transactions["pay"].aborted == 15
    assert counts(summary) == (400, 400, 0)
    assert counts(summary, "dashboard") == (400, 473, 73)
    assert summary.readers["dashboard"].aborted == 73


@one_process
def test_who_fences_a_process_that_goes_on_after_its_partitions_have_moved() -> None:
    summary = finding("transactional_id_per_process_or_partition")
    assert counts(summary, "reads-process") == (720, 812, 92)
    assert counts(summary, "reads-partition") == counts(summary, "reads-generation") == (720, 720, 0)
    started = {name: each.initialised for name, each in summary.transactions.items()}
    assert started == {"process": 2, "partition": 8, "generation": 2}


@one_process
def test_a_timeout_shorter_than_the_backlog_of_a_rebalance_stops_half_of_a_group() -> None:
    summary = finding("transaction_timeout_shorter_than_a_rebalance")
    assert counts(summary, "reads-short") == (800, 251, 0)
    assert summary.transactions["short"].aborted == 6
    assert summary.transactions["short"].handled_again == 1_003
    assert counts(summary, "reads-long") == (800, 800, 0)
    assert summary.transactions["long"].handled_again == 0


@one_process
def test_what_a_handler_does_outside_kafka_is_done_more_than_once() -> None:
    summary = finding("exactly_once_ends_at_the_broker")
    assert counts(summary) == (640, 640, 0)
    assert summary.transactions["pay"].handled == 659
    assert summary.transactions["pay"].handled_again == 19


SOURCES = {
    "delayed_end_of_a_transaction": ("KIP-890",),
    "hanging_transaction": ("KIP-890", "KAFKA-14402"),
    "zombie_with_the_same_transactional_id": ("KIP-98",),
    "aborted_records_are_read": ("KIP-98",),
    "transactional_id_per_process_or_partition": ("KIP-447",),
    "transaction_timeout_shorter_than_a_rebalance": ("KIP-98", "KIP-447"),
    "exactly_once_ends_at_the_broker": ("KIP-98",),
}
"""The findings, and where each was described."""


@pytest.mark.parametrize("name", SOURCES)
def test_the_answer_of_a_finding_names_where_it_was_described(name: str) -> None:
    described = read_scenario(GALLERY / f"{name}.yaml").answer.partition("Described ")[2].partition(";")[0]
    assert tuple(re.findall(r"KIP-\d+|KAFKA-\d+", described)) == SOURCES[name]


@one_process
def test_the_table_of_findings_has_these_numbers(request: pytest.FixtureRequest) -> None:
    rows = [(f"`{name}` ({', '.join(SOURCES[name])})", *cells) for name, cells in rows_of_findings().items()]
    head = ("scenario", "what happens", "what ends it")
    rewrite = request.config.getoption("--rewrite")
    check_table(ROOT / "docs" / "laboratory.md", "### Findings of others", rows_of(head, rows), rewrite=rewrite)


@one_process
@pytest.mark.parametrize("name", SOURCES)
def test_the_answer_of_a_finding_has_the_numbers_of_the_table(name: str) -> None:
    answer = read_scenario(GALLERY / f"{name}.yaml").answer
    happens, _ = rows_of_findings()[name]
    assert set(re.findall(r"\d+", happens)) <= set(re.findall(r"\d+", answer))


def rows_of_findings() -> dict[str, tuple[str, str]]:
    """What happens in each finding, and what ends it."""
    found = {name: finding(name) for name in SOURCES}
    late, hangs, _, aborted, ids, timeout, mails = found.values()
    zombie = finding("zombie_with_the_same_transactional_id", ("commit: transaction", "commit: after"))
    (went_in, _, twice), (_, came_out, _) = counts(ids, "reads-process"), counts(timeout, "reads-short")
    by_partition, by_process = (ids.transactions[each].initialised for each in ("partition", "process"))
    happens = (
        "a late EndTxn commits part of the next transaction: "
        f"{counts(late)[2]} of {counts(late)[0]} records come out twice",
        "a late Produce opens a transaction that has no coordinator: "
        f"{hangs.readers['ledger'].unread} of {counts(hangs)[0]} records stay unread",
        f"with the id the zombie is fenced; without it {counts(zombie)[1]} records come out for {counts(zombie)[0]}",
        f"{aborted.readers['dashboard'].aborted} records of aborted transactions are read, "
        f"for {counts(aborted)[0]} that went in",
        f"an id for each process fences no zombie: {twice} of {went_in} records twice; "
        f"an id for each partition starts {by_partition} producers instead of {by_process}",
        f"the backlog of a rebalance never fits into a transaction: {came_out} of {counts(timeout, 'reads-short')[0]} "
        "records come out",
        f"{counts(mails)[1]} records come out once, and {mails.transactions['pay'].handled} e-mails were sent",
    )
    ends = (
        "`transaction.version` 2",
        "`transaction.partition.verification.enable`, or `transaction.version` 2",
        "the same `transactional.id` after a restart",
        "`isolation.level=read_committed`",
        "the consumer's group metadata in `sendOffsetsToTransaction`",
        "a longer `transaction.timeout.ms`, or a lower `max.poll.records`",
        "ids that the e-mail service knows, or sending from what is committed",
    )
    return dict(zip(SOURCES, zip(happens, ends, strict=True), strict=True))


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

SEEDS = int(os.environ.get("REJOIN_SEARCH_SEEDS", "40")) * 5
MUTATION_SEEDS = 60
"""So many seeds at the most are played until a broken rule is found."""


@pytest.mark.parametrize("start", range(0, SEEDS, 50))
def test_nothing_is_found_in_transactions_as_they_are(start: int) -> None:
    report = search_seeds(start, min(SEEDS, start + 50), schedule="transactions", shrink=False)
    assert report.failure is None, report.failure.report()
    assert report.faults > 100


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
    check, verify, error = ProducerStateManager.check, ProducerStateManager.check_transaction, shard._producer_error

    def current(self: ProducerStateManager, header: BatchHeader) -> BatchHeader:
        entry = self.entries.get(header.producer_id)
        return header if entry is None else header._replace(producer_epoch=max(entry.epoch, header.producer_epoch))

    def any_epoch(metadata: TransactionMetadata, producer: shard.TxnProducer) -> ErrorCode:
        found = error(metadata, producer)
        return ErrorCode.NONE if found is ErrorCode.PRODUCER_FENCED else found

    patch.setattr(ProducerStateManager, "check", lambda self, header: check(self, current(self, header)))
    patch.setattr(
        ProducerStateManager,
        "check_transaction",
        lambda self, header, guard, *, verifies: verify(self, current(self, header), guard, verifies=verifies),
    )
    patch.setattr(shard, "_producer_error", any_epoch)


def markers_are_sent_once(patch: pytest.MonkeyPatch) -> None:
    """A partition whose leader is away gets none."""
    right = TransactionMarkers._go_on

    def wrong(self: TransactionMarkers, ending: Any) -> None:
        ending.left.clear()
        right(self, ending)

    patch.setattr(TransactionMarkers, "_go_on", wrong)


def a_new_coordinator_forgets_what_was_decided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shard, "IS_DECIDED", frozenset())


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
    (the_marker_of_offsets_is_an_abort, "a_transaction_is_visible_in_part", 0),
    (an_abort_is_a_commit_for_records, "a_transaction_is_visible_in_part", 0),
    (a_reader_is_not_sent_what_was_aborted, "a_record_of_an_aborted_transaction_is_read", 0),
    (a_reader_skips_nothing, "a_record_of_an_aborted_transaction_is_read", 0),
    (one_partition_of_a_transaction_is_aborted, "a_transaction_is_read_before_it_is_whole", 0),
    (listed_offsets_end_at_the_high_watermark, "a_listed_end_passes_an_open_transaction", 0),
    (the_last_stable_offset_is_the_high_watermark, "a_last_stable_offset_passes_an_open_transaction", 0),
    (epochs_of_producers_are_not_compared, "a_fenced_producers_record_is_visible", 23),
    (markers_are_sent_once, "a_transaction_never_ends", 168),
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
