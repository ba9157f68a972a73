"""The interface of topics logs, and how changes are written.

Versions count the changes from 1 on. A row is a change: the JSON array of its records. Now and then all rows are
replaced by one that has everything, ``{"whole": [...]}``, under the version of the newest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Protocol

from rejoin.coordinator.core.effects import AppendTopics
from rejoin.coordinator.core.inputs import TopicsChanged, TopicsRecords
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.topics import TOPICS_RECORDS


class TopicsNotStored(Exception):
    """The log could not be asked, or could not write. ``error`` is the answer to the request for the change."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.error = error


class TopicsLog(Protocol):
    """The topics log. Every method raises :class:`TopicsNotStored` while the store does not work."""

    async def read(self, after: int) -> TopicsChanged:
        """All changes behind a version."""

    async def append(self, version: int, records: TopicsRecords) -> int | None:
        """Store a change if ``version`` is still the newest; the version it became, or none if others were faster."""

    async def compact(self, version: int, records: TopicsRecords) -> None:
        """Keep these records in place of all changes up to ``version``."""


class TopicsClient(Protocol):
    """The topics log as a runtime uses it."""

    async def catch_up(self) -> None:
        """Hand in the changes that the node does not know yet. Raises :class:`TopicsNotStored`."""

    def append(self, wanted: AppendTopics) -> None:
        """Store a change, and hand in how that ended."""

    async def stop(self) -> None:
        """Finish the appends in flight."""


def as_text(records: TopicsRecords) -> str:
    """A change as a row keeps it."""
    return TOPICS_RECORDS.dump_json(records).decode()


def whole_as_text(records: TopicsRecords) -> str:
    """A row that has everything."""
    return f'{{"whole":{as_text(records)}}}'


def changed(after: int, rows: Iterable[tuple[int, str]]) -> TopicsChanged:
    """Changes of the topics from rows, in order of version; ``after`` is the version before the first.

    Raises ``ValueError`` where a row cannot be read or one is missing, unless that is the newest. Topics that are not
    known are taken for deleted, and their batches go.
    """
    version = after
    whole = after == 0
    changes: list[tuple[int, TopicsRecords]] = []
    for number, text in rows:
        found = json.loads(text)
        if isinstance(found, dict):
            whole, changes, found = True, [], found["whole"]
        elif number != version + 1:
            raise ValueError(f"change {version + 1} of the topics is missing; {number} follows")
        changes.append((number, TOPICS_RECORDS.validate_json(json.dumps(found))))
        version = number
    return TopicsChanged(tuple(changes), version, whole)
