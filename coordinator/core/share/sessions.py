"""Share sessions: the partitions of a member of a share group on one broker, and the epoch of its next request.

A session is known by group and member. Nothing checks that there is such a group, or that the member is in it.

Kafka: KIP-932, ShareSessionCache, ShareSession, SharePartitionManager.newContext.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rejoin.protocol.errors import ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1

MOST_PARTITIONS: Final = 200_000
"""How many partitions all share sessions of a node may have together."""
# Differs: Kafka bounds the sessions alone.


class SessionKey(NamedTuple):
    """A member of a group, as its requests say."""

    group_id: str
    member_id: str


class SharedPartition(NamedTuple):
    """A partition of a session, by its topic's id."""

    topic_id: str
    partition: int


def rotated(partitions: list[SharedPartition], epoch: int) -> list[SharedPartition]:
    """Partitions in the order in which a request with an epoch goes through them: each begins one further.

    Kafka: PartitionRotateStrategy.
    """
    if epoch < 1 or not partitions:
        return partitions
    turn = epoch % len(partitions)
    return partitions[turn:] + partitions[:turn]


def next_epoch(epoch: int) -> int:
    """The epoch after one; what follows the highest is 1."""
    return 1 if epoch == MAX_EPOCH else epoch + 1


@dataclass(slots=True)
class ShareSession:
    """One session. ``epoch`` is that of the request which comes next."""

    key: SessionKey
    connection: str
    epoch: int = 1
    partitions: dict[SharedPartition, bool] = field(default_factory=dict)
    """In the order of adding. True for one that was added later, until a response had it, with records or without."""

    def gave_records(self, partition: SharedPartition) -> None:
        """A response had records of a partition: others come first in the next one."""
        if partition in self.partitions:
            self.partitions[partition] = self.partitions.pop(partition)


class ShareSessions:
    """The sessions of a node."""

    def __init__(self, most: int, most_partitions: int = MOST_PARTITIONS) -> None:
        self._most = most
        self._most_partitions = most_partitions
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[str, SessionKey] = {}
        """The session that a connection opened last, open or closed. Kafka remembers no more of one either."""
        self._cached_partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._sessions

    def open(self, key: SessionKey, connection: str, partitions: Iterable[SharedPartition]) -> ShareSession | ErrorCode:
        """A new session in place of an old one, or why there is none. What the old one holds stays acquired."""
        self._remove(key)
        wanted = dict.fromkeys(partitions, False)
        if len(self._sessions) >= self._most or self._cached_partitions + len(wanted) > self._most_partitions:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = self._sessions[key] = ShareSession(key, connection, partitions=wanted)
        self._cached_partitions += len(wanted)
        if connection:
            self._by_connection[connection] = key
        return session

    def find(self, key: SessionKey, epoch: int) -> ShareSession | ErrorCode:
        """The session of a request that does not open one, or why there is none; its epoch moves on."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = next_epoch(epoch)
        return session

    def update(
        self, session: ShareSession, added: Iterable[SharedPartition], forgotten: Iterable[SharedPartition]
    ) -> bool:
        """Add and remove partitions of a session; returns whether there is room for them."""
        before = len(session.partitions)
        for each in added:
            session.partitions.setdefault(each, True)
        for each in forgotten:
            session.partitions.pop(each, None)
        self._cached_partitions += len(session.partitions) - before
        return self._cached_partitions <= self._most_partitions

    def close(self, key: SessionKey) -> ShareSession | None:
        """A member closes its session; returns the session, or none where there was none."""
        return self._remove(key)

    def disconnected(self, connection: str) -> tuple[SessionKey, ShareSession | None] | None:
        """A connection is gone, and with it the session that it opened last: its key, and the session if it was open.

        None: the connection opened no session.
        """
        key = self._by_connection.pop(connection, None)
        if key is None:
            return None
        session = self._sessions.get(key)
        is_its_own = session is not None and session.connection == connection
        return key, self._remove(key) if is_its_own else None

    def of_group(self, group_id: str) -> bool:
        """Whether a group has any session here."""
        return any(key.group_id == group_id for key in self._sessions)

    def clear(self) -> None:
        """Forget all sessions: share groups are switched off."""
        self._sessions.clear()
        self._by_connection.clear()
        self._cached_partitions = 0

    def _remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._cached_partitions -= len(session.partitions)
        return session
