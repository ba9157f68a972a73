"""The base of what is kept by records of the topics log beside topics: one class for each kind of state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from rejoin.coordinator.core.inputs import TopicsRecords
from rejoin.protocol.message import Struct


class RecordedState(ABC):
    """One kind of state. It changes only by its records, alike on all nodes that read the same topics log."""

    RECORDS: ClassVar[tuple[type[Struct], ...]]
    """The classes of its records (``protocol.records.security``)."""

    @abstractmethod
    def replay(self, record: Any) -> None:
        """Apply one of its records, which is stored."""

    @abstractmethod
    def records(self) -> TopicsRecords:
        """Records that restore the current state, for a compacted log."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything: the log is read again from its beginning."""
