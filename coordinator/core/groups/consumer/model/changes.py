"""The changes of consumer groups: what a change says beside its records."""

from __future__ import annotations

from typing import TypeAlias

from rejoin.coordinator.core.groups.modern import changes as modern
from rejoin.coordinator.core.groups.modern.changes import UndoableReplay


class Changes(modern.RecordChanges):
    """The records of one request about a consumer group."""

    __slots__ = ("resolves_regexes", "upgraded_from")

    def __init__(self, replay: UndoableReplay) -> None:
        super().__init__(replay)
        self.resolves_regexes = False
        """Whether topics of expressions were found."""
        self.upgraded_from: int | None = None
        """The generation of a classic group that becomes a consumer group."""


Writes: TypeAlias = modern.Writes[Changes]
"""The changes of one shard's consumer groups that are being written."""
