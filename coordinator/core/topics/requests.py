"""Requests that change topics. Changes become records, and the response waits until they are stored.

Kafka: ControllerApis, ReplicationControlManager.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Final, Generic, TypeVar

from rejoin.coordinator.core.inputs import Context, RecordsWritten, Token, TopicsRecords
from rejoin.coordinator.core.quotas.client_rates import ClientRates
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.deletion import Deletion
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.brokers.releases import has_reached
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.limits import MAX_ENTRIES
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

FIRST_RELEASE_WITH_RAFT: Final = "3.0"
"""From here on ``--as-kafka`` stands for brokers with KRaft; 2.8 had a preview of it."""

NOT_STORED: Final = "the change could not be stored; it may have been all the same: look before asking again"

MOST_PER_REQUEST: Final = 10_000
"""New partitions of a client's request, and records that make them.

Kafka: MAX_PARTITIONS_PER_BATCH and MAX_RECORDS_PER_USER_OP.
"""

MOST_NEW_TOPICS: Final = 4_000
"""New topics of a client's request."""
# Differs: in Kafka the bound above is the only one. Here one thread serves all.

TOO_LARGE: Final = (
    f"a request may make at most {MOST_NEW_TOPICS:,} topics, "
    f"and {MOST_PER_REQUEST:,} topics, settings and partitions together"
)

TOO_MANY_DELETED: Final = f"a request may delete at most {MOST_PER_REQUEST:,} topics"


class TopicRequests:
    """Creates, grows and deletes topics."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        changes: TopicChanges,
        admission: Admission,
        rates: ClientRates,
    ) -> None:
        self.ctx = ctx
        self.topics = topics
        self.rates = rates
        self._cluster = cluster
        self._changes = changes
        self._admission = admission

    def create_topics(self, token: Token, request: CreateTopicsRequest, context: Context) -> None:
        self._changes.make(_TopicCreation(self, token, request, context))

    def create_for(
        self,
        topics: Sequence[CreatableTopic],
        context: Context,
        on_created: Callable[[Sequence[CreatableTopicResult]], None],
    ) -> None:
        """Create topics that a client needs, as its own CreateTopics does; ``on_created`` takes the results."""
        self._changes.make(_CreationForClient(self, topics, context, on_created))

    def create_partitions(self, token: Token, request: CreatePartitionsRequest, context: Context) -> None:
        self._changes.make(_TopicGrowth(self, token, request, context))

    def delete_topics(self, token: Token, request: DeleteTopicsRequest, context: Context) -> None:
        self._changes.make(_TopicDeletion(self, token, request, context))

    def create_automatically(self, names: Sequence[str]) -> None:
        """Add topics that metadata was asked for: as many as CreateTopics may make, the others when asked again."""
        most = min(MOST_NEW_TOPICS, MOST_PER_REQUEST // self.ctx.settings.num_partitions)
        if names:
            self._changes.make(_AutomaticCreation(self, names[: max(1, most)]))

    @property
    def error_of_created(self) -> ErrorCode:
        """The error of a topic that is made because metadata was asked for it."""
        # Kafka: the topic is made aside, and this answer still says that it is unknown, as brokers with KRaft do.
        # Those with ZooKeeper made it at once: what is missing is a leader.
        with_raft = has_reached(self.ctx.settings.emulator_as_kafka, FIRST_RELEASE_WITH_RAFT)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if with_raft else ErrorCode.LEADER_NOT_AVAILABLE

    def use_offsets_topic(self) -> None:
        """``__consumer_offsets`` was asked for by name, which makes it in Kafka."""
        self._changes.use_offsets_topic()

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

    def may_create(self, name: str, context: Context) -> bool:
        """Whether a client may create a topic. Kafka: the right to create any topic is one on the cluster."""
        of_all = self._admission.allows(CreateTopicsRequest, context, Resource.CLUSTER)
        if of_all is self._admission.has_acls:
            return of_all
        return self._admission.allows(CreateTopicsRequest, context, Resource.TOPIC, name)

    def may_see_configs(self, name: str, context: Context) -> bool:
        return self._admission.allows_operation(Operation.DESCRIBE_CONFIGS, context, Resource.TOPIC, name)

    def may_grow(self, name: str, context: Context) -> bool:
        return self._admission.allows(CreatePartitionsRequest, context, Resource.TOPIC, name)

    def deletion(
        self, wanted: tuple[DeleteTopicState, ...], context: Context, may_take: Callable[[str, int], bool]
    ) -> Deletion:
        """The result of a DeleteTopics for each topic, on the current state."""
        return Deletion(self.topics, self._admission, wanted, context, may_take)


class _RequestedChange(TopicChange, Generic[Wanted, Result]):
    """A request's topics, one by one; the response leaves when all changes are stored."""

    _strict_since: ClassVar[int]
    """The first version whose topics are refused to clients above their quota; older ones are only slowed down."""

    def __init__(self, made_by: TopicRequests, token: Token, topics: tuple[Wanted, ...], context: Context) -> None:
        self._requests = made_by
        is_strict = context.api_version >= self._strict_since
        self._budget = made_by.rates.mutation_budget(token, context, strict=is_strict)
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
        self._answer(tuple(results))

    def _answer(self, results: tuple[Result, ...]) -> None:
        response = self._respond(results)
        if self._budget is not None and (throttle_ms := self._budget.mute()):
            response = response.model_copy(update={"throttle_time_ms": throttle_ms})
        self._requests.ctx.reply(self._token, response)

    def _may_take(self, topic: str, partitions: int) -> bool:
        """Whether the client's quota allows to make or delete so many partitions."""
        return self._budget is None or self._budget.take(topic, partitions)


