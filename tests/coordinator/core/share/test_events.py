"""The events of a share-partition, over a scripted life of its records."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from rejoin.coordinator.core.effects import DeferredEvents, Effect
from rejoin.coordinator.core.inputs import Input, Millis
from rejoin.coordinator.core.node import Node
from rejoin.journal.events.share_partitions import (
    SharePartitionEvent,
    SharePartitionLoaded,
    SharePersisterFailed,
    ShareRecordsArchived,
    ShareWindowMoved,
)
from rejoin.journal.formatting import format_event
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.share import broker_scripts
from tests.coordinator.core.share.test_sharing import ACCEPT, JOBS, REJECT, RELEASE, Sharing

GAP, RENEW = 0, 4


@pytest.fixture(autouse=True, params=[False, True], ids=["at once", "deferred"])
def defers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether nodes defer events: each test runs both ways, and events are the same."""
    monkeypatch.setattr(broker_scripts, "Node", partial(Node, defers_events=request.param))
    return bool(request.param)


class Watched(Sharing):
    """A node whose events of share-partitions are read a step at a time."""

    def lines(self, *, windows: bool = False) -> list[str]:
        """The events since the last call, as lines without the group; windows that move only on request."""
        events = [each for each in self.driver.events if isinstance(each, SharePartitionEvent)]
        self.driver.events.clear()
        kept = [each for each in events if windows or not isinstance(each, ShareWindowMoved)]
        return [format_event(each).removeprefix("g  jobs:0 ") for each in kept]

    def acknowledges_as(self, member: str, first: int, kinds: list[int], *, renews: bool = False) -> int:
        batch = {"firstOffset": first, "lastOffset": first + len(kinds) - 1, "acknowledgeTypes": kinds}
        topics = [{"topicId": JOBS, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": [batch]}]}]
        epoch = self.epochs[member]
        self.epochs[member] = epoch + 1
        body: dict[str, Any] = {"groupId": "g", "memberId": member, "shareSessionEpoch": epoch, "topics": topics}
        reply = self.ask(member, "ShareAcknowledge", 2, body | {"isRenewAck": renews})
        assert reply["errorCode"] == 0
        return int(reply["responses"][0]["partitions"][0]["errorCode"])


def test_a_life_of_records_is_a_line_for_each_run() -> None:
    node = Watched()
    node.writes(4)
    node.acquires("a")
    assert node.lines(windows=True) == [
        "is shared from 0 on (earliest, 0 records skipped), state epoch 2, leader epoch 0",
        "0-3 acquired by a for 30000 ms",
        "window 0-3, 4 in flight",
    ]
    node.driver.elapse(700)
    node.acknowledges_as("a", 0, [ACCEPT, ACCEPT, RELEASE, REJECT])
    assert node.lines(windows=True) == [
        "0-1 accepted by a after 700 ms",
        "2 released by a after 700 ms",
        "3 rejected by a after 700 ms",
        "3 archived: rejected",
        "window 2-3, 2 in flight",
    ]
    node.acquires("b")
    node.driver.elapse(30_000)
    assert node.lines() == [
        "2 (delivery 2) acquired by b for 30000 ms",
        "2 (delivery 2) lock of b ran out after 30000 ms",
    ]


def test_records_acknowledged_one_by_one_are_events_too() -> None:
    node = Watched()
    node.writes(5)
    node.acquires("a")
    node.lines()
    for offset, kind in ((1, ACCEPT), (3, REJECT)):
        node.acknowledges_as("a", offset, [kind])
    assert node.lines() == ["1 accepted by a after 0 ms", "3 rejected by a after 0 ms", "3 archived: rejected"]


def test_locks_of_records_that_run_out_together_are_one_event() -> None:
    node = Watched()
    node.writes(6)
    node.acquires("a")
    node.acknowledges_as("a", 0, [RENEW] * 5, renews=True)
    assert node.lines()[-1] == "0-4 locked anew by a after 0 ms"
    node.driver.elapse(30_000)
    assert node.lines() == ["5 lock of a ran out after 30000 ms", "0-4 lock of a ran out after 30000 ms"]


def test_a_renewal_leaves_the_time_of_acquiring() -> None:
    node = Watched()
    node.writes(1)
    node.acquires("a")
    node.driver.elapse(20_000)
    node.acknowledges_as("a", 0, [RENEW], renews=True)
    node.driver.elapse(30_000)
    assert node.lines()[-2:] == ["0 locked anew by a after 20000 ms", "0 lock of a ran out after 50000 ms"]


def test_a_poison_record_is_archived_and_has_its_dead_letter() -> None:
    node = Watched()
    node.configure({"errors.deadletterqueue.topic.name": "dlq.jobs", "share.delivery.count.limit": "2"})
    node.writes(2)
    for _ in range(2):
        node.acquires("a")
        node.acknowledges("a", 0, 1, RELEASE)
    assert node.lines()[-4:] == [
        "0-1 (delivery 2) acquired by a for 30000 ms",
        "0-1 (delivery 2) released by a after 0 ms",
        "0-1 (delivery 2) archived: delivered as often as the group allows",
        "0-1 (delivery 2) written to dlq.jobs",
    ]


def test_a_dead_letter_without_a_topic_says_why_it_is_lost() -> None:
    node = Watched()
    node.configure({"errors.deadletterqueue.topic.name": "dlq.missing"})
    node.writes(1)
    node.acquires("a")
    node.acknowledges("a", 0, 0, REJECT)
    assert node.lines()[-1] == "0 not written to dlq.missing: UNKNOWN_TOPIC_OR_PARTITION"


def test_records_that_come_back_with_a_session_say_why() -> None:
    node = Watched()
    node.writes(2)
    node.acquires("a", maxRecords=1)
    node.acquires("b")
    node.lines()
    node.fetch("a", epoch=-1)
    assert node.lines() == ["0 taken back from a: it closed its session"]
    node.close("b")
    assert node.lines() == ["1 taken back from b: its connection is gone"]


def test_a_window_that_is_full_is_an_event_once() -> None:
    node = Watched()
    node.configure({"share.partition.max.record.locks": "100"})
    for _ in range(12):
        node.writes(10)
        node.acquires("a")
    assert node.lines()[-1] == "window 0-99 full at 100"


def test_what_the_log_has_dropped_is_archived() -> None:
    node = Watched()
    node.writes(3)
    node.acquires("a")
    node.acknowledges_as("a", 0, [RELEASE] * 3)
    node.lines()
    delete = {"name": "jobs", "partitions": [{"partitionIndex": 0, "offset": 2}]}
    node.ask("admin", "DeleteRecords", 2, {"topics": [delete], "timeoutMs": 1})
    node.acquires("a")
    assert node.lines()[0] == "0-1 archived: below the start of the log"


def test_latest_says_how_many_records_it_set_aside() -> None:
    node = Watched()
    node.configure({"share.auto.offset.reset": "latest"})
    node.writes(3)
    node.acquires("a")
    [loaded] = node.driver.emitted(SharePartitionLoaded)
    assert (loaded.start_offset, loaded.reset, loaded.skipped_records) == (3, "latest", 3)


def test_an_acknowledgement_that_cannot_be_stored_is_no_event() -> None:
    node = Watched()
    node.writes(1)
    node.acquires("a")
    node.lines()
    node.driver.logs.error = ErrorCode.INVALID_RECORD
    assert node.acknowledges("a", 0, 0, ACCEPT) != ErrorCode.NONE
    [failed] = node.driver.emitted(SharePersisterFailed)
    assert (failed.operation, failed.topic, failed.partition) == ("write", "jobs", 0)
    # The share coordinator was asked five times, for longer than the lock.
    assert node.lines() == [
        "write of the state failed: NOT_COORDINATOR",
        "0 lock of a ran out after 30000 ms",
    ]


def test_deferred_events_are_counted_by_class(defers: bool) -> None:
    node = Watched()
    node.configure({"share.delivery.count.limit": "2"})
    effects: list[Effect] = []
    step = node.node.step

    def watched(what: Input, now: Millis, *, is_late: bool = False) -> list[Effect]:
        made = step(what, now, is_late=is_late)
        effects.extend(made)
        return made

    node.node.step = watched  # type: ignore[method-assign]
    node.writes(8)
    for kinds in ([RELEASE, RELEASE, ACCEPT, GAP, REJECT, REJECT, RELEASE], [RELEASE, RELEASE]):
        node.acquires("a")
        node.acknowledges_as("a", 0, kinds)
        node.driver.elapse(30_000)
    deferred = [each for each in effects if isinstance(each, DeferredEvents)]
    assert bool(deferred) is defers
    for each in deferred:
        assert each.counts == Counter(map(type, each.make()))
        assert each.group_id == "g"
    if defers:
        assert sum((Counter(each.counts) for each in deferred), Counter())[ShareRecordsArchived] == 5
