"""Share groups in the words of Kafka's own log, and read back from there."""

from __future__ import annotations

import re
from typing import Literal

import pytest

from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.journal.events.consumer_groups import TargetAssignmentComputed
from rejoin.journal.events.share_partitions import SharePersisterFailed
from rejoin.journal.kafka_logs.template import Version
from tests.coordinator.core.groups.share.test_share_requests import ShareNode
from tests.pipeline.reading.broker_logs.test_histories import events_of

A, B = "A" * 22, "B" * 22
_HASH = re.compile(r"(?<=hash )-?\d+|(?<=hash: )-?\d+")
_PREFIX = re.compile(r"\[[^\]]*\] INFO \[GroupCoordinator id=1[^\]]*\] \[GroupId g\] (.*) \([\w.$]+\)")


def life() -> ShareNode:
    """Two members: one leaves, and the session of the other ends."""
    node = ShareNode()
    node.heartbeat(A)
    node.initialized()
    node.elapse(1_000)
    node.heartbeat(A, 2)
    node.heartbeat(B)
    node.heartbeat(A, -1)
    node.elapse(50_000)
    return node


def log_of(node: ShareNode, version: Version) -> list[str]:
    log = BrokerLog(version, 1, 1)
    return [line for event in node.events for line in log.lines(event, 0)]


@pytest.mark.parametrize("version", [(4, 2), (4, 3), (4, 4)])
def test_the_words_are_those_of_kafka(version: Version) -> None:
    texts = [_HASH.sub("H", found[1]) for line in log_of(life(), version) if (found := _PREFIX.fullmatch(line))]
    assert texts[:4] == [
        f"Member {A} joins the share group using the share protocol.",
        f"Member {A} updated its subscribed topics to: [t].",
        "Computed new metadata hash: H.",
        "Bumped group epoch to 2 with metadata hash H.",
    ]
    assert f"Member {A} left the share group." in texts
    assert f"Member {B} fenced from the group because the member session expired." in texts


def test_what_is_written_is_read_with_the_epochs_of_the_events() -> None:
    node = life()
    read = [event for event in events_of(log_of(node, (4, 4))) if event.get("group_id") == "g"]
    named = ("member_joined", "member_removed", "target_assignment_computed")
    assert [event["event"] for event in read if event["event"] in named] == [
        event.name for event in node.events if event.name in named
    ]
    epochs = [event["generation"] for event in read if event["event"] == "target_assignment_computed"]
    assert epochs == [event.generation for event in node.events if isinstance(event, TargetAssignmentComputed)]


@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_failure_of_the_persister_is_read_as_it_was_written(operation: Literal["read", "write"]) -> None:
    failed = SharePersisterFailed(
        group_id="g-1", topic="in-voices", partition=12, operation=operation, error="COORDINATOR_LOAD_IN_PROGRESS"
    )
    (line,) = BrokerLog((4, 4), 1, 1).lines(failed, 0)
    assert " ERROR Failed to " in line
    read = next(event for event in events_of([line]) if event["event"] == failed.name)
    assert [read[name] for name in ("group_id", "topic", "partition", "operation")] == [
        "g-1",
        "in-voices",
        12,
        operation,
    ]
