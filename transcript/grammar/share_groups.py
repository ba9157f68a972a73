"""The commands that are requests of share groups (KIP-932). Topics are written by name, not by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rejoin.protocol.message import Request
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch, AcknowledgeType
from rejoin.protocol.messages.share.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from rejoin.protocol.messages.share.share_fetch import (
    ForgottenShareTopic,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from rejoin.protocol.messages.share.share_group_describe import ShareGroupDescribeRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.protocol.messages.share.share_group_offsets import (
    AlteredOffsetsRequestPartition,
    AlteredOffsetsRequestTopic,
    AlterShareGroupOffsetsRequest,
    DeletedOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DescribedOffsetsRequestGroup,
    DescribedOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
)
from rejoin.transcript.grammar.base import (
    Option,
    RequestCommand,
    Scope,
    always,
    number,
    plain,
    read_flag,
    version_option,
    write_flag,
)
from rejoin.transcript.grammar.consumer_groups import EPOCH, MEMBER_ID, NAMES, topic_names
from rejoin.transcript.grammar.groups import write_group_ids
from rejoin.transcript.grammar.words import (
    BadWord,
    NotExpressible,
    read_nullable,
    read_number,
    read_offsets,
    read_partitions,
    write_offset,
    write_word,
)
from rejoin.transcript.members import MemberContext

_MOST: Final = 2**31 - 1
_FORGET: Final = "forget="
_MODES: Final = ("batch", "records")
"""Words for ``shareAcquireMode``, by its number."""
_TYPES: Final = {each.name.lower(): int(each) for each in AcknowledgeType}
_TYPE_WORDS: Final = {value: word for word, value in _TYPES.items()}


class ShareHeartbeatCommand(RequestCommand):
    """A ShareGroupHeartbeat."""

    verb = "share-heartbeat"
    usage = "NAME share-heartbeat [epoch=N] [v=1] [names=t+u] [rack=R] [id=ID]"
    does = (
        "a ShareGroupHeartbeat with the member's epoch, 0 to join, -1 to leave; the id is the member's name at first; "
        "names=none is an empty list"
    )
    messages = (ShareGroupHeartbeatRequest,)
    version = 1
    options = (
        MEMBER_ID,
        EPOCH,
        version_option(1),
        NAMES,
        Option("rack", "rack_id", read_nullable, plain, always("")),
    )


# --- sessions


def _read_mode(text: str) -> int:
    if text in _MODES:
        return _MODES.index(text)
    if not text.lstrip("-").isdecimal():
        raise BadWord(f"expected {', '.join(_MODES)}, or the number of another mode, not {text!r}")
    return read_number(text)


def _write_mode(mode: int, _: MemberContext) -> str:
    return _MODES[mode] if 0 <= mode < len(_MODES) else str(mode)


_SESSION_ID: Final = Option("id", "member_id", str, plain, lambda member: member.member_id or member.name)
_SESSION_EPOCH: Final = Option(
    "epoch", "share_session_epoch", read_number, plain, lambda member: str(member.session_epoch)
)
_RENEWS: Final = Option("renew", "is_renew_ack", read_flag, write_flag, always("no"), since=2)


class _SessionCommand(RequestCommand):
    """A request within a member's share session on the leader of the partitions."""

    options_last = True

    def write(self, request: Any, version: int, scope: Scope) -> list[str]:
        if not request.group_id or not request.member_id:
            raise NotExpressible("a share session without a group or a member")
        return super().write(request, version, scope)


