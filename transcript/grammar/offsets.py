"""The commands that are requests about offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rejoin.protocol.message import Request
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import TopicPartition
from rejoin.transcript.grammar.base import (
    ID,
    INSTANCE,
    Option,
    RequestCommand,
    Scope,
    number,
    plain,
    version_option,
)
from rejoin.transcript.grammar.consumer_groups import topic_names
from rejoin.transcript.grammar.words import BadWord, NotExpressible, read_number, read_offsets, write_offset, write_word

FIRST_COMMIT_BY_ID = 10
FIRST_TXN_COMMIT_BY_ID = 6
_COMMIT, _ABORT = _RESULTS = ("commit", "abort")
COMMIT_GENERATION = Option(
    "generation", "generation_id_or_member_epoch", read_number, plain, lambda member: str(member.generation)
)

TRANSACTIONAL_ID = "transfer"
"""The id of every transaction: transcripts have no transaction coordinator, and only producer ids count."""
PRODUCER_EPOCH = number("epoch", "producer_epoch", "0")


class CommitCommand(RequestCommand):
    """An OffsetCommit."""

    verb = "commit"
    usage = "NAME commit t:0=5 t:1=7/10 ... [id=ID] [generation=N] [v=9] [retention=MS] [timestamp=MS] [instance=I]"
    does = "commit offsets; t:0=5/10 has 10 characters of metadata; admin is in no group and has no generation"
    messages = (OffsetCommitRequest,)
    version = 9
    options = (
        ID,
        COMMIT_GENERATION,
        version_option(9),
        number("retention", "retention_time_ms", "-1"),
        number("timestamp", "commit_timestamp", "-1"),
        INSTANCE,
    )
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        timestamp = values.pop("commit_timestamp")
        topics = tuple(
            OffsetCommitRequestTopic(
                **_topic(topic, scope, by_id=version >= FIRST_COMMIT_BY_ID),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=each.partition,
                        committed_offset=each.offset,
                        commit_timestamp=timestamp,
                        committed_metadata=each.metadata,
                    )
                    for each in entries
                ),
            )
            for topic, entries in read_offsets(rest).items()
        )
        return OffsetCommitRequest(group_id=scope.group_id, **values, topics=topics)

    def values(self, request: OffsetCommitRequest, version: int) -> dict[str, Any]:
        timestamps = {part.commit_timestamp for topic in request.topics for part in topic.partitions}
        if len(timestamps) > 1:
            raise NotExpressible("offsets with several timestamps")
        fields = ("member_id", "generation_id_or_member_epoch", "retention_time_ms", "group_instance_id")
        return {name: getattr(request, name) for name in fields} | {"commit_timestamp": min(timestamps, default=-1)}

    def write_rest(self, request: OffsetCommitRequest, version: int, scope: Scope) -> list[str]:
        return _written_offsets(request, scope)


class TxnCommand(RequestCommand):
    """A TxnOffsetCommit."""

    verb = "txn"
    usage = "NAME txn t:0=5 ... [producer=7] [epoch=0] [id=ID] [generation=N] [v=4] [instance=I]"
    does = "commit within a transaction"
    messages = (TxnOffsetCommitRequest,)
    version = 4
    options = (
        number("producer", "producer_id", "7"),
        PRODUCER_EPOCH,
        ID,
        COMMIT_GENERATION,
        version_option(4),
        INSTANCE,
    )
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        topics = tuple(
            TxnOffsetCommitRequestTopic(
                **_topic(topic, scope, by_id=version >= FIRST_TXN_COMMIT_BY_ID),
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=each.partition, committed_offset=each.offset, committed_metadata=each.metadata
                    )
                    for each in entries
                ),
            )
            for topic, entries in read_offsets(rest).items()
        )
        return TxnOffsetCommitRequest(
            transactional_id=TRANSACTIONAL_ID, group_id=scope.group_id, **values, topics=topics
        )

    def write_rest(self, request: TxnOffsetCommitRequest, version: int, scope: Scope) -> list[str]:
        return _written_offsets(request, scope)


def _topic(name: str, scope: Scope, *, by_id: bool) -> dict[str, str]:
    """A topic as a request names it."""
    if not by_id:
        return {"name": name}
    if name not in scope.topic_ids:
        raise BadWord(f"there is no topic {name!r} to be named by its id")
    return {"topic_id": scope.topic_ids[name]}


def _written_offsets(request: OffsetCommitRequest | TxnOffsetCommitRequest, scope: Scope) -> list[str]:
    name_of = topic_names(scope)
    return [
        write_offset(
            topic.name or name_of(topic.topic_id), part.partition_index, part.committed_offset, part.committed_metadata
        )
        for topic in request.topics
        for part in topic.partitions
    ]


class EndCommand(RequestCommand):
    """The markers of a transaction, for the group's offsets partition or for partitions that records went to."""

    verb = "end"
    usage = "end PRODUCER commit|abort [t:0 ...] [epoch=0]"
    does = "end a transaction: that of offsets of the group, or that of records in these partitions"
    messages = (WriteTxnMarkersRequest,)
    version = 1
    options = (PRODUCER_EPOCH,)
    by_member = False
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        if len(rest) < 2 or rest[1] not in _RESULTS:
            raise BadWord(f"expected {self.usage}")
        topics = tuple(
            WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(each.partition for each in entries))
            for topic, entries in read_offsets(rest[2:]).items()
        )
        of_group = WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=(scope.offsets_partition,))
        marker = WritableTxnMarker(
            producer_id=read_number(rest[0]),
            **values,
            transaction_result=rest[1] == _COMMIT,
            topics=topics or (of_group,),
            coordinator_epoch=0,
        )
        return WriteTxnMarkersRequest(markers=(marker,))

    def values(self, request: WriteTxnMarkersRequest, version: int) -> dict[str, Any]:
        return {PRODUCER_EPOCH.field: self._marker(request).producer_epoch}

    def write_rest(self, request: WriteTxnMarkersRequest, version: int, scope: Scope) -> list[str]:
        marker = self._marker(request)
        partitions = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
        return end_words(marker.producer_id, partitions, committed=marker.transaction_result)

    @staticmethod
    def _marker(request: WriteTxnMarkersRequest) -> WritableTxnMarker:
        """The one marker, for partitions with records."""
        if len(request.markers) != 1 or not request.markers[0].topics:
            raise NotExpressible("markers of several transactions at once, or of none")
        if any(topic.name == OFFSETS_TOPIC for topic in request.markers[0].topics):
            raise NotExpressible("markers are for offsets partitions, and a transcript's are for a group's own")
        return request.markers[0]


