"""Tables, audits and findings about transactions, each with a life that makes it and one that nearly does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
from rejoin.pipeline.reading.inputs import find, must_name_groups
from rejoin.pipeline.transactions.audits import is_suspicious, violations_of
from rejoin.pipeline.transactions.findings import TransactionsOfRun, findings_of
from rejoin.pipeline.transactions.histories import COLUMNS, READ, tables_of
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.wire.record_batch import BatchHeader
from tests.paths import RECORDED
from tests.pipeline.transactions import lives
from tests.pipeline.transactions.lives import ID, RUN, RecordedNode, lines_of, rows_of

UNVERIFIED = {"transaction_partition_verification_enable": False, "emulator_transaction_version": 1}
READERS = {"t": ["orders-app"]}

Rows = list[dict[str, Any]]


def made(life: Callable[[RecordedNode], None], **settings: Any) -> dict[str, Rows]:
    """The tables of a life."""
    return made_of(rows_of(lines_of(life, **settings)))


def made_of(events: Rows) -> dict[str, Rows]:
    rows = [defaultdict(lambda: None, row) for row in events if row["event"] in READ]
    read = [{name: row[name] for name in COLUMNS} for row in rows]
    return tables_of(read, {RUN: max(row["at_ms"] for row in events)})


def found(tables: dict[str, Rows], rebalances: Rows = []) -> Rows:  # noqa: B006
    late = [row for row in tables["transactions"] if is_suspicious(row)]
    return findings_of(TransactionsOfRun(RUN, late, tables["producers"], READERS, rebalances))


def test_transactions_and_their_producer() -> None:
    tables = made(lives.healthy)
    rows = tables["transactions"]
    assert [(row["outcome"], row["ended_by"], row["open_ms"], row["markers_ms"]) for row in rows] == [
        ("committed", "client", 800, 0),
        ("committed", "client", 800, 0),
        ("aborted", "client", 800, 0),
        ("committed", "client", 800, 0),
        ("open", None, 5_000, None),
    ]
    assert {row["transactional_id"] for row in rows} == {ID}
    assert [row["producer_epoch"] for row in rows] == [0, 1, 2, 3, 4]
    assert [log["first_offset"] for row in rows for log in row["logs"]] == [0, 2, 4, 6, 8]
    (producer,) = tables["producers"]
    counts = ("transactions", "committed", "aborted", "timed_out", "fenced_out", "open", "fenced_requests")
    assert [producer[name] for name in counts] == [5, 3, 1, 0, 0, 1, 0]
    assert (producer["first_epoch"], producer["last_epoch"], producer["p50_ms"]) == (0, 4, 800)
    last = tables["stable_offsets"][-1]
    assert (last["last_stable_offset"], last["high_watermark"]) == (8, 9)


LIVES: dict[str, tuple[Callable[[RecordedNode], None], dict[str, Any], list[str], list[str]]] = {
    "healthy": (lives.healthy, {}, [], []),
    "a late batch": (lives.late_batch, UNVERIFIED, ["hanging-transaction"], ["hanging-transaction"]),
    "a late batch that is refused": (lives.refused_late_batch, {}, [], ["producer-fenced"]),
    "a shared id": (lives.shared_id, {}, [], ["transactional-id-shared"]),
    "a restart": (lives.restarted, {}, [], []),
    "a zombie": (lives.zombie, {}, [], ["producer-fenced"]),
    "a fence that a log does not know": (
        lives.unseen_fence,
        UNVERIFIED,
        ["fenced-producer-wrote"],
        ["hanging-transaction"],
    ),
    "the same with verification": (
        lives.unseen_fence,
        {"emulator_transaction_version": 1},
        [],
        ["producer-fenced"],
    ),
    "a fence that a log knows": (lives.known_fence, UNVERIFIED, [], ["producer-fenced"]),
    "too slow": (lives.too_slow, {}, [], ["transaction-timed-out"]),
    "just in time": (lives.just_in_time, {}, [], []),
    "died": (lives.died, {}, [], ["transaction-timed-out"]),
    "a long transaction": (lives.long_transaction, {}, [], ["read-committed-held-up"]),
    "a shorter one": (lives.shorter_transaction, {}, [], []),
}


@pytest.mark.parametrize("name", LIVES)
def test_each_life_has_its_violations_and_findings_and_no_others(name: str) -> None:
    life, settings, violations, findings = LIVES[name]
    tables = made(life, **settings)
    assert [row["kind"] for row in violations_of(tables["transactions"])] == violations
    assert [row["finding"] for row in found(tables)] == findings


def test_a_log_that_does_not_compare_epochs_takes_the_batch_of_a_fenced_producer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken rule of a leader, as the audit sees it."""
    check = ProducerStateManager.check

    def wrong(self: ProducerStateManager, header: BatchHeader) -> ErrorCode:
        found = check(self, header)
        return ErrorCode.NONE if found is ErrorCode.INVALID_PRODUCER_EPOCH else found

    monkeypatch.setattr(ProducerStateManager, "check", wrong)
    monkeypatch.setattr(ProducerStateManager, "is_fenced", lambda *_: False)
    tables = made(lives.known_fence, **UNVERIFIED)
    (violation,) = violations_of(tables["transactions"])
    assert (violation["kind"], violation["partition"]) == ("fenced-producer-wrote", 0)
    assert "a fenced epoch of producer" in violation["text"]


