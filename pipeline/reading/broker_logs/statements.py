"""A log file's statements about groups: which broker wrote each, about which group, in which order.

Some lines name no group (a static member that causes no rebalance, a fenced request); the group follows from the lines
near them and from member ids seen before. Lines of one broker are in the order of events, whatever their times;
``order_ms`` puts the lines of several brokers into one order and remains right when a clock is set back.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, BinaryIO, Final

from rejoin.journal.kafka_logs.bug_signs import BROKER, WORDS, signs_in, versions_in
from rejoin.journal.kafka_logs.bug_signs import MARKS as MARKS_OF_SIGNS
from rejoin.pipeline.reading.broker_logs.lines import UNREAD, BrokenLine, LineCounts, Lines, Record
from rejoin.pipeline.reading.broker_logs.messages import (
    Message,
    of_a_coordinator,
    read_broker_message,
    read_message,
    read_share_message,
    read_transaction_message,
    split_prefix,
)
from rejoin.pipeline.reading.broker_logs.reasons import instance, read_reason, several
from rejoin.pipeline.reading.packed.opening import ENDING
from rejoin.pipeline.reading.request_log import LoggedExchange, is_request, read_exchange
from rejoin.pipeline.vocabulary import BUG_SIGN, SOFTWARE_VERSION

AHEAD: Final = 48
"""Statements that are looked at before one is given out: to see a set clock, or which group a line was about."""

SHUFFLED_MS: Final = 1_000
"""Times this much before the latest one are no matter of threads: lines out of order, or a clock set back."""

FAR_MS: Final = 3_600_000
"""A single time this far ahead of all that follow is wrong."""

_GROUP_OF_REQUEST: Final = re.compile(r"\bgroup(?:Id|_id)='?(?P<group>[^',)}]+)")
MARKS: Final = (
    *MARKS_OF_SIGNS,
    b"oordinator",
    b"GroupMetadata",
    b"Completed request:",
    b"Server id=",
    b"Creating new partition",
    b"it was missing. Creating",
    b"Created log for partition",
    b"Error processing append operation",
    b"hare partition",
    b"SharePartitionKey",
    b"Auto topic creation failed",
)
"""One of these is in every line that is looked for: in its prefix, its logger, or its beginning."""

PARTITION_CREATED: Final = "partition_created"
"""The kind of statement that is about a topic, and neither about a group nor about a broker."""

KNOWN_MEMBERS: Final = 200_000

_NODE: Final = re.compile(r"(?:broker|kafka|node|server)[-_.]?(\d+)", re.IGNORECASE)


def node_of(path: str) -> str:
    """A broker's id from the name of the file or its directory; else the file's name without what rotation adds."""
    file = Path(path)
    for name in (file.name, file.parent.name):
        match = _NODE.search(name)
        if match is not None:
            return match[1]
    return re.sub(r"(?:\.log)?(?:[.-][\d-]+)*" + ENDING + "$", "", file.name) or file.name


@dataclass(frozen=True, slots=True)
class Statement:
    """Something a coordinator said. ``values`` are what stands in the line; ``order_ms`` is its place among brokers."""

    kind: str
    group: str | None
    at_ms: int
    order_ms: int
    node: str
    file: str
    line: int
    text: str = ""
    partition: int | None = None
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Counts:
    """Counters of a file's lines, by what they turned out to be."""

    statements: int = 0
    """A coordinator's lines that were understood."""
    requests: int = 0
    """Requests that are about groups."""
    other: int = 0
    """Records of other parts of the broker, or of other software."""
    broken: int = 0
    unknown: int = 0
    """Lines of a group coordinator that no known version prints; they are among the broken ones, too."""
    clock_set_back: int = 0


