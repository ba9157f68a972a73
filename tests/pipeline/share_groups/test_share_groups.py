"""Tables and findings about share groups, each with a life that makes it and one that nearly does."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.share_groups.findings import share_findings
from rejoin.pipeline.share_groups.histories import COLUMNS, READ, tables_of
from rejoin.pipeline.share_groups.schemas import OF_SHARE_GROUPS
from rejoin.pipeline.why.events import events_of, findings_of, rebalances_of
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.coordinator.core.share.test_sharing import REJECT
from tests.pipeline.share_groups import lives
from tests.pipeline.share_groups.lives import GROUP, RUN, RecordedShares, lines_of
from tests.pipeline.transactions.lives import rows_of

Rows = list[dict[str, Any]]
Life = Callable[[RecordedShares], None]


def made(life: Life, configs: dict[str, str] | None = None, **settings: Any) -> dict[str, Rows]:
    """The tables of a life."""
    return made_of(rows_of(lines_of(life, configs, **settings)))


def made_of(events: Rows) -> dict[str, Rows]:
    rows = [defaultdict(lambda: None, row) for row in events if row["event"] in READ]
    read = [{name: row[name] for name in COLUMNS} for row in rows]
    return tables_of(read, {RUN: max(row["at_ms"] for row in events)})


def found(tables: dict[str, Rows]) -> Rows:
    return share_findings(tables)


def ends(tables: dict[str, Rows]) -> list[tuple[int, int, str, int, str | None, int | None]]:
    """First and last offset, member, delivery count, end and length of each delivery."""
    names = ("first_offset", "last_offset", "member_id", "delivery_count", "end", "held_ms")
    return [tuple(row[name] for name in names) for row in tables["share_deliveries"]]


def test_a_row_has_the_columns_of_its_table() -> None:
    tables = made(lives.poison)
    assert all(tables.values())
    for name, rows in tables.items():
        assert {frozenset(row) for row in rows} == {frozenset(OF_SHARE_GROUPS[name].names)}, name


def test_a_delivery_is_a_run_of_records_with_one_end() -> None:
    tables = made(lives.healthy)
    assert ends(tables) == [
        (0, 2, "a", 1, "accept", 800),
        (3, 5, "b", 1, "accept", 800),
        (6, 6, "a", 1, "release", 1_000),
        (6, 6, "b", 2, "accept", 1_000),
    ]
    (sums,) = tables["share_partitions"]
    counts = ("acquired", "accepted", "released", "rejected", "expired", "archived", "most_deliveries", "in_flight")
    assert [sums[name] for name in counts] == [8, 7, 1, 0, 0, 0, 2, 0]
    assert (sums["start_offset"], sums["standing_ms"]) == (7, None)


LIVES: dict[str, tuple[Life, dict[str, str], list[str]]] = {
    "healthy": (lives.healthy, {}, []),
    "a slow handler": (lives.slow_handler, {}, ["record-locks-expired"]),
    "a slow handler with a longer lock": (lives.slow_handler, {"share.record.lock.duration.ms": "60000"}, []),
    "a slow handler that renews": (lives.renewing_handler, {}, []),
    "nothing is acknowledged": (lives.never_acknowledges, {}, ["records-not-acknowledged"]),
    "a member that dies": (lives.dies, {}, ["record-holder-gone"]),
    "poison": (lives.poison, {"errors.deadletterqueue.topic.name": "dlq.jobs"}, ["poison-record"]),
    "poison that is rejected": (lambda node: lives.poison(node, REJECT), {}, ["poison-record"]),
    "a handler that fails on everything": (lives.failing_handler, {}, []),
    "a member that holds the window": (lives.held_window, {}, ["share-window-held"]),
    "a member that holds it for a short time": (lambda node: lives.held_window(node, 2), {}, []),
    "records that no member fetches": (lives.unread_window, {}, ["share-start-not-moving"]),
    "a full window": (lives.full_window, {"share.partition.max.record.locks": "100"}, ["share-window-full"]),
    "a window that is not full": (lives.full_window, {}, []),
    "records before the group": (lives.skipped, {"share.auto.offset.reset": "latest"}, ["share-reset-skipped-records"]),
    "records before a group from the earliest": (lives.skipped, {}, []),
    "not initialised": (lives.not_initialized, {}, ["share-partitions-not-initialized"]),
    "a share coordinator that stores nothing": (
        lives.not_stored,
        {},
        ["share-state-not-stored"],
    ),
    "a dead-letter topic that is missing": (
        lives.refused_letters,
        {"errors.deadletterqueue.topic.name": "dlq.missing"},
        ["poison-record", "dead-letters-refused"],
    ),
    "a dead-letter topic": (
        lives.refused_letters,
        {"errors.deadletterqueue.topic.name": "dlq.jobs"},
        ["poison-record"],
    ),
}


@pytest.mark.parametrize("name", LIVES)
def test_each_life_has_its_findings_and_no_others(name: str) -> None:
    life, configs, findings = LIVES[name]
    rows = found(made(life, configs))
    assert [row["finding"] for row in rows] == findings
    assert {row["group_id"] for row in rows} <= {GROUP}
    assert all(row["evidence"] for row in rows)


PLAYED = """
horizon: 8m
topics:
  jobs: {partitions: 4, records_per_second: 1}
  other: {partitions: 1, records_per_second: 1}
groups:
  workers: {protocol: share, topics: jobs, consumers: 3}
coordinator: {nodes: 2}
events:
  - {at: 1m, crash: {who: workers-1, down: 5s}}
  - {at: 2m, grow: {topic: jobs, to: 6}}
  - {at: 3m, pause: {who: workers-2, for: 80s}}
  - {at: 5m, subscribe: {who: workers-3, topics: [other]}}
  - {at: 6m, failover: {group: workers}}
"""
OF_OTHER_GROUPS = re.compile(
    r"group\.instance\.id|generation|commit|assignor|rebalanc|no owner|consumer protocol|lost\b"
)


def test_findings_about_members_of_share_groups_have_no_words_of_other_groups(tmp_path: Path) -> None:
    play(scenario_from(PLAYED), journal=tmp_path / "run.jsonl")
    events, _ = events_of((tmp_path / "run.jsonl").read_text().splitlines())
    rows = findings_of("workers", events, rebalances_of("workers", events), events[-1]["at_ms"])
    about_members = {
        *("died-without-leaving", "session-too-short", "topic-growth", "two-applications", "coordinator-failover"),
    }
    assert about_members <= {row["finding"] for row in rows}
    for row in rows:
        text = " ".join(str(row[name]) for name in ("title", "text", "advice", "setting"))
        assert not OF_OTHER_GROUPS.search(text), text
