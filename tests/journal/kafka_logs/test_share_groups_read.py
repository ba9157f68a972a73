"""The log of a Kafka 4.4 with a share group: first without the topic for its state, then with members that come and go.

Two members hold records until their locks run out; one of them releases others until the delivery limit is reached.
"""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.messages import read_message, read_share_message, split_prefix
from tests.paths import GOLDEN
from tests.pipeline.reading.broker_logs.test_histories import events_of

LINES = (GOLDEN / "share-group-logs" / "server.log").read_text().splitlines()
GROUP = "billing"


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return [event for event in events_of(LINES) if event.get("group_id") == GROUP]


def test_every_line_of_the_group_is_read() -> None:
    texts = [
        line.split("] ", 1)[1].split(" ", 1)[1].rsplit(" (", 1)[0] for line in LINES if f"[GroupId {GROUP}]" in line
    ]
    kinds = [found and found.kind for found in (read_message(split_prefix(text).rest) for text in texts)]
    assert set(kinds) == {
        "modern_joined",
        "modern_left",
        "modern_fenced",
        "modern_subscribed",
        "modern_metadata",
        "modern_bumped",
        "modern_assigned",
        "modern_member",
    }


def test_who_came_and_went_and_what_that_did_to_the_epoch(events: list[dict[str, Any]]) -> None:
    said = [
        (event["event"], event.get("generation") or event.get("cause"), event.get("cause"))
        for event in events
        if event["event"] in ("member_joined", "member_removed", "group_epoch_bumped")
    ]
    assert [(name, what) for name, what, _ in said if name == "member_removed"] == [
        ("member_removed", "left"),
        ("member_removed", "left"),
        ("member_removed", "session-expiry"),
        ("member_removed", "session-expiry"),
        ("member_removed", "left"),
    ]
    assert [(what, cause) for name, what, cause in said if name == "group_epoch_bumped"] == [
        (2, "join-new"),
        (4, "join-new"),
        (5, "unknown"),
        (6, "join-new"),
        (8, "join-new"),
        (9, "session-expiry"),
        (11, "join-new"),
    ]


def test_a_share_group_has_targets_and_no_rebalances(events: list[dict[str, Any]]) -> None:
    names = {event["event"] for event in events}
    assert not {"rebalance_started", "rebalance_completed"} & names
    computed = [event["protocol"] for event in events if event["event"] == "target_assignment_computed"]
    assert set(computed) == {"simple"}
    assert {event.get("group_type") for event in events if event["event"] == "group_loaded"} == {"share"}


def test_nothing_is_claimed_of_records_whose_locks_ran_out(events: list[dict[str, Any]]) -> None:
    shares = [event for event in events if event["event"].startswith("share_")]
    assert [(event["event"], event["topic"], event["partition"], event["start_offset"]) for event in shares] == [
        ("share_partition_loaded", "invoices", 0, 0),
        ("share_partition_loaded", "invoices", 0, 1),
        ("share_partition_loaded", "invoices", 0, 6),
    ]


ID = "_AJpiiB7QtamnspAjQLRMQ"


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        (
            f"Share partition a-b-{ID}:in.voices-0-12 has reached max in-flight records limit: 2000. Cannot acquire "
            "more records, inflight records count: 2000",
            "share_full",
            {"topic": "in.voices-0", "number": "12", "limit": "2000", "in_flight": "2000"},
        ),
        (
            f"Failed to write the share group state for share partition: a-b-{ID}:invoices-3",
            "share_failed",
            {"topic": "invoices", "number": "3"},
        ),
        (
            "Exhausted max retries to find coordinator for WriteStateHandler using key SharePartitionKey{groupId=a-b, "
            f"topicIdPartition={ID}:null-0}} without success.",
            "share_unreached",
            {"topic": "null", "number": "0", "handler": "WriteStateHandler"},
        ),
    ],
)
def test_lines_of_leaders_name_group_and_partition(text: str, kind: str, values: dict[str, str]) -> None:
    found = read_share_message(text)
    assert found is not None
    assert (found.kind, found.group) == (kind, "a-b")
    assert found.values == {"topic_id": ID, **values}


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_is_cut_short_is_none(cut: int) -> None:
    text = f"Failed to write the share group state for share partition: a-b-{ID}:invoices-3"
    assert read_share_message(text[:-cut]) is None


def test_numbers_that_no_broker_prints_are_none() -> None:
    assert read_share_message(f"Failed to initialize the share partition: a-{ID}:invoices-{'9' * 12}") is None
