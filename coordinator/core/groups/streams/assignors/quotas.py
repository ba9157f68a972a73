"""How many tasks a member may have before the others have as many."""

from __future__ import annotations


class Quota:
    """Tasks that are left for each member. A member that reaches the quota drops out, with the tasks that it has."""

    __slots__ = ("_members", "_tasks", "per_member")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = _share(tasks, members)

    def filled(self, count: int) -> None:
        """A member has got a task, and has so many now."""
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self.per_member = _share(self._tasks, self._members)


def _share(tasks: int, members: int) -> int:
    """Tasks for each, rounded up."""
    return -(-tasks // members) if members > 0 else 0
