"""Inputs that only share consumers have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rejoin.client.core.inputs import Input, Token


@dataclass(slots=True)
class RecordAcknowledged:
    """The user has decided about a record of the last poll. Answered by ``CallDone``."""

    token: Token
    topic: str
    partition: int
    offset: int
    type: int


@dataclass(slots=True)
class ShareCommitAsked:
    """Send the acknowledgements so far. Answered by ``AcknowledgementsCommitted``.

    In implicit mode all records of the last poll are accepted, except for those in ``unread``: topic, partition and
    offset of records that were fetched for iteration and not handed out.
    """

    token: Token
    timeout_ms: int | None = None
    unread: frozenset[tuple[str, int, int]] = frozenset()


ShareInput: TypeAlias = Input | RecordAcknowledged | ShareCommitAsked
