"""Fetch sessions: a consumer's partitions are remembered, so that requests and responses carry only changes.

A session belongs to the node and not to a connection. It names its partitions by name, or from v13 on by topic id.

Kafka: KIP-227, FetchManager, FetchSession, FetchSessionCache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.fetch.replica_selector import NO_REPLICA
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import FetchablePartitionResponse, FetchPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
"""A session that was not used for longer gives way to any new one. It is no setting in Kafka either."""

MOST_PARTITIONS: Final = 200_000
"""How many partitions all sessions of a node may have together: each takes about 650 bytes."""

NOT_SENT: Final = -1


class FetchKey(NamedTuple):
    """A partition as a request names it: by its topic's name, and from v13 on without, by the topic's id."""

    topic: str | None
    topic_id: str
    partition: int


class WantedPartition(NamedTuple):
    """A partition to read. The topic is none where its id is not known."""

    key: FetchKey
    topic: str | None
    asked: FetchPartition


Wanted: TypeAlias = Mapping[FetchKey, FetchPartition]
"""The partitions of a request, in order."""


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session: the consumer's last request, and the last response to it."""

    wanted: WantedPartition
    high_watermark: int = NOT_SENT
    log_start_offset: int = NOT_SENT

    def is_news(self, data: FetchablePartitionResponse) -> bool:
        """Whether a response must have the partition."""
        return bool(
            data.records
            or data.error_code is not ErrorCode.NONE
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.diverging_epoch.epoch >= 0
            or data.preferred_read_replica != NO_REPLICA
        )

    def sent(self, data: FetchablePartitionResponse) -> None:
        """Remember the response for the partition. After an error the consumer gets the partition again."""
        self.high_watermark = data.high_watermark if data.error_code is ErrorCode.NONE else NOT_SENT
        self.log_start_offset = data.log_start_offset


@dataclass(slots=True)
class FetchSession:
    """One session. ``epoch`` is that of the request which comes next."""

    session_id: int
    uses_topic_ids: bool
    created_at: Millis
    used_at: Millis
    epoch: int = 1
    partitions: dict[FetchKey, CachedPartition] = field(default_factory=dict)

    def update(self, wanted: Iterable[WantedPartition], forgotten: Iterable[FetchKey]) -> None:
        """Apply the changes of a request."""
        for each in wanted:
            cached = self.partitions.get(each.key)
            if cached is None:
                self.partitions[each.key] = CachedPartition(each)
            else:
                # Kafka: a session keeps the name that an id once had, so that a topic made anew is found out.
                cached.wanted = each._replace(topic=cached.wanted.topic or each.topic)
        for key in forgotten:
            self.partitions.pop(key, None)

    def resolve(self, named: Callable[[str], str | None]) -> None:
        """Look once more for the names of ids that were not known."""
        for key, cached in self.partitions.items():
            if cached.wanted.topic is None:
                cached.wanted = cached.wanted._replace(topic=named(key.topic_id))


Answered: TypeAlias = dict[FetchKey, FetchablePartitionResponse]
"""Partitions of a response, in the order in which it has them."""


class FetchResult(NamedTuple):
    """The fields of a response besides its partitions."""

    error: ErrorCode
    session_id: int
    partitions: Answered


class FetchContext(ABC):
    """The partitions that one request is about, and what of their data the response has."""

    def __init__(self, wanted: Sequence[WantedPartition]) -> None:
        self.wanted = wanted
        """The partitions to read, in order."""

    @abstractmethod
    def respond(self, data: Answered, now: Millis) -> FetchResult:
        """The content of the response, from the data that was read."""

    def preview(self, data: Answered) -> Answered:
        """The partitions that a response would have; nothing changes by it."""
        return data

    def throttled(self) -> FetchResult:
        """The content of a response without data, to a client that has to wait; nothing changes by it."""
        return FetchResult(ErrorCode.NONE, NO_SESSION, {})


