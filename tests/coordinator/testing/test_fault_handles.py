"""The fault rules of a test: those that could do nothing are refused, and a handle says how its rule fares."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rejoin.coordinator.testing import BlockingFault, GroupCoordinator, NotReached, OperationRefused, running


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as started:
        yield started


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keys": "Heartbeat", "version": 99}, "version: Heartbeat has versions 0 to 4, not 99"),
        ({"keys": ["Heartbeat", "OffsetDelete"], "version": [4, 5]}, "OffsetDelete has versions 0 to 0, not 5"),
        ({"version": 99}, "version: no API has such a version, not 99"),
        ({"keys": "Heartbeat", "partitions": [1]}, "no Heartbeat request names partitions; leave partitions out"),
        ({"keys": "Metadata", "topic": "orders", "partitions": 1}, "no Metadata request names partitions"),
        ({"keys": ["SyncGroup", "ListGroups"], "topic": "orders"}, "no SyncGroup or ListGroups request names topics"),
        ({"keys": ["Heartbeat", "Produce"], "group": "g", "topic": "t"}, "no Heartbeat request names topics"),
        (
            {"keys": "Heartbeat", "instance": "i", "version": 0},
            "no Heartbeat request of version 0 names group instance",
        ),
        ({"wrong": "flipped_bit", "group": "g"}, "group: no Fetch request names groups"),
        ({"partitions": -1}, "partitions: expected greater than or equal to 0, not -1"),
        ({"partitions": [0, -1]}, "partitions.1: expected greater than or equal to 0, not -1"),
        ({"keys": []}, "keys: expected at least one; leave keys out to match any"),
    ],
)
async def test_a_rule_that_can_never_match_is_refused(
    coordinator: GroupCoordinator, fields: dict[str, Any], words: str
) -> None:
    does: dict[str, Any] = {} if "wrong" in fields else {"error": 16}
    with pytest.raises(ValueError, match=re.escape(words)):
        await coordinator.add_fault(**fields, **does)


async def test_a_rule_for_a_node_that_is_not_there_is_refused(coordinator: GroupCoordinator) -> None:
    with pytest.raises(OperationRefused, match=r"^node: expected a broker of this process: 1; not 7$"):
        await coordinator.add_fault(keys="Heartbeat", node=7, error="NOT_COORDINATOR")


async def test_more_hits_than_the_rule_can_have_are_not_waited_for(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
    with pytest.raises(OperationRefused, match="hits: expected up to 1, as the count of fault 1 says; not 2"):
        await fault.wait(2)
    with pytest.raises(ValueError, match="hits: expected greater than or equal to 1, not 0"):
        await fault.wait(0)


async def test_a_rule_that_was_removed_is_not_waited_for(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
    waiting = asyncio.ensure_future(fault.wait())
    await asyncio.sleep(0)
    await coordinator.clear_faults()
    for each in (waiting, fault.wait()):
        with pytest.raises(NotReached, match=r"^fault 1 was applied 0 times and then removed, expected 1$"):
            await each


async def test_a_handle_shows_its_rule(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys=["Heartbeat"], group=["a", "b"], error="not_coordinator", count=2)
    assert repr(fault) == (
        "<fault 1: keys=Heartbeat, group=['a', 'b'], count=2, error=NOT_COORDINATOR, when=before; applied 0 times>"
    )
    assert repr(BlockingFault(fault)) == repr(fault)
