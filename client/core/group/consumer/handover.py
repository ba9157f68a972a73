"""Handing an assignment over to the user: its partitions are fetched once the listener has returned."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.client.core.group import listener, membership
from rejoin.client.core.group.consumer.transitions import Then, raised
from rejoin.client.core.group.streams.tasks import StreamsTasks
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext, by_topic
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.protocol.types import TopicPartition


def assign_partitions(
    state: ConsumerState,
    ctx: StepContext,
    partitions: Sequence[TopicPartition],
    then: Then,
    tasks: StreamsTasks | None = None,
    *,
    is_group_ready: bool = True,
) -> None:
    """Own exactly these from now on, and call the listener for those that are new; ``then`` gets its exception.

    A thread of an application gets all of its ``tasks``, and whether it may process.
    """
    owned = set(state.subscription.owned())
    added = [partition for partition in partitions if partition not in owned]
    state.subscription.assign(partitions)
    for each in added:
        state.subscription.assignment[each].pending_revocation = True  # not fetched before the listener knows
    if added or tasks is None:
        ctx.emit(PartitionsAssigned(partitions=by_topic(added), **membership.identity(state, ctx)))

    def called(error: BaseException | None) -> None:
        for each in added:
            if each in state.subscription.assignment:
                state.subscription.assignment[each].pending_revocation = False
        then(raised(state, ctx, "assigned", error))

    listener.call(state, ctx, "assigned", added, called, tasks, is_group_ready=is_group_ready)
