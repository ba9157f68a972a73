"""The log of a Kafka 4.4 with consumers that come and go, move from one protocol to the other, and do not give up."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.messages import read_message, split_prefix
from tests.paths import GOLDEN
from tests.pipeline.reading.broker_logs.test_histories import events_of

LINES = (GOLDEN / "broker-logs" / "consumer-groups-4.4.log").read_text().splitlines()


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return events_of(LINES)


def about(events: list[dict[str, Any]], group: str, *names: str) -> list[tuple[Any, ...]]:
    """The events of a group with these names, with what they say."""
    said = ("event", "generation", "cause", "group_type", "protocol")
    mine = [event for event in events if event.get("group_id") == group and event["event"] in names]
    return [tuple(event[name] for name in said if event.get(name) is not None) for event in mine]


def test_every_line_is_read() -> None:
    kinds = {}
    for line in LINES:
        message = line.split("] ", 1)[1].split(" ", 1)[1].rsplit(" (", 1)[0]
        found = read_message(split_prefix(message).rest)
        kinds[message] = None if found is None else found.kind
    assert not [message for message, kind in kinds.items() if kind is None]
    assert {message for message, kind in kinds.items() if kind == "remark" and "[GroupId" in message} == set()


def test_who_left_and_why_epochs_were_bumped(events: list[dict[str, Any]]) -> None:
    assert about(events, "g", "rebalance_started", "member_removed") == [
        ("rebalance_started", 1, "join-new", "consumer"),
        ("rebalance_started", 2, "join-new", "consumer"),
        ("member_removed", "left"),
        ("rebalance_started", 3, "leave", "consumer"),
        ("rebalance_started", 4, "join-new", "consumer"),
        ("member_removed", "session-expiry"),
        ("rebalance_started", 5, "session-expiry", "consumer"),
        ("member_removed", "left"),
        ("rebalance_started", 6, "leave", "consumer"),
    ]
    away = [event["group_instance_id"] for event in events if event["event"] == "static_member_left"]
    back = [event["rebalance"] for event in events if event["event"] == "static_member_replaced"]
    assert (away, back) == (["one", "one"], [False])


def test_a_group_that_moves_and_comes_back(events: list[dict[str, Any]]) -> None:
    assert about(events, "m", "rebalance_started", "group_converted") == [
        ("rebalance_started", 0, "join-new"),
        ("group_converted", "consumer"),
        ("rebalance_started", 1, "upgrade", "consumer"),
        ("rebalance_started", 2, "join-new", "consumer"),
        ("rebalance_started", 3, "downgrade"),
        ("group_converted", "classic"),
        ("rebalance_started", 4, "leave"),
    ]


def test_a_member_that_does_not_give_up_its_partitions(events: list[dict[str, Any]]) -> None:
    assert ("member_removed", "rebalance-expiry") in about(events, "stuck", "member_removed")
    assert ("rebalance_started", 3, "rebalance-expiry", "consumer") in about(events, "stuck", "rebalance_started")