def end_words(producer_id: int, partitions: Iterable[TopicPartition], *, committed: bool) -> list[str]:
    """The words behind ``end``; without partitions, the offsets of the group are meant."""
    where = [f"{write_word(each.topic)}:{each.partition}" for each in partitions]
    return [str(producer_id), _COMMIT if committed else _ABORT, *where]


class FetchCommand(RequestCommand):
    """An OffsetFetch of one group."""

    verb = "fetch"
    usage = "fetch [stable] [all] t:0 ..."
    does = "read offsets"
    messages = (OffsetFetchRequest,)
    version = 9
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        wanted = read_offsets(word for word in rest if word not in ("stable", "all"))
        topics = tuple(
            OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(each.partition for each in entries))
            for topic, entries in wanted.items()
        )
        group = OffsetFetchRequestGroup(group_id=scope.group_id, topics=None if "all" in rest else topics)
        return OffsetFetchRequest(groups=(group,), require_stable="stable" in rest)

    def write_rest(self, request: OffsetFetchRequest, version: int, scope: Scope) -> list[str]:
        topics: Any = self.asked(request, version).topics
        name_of = topic_names(scope)
        words = [*(["stable"] if request.require_stable else []), *(["all"] if topics is None else [])]
        return words + [
            f"{topic.name or name_of(topic.topic_id)}:{index}"
            for topic in topics or ()
            for index in topic.partition_indexes
        ]

    def group_id(self, request: OffsetFetchRequest, version: int) -> str | None:
        group_id: str = self.asked(request, version).group_id
        return group_id

    @staticmethod
    def asked(request: OffsetFetchRequest, version: int) -> Any:
        """Partitions asked for, of the one group. Before v8 they stand at the top."""
        if version >= 8 and len(request.groups) != 1:
            raise NotExpressible("offsets of several groups at once")
        return request.groups[0] if version >= 8 else request


class ForgetCommand(RequestCommand):
    """An OffsetDelete."""

    verb = "forget"
    usage = "forget t:0 ..."
    does = "delete offsets"
    messages = (OffsetDeleteRequest,)
    version = 0
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=each.partition) for each in entries),
            )
            for topic, entries in read_offsets(rest).items()
        )
        return OffsetDeleteRequest(group_id=scope.group_id, topics=topics)

    def write_rest(self, request: OffsetDeleteRequest, version: int, scope: Scope) -> list[str]:
        return [f"{topic.name}:{part.partition_index}" for topic in request.topics for part in topic.partitions]
