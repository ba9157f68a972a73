"""The one driver of a single consumer's core: a virtual clock, a listener that can raise, and scripted answers.

    bench = Bench(assignors=["range"])
    bench.subscribe("t")
    bench.poll(5_000)
    bench.answer("FindCoordinator")
    bench.take()           # what the consumer did since the last time, in order

Metadata, ends of logs and committed offsets are answered by themselves unless a test wants to do that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rejoin.client.assignors import Assignor, assignor_named
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import (
    CallDone,
    CallListener,
    Cancel,
    CommitDone,
    Effect,
    OffsetsFound,
    PollFailed,
    PollReturned,
    Send,
)
from rejoin.client.core.errors import WakeupError
from rejoin.client.core.inputs import (
    Answered,
    CallbackDone,
    Closed,
    CommitAsked,
    Elapsed,
    Failed,
    Failure,
    Input,
    OffsetAndMetadata,
    Polled,
    Subscribed,
    Unsubscribed,
    Woken,
)
from rejoin.client.core.step_context import LogEnd
from rejoin.journal.events.base import Event
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_partitions, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.find_coordinator import Coordinator, FindCoordinatorResponse
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rejoin.protocol.messages.groups.leave_group import LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rejoin.protocol.registry import BY_NAME, BY_REQUEST, Api
from rejoin.protocol.types import TopicPartition
from tests.client.core.heartbeats import MEMBER_ID, heartbeat_response, shown_heartbeat, topic_id

NONE = ErrorCode.NONE


def tp(*names: str) -> list[TopicPartition]:
    """``tp("t-0", "t-1")``: partitions by their names."""
    return [TopicPartition(name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in names]


def named(partitions: Sequence[tuple[str, int]]) -> str:
    return "[" + " ".join(f"{topic}-{partition}" for topic, partition in partitions) + "]"


class Bench:
    """One consumer and its scripted surroundings. ``topics``: name to number of partitions."""

    def __init__(
        self,
        *,
        assignors: Sequence[str | Assignor] = ("range",),
        topics: Mapping[str, int] | None = None,
        versions: Mapping[str, int] | None = None,
        ends: Mapping[str, int] | None = None,
        committed: Mapping[str, int] | None = None,
        jitter: float = 0.5,
        log_end: LogEnd | None = None,
        **settings: Any,
    ) -> None:
        settings.setdefault("group_id", "g")
        settings.setdefault("client_id", "c")
        self.config = ConsumerConfig(**settings)
        made = [assignor_named(a) if isinstance(a, str) else a for a in assignors]
        spoken: dict[Api, int] = {BY_NAME[name]: version for name, version in (versions or {}).items()}
        self.core = ConsumerCore(self.config, made, lambda: jitter, **self.identity(), versions=spoken, log_end=log_end)
        self.now = 1_000_000
        self.started = self.now
        self.topics = dict(topics if topics is not None else {"t": 2})
        self.ends = dict(ends or {})
        self.committed = dict(committed or {})
        self.racks: dict[int, str | None] = {1: None}
        self.open: list[Send] = []
        self.asked: list[str] = []
        """The API of every request."""
        self.lines: list[str] = []
        self.sent: dict[str, Send] = {}
        self.events: list[Event] = []
        self.returned: list[PollReturned] = []
        self.raised: list[Exception] = []
        self.done: list[Any] = []
        self.listener_raises: dict[str, BaseException] = {}
        self.in_listener: Callable[[str], None] = lambda kind: None
        self.hold_listener = False
        self._later: list[Callable[[], None]] = []
        self.auto: set[str] = {"Metadata", "ListOffsets", "OffsetFetch"}
        """APIs that are answered at once, from ``topics``, ``ends`` and ``committed``."""

    def identity(self) -> dict[str, Any]:
        """Further arguments of the core: what kind of member it is."""
        return {"member_id": MEMBER_ID}

    # -- driving

    def step(self, what: Input) -> None:
        inputs: list[Input] = [what]
        while inputs:
            for effect in self.core.step(inputs.pop(0), self.now):
                inputs += self._apply(effect)

    def _apply(self, effect: Effect) -> list[Input]:
        match effect:
            case Send():
                self.open.append(effect)
                name = BY_REQUEST[type(effect.request)].name
                self.asked.append(name)
                if name in self.auto:
                    self.open.remove(effect)
                    return [Answered(effect.request_id, self.response(effect))]
                self.lines.append(self._shown(name, effect))
            case Cancel():
                self.open = [send for send in self.open if send.request_id != effect.request_id]
                self.lines.append("cancelled")
            case CallListener():
                self.lines.append(f"on_partitions_{effect.kind} {named(effect.partitions)}")
                self.in_listener(effect.kind)
                if not self.hold_listener:
                    return [CallbackDone(self.listener_raises.get(effect.kind))]
            case PollReturned():
                self.returned.append(effect)
                ranges = " ".join(f"{r.topic}-{r.partition}[{r.start},{r.end})" for r in effect.ranges)
                self.lines.append(f"poll -> {ranges or 'nothing'}")
            case PollFailed():
                self.raised.append(effect.error)
                self.lines.append(f"poll raised {type(effect.error).__name__}")
            case CommitDone():
                self.done.append(effect)
                self.lines.append(f"commit {effect.token} -> {type(effect.error).__name__ if effect.error else 'ok'}")
            case OffsetsFound() | CallDone():
                self.done.append(effect)
                if effect.token is not None:
                    self.lines.append(f"{effect.token} -> {type(effect.error).__name__ if effect.error else 'ok'}")
            case Event():
                self.events.append(effect)
        return []

    @staticmethod
    def _shown(name: str, send: Send) -> str:
        request: Any = send.request
        match name:
            case "JoinGroup":
                return f"JoinGroup {request.member_id!r} reason={request.reason!r}"
            case "SyncGroup":
                return f"SyncGroup gen={request.generation_id} assignments={len(request.assignments)}"
            case "Heartbeat":
                return f"Heartbeat gen={request.generation_id}"
            case "ConsumerGroupHeartbeat":
                return shown_heartbeat(request)
            case "LeaveGroup" if not request.members:
                return f"LeaveGroup {request.member_id!r}"
            case "LeaveGroup":
                return f"LeaveGroup {request.members[0].member_id!r} reason={request.members[0].reason!r}"
            case "OffsetCommit":
                offsets = " ".join(
                    f"{t.name}-{p.partition_index}@{p.committed_offset}" for t in request.topics for p in t.partitions
                )
                return f"OffsetCommit gen={request.generation_id_or_member_epoch} {offsets}"
            case _:
                return name

    def advance(self, ms: int) -> None:
        """Let time pass, stopping at every deadline on the way."""
        target = self.now + ms
        for _ in range(100_000):
            deadline = self.core.next_deadline()
            if deadline is None or deadline > target:
                break
            assert deadline > self.now or deadline <= self.now, "deadlines are instants"
            before = self.now
            self.now = max(self.now, deadline)
            self.step(Elapsed())
            again = self.core.next_deadline()
            assert again is None or again > self.now or self.now > before, "a deadline that is never over"
        else:
            raise AssertionError("deadlines without end")
        self.now = target

    def take(self) -> list[str]:
        """What happened since the last time."""
        lines, self.lines = self.lines, []
        return lines

    # -- the user

    def subscribe(self, *topics: str, pattern: str | None = None, regex: str | None = None) -> None:
        self.step(Subscribed(topics, pattern, regex=regex))

    def poll(self, timeout_ms: int = 60_000) -> None:
        self.step(Polled(timeout_ms))

    def commit(self, token: str, offsets: Mapping[str, int] | None = None, *, sync: bool = True) -> None:
        given = {tp(name)[0]: OffsetAndMetadata(offset) for name, offset in offsets.items()} if offsets else None
        self.step(CommitAsked(token, given, sync))

    def close(self, *, leave: bool = True) -> None:
        self.step(Closed("close", leave=leave))

    def unsubscribe(self) -> None:
        self.step(Unsubscribed("unsubscribe"))

    # -- the coordinator

    def find(self, api: str) -> Send:
        for send in self.open:
            if BY_REQUEST[type(send.request)].name == api:
                return send
        raise AssertionError(f"no {api} is open: {[BY_REQUEST[type(send.request)].name for send in self.open]}")

    def join_request(self) -> JoinGroupRequest:
        """The oldest open JoinGroup."""
        request = self.find("JoinGroup").request
        assert isinstance(request, JoinGroupRequest)
        return request

    def is_open(self, api: str) -> bool:
        return any(BY_REQUEST[type(send.request)].name == api for send in self.open)

    def answer(self, api: str, error: ErrorCode = NONE, response: Response | None = None, **fields: Any) -> None:
        """Answer the oldest open request of this API, with what a coordinator would say or with an error."""
        send = self.find(api)
        self.open.remove(send)
        self.step(Answered(send.request_id, response or self.response(send, error, **fields)))

    def fail(self, api: str, failure: Failure = Failure.DISCONNECT) -> None:
        send = self.find(api)
        self.open.remove(send)
        self.step(Failed(send.request_id, failure))

    def response(self, send: Send, error: ErrorCode = NONE, **fields: Any) -> Response:
        request: Any = send.request
        match BY_REQUEST[type(request)].name:
            case "FindCoordinator":
                found = Coordinator(key="g", node_id=1, host="h", port=1, error_code=error)
                return FindCoordinatorResponse(coordinators=(found,))
            case "Metadata":
                return self._metadata(request)
            case "JoinGroup":
                return JoinGroupResponse(error_code=error, **fields)
            case "SyncGroup":
                if "assigned" in fields:
                    fields["assignment"] = encode_partitions(tp(*fields.pop("assigned")))
                return SyncGroupResponse(error_code=error, **fields)
            case "Heartbeat":
                return HeartbeatResponse(error_code=error)
            case "LeaveGroup":
                return LeaveGroupResponse(error_code=error)
            case "ConsumerGroupHeartbeat":
                return heartbeat_response(error, **fields)
            case "OffsetCommit":
                return self._commit(request, error)
            case "OffsetFetch":
                return self._fetch(request, error, fields.get("partition_error", NONE))
            case "ListOffsets":
                return self._list(request, error)
            case _:
                raise AssertionError(f"the bench has no answer to {request!r}")

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        wanted = sorted(self.topics) if request.topics is None else [topic.name or "" for topic in request.topics]
        nodes = sorted(self.racks)
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=n, host="h", port=1, rack=self.racks[n]) for n in nodes),
            topics=tuple(
                MetadataResponseTopic(
                    name=name,
                    topic_id=topic_id(name),
                    is_internal=name.startswith("__"),
                    error_code=NONE if name in self.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    partitions=tuple(
                        MetadataResponsePartition(
                            partition_index=p, leader_id=nodes[0], replica_nodes=(nodes[p % len(nodes)],)
                        )
                        for p in range(self.topics.get(name, 0))
                    ),
                )
                for name in wanted
            ),
        )

    @staticmethod
    def _commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error)
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _fetch(self, request: OffsetFetchRequest, error: ErrorCode, each: ErrorCode) -> OffsetFetchResponse:
        topics = request.groups[0].topics or ()
        return OffsetFetchResponse(
            groups=(
                OffsetFetchResponseGroup(
                    group_id="g",
                    error_code=error,
                    topics=()
                    if error is not NONE
                    else tuple(
                        OffsetFetchResponseTopics(
                            name=topic.name,
                            partitions=tuple(
                                OffsetFetchResponsePartitions(
                                    partition_index=p,
                                    committed_offset=-1
                                    if each is not NONE
                                    else self.committed.get(f"{topic.name}-{p}", -1),
                                    error_code=each,
                                )
                                for p in topic.partition_indexes
                            ),
                        )
                        for topic in topics
                    ),
                ),
            )
        )

    def _list(self, request: ListOffsetsRequest, error: ErrorCode) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsPartitionResponse(
                            partition_index=p.partition_index,
                            error_code=error,
                            offset=0 if p.timestamp == -2 else self.ends.get(f"{topic.name}-{p.partition_index}", 0),
                        )
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    # -- shortcuts

    def find_coordinator(self) -> None:
        self.answer("FindCoordinator")

    def give_member_id(self, member_id: str = "m") -> None:
        self.answer("JoinGroup", ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)

    def joined(self, generation: int = 1, *, member_id: str = "m", leader: str = "other", **fields: Any) -> None:
        """JoinGroup is answered: a generation begins. With ``leader`` equal to the member id, members are named."""
        protocol = self.join_request().protocols[0].name
        fields.setdefault("protocol_name", protocol)
        self.answer(
            "JoinGroup",
            generation_id=generation,
            member_id=member_id,
            leader=leader,
            protocol_type="consumer",
            **fields,
        )

    def member(self, member_id: str, *topics: str, owned: Sequence[str] = ()) -> JoinGroupResponseMember:
        subscription = Subscription(topics, None, tuple(tp(*owned)))
        return JoinGroupResponseMember(member_id=member_id, metadata=encode_subscription(subscription))

    def synced(self, *assigned: str) -> None:
        """SyncGroup is answered with these partitions."""
        self.answer("SyncGroup", assigned=assigned)

    def stable(self, *assigned: str, topics: Sequence[str] = ("t",), generation: int = 1) -> Bench:
        """Go all the way to a stable member with these partitions; the poll that led there stays open."""
        self.subscribe(*topics)
        self.poll(10_000_000)
        self.find_coordinator()
        if not self.config.is_static:
            self.give_member_id()
        self.joined(generation)
        self.synced(*assigned)
        self.take()
        return self

    def rejoin(self, *assigned: str, generation: int) -> None:
        """Answer JoinGroup and SyncGroup of a later generation."""
        self.joined(generation)
        self.synced(*assigned)

    def done_with(self, token: str) -> Exception | bool | None:
        """How a commit or call ended: None while it has not, True if well, else its error."""
        for effect in self.done:
            if effect.token == token:
                return effect.error or True
        return None

    def found(self, token: str) -> dict[TopicPartition, int | None]:
        """The offsets that answered a question."""
        for effect in self.done:
            if isinstance(effect, OffsetsFound) and effect.token == token:
                assert effect.error is None, effect.error
                return dict(effect.offsets)
        raise AssertionError(f"{token} was not answered")

    def step_out_of_poll(self) -> None:
        """End the poll that is open, as one that times out would, without time passing."""
        self.step(Woken())
        assert isinstance(self.raised.pop(), WakeupError)
        self.take()

    def step_close_and_answer(self) -> None:
        """Close, answering whatever that asks; requests are kept in ``sent`` by their API."""
        self.close()
        for _ in range(20):
            if self.core.closed or not self.open:
                break
            send = self.open[0]
            api = BY_REQUEST[type(send.request)].name
            self.sent[api] = send
            self.answer(api)

    def find_coordinator_again(self) -> None:
        """Answer FindCoordinator if the consumer is asking for it, or once it does."""
        for _ in range(30):
            if self.is_open("FindCoordinator"):
                self.find_coordinator()
                return
            self.advance(10)

    def step_commit_of_nothing(self, token: str) -> None:
        self.step(CommitAsked(token, {}))

    def later(self, call: Callable[[], None]) -> None:
        """Called by a listener: do this once the core has returned."""
        self._later.append(call)

    def run_later(self) -> None:
        calls, self._later = self._later, []
        for call in calls:
            call()

    def listener_done(self, error: BaseException | None = None) -> None:
        """A listener that was held returns."""
        self.step(CallbackDone(error))

    def names(self) -> list[str]:
        """The names of the events so far."""
        return [event.name for event in self.events]