class LogFile:
    """Reads the lines of one file that are about groups: a coordinator's, a request log's, or both.

    ``node`` stands for the broker until a line has its id. A request log never has.
    """

    def __init__(self, file: str, node: str, zone: tzinfo = UTC, *, words: Sequence[str] = WORDS) -> None:
        """``words``: those of signs of bugs, and of versions, that the file has."""
        self.file = file
        self._words = words
        self.counts = Counts()
        self._lines = Lines(zone, MARKS)
        self._default_node = node
        self._nodes: dict[str, str] = {}
        self._versions: dict[str, Statement] = {}
        self._latest_ms: dict[str, int] = {}
        self._groups_of_members: dict[str, str] = {}
        self._last_static: dict[tuple[str, int | None], Statement] = {}

    @property
    def node(self) -> str:
        """The broker, as far as is known by now."""
        return next(reversed(self._nodes.values()), self._default_node)

    @property
    def read(self) -> LineCounts:
        """Counters of the file's lines, statements or not."""
        return self._lines.read

    def statements(self, file: BinaryIO | Iterable[bytes]) -> Iterator[Statement | LoggedExchange | BrokenLine]:
        """Every statement, every request and every broken line. Nothing that stands in a file makes this fail."""
        window: deque[Statement] = deque()
        order = _Order()
        for found in self._found(file):
            if isinstance(found, BrokenLine):
                self.counts.broken += 1
                yield found
                continue
            if isinstance(found, LoggedExchange):
                self.counts.requests += 1
                yield found
                continue
            window.append(found)
            if len(window) > AHEAD:
                yield self._give_out(window, order)
        while window:
            yield self._give_out(window, order)
        self.counts.clock_set_back = order.steps

    def _give_out(self, window: deque[Statement], order: _Order) -> Statement:
        statement = window.popleft()
        group = statement.group
        if group is None and statement.kind in _OF_A_GROUP:
            group = self._group_of(statement)
            if group is None:
                mentioned = {statement.values.get(name) for name in ("member", "old", "current")} - {None}
                for later in window:
                    if later.group is not None and mentioned & _mentioned(later):
                        group = later.group
                        break
            if group is not None:
                self._remember(replace(statement, group=group))
        return replace(statement, group=group, order_ms=order.order_at(statement.at_ms, window))

    # --- one record

    def _found(self, file: BinaryIO | Iterable[bytes]) -> Iterator[Statement | LoggedExchange | BrokenLine]:
        for record in self._lines.records(file):
            if isinstance(record, BrokenLine):
                yield record
            elif record is UNREAD:
                self.counts.other += 1
            elif is_request(record):
                found = read_exchange(record)
                if found is None:
                    self.counts.other += 1
                else:
                    yield found
            else:
                signs = list(self._signs_of(record)) if self._words else []
                yield from signs
                if of_a_coordinator(record.logger, record.message):
                    yield from self._read(record)
                elif signs:
                    self.counts.statements += 1
                else:
                    yield from self._read_broker(record)
                # A process that says nothing of a broker is a client, whose version is read with its lines.
                if record.origin in self._versions and record.origin in self._nodes:
                    said = self._versions.pop(record.origin)
                    self.counts.statements += 1
                    yield replace(said, node=self._nodes[record.origin])

    def _signs_of(self, record: Record) -> Iterator[Statement]:
        """Signs of bugs in a record. The version of its process is kept until a line shows that it is a broker."""
        node = self._nodes.get(record.origin, self._default_node)
        at = (None, record.at_ms, record.at_ms, node, self.file, record.line, record.message[:500], None)
        for sign in signs_in(record.message, record.more, self._words):
            if sign.software == BROKER:
                named = _GROUP_OF_REQUEST.search(record.message)
                yield Statement(BUG_SIGN, *at, values={"reason": sign.name, "group": named and named["group"]})
        for _, version in versions_in(record.message) if record.message.startswith("Kafka version") else ():
            said = Statement(SOFTWARE_VERSION, *at, values={"reason": f"{BROKER} {version}"})
            self._versions[record.origin] = said

    def _read(self, record: Record) -> Iterator[Statement | BrokenLine]:
        prefix = split_prefix(record.message)
        if prefix.node is not None:
            self._nodes[record.origin] = prefix.node
        node = prefix.node or self._nodes.get(record.origin, self._default_node)
        silent_since = self._latest_ms.get(node)
        self._latest_ms[node] = record.at_ms
        message = read_message(prefix.rest)
        if message is None and record.more:
            # A client's reason may hold a line end.
            message = read_message("\n".join((prefix.rest, *record.more)))
        if message is None:
            if record.level in ("DEBUG", "TRACE"):
                self.counts.other += 1
                return
            self.counts.unknown += 1
            yield BrokenLine(
                record.line,
                "a group coordinator's line that no known version prints, or one that is cut short",
                record.message[:500],
            )
            return
        self.counts.statements += 1
        partition = prefix.partition
        if "partition" in message.values:
            partition = int(message.values["partition"])
        for group, values in _opened(message):
            statement = Statement(
                message.kind,
                group,
                record.at_ms,
                record.at_ms,
                node,
                self.file,
                record.line,
                prefix.rest,
                partition,
                values,
            )
            if statement.kind == "broker_starting" and silent_since is not None:
                statement = replace(statement, values={"silent_since_ms": silent_since})
            if statement.kind == "replaced":
                self._last_static[node, prefix.partition] = statement
            if statement.kind == "no_rebalance":
                statement = self._about_the_static_member(statement, prefix.partition)
            if statement.group is not None:
                self._remember(statement)
            yield statement

    def _read_broker(self, record: Record) -> Iterator[Statement]:
        """A line of the broker itself, if it is one of those that matter to groups."""
        message = (
            read_broker_message(record.message)
            or read_transaction_message(record.message, record.more)
            or read_share_message(record.message)
        )
        if message is None:
            self.counts.other += 1
            return
        node = message.values.pop("node", None) or self._nodes.get(record.origin, self._default_node)
        self._nodes[record.origin] = node
        values: dict[str, Any] = dict(message.values)
        if message.kind == "broker_starting" and node in self._latest_ms:
            values["silent_since_ms"] = self._latest_ms[node]
        self._latest_ms[node] = record.at_ms
        self.counts.statements += 1
        yield Statement(
            message.kind,
            message.group,
            record.at_ms,
            record.at_ms,
            node,
            self.file,
            record.line,
            record.message,
            int(values["partition"]) if "partition" in values else None,
            values,
        )

    def _about_the_static_member(self, statement: Statement, partition: int | None) -> Statement:
        """The line has neither group nor member: it is about the static member that came back just before."""
        before = self._last_static.get((statement.node, partition))
        if before is None or abs(statement.at_ms - before.at_ms) > 60_000:
            return statement
        values = {name: before.values[name] for name in ("instance", "member", "old") if name in before.values}
        return replace(statement, group=before.group, values=statement.values | values)

    # --- whose group

    def _remember(self, statement: Statement) -> None:
        assert statement.group is not None, "only what is known of a group is remembered"
        if len(self._groups_of_members) > KNOWN_MEMBERS:
            for member in list(self._groups_of_members)[: KNOWN_MEMBERS // 2]:
                del self._groups_of_members[member]
        for member in _mentioned(statement):
            if member:
                self._groups_of_members[member] = statement.group

    def _group_of(self, statement: Statement) -> str | None:
        for name in ("current", "old", "member"):
            group = self._groups_of_members.get(statement.values.get(name) or "")
            if group is not None:
                return group
        return None


_OF_A_GROUP: Final = ("replaced", "no_rebalance", "fenced", "leader_replaced")
"""Kinds that are about a group and may not name it."""


def _mentioned(statement: Statement) -> set[str]:
    names = ("member", "old", "current", "leader")
    found = {str(statement.values[name]) for name in names if statement.values.get(name)}
    return found.union(statement.values.get("members_named", ()))


def _opened(message: Message) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """A message's group and values, with what stands inside them read; one for each group where it names several."""
    values: dict[str, Any] = dict(message.values)
    if "instance" in values:
        values["instance"] = instance(values["instance"])
    if values.get("client_reason") == "not provided":
        del values["client_reason"]
    if "protocols" in values:
        values["protocols"] = values["protocols"].split(", ") if values["protocols"] else []
    if "set" in values:
        values["members_named"] = list(several(values.pop("set")))
    if "reason" in values and message.kind == "preparing":
        reason = read_reason(values["reason"])
        values |= {
            "cause": reason.cause,
            "member": reason.member_id,
            "instance": reason.group_instance_id,
            "client_reason": reason.client_reason,
            "members_named": list(reason.members),
            "state_before": reason.state,
            "error": reason.error,
        }
    if message.kind == "deleted":
        listed = values.pop("list")
        for group in re.split(r", ", listed) if listed else ():
            yield group, values
        return
    yield message.group, values


class _Order:
    """Gives each statement of a file its place in time among those of other files."""

    def __init__(self) -> None:
        self._latest: int | None = None
        self._behind = 0
        self.steps = 0

    def order_at(self, at_ms: int, ahead: Iterable[Statement]) -> int:
        at, latest = at_ms + self._behind, self._latest
        if latest is None:
            if self._is_far_ahead(at, ahead):
                return min((later.at_ms for later in ahead), default=at)
            self._latest = at
            return at
        if at < latest - SHUFFLED_MS:
            earlier = [later.at_ms + self._behind < latest - SHUFFLED_MS for later in ahead]
            if not earlier or 2 * sum(earlier) <= len(earlier):
                return at
            self.steps += 1
            self._behind += latest - at
            return latest
        if at > latest + FAR_MS and self._is_far_ahead(at, ahead):
            return latest
        self._latest = max(latest, at)
        return self._latest

    def _is_far_ahead(self, at: int, ahead: Iterable[Statement]) -> bool:
        far = [later.at_ms + self._behind < at - FAR_MS for later in ahead]
        return bool(far) and 2 * sum(far) > len(far)
