"""DescribeTransactions and ListTransactions (KIP-664). Kafka: TransactionCoordinator, TransactionStateManager."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import re2

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.repeated import computed_once
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator
from rejoin.coordinator.core.transactions.metadata import STATES, TransactionMetadata
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.describe_transactions import (
    DescribedTransaction,
    DescribedTransactionTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from rejoin.protocol.messages.transactions.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)


class TransactionDescriptions:
    """Describes and lists transactions."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        coordinator: TransactionCoordinator,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._coordinator = coordinator
        self._admission = admission

    # --- DescribeTransactions

    def describe_transactions(self, token: Token, request: DescribeTransactionsRequest, context: Context) -> None:
        again = partial(self.describe_transactions, token, request, context)
        first = next(iter(request.transactional_ids), "")
        if first and not self._coordinator.when_ready(first, again):
            return
        states = computed_once(request.transactional_ids, lambda each: self._describe(each, request, context))
        self._ctx.reply(token, DescribeTransactionsResponse(transaction_states=states))

    def _describe(
        self, transactional_id: str, request: DescribeTransactionsRequest, context: Context
    ) -> DescribedTransaction:
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, transactional_id)
        if error is ErrorCode.NONE and not transactional_id:
            error = ErrorCode.INVALID_REQUEST
        shard = self._coordinator.find(transactional_id) if error is ErrorCode.NONE else error
        if isinstance(shard, ErrorCode):
            return DescribedTransaction(transactional_id=transactional_id, error_code=shard)
        metadata = shard.transactions.get(transactional_id)
        if metadata is None:
            error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return DescribedTransaction(transactional_id=transactional_id, error_code=error)
        return DescribedTransaction(
            transactional_id=transactional_id,
            transaction_state=metadata.state.title,
            transaction_timeout_ms=metadata.timeout_ms,
            transaction_start_time_ms=metadata.started_at,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            topics=self._topics_of(metadata, context),
        )

    def _topics_of(self, metadata: TransactionMetadata, context: Context) -> tuple[DescribedTransactionTopic, ...]:
        """The partitions of a transaction, but for topics that the client may not see."""
        topics: dict[str, list[int]] = {}
        for topic, partition in metadata.partitions:
            topics.setdefault(topic, []).append(partition)
        allows = self._admission.allows
        return tuple(
            DescribedTransactionTopic(topic=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
            if allows(DescribeTransactionsRequest, context, Resource.TOPIC, topic)
        )

    # --- ListTransactions

    def list_transactions(self, token: Token, request: ListTransactionsRequest, context: Context) -> None:
        error = ErrorCode.NONE
        if not self._cluster.is_known:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif self._coordinator.is_loading:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        try:
            pattern = _compiled(request.transactional_id_pattern)
        except re2.error:
            error = ErrorCode.INVALID_REGULAR_EXPRESSION
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, ListTransactionsResponse(error_code=error))
            return
        found = tuple(
            ListedTransaction(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.title,
            )
            for metadata in self._filtered(request, pattern)
            if self._admission.allows(
                ListTransactionsRequest, context, Resource.TRANSACTIONAL_ID, metadata.transactional_id
            )
        )
        unknown = tuple(dict.fromkeys(each for each in request.state_filters if each not in STATES))
        self._ctx.reply(token, ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found))

    def _filtered(self, request: ListTransactionsRequest, pattern: Any) -> Iterator[TransactionMetadata]:
        """The transactions that all filters let through; an empty one lets all through."""
        states = {STATES[each] for each in request.state_filters if each in STATES}
        producer_ids = set(request.producer_id_filters)
        for _, shard in sorted(self._coordinator.shards.items()):
            for metadata in shard.transactions.values():
                # Kafka: an id without a transaction so far began at -1, very long ago.
                is_long = request.duration_filter < 0 or self._ctx.now - metadata.started_at > request.duration_filter
                if (
                    is_long
                    and (not request.state_filters or metadata.state in states)
                    and (not producer_ids or metadata.producer_id in producer_ids)
                    and (pattern is None or pattern.fullmatch(metadata.transactional_id))
                ):
                    yield metadata


def _compiled(pattern: str | None) -> Any:
    """The pattern for transactional ids, or none where all match. Raises ``re2.error``."""
    if not pattern:
        return None
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
