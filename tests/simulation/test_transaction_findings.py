"""What others have found about transactions, as scenarios of the gallery: counts, and what ends each."""

from __future__ import annotations

import re
from functools import cache

import pytest

from rejoin.protocol.units import format_duration
from rejoin.simulation.output.summary import Summary
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import read_scenario, scenario_from
from tests.docs.tables import check_table, rows_of
from tests.paths import GALLERY, ROOT
from tests.simulation.test_gallery import played

one_process = pytest.mark.xdist_group("gallery")
"""Each finding is played once, and not at all where other tests have played its scenario."""


@cache
def finding(name: str, *changes: tuple[str, str]) -> Summary:
    """A scenario of the gallery, or what becomes of it with other settings."""
    if changes:
        text = (GALLERY / f"{name}.yaml").read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        _, summary = play(scenario_from(text))
    else:
        summary = played(name).summary
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
    few = finding(
        "transaction_timeout_shorter_than_a_rebalance", ("consumers: 2", "consumers: 2\n    max_poll_records: 20")
    )
    assert counts(few, "reads-short") == (800, 800, 0)
    assert few.transactions["short"].handled_again == 0


@one_process
def test_a_transaction_that_is_open_over_a_long_rebalance_is_aborted_in_its_midst() -> None:
    summary = finding("transaction_open_over_a_rebalance")
    short, long = summary.transactions["short"], summary.transactions["long"]
    assert counts(summary, "reads-short") == counts(summary, "reads-long") == (640, 640, 0)
    assert (short.fenced, short.handled_again) == (1, 4)
    assert (long.fenced, long.handled_again) == (0, 0)
    waited = {name: group.longest_rebalance_ms // 1_000 for name, group in summary.groups.items()}
    assert waited == {"short": 32, "long": 28}, "both longer than the timeout of 15 s"


@one_process
def test_slow_markers_cost_by_transaction_and_not_by_record() -> None:
    summary = finding("slow_markers")
    assert counts(summary, "reads-one") == (640, 250, 0)
    assert counts(summary, "reads-poll") == (640, 640, 0)
    assert summary.transactions["one"].committed > summary.transactions["poll"].committed
    fast = finding("slow_markers", ("marker.delay.ms: 400", "marker.delay.ms: 0"))
    assert counts(fast, "reads-one") == (640, 640, 0), "it is the markers"


@one_process
def test_what_a_handler_does_outside_kafka_is_done_more_than_once() -> None:
    summary = finding("exactly_once_ends_at_the_broker")
    assert counts(summary) == (640, 640, 0)
    pay = summary.transactions["pay"]
    assert (pay.handled, pay.handled_again) == (679, 39)
    assert pay.handled - pay.handled_again == 640, "a service that knows ids sends no e-mail twice"
    assert counts(summary, "mailer") == (640, 640, 0)
    assert counts(summary, "hasty-mailer") == (640, 678, 38)


@one_process
def test_a_transaction_that_takes_in_several_polls_is_read_later() -> None:
    name = "transactions_over_several_polls"
    summary = finding(name)
    groups = [summary.transactions[group] for group in ("poll", "short", "long")]
    readers = [summary.readers[reader] for reader in ("reads-poll", "reads-short", "reads-long")]
    for reader in readers:
        assert counts(summary, reader.name) == (1600, 1600, 0)
    found = [
        [*(str(each.begun) for each in groups), "1600"],
        [format_duration(each.median_delay) for each in readers],
        [str(each.handled_again) for each in groups],
    ]
    answer = read_scenario(GALLERY / f"{name}.yaml").answer
    said = [re.findall(r"\d[\d.]*(?:ms|s)?\b", sentence) for sentence in re.split(r"\.\s", answer)]
    assert said[:3] == found


@one_process
def test_the_table_of_transactions_of_several_polls_has_these_numbers(request: pytest.FixtureRequest) -> None:
    summary = finding("transactions_over_several_polls")
    names = {"poll": "one poll", "short": "the polls of 2 s", "long": "the polls of 15 s"}
    head = (
        "a transaction takes in",
        "transactions",
        "done again after the crash",
        "delay of a record, median",
        "longest",
    )
    rows = [
        (
            shown,
            summary.transactions[group].begun,
            summary.transactions[group].handled_again,
            format_duration(summary.readers[f"reads-{group}"].median_delay),
            format_duration(summary.readers[f"reads-{group}"].longest_delay),
        )
        for group, shown in names.items()
    ]
    rewrite = request.config.getoption("--rewrite")
    page = ROOT / "docs" / "laboratory.md"
    check_table(page, "### Transactions of several polls", rows_of(head, rows), rewrite=rewrite)


SOURCES = {
    "delayed_end_of_a_transaction": ("KIP-890",),
    "hanging_transaction": ("KIP-890", "KAFKA-14402"),
    "zombie_with_the_same_transactional_id": ("KIP-98",),
    "aborted_records_are_read": ("KIP-98",),
    "transactional_id_per_process_or_partition": ("KIP-447",),
    "transaction_timeout_shorter_than_a_rebalance": ("KIP-98", "KIP-447"),
    "exactly_once_ends_at_the_broker": ("KIP-98",),
    "transaction_open_over_a_rebalance": ("KIP-98", "KIP-447"),
    "slow_markers": ("KIP-98", "KIP-129"),
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
    late, hangs, _, aborted, ids, timeout, mails, over, slow = found.values()
    zombie = finding("zombie_with_the_same_transactional_id", ("commit: transaction", "commit: after"))
    (went_in, _, twice), (_, came_out, _) = counts(ids, "reads-process"), counts(timeout, "reads-short")
    again = over.transactions["short"].handled_again
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
        f"the transaction is aborted while the group waits: {again} records are handled again, and the rebalance takes "
        f"{over.groups['short'].longest_rebalance_ms // 1_000} s instead of "
        f"{over.groups['long'].longest_rebalance_ms // 1_000} s",
        f"a transaction for each record waits for the markers of the one before: {counts(slow, 'reads-one')[1]} of "
        f"{counts(slow, 'reads-one')[0]} records come out in time",
    )
    ends = (
        "`transaction.version` 2",
        "`transaction.partition.verification.enable`, or `transaction.version` 2",
        "the same `transactional.id` after a restart",
        "`isolation.level=read_committed`",
        "the consumer's group metadata in `sendOffsetsToTransaction`",
        "a longer `transaction.timeout.ms`, or a lower `max.poll.records`",
        "ids that the e-mail service knows, or sending only committed records (`isolation.level=read_committed`)",
        "a `transaction.timeout.ms` longer than the longest rebalance (`max.poll.interval.ms`)",
        "more records in a transaction",
    )
    return dict(zip(SOURCES, zip(happens, ends, strict=True), strict=True))