class ShareFetchCommand(_SessionCommand):
    """A ShareFetch, with acknowledgements of records that were acquired before."""

    verb = "share-fetch"
    usage = (
        "NAME share-fetch [t:0 u:1=0-4/accept,5/release ...] [forget=t:0,1+u:2] [epoch=N] [records=N] [batch=N] "
        "[wait=MS] [min=BYTES] [bytes=N] [mode=batch|records] [renew=yes|no] [v=2] [id=ID]"
    )
    does = (
        "a ShareFetch with the epoch of the member's share session: 0 opens one with these partitions, later ones add "
        "to them, -1 closes it; 0-4/accept acknowledges records as accept, release, reject, renew or gap, and "
        "0-2/accept+gap+reject each of them"
    )
    messages = (ShareFetchRequest,)
    version = 2
    options = (
        _SESSION_ID,
        _SESSION_EPOCH,
        version_option(2),
        number("records", "max_records", "500"),
        number("batch", "batch_size", "500"),
        number("wait", "max_wait_ms", "500"),
        number("min", "min_bytes", "1"),
        number("bytes", "max_bytes", str(_MOST)),
        Option("mode", "share_acquire_mode", _read_mode, _write_mode, always("batch"), since=2),
        _RENEWS,
    )

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        forgotten = [word.removeprefix(_FORGET) for word in rest if word.startswith(_FORGET)]
        id_of = _topic_ids(scope)
        topics = tuple(
            ShareFetchTopic(
                topic_id=id_of(topic),
                partitions=tuple(
                    ShareFetchPartition(partition_index=index, acknowledgement_batches=runs)
                    for index, runs in partitions.items()
                ),
            )
            for topic, partitions in _read_runs(word for word in rest if not word.startswith(_FORGET)).items()
        )
        left = tuple(
            ForgottenShareTopic(topic_id=id_of(topic), partitions=tuple(indexes))
            for text in forgotten[-1:]
            for topic, indexes in read_partitions(text).items()
        )
        return ShareFetchRequest(group_id=scope.group_id, **_given(values), topics=topics, forgotten_topics_data=left)

    def write_rest(self, request: ShareFetchRequest, version: int, scope: Scope) -> list[str]:
        name_of = topic_names(scope)
        left = [
            f"{name_of(each.topic_id)}:{','.join(map(str, each.partitions))}" for each in request.forgotten_topics_data
        ]
        return [*_written_runs(request.topics, name_of), *([_FORGET + "+".join(left)] if left else [])]


