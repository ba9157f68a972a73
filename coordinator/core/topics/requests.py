"""Requests that change topics. What is decided becomes records, and the answer waits until they are true.

Kafka: ControllerApis, ReplicationControlManager.
"""

from __future__ import annotations

from dataclasses import replace

from rejoin.coordinator.core.inputs import Context, RecordsWritten, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rejoin.protocol.messages.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rejoin.protocol.types import ZERO_UUID

NOT_STORED = "the change could not be stored; it may have been all the same: look before asking again"


class TopicRequests:
    """Creates, grows and deletes topics."""

    def __init__(
        self, ctx: StepContext, cluster: ClusterMetadata, topics: Topics, changes: TopicChanges, admission: Admission
    ) -> None:
        self.ctx = ctx
        self.topics = topics
        self._cluster = cluster
        self._changes = changes
        self._admission = admission

    def create_topics(self, token: Token, request: CreateTopicsRequest, context: Context) -> None:
        self._changes.make(_TopicCreation(self, token, request, context))

    def create_partitions(self, token: Token, request: CreatePartitionsRequest, context: Context) -> None:
        self._changes.make(_TopicGrowth(self, token, request, context))

    def delete_topics(self, token: Token, request: DeleteTopicsRequest, context: Context) -> None:
        self._changes.make(_TopicDeletion(self, token, request, context))

    def create_automatically(self, name: str) -> ErrorCode:
        """Add a topic that metadata was asked for; returns the error for that request."""
        error = self.topics.check_automatic(name)
        if error is ErrorCode.NONE:
            self._changes.make(_AutomaticCreation(self, name))
            # Kafka: the topic is made aside, and this answer still says that it is unknown.
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error

    def write(self, written: RecordsWritten) -> None:
        """Move a partition's end on."""
        self._changes.make(_Production(self, written))

    # --- decisions

    def create(
        self, topic: CreatableTopic, repeated: bool, context: Context, validate_only: bool
    ) -> tuple[CreatableTopicResult, TopicsRecords]:
        """What becomes of one topic of a CreateTopics."""
        if repeated:
            refused = CreatableTopicResult(
                name=topic.name,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=f"topic {topic.name!r} stands in the request more than once",
            )
            return refused, ()
        allows = self._admission.allows
        allowed = allows(CreateTopicsRequest, context, Resource.CLUSTER) and allows(
            CreateTopicsRequest, context, Resource.TOPIC, topic.name
        )
        if not allowed:
            refused = CreatableTopicResult(
                name=topic.name,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message=f"{context.principal} may not create topic {topic.name!r}",
            )
            return refused, ()
        result, records = self.topics.create(topic, len(self._cluster.brokers), self.ctx.now)
        return result, () if validate_only else records

    def grow(
        self, topic: CreatePartitionsTopic, repeated: bool, context: Context
    ) -> tuple[CreatePartitionsTopicResult, TopicsRecords]:
        """What becomes of one topic of a CreatePartitions."""
        if repeated:
            refused = CreatePartitionsTopicResult(
                name=topic.name,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=f"topic {topic.name!r} stands in the request more than once",
            )
            return refused, ()
        if not self._admission.allows(CreatePartitionsRequest, context, Resource.TOPIC, topic.name):
            refused = CreatePartitionsTopicResult(
                name=topic.name,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message=f"{context.principal} may not alter topic {topic.name!r}",
            )
            return refused, ()
        return self.topics.grow(topic, self.ctx.now)

    def delete(
        self, wanted: DeleteTopicState, context: Context, gone: dict[str, TopicsRecords]
    ) -> DeletableTopicResult:
        """What becomes of one topic of a DeleteTopics; ``gone`` has the records by name, and gets this one's."""
        name = wanted.name if wanted.name is not None else self.topics.named(wanted.topic_id)
        if name is None or (wanted.name is None and name in gone):
            return DeletableTopicResult(name=None, topic_id=wanted.topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._admission.allows(DeleteTopicsRequest, context, Resource.TOPIC, name):
            return DeletableTopicResult(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic = self.topics.by_name.get(name)
        if topic is None or name in gone:
            return DeletableTopicResult(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        gone[name] = self.topics.removal(topic)
        return DeletableTopicResult(name=name, topic_id=topic.topic_id)


class _TopicCreation(TopicChange):
    """A CreateTopics under way."""

    def __init__(self, made_by: TopicRequests, token: Token, request: CreateTopicsRequest, context: Context) -> None:
        self._requests = made_by
        self._token = token
        self._request = request
        self._context = context
        self._results: list[CreatableTopicResult] = []

    def decide(self) -> TopicsRecords:
        request = self._request
        names = [topic.name for topic in request.topics]
        decided = [
            self._requests.create(topic, names.count(topic.name) > 1, self._context, request.validate_only)
            for topic in {topic.name: topic for topic in request.topics}.values()
        ]
        self._results = [result for result, _ in decided]
        return tuple(record for _, records in decided for record in records)

    def ended(self, error: ErrorCode) -> None:
        results = self._results
        if error is not ErrorCode.NONE:
            results = [
                CreatableTopicResult(name=each.name, error_code=error, error_message=NOT_STORED)
                if each.error_code is ErrorCode.NONE
                else each
                for each in results
            ]
        self._requests.ctx.reply(self._token, CreateTopicsResponse(topics=tuple(results)))


class _TopicGrowth(TopicChange):
    """A CreatePartitions under way."""

    def __init__(
        self, made_by: TopicRequests, token: Token, request: CreatePartitionsRequest, context: Context
    ) -> None:
        self._requests = made_by
        self._token = token
        self._request = request
        self._context = context
        self._results: list[CreatePartitionsTopicResult] = []

    def decide(self) -> TopicsRecords:
        request = self._request
        names = [topic.name for topic in request.topics]
        decided = [
            self._requests.grow(topic, names.count(topic.name) > 1, self._context)
            for topic in {topic.name: topic for topic in request.topics}.values()
        ]
        self._results = [result for result, _ in decided]
        return () if request.validate_only else tuple(record for _, records in decided for record in records)

    def ended(self, error: ErrorCode) -> None:
        results = self._results
        if error is not ErrorCode.NONE:
            results = [
                CreatePartitionsTopicResult(name=each.name, error_code=error, error_message=NOT_STORED)
                if each.error_code is ErrorCode.NONE
                else each
                for each in results
            ]
        self._requests.ctx.reply(self._token, CreatePartitionsResponse(results=tuple(results)))


class _TopicDeletion(TopicChange):
    """A DeleteTopics under way."""

    def __init__(self, made_by: TopicRequests, token: Token, request: DeleteTopicsRequest, context: Context) -> None:
        self._requests = made_by
        self._token = token
        self._context = context
        self._wanted = request.topics or tuple(
            DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names
        )
        self._results: list[DeletableTopicResult] = []

    def decide(self) -> TopicsRecords:
        gone: dict[str, TopicsRecords] = {}
        self._results = [self._requests.delete(topic, self._context, gone) for topic in self._wanted]
        return tuple(record for records in gone.values() for record in records)

    def ended(self, error: ErrorCode) -> None:
        results = self._results
        if error is not ErrorCode.NONE:
            results = [
                each.model_copy(update={"error_code": error, "error_message": NOT_STORED})
                if each.error_code is ErrorCode.NONE
                else each
                for each in results
            ]
        self._requests.ctx.reply(self._token, DeleteTopicsResponse(responses=tuple(results)))


class _AutomaticCreation(TopicChange):
    """A topic made because metadata was asked for it. No request waits for it, and another may have made it first."""

    def __init__(self, made_by: TopicRequests, name: str) -> None:
        self._requests = made_by
        self._name = name

    def decide(self) -> TopicsRecords:
        topics = self._requests.topics
        return () if self._name in topics else topics.automatic(self._name, self._requests.ctx.now)


class _Production(TopicChange):
    """Records that were produced."""

    def __init__(self, made_by: TopicRequests, written: RecordsWritten) -> None:
        self._requests = made_by
        self._written = replace(written)

    def decide(self) -> TopicsRecords:
        return self._requests.topics.writing(self._written)