class _NamedChange(_RequestedChange[Named, Result]):
    """A change of topics that are named; a name that stands there twice is refused.

    Kafka: ReplicationControlManager refuses all of a client's request that is too large.
    """

    _operation: ClassVar[str]
    """The verb in the error for clients that may not change the topic."""
    _most_topics: ClassVar[int] = MAX_ENTRIES
    """How many topics a request may name."""

    @abstractmethod
    def _refused(self, name: str, error: ErrorCode, message: str | None) -> Result:
        """The result of a topic that stays as it is."""

    @abstractmethod
    def _may_change(self, name: str) -> bool:
        """Whether the principal has the right to."""

    @abstractmethod
    def _new_partitions(self, topic: Named) -> int:
        """How many partitions a topic wants to have more, 0 where it does not say a possible number."""

    @abstractmethod
    def _decide_one(self, topic: Named) -> tuple[Result, TopicsRecords]:
        """The result for one topic, and the changes to store."""

    def _records_in_kafka(self, topic: Named, result: Result) -> int:
        """How many records it takes in Kafka, where each partition and each setting has one."""
        return 0

    def decide(self) -> TopicsRecords:
        times = Counter(topic.name for topic in self._topics)
        topics = {topic.name: topic for topic in self._topics}
        results: dict[str, Result | None] = {name: self._refusal(name, times[name] > 1) for name in topics}
        if len(self._topics) > self._most_topics and not self._context.by_operator:
            return self._refuse_all()
        wanted = [topic for topic in topics.values() if results[topic.name] is None]
        limit = math.inf if self._context.by_operator else MOST_PER_REQUEST
        if sum(self._new_partitions(topic) for topic in wanted) > limit:
            return self._refuse_all()
        decided = [(topic, self._decide_one(topic)) for topic in wanted]
        if self._budget is not None:
            decided = [(topic, self._within_quota(topic, *decision)) for topic, decision in decided]
        if sum(self._records_in_kafka(topic, result) for topic, (result, _) in decided) > limit:
            return self._refuse_all()
        results.update((topic.name, result) for topic, (result, _) in decided)
        self._results = [result for result in results.values() if result is not None]
        return tuple(record for _, (_, records) in decided for record in records)

    def _within_quota(self, topic: Named, result: Result, records: TopicsRecords) -> tuple[Result, TopicsRecords]:
        """The decision about a topic, or its refusal where the client has changed too much already."""
        if result.error_code is not ErrorCode.NONE or self._may_take(topic.name, self._new_partitions(topic)):
            return result, records
        return self._refused(topic.name, ErrorCode.THROTTLING_QUOTA_EXCEEDED, None), ()

    def _refusal(self, name: str, repeated: bool) -> Result | None:
        """The result of a topic that is not looked at any further, or none."""
        if repeated:
            message = f"topic {name!r} stands in the request more than once"
            return self._refused(name, ErrorCode.INVALID_REQUEST, message)
        if not self._may_change(name):
            message = f"{self._context.principal} may not {self._operation} topic {name!r}"
            return self._refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
        return None

    def _refuse_all(self) -> TopicsRecords:
        self._results = [self._refused(topic.name, ErrorCode.POLICY_VIOLATION, TOO_LARGE) for topic in self._topics]
        return ()


