"""Who is who in a transcript that is written: members get short names after their client ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rejoin.coordinator.core.effects import Append, Effect
from rejoin.coordinator.core.inputs import Context
from rejoin.journal.events.coordinator import TopicCreated
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from rejoin.protocol.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.transcript.grammar.base import OUTSIDE, RequestCommand, Scope
from rejoin.transcript.grammar.table import BY_REQUEST, CREATE_TOPIC, LEAVE, RESERVED
from rejoin.transcript.grammar.words import NotExpressible, write_word
from rejoin.transcript.members import MemberContext

ModernHeartbeat = ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
HEARTBEATS: Final = (ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)
OF_TRANSACTIONS: Final = (InitProducerIdRequest, AddPartitionsToTxnRequest, AddOffsetsToTxnRequest, EndTxnRequest)
NO_COORDINATOR: Final = "transcripts have no transaction coordinator; what it writes to groups is played as txn and end"
LAST_COMMIT_WITHOUT_COORDINATOR: Final = 4

_LETTERS: Final = "errors.deadletterqueue.group.enable"
"""The setting of a topic that decides about what share groups do."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.\-]+")


class WrittenCommand(NamedTuple):
    """A command, the group it is about, and the name that its answer begins with."""

    text: str
    group: str | None = None
    name: str = OUTSIDE
    is_silent: bool = False


@dataclass(slots=True, kw_only=True)
class NamedMember(MemberContext):
    """A member with what it is known by beside its id."""

    client_id: str
    group_id: str
    instance: str | None
    is_gone: bool = False

    def is_of(self, client_id: str, group_id: str, instance: str | None) -> bool:
        """Whether this may be the member of a client."""
        return (self.client_id, self.group_id, self.instance) == (client_id, group_id, instance)