class AcknowledgeCommand(_SessionCommand):
    """A ShareAcknowledge."""

    verb = "acknowledge"
    usage = "NAME acknowledge [t:0=0-4/accept,5/release ...] [epoch=N] [renew=yes|no] [v=2] [id=ID]"
    does = "a ShareAcknowledge; epoch=-1 closes the member's share session, too"
    messages = (ShareAcknowledgeRequest,)
    version = 2
    options = (_SESSION_ID, _SESSION_EPOCH, version_option(2), _RENEWS)

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        id_of = _topic_ids(scope)
        topics = tuple(
            ShareAcknowledgeTopic(
                topic_id=id_of(topic),
                partitions=tuple(
                    ShareAcknowledgePartition(partition_index=index, acknowledgement_batches=runs)
                    for index, runs in partitions.items()
                ),
            )
            for topic, partitions in _read_runs(rest).items()
        )
        return ShareAcknowledgeRequest(group_id=scope.group_id, **_given(values), topics=topics)

    def write_rest(self, request: ShareAcknowledgeRequest, version: int, scope: Scope) -> list[str]:
        return _written_runs(request.topics, topic_names(scope))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Fields of this version; the others have their defaults."""
    return {name: value for name, value in values.items() if value is not None}


def _topic_ids(scope: Scope) -> Callable[[str], str]:
    def id_of(topic: str) -> str:
        if topic not in scope.topic_ids:
            raise BadWord(f"there is no topic {topic!r}; expected {', '.join(scope.topic_ids) or 'none'}")
        return scope.topic_ids[topic]

    return id_of


def _read_runs(words: Iterable[str]) -> dict[str, dict[int, tuple[AcknowledgementBatch, ...]]]:
    """Partitions by topic, each with its acknowledgements."""
    topics: dict[str, dict[int, tuple[AcknowledgementBatch, ...]]] = {}
    for word in words:
        where, equals, runs = word.partition("=")
        topic, colon, index = where.rpartition(":")
        if not colon or not index.isdecimal() or bool(equals) != bool(runs):
            raise BadWord(f"expected TOPIC:PARTITION, or TOPIC:PARTITION=0-4/accept,5/release, not {word!r}")
        read = tuple(_read_run(run) for run in runs.split(",")) if runs else ()
        topics.setdefault(topic, {})[int(index)] = read
    return topics


def _read_run(text: str) -> AcknowledgementBatch:
    offsets, _, types = text.partition("/")
    first, dash, last = offsets.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise BadWord(f"expected offsets with how they are acknowledged, as 0-4/accept, not {text!r}")
    return AcknowledgementBatch(
        first_offset=int(first),
        last_offset=int(last or first),
        acknowledge_types=tuple(_read_type(word) for word in types.split("+")) if types else (),
    )


def _read_type(word: str) -> int:
    if word in _TYPES:
        return _TYPES[word]
    if not word.lstrip("-").isdecimal():
        raise BadWord(f"expected {', '.join(_TYPES)}, or the number of another type, not {word!r}")
    return read_number(word)


def _written_runs(topics: Sequence[Any], name_of: Callable[[str], str]) -> list[str]:
    words = []
    for topic in topics:
        for partition in topic.partitions:
            runs = ",".join(_written_run(run) for run in partition.acknowledgement_batches)
            where = f"{name_of(topic.topic_id)}:{partition.partition_index}"
            words.append(f"{where}={runs}" if runs else where)
    if len({word.partition("=")[0] for word in words}) < len(words):
        raise NotExpressible("a partition that stands in the request twice")
    return words


def _written_run(run: AcknowledgementBatch) -> str:
    if min(run.first_offset, run.last_offset) < 0:
        raise NotExpressible("acknowledgements of negative offsets")
    offsets = str(run.first_offset) if run.first_offset == run.last_offset else f"{run.first_offset}-{run.last_offset}"
    types = "+".join(_TYPE_WORDS.get(each, str(each)) for each in run.acknowledge_types)
    return f"{offsets}/{types}" if types else offsets


# --- offsets


class DescribeShareGroupsCommand(RequestCommand):
    """A ShareGroupDescribe; of the current group unless others are named."""

    verb = "describe-share-groups"
    usage = "describe-share-groups [v=1] [ID ...]"
    does = "describe share groups"
    messages = (ShareGroupDescribeRequest,)
    version = 1
    options = (version_option(1),)
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        groups = tuple(rest) or (scope.group_id,)
        return ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=False)

    def write_rest(self, request: ShareGroupDescribeRequest, version: int, scope: Scope) -> list[str]:
        return write_group_ids(request.group_ids)


class DescribeShareOffsetsCommand(RequestCommand):
    """A DescribeShareGroupOffsets of the current group."""

    verb = "share-offsets"
    usage = "share-offsets [t:0 ...] [v=1]"
    does = "read the start offsets and lags of share-partitions; of all that are initialised unless some are named"
    messages = (DescribeShareGroupOffsetsRequest,)
    version = 1
    options = (version_option(1),)
    by_member = False
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        topics = tuple(
            DescribedOffsetsRequestTopic(topic_name=topic, partitions=tuple(each.partition for each in entries))
            for topic, entries in read_offsets(rest).items()
        )
        group = DescribedOffsetsRequestGroup(group_id=scope.group_id, topics=topics or None)
        return DescribeShareGroupOffsetsRequest(groups=(group,))

    def group_id(self, request: Any, version: int) -> str | None:
        if len(request.groups) != 1:
            raise NotExpressible("share groups at once, none or several")
        group_id: str = request.groups[0].group_id
        return group_id

    def write_rest(self, request: DescribeShareGroupOffsetsRequest, version: int, scope: Scope) -> list[str]:
        topics = request.groups[0].topics
        if topics == ():
            raise NotExpressible("an empty list of topics")
        return [f"{write_word(topic.topic_name)}:{index}" for topic in topics or () for index in topic.partitions]


class AlterShareOffsetsCommand(RequestCommand):
    """An AlterShareGroupOffsets."""

    verb = "alter-share-offsets"
    usage = "alter-share-offsets t:0=5 ..."
    does = "let a share group without members begin elsewhere"
    messages = (AlterShareGroupOffsetsRequest,)
    version = 0
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        topics = tuple(
            AlteredOffsetsRequestTopic(
                topic_name=topic,
                partitions=tuple(
                    AlteredOffsetsRequestPartition(partition_index=each.partition, start_offset=each.offset)
                    for each in entries
                ),
            )
            for topic, entries in read_offsets(rest).items()
        )
        return AlterShareGroupOffsetsRequest(group_id=scope.group_id, topics=topics)

    def write_rest(self, request: AlterShareGroupOffsetsRequest, version: int, scope: Scope) -> list[str]:
        return [
            write_offset(topic.topic_name, each.partition_index, each.start_offset, None)
            for topic in request.topics
            for each in topic.partitions
        ]


class DeleteShareOffsetsCommand(RequestCommand):
    """A DeleteShareGroupOffsets."""

    verb = "delete-share-offsets"
    usage = "delete-share-offsets TOPIC ..."
    does = "delete what a share group without members keeps of topics"
    messages = (DeleteShareGroupOffsetsRequest,)
    version = 0
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        topics = tuple(DeletedOffsetsRequestTopic(topic_name=name) for name in rest)
        return DeleteShareGroupOffsetsRequest(group_id=scope.group_id, topics=topics)

    def write_rest(self, request: DeleteShareGroupOffsetsRequest, version: int, scope: Scope) -> list[str]:
        return [write_word(topic.topic_name) for topic in request.topics]