def test_a_hanging_transaction_names_who_waits_and_how_to_end_it() -> None:
    (finding,) = found(made(lives.late_batch, **UNVERIFIED))
    assert (finding["severity"], finding["setting"]) == ("high", "transaction.version")
    assert finding["title"] == "A transaction hangs on t-0, at offset 2: orders-app cannot read on"
    assert "--topic t --partition 0 --start-offset 2" in finding["advice"]
    assert (finding["groups"], finding["transactional_ids"]) == (["orders-app"], [ID])


def test_timeouts_are_distinguished_by_what_took_so_long() -> None:
    (slow,), (dead,) = found(made(lives.too_slow)), found(made(lives.died))
    assert slow["title"] == "3 transactions of payments-1 aborted after transaction.timeout.ms (10 s)"
    assert "came back and was fenced" in slow["text"]
    assert slow["advice"].startswith("set to 20000 (20 s)")
    assert "its process died" in dead["text"]
    tables = made(lives.too_slow)
    begin = tables["transactions"][0]["started_at_ms"]
    rebalance = {"group_id": "orders-app", "prepared_at_ms": begin + 1_000, "ended_at_ms": begin + 9_000}
    (finding,) = found(tables, [rebalance])
    assert "A rebalance of its group took 8 s" in finding["text"]
    assert finding["advice"].startswith("set to 20000 (20 s)")


def test_a_marker_that_never_comes_and_a_timeout_that_is_not_kept() -> None:
    rows = rows_of(lines_of(lives.just_in_time))
    prepared = next(number for number, row in enumerate(rows) if row["event"] == "transaction_prepared")
    end = {**rows[prepared], "event": "topic_created", "seq": 10_000}
    cut = rows[: prepared + 1]
    near, late = ([*cut, {**end, "at_ms": end["at_ms"] + ms}] for ms in (25_000, 200_000))
    assert [row["kind"] for row in violations_of(made_of(near)["transactions"])] == []
    (violation,) = violations_of(made_of(late)["transactions"])
    assert (violation["kind"], violation["expected"], violation["found"]) == ("stable-offset-held", 20_000, 209_900)
    assert made_of(late)["transactions"][0]["outcome"] == "preparing"
    undecided = [*rows[:prepared], {**end, "at_ms": end["at_ms"] + 200_000}]
    kinds = [row["kind"] for row in violations_of(made_of(undecided)["transactions"])]
    assert kinds == ["stable-offset-held", "timeout-not-kept"]


def test_a_journal_that_begins_in_a_transaction_shows_nothing_that_hangs() -> None:
    rows = rows_of(lines_of(lives.healthy))
    started = [number for number, row in enumerate(rows) if row["event"] == "transaction_started"]
    for begin in range(started[1], started[2]):
        tables = made_of(rows[begin:])
        assert not list(violations_of(tables["transactions"]))
        assert all(row["coordinated"] is not False for row in tables["transactions"])


def test_files_about_transactions_alone_are_read(tmp_path: Path) -> None:
    journal = tmp_path / "producers.jsonl"
    journal.write_text(lines_of(lives.healthy))
    must_name_groups(find([journal]))
    must_name_groups(find([RECORDED / "transaction-logs" / "server.log"]))
