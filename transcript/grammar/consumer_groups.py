"""The commands that are requests of the consumer protocol (KIP-848). Topics are written by name, not by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    OwnedTopicPartitions,
)
from rejoin.transcript.grammar.base import Option, RequestCommand, Scope, always, plain, stays, version_option
from rejoin.transcript.grammar.groups import write_group_ids
from rejoin.transcript.grammar.words import (
    BadWord,
    NotExpressible,
    read_nullable,
    read_number,
    read_partitions,
    write_word,
)
from rejoin.transcript.members import MemberContext

_OWNS: Final = "owns="
JOIN_EPOCH: Final = 0
USUAL_TIMEOUT_MS: Final = 60_000


def _read_topics(text: str) -> tuple[str, ...] | None:
    return () if text == "none" else tuple(text.split("+")) if text else None


def _write_topics(topics: Iterable[str] | None, _: MemberContext) -> str:
    return "" if topics is None else "+".join(map(write_word, topics)) or "none"


def _read_regex(text: str) -> str | None:
    return "" if text == "none" else read_nullable(text)


def _write_regex(regex: str | None, _: MemberContext) -> str:
    return "none" if regex == "" else plain(regex, _)


def read_timeout(text: str) -> int | None:
    """The timeout; none where it is the usual one of the epoch."""
    return read_number(text) if text else None


def _epoch(member: MemberContext) -> int:
    """A member's epoch; it joins if it has left, was fenced, or was a member of a classic group."""
    return member.generation if member.is_modern and member.generation > JOIN_EPOCH else JOIN_EPOCH


MEMBER_ID: Final = Option("id", "member_id", str, plain, lambda member: member.member_id or member.name)
EPOCH: Final = Option("epoch", "member_epoch", read_number, plain, lambda member: str(_epoch(member)))
NAMES: Final = Option("names", "subscribed_topic_names", _read_topics, _write_topics, always(""))


class HeartbeatCommand(RequestCommand):
    """A ConsumerGroupHeartbeat. What is not said is null, but for what every member says when it joins."""

    verb = "heartbeat"
    usage = (
        "NAME heartbeat [epoch=N] [v=1] [names=t+u] [regex=R] [assignor=A] [owns=t:0,1+u:2] [timeout=MS] [instance=I] "
        "[rack=R] [id=ID]"
    )
    does = (
        "a ConsumerGroupHeartbeat with the member's epoch, 0 to join, -1 or -2 to leave; the id is the "
        "member's name at first; names=none is an empty list, regex=none an empty expression, owns=- no partition; "
        "unless given, a member that joins owns nothing and has 60000 ms to give up partitions"
    )
    messages = (ConsumerGroupHeartbeatRequest,)
    version = 1
    options = (
        MEMBER_ID,
        EPOCH,
        version_option(1),
        NAMES,
        Option("regex", "subscribed_topic_regex", _read_regex, _write_regex, always(""), since=1),
        Option("assignor", "server_assignor", read_nullable, plain, always("")),
        Option("timeout", "rebalance_timeout_ms", read_timeout, plain, always("")),
        stays("instance", "instance_id", "", read_nullable),
        Option("rack", "rack_id", read_nullable, plain, always("")),
    )
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        joins = values["member_epoch"] == JOIN_EPOCH
        owned = [word.removeprefix(_OWNS) for word in rest if word.startswith(_OWNS)]
        self.expect_no([word for word in rest if not word.startswith(_OWNS)])
        if values["rebalance_timeout_ms"] is None:
            values["rebalance_timeout_ms"] = USUAL_TIMEOUT_MS if joins else -1
        text = owned[-1] if owned else "-" if joins else "null"
        return ConsumerGroupHeartbeatRequest(
            group_id=scope.group_id, **values, topic_partitions=_read_owned(text, scope)
        )

    def values(self, request: ConsumerGroupHeartbeatRequest, version: int) -> dict[str, Any]:
        joins = request.member_epoch == JOIN_EPOCH
        values = super().values(request, version)
        if request.rebalance_timeout_ms == (USUAL_TIMEOUT_MS if joins else -1):
            values["rebalance_timeout_ms"] = None
        return values

    def write_rest(self, request: ConsumerGroupHeartbeatRequest, version: int, scope: Scope) -> list[str]:
        usual = "-" if request.member_epoch == JOIN_EPOCH else "null"
        text = _written_owned(request.topic_partitions, scope)
        return [] if text == usual else [f"{_OWNS}{text}"]


def _read_owned(text: str, scope: Scope) -> tuple[OwnedTopicPartitions, ...] | None:
    if text == "null":
        return None
    topics = read_partitions(text)
    unknown = [topic for topic in topics if topic not in scope.topic_ids]
    if unknown:
        raise BadWord(f"owns=: there is no topic {unknown[0]!r}; expected {', '.join(scope.topic_ids) or 'none'}")
    return tuple(
        OwnedTopicPartitions(topic_id=scope.topic_ids[topic], partitions=tuple(indexes))
        for topic, indexes in topics.items()
    )


def _written_owned(owned: tuple[OwnedTopicPartitions, ...] | None, scope: Scope) -> str:
    if owned is None:
        return "null"
    name_of = topic_names(scope)
    return "+".join(f"{name_of(each.topic_id)}:{','.join(map(str, each.partitions))}" for each in owned) or "-"


def topic_names(scope: Scope) -> Callable[[str], str]:
    """The name of a topic by its id. Raises :class:`NotExpressible` where the transcript has no such topic."""
    names = {topic_id: name for name, topic_id in scope.topic_ids.items()}

    def name_of(topic_id: str) -> str:
        if topic_id not in names:
            raise NotExpressible(f"no topic with the id {topic_id} was created")
        return write_word(names[topic_id])

    return name_of


class DescribeConsumersCommand(RequestCommand):
    """A ConsumerGroupDescribe; of the current group unless others are named."""

    verb = "describe-consumers"
    usage = "describe-consumers [v=1] [ID ...]"
    does = "describe groups of the consumer protocol"
    messages = (ConsumerGroupDescribeRequest,)
    version = 1
    options = (version_option(1),)
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        groups = tuple(rest) or (scope.group_id,)
        return ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False)

    def write_rest(self, request: ConsumerGroupDescribeRequest, version: int, scope: Scope) -> list[str]:
        return write_group_ids(request.group_ids)
