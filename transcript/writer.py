"""Writes recorded steps as a transcript that can be played: commands in virtual time, and what came of them.

Members get short names after their client ids. Member ids are numbered in the order in which they were made, as the
player numbers them. Steps before the mark are ``quietly`` commands. Lookups that change nothing are left out unless
they failed; a request that no command stands for is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.coordinator.config import DEFAULTS, Settings
from rejoin.coordinator.core.effects import Append, ReadLog, Reply, ResolveRegexes
from rejoin.coordinator.core.inputs import (
    ANONYMOUS,
    CompactionWanted,
    ConnectionLost,
    Elapsed,
    Elected,
    LockExpired,
    LogRead,
    Millis,
    PersisterFault,
    Received,
    RecordReleased,
    RecordsWritten,
    RegexesResolved,
    Resigned,
    SessionLost,
    Stored,
)
from rejoin.coordinator.core.security.client_principals import ClientPrincipals
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.journal.events.transactions import (
    ProducerEvent,
    TransactionalLogEvent,
    TransactionMarkerWritten,
    TransactionsLoaded,
)
from rejoin.journal.formatting import format_event
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.protocol.types import ZERO_UUID, LogPartition, TopicPartition
from rejoin.transcript.access import acl_commands
from rejoin.transcript.document import RULE
from rejoin.transcript.grammar.base import OUTSIDE
from rejoin.transcript.grammar.offsets import end_words
from rejoin.transcript.grammar.table import END
from rejoin.transcript.grammar.words import NotExpressible, write_offset, write_word
from rejoin.transcript.naming import LAST_COMMIT_WITHOUT_COORDINATOR, NO_COORDINATOR, MemberNames, WrittenCommand
from rejoin.transcript.responses import is_uneventful, show
from rejoin.transcript.steps import Interception, Step

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIRST_GROUP: Final = "g"


@dataclass(slots=True)
class DraftBlock:
    """Commands and what came of them."""

    commands: list[str] = field(default_factory=list)
    out: list[str] = field(default_factory=list)

    @property
    def is_uneventful(self) -> bool:
        return all(is_uneventful(line) or line.startswith("+") for line in self.out)


class TranscriptWriter:
    """Writes one transcript."""

    def __init__(self, settings: Settings, began_at: Millis, since: int, group_id: str | None) -> None:
        self._settings = settings
        self._since = since
        self._only_group = group_id
        self._now = self._shown_at = began_at
        self._group = _FIRST_GROUP
        self._blocks: list[DraftBlock] = [DraftBlock()]
        self._advanced_to: Millis | None = None
        self._names = MemberNames(lambda: len(self._short_ids) + 1)
        self._asked: dict[int, tuple[str, Received]] = {}
        self._short_ids: dict[str, tuple[str, str]] = {}
        self._drawn_ids: dict[str, str] = {}
        """Member ids that the coordinator drew for members without one, as the player will draw them."""
        self._stored: dict[tuple[LogPartition, int, int], Step] = {}
        self._read: dict[tuple[LogPartition, int], list[Step]] = {}
        self._done: set[int] = set()
        self._is_quiet = False
        self._seen_groups: dict[int, str] = {}
        self._remarks: list[str] = []
        """Moves of transaction coordinators, until the next command."""
        self._answers: dict[int, Reply] = {}
        self._sessions: dict[str, tuple[str, str | None]] = {}
        """By connection: the member that opened its share session by it, and the group."""
        self._client_principals = ClientPrincipals.of_setting(settings.emulator_principals)
        self._principals: dict[str, str] = {}
        self._resolved: dict[tuple[LogPartition, str], list[Step]] = {}
        """By group: what came of its expressions."""

    def write(self, steps: Sequence[Step], claim: str) -> str:
        """The whole text."""
        self._write_settings()
        asked_without_id: set[int] = set()
        for step in steps:
            for effect in step.effects:
                if isinstance(effect, Reply):
                    self._answers[id(effect.token)] = effect
                if isinstance(effect, Reply) and id(effect.token) in asked_without_id:
                    member_id = getattr(effect.response, "member_id", None) or ""
                    if len(member_id) == len(ZERO_UUID):
                        self._drawn_ids[member_id] = ""
            if isinstance(step.what, Received) and getattr(step.what.request, "member_id", None) == "":
                asked_without_id.add(id(step.what.token))
            match step.what:
                case Stored(partition=partition, epoch=epoch, append_id=append_id):
                    self._stored[partition, epoch, append_id] = step
                case LogRead(partition=partition, epoch=epoch):
                    self._read.setdefault((partition, epoch), []).append(step)
                case RegexesResolved(partition=partition, group_id=group_id):
                    self._resolved.setdefault((partition, group_id), []).append(step)
                case Received(request=ShareFetchRequest()):
                    self._names.writes_records = True
                case Received(request=ConsumerGroupHeartbeatRequest() | ShareGroupHeartbeatRequest()):
                    # An assignor may go by the ids of topics.
                    self._names.writes_topic_ids = True
        for step in steps:
            if step.number not in self._done:
                self._is_quiet = step.number <= self._since
                self._write_step(step)
        self._flush_remarks()
        texts = ["\n".join(_written(block)) for block in self._blocks if block.commands]
        head = f"# {' '.join(claim.split()) or 'What happened, as it was recorded.'}"
        return "\n\n".join([head, *texts]) + "\n"

    def _write_settings(self) -> None:
        given = []
        for name, info in type(self._settings).model_fields.items():
            value = getattr(self._settings, name)
            if value != getattr(DEFAULTS, name):
                given.append(f"{info.alias}={','.join(value) if isinstance(value, tuple) else value}")
        if given:
            self._blocks[-1].commands.append(f"set {' '.join(given)}")

    # --- one step

    def _write_step(self, step: Step) -> None:
        what = step.what
        match what:
            case Received():
                self._write_request(step, what)
            case Interception():
                name = self._names.name_for(what.request, what.context)
                self._comment(f"{name} {BY_REQUEST[type(what.request)].name}: {what.text}")
            case Elapsed() | Stored() | LogRead() | RegexesResolved():
                if marker := self._marker(step):
                    self._write_marker(step, marker)
                elif any(self._is_of_coordinator(effect) for effect in step.effects) and not self._shows(step):
                    self._skip_output(step, "")
                else:
                    self._write_elapsed(step)
            case Resigned() | Elected():
                verb = "resign" if isinstance(what, Resigned) else "elect"
                self._write_command(step, WrittenCommand(verb, self._group_in(what.partition.partition)))
            case SessionLost():
                self._write_command(step, WrittenCommand(f"expire {self._member(what.member_id)}", what.group_id))
            case CompactionWanted(topic=None):
                self._write_command(step, WrittenCommand("compact"))
            case CompactionWanted(topic=str(topic)):
                if self._names.knows_topic(topic):
                    self._write_command(step, WrittenCommand(f"compact {write_word(topic)}"))
                else:
                    self._comment(f"{topic} was compacted")
            case ConnectionLost() if (lost := self._sessions.pop(what.connection, None)) is not None:
                name, group_id = lost
                member = self._names.named(name)
                if member.session_epoch:
                    member.session_epoch = 0
                    self._write_command(step, WrittenCommand(f"disconnect {name}", group_id))
            case LockExpired() | RecordReleased() if self._only_group in (None, what.group_id):
                record = write_offset(what.topic, what.partition, what.offset, None)
                verb = "release" if isinstance(what, RecordReleased) else "expire-lock"
                self._write_command(step, WrittenCommand(f"{verb} {record}", what.group_id))
            case PersisterFault() if self._only_group in (None, what.group_id):
                error = [] if what.error is None else [what.error.name]
                words = ["fail-persister", what.operation, *error, str(what.count)]
                self._write_command(step, WrittenCommand(" ".join(words), what.group_id))
            case RecordsWritten():
                self._comment(f"{what.records} records written to {what.topic}:{what.partition}")

    def _write_request(self, step: Step, what: Received) -> None:
        groups = traits_of(what.request, what.context.api_version).groups
        for group_id in groups:
            self._seen_groups[partition_for(group_id, self._settings.offsets_topic_num_partitions)] = group_id
        if self._only_group is not None and groups and self._only_group not in groups:
            return
        try:
            self._check_txn(what)
            command = self._names.command(what.request, what.context, step.effects)
            self._write_principal(step, command.name, what)
        except NotExpressible as problem:
            reply = self._answers.get(id(what.token))
            if acls := acl_commands(what.request, None if reply is None else reply.response):
                for each in acls:
                    self._command(step, each)
                self._skip_output(step, "")
                return
            self._lookup(step, what, str(problem))
            return
        self._asked[id(what.token)] = (command.name, what)
        self._note_session(command, what)
        self._write_command(step, command, what)

    def _write_principal(self, step: Step, name: str, what: Received) -> None:
        """Name the principal of a member where it is another than before. Raises NotExpressible."""
        principal = self._client_principals.of(what.context)
        if not what.context.by_operator and principal != self._principals.get(name, ANONYMOUS):
            if len(principal.split()) != 1:
                raise NotExpressible(f"the principal {principal!r} cannot be a word")
            self._command(step, f"{name} principal {principal}")
            self._principals[name] = principal

    def _note_session(self, command: WrittenCommand, what: Received) -> None:
        """Keep which connection a member opened its share session by: the last one that did."""
        request = what.request
        if isinstance(request, ShareFetchRequest) and request.share_session_epoch == 0 and what.context.connection:
            mine = (command.name, request.group_id)
            self._sessions = {each: whose for each, whose in self._sessions.items() if whose != mine}
            self._sessions[what.context.connection] = mine

    def _check_txn(self, what: Received) -> None:
        """Refuse a commit that the transaction coordinator refused, before the group was asked."""
        reply = self._answers.get(id(what.token))
        if (
            not isinstance(what.request, TxnOffsetCommitRequest)
            or what.context.api_version <= LAST_COMMIT_WITHOUT_COORDINATOR
        ):
            return
        response: Any = None if reply is None else reply.response
        errors = {each.error_code for topic in response.topics for each in topic.partitions} if response else set()
        if errors != {ErrorCode.NONE}:
            raise NotExpressible(
                f"answered {', '.join(each.name for each in sorted(errors)) or 'not at all'}; {NO_COORDINATOR}"
            )

    def _write_marker(self, step: Step, marker: TransactionMarkerWritten) -> None:
        """Write of a transaction coordinator as the command that repeats it."""
        epoch = [f"epoch={marker.producer_epoch}"] if marker.producer_epoch else []
        is_of_group = marker.topic == OFFSETS_TOPIC
        where = [] if is_of_group else [TopicPartition(marker.topic, marker.partition)]
        words = [END.verb, *end_words(marker.producer_id, where, committed=marker.committed), *epoch]
        group_id = self._group_in(marker.partition) if is_of_group else None
        self._write_command(step, WrittenCommand(" ".join(words), group_id))
        answer, out = f"{OUTSIDE}  WriteTxnMarkers -> {ErrorCode.NONE.name}", self._blocks[-1].out
        if is_of_group or self._is_quiet:
            self._add_line(step.at, answer)
        else:  # The reply comes before those of fetches that waited for the end.
            out.insert(out.index(format_event(marker)) + 1, answer)

    def _marker(self, step: Step) -> TransactionMarkerWritten | None:
        """The marker that a transaction coordinator wrote in a step, to offsets or to records."""
        if not isinstance(step.what, Stored):
            return None
        written = (each for each in step.effects if isinstance(each, TransactionMarkerWritten))
        return next((each for each in written if each.topic == OFFSETS_TOPIC or self._names.writes_records), None)

    def _is_of_coordinator(self, effect: object) -> bool:
        """Whether this is an event of what a player does not have: transaction coordinators, and mostly records."""
        if isinstance(effect, TransactionalLogEvent):
            return effect.topic != OFFSETS_TOPIC and not self._names.writes_records
        return isinstance(effect, (ProducerEvent, TransactionsLoaded))

    def _shows(self, step: Step) -> bool:
        """Whether a step does something that a player does, too."""
        return any(
            (isinstance(effect, Event) and not self._is_of_coordinator(effect))
            or (isinstance(effect, Reply) and id(effect.token) in self._asked)
            for effect in step.effects
        )

    def _flush_remarks(self) -> None:
        remarks, self._remarks = self._remarks, []
        for each in remarks:
            self._comment(each)

    def _lookup(self, step: Step, what: Received, why: str) -> None:
        """A request that a transcript has no command for: its topics are created, its errors are comments."""
        for event in step.effects:
            if isinstance(event, events.TopicCreated) and event.topic != TRANSACTION_STATE_TOPIC:
                self._command(step, self._names.topic_created(event))
        for effect in step.effects:
            if isinstance(effect, Reply) and isinstance(effect.response, FindCoordinatorResponse):
                found = show(effect.response)
                if not found.endswith("NONE"):
                    self._comment(f"{self._names.name_for(what.request, what.context)} FindCoordinator -> {found}")
        if why:
            self._comment(f"not expressible: {BY_REQUEST[type(what.request)].name}: {why}")

    def _write_command(self, step: Step, command: WrittenCommand, asking: Received | None = None) -> None:
        if command.group is not None and command.group != self._group:
            self._group = command.group
            self._command(step, f"group {command.group}")
        self._command(step, self._shortened(command.text))
        if command.is_silent:
            self._skip_output(step, command.name)
            return
        self._write_output(step, command.name)
        if asking is not None and id(asking.token) in self._asked:
            self._add_line(step.at, f"{command.name}  {BY_REQUEST[type(asking.request)].name} waits")
        if self._is_quiet:
            self._shown_at = step.at

    def _skip_output(self, step: Step, name: str) -> None:
        """Take a step as done, and show nothing of it."""
        before, self._is_quiet = self._is_quiet, True
        self._write_output(step, name)
        self._is_quiet = before

    def _write_elapsed(self, step: Step) -> None:
        if not step.effects:
            return
        if step.at == self._now and self._advanced_to == step.at:
            self._write_output(step, "")
            return
        self._begin_block(f"advance {step.at - self._now}")
        self._now = self._advanced_to = step.at
        self._write_output(step, "")
        if self._is_quiet:
            self._shown_at = step.at

    # --- writing

    def _command(self, step: Step, text: str) -> None:
        if step.at != self._now:
            self._begin_block(f"advance {step.at - self._now}")
            self._now = step.at
            if self._is_quiet:
                self._shown_at = step.at
        self._begin_block(text)
        self._advanced_to = None

    def _begin_block(self, command: str) -> None:
        self._flush_remarks()
        block = self._blocks[-1]
        beats = command.rsplit(maxsplit=1)[-1] in (
            "beat",
            "heartbeat",
            "share-heartbeat",
            "streams-heartbeat",
        ) or command.startswith("advance ")
        if block.out and not (block.is_uneventful and beats and not self._is_quiet):
            block = DraftBlock()
            self._blocks.append(block)
        block.commands.append(f"quietly {command}" if self._is_quiet and _makes_noise(command) else command)

    def _comment(self, text: str) -> None:
        if self._blocks[-1].out:
            self._blocks.append(DraftBlock())
        self._blocks[-1].commands.append(f"# {self._shortened(' '.join(text.split()))}")

    def _write_output(self, step: Step, name: str) -> None:
        """Effects of a step, in the order in which a player shows them: those that end at once end in their place."""
        self._done.add(step.number)
        for effect in step.effects:
            match effect:
                case Reply():
                    self._answer(step, effect)
                case Append():
                    ended = self._stored.get((effect.partition, effect.epoch, effect.append_id))
                    if ended is not None and ended.at == step.at and not self._marker(ended):
                        self._write_output(ended, name)
                case ReadLog():
                    for piece in self._read.get((effect.partition, effect.epoch), ()):
                        if piece.number not in self._done and piece.at == step.at:
                            self._write_output(piece, name)
                case Event() if self._is_of_coordinator(effect):
                    if not self._is_quiet or step.number > self._since:
                        self._remarks.append(format_event(effect))
                case Event():
                    self._name_member(effect, name)
                    if isinstance(effect, events.TopicCreated):
                        self._names.note_topic(effect)
                    group_id = getattr(effect, "group_id", None)
                    if self._only_group is None or group_id in (None, self._only_group):
                        self._add_line(step.at, format_event(effect))

        for effect in step.effects:
            if isinstance(effect, ResolveRegexes):
                resolved = self._resolved.get((effect.partition, effect.group_id), [])
                if resolved and resolved[0].at == step.at:
                    self._write_output(resolved.pop(0), name)

    def _answer(self, step: Step, reply: Reply) -> None:
        asked = self._asked.pop(id(reply.token), None)
        if asked is None:
            return
        name, what = asked
        if isinstance(reply.response, JoinGroupResponse):
            self._names.on_join_response(name, reply.response)
        if isinstance(reply.response, ConsumerGroupHeartbeatResponse):
            self._names.on_heartbeat_response(name, getattr(what.request, "member_id", ""), reply.response)
        self._names.on_group_response(name, what.request, reply.response)
        shown = show(reply.response, self._names.topic_name)
        self._add_line(step.at, f"{name}  {BY_REQUEST[type(what.request)].name} -> {shown}")

    def _add_line(self, at: Millis, line: str) -> None:
        if self._is_quiet:
            return
        if at != self._shown_at:
            self._blocks[-1].out.append(f"+{at - self._shown_at}ms")
            self._shown_at = at
        self._blocks[-1].out.append(self._shortened(line))

    # --- names

    def _name_member(self, event: Event, name: str) -> None:
        """Count ids as they are made, and note when members go."""
        match event:
            case events.MemberIdHandedOut():
                self._number_id(event.member_id, name)
            case events.MemberJoined(member_id=drawn) | events.MemberIdHandedOut(member_id=drawn) if (
                drawn in self._drawn_ids
            ):
                self._number_drawn_id(drawn)
            case events.MemberJoined(member_type="classic"):
                self._number_id(event.member_id, event.group_instance_id or name)
            case events.StaticMemberReplaced():
                self._number_id(event.member_id, event.group_instance_id)
            case events.MemberRemoved() | events.PendingMemberRemoved():
                self._names.on_member_removed(event.member_id)

    def _number_id(self, member_id: str, prefix: str) -> None:
        found = _UUID.search(member_id)
        if found is not None and found[0] not in self._short_ids:
            self._short_ids[found[0]] = (member_id, f"{prefix or OUTSIDE}-{len(self._short_ids) + 1}")

    def _number_drawn_id(self, member_id: str) -> None:
        if not self._drawn_ids[member_id]:
            number = str(len(self._short_ids) + 1)
            self._drawn_ids[member_id] = short = random_uuid(lambda: number)
            self._short_ids[member_id] = (member_id, short)

    def _member(self, member_id: str) -> str:
        name = self._names.name_of(member_id)
        return name if name is not None else f"id:{self._shortened(member_id)}"

    def _shortened(self, text: str) -> str:
        for uuid in dict.fromkeys(_UUID.findall(text)):
            if uuid in self._short_ids:
                member_id, short = self._short_ids[uuid]
                text = text.replace(member_id, short)
        for member_id, short in self._drawn_ids.items():
            text = text.replace(member_id, short or member_id)
        return text

    def _group_in(self, partition: int) -> str:
        """A group of an offsets partition: one that was seen, or a name that falls there."""
        seen = self._seen_groups.get(partition)
        count = self._settings.offsets_topic_num_partitions
        if partition_for(self._group, count) == partition:
            return self._group
        return seen or next(name for n in range(10**6) if partition_for(name := f"g{n}", count) == partition)


def _makes_noise(command: str) -> bool:
    return not command.startswith(("group ", "set ", "acl ")) and " principal " not in command


def _written(block: DraftBlock) -> list[str]:
    only_comments = all(command.startswith("#") for command in block.commands)
    return block.commands if only_comments else [*block.commands, RULE, *block.out]


def write_transcript(
    steps: Sequence[Step], settings: Settings, began_at: Millis, since: int, group_id: str | None, claim: str
) -> str:
    """All steps as a transcript that shows those behind a mark."""
    return TranscriptWriter(settings, began_at, since, group_id).write(steps, claim)
