"""Requests that change topics. What is decided becomes records, and the answer waits until they are true.

Kafka: ControllerApis, ReplicationControlManager.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from typing import Any, Generic, TypeVar

from rejoin.coordinator.core.inputs import Context, RecordsWritten, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.names import TWICE
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
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

Wanted = TypeVar("Wanted", CreatableTopic, CreatePartitionsTopic, DeleteTopicState)
Named = TypeVar("Named", CreatableTopic, CreatePartitionsTopic)
Result = TypeVar("Result", CreatableTopicResult, CreatePartitionsTopicResult, DeletableTopicResult)

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

    @property
    def placement(self) -> Placement:
        """Where replicas can be."""
        has_controller = self._cluster.registrations is not None
        factor = self.ctx.settings.default_replication_factor if has_controller else None
        return Placement(tuple(broker.node_id for broker in self._cluster.brokers), factor)

    def create(
        self, topic: CreatableTopic, repeated: bool, context: Context, validate_only: bool
    ) -> tuple[CreatableTopicResult, TopicsRecords]:
        """What becomes of one topic of a CreateTopics."""
        allows = self._admission.allows
        allowed = allows(CreateTopicsRequest, context, Resource.CLUSTER) and allows(
            CreateTopicsRequest, context, Resource.TOPIC, topic.name
        )
        refused = _refusal(topic.name, repeated, allowed, f"{context.principal} may not create")
        if refused is not None:
            return CreatableTopicResult(name=topic.name, **refused), ()
        result, records = self.topics.create(topic, self.placement, self.ctx.now)
        return result, () if validate_only else records

    def grow(
        self, topic: CreatePartitionsTopic, repeated: bool, context: Context, validate_only: bool
    ) -> tuple[CreatePartitionsTopicResult, TopicsRecords]:
        """What becomes of one topic of a CreatePartitions."""
        allowed = self._admission.allows(CreatePartitionsRequest, context, Resource.TOPIC, topic.name)
        refused = _refusal(topic.name, repeated, allowed, f"{context.principal} may not alter")
        if refused is not None:
            return CreatePartitionsTopicResult(name=topic.name, **refused), ()
        result, records = self.topics.grow(topic, self.placement, self.ctx.now)
        return result, () if validate_only else records

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


def _refusal(name: str, repeated: bool, allowed: bool, denied: str) -> dict[str, Any] | None:
    """Error and message for a topic that is not looked at any further, or none."""
    if repeated:
        message = f"topic {name!r} stands in the request more than once"
        return {"error_code": ErrorCode.INVALID_REQUEST, "error_message": message}
    if not allowed:
        return {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "error_message": f"{denied} topic {name!r}"}
    return None


class _RequestedChange(TopicChange, Generic[Wanted, Result]):
    """What a request asks for, topic by topic; the request is answered when all of it is stored."""

    def __init__(self, made_by: TopicRequests, token: Token, topics: tuple[Wanted, ...], context: Context) -> None:
        self._requests = made_by
        self._token = token
        self._topics: tuple[Wanted, ...] = topics
        self._context = context
        self._results: list[Result] = []

    @abstractmethod
    def _respond(self, results: tuple[Result, ...]) -> Response:
        """The response with these results."""

    def _failed(self, result: Result, error: ErrorCode) -> Result:
        """The result of a topic that could not be stored."""
        return result.model_copy(update={"error_code": error, "error_message": NOT_STORED})

    def ended(self, error: ErrorCode) -> None:
        results = self._results
        if error is not ErrorCode.NONE:
            results = [self._failed(each, error) if each.error_code is ErrorCode.NONE else each for each in results]
        self._requests.ctx.reply(self._token, self._respond(tuple(results)))


class _NamedChange(_RequestedChange[Named, Result]):
    """A change of topics that are named; a name that stands there twice is refused."""

    @abstractmethod
    def _decide_one(self, topic: Named, repeated: bool) -> tuple[Result, TopicsRecords]:
        """What becomes of one topic, and what it takes."""

    def decide(self) -> TopicsRecords:
        times = Counter(topic.name for topic in self._topics)
        topics = {topic.name: topic for topic in self._topics}
        decided = [self._decide_one(topic, times[name] > 1) for name, topic in topics.items()]
        self._results = [result for result, _ in decided]
        return tuple(record for _, records in decided for record in records)


class _TopicCreation(_NamedChange[CreatableTopic, CreatableTopicResult]):
    """A CreateTopics under way."""

    def __init__(self, made_by: TopicRequests, token: Token, request: CreateTopicsRequest, context: Context) -> None:
        super().__init__(made_by, token, request.topics, context)
        self._validate_only = request.validate_only

    def _decide_one(self, topic: CreatableTopic, repeated: bool) -> tuple[CreatableTopicResult, TopicsRecords]:
        return self._requests.create(topic, repeated, self._context, self._validate_only)

    def _failed(self, result: CreatableTopicResult, error: ErrorCode) -> CreatableTopicResult:
        return CreatableTopicResult(name=result.name, error_code=error, error_message=NOT_STORED)

    def _respond(self, results: tuple[CreatableTopicResult, ...]) -> Response:
        return CreateTopicsResponse(topics=results)


class _TopicGrowth(_NamedChange[CreatePartitionsTopic, CreatePartitionsTopicResult]):
    """A CreatePartitions under way."""

    def __init__(
        self, made_by: TopicRequests, token: Token, request: CreatePartitionsRequest, context: Context
    ) -> None:
        super().__init__(made_by, token, request.topics, context)
        self._validate_only = request.validate_only

    def _decide_one(
        self, topic: CreatePartitionsTopic, repeated: bool
    ) -> tuple[CreatePartitionsTopicResult, TopicsRecords]:
        return self._requests.grow(topic, repeated, self._context, self._validate_only)

    def _respond(self, results: tuple[CreatePartitionsTopicResult, ...]) -> Response:
        return CreatePartitionsResponse(results=results)


class _TopicDeletion(_RequestedChange[DeleteTopicState, DeletableTopicResult]):
    """A DeleteTopics under way."""

    def __init__(self, made_by: TopicRequests, token: Token, request: DeleteTopicsRequest, context: Context) -> None:
        topics = request.topics or tuple(
            DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names
        )
        super().__init__(made_by, token, topics, context)

    def decide(self) -> TopicsRecords:
        gone: dict[str, TopicsRecords] = {}
        times = Counter((each.name, each.topic_id) for each in self._topics)
        # Kafka: ControllerApis.deleteTopics answers once what stands there twice, and deletes nothing of it.
        self._results = [
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TWICE
            )
            for (name, topic_id), count in times.items()
            if count > 1
        ]
        once = [each for each in self._topics if times[each.name, each.topic_id] == 1]
        self._results += [self._requests.delete(topic, self._context, gone) for topic in once]
        return tuple(record for records in gone.values() for record in records)

    def _respond(self, results: tuple[DeletableTopicResult, ...]) -> Response:
        return DeleteTopicsResponse(responses=results)


class _AutomaticCreation(TopicChange):
    """A topic made because metadata was asked for it. No request waits for it, and another may have made it first."""

    def __init__(self, made_by: TopicRequests, name: str) -> None:
        self._requests = made_by
        self._name = name

    def decide(self) -> TopicsRecords:
        requests = self._requests
        if self._name in requests.topics:
            return ()
        return requests.topics.automatic(self._name, requests.placement, requests.ctx.now)


class _Production(TopicChange):
    """Records that were produced."""

    def __init__(self, made_by: TopicRequests, written: RecordsWritten) -> None:
        self._requests = made_by
        self._written = replace(written)

    def decide(self) -> TopicsRecords:
        return self._requests.topics.writing(self._written)
