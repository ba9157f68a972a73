"""Share sessions at one of several brokers in one process, whose connections are lost while it cannot see that."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import ConnectionLost, Context
from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from tests.coordinator.in_process_brokers.test_leaders import three


def share_fetch(epoch: int) -> ShareFetchRequest:
    return ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=0,
        max_records=1,
        batch_size=1,
        topics=(),
        forgotten_topics_data=(),
    )


async def hold(coordinator: GroupCoordinator, *, paused: bool) -> None:
    if paused:
        await coordinator.pause_broker(1)
    else:
        await coordinator.cut_off(1, clients=True)


@pytest.mark.parametrize("paused", [True, False])
async def test_a_connection_ends_after_the_requests_that_came_by_it(paused: bool) -> None:
    async with three() as coordinator:
        runtime = await coordinator._ask(lambda control: control._runtime.broker_named(1))
        await hold(coordinator, paused=paused)
        runtime.submit(share_fetch(0), Context(2, connection="c"))
        runtime.hand_in(ConnectionLost("c"))
        await (coordinator.resume_broker(1) if paused else coordinator.heal(1))
        answer: Any = await coordinator.call(share_fetch(1), 2, broker=1)
        assert answer.error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