class SessionErrorContext(FetchContext):
    """A request whose session is not as it thinks."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(())
        self.error = error

    def respond(self, data: Answered, now: Millis) -> FetchResult:
        return self.throttled()

    def preview(self, data: Answered) -> Answered:
        return {}

    def throttled(self) -> FetchResult:
        return FetchResult(self.error, NO_SESSION, {})


class SessionlessFetchContext(FetchContext):
    """A request that stands for itself."""

    def respond(self, data: Answered, now: Millis) -> FetchResult:
        return FetchResult(ErrorCode.NONE, NO_SESSION, data)


class FullFetchContext(SessionlessFetchContext):
    """A request that has all its partitions, and begins a session."""

    def __init__(self, sessions: FetchSessions, wanted: Sequence[WantedPartition], uses_topic_ids: bool) -> None:
        super().__init__(wanted)
        self._sessions = sessions
        self._uses_topic_ids = uses_topic_ids

    def respond(self, data: Answered, now: Millis) -> FetchResult:
        session = self._sessions.create(len(data), self._uses_topic_ids, now)
        if session is None:
            return FetchResult(ErrorCode.NONE, NO_SESSION, data)
        wanted = {each.key: each for each in self.wanted}
        for key, each in data.items():
            session.partitions[key] = cached = CachedPartition(wanted[key])
            cached.sent(each)
        return FetchResult(ErrorCode.NONE, session.session_id, data)


class IncrementalFetchContext(FetchContext):
    """A request of a session: it is about all partitions of the session, and the response has those with news."""

    def __init__(self, session: FetchSession) -> None:
        # A request that waits is not changed by a later one of its session.
        super().__init__([cached.wanted for cached in session.partitions.values()])
        self._session = session
        self._epoch = session.epoch

    def preview(self, data: Answered) -> Answered:
        partitions = self._session.partitions if self._session.epoch == self._epoch else {}
        return {key: each for key, each in data.items() if key in partitions and partitions[key].is_news(each)}

    def throttled(self) -> FetchResult:
        is_current = self._session.epoch == self._epoch
        error = ErrorCode.NONE if is_current else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return FetchResult(error, self._session.session_id, {})

    def respond(self, data: Answered, now: Millis) -> FetchResult:
        session = self._session
        if session.epoch != self._epoch:
            return FetchResult(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, {})
        answered: Answered = {}
        for key, each in data.items():
            cached = session.partitions.get(key)
            if cached is None or not cached.is_news(each):
                continue
            cached.sent(each)
            answered[key] = each
            if each.records:
                # Kafka: so that under a limit of bytes all partitions get their turn.
                session.partitions[key] = session.partitions.pop(key)
        return FetchResult(ErrorCode.NONE, session.session_id, answered)


class FetchSessions:
    """The sessions of a node, the one that was used longest ago first.

    ``new_id`` gives a UUID as text, ``named`` the name of a topic by its id.
    """

    def __init__(
        self,
        slots: int,
        new_id: Callable[[], str],
        named: Callable[[str], str | None],
        most_partitions: int = MOST_PARTITIONS,
    ) -> None:
        # Differs: Kafka splits the slots into eight parts, each with its own order, and bounds no session's partitions.
        self._slots = slots
        self._most_partitions = most_partitions
        self.cached_partitions = 0
        """The partitions of all sessions."""
        self._new_id = new_id
        self._named = named
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def context(
        self,
        session_id: int,
        epoch: int,
        wanted: Wanted,
        forgotten: Iterable[FetchKey],
        *,
        uses_topic_ids: bool,
        now: Millis,
    ) -> FetchContext:
        """The context of a request: its session, or all partitions that it names."""
        partitions = [WantedPartition(key, self._topic(key), asked) for key, asked in wanted.items()]
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._remove(session_id)
            if epoch == FINAL_EPOCH:
                return SessionlessFetchContext(partitions)
            return FullFetchContext(self, partitions, uses_topic_ids)
        session = self._sessions.get(session_id)
        if session is None:
            return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return SessionErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return SessionErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        before = len(session.partitions)
        session.update(partitions, forgotten)
        self.cached_partitions += len(session.partitions) - before
        if not session.partitions:
            del self._sessions[session_id]
            return SessionlessFetchContext(())
        session.resolve(self._named)
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.used_at = now
        self._sessions[session_id] = self._sessions.pop(session_id)
        if len(session.partitions) > before and not self._has_room(0, len(session.partitions), now):
            # The client begins anew with all its partitions, which needs no session.
            self._remove(session_id)
            return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return IncrementalFetchContext(session)

    def _topic(self, key: FetchKey) -> str | None:
        return self._named(key.topic_id) if key.topic is None else key.topic

    def create(self, size: int, uses_topic_ids: bool, now: Millis) -> FetchSession | None:
        """A new session for so many partitions, or none where no other session gives way to it."""
        if size > self._most_partitions or (len(self._sessions) >= self._slots and not self._evict(size, now)):
            return None
        if not self._has_room(size, size, now):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = int(self._new_id().replace("-", ""), 16) % 2**31
        session = self._sessions[session_id] = FetchSession(session_id, uses_topic_ids, now, now)
        self.cached_partitions += size
        return session

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.cached_partitions -= len(session.partitions)

    def _has_room(self, more: int, size: int, now: Millis) -> bool:
        """Whether there is room for more partitions, of a session that has so many; others give way to it."""
        while self.cached_partitions + more > self._most_partitions:
            if not self._evict(size, now):
                return False
        return True

    def _evict(self, size: int, now: Millis) -> bool:
        """Remove a session for one of so many partitions; returns whether there was one to remove."""
        # Kafka: FetchSessionCache.tryEvict. First one that is no longer used, else the smallest of those that have been
        # there for some time, if the new one is larger.
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now - oldest.used_at > EVICTION_MS:
            self._remove(oldest.session_id)
            return True
        evictable = [each for each in self._sessions.values() if each.used_at - each.created_at > EVICTION_MS]
        smallest = min(evictable, key=lambda each: (len(each.partitions), each.session_id), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self._remove(smallest.session_id)
        return True
