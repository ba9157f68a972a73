"""The closing table: each rebalance with its cause, how long it took, what moved and which partitions were not read."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rejoin.demo.show import short
from rejoin.journal.envelope import JournalRow
from rejoin.journal.events.client import PartitionsLost, PartitionsRevoked, RecordsProcessed
from rejoin.journal.events.coordinator import RebalanceCompleted
from rejoin.journal.formatting import cause_text

CAPTION = (
    "not read: partition-seconds from the last record before to the first one after. The consumer-seconds stopped of a "
    "report end sooner, when consumers have their partitions."
)
LINGER_MS = 1_000
"""Consumers learn of a generation a moment after the coordinator has completed it."""


@dataclass(frozen=True)
class Standstill:
    """The partitions that were not read during a rebalance, and for how long in all."""

    partitions: int
    stopped_ms: int


def standstill(done: RebalanceCompleted, ended_at: int, client_rows: list[JournalRow]) -> Standstill:
    """Each partition that changed hands or was given up for a while: from its last record before to its first after."""
    given_up = _given_up(done, ended_at, client_rows)
    last: dict[tuple[str, int], int] = {}
    first: dict[tuple[str, int], int] = {}
    over = max((row.envelope.at_ms for row in client_rows), default=ended_at)
    for row in client_rows:
        event, at = row.event, row.envelope.at_ms
        if not isinstance(event, RecordsProcessed) or event.group_id != done.group_id:
            continue
        for taken in event.ranges:
            partition = (taken.topic, taken.partition)
            if partition not in given_up:
                continue
            if at <= given_up[partition]:
                last[partition] = at
            else:
                first.setdefault(partition, at)
    stopped = sum(first.get(each, over) - last.get(each, since) for each, since in given_up.items())
    return Standstill(len(given_up), stopped)


def _given_up(done: RebalanceCompleted, ended_at: int, client_rows: list[JournalRow]) -> dict[tuple[str, int], int]:
    """The partitions that had no reader for a while, and since when; a silent member's since it was removed."""
    found: dict[tuple[str, int], int] = {}
    for row in client_rows:
        event, at = row.event, row.envelope.at_ms
        if not ended_at - done.rebalance_ms <= at <= ended_at + LINGER_MS:
            continue
        if isinstance(event, (PartitionsRevoked, PartitionsLost)) and event.group_id == done.group_id:
            for topic, indexes in event.partitions.items():
                found |= {(topic, index): at for index in indexes}
    if done.cause.cause == "session-expiry":
        for topic, indexes in done.owned_before.get(done.cause.member_id or "", {}).items():
            found |= {(topic, index): ended_at - done.rebalance_ms for index in indexes}
    return found


def closing_table(completed: list[JournalRow], client_rows: list[JournalRow]) -> Table:
    """One row for each rebalance of the demo, in order."""
    table = Table(
        title="Every rebalance, and what it cost",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        caption=CAPTION,
        caption_justify="left",
    )
    table.add_column("group")
    table.add_column("gen.", justify="right")
    table.add_column("cause", min_width=16, overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("moved", justify="right")
    table.add_column("taken over", justify="right", max_width=6)
    table.add_column("not read", justify="right", min_width=15)
    for row in sorted(completed, key=lambda row: getattr(row.event, "group_id", "")):
        done = row.event
        assert isinstance(done, RebalanceCompleted)
        still = standstill(done, row.envelope.at_ms, client_rows)
        before = sum(1 for topics in done.owned_before.values() if topics)
        stopped = "-"
        if before:
            stopped = f"{still.partitions} partitions"
        if still.partitions:
            stopped += f", {still.stopped_ms / 1_000:,.1f} s in all"
        table.add_row(
            done.group_id,
            str(done.generation),
            short(cause_text(done.cause.model_copy(update={"client_reason": None}))),
            f"{done.rebalance_ms:,} ms",
            str(done.moved),
            str(done.regained) if before else "-",
            stopped,
            style="" if before else "dim",
        )
    return table
