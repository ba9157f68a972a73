"""The first target of a group, in which no member has a task or state: loads alone decide, and they rise in rounds.

When items of Java's queue are equal, and each goes back with one task more, all are equal again once each has been
first. The order of such a round, and how it moves the items within the heap, depend on their number only: a round is
computed once and then repeated. Processes and members are numbers here, in the order in which the queues get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import contains
from typing import NamedTuple

from rejoin.protocol.java_queue import JavaPriorityQueue


def steps(members: int, tasks: int) -> list[list[int]]:
    """The numbers of the process's tasks that each member gets, ascending; the process has got them in this order."""
    found: list[list[int]] = [[] for _ in range(members)]
    for step, member in enumerate(_turns(members, tasks)):
        found[member].append(step)
    return found


def active_turns(sizes: Sequence[int], tasks: int) -> list[int]:
    """The process of each of so many active tasks. ``sizes`` are the numbers of members of the processes."""
    if len(set(sizes)) == 1:
        return _turns(len(sizes), tasks)
    counts = [0] * len(sizes)
    queue = JavaPriorityQueue((0.0, process) for process in range(len(sizes)))
    found = []
    for _ in range(tasks):
        process = queue.pop()
        counts[process] += 1
        queue.push(counts[process] / sizes[process], process)
        found.append(process)
    return found


def standby_turns(
    sizes: Sequence[int], counts: Sequence[int], owners: Sequence[int], replicas: int
) -> list[tuple[int, ...]]:
    """The processes of each task's standbys, ``replicas`` or as many as there are; none has a task twice.

    ``counts`` are the tasks that each process has, ``owners`` the process of each task's active one.
    """
    return _Processes(sizes, counts).give(owners, replicas)


class _Round(NamedTuple):
    """A round of equal items, by their places in the heap."""

    order: list[int]
    """The places of the items that come first."""
    moved: list[int]
    """For each place, where the item was that lies there after the round."""


def _round(size: int, turns: int) -> _Round:
    """A round of ``size`` items, or so many turns of it."""
    queue = JavaPriorityQueue((0, place) for place in range(size))
    order = []
    for _ in range(min(size, turns)):
        place = queue.pop()
        order.append(place)
        queue.push(1, place)
    return _Round(order, list(queue))


def _turns(size: int, count: int) -> list[int]:
    """The items that come first, so many times, of ``size`` equal ones."""
    order, moved = _round(size, count)
    items = list(range(size))
    found: list[int] = []
    while len(found) < count:
        found += [items[place] for place in order]
        items = [items[place] for place in moved]
    return found[:count]


class _Processes:
    """Processes that get tasks, the least loaded first."""

    def __init__(self, sizes: Sequence[int], counts: Sequence[int]) -> None:
        self._sizes = sizes
        self._counts = list(counts)
        self._queue = self._queue_of(range(len(sizes)))

    def give(self, owners: Sequence[int], copies: int) -> list[tuple[int, ...]]:
        """Give each task to so many processes other than its owner, or to as many as there are.

        A round that would give a task to its owner is played on the queue, and so is what follows until all are equal.
        """
        number = len(self._sizes)
        rises_evenly = len(set(self._sizes)) == 1 and number > copies and number % copies == 0
        if not rises_evenly or len(owners) * copies < number:
            return [self._give(owner, copies) for owner in owners]
        order, moved = _round(number, number)
        items: list[int] = []  # In the places of the heap, and instead of the queue, where all are equal.
        found: list[tuple[int, ...]] = []
        while len(found) < len(owners):
            behind = number * max(self._counts) - sum(self._counts)
            some = owners[len(found) : len(found) + (behind // copies or number // copies)]
            if not behind:
                items = items or list(self._queue)
                chosen = list(zip(*[iter([items[place] for place in order])] * copies, strict=True))
                if not any(map(contains, chosen, some)):
                    found += chosen[: len(some)]
                    self._counts = [count + 1 for count in self._counts]
                    items = [items[place] for place in moved]
                    continue
            if items:
                self._queue = self._queue_of(items)
                items = []
            found += [self._give(owner, copies) for owner in some]
        return found

    def _queue_of(self, processes: Iterable[int]) -> JavaPriorityQueue[float, int]:
        return JavaPriorityQueue((self._counts[each] / self._sizes[each], each) for each in processes)

    def _give(self, owner: int, copies: int) -> tuple[int, ...]:
        chosen: tuple[int, ...] = ()
        counts, sizes, queue = self._counts, self._sizes, self._queue
        while len(chosen) < copies:
            aside = []
            while queue:
                process = queue.pop()
                if process != owner and process not in chosen:
                    counts[process] += 1
                    queue.push(counts[process] / sizes[process], process)
                    chosen += (process,)
                    break
                aside.append(process)
            for process in reversed(aside):
                queue.push(counts[process] / sizes[process], process)
            if len(aside) == len(counts):
                break
        return chosen
