"""The commands that are requests about topics and about where a group's coordinator is."""

from __future__ import annotations

from typing import Any, Final

from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.transcript.grammar.base import RequestCommand, Scope, number, version_option
from rejoin.transcript.grammar.words import BadWord, NotExpressible, read_number, write_word

_NO_TOPIC_ID: Final = "A" * 22
_TIMEOUT_MS: Final = 1_000


class CreateTopicCommand(RequestCommand):
    """A CreateTopics of one topic."""

    verb = "topic"
    usage = "topic NAME COUNT [ID]"
    does = "create a topic, silently; unless given, the player chooses its id"
    messages = (CreateTopicsRequest,)
    version = 7
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        name, count = _two(rest[:2], self.usage)
        self.expect_no(rest[3:])
        topic = CreatableTopic(
            name=name, num_partitions=read_number(count), replication_factor=1, assignments=(), configs=()
        )
        return CreateTopicsRequest(topics=(topic,))

    def write_rest(self, request: CreateTopicsRequest, version: int, scope: Scope) -> list[str]:
        if len(request.topics) != 1:
            raise NotExpressible("several topics at once")
        return [write_word(request.topics[0].name), str(request.topics[0].num_partitions)]


class GrowTopicCommand(RequestCommand):
    """A CreatePartitions of one topic."""

    verb = "topic"
    usage = "topic NAME to COUNT"
    does = "give a topic so many partitions"
    messages = (CreatePartitionsRequest,)
    version = 3
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        name, count = _two([word for word in rest if word != "to"], self.usage)
        topic = CreatePartitionsTopic(name=name, count=read_number(count), assignments=None)
        return CreatePartitionsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS, validate_only=False)

    def write_rest(self, request: CreatePartitionsRequest, version: int, scope: Scope) -> list[str]:
        if len(request.topics) != 1 or request.validate_only:
            raise NotExpressible("several topics at once, or only validated")
        return [write_word(request.topics[0].name), "to", str(request.topics[0].count)]


class DeleteTopicCommand(RequestCommand):
    """A DeleteTopics of one topic, by its name."""

    verb = "topic"
    usage = "topic NAME gone"
    does = "delete a topic"
    messages = (DeleteTopicsRequest,)
    version = 6
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        name, _ = _two(rest, self.usage)
        return DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=_NO_TOPIC_ID),), timeout_ms=_TIMEOUT_MS)

    def write_rest(self, request: DeleteTopicsRequest, version: int, scope: Scope) -> list[str]:
        names = [topic.name for topic in request.topics] if version >= 6 else list(request.topic_names)
        if len(names) != 1 or names[0] is None:
            raise NotExpressible("several topics at once, or by their ids")
        return [write_word(names[0]), "gone"]


class FindCommand(RequestCommand):
    """A FindCoordinator."""

    verb = "find"
    usage = "find KEY ... [v=6] [type=0]"
    does = "find the coordinator of groups"
    messages = (FindCoordinatorRequest,)
    version = 6
    options = (version_option(6), number("type", "key_type", "0"))
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        if version >= 4:
            return FindCoordinatorRequest(**values, coordinator_keys=tuple(rest))
        return FindCoordinatorRequest(**values, key=rest[0] if rest else "")


def _two(rest: list[str], usage: str) -> tuple[str, str]:
    if len(rest) != 2:
        raise BadWord(f"expected {usage}")
    return rest[0], rest[1]
