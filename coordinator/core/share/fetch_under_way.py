"""A ShareFetch under way: its partitions, and the results so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.led_partitions import LedSharePartition
from rejoin.coordinator.core.share.sessions import SharedPartition, ShareSession
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_fetch import AcquiredRecords, ShareFetchRequest
from rejoin.protocol.records.batch_run import BatchRun
from rejoin.protocol.types import BatchBytes


@dataclass(slots=True)
class Fetched:
    """The result of reading one share-partition."""

    error: ErrorCode = ErrorCode.NONE
    records: BatchBytes | BatchRun = b""
    acquired: tuple[AcquiredRecords, ...] = ()


@dataclass(slots=True, eq=False)
class ShareFetchUnderWay:
    """A ShareFetch from its admission to its answer."""

    token: Token
    request: ShareFetchRequest
    context: Context
    session: ShareSession
    partitions: list[SharedPartition] = field(default_factory=list)
    """The partitions to read, in the order in which they are read."""
    led: dict[SharedPartition, LedSharePartition] = field(default_factory=dict)
    fetched: dict[SharedPartition, Fetched] = field(default_factory=dict)
    acknowledged: dict[SharedPartition, ErrorCode] = field(default_factory=dict)
    left: int = 1
    """Acknowledgements without a result, and the reading."""
    has_read: bool = False
    is_broken: bool = False
    """An acknowledgement failed in a way in which Kafka fails the whole request."""
    timer: TimerKey | None = None
    deadline: Millis = 0

    @property
    def member_id(self) -> str:
        return self.request.member_id or ""

    @property
    def group_id(self) -> str:
        return self.request.group_id or ""
