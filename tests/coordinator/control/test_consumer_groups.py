"""Consumer groups through the control API and the pages: waited for, looked at, a member lost."""

from __future__ import annotations

from typing import Any

from tests.coordinator.control.helpers import ControlledNode


async def beat(node: ControlledNode, member_id: str) -> Any:
    """The first heartbeat of a member that reads ``orders``."""
    body = {
        "groupId": "g",
        "memberId": member_id,
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 60_000,
        "subscribedTopicNames": ["orders"],
        "topicPartitions": [],
    }
    return await node.call("ConsumerGroupHeartbeat", body, version=1)


async def test_a_consumer_group_is_waited_for_and_seen_and_its_member_lost(node: ControlledNode) -> None:
    assert (await beat(node, "m-1"))["errorCode"] == 0
    await node.control("POST", "/groups/wait", group="g", state="Stable", members=1, assigned=3)
    group = await node.group()
    assert (group["state"], group["groupEpoch"], group["assignmentEpoch"]) == ("Stable", 2, 2)
    (member,) = group["members"]
    assert (member["memberEpoch"], member["assignment"]) == (2, {"orders": [0, 1, 2]})
    assert (member["pendingRevocation"], member["target"]) == ({}, {"orders": [0, 1, 2]})
    (summary,) = (await node.request("GET", "/groups")).json["groups"]
    assert (summary["groupId"], summary["groupEpoch"], summary["members"]) == ("g", 2, 1)
    metrics = (await node.request("GET", "/metrics")).body.decode()
    assert 'group_count{protocol="consumer"} 1' in metrics
    late = await node.refused("POST", "/groups/wait", group="g", state="Reconciling", timeout_ms=0)
    assert "it is Stable in group epoch 2" in late[1]
    assert "member epoch 2" in late[1]
    assert await node.control("POST", "/groups/expire", group="g", member="m-1") == {"group": "g", "member": "m-1"}
    assert (await node.group())["state"] == "Empty"
