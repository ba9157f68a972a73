"""The table of the kinds of groups has everything that is asked of it."""

from __future__ import annotations

from typing import get_args

from rejoin.coordinator.core.groups.kinds import KINDS, NAME_BY_OWNER
from rejoin.journal.events.coordinator import GroupType
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.table import RECORD_TYPES, Owner
from tests.coordinator.core.driver import DrivenNode


def test_each_record_of_the_offsets_topic_has_a_kind_that_replays_it() -> None:
    owners = {record_type.owner for record_type in RECORD_TYPES[OFFSETS_TOPIC].values()}
    assert owners - {Owner.OFFSETS} == NAME_BY_OWNER.keys()


def test_events_name_each_kind() -> None:
    assert set(get_args(GroupType)) == KINDS.keys()


def test_each_kind_is_made_when_it_is_asked_for() -> None:
    kinds = DrivenNode().shard().kinds
    assert [*kinds.made()] == []
    assert [kinds[name] for name in KINDS] == [*kinds.made()]
    assert all(kinds.of_records(entry.records) is kinds[name] for name, entry in KINDS.items())
