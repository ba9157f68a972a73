"""Requests as the commands of a transcript, in the words that are needed beside what a member remembers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from rejoin.coordinator.core.effects import Effect
from rejoin.coordinator.core.groups.classic.member import topics_of
from rejoin.coordinator.core.inputs import Context
from rejoin.journal.events.coordinator import TopicCreated
from rejoin.journal.formatting import OF_COURSE
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest
from rejoin.transcript.remembered import Remembered

OUTSIDE: Final = "admin"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.\-]+")
_TAKEN: Final = frozenset(
    {
        *("admin", "set", "topic", "group", "completing", "stable", "beating", "silence", "advance", "log", "stored"),
        *("resign", "elect", "load", "restart", "look", "timers", "written", "quietly", "leave", "end", "fetch"),
        *("forget", "list", "describe", "delete", "find", "expire"),
    }
)
"""Words that begin a command; no member may have such a name."""

_DEFAULTS: Final = {"v": "9", "session": "10000", "rebalance": "60000", "protocols": "range:t", "type": "consumer"}


class CannotTell(Exception):
    """A request that a transcript has no command for. Without a text it is of no consequence either."""


class Command(NamedTuple):
    """A command, the group it is about, and the name that its answer begins with."""

    text: str
    group: str | None = None
    name: str = OUTSIDE
    is_silent: bool = False


@dataclass(slots=True)
class Known(Remembered):
    """A member as the player of the transcript will know it."""

    name: str
    client_id: str
    group_id: str
    instance: str | None
    is_gone: bool = False
    options: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, tuple[bytes, str]] = field(default_factory=dict)


class Commands:
    """Writes commands, and remembers what the player will remember."""

    def __init__(self, next_number: Callable[[], int]) -> None:
        self._next_number = next_number
        self._known: dict[str, Known] = {}
        self._owners: dict[str, Known] = {}
        self._tellers: dict[type[Request], Callable[[Any, Context, Sequence[Effect]], Command]] = {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._beat,
            LeaveGroupRequest: self._leave,
            OffsetCommitRequest: self._commit,
            TxnOffsetCommitRequest: self._txn,
            WriteTxnMarkersRequest: self._end,
            OffsetFetchRequest: self._fetch,
            OffsetDeleteRequest: self._forget,
            ListGroupsRequest: self._list,
            DescribeGroupsRequest: self._describe,
            DeleteGroupsRequest: self._delete,
            CreateTopicsRequest: self._create_topics,
            CreatePartitionsRequest: self._create_partitions,
            DeleteTopicsRequest: self._delete_topics,
        }

    def of(self, request: Request, who: Context, effects: Sequence[Effect]) -> Command:
        """The command that says this request. Raises :class:`CannotTell`."""
        teller = self._tellers.get(type(request))
        if teller is None:
            raise CannotTell
        command = teller(request, who, effects)
        if command.group is not None and (not command.group or command.group != "".join(command.group.split())):
            raise CannotTell(f"the group id {command.group!r} cannot be a word")
        return command

    def name_of(self, request: Request, who: Context) -> str:
        """Who asks, for people; nobody new is remembered by that."""
        owner = self._owners.get(getattr(request, "member_id", ""))
        if owner is not None:
            return owner.name
        return next(
            (each.name for each in self._known.values() if each.client_id == who.client_id), who.client_id or OUTSIDE
        )

    def owner_of(self, member_id: str) -> str | None:
        """The name of the member with this id."""
        owner = self._owners.get(member_id)
        return owner.name if owner is not None and owner.member_id == member_id else None

    def remember(self, name: str, answer: JoinGroupResponse) -> None:
        """What the player remembers of a JoinGroup's answer."""
        known = self._known.get(name)
        if known is None:
            return
        known.remember(answer)
        if known.member_id:
            known.is_gone = False
            self._owners[known.member_id] = known

    def gone(self, member_id: str) -> None:
        """A member is out; whoever joins next under its client id may be the same."""
        owner = self._owners.get(member_id)
        if owner is not None:
            owner.is_gone = True

    # --- who

    def _new(self, who: Context, group_id: str, instance: str | None) -> Known:
        base = name = "-".join(_PLAIN.findall(who.client_id)) or "member"
        # Numbered as the ids are: timers of one instant fire in the order of ids, here and where this is replayed.
        number = self._next_number()
        while name in self._known or name in _TAKEN:
            name = f"{base}.{number}"
            number += 1
        known = Known(name, who.client_id, group_id, instance)
        self._known[name] = known
        return known

    def _who(self, member_id: str, instance: str | None, who: Context, group_id: str) -> Known:
        owner = self._owners.get(member_id)
        if owner is not None and owner.group_id == group_id and owner.instance == instance:
            return owner
        for known in self._known.values():
            if (known.client_id, known.group_id, known.instance) == (who.client_id, group_id, instance):
                return known
        return self._new(who, group_id, instance)

    def _who_joins(self, request: JoinGroupRequest, who: Context) -> Known:
        if request.member_id:
            return self._who(request.member_id, request.group_instance_id, who, request.group_id)
        namesakes = [
            known
            for known in self._known.values()
            if (known.client_id, known.group_id, known.instance)
            == (who.client_id, request.group_id, request.group_instance_id)
        ]
        if len(namesakes) == 1:
            (known,) = namesakes
            if known.instance is not None or known.is_gone or not known.member_id:
                return known
        return self._new(who, request.group_id, request.group_instance_id)

    @staticmethod
    def _identity(known: Known, member_id: str, generation: int | None = None) -> list[str]:
        words = [] if member_id == known.member_id else [f"id={_word(member_id)}"]
        if generation is not None and generation != known.generation:
            words.append(f"generation={generation}")
        return words

    # --- members

    def _join(self, request: JoinGroupRequest, who: Context, _: Sequence[Effect]) -> Command:
        known = self._who_joins(request, who)
        verb, words = "join", []
        if not request.member_id and known.member_id:
            verb = "restarts"
            known.member_id, known.generation = "", -1
        else:
            words = self._identity(known, request.member_id)
        now = {
            "v": str(who.api_version),
            "session": str(request.session_timeout_ms),
            "rebalance": str(request.rebalance_timeout_ms),
            "protocols": self._protocols(known, request.protocols),
            "type": _word(request.protocol_type) or "",
        }
        if request.group_instance_id is not None:
            now["instance"] = _word(request.group_instance_id)
        if who.api_version == 0:
            del now["rebalance"]
        changed = {key: value for key, value in now.items() if value != known.options.get(key, _DEFAULTS.get(key))}
        known.options |= changed
        words += [f"{key}={value}" for key, value in changed.items()]
        words += _reason(request.reason)
        return Command(" ".join([known.name, verb, *words]), request.group_id, known.name)

    @staticmethod
    def _protocols(known: Known, protocols: Iterable[JoinGroupRequestProtocol]) -> str:
        """Names with topics. Metadata that differs in what is not told has its last topic twice, or once again."""
        written = []
        for protocol in protocols:
            topics = topics_of(protocol.metadata)
            text = protocol.name if not topics else f"{protocol.name}:{'+'.join(topics)}"
            before = known.metadata.get(protocol.name)
            if before is not None and topics and before[0] != protocol.metadata and before[1] == text:
                text = f"{text}+{topics[-1]}"
            elif before is not None and before[0] == protocol.metadata:
                text = before[1]
            known.metadata[protocol.name] = (protocol.metadata, text)
            written.append(_word(text, also=":+"))
        return ",".join(written) or "none"

    def _sync(self, request: SyncGroupRequest, who: Context, _: Sequence[Effect]) -> Command:
        known = self._who(request.member_id, request.group_instance_id, who, request.group_id)
        words = self._identity(known, request.member_id, request.generation_id)
        if who.api_version != 5:
            words.append(f"v={who.api_version}")
        else:
            if request.protocol_name != (known.protocol or "range"):
                words.append(f"protocol={_word(request.protocol_name or '')}")
            if request.protocol_type != known.options.get("type", "consumer"):
                words.append(f"type={_word(request.protocol_type or '')}")
        shares = []
        for entry in request.assignments:
            if entry.assignment:
                owner = self.owner_of(entry.member_id)
                shares.append(f"{owner or 'id:' + _word(entry.member_id)}={_assignment(entry.assignment)}")
        if shares:
            words += ["give", *shares]
        return Command(" ".join([known.name, "sync", *words]), request.group_id, known.name)

    def _beat(self, request: HeartbeatRequest, who: Context, _: Sequence[Effect]) -> Command:
        known = self._who(request.member_id, request.group_instance_id, who, request.group_id)
        words = self._identity(known, request.member_id, request.generation_id)
        return Command(" ".join([known.name, "beat", *words]), request.group_id, known.name)

    def _leave(self, request: LeaveGroupRequest, who: Context, _: Sequence[Effect]) -> Command:
        single = request.members[0] if who.api_version >= 3 and len(request.members) == 1 else None
        member_id = request.member_id if who.api_version < 3 else single.member_id if single is not None else ""
        owner = self._owners.get(member_id)
        itself = owner is not None and (owner.client_id, owner.group_id) == (who.client_id, request.group_id)
        if single is not None and (itself or single.reason):
            owner = self._who(member_id, single.group_instance_id, who, request.group_id)
            itself = True
        if owner is not None and itself:
            words = self._identity(owner, member_id)
            if who.api_version != 5:
                words.append(f"v={who.api_version}")
            if single is not None:
                words += _reason(single.reason)
            return Command(" ".join([owner.name, "leave", *words]), request.group_id, owner.name)
        if who.api_version < 3:
            raise CannotTell("a LeaveGroup of an old version, by somebody unknown")
        whom = []
        for identity in request.members:
            name = self.owner_of(identity.member_id)
            if name is not None:
                whom.append(name)
            elif identity.member_id:
                whom.append(f"id:{_word(identity.member_id)}")
            else:
                whom.append(f"instance:{_word(identity.group_instance_id or '')}")
        return Command(" ".join(["leave", *whom]), request.group_id)

    # --- offsets

    def _commit(self, request: OffsetCommitRequest, who: Context, _: Sequence[Effect]) -> Command:
        words = [
            f"{topic.name}:{part.partition_index}={part.committed_offset}{_length(part.committed_metadata)}"
            for topic in request.topics
            for part in topic.partitions
        ]
        generation = request.generation_id_or_member_epoch
        if not request.member_id and generation == -1:
            name = OUTSIDE
        else:
            known = self._who(request.member_id, request.group_instance_id, who, request.group_id)
            name = known.name
            words += self._identity(known, request.member_id, generation)
        if who.api_version != 9:
            words.append(f"v={who.api_version}")
        if request.retention_time_ms != -1:
            words.append(f"retention={request.retention_time_ms}")
        return Command(" ".join([name, "commit", *words]), request.group_id, name)

    def _txn(self, request: TxnOffsetCommitRequest, who: Context, _: Sequence[Effect]) -> Command:
        words = [
            f"{topic.name}:{part.partition_index}={part.committed_offset}{_length(part.committed_metadata)}"
            for topic in request.topics
            for part in topic.partitions
        ]
        words.append(f"producer={request.producer_id}")
        if not request.member_id and request.generation_id == -1:
            name = OUTSIDE
        else:
            known = self._who(request.member_id, request.group_instance_id, who, request.group_id)
            name = known.name
            words += self._identity(known, request.member_id, request.generation_id)
        if who.api_version != 5:
            words.append(f"v={who.api_version}")
        return Command(" ".join([name, "txn", *words]), request.group_id, name)

    @staticmethod
    def _end(request: WriteTxnMarkersRequest, _: Context, __: Sequence[Effect]) -> Command:
        raise CannotTell("markers are for offsets partitions, and a transcript's are for a group's own")

    @staticmethod
    def _fetch(request: OffsetFetchRequest, who: Context, _: Sequence[Effect]) -> Command:
        if who.api_version >= 8:
            if len(request.groups) != 1:
                raise CannotTell("offsets of several groups at once")
            group_id, topics = request.groups[0].group_id, cast(Any, request.groups[0].topics)
        else:
            group_id, topics = request.group_id, cast(Any, request.topics)
        words = ["fetch", *(["stable"] if request.require_stable else []), *(["all"] if topics is None else [])]
        words += [f"{topic.name}:{index}" for topic in topics or () for index in topic.partition_indexes]
        return Command(" ".join(words), group_id)

    @staticmethod
    def _forget(request: OffsetDeleteRequest, _: Context, __: Sequence[Effect]) -> Command:
        words = [f"{topic.name}:{part.partition_index}" for topic in request.topics for part in topic.partitions]
        return Command(" ".join(["forget", *words]), request.group_id)

    # --- administration

    @staticmethod
    def _list(request: ListGroupsRequest, _: Context, __: Sequence[Effect]) -> Command:
        types = [f"types={_word(each)}" for each in request.types_filter[:1]]
        return Command(" ".join(["list", *map(_word, request.states_filter), *types]))

    @staticmethod
    def _describe(request: DescribeGroupsRequest, context: Context, _: Sequence[Effect]) -> Command:
        if not request.groups:
            raise CannotTell
        # From v6 on an unknown group is an error.
        version = [f"v={context.api_version}"] if context.api_version >= 6 else []
        return Command(" ".join(["describe", *version, *map(_word, request.groups)]))

    @staticmethod
    def _delete(request: DeleteGroupsRequest, _: Context, __: Sequence[Effect]) -> Command:
        return Command(" ".join(["delete", *map(_word, request.groups_names)]))

    @staticmethod
    def _create_topics(request: CreateTopicsRequest, _: Context, effects: Sequence[Effect]) -> Command:
        made = [event for event in effects if isinstance(event, TopicCreated)]
        if len(made) != 1:
            raise CannotTell("" if made or not request.topics else "no topic was created")
        return Command(f"topic {made[0].topic} {made[0].partitions}", is_silent=True)

    @staticmethod
    def _create_partitions(request: CreatePartitionsRequest, _: Context, __: Sequence[Effect]) -> Command:
        if len(request.topics) != 1 or request.validate_only:
            raise CannotTell("several topics at once, or only validated")
        return Command(f"topic {_word(request.topics[0].name)} to {request.topics[0].count}")

    @staticmethod
    def _delete_topics(request: DeleteTopicsRequest, who: Context, _: Sequence[Effect]) -> Command:
        names = [topic.name for topic in request.topics] if who.api_version >= 6 else list(request.topic_names)
        if len(names) != 1 or names[0] is None:
            raise CannotTell("several topics at once, or by their ids")
        return Command(f"topic {_word(names[0])} gone")


# --- words


def _word(text: str, also: str = "") -> str:
    """A text that can be one word of a command. Raises :class:`CannotTell` for others."""
    if any(sign.isspace() or (sign in "=,+:" and sign not in also) for sign in text):
        raise CannotTell(f"{text[:60]!r} cannot be a word")
    return text


def _reason(reason: str | None) -> list[str]:
    """What the client said, with underscores for spaces; not what everybody says who comes back with its id."""
    if not reason or reason.startswith(OF_COURSE):
        return []
    return [f"reason={'_'.join(reason.split())}"]


def _length(metadata: str | None) -> str:
    return f"/{len(metadata)}" if metadata else ""


def _assignment(data: bytes) -> str:
    try:
        partitions = decode_assignment(data).partitions
    except ValueError:
        raise CannotTell("an assignment that cannot be read") from None
    topics: dict[str, list[str]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(str(index))
    return "+".join(f"{topic}:{','.join(indexes)}" for topic, indexes in topics.items()) or "-"
