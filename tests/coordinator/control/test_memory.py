"""What is kept for evidence and snapshots is bounded in bytes, and given back by a reset."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator
from typing import Final

import pytest

from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.transcript.steps import KEPT_BYTES
from tests.coordinator.control.helpers import ControlledNode

LARGE: Final = "x" * 30_000


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", socket=False) as started:
        yield started


def leave(members: int) -> LeaveGroupRequest:
    """A request of many kilobytes, which is refused."""
    identities = tuple(MemberIdentity(member_id=f"{number}{LARGE}") for number in range(members))
    return LeaveGroupRequest(group_id="g", members=identities)


async def test_a_recording_keeps_what_fits(coordinator: GroupCoordinator) -> None:
    assert coordinator.app.control is not None
    recorder = coordinator.app.control.recorder
    assert recorder.kept_bytes == KEPT_BYTES
    recorder.kept_bytes = 2_000_000
    for _ in range(10):
        await coordinator.call(leave(10))
    # Request and answer name ten members each.
    assert 1_500_000 < recorder.size <= 2_000_000
    assert recorder.mark - recorder.first == len(recorder.since(recorder.first)) == 3
    await coordinator.call(leave(100))
    assert recorder.mark - recorder.first == 1, "the newest step is kept, whatever its size"
    await coordinator.call(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
    assert recorder.size < 10_000


async def keep_evidence(node: ControlledNode, requests: int) -> None:
    for _ in range(requests):
        answered = await node.request("POST", "/v1/leave-group", leave(10).to_json(5))
        assert answered.status == 200
    await node.control("POST", "/snapshot")


async def test_a_reset_gives_memory_back(node: ControlledNode) -> None:
    # Modules that the first requests load are no evidence.
    await keep_evidence(node, 1)
    await node.control("POST", "/reset")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await keep_evidence(node, 50)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        await node.control("POST", "/reset")
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held > 10_000_000
    # Threads of other tests may allocate, too.
    assert kept < held / 2


async def test_snapshots_keep_what_fits(coordinator: GroupCoordinator) -> None:
    assert coordinator.app.control is not None
    coordinator.app.control.actions.kept_bytes = 1_000_000
    names = []
    for _ in range(4):
        await coordinator.call(leave(10))
        names.append(await coordinator.snapshot())
    await coordinator.restore(names[-1])
    with pytest.raises(Exception, match="there is no snapshot"):
        await coordinator.restore(names[0])
