"""What these tests add to the driver of transcripts, and the node that most of them begin with."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.journal.events.base import Event
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition
from rejoin.transcript.driver import START, NodeDriver, NodeLogs

PARTITION = offsets_partition(0)
GROUP = "g"
TOPIC = "t"
_LENGTH_OF_KAFKAS = 22


def uuid_in(text: str) -> str:
    """A UUID as a node draws it, in groups of hexadecimal digits; ``text`` may be in Kafka's form of 22 characters."""
    is_kafkas = len(text) == _LENGTH_OF_KAFKAS
    return str(UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))) if is_kafkas else text


class Driver(NodeDriver):
    """The driver of transcripts, which keeps replies and events. Appends end at once, unless ``logs`` holds them."""

    def __init__(self, node: Node, now: Millis = START, logs: NodeLogs | None = None) -> None:
        super().__init__(node, NodeLogs() if logs is None else logs, self, now)
        self.replies: dict[Token, Response] = {}
        self.events: list[Event] = []

    def receive(self, token: Token, request: Request, version: int, *, principal: str = "User:ANONYMOUS") -> None:
        """Hand in a request of a client named ``client``."""
        self.request(token, request, Context(version, "client", "/127.0.0.1", principal))

    def elapse(self, length_ms: Millis) -> None:
        """Let time pass, with each timer at its own time."""
        until = self.now + length_ms
        while (due := self.next_deadline()) is not None and due <= until:
            self.fire()
        self.now = until

    def on_reply(self, token: Token, response: Response) -> None:
        assert token not in self.replies, "a request is answered once"
        self.replies[token] = response

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    @property
    def log(self) -> list[Record]:
        """The log of offsets partition 0."""
        return self.logs.of(PARTITION).records

    # --- looking inside, for what no client sees

    def shard(self) -> GroupsShard:
        """The groups of offsets partition 0, as they are in memory."""
        return self.node._groups.by_partition[PARTITION].machine

    def emitted(self, kind: type[Event]) -> list[Any]:
        """The events of one kind, so far."""
        return [event for event in self.events if isinstance(event, kind)]


class DrivenNode(Driver):
    """One node with one offsets partition, number 0, and one topic ``t`` of one partition."""

    def __init__(
        self,
        *,
        leads: bool = True,
        knows_cluster: bool = True,
        logs: NodeLogs | None = None,
        topics_logged: bool = False,
        file_users: FileUsers = NO_USERS,
        **settings: Any,
    ) -> None:
        self.ids = 0
        self.requests = 0
        # Most tests are about groups: their transactions have no coordinator.
        usual = {"offsets_topic_num_partitions": 1, "transaction_partition_verification_enable": False}
        given = Settings.model_validate(usual | settings)
        super().__init__(Node(given, self._new_id, topics_logged=topics_logged, file_users=file_users), logs=logs)
        if knows_cluster:
            self.see_cluster()
            self.ask(CreateTopicsRequest(topics=(topic(TOPIC, 1),)), 7, principal="User:setup")
        if leads:
            self.elect()

    def _new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032x}"

    def send(self, request: Request, version: int, *, principal: str = "User:ANONYMOUS") -> int:
        """Send a request, which must be one of this version; returns the number under which it is answered."""
        request.check_version(version)
        self.requests += 1
        self.receive(self.requests, request, version, principal=principal)
        return self.requests

    def ask(self, request: Request, version: int, *, principal: str = "User:ANONYMOUS") -> Any:
        """The response, or none when the request is parked."""
        return self.replies.get(self.send(request, version, principal=principal))

    def resign(self, partition: TopicPartition = PARTITION) -> None:
        self.logs.pending_appends.clear()
        super().resign(partition)

    def elect(self, partition: TopicPartition = PARTITION) -> None:
        super().elect(partition)

    @property
    def group(self) -> ClassicGroup | None:
        return self.node._groups.classic_group(GROUP)

    @property
    def offsets(self) -> GroupOffsets:
        """What the group has committed."""
        return self.node._groups.offsets(GROUP) or GroupOffsets()

    # --- what most tests begin with

    def joins(self, request: JoinGroupRequest, version: int = 9) -> str:
        """Join, with the id that is handed out if need be; returns the member id."""
        number = self.send(request, version)
        response = self.replies.get(number)
        if isinstance(response, JoinGroupResponse) and response.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.send(request.model_copy(update={"member_id": response.member_id}), version)
            return response.member_id
        assert self.group is not None
        return next(reversed(self.group.members))


def topic(name: str, partitions: int, **more: Any) -> CreatableTopic:
    """A topic to create."""
    given: dict[str, Any] = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": (),
        "configs": (),
    }
    return CreatableTopic(**(given | more))


def protocols(*names: str, topics: tuple[str, ...] = (TOPIC,)) -> tuple[JoinGroupRequestProtocol, ...]:
    """Assignors with the same subscription each."""
    metadata = encode_subscription(Subscription(topics=topics))
    return tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names)


def join(version: int = 9, **given: Any) -> JoinGroupRequest:
    """A JoinGroup of a consumer with the assignor ``range``."""
    usual: dict[str, Any] = {
        "group_id": GROUP,
        "session_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": protocols("range"),
    }
    if version >= 1:
        usual["rebalance_timeout_ms"] = 60_000
    return JoinGroupRequest(**(usual | given))


def commit(**given: Any) -> OffsetCommitRequest:
    """A commit of offset 5 for ``t-0``, from outside the group unless ``given`` says otherwise."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    usual: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": "",
        "topics": (OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
    }
    return OffsetCommitRequest(**(usual | given))
