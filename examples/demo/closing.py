"""The closing table: each rebalance with its cause, how long it took, what moved and who stood still."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from examples.demo.show import short
from rejoin.journal.envelope import JournalRow
from rejoin.journal.events.client import PartitionsAssigned, PartitionsLost, PartitionsRevoked
from rejoin.journal.events.coordinator import RebalanceCompleted
from rejoin.journal.formatting import cause_text

LINGER_MS = 1_000
"""Consumers learn of a generation a moment after the coordinator has completed it."""


@dataclass(frozen=True)
class Standstill:
    """How many consumers gave up all they had, and for how long in all."""

    consumers: int
    stopped_ms: int


def standstill(done: RebalanceCompleted, ended_at: int, client_rows: list[JournalRow]) -> Standstill:
    """Consumers of the group that gave up everything they owned during one rebalance, until they owned again."""
    since: dict[str, int] = {}
    lasted: dict[str, int] = {}
    for row in client_rows:
        event, at = row.event, row.envelope.at_ms
        if not ended_at - done.rebalance_ms <= at <= ended_at + LINGER_MS:
            continue
        if not isinstance(event, (PartitionsRevoked, PartitionsLost, PartitionsAssigned)):
            continue
        if event.group_id != done.group_id or not event.partitions:
            continue
        if isinstance(event, PartitionsAssigned):
            if event.client_id in since:
                lasted[event.client_id] += at - since.pop(event.client_id)
        elif at <= ended_at and _is_all(event, done):
            since.setdefault(event.client_id, at)
            lasted.setdefault(event.client_id, 0)
    return Standstill(len(lasted), sum(lasted.values()))


def _is_all(event: PartitionsRevoked | PartitionsLost, done: RebalanceCompleted) -> bool:
    """Whether a consumer gave up everything that it owned before."""
    owned_before = sum(len(indexes) for indexes in done.owned_before.get(event.member_id, {}).values())
    given_up = sum(len(indexes) for indexes in event.partitions.values())
    return 0 < owned_before <= given_up


def unread(done: RebalanceCompleted, ended_at: int, client_rows: list[JournalRow]) -> tuple[int, int]:
    """How many partitions a member that fell silent had, and for how long they had no reader: since its last event."""
    silent = done.cause.member_id or ""
    partitions = sum(len(indexes) for indexes in done.owned_before.get(silent, {}).values())
    events = [row.envelope.at_ms for row in client_rows if getattr(row.event, "member_id", None) == silent]
    return partitions, ended_at - max(events, default=ended_at)


def closing_table(completed: list[JournalRow], client_rows: list[JournalRow]) -> Table:
    """One row for each rebalance of the demo, in order."""
    table = Table(
        title="Every rebalance, and what it cost",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("group")
    table.add_column("gen.", justify="right")
    table.add_column("cause", min_width=16, overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("moved", justify="right")
    table.add_column("taken over", justify="right", max_width=6)
    table.add_column("stood still", justify="right", min_width=15)
    for row in sorted(completed, key=lambda row: getattr(row.event, "group_id", "")):
        done = row.event
        assert isinstance(done, RebalanceCompleted)
        still = standstill(done, row.envelope.at_ms, client_rows)
        before = sum(1 for topics in done.owned_before.values() if topics)
        stopped = f"{still.consumers} of {before} consumers" if before else "-"
        if still.consumers:
            stopped += f", {still.stopped_ms} ms"
        if done.cause.cause == "session-expiry":
            partitions, unread_ms = unread(done, row.envelope.at_ms, client_rows)
            stopped = f"{partitions} partitions, {unread_ms:,} ms"
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
