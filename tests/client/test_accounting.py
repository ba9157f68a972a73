"""Counting what was processed twice, or never, from events; and how long processing takes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from rejoin.client.commands.account import show, table
from rejoin.client.workload.accounting import OffsetSpan, account
from rejoin.client.workload.processing_time import EXAMPLES, parse_processing_time
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import EVENT_TYPES, CommitSucceeded, PositionsFound, Range, RecordsProcessed
from rejoin.journal.reader import read_journal
from rejoin.journal.schema import JournalSchema
from rejoin.journal.writer import JournalWriter

WHO = {"client_id": "c", "group_id": "g", "group_instance_id": None, "member_id": "m", "generation": 1}


def processed(*spans: tuple[int, int], partition: int = 0) -> RecordsProcessed:
    ranges = [Range(topic="t", partition=partition, start=start, end=end) for start, end in spans]
    return RecordsProcessed.model_validate({**WHO, "ranges": ranges})


def committed(offset: int) -> CommitSucceeded:
    return CommitSucceeded.model_validate({**WHO, "kind": "sync", "positions": {"t": {0: offset}}})


def began(offset: int) -> PositionsFound:
    return PositionsFound.model_validate({**WHO, "origin": "earliest", "positions": {"t": {0: offset}}})


@pytest.mark.parametrize(
    ("events", "counts", "lost_spans"),
    [
        ([began(0), processed((0, 10)), committed(10)], (10, 0, 0), []),
        ([processed((0, 10)), processed((5, 15))], (15, 5, 0), []),
        ([processed((5, 15)), processed((0, 10))], (15, 5, 0), []),
        ([processed((0, 10)), processed((0, 10)), processed((0, 10))], (10, 20, 0), []),
        ([processed((0, 10)), processed((2, 4))], (10, 2, 0), []),
        ([began(0), processed((5, 10))], (5, 0, 5), [(0, 5)]),
        ([processed((0, 5)), processed((8, 10))], (7, 0, 3), [(5, 8)]),
        ([processed((0, 5)), committed(9)], (5, 0, 4), [(5, 9)]),
        ([began(100), processed((100, 110))], (10, 0, 0), []),
        ([began(0)], (0, 0, 0), []),
    ],
)
def test_accounts(events: list[Event], counts: tuple[int, int, int], lost_spans: list[tuple[int, int]]) -> None:
    (found,) = account(events)
    assert (found.processed, found.duplicated, found.lost) == counts
    assert found.lost_spans == [OffsetSpan(*span) for span in lost_spans]


def test_the_table_has_totals() -> None:
    text = table(account([processed((0, 10)), processed((0, 4), partition=1), committed(10)]))
    assert text.splitlines() == [
        "GROUP TOPIC PARTITION PROCESSED TWICE LOST COMMITTED",
        "g     t     0         10        0     0    10",
        "g     t     1         4         0     0    -",
        "g     (all) -         14        0     0    -",
    ]


def test_journals_are_read_back_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for node, events in (("a", [processed((0, 10)), committed(10)]), ("b", [processed((8, 12))])):
        writer = JournalWriter(tmp_path, "run", "client", node)
        for event in events:
            writer.append(event, 1)
        writer.close()
    rows = list(read_journal(tmp_path, JournalSchema(EVENT_TYPES)))
    assert [type(row.event).__name__ for row in rows] == ["RecordsProcessed", "CommitSucceeded", "RecordsProcessed"]
    assert show(tmp_path) == 0
    assert "g     t     0         12        2     0    10" in capsys.readouterr().out
    assert show(tmp_path, as_json=True) == 0
    assert '"duplicated": 2' in capsys.readouterr().out
    assert show(tmp_path / "nothing") == 2


def test_a_directory_without_journals_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(tmp_path) == 2
    assert (
        ": no journal of consumers; expected the directory that was --journal of the consumers"
        in capsys.readouterr().err
    )


def test_every_event_can_be_written_and_read() -> None:
    assert len({event.name for event in EVENT_TYPES}) == len(EVENT_TYPES)
    assert JournalSchema(EVENT_TYPES).json_schema()


@pytest.mark.parametrize(
    ("text", "records", "expected"),
    [("0", 10, 0.0), ("2", 10, 20.0), ("250us", 4, 1.0), ("1s/poll", 10, 1_000.0), ("2ms/record", 3, 6.0)],
)
def test_constant_processing_times(text: str, records: int, expected: float) -> None:
    assert parse_processing_time(text).of(records, Random(1)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("exp(5ms)", 4_000, 6_000),
        ("uniform(0,10)", 4_500, 5_500),
        ("normal(5,1)", 4_800, 5_200),
        ("pareto(1,3)", 1_000, 2_000),
    ],
)
def test_distributions_of_processing_times(text: str, low: float, high: float) -> None:
    drawn = parse_processing_time(text)
    assert low < drawn.of(1_000, Random(1)) < high
    assert drawn.of(1_000, Random(2)) == drawn.of(1_000, Random(2))


@pytest.mark.parametrize(
    "text",
    ["", "x", "1w", "exp()", "uniform(1)", "gamma(1)", "1/day", "exp(x)", "uniform(9,1)", "pareto(2,0)", "9" * 400],
)
def test_processing_times_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_processing_time(text)


@pytest.mark.parametrize("text", ["exp()", "uniform(1)", "uniform(9,1)", "normal(5)", "pareto(2,0)"])
def test_errors_about_distributions_suggest_times_with_units(text: str) -> None:
    with pytest.raises(ValueError, match="expected") as problem:
        parse_processing_time(text)
    assert str(problem.value).endswith(f" as in {EXAMPLES[text.partition('(')[0]]}")
