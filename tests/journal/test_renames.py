"""Journals of older versions are read: rows that version 1 wrote, in the names of today."""

from __future__ import annotations

import json
from collections import Counter

from rejoin.journal.envelope import SCHEMA_VERSION
from rejoin.journal.events import (
    client,
    consumer_groups,
    coordinator,
    share_groups,
    share_partitions,
    simulation,
    streams_groups,
    streams_members,
    transactions,
)
from rejoin.journal.events.fields import MEANINGS
from rejoin.journal.events.simulation import ScenarioAction
from rejoin.journal.reader import read_journal
from rejoin.journal.renames import RENAMES, upgraded_text
from rejoin.journal.schema import JournalSchema, events_in
from tests.paths import JOURNALS

EVENTS = {
    event.name: event
    for event in events_in(
        coordinator,
        consumer_groups,
        share_groups,
        share_partitions,
        streams_groups,
        streams_members,
        transactions,
        client,
        simulation,
    )
}
SCHEMA = JournalSchema(EVENTS.values())


def old_rows() -> list[dict[str, object]]:
    return [json.loads(line) for path in JOURNALS.glob("*/*.jsonl") for line in path.read_text().splitlines()]


def test_every_row_of_version_1_is_read() -> None:
    rows = [row for folder in ("service", "simulation") for row in read_journal(JOURNALS / folder, SCHEMA)]
    old = old_rows()
    assert {row["schema_version"] for row in old} == {1}
    assert {row.envelope.schema_version for row in rows} == {SCHEMA_VERSION}
    now = {name: renamed.name for name, renamed in RENAMES[1].items()}
    assert Counter(row.event.name for row in rows) == Counter(now.get(str(row["event"]), row["event"]) for row in old)


def test_renamed_fields_keep_their_values() -> None:
    events = [row.event for folder in ("service", "simulation") for row in read_journal(JOURNALS / folder, SCHEMA)]
    left = [event for event in events if isinstance(event, client.GroupLeft)]
    assert [event.notified for event in left] == [row["told"] for row in old_rows() if row["event"] == "group_left"]
    actions = [event.action for event in events if isinstance(event, ScenarioAction)]
    assert actions == [row["what"] for row in old_rows() if row["event"] == "done"]
    elected = [event for event in events if isinstance(event, coordinator.PartitionElected)]
    assert {event.topic for event in elected} == {"__consumer_offsets"}


def test_the_table_of_renames_names_events_and_fields_that_there_are() -> None:
    for renamed in RENAMES[1].values():
        assert {*renamed.fields.values(), *renamed.added} <= set(EVENTS[renamed.name].model_fields), renamed.name


def test_what_is_no_older_row_comes_back_as_it_is() -> None:
    for text in (b"", b"no JSON", b'{"schema_version":1,"run', b'{"schema_version":2,"event":"done"}', b"[1]"):
        assert upgraded_text(text) == text
    assert json.loads(upgraded_text(b'{"schema_version":1}')) == {"schema_version": SCHEMA_VERSION}


def test_each_field_has_its_meaning_and_each_meaning_a_field() -> None:
    assert {name for event in EVENTS.values() for name in event.model_fields} == set(MEANINGS)
