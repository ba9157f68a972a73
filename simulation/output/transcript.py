"""Records the requests of a run as a transcript that can be played again.

A transcript has one node, which stands for all those that led its group's offsets partition one after the other, and
names its members a, b, c. It leaves out requests to nodes that did not lead, and heartbeats that changed nothing, as
long as the member could not have lost its session without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

from rejoin.coordinator.core.effects import Append, Effect, Reply
from rejoin.coordinator.core.inputs import Elapsed, Elected, Input, LogRead, Received, Stored
from rejoin.journal.events.coordinator import MemberIdHandedOut, MemberJoined, MemberRemoved, StaticMemberReplaced
from rejoin.journal.timeline_lines import short
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest
from rejoin.protocol.types import LogPartition
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.disk import key_of
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange
from rejoin.transcript.grammar.base import RequestCommand, Scope
from rejoin.transcript.grammar.table import BEAT, BY_REQUEST, JOIN, LEAVE
from rejoin.transcript.members import MemberContext

if TYPE_CHECKING:
    from rejoin.simulation.search.observations import Violation
    from rejoin.simulation.simulation import Simulation

MISBEHAVING: Final = "misbehaving"
_BLOCK_MS: Final = 2_000
"""After this time without a command a new block begins."""

_MAY_BE_COMMITS: Final = ("commit", "log", "memory", "core", "answered")
"""Words in the names of checks that commits may break; transcripts of other violations leave commits out."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class TranscriptLine:
    """A command. One that is not ``kept`` is left out.

    ``still_since``: a timer of the node was due and had not fired; this is when the node took its last input.
    """

    at: Millis
    text: str
    still_since: Millis | None = None
    about_offsets: bool = False
    kept: bool = True


