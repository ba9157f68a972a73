"""Broken rules that need a certain order of events, beside those that ``search`` is tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rejoin.coordinator.core.groups.classic import member_operations
from tests.simulation.search.mutations import Break, Mutation

MORE: list[Mutation] = []


def found_by(check: str) -> Callable[[Break], Break]:
    """Register a broken rule with the check that finds it."""

    def register(mutation: Break) -> Break:
        MORE.append(Mutation(mutation, check, "faults", 0))
        return mutation

    return register


@found_by("a_member_is_removed_that_beat_in_time")
def sessions_end_a_moment_early(patch: pytest.MonkeyPatch) -> None:
    right = member_operations.MemberOperations.restart_session

    def wrong(self: Any, member: Any) -> None:
        right(self, member)
        at = self._ctx.deadlines.at(member.session_key)
        if at is not None:
            self._ctx.deadlines.set(member.session_key, at - 1)

    patch.setattr(member_operations.MemberOperations, "restart_session", wrong)
