"""The node and the members of a transcript: requests are sent, and what comes out is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.inputs import ANONYMOUS, Context, Millis, Token
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.views import GroupView
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import CoreFailed, TopicCreated
from rejoin.journal.formatting import format_event
from rejoin.protocol.message import Request, Response, WrongVersion
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.validation import sentence
from rejoin.transcript.driver import START, NodeDriver, NodeLogs
from rejoin.transcript.grammar.base import RequestCommand, Scope
from rejoin.transcript.grammar.words import BadWord
from rejoin.transcript.members import MemberContext
from rejoin.transcript.responses import is_uneventful, show


class NodeFailed(Exception):
    """The node's core failed over a command: a bug."""


@dataclass(slots=True)
class PlayedMember(MemberContext):
    """A member that may send heartbeats by itself."""

    next_beat_at: Millis | None = None
    last_beat: str = ""
    """Response to the last of these."""
    principal: str = ANONYMOUS


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request that waits for its answer: its token. A ``quiet`` one is shown if its answer differs from the last."""

    member: PlayedMember
    request: Request
    quiet: bool = False
    answered: bool = False


class TranscriptSession:
    """One node whose log takes no time, the members that a transcript names, and the lines that come out."""

    def __init__(self) -> None:
        self.logs = NodeLogs(self.on_append)
        self.settings: dict[str, object] = {"transaction.partition.verification.enable": False}
        """Transcripts are about groups: their transactions have no coordinator."""
        self.group = "g"
        self.members: dict[str, PlayedMember] = {}
        self.topic_ids: dict[str, str] = {}
        self.lines: list[str] = []
        self._driver: NodeDriver | None = None
        self._now: Millis = START
        self._shown_at: Millis = START
        self._silent = False
        self._unread: list[Record] = []
        self._member_ids = 0
        self._topic_id = ""
        """While a topic is created: its id in hexadecimal digits."""
        self._internal_topics = 0
        """How many ids were drawn for topics that heartbeats create."""
        self._draws_topic_ids = False

    # --- requests

    def _request(
        self, command: RequestCommand, member: PlayedMember, words: Sequence[str], quiet: bool = False
    ) -> None:
        """Send a request; what is answered later is shown when it is."""
        try:
            scope = Scope(self.group, member, self, self._offsets_partition.partition, self.topic_ids, self.now)
            request, version = command.read(words, scope)
            api = BY_REQUEST[type(request)]
            if not api.supports(version):
                raise BadWord(f"{api.name} has versions {api.min_version} to {api.max_version}, not {version}")
            request.check_version(version)
        except WrongVersion as problem:
            raise BadWord(f"not a request of this version: {problem.field}: {problem.problem}") from None
        except ValidationError as problem:
            raise BadWord(sentence(problem)) from None
        pending = PendingRequest(member, request, quiet)
        # What no member asks for may have been done over the control API.
        connection = member.name if command.by_member else ""
        by_operator = not command.by_member
        context = Context(
            version,
            member.name,
            principal=member.principal,
            by_operator=by_operator,
            connection=connection,
        )
        # Members of streams groups bring their ids: what is drawn is for internal topics.
        self._draws_topic_ids = isinstance(request, StreamsGroupHeartbeatRequest)
        self.driver.request(pending, request, context)
        self._draws_topic_ids = False
        if not pending.answered:
            self._say(f"{member.name}  {api.name} waits")

    # --- members, as the grammar asks for them

    def named(self, name: str) -> MemberContext:
        """The member of this name."""
        if name not in self.members:
            raise BadWord(
                f"no member is called {name!r} so far; expected {', '.join(self.members) or 'one that joined'}"
            )
        return self.members[name]

    def name_of(self, member_id: str) -> str | None:
        """The name of the member with this id."""
        return next((name for name, member in self.members.items() if member.member_id == member_id), None)

    def _member(self, name: str) -> PlayedMember:
        if name not in self.members:
            self.members[name] = PlayedMember(name=name)
        return self.members[name]

    # --- the node

    @property
    def driver(self) -> NodeDriver:
        """The node; it starts when it is first needed."""
        if self._driver is None:
            try:
                settings = Settings.model_validate(self.settings)
                self._driver = driver = NodeDriver(Node(settings, self._new_id), self.logs, self, self._now)
                driver.see_cluster()
            except ValidationError as problem:
                raise BadWord(sentence(problem, Settings, kind="setting")) from None
            except ValueError as problem:
                raise BadWord(str(problem)) from None
            silent = self._silent
            for index in range(settings.offsets_topic_num_partitions):
                partition = offsets_partition(index)
                self._silent = silent or not self.logs.of(partition).records
                driver.elect(partition)
            self._silent = silent
        return self._driver

    @property
    def node(self) -> Node:
        """The node's core."""
        return self.driver.node

    @property
    def _offsets_partition(self) -> TopicPartition:
        return offsets_partition(partition_for(self.group, self.node.settings.offsets_topic_num_partitions))

    def _new_id(self) -> str:
        """Short ids for members, whole ones for topics."""
        if self._topic_id:
            return self._topic_id
        if self._draws_topic_ids:
            self._internal_topics += 1
            return f"{(1 << 64) + self._internal_topics:032x}"
        self._member_ids += 1
        return str(self._member_ids)

    def on_event(self, event: Event) -> None:
        """An event of the node."""
        if isinstance(event, CoreFailed):
            raise NodeFailed(f"a bug of the coordinator: {event.doing}: {event.problem}")
        if isinstance(event, TopicCreated):
            self.topic_ids[event.topic] = event.topic_id
        self._say(format_event(event))

    def _topic_name(self, topic_id: str) -> str:
        return next((name for name, known in self.topic_ids.items() if known == topic_id), topic_id)

    def on_append(self, append: Append) -> None:
        """Records have got into the log."""
        self._unread.extend(append.records)

    def on_reply(self, token: Token, response: Response) -> None:
        """A request is answered."""
        assert isinstance(token, PendingRequest)
        if token.answered:
            raise NodeFailed(f"a bug of the coordinator: a second answer to {type(token.request).__name__}")
        token.answered = True
        member = token.member
        if isinstance(response, JoinGroupResponse):
            member.on_join_response(response)
        if isinstance(response, ConsumerGroupHeartbeatResponse):
            member.on_heartbeat_response(getattr(token.request, "member_id", ""), response)
        member.on_share_response(token.request, response)
        member.on_streams_response(token.request, response)
        text = f"{BY_REQUEST[type(token.request)].name} -> {show(response, self._topic_name)}"
        if token.quiet:
            if text == member.last_beat or (not member.last_beat and is_uneventful(text)):
                return
            member.last_beat = text
        self._say(f"{member.name}  {text}")

    def _say(self, line: str) -> None:
        if self._silent:
            return
        now = self.now
        if now != self._shown_at:
            self.lines.append(f"+{now - self._shown_at}ms")
            self._shown_at = now
        self.lines.append(line)

    @property
    def now(self) -> Millis:
        return self._now if self._driver is None else self._driver.now

    def _view(self) -> GroupView | None:
        return self.node.describe_group(self.group)
