"""DescribeProducers: what partitions remember of their producers. Kafka: ReplicaManager.activeProducerState."""

from __future__ import annotations

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.partitions.producer_state import ProducerStateEntry
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
    ProducerState,
)


class ProducerRequests:
    """Describes producers."""

    def __init__(self, ctx: StepContext, partitions: Partitions, admission: Admission) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._admission = admission

    def describe_producers(self, token: Token, request: DescribeProducersRequest, context: Context) -> None:
        topics = tuple(
            DescribeProducersTopicResponse(
                name=topic.name,
                partitions=tuple(self._describe(topic.name, index, context) for index in topic.partition_indexes),
            )
            for topic in request.topics
        )
        self._ctx.reply(token, DescribeProducersResponse(topics=topics))

    def _describe(self, name: str, index: int, context: Context) -> DescribeProducersPartitionResponse:
        message = None
        if not self._admission.allows(DescribeProducersRequest, context, Resource.TOPIC, name):
            found, message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"no permission to read {name}"
        else:
            partition = self._partitions.find(name, index)
            if not isinstance(partition, ErrorCode):
                states = tuple(_describe(entry) for entry in partition.producers.entries.values())
                return DescribeProducersPartitionResponse(partition_index=index, active_producers=states)
            found = partition
        return DescribeProducersPartitionResponse(partition_index=index, error_code=found, error_message=message)


def _describe(entry: ProducerStateEntry) -> ProducerState:
    first_offset = entry.current_txn_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=-1 if first_offset is None else first_offset,
    )
