"""Every command of the language, by its verb and by its request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from rejoin.protocol.message import Request
from rejoin.transcript.grammar import consumer_groups, groups, offsets, share_groups, streams_groups, topics
from rejoin.transcript.grammar.base import OUTSIDE, RequestCommand

JOIN: Final = groups.JoinCommand()
SYNC: Final = groups.SyncCommand()
BEAT: Final = groups.BeatCommand()
LEAVE: Final = groups.LeaveCommand()
LEAVE_TOGETHER: Final = groups.LeaveTogetherCommand()
HEARTBEAT: Final = consumer_groups.HeartbeatCommand()
DESCRIBE_CONSUMERS: Final = consumer_groups.DescribeConsumersCommand()
COMMIT: Final = offsets.CommitCommand()
TXN: Final = offsets.TxnCommand()
END: Final = offsets.EndCommand()
FETCH: Final = offsets.FetchCommand()
FORGET: Final = offsets.ForgetCommand()
LIST: Final = groups.ListCommand()
DESCRIBE: Final = groups.DescribeCommand()
DELETE: Final = groups.DeleteCommand()
CREATE_TOPIC: Final = topics.CreateTopicCommand()
GROW_TOPIC: Final = topics.GrowTopicCommand()
DELETE_TOPIC: Final = topics.DeleteTopicCommand()
SHARE_HEARTBEAT: Final = share_groups.ShareHeartbeatCommand()
SHARE_FETCH: Final = share_groups.ShareFetchCommand()
ACKNOWLEDGE: Final = share_groups.AcknowledgeCommand()
DESCRIBE_SHARE_GROUPS: Final = share_groups.DescribeShareGroupsCommand()
SHARE_OFFSETS: Final = share_groups.DescribeShareOffsetsCommand()
ALTER_SHARE_OFFSETS: Final = share_groups.AlterShareOffsetsCommand()
DELETE_SHARE_OFFSETS: Final = share_groups.DeleteShareOffsetsCommand()
STREAMS_HEARTBEAT: Final = streams_groups.StreamsHeartbeatCommand()
DESCRIBE_STREAMS: Final = streams_groups.DescribeStreamsCommand()
TOPOLOGY_DESCRIPTION: Final = streams_groups.TopologyDescriptionCommand()
PRODUCE: Final = topics.ProduceCommand()
CONFIGS: Final = topics.ConfigsCommand()
FIND: Final = topics.FindCommand()

REQUESTS: Final[tuple[RequestCommand, ...]] = (
    *(CREATE_TOPIC, GROW_TOPIC, DELETE_TOPIC),
    *(JOIN, SYNC, BEAT, LEAVE, LEAVE_TOGETHER, HEARTBEAT),
    *(COMMIT, TXN, END, FETCH, FORGET),
    *(SHARE_HEARTBEAT, SHARE_FETCH, ACKNOWLEDGE, SHARE_OFFSETS, ALTER_SHARE_OFFSETS, DELETE_SHARE_OFFSETS),
    *(STREAMS_HEARTBEAT, DESCRIBE_STREAMS, TOPOLOGY_DESCRIPTION),
    *(PRODUCE, CONFIGS),
    *(LIST, DESCRIBE, DESCRIBE_CONSUMERS, DESCRIBE_SHARE_GROUPS, DELETE, FIND),
)

MEMBER_REQUESTS: Final = {command.verb: command for command in REQUESTS if command.by_member}
ADMIN_REQUESTS: Final = {command.verb: command for command in REQUESTS if not command.by_member}
"""Without the topic commands, which share a verb: see :func:`topic_command`."""

BY_REQUEST: Final[dict[type[Request], RequestCommand]] = {
    message: command for command in REQUESTS if command is not FIND for message in command.messages
}
"""The command that says a request. A LeaveGroup of one member may be a :data:`LEAVE`, too."""


def topic_command(words: list[str]) -> RequestCommand:
    """The one of the three ``topic`` commands that these words are."""
    if words[1:2] == ["gone"]:
        return DELETE_TOPIC
    return GROW_TOPIC if words[1:2] == ["to"] else CREATE_TOPIC


class Directive(NamedTuple):
    """A command that is not a request."""

    usage: str
    does: str


DIRECTIVES: Final = {
    "set": Directive("set KEY=VALUE ...", "settings, before anything else"),
    "topic": Directive(
        "topic NAME COUNT [ID] [CONFIG=VALUE ...] | NAME to COUNT | NAME gone", "create a topic, let it grow, delete it"
    ),
    "acl": Directive(
        "acl [gone] [deny] PRINCIPAL:OPERATION:KIND=NAME", "an administrator creates an ACL or deletes it, silently"
    ),
    "group": Directive("group ID", "choose the group of the commands that follow; at first it is g"),
    "completing": Directive(
        "completing NAME ...", "these members join, silently, until the group is CompletingRebalance"
    ),
    "stable": Directive("stable NAME=t:0,1 ...", "these members join and sync, silently, until the group is Stable"),
    "beating": Directive("beating NAME ...", "these members send a heartbeat every 3 s from now on"),
    "silence": Directive("silence NAME ...", "these members stop their heartbeats"),
    "advance": Directive("advance MS | advance to=session|join|sync|append|expiry", "let time pass"),
    "pause": Directive("pause", "the node stands still: its timers do not fire"),
    "resume": Directive("resume", "end a pause; due timers fire with the next command that takes time"),
    "log": Directive("log ok | hold | fail=ERROR", "choose how appends end: stored, pending, or with an error"),
    "stored": Directive("stored [ERROR]", "end the oldest pending append"),
    "resign": Directive(
        "resign [writing]",
        "lose the group's offsets partition; with writing, pending appends may still get into the log",
    ),
    "elect": Directive("elect [hold]", "lead the group's offsets partition; hold keeps its log from being read"),
    "load": Directive("load", "end the pending read of the log"),
    "restart": Directive("restart [KEY=VALUE ...]", "another node, perhaps with other settings, takes over the log"),
    "expire": Directive("expire NAME | id:ID", "end a member's session now"),
    "disconnect": Directive(
        "disconnect NAME", "the connection by which a member opened its share session is lost, and the session with it"
    ),
    "expire-lock": Directive("expire-lock t:0=4", "end the lock of this record, and of its batch in one state, now"),
    "release": Directive("release t:0=4", "give this record back for the member that holds it"),
    "fail-persister": Directive(
        "fail-persister initialize|read|write|delete|summary [ERROR] [COUNT]",
        "let a request of the group to the share coordinator fail, or so many, or with -1 all; without an answer, "
        "unless an error is given",
    ),
    "compact": Directive("compact [TOPIC]", "clean the logs of a compacted topic now, or of all such topics"),
    "look": Directive("look", "show the group"),
    "timers": Directive("timers", "show the group's timers"),
    "written": Directive("written", "show the records appended since the last such command"),
    "quietly": Directive("quietly COMMAND", "run a command without its output"),
}

MEMBER_DIRECTIVES: Final = {
    "is": Directive("NAME is [OPTION=VALUE ...]", "set the options with which NAME joins from now on"),
    "principal": Directive("NAME principal User:NAME", "the principal of NAME's requests from now on"),
    "joins": Directive("NAME joins [OPTION=VALUE ...]", "join, and join again with the id in the answer"),
    "restarts": Directive("NAME restarts [OPTION=VALUE ...]", "join as a new process, without a member id"),
}

RESERVED: Final = frozenset({OUTSIDE, *DIRECTIVES, *ADMIN_REQUESTS})
"""Words that begin a command; no member may have such a name."""


def language() -> Iterator[tuple[str, str]]:
    """Every command and what it does."""
    for directive in (*DIRECTIVES.values(), *MEMBER_DIRECTIVES.values()):
        yield directive.usage, directive.does
    for command in REQUESTS:
        if command.verb not in DIRECTIVES:
            yield command.usage, command.does
