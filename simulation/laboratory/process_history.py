"""Each consumer's process in any instant of a run: its core as that describes itself, and what is done to it."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from rejoin.client.core.group.describe import MembershipView
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.kernel import Millis


class ProcessView(NamedTuple):
    """A process after a step of its core; ``member`` is none while the process is down."""

    member: MembershipView | None
    owned: tuple[TopicPartition, ...] = ()
    is_polling: bool = False
    is_closing: bool = False


class ProcessHistory:
    """The process of one consumer, in the order of its steps."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._times: list[Millis] = []
        self._views: list[ProcessView] = []

    def take(self, view: ProcessView, now: Millis) -> bool:
        """Keep a view. Returns whether the state or the generation is another one than before."""
        before = self._views[-1] if self._views else None
        if view == before:
            return False
        if self._times and self._times[-1] == now:
            self._views[-1] = view
        else:
            self._times.append(now)
            self._views.append(view)
        return before is None or _shown(before) != _shown(view)

    def at(self, instant: Millis) -> ProcessView:
        """The process after all its steps by an instant."""
        count = bisect_right(self._times, instant)
        return self._views[count - 1] if count else ProcessView(None)


def view_of(consumer: ConsumerProcess, before: ProcessView) -> ProcessView:
    """A process as it is now."""
    core = consumer.core
    if core is None:
        return ProcessView(None)
    owned = tuple(core.assignment())
    return ProcessView(
        core.describe(), before.owned if owned == before.owned else owned, core.polling, consumer.stopping
    )


def _shown(view: ProcessView) -> tuple[object, ...]:
    member = view.member
    return () if member is None else (member.state, member.generation)
