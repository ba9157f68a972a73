"""A member of a share group, for tests of the kit: one request at a time, over ``call``."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.testing import GroupCoordinator
from tests.coordinator.control.samples import parse

GROUP: Final = "jobs-app"
TOPICS: Final = {"jobs": 1}
ACCEPT, RELEASE, REJECT = 1, 2, 3


class ShareMember:
    """A member that reads partition 0 of ``jobs``."""

    def __init__(self, coordinator: GroupCoordinator, member_id: str, leader: int | None = None) -> None:
        """``leader`` is the broker that leads the partition, where there are several."""
        self._coordinator = coordinator
        self.member_id = member_id
        self._leader = leader
        self._topic_id = ""
        self._epoch = 0

    async def join(self) -> None:
        """Join, and come back for the assignment."""
        self._topic_id = (await self._coordinator.set_topic("jobs", 1)).topic_id
        epoch = 0
        for topics in (["jobs"], None):
            body = {"memberEpoch": epoch, "subscribedTopicNames": topics}
            epoch = (await self._ask("ShareGroupHeartbeat", body)).member_epoch

    async def fetch(self, max_wait_ms: int = 100) -> list[tuple[int, int, int]]:
        """The records that a ShareFetch acquires: first and last offset, and which delivery it is."""
        partition = {"partitionIndex": 0, "acknowledgementBatches": []}
        topics = [{"topicId": self._topic_id, "partitions": [partition]}] if self._epoch == 0 else []
        limits = {"maxWaitMs": max_wait_ms, "minBytes": 1, "maxBytes": 2**20, "maxRecords": 100, "batchSize": 100}
        answer = await self._in_session("ShareFetch", {**limits, "topics": topics, "forgottenTopicsData": []})
        return [
            (row.first_offset, row.last_offset, row.delivery_count)
            for topic in answer.responses
            for found in topic.partitions
            for row in found.acquired_records
        ]

    async def acknowledge(self, first: int, last: int, kind: int) -> int:
        """The error of a ShareAcknowledge."""
        batch = {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [kind]}
        partition = {"partitionIndex": 0, "acknowledgementBatches": [batch]}
        topics = [{"topicId": self._topic_id, "partitions": [partition]}]
        answer = await self._in_session("ShareAcknowledge", {"topics": topics})
        return int(answer.responses[0].partitions[0].error_code)

    async def _in_session(self, api: str, body: dict[str, Any]) -> Any:
        answer = await self._ask(api, {"shareSessionEpoch": self._epoch, **body}, self._leader)
        assert answer.error_code == 0
        self._epoch += 1
        return answer

    async def _ask(self, api: str, body: dict[str, Any], broker: int | None = None) -> Any:
        request = parse(api, {"groupId": GROUP, "memberId": self.member_id, **body})
        return await self._coordinator.call(request, client_id=self.member_id, broker=broker)


async def configure(coordinator: GroupCoordinator, group: str = GROUP, **configs: str) -> None:
    """Set configs of the group, with underscores for dots, and create its dead-letter topic."""
    letters = {
        "name": "dlq.jobs",
        "numPartitions": 1,
        "replicationFactor": -1,
        "assignments": [],
        "configs": [{"name": "errors.deadletterqueue.group.enable", "value": "true"}],
    }
    await coordinator.call(parse("CreateTopics", {"topics": [letters], "timeoutMs": 1_000, "validateOnly": False}))
    wanted = {"share_auto_offset_reset": "earliest", **configs}
    await coordinator.set_group(group, {name.replace("_", "."): value for name, value in wanted.items()})


async def member_of(coordinator: GroupCoordinator, member_id: str = "a", leader: int | None = None) -> ShareMember:
    """A member that has joined a group that reads from the beginning."""
    await configure(coordinator)
    member = ShareMember(coordinator, member_id, leader)
    await member.join()
    return member
