"""``uniform`` in a large group where little has changed: only the members whose targets change are looked at.

The walk over all members (``uniform.py``) gives each member of q or fewer partitions q, and the others one more, as
long as extra partitions are left; when as many members are to come as extras are left, each of them gets one. So the
number of members above q decides where the extras stop: the last ones in the order lose or gain one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rejoin.coordinator.core.groups.consumer.assignors.uniform import Run, Target, hand_out, kept
from rejoin.coordinator.core.groups.consumer.model.target_index import TargetIndex


def reassign(index: TargetIndex) -> Mapping[str, Mapping[str, Collection[int]]]:
    """The new targets of those members whose targets change, in the order of the members."""
    sizes = _changed_sizes(index)
    runs: list[Run] = [(topic_id, sorted(index.free[topic_id])) for topic_id in index.topics if topic_id in index.free]
    unfilled: list[tuple[Target, int]] = []
    changed: dict[str, Target] = {}
    for member_id in index.in_order(sizes):
        size = sizes[member_id]
        target, count = kept(index.target_of(member_id), index.topics, size, runs)
        if count < size:
            unfilled.append((target, size - count))
        changed[member_id] = target
    hand_out(runs, unfilled)
    return changed


def _changed_sizes(index: TargetIndex) -> dict[str, int]:
    """How many partitions each member should have whose number changes."""
    quota, extras = divmod(sum(index.topics.values()), len(index))
    below: list[str] = []
    above: list[str] = []
    rich = 0
    for size, of_size in index.by_size.items():
        if size > quota:
            rich += len(of_size.members)
        if size > quota + 1:
            above += of_size.members
        elif size < quota:
            below += of_size.members
    sizes = dict.fromkeys(above, quota + 1) | dict.fromkeys(below, quota)
    if rich > extras:
        sizes |= dict.fromkeys(_last(index, rich - extras, above, quota + 1), quota)
    else:
        sizes |= dict.fromkeys(_last(index, extras - rich, below, quota), quota + 1)
    return sizes


def _last(index: TargetIndex, count: int, some: Iterable[str], size: int) -> list[str]:
    """The last in order of these members and of all that have this size."""
    of_size = index.by_size.get(size)
    candidates = [*some, *(() if of_size is None else of_size.last(count))]
    return index.in_order(candidates)[len(candidates) - count :]
