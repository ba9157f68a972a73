"""Converts events into the rows that a page draws. Rows are lists, and are only ever added."""

from __future__ import annotations

from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PartitionsAssigned, PartitionsLost, PartitionsRevoked
from rejoin.journal.events.consumer_groups import GroupEpochBumped
from rejoin.journal.events.coordinator import (
    GroupEmptied,
    GroupLoaded,
    GroupStateChanged,
    MemberJoined,
    PartitionElected,
    PartitionResigned,
    RebalanceCompleted,
    RebalanceStarted,
)
from rejoin.journal.events.share_partitions import SharePartitionEvent
from rejoin.journal.events.simulation import (
    ConsumerCrashed,
    ConsumerFailed,
    ConsumerStarted,
    ConsumerStopped,
    ScenarioAction,
    TopicWritten,
)
from rejoin.journal.events.streams_groups import StreamsGroupEvent, StreamsMemberAssigned, StreamsMemberDescribed
from rejoin.journal.formatting import cause_text
from rejoin.journal.recording.share_rows import SHARE_EVENTS, share_row
from rejoin.journal.recording.task_rows import TASK_EVENTS, TaskRows
from rejoin.journal.timeline_lines import line_of, short
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC

DOWN: Final = "DOWN"
"""The state of a member whose process is down, and of a group on a node that is."""

STREAMS: Final = (
    "actors",
    "members",
    "lives",
    "groups",
    "leaders",
    "rebalances",
    "owners",
    "lines",
    "topics",
    "shares",
    "kinds",
    "tasks",
    "restores",
    "readiness",
)
"""The kinds of rows, beside requests. A row of ``rebalances`` replaces the one before with the same number."""


_WITH_EPOCHS: Final = ("Assigning", "Reconciling")
"""States that no classic group has."""

DRAWN_EVENTS: Final[tuple[type[Event], ...]] = (
    *(ConsumerStarted, ConsumerStopped, ConsumerCrashed, ConsumerFailed, ScenarioAction, TopicWritten),
    *(RebalanceStarted, RebalanceCompleted, GroupEmptied, GroupLoaded, GroupStateChanged, GroupEpochBumped),
    *(PartitionElected, PartitionResigned, PartitionsAssigned, PartitionsRevoked, PartitionsLost),
    MemberJoined,
    *SHARE_EVENTS,
    *TASK_EVENTS,
)
"""The events that make rows, beside those that are lines."""


