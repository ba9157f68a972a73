"""Moving the world: members, offsets partitions, topics, snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.partitioner import partition_for
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.service.helpers import join, sync


def events(answer: str) -> list[str]:
    return [line for line in answer.splitlines() if "  " in line]


async def second_member(node: ControlledNode, first: str) -> str:
    """Another member joins ``g`` of one, and both are Stable in generation 2; its id."""
    second: str = (await node.call("JoinGroup", join("g"), client_id="second"))["memberId"]
    joining = node.asking("JoinGroup", join("g", second), "second")
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    assert (await node.call("JoinGroup", join("g", first)))["generationId"] == 2
    await joining
    await node.call("SyncGroup", sync("g", first, 2, {first: {"orders": [0]}, second: {"orders": [1, 2]}}))
    return second


@pytest.mark.parametrize("by", ["member", "client_id"])
async def test_a_member_vanishes_without_leaving(node: ControlledNode, by: str) -> None:
    first = await node.stable()
    second = await second_member(node, first)
    which = {"member": second, "client_id": "second"}[by]
    answer = await node.control("POST", "/groups/expire", group="g", **{by: which})
    assert answer == {"group": "g", "member": second}
    assert await node.beat(first, generation=2) == 27
    assert f"{second} in group g has failed" in await node.control("GET", "/broker-log")


async def test_a_member_is_kicked_as_an_administrator_does(node: ControlledNode) -> None:
    member_id = await node.stable(groupInstanceId=None)
    await node.control("POST", "/groups/kick", group="g", member=member_id)
    assert await node.beat(member_id) == 25
    assert (await node.group())["state"] == "Empty"


async def test_a_static_member_is_named_by_its_instance(node: ControlledNode) -> None:
    joining = node.asking("JoinGroup", join("g", groupInstanceId="i-1"))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    await node.advance(3_000)
    member_id = (await joining)["memberId"]
    assert (await node.control("POST", "/groups/expire", group="g", instance="i-1"))["member"] == member_id


async def test_an_id_that_was_only_handed_out_expires_too(node: ControlledNode) -> None:
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    await node.control("POST", "/groups/expire", group="g", member=member_id)
    assert (await node.group())["pendingMembers"] == []


async def test_a_parked_request_stands_in_for_heartbeats_here_too(node: ControlledNode) -> None:
    first = await node.stable()
    second = await second_member(node, first)
    joining = node.asking("JoinGroup", join("g", first))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    status, detail = await node.refused("POST", "/groups/expire", group="g", member=first)
    assert status == 409
    assert "waits in JoinGroup, so its session cannot expire" in detail
    await node.control("POST", "/groups/expire", group="g", member=second)
    assert (await joining)["generationId"] == 3


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"group": "gg", "member": "x"}, 404, "there is no group 'gg'; is it 'g'?"),
        ({"group": "g", "member": "x"}, 404, "no member is 'x' in group 'g', expected exactly one; its members: app-"),
        ({"group": "g"}, 400, "expected exactly one of member, instance and client_id"),
        ({"group": "g", "member": "x", "instance": "y"}, 400, "expected exactly one of member, instance"),
        ({"member": "x"}, 400, "group: missing"),
    ],
)
async def test_an_unknown_member_is_reported(
    node: ControlledNode, body: dict[str, Any], status: int, words: str
) -> None:
    await node.stable()
    for verb in ("expire", "kick"):
        found, detail = await node.refused("POST", f"/groups/{verb}", **body)
        assert (found, words in detail) == (status, True), detail


# --- offsets partitions


async def test_the_coordinator_moves_away_and_comes_back(node: ControlledNode) -> None:
    member_id = await node.stable()
    partition = partition_for("g", 50)
    assert (await node.control("POST", "/partitions/resign", group="g"))["partition"] == partition
    assert await node.beat(member_id) == 16
    found = await node.call("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]})
    assert found["coordinators"][0]["errorCode"] == 15
    await node.control("POST", "/partitions/elect", partition=partition)
    assert await node.beat(member_id) == 0, "the group came back from the log"


async def test_parked_requests_are_answered_when_the_coordinator_moves(node: ControlledNode) -> None:
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joining = node.asking("JoinGroup", join("g", member_id))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    await node.control("POST", "/partitions/resign", group="g")
    assert (await joining)["errorCode"] == 16


async def test_electing_again_loads_anew(node: ControlledNode) -> None:
    member_id = await node.stable()
    await node.advance(44_999)
    await node.control("POST", "/partitions/elect", group="g")
    await node.advance(44_999)
    assert await node.beat(member_id) == 0, "sessions begin anew with the new coordinator"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"partition": 50}, 404, "expected 0 to 49"),
        ({}, 400, "expected exactly one of partition and group"),
        ({"partition": 1, "group": "g"}, 400, "expected exactly one of partition"),
    ],
)
async def test_an_unknown_partition_is_reported(
    node: ControlledNode, body: dict[str, Any], status: int, words: str
) -> None:
    found, detail = await node.refused("POST", "/partitions/resign", **body)
    assert (found, words in detail) == (status, True), detail


async def test_what_was_resigned_cannot_be_resigned_again(node: ControlledNode) -> None:
    await node.control("POST", "/partitions/resign", partition=7)
    assert (await node.refused("POST", "/partitions/resign", partition=7))[0] == 409


# --- topics


async def test_topics_are_made_and_grow(node: ControlledNode) -> None:
    assert (await node.control("POST", "/topics", topic="clicks", partitions=2))["partitions"] == 2
    assert (await node.control("POST", "/topics", topic="clicks", partitions=5))["partitions"] == 5
    assert (await node.control("POST", "/topics", topic="clicks", partitions=5))["partitions"] == 5
    status, detail = await node.refused("POST", "/topics", topic="clicks", partitions=1)
    assert (status, "INVALID_PARTITIONS" in detail) == (409, True)
    status, detail = await node.refused("POST", "/topics", topic="no good", partitions=1)
    assert (status, "INVALID_TOPIC_EXCEPTION" in detail) == (409, True)


async def test_topics_may_be_larger_than_those_of_clients(node: ControlledNode) -> None:
    wanted = {"name": "huge", "numPartitions": 10_001, "replicationFactor": 1, "assignments": [], "configs": []}
    (refused,) = (await node.call("CreateTopics", {"topics": [wanted]}, 7))["topics"]
    assert refused["errorCode"] == 44, "POLICY_VIOLATION"
    for count in (10_001, 30_000):
        assert (await node.control("POST", "/topics", topic="huge", partitions=count))["partitions"] == count


async def test_end_offsets_move_on(node: ControlledNode) -> None:
    assert (await node.control("POST", "/topics/produce", topic="orders", records=10))["end_offsets"] == [10, 10, 10]
    answer = await node.control("POST", "/topics/produce", topic="orders", partition=1, records=5)
    assert answer["end_offsets"] == [10, 15, 10]
    wanted = {"partitionIndex": 1, "currentLeaderEpoch": -1, "timestamp": -1}
    body = {"replicaId": -1, "isolationLevel": 0, "topics": [{"name": "orders", "partitions": [wanted]}]}
    found = await node.call("ListOffsets", body, 9)
    assert found["topics"][0]["partitions"][0]["offset"] == 15
    assert (await node.refused("POST", "/topics/produce", topic="order", records=1))[1].endswith("is it 'orders'?")
    assert (await node.refused("POST", "/topics/produce", topic="orders", partition=3, records=1))[0] == 404


# --- time machines


async def test_a_snapshot_takes_everything_back_even_time(node: ControlledNode) -> None:
    member_id = await node.stable()
    await node.advance(40_000)
    kept = await node.control("POST", "/snapshot")
    before = await node.group()
    for _ in range(2):
        await node.advance(60_000)
        await node.control("POST", "/topics", topic="more", partitions=1)
        assert (await node.group())["state"] == "Empty"
        await node.control("POST", "/restore", snapshot=kept["snapshot"])
        assert await node.group() == before
        assert (await node.control("GET", "/clock"))["now_ms"] == kept["at_ms"]
        assert [topic["topic"] for topic in (await node.request("GET", "/topics")).json["topics"]] == ["orders"]
    assert (await node.advance(4_999))["fired"] == []
    assert (await node.advance(1))["fired"][0]["member"] == member_id


async def test_who_waited_at_the_snapshot_goes_on_waiting(node: ControlledNode) -> None:
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joining = node.asking("JoinGroup", join("g", member_id))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    kept = await node.control("POST", "/snapshot")
    other = node.asking("JoinGroup", join("h", groupInstanceId="i"))
    await node.control("POST", "/groups/wait", group="h", waiting=1)
    await node.control("POST", "/restore", snapshot=kept["snapshot"])
    assert (await other)["errorCode"] == 16, "this one came later, and looks elsewhere now"
    assert not joining.done()
    await node.advance(3_000)
    assert (await joining)["generationId"] == 1


async def test_who_waited_at_the_snapshot_and_was_answered_since_is_answered_once(node: ControlledNode) -> None:
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joining = node.asking("JoinGroup", join("g", member_id))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    kept = await node.control("POST", "/snapshot")
    await node.advance(3_000)
    assert (await joining)["generationId"] == 1
    await node.control("POST", "/restore", snapshot=kept["snapshot"])
    assert (await node.group())["state"] == "PreparingRebalance"
    await node.advance(3_000)
    assert (await node.group())["state"] == "CompletingRebalance"
    assert await node.beat(member_id) == 0


async def test_an_unknown_snapshot_is_reported(node: ControlledNode) -> None:
    assert await node.refused("POST", "/restore", snapshot="1") == (
        404,
        "there is no snapshot '1'; there are no snapshots",
    )


async def test_a_snapshot_of_the_log_goes_with_that_of_the_memory(node: ControlledNode) -> None:
    member_id = await node.stable()
    kept = await node.control("POST", "/snapshot")
    await node.control("POST", "/groups/kick", group="g", member=member_id)
    await node.control("POST", "/restore", snapshot=kept["snapshot"])
    await node.control("POST", "/partitions/elect", group="g")
    assert await node.beat(member_id) == 0


async def test_reset_leaves_nothing_but_the_topics_of_the_start(node: ControlledNode) -> None:
    await node.stable()
    waiting = node.asking("JoinGroup", join("h", groupInstanceId="i"))
    await node.control("POST", "/groups/wait", group="h", waiting=1)
    await node.control("POST", "/topics", topic="more", partitions=1)
    await node.control("POST", "/faults", keys="Heartbeat", error=16, count=-1)
    await node.control("POST", "/reset")
    assert (await waiting)["errorCode"] == 16
    assert (await node.request("GET", "/groups")).json["groups"] == []
    assert [topic["topic"] for topic in (await node.request("GET", "/topics")).json["topics"]] == ["orders"]
    assert (await node.control("GET", "/faults"))["faults"] == []
    assert (await node.control("GET", "/transcript")).splitlines()[2:] == ["topic orders 3", "----"]
    assert (await node.request("GET", "/healthz")).json["status"] == "ok"
    await node.stable()
