"""The commands that are requests about groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.transcript.grammar.base import (
    GENERATION,
    ID,
    INSTANCE,
    REASON,
    Option,
    RequestCommand,
    Scope,
    always,
    kept,
    plain,
    stays,
    version_option,
    written_member,
)
from rejoin.transcript.grammar.words import (
    BadWord,
    NotExpressible,
    read_assignment,
    read_nullable,
    read_number,
    read_protocols,
    write_assignment,
    write_protocols,
    write_word,
)
from rejoin.transcript.members import MemberContext


class JoinCommand(RequestCommand):
    """A JoinGroup. Its options stay with the member, but for the id and the reason."""

    verb = "join"
    usage = (
        "NAME join [v=9] [instance=I] [session=10000] [rebalance=60000] [protocols=range:t+u,sticky:t] [type=T] "
        "[id=ID] [reason=R]"
    )
    does = (
        "join; options other than id and reason stay for later joins; protocols=range sends unreadable metadata, "
        "range:t/2 other bytes than range:t for the same topics, and none an empty list; in a reason, _ is a space and "
        "__ an underscore"
    )
    messages = (JoinGroupRequest,)
    version = 9
    options = (
        ID,
        Option("v", "version", read_number, plain, kept("v", "9"), stays=True),
        stays("session", "session_timeout_ms", "10000", read_number),
        stays("rebalance", "rebalance_timeout_ms", "60000", read_number, since=1),
        Option("protocols", "protocols", read_protocols, write_protocols, kept("protocols", "range:t"), stays=True),
        stays("type", "protocol_type", "consumer"),
        stays("instance", "group_instance_id", "", read_nullable),
        REASON,
    )

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        if version == 0:
            values["rebalance_timeout_ms"] = -1
        return super().build(values, rest, version, scope)


class SyncCommand(RequestCommand):
    """A SyncGroup; the leader's gives assignments, to members by their names or ids."""

    verb = "sync"
    usage = (
        "NAME sync [v=5] [id=ID] [generation=N] [protocol=P] [type=T] [instance=I] [give NAME=t:0,1+u:2 id:ID=- ...]"
    )
    does = "a SyncGroup; give is the leader's assignment, and - an assignment of nothing"
    messages = (SyncGroupRequest,)
    version = 5
    options = (
        ID,
        GENERATION,
        version_option(5),
        Option("protocol", "protocol_name", read_nullable, plain, lambda member: member.protocol or "range", since=5),
        Option("type", "protocol_type", read_nullable, plain, kept("type", "consumer"), since=5),
        INSTANCE,
    )

    def split(self, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        at = words.index("give") if "give" in words else len(words)
        given, rest = super().split(words[:at])
        self.expect_no(rest)
        return given, list(words[at + 1 :])

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        assignments = []
        for word in rest:
            name, equals, share = word.partition("=")
            if not equals:
                raise BadWord(f"expected NAME=PARTITIONS behind give, not {word!r}")
            member_id = name.removeprefix("id:") if name.startswith("id:") else scope.members.named(name).member_id
            assignments.append(SyncGroupRequestAssignment(member_id=member_id, assignment=read_assignment(share)))
        return SyncGroupRequest(group_id=scope.group_id, **values, assignments=tuple(assignments))

    def write_rest(self, request: SyncGroupRequest, version: int, scope: Scope) -> list[str]:
        shares = [
            f"{written_member(entry.member_id, scope)}={write_assignment(entry.assignment)}"
            for entry in request.assignments
            if entry.assignment
        ]
        return ["give", *shares] if shares else []


class BeatCommand(RequestCommand):
    """A Heartbeat."""

    verb = "beat"
    usage = "NAME beat [id=ID] [generation=N] [instance=I]"
    does = "a heartbeat"
    messages = (HeartbeatRequest,)
    version = 4
    options = (ID, GENERATION, INSTANCE)


class LeaveCommand(RequestCommand):
    """A LeaveGroup of one member."""

    verb = "leave"
    usage = "NAME leave [v=5] [id=ID] [instance=I] [reason=R]"
    does = "one member leaves"
    messages = (LeaveGroupRequest,)
    version = 5
    options = (ID, version_option(5), replace(INSTANCE, since=3), REASON)

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        self.expect_no(rest)
        if version < 3:
            return LeaveGroupRequest(group_id=scope.group_id, member_id=values["member_id"])
        return LeaveGroupRequest(group_id=scope.group_id, members=(MemberIdentity(**values),))

    def values(self, request: LeaveGroupRequest, version: int) -> dict[str, Any]:
        if version < 3:
            return {"member_id": request.member_id, "group_instance_id": None, "reason": None}
        (member,) = request.members
        return {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "reason": member.reason,
        }


class LeaveTogetherCommand(RequestCommand):
    """A LeaveGroup of several members, as a tool sends it."""

    verb = "leave"
    usage = "leave NAME instance:I id:ID ..."
    does = "remove several members at once, as a tool does"
    messages = (LeaveGroupRequest,)
    version = 5
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        identities = []
        for word in rest:
            kind, colon, value = word.partition(":")
            if not colon:
                identities.append(MemberIdentity(member_id=scope.members.named(word).member_id))
            elif kind == "instance":
                identities.append(MemberIdentity(member_id="", group_instance_id=value))
            elif kind == "id":
                identities.append(MemberIdentity(member_id=value))
            else:
                raise BadWord(f"expected NAME, id:ID or instance:INSTANCE, not {word!r}")
        return LeaveGroupRequest(group_id=scope.group_id, members=tuple(identities))

    def write_rest(self, request: LeaveGroupRequest, version: int, scope: Scope) -> list[str]:
        if version < 3:
            raise NotExpressible("a LeaveGroup of an old version, by an unknown member")
        return [
            written_member(each.member_id, scope)
            if each.member_id
            else f"instance:{write_word(each.group_instance_id)}"
            for each in request.members
        ]


def _written_types(types: tuple[str, ...], _: MemberContext) -> str:
    if len(types) > 1:
        raise NotExpressible("several types of groups at once")
    return write_word("".join(types))


class ListCommand(RequestCommand):
    """A ListGroups."""

    verb = "list"
    usage = "list [STATE ...] [types=T]"
    does = "list groups"
    messages = (ListGroupsRequest,)
    version = 5
    options = (Option("types", "types_filter", lambda text: (text,) if text else (), _written_types, always("")),)
    by_member = False
    options_last = True

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        self.expect_no([word for word in rest if "=" in word])
        return ListGroupsRequest(states_filter=tuple(rest), **values)

    def write_rest(self, request: ListGroupsRequest, version: int, scope: Scope) -> list[str]:
        return [write_word(state) for state in request.states_filter]


def write_group_ids(group_ids: Sequence[str]) -> list[str]:
    """The groups that a request names. Raises :class:`NotExpressible` if it names none: that is the current group."""
    if not group_ids:
        raise NotExpressible
    return [write_word(group_id) for group_id in group_ids]


class DescribeCommand(RequestCommand):
    """A DescribeGroups; of the current group unless others are named."""

    verb = "describe"
    usage = "describe [v=5] [ID ...]"
    does = "describe groups"
    messages = (DescribeGroupsRequest,)
    version = 5
    options = (version_option(5),)
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        groups = tuple(rest) or (scope.group_id,)
        return DescribeGroupsRequest(groups=groups, include_authorized_operations=False)

    def write(self, request: DescribeGroupsRequest, version: int, scope: Scope) -> list[str]:
        # From v6 on an unknown group is an error; the others differ in nothing that is shown.
        return super().write(request, max(version, self.version), scope)

    def write_rest(self, request: DescribeGroupsRequest, version: int, scope: Scope) -> list[str]:
        return write_group_ids(request.groups)


class DeleteCommand(RequestCommand):
    """A DeleteGroups."""

    verb = "delete"
    usage = "delete ID ..."
    does = "delete groups"
    messages = (DeleteGroupsRequest,)
    version = 2
    by_member = False

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        return DeleteGroupsRequest(groups_names=tuple(rest))

    def write_rest(self, request: DeleteGroupsRequest, version: int, scope: Scope) -> list[str]:
        return [write_word(group_id) for group_id in request.groups_names]
