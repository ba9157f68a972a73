"""The demo's closing table: which partitions stood still, and for how long."""

from __future__ import annotations

from typing import Any

from examples.demo.closing import Standstill, standstill
from rejoin.journal.envelope import Envelope, JournalRow
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PartitionsRevoked, Range, RecordsProcessed
from rejoin.journal.events.coordinator import Cause, RebalanceCompleted

MEMBER: dict[str, Any] = {"group_id": "app", "group_instance_id": None, "generation": 1}


def row(at_ms: int, event: Event) -> JournalRow:
    envelope = Envelope(
        schema_version=2, run_id="r", source="client", node="n", seq=1, at_ms=at_ms, event=type(event).name
    )
    return JournalRow(envelope, event)


def processed(at_ms: int, client: str, *partitions: int) -> JournalRow:
    ranges = [Range(topic="t", partition=index, start=0, end=1) for index in partitions]
    return row(at_ms, RecordsProcessed(client_id=client, member_id=client, ranges=ranges, **MEMBER))


def revoked(at_ms: int, client: str, *partitions: int) -> JournalRow:
    event = PartitionsRevoked(client_id=client, member_id=client, partitions={"t": list(partitions)}, **MEMBER)
    return row(at_ms, event)


def completed(cause: Cause) -> RebalanceCompleted:
    fields: dict[str, Any] = {"group_id": "app", "rebalance_ms": 500, "cause": cause}
    fields["owned_before"] = {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}
    return RebalanceCompleted.model_construct(**fields)


def test_what_is_given_up_stands_still_from_its_last_record_to_its_next() -> None:
    rows = [
        processed(900, "a", 0, 1),
        revoked(1_200, "a", 0, 1),
        processed(1_300, "b", 2, 3),
        processed(1_800, "c", 0),
        processed(2_000, "a", 1),
    ]
    joined = completed(Cause(cause="join-new", member_id="c"))
    assert standstill(joined, 1_500, rows) == Standstill(2, 900 + 1_100)
    assert standstill(joined, 1_500, rows[2:3]) == Standstill(0, 0), "what is kept is read all the time"


def test_a_silent_members_partitions_stand_still_since_its_last_record() -> None:
    rows = [processed(1_000, "a", 0, 1), processed(1_100, "b", 2, 3), processed(7_600, "b", 0, 1)]
    removed = completed(Cause(cause="session-expiry", member_id="a"))
    assert standstill(removed, 7_500, rows) == Standstill(2, 2 * 6_600)
