"""Share and streams groups, and coordinators that move, as the journal of a proxy shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rejoin.pipeline.reading.broker_logs.exchanges.refusals import refusals
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.registry import BY_NAME
from tests.pipeline.reading.test_request_log import asked, line
from tests.proxy.lives import Life, events_in, life

TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopologyId": "0",
            "sourceTopics": ["orders"],
            "sourceTopicRegex": [],
            "stateChangelogTopics": [],
            "repartitionSinkTopics": [],
            "repartitionSourceTopics": [],
            "copartitionGroups": [],
        }
    ],
}


class Heartbeats:
    """Members of one group that send heartbeats of one API."""

    def __init__(self, one: Life, api: str, **joins: Any) -> None:
        self.one, self.api, self.joins = one, BY_NAME[api], joins
        self.epochs: dict[str, int] = {}

    async def beat(self, member: str, epoch: int | None = None, **fields: Any) -> Any:
        sent = self.epochs.get(member, 0) if epoch is None else epoch
        body = {"groupId": "g", "memberId": member, "memberEpoch": sent, **(self.joins if sent == 0 else {}), **fields}
        client = await self.one.client()
        request = self.api.request.parse(json.dumps(body), self.api.default_version)
        answer = await client.ask(request, client_id="app")
        assert answer.error_code is ErrorCode.NONE, answer
        self.epochs[member] = answer.member_epoch
        return answer

    async def live(self, **has: Any) -> None:
        """Two members join, and one leaves."""
        await (await self.one.client()).ask(MetadataRequest(topics=None))
        for member in ("a" * 22, "b" * 22):
            await self.beat(member)
            await self.one.broker.advance(3_000)
        for member in self.epochs:
            await self.beat(member, **has)
        await self.one.broker.advance(3_000)
        await self.beat("b" * 22, -1)
        await self.one.broker.advance(1_000)
        await self.beat("a" * 22, **has)


def events_named(folder: Path, *names: str) -> list[tuple[Any, ...]]:
    """Events of some names, without those that come twice."""
    rows = sorted(events_in(folder).to_pylist(), key=lambda row: (row["at_ms"], row["seq"]))
    columns = ("event", "member_id", "generation", "cause", "cause_member_id")
    return [tuple(row[name] for name in columns) for row in rows if row["event"] in names]


MEMBERSHIP = ("member_joined", "member_removed", "group_epoch_bumped")


async def test_members_of_a_share_group(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        await Heartbeats(one, "ShareGroupHeartbeat", subscribedTopicNames=["orders"]).live()
    assert events_named(one.seen, *MEMBERSHIP)[:5] == events_named(one.known, *MEMBERSHIP)[:5]
    assert [event for event, *_ in events_named(one.seen, *MEMBERSHIP)].count("member_removed") == 1
    shared = [row for row in events_in(one.seen).to_pylist() if row["event"] == "member_reconciled"]
    assert {place["topic"] for row in shared for place in row["partitions"]} == {"orders"}


async def test_tasks_of_a_streams_group(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        joins = {
            "topology": TOPOLOGY,
            "processId": "p-1",
            "rebalanceTimeoutMs": 60_000,
            "activeTasks": [],
            "standbyTasks": [],
            "warmupTasks": [],
            "clientTags": [],
        }
        group = Heartbeats(one, "StreamsGroupHeartbeat", endpointInformationEpoch=-1, **joins)
        group.joins["endpointInformationEpoch"] = -1
        await (await one.client()).ask(MetadataRequest(topics=None))
        await group.beat("a" * 22)
        for _ in range(3):
            await one.broker.advance(3_000)
            await group.beat("a" * 22, endpointInformationEpoch=-1)
        await group.beat("a" * 22, -1, endpointInformationEpoch=-1)
    names = ("member_joined", "member_removed", "streams_topology_initialized")
    assert events_named(one.seen, *names) == events_named(one.known, *names)
    tasks = [row for row in events_in(one.seen).to_pylist() if row["event"] == "streams_member_assigned"]
    assert [(each["topic"], each["partition"]) for each in tasks[-1]["active"]] == [("0", n) for n in range(4)]
    assert tasks[-1]["process_id"] == "p-1"


def test_coordinators_that_move() -> None:
    def found(second: float, node: int) -> str:
        answer = {"coordinators": [{"key": "g", "nodeId": node, "host": "h", "port": 9_092, "errorCode": 0}]}
        return line(second, "FIND_COORDINATOR", {"keyType": 0, "coordinatorKeys": ["g"]}, answer)

    refused = line(2, "HEARTBEAT", {"groupId": "g", "memberId": "a"}, {"errorCode": ErrorCode.NOT_COORDINATOR})
    exchanges = asked(found(1, 1), found(1.5, 1), refused, found(3, 2))
    assert [(event["event"], event.get("node_id")) for event in refusals(exchanges)] == [
        ("coordinator_found", 1),
        ("coordinator_lost", None),
        ("coordinator_found", 2),
        ("group_loaded", None),
    ]
