"""What happened to groups of the consumer protocol comes back as a transcript, and playing that gives the very same."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from rejoin.client import Consumer
from rejoin.coordinator.testing import running
from rejoin.transcript.player import play
from tests.client.transports.test_consumer_groups_over_http import poll_until, stable_with
from tests.coordinator.control.helpers import ControlledNode

EXPECTED = """\
# A fenced member.

topic orders 3 {topic_id}
app heartbeat id=m-1 names=orders
----
g  created
g  m-1 joined
g  group epoch 2: m-1 joined
g  rebalance: m-1 joined
g  target of epoch 2 by uniform: m-1 orders:0-2
g  m-1 reached epoch 2: orders:0-2
g  Empty -> Stable
g  rebalanced in 0 ms, 0 moved, 3 regained: m-1 orders:0-2
app  ConsumerGroupHeartbeat -> epoch 2, assigned orders:0-2

app heartbeat owns=orders:0,1,2
advance 44000
app heartbeat
----
app  ConsumerGroupHeartbeat -> epoch 2
+44000ms
app  ConsumerGroupHeartbeat -> epoch 2

app heartbeat epoch=9
----
g  m-1 fenced with epoch 9: it is in 2
app  ConsumerGroupHeartbeat -> FENCED_MEMBER_EPOCH

app commit orders:0=7 generation=2 v=10
----
g  committed by m-1: orders:0=7
app  OffsetCommit -> orders:0 NONE

app heartbeat epoch=-1
----
g  m-1 removed (left)
g  group epoch 3: m-1 left
g  rebalance: m-1 left
g  Stable -> Empty
g  generation 3 is empty
app  ConsumerGroupHeartbeat -> epoch -1
"""


async def test_a_members_heartbeats_are_written_with_what_each_says(node: ControlledNode) -> None:
    async def heartbeat(epoch: int, **fields: Any) -> Any:
        body = {"groupId": "g", "memberId": "m-1", "memberEpoch": epoch, **fields}
        return await node.call("ConsumerGroupHeartbeat", body, version=1)

    first = await heartbeat(0, rebalanceTimeoutMs=60_000, subscribedTopicNames=["orders"], topicPartitions=[])
    (assigned,) = first["assignment"]["topicPartitions"]
    await heartbeat(2, topicPartitions=[assigned])
    await node.advance(44_000)
    await heartbeat(2)
    await heartbeat(9)
    partition = {"partitionIndex": 0, "committedOffset": 7, "committedMetadata": ""}
    commit = {
        "groupId": "g",
        "memberId": "m-1",
        "generationIdOrMemberEpoch": 2,
        "topics": [{"topicId": assigned["topicId"], "partitions": [partition]}],
    }
    await node.call("OffsetCommit", commit, version=10)
    await heartbeat(-1)
    transcript = await node.control("GET", "/transcript?claim=A+fenced+member.")
    assert transcript == EXPECTED.format(topic_id=assigned["topicId"])
    assert play(transcript).text == transcript


async def test_what_consumers_did_is_played_again_with_their_expression() -> None:
    settings = {
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 50,
        "group.consumer.assignment.interval.ms": 0,
    }
    async with running(clock="virtual", topics={"orders": 6, "orders-eu": 1}, settings=settings) as coordinator:
        async with AsyncExitStack() as stack:
            names = ("one", "two")
            consumers = [
                await stack.enter_async_context(
                    Consumer(
                        regex="orders",
                        client_id=name,
                        bootstrap_servers=coordinator.url,
                        group_id="billing",
                        group_protocol="consumer",
                        auto_offset_reset="earliest",
                    )
                )
                for name in names
            ]
            await poll_until(coordinator, consumers, stable_with(*consumers))
        transcript = await coordinator.transcript()
    assert "regex=orders" in transcript
    assert "two  ConsumerGroupHeartbeat -> epoch" in transcript
    assert "not expressible" not in transcript
    assert play(transcript).text == transcript


async def test_an_id_that_the_coordinator_draws_is_drawn_again_when_it_is_played(node: ControlledNode) -> None:
    fields = {"groupId": "g", "memberId": "", "memberEpoch": 0, "subscribedTopicNames": ["orders"]}
    body = {**fields, "rebalanceTimeoutMs": 60_000, "topicPartitions": []}
    member_id = (await node.call("ConsumerGroupHeartbeat", body, version=0))["memberId"]
    beat = {**body, "memberId": member_id, "memberEpoch": 1, "subscribedTopicNames": None, "topicPartitions": None}
    await node.call("ConsumerGroupHeartbeat", beat | {"rebalanceTimeoutMs": -1}, version=0)
    transcript = await node.control("GET", "/transcript")
    assert member_id not in transcript
    assert play(transcript).differing == []
