"""Waiting for a group without sleeping, and what is said when it does not get there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.service.helpers import join


async def test_what_is_so_already_is_answered_at_once(node: ControlledNode) -> None:
    member_id = await node.stable()
    answer = await node.control(
        "POST", "/groups/wait", group="g", state="Stable", members=1, assigned=3, generation=1, timeout_ms=0
    )
    assert [member["member_id"] for member in answer["group"]["members"]] == [member_id]


@pytest.mark.parametrize(
    "wanted",
    [{"state": "Empty"}, {"state": "empty", "members": 0, "assigned": 0}, {"generation": 2}, {"members": 0}],
)
async def test_the_answer_comes_when_it_is_so(node: ControlledNode, wanted: dict[str, object]) -> None:
    await node.stable()
    waiting = asyncio.ensure_future(node.control("POST", "/groups/wait", group="g", **wanted))
    await node.advance(44_999)
    assert not waiting.done()
    await node.advance(1)
    assert (await waiting)["group"]["state"] == "Empty"


async def test_a_group_that_comes_to_be_is_waited_for(node: ControlledNode) -> None:
    waiting = asyncio.ensure_future(node.control("POST", "/groups/wait", group="g", state="Stable", members=1))
    await node.stable()
    assert (await waiting)["group"]["generation"] == 1


async def test_a_group_that_is_not_there_counts_as_dead(node: ControlledNode) -> None:
    assert (await node.control("POST", "/groups/wait", group="g", state="Dead"))["group"] is None


async def test_when_time_is_up_it_says_how_the_group_looks(node: ControlledNode) -> None:
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joining = node.asking("JoinGroup", join("g", member_id))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    answered = await node.request(
        "POST", "/control/groups/wait", {"group": "g", "state": "Stable", "members": 3, "timeout_ms": 20}
    )
    assert answered.status == 409
    assert answered.json["type"] == "urn:rejoin:problem:not-reached"
    assert answered.json["detail"] == (
        "group 'g' was not Stable with 3 members within 20 ms; it is PreparingRebalance in generation 0; 1 member: "
        f"{member_id} (leads, waits in JoinGroup); due: session {member_id} in 300000 ms, join in 3000 ms"
    )
    assert answered.json["group"]["state"] == "PreparingRebalance"
    await node.advance(3_000)
    await joining


async def test_when_time_is_up_without_a_group_it_says_so(node: ControlledNode) -> None:
    status, detail = await node.refused("POST", "/groups/wait", group="orders-app", state="Stable", timeout_ms=1)
    assert status == 409
    assert detail == "group 'orders-app' was not Stable within 1 ms; there is no group 'orders-app'"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "was not there"),
        ({"waiting": 3}, "did not have 3 waiting requests"),
        ({"members": 1, "assigned": 12}, "did not have 1 member and 12 assigned partitions"),
        ({"generation": 2}, "was not in generation 2 or later"),
        ({"generation": 2, "members": 2}, "was not in generation 2 or later with 2 members"),
        ({"state": "stable", "waiting": 1}, "was not Stable with 1 waiting request"),
    ],
)
async def test_what_a_group_was_not_is_a_sentence(node: ControlledNode, wanted: dict[str, Any], words: str) -> None:
    _, detail = await node.refused("POST", "/groups/wait", group="g", timeout_ms=0, **wanted)
    assert detail == f"group 'g' {words} within 0 ms; there is no group 'g'"


async def test_a_state_that_there_is_not_is_refused(node: ControlledNode) -> None:
    status, detail = await node.refused("POST", "/groups/wait", group="g", state="Stabel")
    assert status == 400
    assert "there is no state 'Stabel'; is it Stable?" in detail
    detail = (await node.refused("POST", "/groups/wait", group="g", state="Rebalancing"))[1]
    assert "there is no state 'Rebalancing'; is it PreparingRebalance?" in detail


async def test_waiting_requests_are_answered_when_the_node_stops(node: ControlledNode) -> None:
    waiting = asyncio.ensure_future(node.request("POST", "/control/groups/wait", {"group": "g", "state": "Stable"}))
    await node.control("GET", "/mark")
    await node.app.stop()
    answered = await waiting
    assert answered.status == 409
    assert "before the node stopped" in answered.json["detail"]
