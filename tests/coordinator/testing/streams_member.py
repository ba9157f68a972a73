"""A stream thread of an application that counts words, for tests of the kit: one request at a time, over ``call``."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.streams.tasks import TaskIds
from tests.coordinator.core.groups.streams.word_count import COUNTS, LINES, info, word_count

APPLICATION: Final = "app"
TOPICS: Final = {LINES: 2}
AT_ONCE: Final[dict[str, str | int]] = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}
"""Settings with which targets are computed in the heartbeat that wants them."""


class StreamsThread:
    """A member. It owns at once what it is given, and gives up what it is not."""

    def __init__(self, coordinator: GroupCoordinator, member_id: str) -> None:
        self._coordinator = coordinator
        self.member_id = member_id
        self.epoch = 0
        self.tasks: dict[str, tuple[TaskIds, ...]] = {}

    async def join(self) -> Any:
        """Join; a second heartbeat brings the first tasks of a new group."""
        none: tuple[TaskIds, ...] = ()
        self.epoch, self.tasks = 0, {"active_tasks": none, "standby_tasks": none, "warmup_tasks": none}
        return await self.beat(
            topology=word_count(info(COUNTS)),
            process_id=f"process-{self.member_id}",
            rebalance_timeout_ms=60_000,
        )

    async def beat(self, **given: Any) -> Any:
        """A heartbeat with what the member owns."""
        request = StreamsGroupHeartbeatRequest(
            group_id=APPLICATION,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=0,
            **self.tasks | given,
        )
        answer: Any = await self._coordinator.call(request, version=1, client_id=f"client-{self.member_id}")
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.tasks = {name: getattr(answer, name) for name in self.tasks}
        return answer


async def running_threads(coordinator: GroupCoordinator, *member_ids: str) -> list[StreamsThread]:
    """Members that have reached their tasks, each with its share."""
    threads = [StreamsThread(coordinator, each) for each in member_ids]
    for thread in threads:
        await thread.join()
        for _ in range(3):
            for each in threads[: threads.index(thread) + 1]:
                await each.beat()
    await coordinator.wait_for_streams_group(APPLICATION, state="Stable", members=len(threads))
    return threads