class _TopicCreation(_NamedChange[CreatableTopic, CreatableTopicResult]):
    """A CreateTopics under way."""

    _operation = "create"
    _strict_since = 6
    _most_topics = MOST_NEW_TOPICS

    def __init__(self, made_by: TopicRequests, token: Token, request: CreateTopicsRequest, context: Context) -> None:
        super().__init__(made_by, token, request.topics, context)
        self._validate_only = request.validate_only

    def _refused(self, name: str, error: ErrorCode, message: str | None) -> CreatableTopicResult:
        return CreatableTopicResult(name=name, error_code=error, error_message=message)

    def _may_change(self, name: str) -> bool:
        return self._requests.may_create(name, self._context)

    def _new_partitions(self, topic: CreatableTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        is_default = topic.num_partitions == -1
        return self._requests.ctx.settings.num_partitions if is_default else max(0, topic.num_partitions)

    def _decide_one(self, topic: CreatableTopic) -> tuple[CreatableTopicResult, TopicsRecords]:
        requests = self._requests
        result, records = requests.topics.create(topic, requests.placement, requests.ctx.now)
        return result, () if self._validate_only else records

    def _shown(self, result: CreatableTopicResult) -> CreatableTopicResult:
        """The result as this client may see it. Kafka: settings take a right of their own."""
        if result.error_code is ErrorCode.NONE and not self._requests.may_see_configs(result.name, self._context):
            return result.model_copy(update=_WITHOUT_CONFIGS)
        return result

    def _records_in_kafka(self, topic: CreatableTopic, result: CreatableTopicResult) -> int:
        if result.error_code is not ErrorCode.NONE:
            return 0
        return 1 + len({config.name for config in topic.configs}) + result.num_partitions

    def _failed(self, result: CreatableTopicResult, error: ErrorCode) -> CreatableTopicResult:
        return self._refused(result.name, error, NOT_STORED)

    def _respond(self, results: tuple[CreatableTopicResult, ...]) -> Response:
        return CreateTopicsResponse(topics=tuple(map(self._shown, results)))


_WITHOUT_CONFIGS: Final = {
    "topic_config_error_code": int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    "num_partitions": -1,
    "replication_factor": -1,
    "configs": (),
}


class _CreationForClient(_TopicCreation):
    """Topics made for a client that has not sent a CreateTopics."""

    def __init__(
        self,
        made_by: TopicRequests,
        topics: Sequence[CreatableTopic],
        context: Context,
        on_created: Callable[[Sequence[CreatableTopicResult]], None],
    ) -> None:
        super().__init__(made_by, None, CreateTopicsRequest(topics=tuple(topics)), context)
        self._budget = None
        self._on_created = on_created

    def _answer(self, results: tuple[CreatableTopicResult, ...]) -> None:
        self._on_created(results)


class _TopicGrowth(_NamedChange[CreatePartitionsTopic, CreatePartitionsTopicResult]):
    """A CreatePartitions under way."""

    _operation = "alter"
    _strict_since = 3

    def __init__(
        self, made_by: TopicRequests, token: Token, request: CreatePartitionsRequest, context: Context
    ) -> None:
        super().__init__(made_by, token, request.topics, context)
        self._validate_only = request.validate_only

    def _refused(self, name: str, error: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
        return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)

    def _may_change(self, name: str) -> bool:
        return self._requests.may_grow(name, self._context)

    def _new_partitions(self, topic: CreatePartitionsTopic) -> int:
        known = self._requests.topics.by_name.get(topic.name)
        return 0 if known is None else max(0, topic.count - len(known.partitions))

    def _decide_one(self, topic: CreatePartitionsTopic) -> tuple[CreatePartitionsTopicResult, TopicsRecords]:
        requests = self._requests
        result, records = requests.topics.grow(topic, requests.placement, requests.ctx.now)
        return result, () if self._validate_only else records

    def _respond(self, results: tuple[CreatePartitionsTopicResult, ...]) -> Response:
        return CreatePartitionsResponse(results=results)


class _TopicDeletion(_RequestedChange[DeleteTopicState, DeletableTopicResult]):
    """A DeleteTopics under way."""

    _strict_since = 5

    def __init__(self, made_by: TopicRequests, token: Token, request: DeleteTopicsRequest, context: Context) -> None:
        topics = request.topics or tuple(
            DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names
        )
        super().__init__(made_by, token, topics, context)

    def decide(self) -> TopicsRecords:
        if len(self._topics) > MOST_PER_REQUEST and not self._context.by_operator:
            self._results = [
                DeletableTopicResult(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=ErrorCode.POLICY_VIOLATION,
                    error_message=TOO_MANY_DELETED,
                )
                for topic in self._topics
            ]
            return ()
        deletion = self._requests.deletion(self._topics, self._context, self._may_take)
        deletion.decide()
        self._results = deletion.results
        return deletion.records

    def _respond(self, results: tuple[DeletableTopicResult, ...]) -> Response:
        return DeleteTopicsResponse(responses=results)


class _AutomaticCreation(TopicChange):
    """Topics made because metadata was asked for them. No request waits, and another may have made them first."""

    def __init__(self, made_by: TopicRequests, names: Sequence[str]) -> None:
        self._requests = made_by
        self._names = names

    def decide(self) -> TopicsRecords:
        topics, placement, now = self._requests.topics, self._requests.placement, self._requests.ctx.now
        made = (topics.automatic(name, placement, now) for name in self._names if name not in topics)
        return tuple(record for records in made for record in records)


class _Production(TopicChange):
    """Records that were produced."""

    def __init__(self, made_by: TopicRequests, written: RecordsWritten) -> None:
        self._requests = made_by
        self._written = replace(written)

    def decide(self) -> TopicsRecords:
        return self._requests.topics.writing(self._written)
