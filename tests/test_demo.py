"""The demo's closing table: which partitions stood still, and for how long."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from rejoin.demo.closing import Standstill, closing_table, standstill
from rejoin.journal.envelope import Envelope, JournalRow
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PartitionsRevoked, Range, RecordsProcessed
from rejoin.journal.events.coordinator import Cause, RebalanceCompleted
from rejoin.simulation.kernel import Actor
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.simulation import Simulation

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


JOIN = """
horizon: 60s
coordinator: {settings: {group.initial.rebalance.delay.ms: 1000}}
topics:
  orders: {partitions: 12, records_per_second: 20}
groups:
  coop: &group
    topics: orders
    consumers: 3
    assignor: cooperative-sticky
    session_timeout: 6s
    heartbeat_interval: 500ms
    # What a member of the eager group needs for its four partitions, and then for its three.
    revoke: 160ms
    assign: 360ms
  eager: {<<: *group, assignor: sticky}
events:
  - {at: 30s, scale: {group: coop, to: 4}}
  - {at: 30s, scale: {group: eager, to: 4}}
"""


@pytest.fixture(scope="module")
def join() -> tuple[list[JournalRow], list[JournalRow]]:
    """The demo's joins of a fourth consumer, on the virtual clock: rebalances of running groups, and client events."""
    rows: list[JournalRow] = []

    def keep(_: Actor, event: Event, now: int) -> None:
        rows.append(row(now, event))

    Simulation(scenario_from(JOIN), seed=1, listeners=[keep]).run()
    rebalances = [each for each in rows if isinstance(each.event, RebalanceCompleted) and each.event.generation > 1]
    return rebalances, rows


def cost(join: tuple[list[JournalRow], list[JournalRow]], group_id: str) -> list[Standstill]:
    rebalances = [(each.event, each.envelope.at_ms) for each in join[0]]
    return [
        standstill(done, at, join[1])
        for done, at in rebalances
        if isinstance(done, RebalanceCompleted) and done.group_id == group_id
    ]


def test_a_join_of_an_eager_group_stops_all_partitions_and_a_cooperative_one_those_that_move(
    join: tuple[list[JournalRow], list[JournalRow]],
) -> None:
    (eager,) = cost(join, "eager")
    assert eager.partitions == 12
    assert eager.stopped_ms >= 12 * (160 + 360), "a partition waits for its revocation, and for the start of reading it"
    first, second = cost(join, "coop")
    assert (first.partitions, second.partitions) == (3, 0), "the second rebalance only hands over"
    assert first.stopped_ms >= 3 * (160 + 360)
    assert 2 * first.stopped_ms < eager.stopped_ms


def test_the_closing_table_prints_what_each_protocol_cost(join: tuple[list[JournalRow], list[JournalRow]]) -> None:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(closing_table(*join))
    lines = [line.split() for line in shown.get().splitlines() if line.split()[:1] in (["coop"], ["eager"])]
    assert [line[:2] for line in lines] == [["coop", "2"], ["coop", "3"], ["eager", "2"]]
    (eager,) = cost(join, "eager")
    assert f"12 partitions, {eager.stopped_ms / 1_000:,.1f} s in all" in " ".join(lines[2])
    assert "3 partitions, " in " ".join(lines[0])
    assert " ".join(lines[1]).endswith(" 0 partitions")