class Recorder:
    """Keeps the rows until they are taken.

    - ``actors``: name, ``node`` or ``consumer`` or ``client``, group
    - ``members``: instant, consumer, state, generation, as the consumer knows them
    - ``lives``: instant, name, what began (``up``, ``down``, ``paused``, ``stuck``, ``cut``), until when, why
    - ``groups``: instant, group, node, state, generation
    - ``leaders``: instant, group, member that leads, or nothing, protocol
    - ``rebalances``: number, group, start, end or -1, cause, cause in words
    - ``owners``: instant, group, topic, partition, consumer, 1 or -1
    - ``lines``: instant, text, kind
    - ``topics``: instant, topic, partitions
    - ``shares``: what becomes of records that a share group has in flight; see :func:`share_row`
    - ``kinds``: group, its kind as ListGroups names it
    - ``tasks``, ``restores``, ``readiness``: of applications; see :class:`TaskRows`
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[list[Any]]] = {name: [] for name in STREAMS}
        self._rebalances: dict[str, list[Any]] = {}
        self._count = 0
        self._known: dict[str, dict[str, None]] = {}
        """Groups whose state on each node has a row."""
        self._owned: dict[str, dict[tuple[str, str, int], None]] = {}
        self._last: dict[str, tuple[str, int]] = {}
        """The last known state and generation of each group."""
        self._clients: dict[str, str] = {}
        """The client of each member of a share group or streams group."""
        self._kinds: dict[str, str] = {}
        self._tasks = TaskRows(self.add)
        self._unsaid: set[str] = set()
        """Groups of the consumer protocol whose states are not recorded, as brokers' logs do not have them."""

    def take(self) -> dict[str, list[list[Any]]]:
        """The rows since the last call, without the kinds that have none."""
        taken = {name: rows for name, rows in self.rows.items() if rows}
        self.rows = {name: [] for name in STREAMS}
        return taken

    def add(self, kind: str, *values: Any) -> None:
        """Add a row."""
        self.rows[kind].append(list(values))

    def on_event(self, node: str, event: Event, now: int) -> None:
        """Add the rows of an event; ``node`` is where it happened."""
        line = line_of(event)
        if line is not None:
            self.add("lines", now, self._shown(line), type(event).__name__)
        self._learn_kind(event)
        match event:
            case ScenarioAction() | TopicWritten():
                if isinstance(event, TopicWritten):
                    self.add("topics", now, event.topic, event.partition_count)
            case RebalanceStarted() | RebalanceCompleted() | GroupEmptied() | GroupLoaded():
                self._rebalance(node, event, now)
            case GroupStateChanged() | GroupEpochBumped():
                if not event.state:
                    self._unsaid.add(event.group_id)
                self._group(now, event.group_id, node, event.state or "Reconciling", event.generation)
            case PartitionElected() | PartitionResigned() if event.topic == OFFSETS_TOPIC:
                leads = "leads" if isinstance(event, PartitionElected) else "resigned"
                self.add("lives", now, node, leads, -1, f"{event.partition}")
            case ConsumerStarted():
                self.add("lives", now, event.client_id, "up", -1, "")
            case ConsumerStopped() | ConsumerCrashed() | ConsumerFailed():
                self._release_all(event.client_id, now)
                self._tasks.ended(event.client_id, now)
                self.add("members", now, event.client_id, DOWN, -1)
                self.add("lives", now, event.client_id, "down", -1, type(event).__name__.removeprefix("Consumer"))
            case PartitionsAssigned() | PartitionsRevoked() | PartitionsLost():
                self._own(event, now)
            case MemberJoined() if event.member_type in ("share", "streams"):
                self._clients[event.member_id] = event.client_id
            case StreamsMemberAssigned():
                self._assigned(event, now)
            case StreamsMemberDescribed():
                self._tasks.described(self._lane(event.group_id, event.member_id), event.process_id)
            case StreamsGroupEvent():
                self._tasks.on_group_event(event, now, self._shown)
            case SharePartitionEvent():
                row = share_row(event, now, self._lane)
                if row is not None:
                    self.add("shares", *row)
            case _:
                self._tasks.on_thread_event(event, now)

    def _learn_kind(self, event: Event) -> None:
        """The kind of a group, as soon as an event says it."""
        if isinstance(event, StreamsGroupEvent):
            kind = "streams"
        elif isinstance(event, SharePartitionEvent):
            kind = "share"
        else:
            kind = getattr(event, "group_type", None) or getattr(event, "member_type", None) or ""
        if kind:
            self._is_kind(getattr(event, "group_id", ""), kind)

    def _is_kind(self, group_id: str, kind: str) -> None:
        if self._kinds.get(group_id) != kind:
            self._kinds[group_id] = kind
            self.add("kinds", group_id, kind)

    def _assigned(self, event: StreamsMemberAssigned, now: int) -> None:
        """The coordinator gave a member tasks; here the threads themselves say what they have."""
        self._tasks.described(self._lane(event.group_id, event.member_id), event.process_id)

    def _lane(self, _: str, member_id: str) -> str:
        """The name of the lane that a member of a group has."""
        return self._clients.get(member_id) or short(member_id)

    def _shown(self, text: str) -> str:
        """A text as the page shows it: members have the names of their lanes."""
        return short(text)

    def _rebalance(self, node: str, event: Event, now: int) -> None:
        match event:
            case RebalanceStarted():
                self._end_rebalance(event.group_id, now)
                self._count += 1
                cause = event.cause.cause
                row = [self._count, event.group_id, now, -1, cause, self._shown(cause_text(event.cause))]
                self._rebalances[event.group_id] = row
                self.rows["rebalances"].append(list(row))
            case RebalanceCompleted() | GroupEmptied():
                self._end_rebalance(event.group_id, now)
                if isinstance(event, RebalanceCompleted) and (
                    event.group_type == "classic" or event.group_id in self._unsaid
                ):
                    self._group(now, event.group_id, node, "Stable", event.generation)
                elif isinstance(event, GroupEmptied):
                    self._group(now, event.group_id, node, "Empty", event.generation)
            case GroupLoaded():
                self._end_rebalance(event.group_id, now)
                if event.state:
                    self._group(now, event.group_id, node, event.state, event.generation)
                elif event.group_id in self._last:  # loaded as it was, where the log says no more
                    self._group(now, event.group_id, node, *self._last[event.group_id])
            case _:
                pass

    def _group(self, now: int, group_id: str, node: str, state: str, generation: int) -> None:
        self._known.setdefault(node, {})[group_id] = None
        if group_id not in self._kinds and state in _WITH_EPOCHS:
            self._is_kind(group_id, "consumer")
        self._last[group_id] = state, generation
        self.add("groups", now, group_id, node, state, generation)

    def node_down(self, node: str, now: int) -> None:
        """A node is down, and leads none of its groups any more."""
        self.add("lives", now, node, "down", -1, "")
        for group_id in self._known.pop(node, {}):
            self.add("groups", now, group_id, node, DOWN, -1)

    def _end_rebalance(self, group_id: str, now: int) -> None:
        row = self._rebalances.pop(group_id, None)
        if row is not None:
            row[3] = now
            self.rows["rebalances"].append(row)

    def _own(self, event: PartitionsAssigned | PartitionsRevoked | PartitionsLost, now: int) -> None:
        partitions = [
            (event.group_id or "", topic, index) for topic, all_ in event.partitions.items() for index in all_
        ]
        owned = self._owned.setdefault(event.client_id, {})
        if not isinstance(event, PartitionsAssigned):
            self._release(event.client_id, [each for each in partitions if each in owned], now)
            return
        for each in partitions:
            if each not in owned:
                owned[each] = None
                self.add("owners", now, *each, event.client_id, 1)

    def _release_all(self, client: str, now: int) -> None:
        self._release(client, list(self._owned.get(client, ())), now)

    def _release(self, client: str, partitions: list[tuple[str, str, int]], now: int) -> None:
        owned = self._owned.setdefault(client, {})
        for each in partitions:
            del owned[each]
            self.add("owners", now, *each, client, -1)
