"""Questions that wait for an answer: committed offsets, offsets by time, positions. Repeated until their time is over.

Source: Kafka's ClassicKafkaConsumer (committed, position, endOffsets, offsetsForTimes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from rejoin.client.core import requests
from rejoin.client.core.effects import OffsetsFound
from rejoin.client.core.errors import (
    CodedError,
    InvalidGroupIdError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
)
from rejoin.client.core.inputs import CommittedAsked, Millis, OffsetsAsked, PositionAsked, Token
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import Membership
from rejoin.client.core.positions import Positions, listed_offsets
from rejoin.client.core.step_context import InFlight, StepContext
from rejoin.client.core.subscription import SubscriptionState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.records.list_offsets import ListOffsetsResponse
from rejoin.protocol.registry import LIST_OFFSETS, OFFSET_FETCH
from rejoin.protocol.types import TopicPartition


@dataclass(slots=True, eq=False)
class Query:
    """A question. ``attempt`` tries to answer it and calls back with what it found, or why not."""

    token: Token
    expires_at: Millis
    attempt: Callable[[Query], None]
    request_id: int | None = None
    attempts: int = 0
    retry_at: Millis = 0
    metadata: dict[TopicPartition, str] = field(default_factory=dict)


class Queries:
    """The questions that wait now."""

    def __init__(
        self,
        ctx: StepContext,
        subscription: SubscriptionState,
        lookup: Lookup,
        membership: Membership,
        positions: Positions,
    ) -> None:
        self._ctx = ctx
        self._subscription = subscription
        self._lookup = lookup
        self._membership = membership
        self._positions = positions
        self._open: list[Query] = []

    @property
    def open(self) -> bool:
        """True while a question waits."""
        return bool(self._open)

    def ask(self, asked: CommittedAsked | OffsetsAsked | PositionAsked) -> None:
        timeout = self._ctx.config.default_api_timeout_ms if asked.timeout_ms is None else asked.timeout_ms
        attempt: Callable[[Query], None]
        match asked:
            case CommittedAsked():
                attempt = partial(self._ask_committed, partitions=tuple(sorted(set(asked.partitions))))
            case OffsetsAsked():
                attempt = partial(self._ask_offsets, timestamps=dict(sorted(asked.timestamps.items())))
            case PositionAsked():
                attempt = partial(self._ask_position, partition=asked.partition)
        self._open.append(Query(asked.token, self._ctx.now + timeout, attempt))

    def advance(self) -> None:
        """Send, repeat or give up."""
        for query in list(self._open):
            if query.request_id is None and self._ctx.now >= query.retry_at:
                try:
                    query.attempt(query)
                except KafkaError as error:
                    self._failed(query, error)
            if query in self._open:
                if self._ctx.now >= query.expires_at:
                    self._end(query, {}, KafkaTimeoutError("time is over, and the answer is not known"))
                    continue
                self._ctx.wake(query.expires_at)
                if query.request_id is None and query.retry_at > self._ctx.now:
                    self._ctx.wake(query.retry_at)

    def _ask_committed(self, query: Query, partitions: tuple[TopicPartition, ...]) -> None:
        if self._ctx.config.group_id is None:
            raise InvalidGroupIdError("committed offsets need a group.id")
        if not partitions:
            self._end(query, {})
            return
        if not self._lookup.ensure_for_user():
            return
        version = self._ctx.version(OFFSET_FETCH)

        def answered(response: Response) -> Mapping[TopicPartition, int | None]:
            committed = self._positions.read_committed(response, version)
            query.metadata = {partition: metadata for partition, (_, metadata) in committed.items()}
            return {partition: offset for partition, (offset, _) in committed.items()}

        self._send(query, requests.offset_fetch(self._membership.group_id, partitions, version), answered, True)

    def _ask_offsets(self, query: Query, timestamps: Mapping[TopicPartition, int]) -> None:
        if not timestamps:
            self._end(query, {})
            return

        def answered(response: Response) -> Mapping[TopicPartition, int | None]:
            assert isinstance(response, ListOffsetsResponse)
            found: dict[TopicPartition, int | None] = {}
            for partition, error, offset in listed_offsets(response):
                if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise TopicAuthorizationError([partition.topic])
                if error is not ErrorCode.NONE:
                    raise CodedError(error)
                found[partition] = offset if offset >= 0 else None
            return found

        isolation = self._ctx.config.isolation_level
        request = requests.list_offsets(timestamps, isolation, self._ctx.version(LIST_OFFSETS))
        self._send(query, request, answered, False)

    def _ask_position(self, query: Query, partition: TopicPartition) -> None:
        state = self._subscription.of(partition)
        if state.position is None:
            self._positions.update()
        if state.position is not None:
            self._end(query, {partition: state.position})

    def _send(
        self,
        query: Query,
        request: Request,
        read: Callable[[Response], Mapping[TopicPartition, int | None]],
        coordinator: bool,
    ) -> None:
        def answered(_: InFlight, response: Response) -> None:
            query.request_id = None
            try:
                found = read(response)
            except KafkaError as error:
                self._failed(query, error)
            else:
                self._end(query, found)

        def failed(_: InFlight, problem: KafkaError) -> None:
            query.request_id = None
            self._failed(query, problem)

        to = self._lookup.coordinator if coordinator else None
        query.request_id = self._ctx.send(request, answered, failed, to=to)

    def _failed(self, query: Query, problem: KafkaError) -> None:
        if not problem.retriable:
            self._end(query, {}, problem)
            return
        query.retry_at = self._ctx.now + self._ctx.backoff(query.attempts)
        query.attempts += 1

    def _end(self, query: Query, offsets: Mapping[TopicPartition, int | None], error: KafkaError | None = None) -> None:
        if query in self._open:
            self._open.remove(query)
            self._ctx.effects.append(OffsetsFound(query.token, offsets, query.metadata, error))
