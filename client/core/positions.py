"""Where this consumer stands in each partition, and which records it may hand out.

Records do not exist here. A partition's log is known by its end alone; a fetch is "the records from the position up to
the end". Ends are asked for by ListOffsets as often as an idle fetch would come back (``fetch.max.wait.ms``), unless
whoever drives this consumer knows the logs and says so (``log_end``).

Source: Kafka's ConsumerCoordinator.initWithCommittedOffsetsIfNeeded, OffsetFetcher, Fetcher.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rejoin.client.core import requests
from rejoin.client.core.errors import (
    CodedError,
    GroupAuthorizationError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.inputs import Millis, OffsetReset, RecordRange
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import Membership
from rejoin.client.core.metadata import Metadata
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.step_context import Generation, InFlight, StepContext, offsets_by_topic
from rejoin.client.core.subscription import PartitionState, SubscriptionState
from rejoin.journal.events.client import PositionsFound
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchResponse
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rejoin.protocol.registry import LIST_OFFSETS, OFFSET_FETCH
from rejoin.protocol.types import TopicPartition

LogEnd: TypeAlias = Callable[[TopicPartition, Millis], int]
"""The next offset of a partition's log at an instant."""

RESETS: Mapping[str, OffsetReset] = {"latest": OffsetReset.LATEST, "earliest": OffsetReset.EARLIEST}


@dataclass(slots=True)
class CommittedFetch:
    """An OffsetFetch for the partitions that have no position yet."""

    partitions: tuple[TopicPartition, ...]
    generation: Generation | None
    request_id: int = 0
    offsets: dict[TopicPartition, int | None] | None = None
    error: KafkaError | None = None


