"""TxnOffsetCommit: offsets that count when their transaction commits.

The group's offsets partition must be part of the transaction, or becomes part of it. Then the group decides, as it does
on any commit. Kafka: KafkaApis.handleTxnOffsetCommitRequest, GroupCoordinatorService.commitTransactionalOffsets.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.offsets.commits import PartitionErrors, emit_fenced_producer
from rejoin.coordinator.core.offsets.requests import OffsetRequests
from rejoin.coordinator.core.offsets.topic_ids import with_names
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.transactions.coordinator import Verified
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.coordinator.core.transactions.verification import TransactionVerification, checks_here
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

FIRST_COMMIT_WITH_ABORTABLE: Final = 4
FIRST_COMMIT_THAT_ADDS: Final = 5
FIRST_COMMIT_BY_ID: Final = 6

COMMIT_ERRORS: Final = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""The producer's error where the transaction coordinator refuses its commit; other errors go through."""


class TxnOffsetCommits:
    """Commits offsets within transactions."""

    def __init__(
        self,
        ctx: StepContext,
        groups: GroupShards,
        topics: Topics,
        offsets: OffsetRequests,
        verification: TransactionVerification,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._offsets = offsets
        self._verification = verification
        self._admission = admission
        self._checks_here = checks_here(ctx.settings.emulator_as_kafka)

    def commit(self, token: Token, request: TxnOffsetCommitRequest, context: Context) -> None:
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, request.transactional_id)
        if error is ErrorCode.NONE:
            error = self._admission.authorize(request, context, Resource.GROUP, request.group_id)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.response({}, error))
            return
        if context.api_version >= FIRST_COMMIT_BY_ID:
            request = request.model_copy(update={"topics": with_names(request.topics, self._topics)})
        refused, is_any_left = self._offsets.refused(request, context)
        if not is_any_left:
            self._ctx.reply(token, request.response(refused, ErrorCode.NONE))
            return
        shard = self._admission.route(self._groups, request, context, request.group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, request.response(refused, shard))
        elif not self._verifies(context) or shard.producers.is_ongoing(request.producer_id, request.producer_epoch):
            self._offsets.commit_to_group(token, request, context, refused)
        elif self._checks_here and (error := shard.producers.check(request.producer_id, request.producer_epoch)):
            # Kafka: UnifiedLog.maybeStartTransactionVerification. The coordinator of the transaction is not asked.
            emit_fenced_producer(self._ctx, request, error, shard.producers)
            self._ctx.reply(token, request.response(refused, error))
        else:
            self._verification.ask(
                request.transactional_id,
                TxnProducer(request.producer_id, request.producer_epoch),
                [shard.partition],
                adds=context.api_version >= FIRST_COMMIT_THAT_ADDS,
                on_verified=partial(self._verified, token, request, context, refused),
            )

    def _verifies(self, context: Context) -> bool:
        adds = context.api_version >= FIRST_COMMIT_THAT_ADDS
        return adds or self._ctx.settings.transaction_partition_verification_enable

    def _verified(
        self,
        token: Token,
        request: TxnOffsetCommitRequest,
        context: Context,
        refused: PartitionErrors,
        verified: Verified,
    ) -> None:
        (error,) = verified.values()
        if error is ErrorCode.NONE:
            self._offsets.commit_to_group(token, request, context, refused)
            return
        error = COMMIT_ERRORS.get(error, error)
        if error is ErrorCode.TRANSACTION_ABORTABLE and context.api_version < FIRST_COMMIT_WITH_ABORTABLE:
            error = ErrorCode.INVALID_TXN_STATE
        self._ctx.reply(token, request.response(refused, error))
