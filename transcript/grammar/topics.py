"""The commands that are requests about topics and about where a group's coordinator is."""

from __future__ import annotations

import struct
from typing import Any, Final

from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.records.topics import GROUP_RESOURCE
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_batch import NO_PRODUCER_ID, BatchHeader, parse_header, size_at
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from rejoin.transcript.grammar.base import RequestCommand, Scope, number, version_option
from rejoin.transcript.grammar.consumer_groups import topic_names
from rejoin.transcript.grammar.offsets import PRODUCER_EPOCH, TRANSACTIONAL_ID
from rejoin.transcript.grammar.words import (
    BadWord,
    NotExpressible,
    read_number,
    read_offsets,
    write_offset,
    write_word,
)

_NO_TOPIC_ID: Final = "A" * 22
_TIMEOUT_MS: Final = 1_000
_MOST_RECORDS: Final = 100_000
_SET: Final = 0
_DELETE: Final = 1
"""Operations of IncrementalAlterConfigs."""


class CreateTopicCommand(RequestCommand):
    """A CreateTopics of one topic."""

    verb = "topic"
    usage = "topic NAME COUNT [ID] [CONFIG=VALUE ...]"
    does = "create a topic, silently; unless given, the player chooses its id"
    messages = (CreateTopicsRequest,)
    version = 7
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        name, count = _two(rest[:2], self.usage)
        words, given = [word for word in rest if "=" not in word], [word for word in rest if "=" in word]
        self.expect_no(words[3:])
        topic = CreatableTopic(
            name=name,
            num_partitions=read_number(count),
            replication_factor=1,
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=key, value=value) for key, _, value in (each.partition("=") for each in given)
            ),
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


class ProduceCommand(RequestCommand):
    """A Produce of a batch of records in each partition; only how many they are counts, and their transaction."""

    verb = "produce"
    usage = "produce t:0=3 ... [producer=7] [epoch=0] [sequence=0]"
    does = (
        "write so many records to partitions, each a batch of its own; with a producer, in its transaction, and "
        "sequence is how many it wrote to these partitions before"
    )
    messages = (ProduceRequest,)
    version = 11
    options = (
        number("producer", "producer_id", str(NO_PRODUCER_ID)),
        PRODUCER_EPOCH,
        number("sequence", "base_sequence", "0"),
    )
    by_member = False
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        producer = values if values["producer_id"] != NO_PRODUCER_ID else {}
        topics = tuple(
            TopicProduceData(
                name=topic,
                partition_data=tuple(
                    PartitionProduceData(index=each.partition, records=_batch(each.offset, scope.now, producer))
                    for each in entries
                ),
            )
            for topic, entries in read_offsets(rest).items()
        )
        transactional_id = TRANSACTIONAL_ID if producer else None
        return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=topics)

    def values(self, request: ProduceRequest, version: int) -> dict[str, Any]:
        headers = [_header(bytes(each.records or b"")) for topic in request.topic_data for each in topic.partition_data]
        found = {
            (header.producer_id, header.producer_epoch, header.base_sequence)
            if header.is_transactional
            else (NO_PRODUCER_ID, 0, 0)
            for header in headers
        }
        if len(found) != 1:
            raise NotExpressible("batches of several transactions, or with several sequences")
        return dict(zip(("producer_id", "producer_epoch", "base_sequence"), found.pop(), strict=True))

    def write_rest(self, request: ProduceRequest, version: int, scope: Scope) -> list[str]:
        name_of = topic_names(scope)
        return [
            write_offset(
                write_word(topic.name) or name_of(topic.topic_id), each.index, _count(bytes(each.records or b"")), None
            )
            for topic in request.topic_data
            for each in topic.partition_data
        ]


def _batch(count: int, now: int, producer: dict[str, int]) -> bytes:
    """So many records with short values, in the transaction of a producer if there is one."""
    if not 0 < count <= _MOST_RECORDS:
        raise BadWord(f"expected 1 to {_MOST_RECORDS} records, not {count}")
    batch = BatchBuilder(now)
    for offset in range(count):
        batch.append(encode_record(0, offset, None, b"%d" % offset), now)
    return batch.seal(CompressionType.NONE, **producer, is_transactional=bool(producer))


def _count(records: bytes) -> int:
    """The number of records in a batch. Raises :class:`NotExpressible` where it is no plain one."""
    count = _header(records).records_count
    if not 0 < count <= _MOST_RECORDS:
        raise NotExpressible(f"a batch of {count} records")
    return count


def _header(records: bytes) -> BatchHeader:
    """The header of the one batch. Raises :class:`NotExpressible` where there is another, or none."""
    try:
        header = parse_header(records)
    except (ValueError, struct.error):
        raise NotExpressible("records that are no batch") from None
    if header.is_control or size_at(records) != len(records):
        raise NotExpressible("control records, or several batches")
    return header


class ConfigsCommand(RequestCommand):
    """An IncrementalAlterConfigs of one group."""

    verb = "configs"
    usage = "configs KEY=VALUE ... KEY ..."
    does = "change settings of the group; a key alone sets the broker's default again"
    messages = (IncrementalAlterConfigsRequest,)
    version = 1
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        if not rest:
            raise BadWord(f"expected {self.usage}")
        configs = tuple(
            IncrementallyAlterableConfig(
                name=key,
                config_operation=_SET if equals else _DELETE,
                value=value if equals else None,
            )
            for key, equals, value in (word.partition("=") for word in rest)
        )
        resource = IncrementalAlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=scope.group_id, configs=configs
        )
        return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

    def group_id(self, request: Any, version: int) -> str | None:
        if len(request.resources) != 1 or request.resources[0].resource_type != GROUP_RESOURCE:
            # A transcript has no settings of topics, and those of brokers do not change.
            raise NotExpressible
        group_id: str = request.resources[0].resource_name
        return group_id

    def write_rest(self, request: IncrementalAlterConfigsRequest, version: int, scope: Scope) -> list[str]:
        configs = request.resources[0].configs
        if request.validate_only or any(each.config_operation not in (_SET, _DELETE) for each in configs):
            raise NotExpressible("settings that are only validated, or lists that are changed")
        return [
            f"{write_word(each.name)}={write_word(each.value, also='=,+:')}"
            if each.config_operation == _SET
            else write_word(each.name)
            for each in configs
        ]


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
