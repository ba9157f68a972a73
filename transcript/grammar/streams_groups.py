"""The commands that are requests of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rejoin.protocol.message import Request
from rejoin.protocol.messages.streams.streams_group_describe import StreamsGroupDescribeRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.messages.streams.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from rejoin.protocol.streams.tasks import TaskIds, TaskOffset
from rejoin.protocol.streams.topology import StreamsKeyValue, UserEndpoint
from rejoin.protocol.streams.topology_description import TopologyDescription
from rejoin.transcript.grammar.base import (
    Option,
    RequestCommand,
    Scope,
    always,
    number,
    plain,
    read_flag,
    stays,
    version_option,
    write_flag,
)
from rejoin.transcript.grammar.consumer_groups import EPOCH, JOIN_EPOCH, MEMBER_ID, USUAL_TIMEOUT_MS, read_timeout
from rejoin.transcript.grammar.groups import write_group_ids
from rejoin.transcript.grammar.streams_topology import is_topology_word, read_topology, written_topology
from rejoin.transcript.grammar.words import (
    BadWord,
    NotExpressible,
    read_nullable,
    read_number,
    read_offsets,
    read_partitions,
    write_word,
)
from rejoin.transcript.members import MemberContext

_TASKS: Final[Mapping[str, str]] = {"active": "active_tasks", "standby": "standby_tasks", "warmup": "warmup_tasks"}
_OFFSETS: Final[Mapping[str, str]] = {"offsets": "task_offsets", "ends": "task_end_offsets"}
_NONE: Final = "null"
_TAGS: Final = "tags"
_TOPOLOGY: Final = "topology"


def _read_endpoint(text: str) -> UserEndpoint | None:
    host, _, port = text.rpartition(":")
    return UserEndpoint(host=host, port=read_number(port)) if text else None


def _write_endpoint(endpoint: UserEndpoint | None, _: MemberContext) -> str:
    return "" if endpoint is None else f"{endpoint.host}:{endpoint.port}"


class StreamsHeartbeatCommand(RequestCommand):
    """A StreamsGroupHeartbeat. What is not said is null, but for what every member says when it joins."""

    verb = "streams-heartbeat"
    usage = (
        "NAME streams-heartbeat [epoch=N] [v=1] [0:source=lines 1:changelog=c/3/1/cleanup.policy=compact ...] "
        "[active=0:0,1+1:0] [standby=-] [warmup=-] [offsets=0:1=57+1:0=3] [ends=...] [process=P] [endpoint=HOST:PORT] "
        "[endpoints=N] [tags=KEY:VALUE+...] [timeout=MS] [instance=I] [rack=R] [shutdown=yes] [topology=EPOCH] [id=ID]"
    )
    does = (
        "a StreamsGroupHeartbeat with the member's epoch, 0 to join, -1 or -2 to leave; the id is the member's name at "
        "first; words that begin with a subtopology are the topology: source, regex, sink, repartition and changelog "
        "topics, and copartition=s0+r1; 0:0,1 are tasks of subtopology 0, - none; unless given, a member that joins "
        "has no tasks and 60000 ms to give some up"
    )
    messages = (StreamsGroupHeartbeatRequest,)
    version = 1
    options = (
        MEMBER_ID,
        EPOCH,
        version_option(1),
        Option("process", "process_id", read_nullable, plain, always("")),
        Option("endpoint", "user_endpoint", _read_endpoint, _write_endpoint, always("")),
        number("endpoints", "endpoint_information_epoch", "0"),
        Option("timeout", "rebalance_timeout_ms", read_timeout, plain, always("")),
        stays("instance", "instance_id", "", read_nullable),
        Option("rack", "rack_id", read_nullable, plain, always("")),
        Option("shutdown", "shutdown_application", read_flag, write_flag, always("no")),
    )
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        joins = values["member_epoch"] == JOIN_EPOCH
        if values["rebalance_timeout_ms"] is None:
            values["rebalance_timeout_ms"] = USUAL_TIMEOUT_MS if joins else -1
        words, lists = self._lists(rest)
        for key, field in _TASKS.items():
            values[field] = _read_tasks(lists.get(key, "-" if joins else _NONE))
        for key, field in _OFFSETS.items():
            values[field] = _read_task_offsets(lists.get(key, _NONE))
        values["client_tags"] = _read_tags(lists.get(_TAGS, _NONE))
        parts = [word for word in words if is_topology_word(word)]
        self.expect_no([word for word in words if word not in parts])
        if parts or _TOPOLOGY in lists:
            values["topology"] = read_topology(parts, read_number(lists.get(_TOPOLOGY, "0")))
        return StreamsGroupHeartbeatRequest(group_id=scope.group_id, **values)

    def _lists(self, rest: list[str]) -> tuple[list[str], dict[str, str]]:
        """The words of the topology, and the lists by their keys."""
        words, lists = [], {}
        for word in rest:
            key, equals, value = word.partition("=")
            if equals and key in (*_TASKS, *_OFFSETS, _TAGS, _TOPOLOGY):
                lists[key] = value
            else:
                words.append(word)
        return words, lists

    def values(self, request: StreamsGroupHeartbeatRequest, version: int) -> dict[str, Any]:
        joins = request.member_epoch == JOIN_EPOCH
        values = super().values(request, version)
        if request.rebalance_timeout_ms == (USUAL_TIMEOUT_MS if joins else -1):
            values["rebalance_timeout_ms"] = None
        return values

    def write_rest(self, request: StreamsGroupHeartbeatRequest, version: int, scope: Scope) -> list[str]:
        usual = "-" if request.member_epoch == JOIN_EPOCH else _NONE
        words: list[str] = []
        if request.topology is not None:
            words = written_topology(request.topology)
            if request.topology.epoch or not words:
                words.append(f"{_TOPOLOGY}={request.topology.epoch}")
        for key, field in _TASKS.items():
            text = _written_tasks(getattr(request, field))
            words += [] if text == usual else [f"{key}={text}"]
        for key, field in _OFFSETS.items():
            text = _written_task_offsets(getattr(request, field))
            words += [] if text == _NONE else [f"{key}={text}"]
        tags = _written_tags(request.client_tags)
        return [*words, *([] if tags == _NONE else [f"{_TAGS}={tags}"])]


def _read_tasks(text: str) -> tuple[TaskIds, ...] | None:
    if text == _NONE:
        return None
    return tuple(
        TaskIds(subtopology_id=each, partitions=tuple(partitions)) for each, partitions in read_partitions(text).items()
    )


def _written_tasks(tasks: tuple[TaskIds, ...] | None) -> str:
    if tasks is None:
        return _NONE
    ids = [each.subtopology_id for each in tasks]
    if len(set(ids)) < len(ids) or any(not each.partitions or min(each.partitions) < 0 for each in tasks):
        raise NotExpressible("a subtopology that stands in a list twice, or without tasks")
    return "+".join(f"{write_word(each.subtopology_id)}:{','.join(map(str, each.partitions))}" for each in tasks) or "-"


def _read_task_offsets(text: str) -> tuple[TaskOffset, ...] | None:
    if text == _NONE:
        return None
    return tuple(
        TaskOffset(subtopology_id=subtopology, partition=each.partition, offset=each.offset)
        for word in ([] if text == "-" else text.split("+"))
        for subtopology, offsets in read_offsets([word]).items()
        for each in offsets
    )


def _written_task_offsets(offsets: tuple[TaskOffset, ...] | None) -> str:
    if offsets is None:
        return _NONE
    return "+".join(f"{write_word(each.subtopology_id)}:{each.partition}={each.offset}" for each in offsets) or "-"


def _read_tags(text: str) -> tuple[StreamsKeyValue, ...] | None:
    if text == _NONE:
        return None
    pairs = [] if text == "-" else [word.partition(":") for word in text.split("+")]
    if any(not colon for _, colon, _ in pairs):
        raise BadWord(f"expected tags as KEY:VALUE+KEY:VALUE, or - for none, not {text!r}")
    return tuple(StreamsKeyValue(key=key, value=value) for key, _, value in pairs)


def _written_tags(tags: tuple[StreamsKeyValue, ...] | None) -> str:
    if tags is None:
        return _NONE
    return "+".join(f"{write_word(each.key)}:{write_word(each.value)}" for each in tags) or "-"


class DescribeStreamsCommand(RequestCommand):
    """A StreamsGroupDescribe; of the current group unless others are named."""

    verb = "describe-streams"
    usage = "describe-streams [v=1] [description=yes] [ID ...]"
    does = "describe streams groups; with description=yes, their topologies for people, too"
    messages = (StreamsGroupDescribeRequest,)
    version = 1
    options = (
        version_option(1),
        Option("description", "include_topology_description", read_flag, write_flag, always("no"), since=1),
    )
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        groups = tuple(rest) or (scope.group_id,)
        given = {name: value for name, value in values.items() if value is not None}
        return StreamsGroupDescribeRequest(group_ids=groups, include_authorized_operations=False, **given)

    def write_rest(self, request: StreamsGroupDescribeRequest, version: int, scope: Scope) -> list[str]:
        return write_group_ids(request.group_ids)


class TopologyDescriptionCommand(RequestCommand):
    """A StreamsGroupTopologyDescriptionUpdate without any node: a broker without a plugin looks at none."""

    verb = "describes-topology"
    usage = "NAME describes-topology [epoch=N] [id=ID]"
    does = "send the description of a topology, which is empty, as a broker without a plugin refuses all"
    messages = (StreamsGroupTopologyDescriptionUpdateRequest,)
    version = 0
    options = (MEMBER_ID, number("epoch", "topology_epoch", "0"))

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        self.expect_no(rest)
        nothing = TopologyDescription(subtopologies=(), global_stores=())
        return StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=scope.group_id, **values, topology_description=nothing
        )
