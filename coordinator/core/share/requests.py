"""ShareFetch and ShareAcknowledge: checks, sessions, acknowledgements and reading, and the answers.

Kafka: KafkaApis.handleShareFetchRequest, handleShareAcknowledgeRequest, SharePartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from rejoin.coordinator.core.cluster.features import SHARE_VERSION
from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.share.acknowledgements import (
    Acknowledgements,
    AcknowledgingMember,
    asked_batches,
)
from rejoin.coordinator.core.share.answers import ShareAnswers
from rejoin.coordinator.core.share.fetch_under_way import Fetched, ShareFetchUnderWay
from rejoin.coordinator.core.share.led_partitions import LedSharePartitions
from rejoin.coordinator.core.share.purgatory import SharePurgatory
from rejoin.coordinator.core.share.reading import ACQUIRE_MODES
from rejoin.coordinator.core.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SharedPartition,
    ShareSession,
    ShareSessions,
    rotated,
)
from rejoin.coordinator.core.share.timers import NO_OWNER, ShareTimer
from rejoin.coordinator.core.share.window.reports import DISCONNECTED, SESSION_CLOSED, SESSION_EVICTED
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.types import TopicIdPartition

LONGEST_MEMBER_ID: Final = 36
_NONE: Final = ErrorCode.NONE

_Request = ShareFetchRequest | ShareAcknowledgeRequest


class ShareRequests:
    """Handles the requests of members of share groups to the leaders of partitions."""

    def __init__(
        self,
        ctx: StepContext,
        admission: Admission,
        logs: ReadableLogs,
        topics: Topics,
        led: LedSharePartitions,
    ) -> None:
        self._ctx = ctx
        self._admission = admission
        self._logs = logs
        self._led = led
        self._sessions = ShareSessions(ctx.settings.group_share_max_share_sessions)
        self._acknowledgements = Acknowledgements(ctx, led)
        self._answers = ShareAnswers(ctx, logs, topics.group_configs)
        self._purgatory = SharePurgatory(ctx, logs, led, self._has_read)
        self._held_back: dict[TimerKey, Callable[[], None]] = {}
        self._last_number = 0

    # --- ShareFetch

    def fetch(self, token: Token, request: ShareFetchRequest, context: Context) -> None:
        error = self._refusal(request, context)
        if error is _NONE and request.is_renew_ack and _asks_for_records(request):
            error = ErrorCode.INVALID_REQUEST
        if error is not _NONE:
            self._answers.fail_fetch(token, error)
            return
        session = self._session(request, context)
        if session is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            self._hold_back(request.max_wait_ms, partial(self._answers.fail_fetch, token, session))
            return
        if isinstance(session, ErrorCode):
            self._answers.fail_fetch(token, session)
            return
        if request.share_acquire_mode not in ACQUIRE_MODES:
            self._answers.fail_fetch(token, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        under_way = ShareFetchUnderWay(token, request, context, session)
        asked = asked_batches(request.topics) if request.share_session_epoch != INITIAL_EPOCH else {}
        under_way.left += len(asked)
        if asked:
            member = AcknowledgingMember(session.key, context.api_version, request.is_renew_ack)
            error_of = partial(self._partition_error, request, context)
            self._acknowledgements.acknowledge(member, asked, error_of, partial(self._fetch_acknowledged, under_way))
        if request.share_session_epoch == FINAL_EPOCH or request.is_renew_ack:
            self._has_read(under_way)
        else:
            self._begin_to_read(under_way)

    def _session(self, request: ShareFetchRequest, context: Context) -> ShareSession | ErrorCode:
        """The session of a ShareFetch, with the partitions that it adds and forgets."""
        key = SessionKey(request.group_id or "", request.member_id or "")
        named = [
            SharedPartition(topic.topic_id, each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        ]
        if request.share_session_epoch == INITIAL_EPOCH:
            if asked_batches(request.topics):
                return ErrorCode.INVALID_REQUEST
            return self._sessions.open(key, context.connection, named)
        session = self._sessions.find(key, request.share_session_epoch)
        if isinstance(session, ErrorCode) or request.share_session_epoch == FINAL_EPOCH:
            return session
        forgotten = [
            SharedPartition(topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        if not self._sessions.update(session, named, forgotten):
            self._close(session, SESSION_EVICTED)
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        return session

    def _begin_to_read(self, fetch: ShareFetchUnderWay) -> None:
        request, readable = fetch.request, []
        for shared in fetch.session.partitions:
            error = self._partition_error(request, fetch.context, shared)
            if error is _NONE:
                readable.append(shared)
            else:
                fetch.fetched[shared] = Fetched(error)
        refused = set(fetch.fetched)
        if request.max_records > 0 and request.max_bytes > 0:
            fetch.partitions = rotated(readable, request.share_session_epoch)
        for shared in fetch.partitions:
            topic = self._logs.named(shared.topic_id) or ""
            found = self._logs.find(topic, shared.partition, shared.topic_id)
            if isinstance(found, ErrorCode) or not isinstance(found.partition, TopicIdPartition):
                error = found if isinstance(found, ErrorCode) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                fetch.fetched[shared] = Fetched(error)
            else:
                fetch.led[shared] = self._led.get_or_make(SharePartitionKey(fetch.group_id, *shared), found)
        if not fetch.partitions:
            assert refused == set(fetch.fetched), "only what is refused has a result by now"
            self._has_read(fetch)
        else:
            led = list(fetch.led.values())
            self._purgatory.read(fetch)
            # Kafka: a fetch does not wait until all are loaded, so that the first one often gives records of one alone.
            for each in led:
                self._led.load(each)

    def _fetch_acknowledged(
        self, fetch: ShareFetchUnderWay, shared: SharedPartition, error: ErrorCode, *, breaks_request: bool = False
    ) -> None:
        fetch.acknowledged[shared] = error
        fetch.is_broken |= breaks_request
        self._count_down(fetch)

    def _has_read(self, fetch: ShareFetchUnderWay) -> None:
        self._count_down(fetch)

    def _count_down(self, fetch: ShareFetchUnderWay) -> None:
        fetch.left -= 1
        if not fetch.left:
            self._answers.answer_fetch(fetch)
            if fetch.request.share_session_epoch == FINAL_EPOCH:
                self._close(fetch.session)

    # --- ShareAcknowledge

    def acknowledge(self, token: Token, request: ShareAcknowledgeRequest, context: Context) -> None:
        error = self._refusal(request, context)
        if error is _NONE and request.share_session_epoch == INITIAL_EPOCH:
            error = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        if error is not _NONE:
            self._answers.fail_acknowledge(token, error)
            return
        key = SessionKey(request.group_id or "", request.member_id or "")
        session = self._sessions.find(key, request.share_session_epoch)
        if isinstance(session, ErrorCode):
            self._answers.fail_acknowledge(token, session)
            return
        on_end: Callable[[], None] = _nothing
        if request.share_session_epoch == FINAL_EPOCH:
            on_end = partial(self._close, session)
        collected = _Acknowledged(self._answers, token, request, context, on_end)
        asked = asked_batches(request.topics)
        collected.left += len(asked)
        member = AcknowledgingMember(key, context.api_version, request.is_renew_ack)
        error_of = partial(self._partition_error, request, context)
        self._acknowledgements.acknowledge(member, asked, error_of, collected.done)
        collected.begun()

    # --- checks

    def _refusal(self, request: _Request, context: Context) -> ErrorCode:
        """Why a request is refused before its session is looked at."""
        if not self._ctx.features.level(SHARE_VERSION):
            return ErrorCode.UNSUPPORTED_VERSION
        if request.group_id is None:
            return ErrorCode.INVALID_REQUEST
        error = self._admission.authorize(request, context, Resource.GROUP, request.group_id)
        if error is not _NONE:
            return error
        if not request.member_id or len(request.member_id) > LONGEST_MEMBER_ID:
            return ErrorCode.INVALID_REQUEST
        return _NONE

    def _partition_error(self, request: _Request, context: Context, shared: SharedPartition) -> ErrorCode:
        """Why a partition is not looked at, or ``NONE``."""
        topic = self._logs.named(shared.topic_id)
        if topic is None:
            # Differs: with an authorizer, Kafka fails inside, and the whole request with UNKNOWN_SERVER_ERROR.
            return ErrorCode.UNKNOWN_TOPIC_ID
        error = self._admission.authorize(request, context, Resource.TOPIC, topic)
        if error is _NONE and not self._logs.exists(topic, shared.partition):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error

    # --- sessions that end

    def _close(self, session: ShareSession, reason: str = SESSION_CLOSED) -> None:
        """Close a session, and release what the member holds of its partitions."""
        if self._sessions.close(session.key) is session:
            self._acknowledgements.release(session.key, session.partitions, reason)

    def disconnected(self, connection: str) -> None:
        """A connection is gone, and with it the session that it opened last."""
        found = self._sessions.disconnected(connection)
        if found is None:
            return
        key, session = found
        if session is not None:
            self._acknowledgements.release(key, session.partitions, DISCONNECTED)
        # Kafka: ShareSessionCache looks only here whether a group has no session left, also after one that was closed.
        if not self._sessions.of_group(key.group_id):
            self._led.forget_group(key.group_id)

    def has_session(self, group_id: str, member_id: str) -> bool:
        """Whether a member has a session here."""
        return SessionKey(group_id, member_id) in self._sessions

    def feature_changed(self) -> None:
        """Share groups may have been switched off: sessions and share-partitions are forgotten."""
        if not self._ctx.features.level(SHARE_VERSION):
            self._sessions.clear()
            self._led.clear()

    # --- waiting

    def _hold_back(self, wait_ms: int, answer: Callable[[], None]) -> None:
        if wait_ms <= 0:
            answer()
            return
        self._last_number += 1
        timer = TimerKey(ShareTimer.SESSION_LIMIT, NO_OWNER, name=f"{self._last_number:012}")
        self._held_back[timer] = answer
        self._ctx.deadlines.set(timer, self._ctx.now + wait_ms)

    def timer_fired(self, timer: TimerKey) -> None:
        """A request has waited long enough."""
        if timer.kind is ShareTimer.FETCH:
            self._purgatory.timer_fired(timer)
        elif (answer := self._held_back.pop(timer, None)) is not None:
            answer()

    def parked_tokens(self) -> list[Token]:
        """The token of every ShareFetch that waits."""
        return self._purgatory.parked_tokens()


class _Acknowledged:
    """A ShareAcknowledge, until the last partition has its result."""

    def __init__(
        self,
        answers: ShareAnswers,
        token: Token,
        request: ShareAcknowledgeRequest,
        context: Context,
        on_end: Callable[[], None],
    ) -> None:
        self._answers = answers
        self._token = token
        self._request = request
        self._context = context
        self._on_end = on_end
        self._results: dict[SharedPartition, ErrorCode] = {}
        self._is_broken = False
        self.left = 1

    def begun(self) -> None:
        """All partitions are asked."""
        self._count_down()

    def done(self, shared: SharedPartition, error: ErrorCode, *, breaks_request: bool = False) -> None:
        """A partition has its result."""
        self._results[shared] = error
        self._is_broken |= breaks_request
        self._count_down()

    def _count_down(self) -> None:
        self.left -= 1
        if self.left:
            return
        if self._is_broken:
            self._answers.fail_acknowledge(self._token, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._answers.answer_acknowledge(self._token, self._request, self._context, self._results)
        self._on_end()


def _asks_for_records(request: ShareFetchRequest) -> bool:
    wanted: Iterable[int] = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    return any(wanted)


def _nothing() -> None:
    """The session goes on."""
