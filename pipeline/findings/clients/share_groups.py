"""Sentences about share groups, where those about groups with one owner for each partition would be wrong.

Members of a share group have no static membership, no generation and no commits, and none waits for another. A member
that is gone keeps its place in the assignment until its session ends, and its records until their locks run out or
its connection closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rejoin.pipeline.findings.formatting import span, spans

SESSION: Final = "group.share.session.timeout.ms"

NO_STATIC_MEMBERS: Final = "share groups have no static members"

LET_IT_LEAVE: Final = (
    "If it was stopped on purpose, let it close its consumer (SIGTERM, and time enough before SIGKILL): then it leaves "
    "and gives its records back at once. A process that starts again is a new member, as share groups have no static "
    "members; it gets partitions at once, and the old member stays in the assignment until its session ends."
)
"""Advice on members of a share group that die."""

SHORTER_LOCKS: Final = (
    "Records that it had are free again when its connection closes; where that is not noticed, as after the loss of a "
    "host, when their locks run out (share.record.lock.duration.ms)."
)

GROWTH: Final = (
    "Nothing to change: the broker notices growth, and members get the new partitions with a heartbeat as soon as "
    "their state is initialised."
)

NEW_GROUP: Final = (
    "Give each application a group.id of its own. Where the new group begins is set by share.auto.offset.reset, or by "
    "kafka-share-groups.sh --reset-offsets while it has no members."
)

FAILOVER: Final = (
    "Members went on fetching and acknowledging: the leaders of the partitions serve both, without the group's "
    "coordinator."
)


def unread_while_silent(setting: str, timeouts: Sequence[int]) -> str:
    """A sentence about the partitions of members that were silent; ``timeouts`` in ms."""
    lasted = f", for {setting} ({spans(timeouts)})" if timeouts else ""
    return f" Before that the partitions that no other member was assigned had no reader{lasted}"


def longer_session(setting: str, value: str, bound: str, longest_ms: int, what: str) -> str:
    """Advice to outlast a pause of a member by a longer session."""
    return (
        f"Set {setting} to {value} or more ({bound}): a member then stays in the group through a {what} of up to "
        f"{span(longest_ms)}. The price: partitions that only a dead member was assigned are without a reader for as "
        "long."
    )
