"""Makes a scenario of the laboratory from a group's recorded events.

The events show which members came and went, which topics grew, and which coordinators moved. They do not show, for
example, how fast records are processed; the scenario's first lines say so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event

_EAGER: Final = "range"
_AWAY_MS: Final = 1_000
"""How long a static member was away if nothing says it: short enough for any session."""
_NO_NAMES: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML takes for something else (YAML 1.1)."""
_STUCK: Final = ("did-not-rejoin", "sync-expiry", "rebalance-expiry")
"""Why a member is removed whose process lives and does not come to the group."""
_POLL_TIMEOUT: Final = "poll timeout"
"""Clients' reason for leaving because the user's code has not polled (KIP-800)."""


class _Gone(NamedTuple):
    """A process that is away: since when, and the line that its return ends."""

    process: int
    at: int
    line: int


class ScenarioWriter:
    """Takes the events of one group in the order of time; instants are ms since the beginning."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._processes: dict[str, int] = {}
        """Numbers of processes, from 1, by instance id or client id."""
        self._members: dict[str, tuple[str, int]] = {}
        """Whose process a member is, and its session timeout, by member id."""
        self._known: Counter[str] = Counter()
        """How many members each process has."""
        self._count = 0
        """How many processes there were."""
        self._gone: dict[int, _Gone] = {}
        """Who is away, by the line that says so."""
        self._gone_by_process: dict[int, list[_Gone]] = {}
        self._lines: list[tuple[int, str, dict[str, Any]]] = []
        self._initial: list[int] = []
        """When the processes came that the group began with."""
        self._is_complete = False
        """Whether the group has completed a rebalance."""
        self._topics: dict[str, int] = {}
        self._grown_from: list[tuple[str, int]] = []
        """Topics that grew, and how many partitions they had before."""
        self._timeouts: Counter[tuple[int, int]] = Counter()
        self._assignors: list[str] = []
        self._is_consumer = False
        self._is_static = False
        self._subscribed: dict[str, None] = {}
        self._moves = 0
        self._unknown = [
            "how fast records come and are processed, and how commits are made",
            "requests and answers that were lost",
        ]
        self._handlers: dict[type[Event], Callable[[Any, int], None]] = {
            events.MemberJoined: self._joined,
            events.MemberRemoved: self._removed,
            events.StaticMemberReplaced: self._replaced,
            events.RebalanceCompleted: self._completed,
            events.GroupLoaded: self._loaded,
            events.TopicCreated: self._created,
            events.TopicGrown: self._grown,
            events.TopicDeleted: self._deleted,
        }

    def on_event(self, event: Event, now: int) -> None:
        """Take an event."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, now)

    # -- who comes and goes

    def _joined(self, event: events.MemberJoined, now: int) -> None:
        who = event.group_instance_id or event.client_id or event.member_id
        if self._known[who]:
            who = f"{who} {event.member_id}"
        self._add_member(event.member_id, who, event.session_timeout_ms)
        self._timeouts[event.session_timeout_ms, event.rebalance_timeout_ms] += 1
        self._subscribed.update(dict.fromkeys(event.topics or ()))
        self._is_static |= event.group_instance_id is not None
        self._is_consumer |= event.member_type == "consumer"
        if event.protocols and not self._is_consumer:
            self._assignors = event.protocols
        self._comes(who, now)

    def _add_member(self, member_id: str, who: str, session: int) -> None:
        self._remove_member(member_id)
        self._members[member_id] = who, session
        self._known[who] += 1

    def _remove_member(self, member_id: str) -> tuple[str, int] | None:
        found = self._members.pop(member_id, None)
        if found is not None:
            self._known[found[0]] -= 1
        return found

    def _number(self, who: str) -> int:
        """The number of a process that is new."""
        self._count += 1
        self._processes[who] = self._count
        return self._count

    def _comes(self, who: str, now: int) -> None:
        known = self._processes.get(who)
        back = None if known is None else next(iter(self._gone_by_process.get(known, ())), None)
        if back is None and known is None and self._gone:
            back = next(iter(self._gone.values()))  # another name: the first that is away is back with it
        if back is not None:
            del self._gone[back.line]
            self._gone_by_process[back.process].pop(0)
            self._processes[who] = back.process
            at, action, keys = self._lines[back.line]
            length = "for" if action == "stuck" else "down"
            self._lines[back.line] = at, action, {**keys, length: max(1, now - at)}
        elif known is None:
            number = self._number(who)
            if self._is_complete:
                self._lines.append((now, "scale", {"group": self._group_id, "to": number - len(self._gone)}))
            else:
                self._initial.append(now)

    def _removed(self, event: events.MemberRemoved, now: int) -> None:
        who, session = self._remove_member(event.member_id) or (event.group_instance_id or event.client_id, 0)
        process = self._processes.get(who)
        if process is None:
            return
        at, action = now, "stop"
        if event.cause in _STUCK or _POLL_TIMEOUT in (event.client_reason or ""):
            action = "stuck"
            at = now - max((poll for (_, poll), _ in self._timeouts.items()), default=0)
        elif event.cause == "session-expiry":
            action, at = "crash", now - session
        self._goes(process, max(0, at), action)

    def _goes(self, process: int, at: int, action: str) -> None:
        gone = _Gone(process, at, len(self._lines))
        self._gone[gone.line] = gone
        self._gone_by_process.setdefault(process, []).append(gone)
        self._lines.append((at, action, {"who": f"{self._group_id}-{process}"}))

    def _replaced(self, event: events.StaticMemberReplaced, now: int) -> None:
        _, session = self._remove_member(event.old_member_id) or ("", event.session_timeout_ms or 0)
        who = event.group_instance_id
        self._add_member(event.member_id, who, session)
        process = self._processes.get(who) or self._number(who)
        at = max(0, now - _AWAY_MS)
        self._lines.append((at, "stop", {"who": f"{self._group_id}-{process}", "down": max(1, now - at)}))
        self._not_known("how long static members were away: taken for 1 s")

    def _completed(self, event: events.RebalanceCompleted, _: int) -> None:
        self._is_complete = True
        self._is_consumer |= event.group_type == "consumer"
        for topics in event.owned_after.values():
            self._subscribed.update(dict.fromkeys(topics))
            for topic, indexes in topics.items():
                self._topics[topic] = max(self._topics.get(topic, 0), *(index + 1 for index in indexes))
        if event.protocol and not self._is_consumer and not self._assignors:
            self._assignors = [event.protocol]

    # -- what happens around them

    def _loaded(self, event: events.GroupLoaded, now: int) -> None:
        if self._processes and now > 0:
            self._moves += 1
            self._lines.append((now, "failover", {"group": self._group_id}))
        for member_id in event.members:
            if member_id not in self._members:
                self._add_member(member_id, member_id, 0)
                self._comes(member_id, now)

    def _created(self, event: events.TopicCreated, _: int) -> None:
        self._topics.setdefault(event.topic, event.partition_count)

    def _grown(self, event: events.TopicGrown, now: int) -> None:
        before = event.previous_partition_count or event.partition_count - 1
        self._topics.setdefault(event.topic, before)
        self._grown_from.append((event.topic, before))
        self._lines.append((now, "grow", {"topic": event.topic, "to": event.partition_count}))

    def _deleted(self, event: events.TopicDeleted, now: int) -> None:
        self._topics.setdefault(event.topic, event.partition_count)
        self._lines.append((now, "delete_topic", {"topic": event.topic}))

    def _not_known(self, what: str) -> None:
        if what not in self._unknown:
            self._unknown.append(what)

    # -- the text

    def text(self, until: int) -> str:
        """The scenario as YAML; empty for a group that never had a member."""
        if not self._processes:
            return ""
        topics = [*self._subscribed] or sorted(self._topics) or ["topic"]
        consumers = max(1, len(self._initial))
        for topic in topics:
            if topic not in self._topics:
                self._not_known(f"how many partitions {topic} has: taken for {4 * consumers}")
        lines = ["# Made of what was recorded. Not known from it, and to be filled in:"]
        lines += [f"# - {each}" for each in self._unknown]
        lines += [f"question: {_word(f'What happened to {self._group_id}?')}", f"horizon: {_time(max(1_000, until))}"]
        lines.append("topics:")
        for topic in sorted(topics):
            partitions = self._topics.get(topic, 4 * consumers)
            lines.append(
                f"  {_word(topic)}: {{partitions: {self._at_first(topic, partitions)}, records_per_second: 1}}"
            )
        lines += ["groups:", f"  {_word(self._group_id)}: {_flow(self._group(topics, consumers))}"]
        if self._moves:
            lines.append("coordinator: {nodes: 2}")
        if self._lines:
            lines.append("events:")
        ours = [each for each in self._lines if each[0] < until and each[2].get("topic", topics[0]) in topics]
        for at, action, keys in sorted(ours, key=lambda each: each[0]):
            lines.append(f"  - {_flow({'at': _Time(at), action: keys})}")
        return "\n".join(lines) + "\n"

    def _at_first(self, topic: str, partitions: int) -> int:
        """How many partitions a topic had before it grew."""
        return min([partitions, *(before for grown, before in self._grown_from if grown == topic)])

    def _group(self, topics: list[str], consumers: int) -> dict[str, Any]:
        group: dict[str, Any] = {"topics": topics[0] if len(topics) == 1 else topics, "consumers": consumers}
        if self._is_static:
            group["static"] = True
        if self._is_consumer:
            group["protocol"] = "consumer"
        else:
            group["assignor"] = self._assignors[0] if len(self._assignors) == 1 else self._assignors or _EAGER
        if self._timeouts:
            (session, poll), _ = self._timeouts.most_common(1)[0]
            if session > 0 and not self._is_consumer:
                group["session_timeout"] = _Time(session)
            if poll > 0:
                group["max_poll_interval"] = _Time(poll)
        if len(self._initial) > 1 and self._initial[-1] > self._initial[0]:
            group["start"] = {"every": _Time((self._initial[-1] - self._initial[0]) // (len(self._initial) - 1))}
        return group


class _Time(int):
    """Milliseconds, which the text has with their unit."""


def _time(ms: int) -> str:
    return f"{ms // 1_000}s" if ms % 1_000 == 0 else f"{ms}ms"


def _word(text: str) -> str:
    """A name as YAML: quoted wherever it could be read as something else."""
    plain = text.replace("-", "").replace("_", "")
    is_name = plain.isascii() and plain.isalnum() and plain[:1].isalpha() and text.lower() not in _NO_NAMES
    return text if is_name else json.dumps(text)


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_word(key)}: {_length(key, each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Time):
        return _time(value)
    return _word(value) if isinstance(value, str) else str(value)


def _length(key: str, value: Any) -> str:
    return _time(value) if key in ("for", "down") else _flow(value)
