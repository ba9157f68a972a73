"""Fetch: admits a request, reads its partitions, lets it wait for bytes, and answers it.

Kafka: KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages.
"""

from __future__ import annotations

from itertools import groupby

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.fetch.purgatory import FetchPurgatory
from rejoin.coordinator.core.fetch.reading import (
    FIRST_FETCH_FROM_FOLLOWERS,
    FIRST_FETCH_WITH_ENDPOINTS,
    FetchData,
    FetchRead,
    read_partitions,
)
from rejoin.coordinator.core.fetch.sessions import Answered, FetchKey, FetchSessions, WantedPartition
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.partitions.log import READ_COMMITTED, READ_UNCOMMITTED
from rejoin.coordinator.core.quotas.client_rates import ClientRates
from rejoin.coordinator.core.quotas.request_times import RequestTimes
from rejoin.coordinator.core.quotas.sizes import size_of_response
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.leader_hints import LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.messages.records.fetch import (
    FIRST_FETCH_WITH_TOPIC_IDS,
    FetchablePartitionResponse,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    failed_partition,
)
from rejoin.protocol.types import ZERO_UUID, LogPartition, TopicIdPartition
from rejoin.protocol.unvalidated import unvalidated

_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class FetchRequests:
    """Handles Fetch."""

    def __init__(
        self, ctx: StepContext, logs: ReadableLogs, admission: Admission, rates: ClientRates, times: RequestTimes
    ) -> None:
        self._ctx = ctx
        self._logs = logs
        self._admission = admission
        self._rates = rates
        self._times = times
        slots = ctx.settings.max_incremental_fetch_session_cache_slots
        self._sessions = FetchSessions(slots, ctx.new_id, logs.named)
        self._awaiting_copies: dict[Token, tuple[FetchRead, set[TopicIdPartition]]] = {}
        """Fetches at a follower, with the copies that they wait for."""
        self._purgatory = FetchPurgatory(ctx, logs, self._complete)

    def fetch(self, token: Token, request: FetchRequest, context: Context) -> None:
        if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        read = self._admit(token, request, context)
        data = read_partitions(read, self._logs)
        # A copy that is missing is an error here: where there is none, no partition is looked up once more.
        if data.ends_wait and read.from_follower and self._follow(read):
            return
        self._answer_or_wait(read, data)

    def _answer_or_wait(self, read: FetchRead, data: FetchData) -> None:
        request = read.request
        at_once = request.max_wait_ms <= 0 or not read.partitions or data.size >= read.min_bytes or data.ends_wait
        if at_once or not self._purgatory.park(read):
            self._answer(read, data.partitions)

    def _admit(self, token: Token, request: FetchRequest, context: Context) -> FetchRead:
        """The partitions that this request is about, and those of them that are not read."""
        by_id = context.api_version >= FIRST_FETCH_WITH_TOPIC_IDS
        wanted: dict[FetchKey, FetchPartition] = {}
        for topic in request.topics:
            name, topic_id = (None, topic.topic_id) if by_id else (topic.topic, ZERO_UUID)
            for partition in topic.partitions:
                wanted[FetchKey(name, topic_id, partition.partition)] = partition
        forgotten: list[FetchKey] = []
        for gone in request.forgotten_topics_data:
            name, topic_id = (None, gone.topic_id) if by_id else (gone.topic, ZERO_UUID)
            forgotten += [FetchKey(name, topic_id, index) for index in gone.partitions]
        session = self._sessions.context(
            request.session_id, request.session_epoch, wanted, forgotten, uses_topic_ids=by_id, now=self._ctx.now
        )
        max_bytes = min(request.max_bytes, self._ctx.settings.fetch_max_bytes)
        if self._rates.has_quotas and (most := self._rates.most_fetched(token, context)) is not None:
            max_bytes = min(max_bytes, most)
        from_follower = context.api_version >= FIRST_FETCH_FROM_FOLLOWERS and not request.is_from_broker
        read = FetchRead(token, request, context, session, max_bytes, from_follower)
        for each in session.wanted:
            error = self._refusal(request, context, each)
            if each.topic is None or error is not ErrorCode.NONE:
                read.refused[each.key] = failed_partition(each.key.partition, error)
            else:
                read.partitions.append(each)
        return read

    def _refusal(self, request: FetchRequest, context: Context, wanted: WantedPartition) -> ErrorCode:
        """Why a partition is not read at all, or ``NONE``."""
        if wanted.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        error = ErrorCode.NONE
        if not self._admission.allows_everything:
            error = self._admission.authorize(request, context, Resource.TOPIC, wanted.topic)
        if error is ErrorCode.NONE and not self._logs.exists(wanted.topic, wanted.key.partition):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error

    # --- copies of logs that other nodes lead

    def _follow(self, read: FetchRead) -> bool:
        """Ask for the copies that are read for the first time; returns whether there are any."""
        found = (self._logs.to_follow(each.topic or "", each.key.partition) for each in read.partitions)
        missing = {partition for partition in found if partition is not None}
        if not missing:
            return False
        self._awaiting_copies[read.token] = read, missing
        for partition in sorted(missing):
            self._logs.follow(partition)
        return True

    def followed(self, partition: TopicIdPartition) -> None:
        """A copy is there: go on with what has waited for it."""
        for token, (read, missing) in list(self._awaiting_copies.items()):
            missing.discard(partition)
            if not missing:
                del self._awaiting_copies[token]
                self._answer_or_wait(read, read_partitions(read, self._logs))

    # --- waiting

    def on_progress(self, partition: LogPartition) -> None:
        """A partition has changed for its readers."""
        self._purgatory.on_progress(partition)

    def on_topics_changed(self) -> None:
        """Topics are gone, or synthetic logs have got records."""
        self._purgatory.on_topics_changed()

    def fire(self, timer: TimerKey) -> None:
        """The timer of a Fetch that waits is due."""
        self._purgatory.fire(timer)

    def parked_tokens(self) -> list[Token]:
        """The token of every Fetch that waits."""
        return [*self._awaiting_copies, *(read.token for read in self._purgatory.reads())]

    def end_wait(self, token: Token) -> None:
        """Answer a Fetch with what there is, if it still waits."""
        self._purgatory.end_wait(token)

    def _complete(self, read: FetchRead) -> None:
        """Read the partitions of a waiting Fetch again."""
        try:
            self._answer(read, read_partitions(read, self._logs).partitions)
        except Exception:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            self._ctx.reply(read.token, read.request.error_response(read.context.api_version, error))
            raise

    # --- answering

    def _answer(self, read: FetchRead, data: Answered) -> None:
        if read.refused:
            data = {**data, **read.refused}
        throttle_ms = self._throttle(read, data) if self._rates.has_quotas else 0
        error, session_id, partitions = (
            read.session.throttled() if throttle_ms else read.session.respond(data, self._ctx.now)
        )
        endpoints: dict[int, NodeEndpoint] = {}
        if read.context.api_version >= FIRST_FETCH_WITH_ENDPOINTS:
            partitions = self._with_leaders(read, partitions, endpoints)
        response = unvalidated(
            FetchResponse,
            throttle_time_ms=throttle_ms,
            error_code=error,
            session_id=session_id,
            responses=self._by_topic(partitions),
            node_endpoints=tuple(endpoints.values()) if endpoints else (),
        )
        self._ctx.reply(read.token, response)

    def _throttle(self, read: FetchRead, data: Answered) -> Millis:
        """How long the client has to wait for these partitions, which it has not been sent then."""
        token, context = read.token, read.context
        response = FetchResponse(responses=self._by_topic(read.session.preview(data)))
        size = size_of_response(read.request, response, context)
        of_work, of_bytes = self._times.answered(token), self._rates.fetched(token, context, size)
        if of_work and not of_bytes:
            self._rates.not_sent(token, context, size)
        return max(of_work, of_bytes)

    @staticmethod
    def _by_topic(partitions: Answered) -> tuple[FetchableTopicResponse, ...]:
        """The partitions of a response; those of a topic that follow each other stand together."""
        if len(partitions) == 1:
            ((key, only),) = partitions.items()
            return (_topic_response(key.topic, key.topic_id, (only,)),)
        return tuple(
            [
                _topic_response(topic, topic_id, tuple([each for _, each in of_topic]))
                for (topic, topic_id), of_topic in groupby(partitions.items(), lambda item: item[0][:2])
            ]
        )

    def _with_leaders(self, read: FetchRead, data: Answered, endpoints: dict[int, NodeEndpoint]) -> Answered:
        """Add the leaders of partitions that other nodes lead; each node's address is added once."""
        if not any(each.error_code in _ELSEWHERE for each in data.values()):
            return data
        topics = {wanted.key: wanted.topic or "" for wanted in read.partitions}
        found: Answered = {}
        for key, each in data.items():
            found[key] = each
            broker, epoch = self._logs.leader_of(topics.get(key, ""), key.partition)
            if broker is not None and each.error_code in _ELSEWHERE:
                leader = LeaderIdAndEpoch(leader_id=broker.node_id, leader_epoch=epoch)
                found[key] = each.model_copy(update={"current_leader": leader})
                _, host, port = broker.endpoint(read.context)
                endpoints[broker.node_id] = NodeEndpoint(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        return found


def _topic_response(
    topic: str | None, topic_id: str, partitions: tuple[FetchablePartitionResponse, ...]
) -> FetchableTopicResponse:
    return unvalidated(FetchableTopicResponse, topic=topic or "", topic_id=topic_id, partitions=partitions)