class Positions:
    """Finds positions, hands out records, and keeps the ends of logs fresh."""

    def __init__(
        self,
        ctx: StepContext,
        subscription: SubscriptionState,
        metadata: Metadata,
        lookup: Lookup,
        membership: Membership,
        log_end: LogEnd | None,
    ) -> None:
        self._ctx = ctx
        self._subscription = subscription
        self._metadata = metadata
        self._lookup = lookup
        self._membership = membership
        self._log_end = log_end
        self._committed: CommittedFetch | None = None
        self._attempts = 0
        self._retry_at: Millis = 0
        self.error: KafkaError | None = None
        self._ends_in_flight: int | None = None
        self._ends_due_at: Millis = 0
        self._ends_request: tuple[list[TopicPartition], ListOffsetsRequest] | None = None

    # -- positions

    def update(self) -> bool:
        """Go on finding positions; false while committed offsets are waited for, and poll with them.

        Raises what poll must raise.
        """
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        without = [(p, state) for p, state in self._subscription.assignment.items() if state.position is None]
        if not without:
            return True
        starting = tuple(sorted(partition for partition, state in without if state.reset is None))
        if starting:
            if self._ctx.config.group_id is not None and not self._start_where_committed(starting):
                return False
            self._start_by_policy()
        self._send_resets()
        return True

    def _start_where_committed(self, partitions: tuple[TopicPartition, ...]) -> bool:
        ctx = self._ctx
        generation = self._membership.generation_if_stable
        fetch = self._committed
        if fetch is not None and (fetch.partitions != partitions or fetch.generation != generation):
            # Kafka: PendingCommittedOffsetRequest. The question has changed; the old answer is not listened to.
            ctx.cancel(fetch.request_id)
            fetch = self._committed = None
        if fetch is None:
            if ctx.now < self._retry_at:
                ctx.wake(self._retry_at)
                return False
            if not self._lookup.ensure_for_user():
                return False
            self._committed = self._fetch_committed(partitions, generation)
            return False
        if fetch.error is not None:
            self._committed = None
            if not fetch.error.retriable:
                raise fetch.error
            self._retry_at = ctx.now + ctx.backoff(self._attempts)
            self._attempts += 1
            ctx.wake(self._retry_at)
            return False
        if fetch.offsets is None:
            return False
        self._committed = None
        self._attempts = 0
        found: dict[TopicPartition, int] = {}
        for partition, offset in fetch.offsets.items():
            state = self._subscription.assignment.get(partition)
            if state is not None and state.position is None and state.reset is None and offset is not None:
                state.seek(offset)
                found[partition] = offset
        self._tell_found("committed", found)
        return True

    def _fetch_committed(self, partitions: tuple[TopicPartition, ...], generation: Generation | None) -> CommittedFetch:
        fetch = CommittedFetch(partitions, generation)
        version = self._ctx.version(OFFSET_FETCH)

        def answered(_: InFlight, response: Response) -> None:
            try:
                fetch.offsets = {
                    partition: offset for partition, (offset, _) in self.read_committed(response, version).items()
                }
            except KafkaError as error:
                fetch.error = error

        def failed(_: InFlight, problem: KafkaError) -> None:
            fetch.error = problem

        fetch.request_id = self._ctx.send(
            requests.offset_fetch(self._membership.group_id, partitions, version),
            answered,
            failed,
            to=self._lookup.coordinator,
        )
        return fetch

    def read_committed(self, response: Response, version: int) -> dict[TopicPartition, tuple[int | None, str]]:
        """Offset and metadata of each partition, None where nothing is committed. Raises what the answer says."""
        # Kafka: OffsetFetchResponseHandler.
        assert isinstance(response, OffsetFetchResponse)
        error = requests.offset_fetch_error(response, version)
        if error is not ErrorCode.NONE:
            raise self._group_problem(error)
        offsets: dict[TopicPartition, tuple[int | None, str]] = {}
        forbidden: dict[str, None] = {}
        unstable = False
        for partition, committed in requests.fetched_offsets(response, version):
            error = committed.error_code
            if error is ErrorCode.NONE:
                offset = committed.committed_offset
                offsets[partition] = (offset if offset >= 0 else None, committed.metadata or "")
            elif error is ErrorCode.UNSTABLE_OFFSET_COMMIT:
                unstable = True
            elif reaction("OffsetFetch", error) is Reaction.RAISE_TOPICS:
                forbidden[partition.topic] = None
            else:
                raise UnexpectedError(f"OffsetFetch for {partition.topic}-{partition.partition}", error)
        if forbidden:
            raise TopicAuthorizationError(forbidden)
        if unstable:
            raise CodedError(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return offsets

    def _group_problem(self, error: ErrorCode) -> KafkaError:
        match reaction("OffsetFetch", error):
            case Reaction.FORGET_COORDINATOR:
                self._lookup.forget(f"error response {error.name}")
                return CodedError(error)
            case Reaction.RAISE:
                return GroupAuthorizationError(f"not authorized for group {self._ctx.config.group_id}")
            case _ if error.retriable:
                return CodedError(error)
            case _:
                return UnexpectedError("OffsetFetch", error)

    # -- resets

    def _start_by_policy(self) -> None:
        policy = RESETS.get(self._ctx.config.auto_offset_reset)
        nowhere = []
        for partition, state in self._subscription.assignment.items():
            if state.position is None and state.reset is None:
                if policy is None:
                    nowhere.append(partition)
                else:
                    state.ask_reset(policy)
        if nowhere:
            raise NoOffsetForPartitionError(sorted(nowhere))

    def _send_resets(self) -> None:
        ctx = self._ctx
        due: dict[TopicPartition, OffsetReset] = {}
        for partition, state in self._subscription.assignment.items():
            if state.reset is None:
                continue
            if ctx.now < state.retry_at:
                ctx.wake(state.retry_at)
            else:
                due[partition] = state.reset
                state.retry_at = ctx.now + ctx.config.request_timeout_ms
        if not due:
            return
        if self._log_end is not None:
            log_end = self._log_end
            for partition, reset in due.items():
                self._reset_to(partition, reset, log_end(partition, ctx.now) if reset is OffsetReset.LATEST else 0)
            return
        timestamps = {partition: reset.value for partition, reset in sorted(due.items())}

        def answered(_: InFlight, response: Response) -> None:
            self._resets_answered(due, response)

        def failed(_: InFlight, problem: KafkaError) -> None:
            self._retry_resets(due, ctx.now + ctx.config.retry_backoff_ms)

        ctx.send(self._list_offsets(timestamps), answered, failed)

    def _list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> ListOffsetsRequest:
        return requests.list_offsets(timestamps, self._ctx.config.isolation_level, self._ctx.version(LIST_OFFSETS))

    def _resets_answered(self, due: Mapping[TopicPartition, OffsetReset], response: Response) -> None:
        assert isinstance(response, ListOffsetsResponse)
        again: dict[TopicPartition, OffsetReset] = {}
        for partition, error, offset in listed_offsets(response):
            if partition not in due:
                continue
            if error is ErrorCode.NONE:
                self._reset_to(partition, due[partition], offset)
            elif error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self.error = TopicAuthorizationError([partition.topic])
            else:
                again[partition] = due[partition]
        if again:
            self._metadata.request_update()
            self._retry_resets(again, self._ctx.now + self._ctx.config.retry_backoff_ms)

    def _retry_resets(self, partitions: Collection[TopicPartition], at: Millis) -> None:
        for partition in partitions:
            state = self._subscription.assignment.get(partition)
            if state is not None:
                state.retry_at = at

    def _reset_to(self, partition: TopicPartition, reset: OffsetReset, offset: int) -> None:
        state = self._subscription.assignment.get(partition)
        if state is None or state.reset is not reset:
            return  # Given up, or sought elsewhere meanwhile.
        state.seek(offset)
        self._tell_found("earliest" if reset is OffsetReset.EARLIEST else "latest", {partition: offset})

    def _tell_found(self, origin: str, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets:
            self._ctx.effects.append(
                PositionsFound.model_validate(
                    {"origin": origin, "offsets": offsets_by_topic(offsets), **self._membership.shown}
                )
            )

    # -- records

    def take(self, most: int, only: Collection[TopicPartition] | None = None) -> tuple[RecordRange, ...]:
        """Up to ``most`` records, partitions taking turns; their positions move on."""
        subscription, taken = self._subscription, []
        for partition, state in list(subscription.assignment.items()):
            if most <= 0:
                break
            if not state.fetchable or (only is not None and partition not in only):
                continue
            assert state.position is not None, "a fetchable partition has a position"
            self._know_end(partition, state)
            if state.end is None or state.position >= state.end:
                continue
            start = state.position
            state.position = min(state.end, start + most)
            most -= state.position - start
            taken.append(RecordRange(*partition, start, state.position))
            subscription.move_to_end(partition)
        return tuple(taken)

    def _know_end(self, partition: TopicPartition, state: PartitionState) -> None:
        if self._log_end is not None:
            self._see_end(partition, state, self._log_end(partition, self._ctx.now))

    def _see_end(self, partition: TopicPartition, state: PartitionState, end: int) -> None:
        state.end = end
        if state.position is None or state.position <= end:
            return
        policy = RESETS.get(self._ctx.config.auto_offset_reset)
        if policy is not None:
            state.ask_reset(policy)
        else:
            name = f"{partition.topic}-{partition.partition}"
            self.error = OffsetOutOfRangeError(f"position {state.position} of {name} lies behind its end {end}")

    def refresh_ends(self) -> None:
        """Ask for the ends of the partitions that have nothing left, as a fetch would wait for them."""
        ctx = self._ctx
        if self._log_end is not None:
            ctx.wake(ctx.now + max(1, ctx.config.fetch_max_wait_ms))
            return
        if self._ends_in_flight is not None:
            return
        empty = [
            partition
            for partition, state in self._subscription.assignment.items()
            if state.fetchable and (state.end is None or (state.position or 0) >= state.end)
        ]
        if not empty:
            return
        unknown = any(self._subscription.assignment[partition].end is None for partition in empty)
        if ctx.now < self._ends_due_at and not unknown:
            ctx.wake(self._ends_due_at)
            return
        if self._ends_request is None or self._ends_request[0] != empty:
            request = self._list_offsets(dict.fromkeys(sorted(empty), OffsetReset.LATEST.value))
            self._ends_request = (empty, request)
        self._ends_in_flight = ctx.send(self._ends_request[1], self._ends_answered, self._ends_failed)

    def _ends_answered(self, sent: InFlight, response: Response) -> None:
        assert isinstance(response, ListOffsetsResponse)
        self._ends_in_flight = None
        wait = self._ctx.config.fetch_max_wait_ms
        for partition, error, offset in listed_offsets(response):
            state = self._subscription.assignment.get(partition)
            if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self.error = TopicAuthorizationError([partition.topic])
            elif error is not ErrorCode.NONE:
                self._metadata.request_update()
                if state is not None:
                    state.end = state.position
            elif state is not None:
                self._see_end(partition, state, offset)
                if state.position is not None and state.position < offset:
                    wait = 0  # A fetch comes back at once when there is something.
        self._ends_due_at = sent.sent_at + wait

    def _ends_failed(self, sent: InFlight, problem: KafkaError) -> None:
        self._ends_in_flight = None
        self._ends_due_at = self._ctx.now + max(self._ctx.config.retry_backoff_ms, self._ctx.config.fetch_max_wait_ms)
        for state in self._subscription.assignment.values():
            if state.end is None:
                state.end = state.position  # As if there were nothing, until the next answer.


def listed_offsets(response: ListOffsetsResponse) -> list[tuple[TopicPartition, ErrorCode, int]]:
    """Every partition of a ListOffsets answer, with its error and offset."""
    return [
        (
            TopicPartition(topic.name, partition.partition_index),
            partition.error_code,
            partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset,
        )
        for topic in response.topics
        for partition in topic.partitions
    ]
