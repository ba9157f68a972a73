"""One rule of streams groups broken at a time; the recordings of streams groups must find each."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.groups.streams.members import finding
from rejoin.coordinator.core.groups.streams.model.holders import TaskHolders
from rejoin.protocol.errors import ErrorCode


def tasks_are_handed_out_that_others_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TaskHolders, "hold", lambda *_: None)


def epochs_of_streams_members_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(finding, "_check_epoch", lambda *_: ErrorCode.NONE)
