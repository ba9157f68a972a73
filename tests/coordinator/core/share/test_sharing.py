"""Share groups on one node, from heartbeat to acknowledgement: sessions, connections, restarts, dead letters."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rejoin.coordinator.core.inputs import PersisterFault
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.driver import PARTITION
from tests.coordinator.core.share.broker_scripts import ScriptPlayer

JOBS: Final = "@jobs"


class Sharing(ScriptPlayer):
    """A node with the topic ``jobs``, and a share group that reads it from its beginning."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.epochs: dict[str, int] = {}
        self.ask("admin", "CreateTopics", 7, {"topics": [_topic("jobs"), _topic("dlq.jobs", LETTERS)], "timeoutMs": 1})
        self.configure({"share.auto.offset.reset": "earliest"})
        self.joins("a")

    def configure(self, configs: dict[str, str]) -> None:
        wanted = [{"name": name, "configOperation": 0, "value": value} for name, value in configs.items()]
        resource = {"resourceType": 32, "resourceName": "g", "configs": wanted}
        reply = self.ask("admin", "IncrementalAlterConfigs", 1, {"resources": [resource]})
        assert reply["responses"][0]["errorCode"] == 0

    def joins(self, member: str) -> None:
        """Join, and come back for the assignment."""
        body = {"groupId": "g", "memberId": member, "memberEpoch": 0, "subscribedTopicNames": ["jobs"]}
        epoch = self.ask(member, "ShareGroupHeartbeat", 1, body)["memberEpoch"]
        body |= {"memberEpoch": epoch, "subscribedTopicNames": None}
        self.ask(member, "ShareGroupHeartbeat", 1, body)

    def writes(self, count: int) -> None:
        for _ in range(count):
            assert self.produce("jobs", {"records": 1, "partition": 0})["errorCode"] == 0

    def fetch(self, member: str, *, epoch: int | None = None, **more: Any) -> dict[str, Any]:
        """The reply to a ShareFetch of a member in its session."""
        wanted = self.epochs.get(member, 0) if epoch is None else epoch
        self.epochs[member] = wanted + 1
        topics = [{"topicId": JOBS, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}]}]
        body = {
            "groupId": "g",
            "memberId": member,
            "shareSessionEpoch": wanted,
            "maxWaitMs": 100,
            "minBytes": 1,
            "maxBytes": 2**20,
            "maxRecords": 100,
            "batchSize": 100,
            "topics": topics if wanted == 0 else [],
            "forgottenTopicsData": [],
        }
        reply: dict[str, Any] = self.ask(member, "ShareFetch", 2, body | more)
        return reply

    def acquires(self, member: str, **more: Any) -> list[tuple[int, int, int]]:
        """The records that a fetch acquires: first and last offset, and how often they are delivered."""
        reply = self.fetch(member, **more)
        assert reply["errorCode"] == 0, reply
        return [
            (row["firstOffset"], row["lastOffset"], row["deliveryCount"])
            for topic in reply["responses"]
            for partition in topic["partitions"]
            for row in partition["acquiredRecords"]
        ]

    def acknowledges(self, member: str, first: int, last: int, kind: int) -> int:
        """The error of an acknowledgement."""
        batch = {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [kind]}
        topics = [{"topicId": JOBS, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": [batch]}]}]
        epoch = self.epochs[member]
        self.epochs[member] = epoch + 1
        body = {"groupId": "g", "memberId": member, "shareSessionEpoch": epoch, "topics": topics}
        reply = self.ask(member, "ShareAcknowledge", 2, body)
        assert reply["errorCode"] == 0
        return int(reply["responses"][0]["partitions"][0]["errorCode"])

    def restarts(self) -> None:
        """The node ends, and another one reads the logs."""
        records = self.node.topics_records()
        self.driver.resign(PARTITION)
        self.node = self.driver.node = Node(self.node.settings, self._new_id)
        self.driver.see_cluster()
        self.learn(records)
        self.driver.elect(PARTITION)
        self.epochs.clear()


ACCEPT, RELEASE, REJECT = 1, 2, 3
LETTERS: Final = {"errors.deadletterqueue.group.enable": "true"}


def _topic(name: str, configs: dict[str, str] | None = None) -> dict[str, Any]:
    given = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    return {"name": name, "numPartitions": 1, "replicationFactor": 1, "configs": given}


def test_two_members_share_one_partition() -> None:
    node = Sharing()
    node.joins("b")
    node.writes(4)
    assert node.acquires("a", maxRecords=2) == [(0, 1, 1)]
    assert node.acquires("b") == [(2, 3, 1)]
    assert node.acknowledges("b", 0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert node.acknowledges("a", 0, 1, ACCEPT) == ErrorCode.NONE


def test_a_lock_that_runs_out_gives_the_record_to_another_member() -> None:
    node = Sharing()
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    assert node.acquires("b") == []
    node.driver.elapse(30_000)
    assert node.acquires("b") == [(0, 0, 2)]
    assert node.acknowledges("a", 0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE


def test_a_fetch_that_waits_gets_what_a_lock_gives_back() -> None:
    node = Sharing()
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    before = node.driver.now
    assert node.acquires("b", maxWaitMs=60_000) == [(0, 0, 2)]
    assert node.driver.now == before + 30_000


def test_a_connection_that_is_lost_gives_all_records_back_at_once() -> None:
    node = Sharing()
    node.writes(2)
    assert node.acquires("a") == [(0, 1, 1)]
    node.close("a")
    assert node.acquires("b") == [(0, 1, 2)]
    assert node.fetch("a")["errorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_session_that_is_closed_gives_its_records_back() -> None:
    node = Sharing()
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    assert node.fetch("a", epoch=-1)["errorCode"] == 0
    assert node.acquires("b") == [(0, 0, 2)]


def test_sessions_beyond_the_limit_are_held_back() -> None:
    node = Sharing(group_share_max_share_sessions=1)
    assert node.fetch("a")["errorCode"] == 0
    before = node.driver.now
    assert node.fetch("b", maxWaitMs=500)["errorCode"] == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert node.driver.now == before + 500


def test_what_is_acknowledged_is_done_with_over_a_restart() -> None:
    node = Sharing()
    node.writes(4)
    assert node.acquires("a") == [(0, 3, 1)]
    assert node.acknowledges("a", 0, 0, ACCEPT) == ErrorCode.NONE
    assert node.acknowledges("a", 2, 2, ACCEPT) == ErrorCode.NONE
    node.restarts()
    assert node.fetch("a", epoch=3)["errorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND
    # Kafka: a delivery that was not given back is nowhere on record.
    assert node.acquires("a", epoch=0) == [(1, 1, 1), (3, 3, 1)]


def test_a_poison_record_lands_in_the_dead_letter_topic_after_its_last_delivery() -> None:
    node = Sharing()
    node.configure({"errors.deadletterqueue.topic.name": "dlq.jobs", "share.delivery.count.limit": "3"})
    node.writes(1)
    for delivery in (1, 2, 3):
        assert node.acquires("a") == [(0, 0, delivery)]
        assert node.acknowledges("a", 0, 0, RELEASE) == ErrorCode.NONE
    assert node.acquires("a") == []
    [letter] = node.log("dlq.jobs", 0, [])
    assert ["__dlq.errors.offset", "0"] in letter["headers"]
    assert ["__dlq.errors.delivery.count", "3"] in letter["headers"]


@pytest.mark.parametrize("copies", [False, True])
def test_a_rejected_record_is_written_with_its_value_where_the_group_wants_it(copies: bool) -> None:
    node = Sharing()
    node.configure(
        {
            "errors.deadletterqueue.topic.name": "dlq.jobs",
            "errors.deadletterqueue.copy.record.enable": str(copies).lower(),
        }
    )
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    assert node.acknowledges("a", 0, 0, REJECT) == ErrorCode.NONE
    [letter] = node.log("dlq.jobs", 0, [])
    assert (letter["key"], letter["value"]) == (("k0", "v0") if copies else (None, None))


@pytest.mark.parametrize("is_lost", [False, True], ids=["stored", "lost"])
def test_a_lock_of_a_share_partition_that_left_memory_runs_out_over_its_successor(is_lost: bool) -> None:
    """The successor loads in the same leader epoch, so the late write is accepted, as on Kafka 4.4. It gives a record
    back that was accepted meanwhile only if a delivery of before is missing in the log.
    """
    node = Sharing()
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    if is_lost:
        node.driver.step(PersisterFault("g", "write", ErrorCode.UNKNOWN_SERVER_ERROR, 1))
    node.driver.elapse(30_000)
    assert node.acquires("a") == [(0, 0, 2)]
    # Session epoch 0 drops the old session and releases nothing; the lost connection then ends the group's last one.
    assert node.acquires("a", epoch=0, topics=[]) == []
    node.close("a")
    assert node.acquires("b") == [(0, 0, 1 if is_lost else 2)]
    assert node.acknowledges("b", 0, 0, ACCEPT) == ErrorCode.NONE
    node.driver.elapse(30_000)
    assert node.acquires("b") == []
    node.restarts()
    assert node.acquires("b") == ([(0, 0, 3)] if is_lost else [])


def test_switched_off_share_groups_answer_as_a_broker_without_them() -> None:
    node = Sharing()
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    update = {"feature": "share.version", "maxVersionLevel": 0, "upgradeType": 2}
    node.ask("admin", "UpdateFeatures", 2, {"timeoutMs": 1, "featureUpdates": [update], "validateOnly": False})
    assert node.fetch("a")["errorCode"] == ErrorCode.UNSUPPORTED_VERSION


def test_offsets_that_are_altered_count_when_the_last_member_is_gone() -> None:
    node = Sharing()
    node.writes(3)
    assert node.acquires("a") == [(0, 2, 1)]
    assert node.acknowledges("a", 0, 2, ACCEPT) == ErrorCode.NONE
    assert node.fetch("a", epoch=-1)["errorCode"] == 0
    node.close("a")
    leave = {"groupId": "g", "memberId": "a", "memberEpoch": -1, "subscribedTopicNames": None}
    assert node.ask("a", "ShareGroupHeartbeat", 1, leave)["errorCode"] == 0
    start = {"topicName": "jobs", "partitions": [{"partitionIndex": 0, "startOffset": 1}]}
    assert node.ask("admin", "AlterShareGroupOffsets", 0, {"groupId": "g", "topics": [start]})["errorCode"] == 0
    assert node.acquires("a", epoch=0) == [(1, 2, 1)]
