"""Requests that take long are handled in parts, so that others have their turn meanwhile."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from rejoin.coordinator.core.groups.admin_requests import COST_OF_DELETION, PART
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.journal.events.coordinator import GroupDeleted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tests.benchmarks.calls import steps_of
from tests.coordinator.core.driver import DrivenNode, commit

PATIENCE = 60.0
STEPS_OF_A_PART = 150 * PART
DELETED_AT_ONCE = PART // COST_OF_DELETION
THERE = tuple(f"group-{number}" for number in range(3 * DELETED_AT_ONCE))
ABSENT = tuple(f"none-{number}" for number in range(2 * PART))


@pytest.fixture
def driven() -> DrivenNode:
    made = DrivenNode()
    for group_id in THERE:
        made.ask(commit(group_id=group_id), 9)
    return made


def errors_of(driven: DrivenNode, number: int) -> dict[str, ErrorCode]:
    response = driven.replies[number]
    assert isinstance(response, DeleteGroupsResponse)
    return {each.group_id: each.error_code for each in response.results}


def test_groups_are_deleted_some_at_a_time(driven: DrivenNode) -> None:
    names = (*THERE, *ABSENT)
    costs: list[int] = []
    gone = [0]
    costs.append(steps_of(lambda: driven.send(DeleteGroupsRequest(groups_names=names), 2)))
    number, began = driven.requests, driven.now
    while number not in driven.replies:
        gone.append(len(driven.emitted(GroupDeleted)))
        assert driven.ask(commit(group_id="other"), 9) is not None, "others are answered meanwhile"
        costs.append(steps_of(driven.fire))
    assert driven.now == began, "no time has to pass"
    assert max(after - before for before, after in pairwise(gone)) == DELETED_AT_ONCE
    assert len(costs) == 5
    assert max(costs) < STEPS_OF_A_PART
    expected = dict.fromkeys(THERE, ErrorCode.NONE) | dict.fromkeys(ABSENT, ErrorCode.GROUP_ID_NOT_FOUND)
    assert list(errors_of(driven, number).items()) == list(expected.items())


def test_the_next_part_waits_until_the_groups_of_this_one_are_gone(driven: DrivenNode) -> None:
    driven.logs.defers_appends = True
    driven.send(DeleteGroupsRequest(groups_names=THERE), 2)
    assert driven.next_deadline() != driven.now
    assert len(driven.logs.pending_appends) == DELETED_AT_ONCE
    while driven.logs.pending_appends:
        driven.logs.end_append()
    driven.fire()
    assert len(driven.logs.pending_appends) == DELETED_AT_ONCE


def test_two_such_requests_take_turns(driven: DrivenNode) -> None:
    first, second = (driven.send(DeleteGroupsRequest(groups_names=each), 2) for each in (ABSENT, ABSENT[:-1]))
    driven.elapse(0)
    assert list(driven.replies)[-2:] == [first, second]


def test_a_node_that_resigns_meanwhile_does_not_delete_the_rest(driven: DrivenNode) -> None:
    number = driven.send(DeleteGroupsRequest(groups_names=THERE), 2)
    driven.resign()
    driven.elapse(0)
    errors = list(errors_of(driven, number).values())
    assert errors == [ErrorCode.NONE] * DELETED_AT_ONCE + [ErrorCode.NOT_COORDINATOR] * 2 * DELETED_AT_ONCE


def test_a_failure_in_a_later_part_is_answered(driven: DrivenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    number = driven.send(DeleteGroupsRequest(groups_names=THERE), 2)
    with monkeypatch.context() as patched:
        patched.delattr(GroupsShard, "delete_group")
        driven.fire()
    assert set(errors_of(driven, number).values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert not driven.node._ctx.parts


async def test_the_event_loop_has_its_turn_between_two_parts() -> None:
    async with App(Options(listen=False)) as app, asyncio.timeout(PATIENCE):
        names = tuple(f"none-{number}" for number in range(5 * PART))
        reply = app.runtime.submit(DeleteGroupsRequest(groups_names=names), Context(2))
        passes = 0
        while reply.response is None:
            passes += 1
            await asyncio.sleep(0)
        assert passes >= 4
