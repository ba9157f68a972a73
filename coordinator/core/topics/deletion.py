"""Topics that a DeleteTopics deletes, and its result for each. Kafka: ControllerApis.deleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from rejoin.coordinator.core.inputs import Context, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.core.topics.names import TWICE
from rejoin.coordinator.core.topics.table import Topic
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from rejoin.protocol.records.topics import AnyTopicsRecord
from rejoin.protocol.types import ZERO_UUID


class Deletion:
    """The topics of one DeleteTopics, which names each by its name or by its id.

    Nothing is deleted of what stands there twice, in whichever way.
    """

    def __init__(
        self,
        topics: Topics,
        admission: Admission,
        wanted: Iterable[DeleteTopicState],
        context: Context,
        may_take: Callable[[str, int], bool],
    ) -> None:
        """``may_take`` says whether the client's quota allows to delete so many partitions of a topic."""
        self._topics = topics
        self._may_take = may_take
        self._admission = admission
        self._wanted = tuple(wanted)
        self._context = context
        self._by_name = Counter(each.name for each in self._wanted if each.topic_id == ZERO_UUID)
        self._by_id = Counter(each.topic_id for each in self._wanted if each.name is None)
        # Kafka: the right to delete on the cluster is one to delete every topic. Denials alone know no such right.
        self._may_delete_all = admission.has_acls and admission.allows_operation(
            Operation.DELETE, context, Resource.CLUSTER
        )
        self.results: list[DeletableTopicResult] = []
        self._records: list[AnyTopicsRecord] = []

    @property
    def records(self) -> TopicsRecords:
        """The records that delete the topics."""
        return tuple(self._records)

    def decide(self) -> None:
        """Fill in results and records, in the order of the request."""
        answered: set[tuple[str | None, str]] = set()
        for wanted in self._wanted:
            if (wanted.name is None) == (wanted.topic_id == ZERO_UUID):
                self._refuse(wanted.name, wanted.topic_id, ErrorCode.INVALID_REQUEST, _not_one(wanted))
            elif (wanted.name, wanted.topic_id) not in answered:
                answered.add((wanted.name, wanted.topic_id))
                self._decide_one(wanted.name, wanted.topic_id)

    def _decide_one(self, name: str | None, topic_id: str) -> None:
        if (self._by_id[topic_id] if name is None else self._by_name[name]) > 1:
            self._refuse(name, topic_id, ErrorCode.INVALID_REQUEST, TWICE)
        elif name is None:
            self._delete_by_id(topic_id)
        else:
            self._delete_by_name(name)

    def _delete_by_id(self, topic_id: str) -> None:
        name = self._topics.named(topic_id)
        topic = self._topics.by_name.get(name or "")
        if topic is None:
            self._refuse(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        elif not self._may_delete(topic.name):
            # Kafka: an id gives nothing away.
            self._deny(topic.name if self._may_see(topic.name) else None, topic_id)
        elif self._by_name[topic.name] != 1:
            self._delete(topic)
        # Kafka: where the name stands there, too, that one is answered, for both.

    def _delete_by_name(self, name: str) -> None:
        topic = self._topics.by_name.get(name)
        if not self._may_see(name):
            self._deny(name, ZERO_UUID)
        elif topic is None:
            message = f"there is no topic {name[:60]!r} that can be deleted"
            self._refuse(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        elif not self._may_delete(name):
            self._deny(name, ZERO_UUID)
        elif self._by_id[topic.topic_id]:
            self._refuse(name, topic.topic_id, ErrorCode.INVALID_REQUEST, "its id stands in the request, too")
        else:
            self._delete(topic)

    def _delete(self, topic: Topic) -> None:
        if not self._may_take(topic.name, len(topic.partitions)):
            self._refuse(topic.name, topic.topic_id, ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
            return
        self._records += self._topics.removal(topic)
        self.results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))

    def _deny(self, name: str | None, topic_id: str) -> None:
        message = f"{self._context.principal} may not delete {'this topic' if name is None else f'topic {name[:60]!r}'}"
        self._refuse(name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)

    def _refuse(self, name: str | None, topic_id: str, error: ErrorCode, message: str | None) -> None:
        result = DeletableTopicResult(name=name, topic_id=topic_id, error_code=error, error_message=message)
        self.results.append(result)

    def _may_delete(self, name: str) -> bool:
        return self._may_delete_all or self._admission.allows(DeleteTopicsRequest, self._context, Resource.TOPIC, name)

    def _may_see(self, name: str) -> bool:
        return self._may_delete_all or self._admission.allows(
            DescribeTopicPartitionsRequest, self._context, Resource.TOPIC, name
        )


def _not_one(wanted: DeleteTopicState) -> str:
    found = "neither a name nor an id" if wanted.name is None else "a name and an id"
    return f"{found}: expected one of the two"