class MemberNames:
    """Writes requests as commands, and keeps the members' contexts as the player will have them."""

    def __init__(self, next_number: Callable[[], int]) -> None:
        self._next_number = next_number
        self._members: dict[str, NamedMember] = {}
        self._owners: dict[str, NamedMember] = {}
        """By member id: the member that it was handed to last."""
        self._topic_ids: dict[str, str] = {}
        self.writes_topic_ids = False
        self.writes_records = False

    def command(self, request: Request, context: Context, effects: Sequence[Effect]) -> WrittenCommand:
        """The command that says this request. Raises :class:`NotExpressible`."""
        if isinstance(request, CreateTopicsRequest):
            return self._topics_created(request, effects)
        command = BY_REQUEST.get(type(request))
        if isinstance(request, ProduceRequest):
            if not self.writes_records:
                raise NotExpressible("only transcripts with share groups have records")
            is_transactional = request.transactional_id is not None
            if not is_transactional and not any(isinstance(effect, Append) for effect in effects):
                raise NotExpressible("no record was written")
        if command is None:
            is_of_group = hasattr(request, "group_id")
            if isinstance(request, OF_TRANSACTIONS):
                raise NotExpressible(NO_COORDINATOR)
            changes = is_of_group and any(isinstance(effect, Append) for effect in effects)
            raise NotExpressible("transcripts have no command for it" if changes else "")
        version = context.api_version
        if isinstance(request, TxnOffsetCommitRequest):
            # Later versions ask the transaction coordinator first, which a transcript does not have.
            version = min(version, LAST_COMMIT_WITHOUT_COORDINATOR)
        group_id = command.group_id(request, version)
        if group_id is not None and (not group_id or group_id != "".join(group_id.split())):
            raise NotExpressible(f"the group id {group_id!r} cannot be a word")
        if isinstance(request, JoinGroupRequest):
            return self._join(command, request, context)
        member: MemberContext | None = None
        if isinstance(request, HEARTBEATS):
            member = self._beating(request, context)
            return self._written(command, request, version, group_id, member)
        if isinstance(request, LeaveGroupRequest):
            member = self._leaving(request, context)
            command = command if member is None else LEAVE
        elif command.by_member:
            member = self._asking(request, context)
        return self._written(command, request, version, group_id, member)

    def named(self, name: str) -> MemberContext:
        """The member of this name."""
        return self._members[name]

    def name_of(self, member_id: str) -> str | None:
        """The name of the member with this id."""
        owner = self._owners.get(member_id)
        return owner.name if owner is not None and owner.member_id == member_id else None

    def name_for(self, request: Request, context: Context) -> str:
        """A name for the client that asks; no new member comes of it."""
        owner = self._owners.get(getattr(request, "member_id", ""))
        if owner is not None:
            return owner.name
        return next(
            (each.name for each in self._members.values() if each.client_id == context.client_id),
            context.client_id or OUTSIDE,
        )

    def on_join_response(self, name: str, response: JoinGroupResponse) -> None:
        """Take over what a JoinGroup was answered."""
        member = self._members.get(name)
        if member is None:
            return
        member.on_join_response(response)
        if member.member_id:
            member.is_gone = False
            self._owners[member.member_id] = member

    def on_heartbeat_response(self, name: str, member_id: str, response: ConsumerGroupHeartbeatResponse) -> None:
        """Take over what a ConsumerGroupHeartbeat was answered."""
        member = self._members.get(name)
        if member is None:
            return
        member.on_heartbeat_response(member_id, response)
        member.is_gone = member.generation < 0
        self._owners[member.member_id or member_id] = member

    def on_group_response(self, name: str, request: Request, response: Response) -> None:
        """Take over what a request of a share or streams group was answered; nothing for other requests."""
        member = self._members.get(name)
        if member is None:
            return
        member.on_share_response(request, response)
        member.on_streams_response(request, response)
        if isinstance(request, ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest):
            member.is_gone = member.generation < 0
            self._owners[member.member_id or request.member_id] = member

    def topic_created(self, event: TopicCreated) -> str:
        """The command that creates a topic."""
        self._topic_ids[event.topic] = event.topic_id
        words = [CREATE_TOPIC.verb, event.topic, str(event.partition_count)]
        return " ".join([*words, event.topic_id] if self.writes_topic_ids else words)

    def note_topic(self, event: TopicCreated) -> None:
        """A topic was created by another command, as internal topics are by heartbeats."""
        self._topic_ids.setdefault(event.topic, event.topic_id)

    def knows_topic(self, name: str) -> bool:
        """Whether a topic of this name was created in the transcript."""
        return name in self._topic_ids

    def topic_name(self, topic_id: str) -> str:
        """The name of a topic, or its id where no such topic was created."""
        return next((name for name, known in self._topic_ids.items() if known == topic_id), topic_id)

    def on_member_removed(self, member_id: str) -> None:
        """A member is out; the client that joins next under its client id may be the same."""
        owner = self._owners.get(member_id)
        if owner is not None:
            owner.is_gone = True

    # --- commands

    def _written(
        self,
        command: RequestCommand,
        request: Request,
        version: int,
        group_id: str | None,
        member: MemberContext | None,
    ) -> WrittenCommand:
        scope = Scope(group_id or "", member or MemberContext(name=OUTSIDE), self, topic_ids=self._topic_ids)
        words = [command.verb, *command.write(request, version, scope)]
        if not command.by_member:
            return WrittenCommand(" ".join(words), group_id)
        return WrittenCommand(" ".join([scope.member.name, *words]), group_id, scope.member.name)

    def _join(self, command: RequestCommand, request: JoinGroupRequest, context: Context) -> WrittenCommand:
        member = self._joining(request, context)
        restarts = not request.member_id and bool(member.member_id)
        if restarts:
            member.forget()
        written = self._written(command, request, context.api_version, request.group_id, member)
        if restarts:
            return written._replace(text=written.text.replace(" join", " restarts", 1))
        return written

    def _topics_created(self, request: CreateTopicsRequest, effects: Sequence[Effect]) -> WrittenCommand:
        """A topic with the partitions that it got."""
        created = [event for event in effects if isinstance(event, TopicCreated)]
        if len(created) != 1:
            raise NotExpressible("" if created or not request.topics else "no topic was created")
        given = [
            f"{each.name}={write_word(each.value)}"
            for topic in request.topics
            if topic.name == created[0].topic
            for each in topic.configs
            if each.name == _LETTERS
        ]
        return WrittenCommand(" ".join([self.topic_created(created[0]), *given]), is_silent=True)

    # --- who

    def _new(self, client_id: str, group_id: str, instance: str | None) -> NamedMember:
        base = name = "-".join(_PLAIN.findall(client_id)) or "member"
        # Numbered as the ids are: timers of one instant fire in the order of ids, here and where this is replayed.
        number = self._next_number()
        while name in self._members or name in RESERVED:
            name = f"{base}.{number}"
            number += 1
        member = NamedMember(name=name, client_id=client_id, group_id=group_id, instance=instance)
        self._members[name] = member
        return member

    def _of(self, member_id: str, instance: str | None, client_id: str, group_id: str) -> NamedMember:
        owner = self._owners.get(member_id)
        if owner is not None and owner.group_id == group_id and owner.instance == instance:
            return owner
        for member in self._members.values():
            if member.is_of(client_id, group_id, instance):
                return member
        return self._new(client_id, group_id, instance)

    def _joining(self, request: JoinGroupRequest, context: Context) -> NamedMember:
        client_id, group_id, instance = context.client_id, request.group_id, request.group_instance_id
        if request.member_id:
            return self._of(request.member_id, instance, client_id, group_id)
        namesakes = [member for member in self._members.values() if member.is_of(client_id, group_id, instance)]
        if len(namesakes) == 1:
            (member,) = namesakes
            if member.instance is not None or member.is_gone or not member.member_id:
                return member
        return self._new(client_id, group_id, instance)

    def _beating(self, request: ModernHeartbeat, context: Context) -> NamedMember:
        """The member with this id, or one of this client that has none now."""
        owner = self._owners.get(request.member_id)
        if owner is not None and owner.group_id == request.group_id:
            return owner
        client = (context.client_id, request.group_id, getattr(request, "instance_id", None))
        for member in self._members.values():
            if member.is_of(*client) and (member.is_gone or not member.member_id):
                return member
        return self._new(*client)

    def _asking(self, request: Request, context: Context) -> MemberContext | None:
        """The member that asks; none for a commit from outside the group."""
        member_id: str = getattr(request, "member_id", "")
        generation = getattr(request, "generation_id_or_member_epoch", None)
        if generation is None:
            generation = getattr(request, "generation_id", None)
        instance: str | None = getattr(request, "group_instance_id", None)
        commits = BY_REQUEST[type(request)].verb in ("commit", "txn")
        if commits and not member_id and generation == -1:
            return None
        group_id: str = getattr(request, "group_id", "")
        return self._of(member_id, instance, context.client_id, group_id)

    def _leaving(self, request: LeaveGroupRequest, context: Context) -> NamedMember | None:
        """The member that leaves by itself; none where a tool removes some."""
        single: MemberIdentity | None = None
        if context.api_version >= 3 and len(request.members) == 1:
            (single,) = request.members
        member_id = request.member_id if context.api_version < 3 else single.member_id if single is not None else ""
        owner = self._owners.get(member_id)
        itself = owner is not None and (owner.client_id, owner.group_id) == (context.client_id, request.group_id)
        if single is not None and (itself or single.reason):
            return self._of(member_id, single.group_instance_id, context.client_id, request.group_id)
        return owner if itself else None
