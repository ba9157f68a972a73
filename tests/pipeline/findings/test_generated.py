"""Findings against ledgers of generated incidents: from the simulator's journals, and from the logs that a broker would
write of the same run.

``make incident-seeds`` tries more of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from benchmarks.recovered_from_logs import EmittedEvent, read, written
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import GroupEvent
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.vocabulary import BROKER_LOG
from rejoin.simulation.kernel import Actor
from rejoin.simulation.run import play
from tests.pipeline.events import events_here
from tests.pipeline.findings import ledgers
from tests.pipeline.findings.generated import Incident, incident
from tests.pipeline.findings.ledgers import Done, Row
from tests.pipeline.findings.tables import findings_of
from tests.pipeline.simulated import of_each

FIRST: Final = int(os.environ.get("REJOIN_INCIDENT_SEED", "1"))
SEEDS: Final = range(FIRST, FIRST + int(os.environ.get("REJOIN_INCIDENT_SEEDS", "3")))
VERSION: Final = (4, 0)
OF_CONSUMERS: Final = ("poll_timeout_exceeded", "fenced", "commit_refused")
"""What rules look at of consumers' own events; the rest would only take time to read."""
SOURCES: Final = ("journal", "log")
Found = dict[tuple[int, str], list[Row]]


def play_one(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Play an incident and keep what matters of its journal; what is read from its brokers' logs comes back."""
    emitted: list[EmittedEvent] = []

    def on_event(actor: Actor, event: Event, now: int) -> None:
        if isinstance(event, GroupEvent):
            emitted.append(EmittedEvent(int(actor.name.rpartition("-")[2]), event, now))

    path = folder / f"{seed}.jsonl"
    play(incident(seed).scenario, journal=path, run_id=f"{seed} journal", listeners=[on_event])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [row for row in rows if row["node"] != "consumers" or row["event"] in OF_CONSUMERS]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in kept if row["event"] != "offsets_committed"))
    found, broken = read(written(emitted, VERSION), {})
    assert not broken
    about = {"run_id": f"{seed} log", "source": BROKER_LOG}
    in_order = sorted(found, key=lambda each: (each["order_ms"], each["line"]))
    return [{name: value for name, value in each.items() if name != "order_ms"} | about for each in in_order]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Findings of each incident by seed and source, the worst first."""
    folder = tmp_path_factory.mktemp("journals")
    rows = list(chain.from_iterable(of_each(SEEDS, partial(play_one, folder), few=5)))
    journals = read_events(find([folder]), "UTC")
    events = pa.concat_tables([journals.events, events_here(rows)])
    made = findings_of(events, ("rebalances", "member_sessions"))
    by_run: Found = {(seed, source): [] for seed in SEEDS for source in SOURCES}
    for row in sorted(made, key=order):
        seed, source = row["run_id"].split()
        by_run[int(seed), source].append(row)
    return by_run


def done_as_seen(generated: Incident, source: str) -> Iterable[Done]:
    """The ledger, as far as a source shows it: no broker's log has topics here, and no static member says why it was
    silent."""
    for each in generated.done:
        if source == "log" and each.finding == "topic-growth":
            yield replace(each, must=False)
        elif source == "log" and each.finding == "max-poll-exceeded" and generated.groups[each.group].static:
            yield replace(each, must=False, or_else=("session-too-short",))
        else:
            yield each


EACH = pytest.mark.parametrize(("seed", "source"), [(seed, source) for seed in SEEDS for source in SOURCES])


@EACH
def test_what_was_done_is_found_with_its_members_and_its_time(found: Found, seed: int, source: str) -> None:
    assert ledgers.missing(found[seed, source], done_as_seen(incident(seed), source)) == []


@EACH
def test_nothing_is_named_that_was_not_done(found: Found, seed: int, source: str) -> None:
    assert ledgers.invented(found[seed, source], done_as_seen(incident(seed), source)) == []


@EACH
def test_findings_agree_with_each_other(found: Found, seed: int, source: str) -> None:
    rows = found[seed, source]
    assert ledgers.with_two_causes(rows) == {}
    assert list(ledgers.contradictions(rows)) == []
    assert list(ledgers.storms_before_their_parts(rows)) == []


@EACH
def test_no_advice_is_for_another_client_or_protocol(found: Found, seed: int, source: str) -> None:
    assert list(ledgers.unfit_advice(found[seed, source], incident(seed).groups)) == []


@EACH
def test_an_outage_is_one_finding(found: Found, seed: int, source: str) -> None:
    (away,) = incident(seed).away
    rows = [row for row in found[seed, source] if row["finding"] == "coordinator-failover"]
    assert len(rows) == 1
    assert away[0] - 1_000 <= rows[0]["from_ms"] <= away[1] + 10_000