class GroupTranscript(Watcher):
    """Watches the nodes of a simulation and keeps the commands of one group."""

    def __init__(self, simulation: Simulation, group_id: str) -> None:
        self.simulation = simulation
        self.group_id = group_id
        self.partition = simulation.cluster.partition_of(self.group_id)
        self.lines: list[TranscriptLine] = []
        self._letters: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        """By member id: the letter of the member that it was handed to last."""
        self._members: dict[str, MemberContext] = {}
        self._pretty: dict[str, tuple[str, str]] = {}
        """By the UUID in it: a member id and the one that a transcript has for it."""
        self._beats: dict[str, tuple[Millis, TranscriptLine]] = {}
        """By member: when the last heartbeat was that is kept, and the last one that may be left out."""
        self._appends: list[tuple[int, int, bool]] = []
        self._written: set[tuple[LogPartition, int, int]] = set()
        self._topics = {name: topic.partitions for name, topic in simulation.scenario.topics.items()}
        self._leader: tuple[NodeActor, int] | None = None
        self._led_at: Millis = 0
        self._led_before: Millis = 0
        self._overdue = False
        simulation.disk.on_append.append(self._wrote)
        for node in simulation.cluster.nodes:
            node.watchers.append(self)

    def leads(self, node: NodeActor) -> bool:
        """Whether the transcript's node is this one by now."""
        return self._leader == (node, node.incarnation)

    def before(self, node: NodeActor, what: Input) -> None:
        """Note whether a timer is late: because the node was paused, or because an input won over it."""
        if self.leads(node) and node.core is not None:
            due = node.core.next_deadline()
            now = self.simulation.world.now
            self._overdue = due is not None and (due < now if isinstance(what, Elapsed) else due <= now)

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        """Turn a step into commands, and take over what its answers say."""
        if isinstance(what, Received) and isinstance(what.request, CreatePartitionsRequest):
            self._see_topics()
        elif isinstance(what, Elected) and what.partition == self.partition:
            self._elected(node)
        elif self.leads(node):
            self._led(what, effects)

    def _elected(self, node: NodeActor) -> None:
        if not self.leads(node):
            # One node stands for all: it resigns after the old leader's last step, and loads the log as the new one.
            self.lines.append(TranscriptLine(self._led_at, "resign writing" if self._appends else "resign"))
            self.lines += [TranscriptLine(self._led_at, self._ended(*append[:2])) for append in self._appends]
            self._appends.clear()
            self._see_topics()
        self._add("elect hold")
        self._leader = (node, node.incarnation)
        self._led_at = self.simulation.world.now

    def _led(self, what: Input, effects: list[Effect]) -> None:
        self._led_before, self._led_at = self._led_at, self.simulation.world.now
        text = self._command(what, effects)
        about_offsets = isinstance(what, Received) and isinstance(what.request, OffsetCommitRequest)
        if text is not None:
            self._add(text, about_offsets)
        elif isinstance(what, Elapsed) and self._overdue:
            self._add("")
        for effect in effects:
            match effect:
                case Append() if text is not None or self._is_ours(effect):
                    self._appends.append((effect.epoch, effect.append_id, about_offsets))
                case MemberIdHandedOut() | MemberJoined() | StaticMemberReplaced() if effect.group_id == self.group_id:
                    self._made(what, effect.member_id, getattr(effect, "group_instance_id", None))
                case MemberRemoved() if effect.group_id == self.group_id:
                    beat = self._beats.pop(self._owners.get(effect.member_id, MISBEHAVING), None)
                    if beat is not None:
                        beat[1].kept = True
                case Reply(token=Exchange() as exchange, response=JoinGroupResponse() as answer):
                    if isinstance(exchange.request, JoinGroupRequest) and exchange.request.group_id == self.group_id:
                        name = self._letter(exchange.connection.client.name)
                        self._members[name].on_join_response(answer)
                        self._owners[answer.member_id] = name
                case _:
                    pass

    def _see_topics(self) -> None:
        """Record which topics have grown or are gone; a node that was down learns of it when it starts again."""
        for name, topic in self.simulation.cluster.topics.items():
            if topic.is_gone:
                if self._topics.pop(name, None) is not None:
                    self._add(f"topic {name} gone")
            elif len(topic.partitions) > self._topics[name]:
                self._topics[name] = len(topic.partitions)
                self._add(f"topic {name} to {self._topics[name]}")

    def _ended(self, epoch: int, append_id: int) -> str:
        """Outcome of an append whose node was gone when it ended."""
        written = (self.partition, epoch, append_id) in self._written
        return "stored" if written else f"stored {ErrorCode.NOT_LEADER_OR_FOLLOWER.name}"

    def _wrote(self, append: Append) -> None:
        self._written.add((append.partition, append.epoch, append.append_id))

    def _is_ours(self, append: Append) -> bool:
        return any(key_of(record)[:1] == (self.group_id,) for record in append.records)

    def _add(self, text: str, about_offsets: bool = False) -> TranscriptLine:
        line = TranscriptLine(
            self.simulation.world.now, text, self._led_before if self._overdue else None, about_offsets
        )
        self.lines.append(line)
        self._overdue = False
        return line

    # -- the whole

    def text(self, violation: Violation | None) -> str:
        """The transcript: its claim, its settings, and the commands in blocks, which say nothing of what comes out."""
        for _, beat in self._beats.values():
            beat.kept = True
        about_offsets = violation is None or any(word in violation.check for word in _MAY_BE_COMMITS)
        lines = [short(f"# {violation or 'Nothing was found.'}"), "", *self._beginning(), "log hold", ""]
        at: Millis = 0
        lines_in_order = sorted(self.lines, key=lambda line: line.at)
        for line in lines_in_order[_loaded_at_once(lines_in_order) :]:
            if not line.kept or (line.about_offsets and not about_offsets):
                continue
            if line.at - at >= _BLOCK_MS:
                lines += [""] if lines[-1] else []
            still = line.still_since is not None and line.at > at
            if still and line.still_since is not None:
                if line.still_since > at:
                    lines.append(f"advance {line.still_since - at}")
                    at = line.still_since
                lines.append("pause")
            if line.at > at:
                lines.append(f"advance {line.at - at}")
                at = line.at
            if still:
                lines.append("resume")
            if line.text:
                lines.append(line.text)
        if violation is not None:
            # At least a moment, for what is due at once.
            lines.append(f"advance {max(1, violation.at - at)}")
        return "\n".join(lines if lines[-1] else lines[:-1]) + "\n"

    def _beginning(self) -> Iterator[str]:
        """Settings, topics, and what each member joins with."""
        scenario = self.simulation.scenario
        if scenario.coordinator.settings:
            yield "set " + " ".join(f"{name}={value}" for name, value in scenario.coordinator.settings.items())
        for name, topic in scenario.topics.items():
            yield f"topic {name} {topic.partitions}"
        yield f"group {self.group_id}"
        for client, letter in self._letters.items():
            options = self._joins_with(client, letter).options
            yield " ".join([letter, "is", *(f"{key}={value}" for key, value in options.items())])

    # -- names

    def _letter(self, client: str) -> str:
        if client not in self._letters:
            count = len(self._letters)
            letter = ascii_lowercase[count % 26] * (1 + count // 26)
            self._letters[client] = letter
            self._members[letter] = self._joins_with(client, letter)
        return self._letters[client]

    def _joins_with(self, client: str, letter: str) -> MemberContext:
        """A member with the options that the transcript begins with."""
        group = self.simulation.scenario.groups[self.group_id]
        options = {"session": str(group.session_timeout), "rebalance": str(group.max_poll_interval)}
        # A free client is no consumer: it says its instance id, or not, in each request.
        consumer = self.simulation.consumers.get(client)
        if consumer is not None and consumer.config.group_instance_id is not None:
            options["instance"] = consumer.config.group_instance_id
        return MemberContext(name=letter, options=options)

    def _made(self, what: Input, member_id: str, instance_id: str | None) -> None:
        """Count ids as they are made, as the player of transcripts does."""
        found = _UUID.search(member_id)
        if found is None or found[0] in self._pretty:
            return
        asked = isinstance(what, Received) and isinstance(what.token, Exchange)
        prefix = instance_id or (self._letter(what.token.connection.client.name) if asked else MISBEHAVING)  # type: ignore[union-attr]
        self._pretty[found[0]] = (member_id, f"{prefix}-{len(self._pretty) + 1}")

    def pretty(self, text: str) -> str:
        """A text with the member ids that the transcript has."""
        for uuid in dict.fromkeys(_UUID.findall(text)):
            if uuid in self._pretty:
                text = text.replace(*self._pretty[uuid])
        return text

    # -- commands

    def _command(self, what: Input, effects: list[Effect]) -> str | None:
        match what:
            case Stored() if what.partition == self.partition:
                return self._stored(what)
            case LogRead() if what.partition == self.partition and what.end:
                return "load"
            case Received() if isinstance(what.token, Exchange):
                request: Any = what.request
                if getattr(request, "group_id", None) != self.group_id:
                    return None
                if what.token.serial >= 0:
                    name = self._letter(what.token.connection.client.name)
                else:
                    name = self._owners.get(request.member_id, MISBEHAVING)
                return self._request(name, request, what.context.api_version, effects)
        return None

    def _stored(self, what: Stored) -> str | None:
        for index, (epoch, append_id, about_offsets) in enumerate(self._appends):
            if (epoch, append_id) == (what.epoch, what.append_id):
                del self._appends[index]
                text = "stored" if what.error is ErrorCode.NONE else f"stored {what.error.name}"
                if not about_offsets:
                    return text
                self._add(text, about_offsets=True)
                return None
        return None

    def _request(self, name: str, request: Any, version: int, effects: list[Effect]) -> str | None:
        match request:
            case JoinGroupRequest():
                member = self._member(name)
                restarts = not request.member_id and bool(member.member_id)
                if restarts:
                    member.forget()
                return self._command_text(JOIN, "restarts" if restarts else JOIN.verb, member, request, version)
            case HeartbeatRequest():
                return self._beat(name, request, version, effects)
            case SyncGroupRequest() | OffsetCommitRequest() | LeaveGroupRequest(members=(_,)):
                command = LEAVE if isinstance(request, LeaveGroupRequest) else BY_REQUEST[type(request)]
                return self._command_text(command, command.verb, self._member(name), request, version)
            case _:
                return None

    def _command_text(
        self, command: RequestCommand, verb: str, member: MemberContext, request: Request, version: int
    ) -> str:
        words = command.write(request, version, Scope(self.group_id, member, self))
        return self.pretty(" ".join([member.name, verb, *words]))

    def _beat(self, name: str, request: HeartbeatRequest, version: int, effects: list[Effect]) -> str | None:
        text = self._command_text(BEAT, BEAT.verb, self._member(name), request, version)
        fine = any(
            isinstance(effect, Reply)
            and isinstance(effect.response, HeartbeatResponse)
            and effect.response.error_code is ErrorCode.NONE
            for effect in effects
        )
        if not fine or text != f"{name} {BEAT.verb}":
            return text
        now = self.simulation.world.now
        kept_at, last = self._beats.get(name, (0, None))
        if last is not None and now - kept_at >= self.simulation.scenario.groups[self.group_id].session_timeout // 2:
            last.kept = True
            kept_at = last.at
        line = self._add(text)
        line.kept = False
        self._beats[name] = (kept_at, line)
        return None

    # -- members, as the grammar asks for them

    def named(self, name: str) -> MemberContext:
        """The member of this name."""
        return self._members[name]

    def name_of(self, member_id: str) -> str | None:
        """The name of the member with this id."""
        name = self._owners.get(member_id)
        return name if name is not None and self._members[name].member_id == member_id else None

    def _member(self, name: str) -> MemberContext:
        return self._members.get(name) or MemberContext(name=name)


def _loaded_at_once(lines: list[TranscriptLine]) -> int:
    """How many lines at the beginning only load the log before the first request."""
    return 3 if [line.text for line in lines[:3]] == ["resign", "elect hold", "load"] else 0
