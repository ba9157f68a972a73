"""Streams groups in the words of Kafka's own log, written, and read back; and the log of a Kafka 4.4 with three.

There an application of two processes with standbys has one of them killed, started again, and both stopped; another one
lacks its source topic; a third one lacks it and has an endpoint.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.journal.kafka_logs.streams_groups import read_description, read_tasks
from rejoin.journal.kafka_logs.template import Version
from rejoin.pipeline.reading.broker_logs.messages import read_message, split_prefix
from tests.paths import GOLDEN
from tests.pipeline.reading.broker_logs.test_histories import events_of
from tests.pipeline.streams_groups import lives
from tests.pipeline.streams_groups.lives import RecordedStreams

LINES = (GOLDEN / "streams-group-logs" / "server.log").read_text().splitlines()
_DIFFERING = re.compile(
    r"\[GroupId .*?\](?:\[MemberId .*?\])?|StreamsGroupMember\[.*\]|\d+ms|(?:words|app)-\S*"
    r"|(?<=poch=)\d+|(?<=hash )-?\d+|(?<=hash: )-?\d+"
)
_TEXT = re.compile(r"\[[^\]]*\] (?:INFO|WARN) \[GroupCoordinator id=1[^\]]*\] (.*) \([\w.$]+\)")
ABOUT = ("member_joined", "member_removed", "group_epoch_bumped", "streams_target_computed", "streams_member_assigned")
SAYS = ("member_id", "generation", "cause", "member_epoch", "member_state", "active", "standby", "revoking_active")


def log_of(node: RecordedStreams, version: Version) -> list[str]:
    log = BrokerLog(version, 1, 1)
    return [line for at, event in node.timed for line in log.lines(event, at)]


def said(row: dict[str, Any]) -> tuple[Any, ...]:
    """The fields of a row, with tasks as the journal has them."""
    values: list[Any] = [row["event"]]
    for name in SAYS:
        value = row.get(name)
        if isinstance(value, list):
            tasks: dict[str, list[int]] = {}
            for each in value:
                tasks.setdefault(each["topic"], []).append(each["partition"])
            value = tasks
        values.append(value["cause"] if isinstance(value, dict) and "cause" in value else value)
    return tuple(values)


@pytest.mark.parametrize("version", [(4, 2), (4, 3), (4, 4)])
@pytest.mark.parametrize("life", [lives.crash, lives.healthy, lives.changing_metadata, lives.rolling_restart])
def test_what_is_written_is_read_with_the_members_and_tasks_of_the_events(life: Any, version: Version) -> None:
    node = RecordedStreams(group_streams_num_standby_replicas=1)
    life(node)
    read = [said(row) for row in events_of(log_of(node, version)) if row["event"] in ABOUT]
    expected = []
    for _, event in node.timed:
        if event.name in ABOUT:
            expected.append(said({"event": event.name, **event.model_dump()}))
    assert sorted(read, key=str) == sorted(expected, key=str)


def shapes(lines: list[str]) -> list[str]:
    """Texts about groups without what differs from one to the next."""
    texts = [found[1] for line in lines if "[GroupId " in line and (found := _TEXT.fullmatch(line))]
    return [_DIFFERING.sub("_", each) for each in texts]


def test_the_words_are_those_of_kafka() -> None:
    node = RecordedStreams()
    node.starts("A" * 22)
    written = shapes(log_of(node, (4, 4)))
    assert len(written) > 6
    assert [each for each in written if each not in shapes(LINES)] == []


def test_every_line_of_the_log_is_read() -> None:
    texts = [found[1] for line in LINES if "[GroupId " in line and (found := _TEXT.fullmatch(line))]
    kinds = {found and found.kind for found in (read_message(split_prefix(text).rest) for text in texts)}
    assert kinds == {
        *("modern_joined", "modern_left", "modern_fenced", "modern_metadata", "modern_bumped", "modern_assigned"),
        *("streams_described", "streams_topology", "streams_configuring", "streams_configured", "streams_assigned"),
        "remark",
    }


def test_each_group_has_its_own_lines_and_causes() -> None:
    events = events_of(LINES)
    bumps = [
        (row["generation"], row["cause"])
        for row in events
        if row["event"] == "group_epoch_bumped" and row["group_id"] == "words"
    ]
    assert bumps == [
        (2, "join-new"),
        (3, "topic-metadata"),
        (4, "join-new"),
        (5, "session-expiry"),
        (6, "join-new"),
        (7, "leave"),
    ]
    statuses = {row["group_id"]: row.get("status") for row in events if row["event"] == "streams_topology_configured"}
    assert statuses == {
        "words": None,
        "nowhere-words": "MISSING_SOURCE_TOPICS",
        "endpoint-words": "MISSING_SOURCE_TOPICS",
    }
    refused = [row for row in events if row["event"] == "streams_heartbeat_refused"]
    assert [(row["group_id"], row["reason"]) for row in refused] == [("endpoint-words", "endpoints")]


@pytest.mark.parametrize("text", ["(active=[0-1@3], standby=[", "(active=[0], standby=[], warmup=[])", ""])
def test_tasks_that_are_cut_short_are_none(text: str) -> None:
    assert read_tasks(text) is None


def test_a_description_that_is_cut_short_is_none() -> None:
    text = next(line for line in LINES if "Member updated" in line).partition("metadata to ")[2]
    whole = text.rpartition(". (")[0]
    found = read_description(whole)
    assert found is not None
    assert (found["process_id"], found["rebalance_timeout_ms"]) == ("e4fb685f-8619-47e2-8b37-7aff29a99ffb", 300_000)
    assert read_description(whole[:120]) is None
