"""Groups for pages: as the cluster describes them, with what was concluded from their requests; null where neither is.

A page asks again with each event, and several pages may be open: the cluster is asked once a second at the most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from rejoin.client.admin.admin import Admin
from rejoin.client.core.errors import KafkaError
from rejoin.coordinator.core.views import GroupView, MemberView, OffsetView
from rejoin.protocol.types import TopicPartition
from rejoin.proxy.control.descriptions import UNKNOWN
from rejoin.proxy.control.groups import ClusterGroups
from rejoin.proxy.live.exchanges import EventFields

FRESH_SECONDS: Final = 1.0
_ASK_MS: Final = 5_000
_MOST_REMEMBERED: Final = 1_000
_END: Final = -1
"""The timestamp with which ListOffsets asks for the end of a log."""
_STARTS: Final = ("rebalance_started", "group_epoch_bumped")

T = TypeVar("T")


class Remembered(Generic[T]):
    """Answers to the same question within a second are one, and it is asked once."""

    def __init__(self, ask: Callable[[str], Awaitable[T]]) -> None:
        self._ask = ask
        self._asked: dict[str, tuple[float, asyncio.Task[T]]] = {}

    async def get(self, name: str) -> T:
        """The answer. Raises what asking raises."""
        at, task = self._asked.get(name, (0.0, None))
        if task is None or (task.done() and monotonic() - at > FRESH_SECONDS):
            task = asyncio.ensure_future(self._ask(name))
            self._asked.pop(name, None)
            self._asked[name] = (monotonic(), task)
            while len(self._asked) > _MOST_REMEMBERED:
                del self._asked[next(iter(self._asked))]
        return await asyncio.shield(task)


class AllGroups(Admin):
    """An admin client that lists groups of every kind."""

    listed_protocols = frozenset({"", "consumer", "share", "streams", "connect", "sr"})


class GroupsOnPage:
    """The groups of a cluster as pages want them: camelCase, and null for what is not known."""

    def __init__(
        self, groups: ClusterGroups, events: Mapping[str, Sequence[EventFields]], now_ms: Callable[[], float]
    ) -> None:
        """``events`` are those of each group that are known by now."""
        self._groups = groups
        self._events = events
        self._now_ms = now_ms
        self._members: dict[str, int] = {}
        """The number of members of the groups that were described."""
        self._list = Remembered(self._ask_list)
        self._one = Remembered(self._ask_one)
        self._listed: list[str] = []

    # --- for the page that draws

    def now(self) -> int:
        """The time, ms since 1970."""
        return round(self._now_ms())

    def group_ids(self) -> Sequence[str]:
        """The groups that the cluster listed last, and those of which requests have come."""
        return sorted({*self._listed, *self._events})

    def share_states(self, _: str) -> Sequence[Any]:
        """None: the records that are in flight are the brokers' own."""
        return ()

    # --- views

    async def all(self) -> list[dict[str, Any]]:
        """All groups in short. Raises KafkaError."""
        return await self._list.get("")

    async def one(self, group_id: str) -> dict[str, Any] | None:
        """A group with its members and committed offsets, or none. Raises KafkaError."""
        return await self._one.get(group_id)

    async def _ask_list(self, _: str) -> list[dict[str, Any]]:
        listing = await AllGroups(self._groups.transport, _ASK_MS).list_reachable_groups()
        self._listed = [each.group_id for each in listing.groups]
        return [
            {
                "groupId": each.group_id,
                "state": each.group_state or None,
                "protocolType": each.protocol_type or None,
                "members": self._members.get(each.group_id),
            }
            for each in listing.groups
        ]

    async def _ask_one(self, group_id: str) -> dict[str, Any] | None:
        view = await self._groups.describe(group_id, _ASK_MS)
        if view is None:
            self._members.pop(group_id, None)
            return None
        self._members[group_id] = len(view.members)
        events = self._events.get(group_id, ())
        try:
            offsets = await self._offsets(group_id)
        except KafkaError:
            # A group without committed offsets of its own, or one that may be described and no more.
            offsets = []
        return {**_shown(_completed(view, events)), "offsets": [_shown(each) for each in offsets]}

    async def _offsets(self, group_id: str) -> list[OffsetView]:
        """Committed offsets with their lag now."""
        committed = await self._groups.committed(group_id, _ASK_MS)
        asked = {TopicPartition(each.topic, each.partition): _END for each in committed}
        ends = await Admin(self._groups.transport, _ASK_MS).offsets(asked)
        found = []
        for each in committed:
            end = ends.get(TopicPartition(each.topic, each.partition))
            lag = None if end is None else max(end - each.offset, 0)
            found.append(each.model_copy(update={"log_end_offset": end, "lag": lag}))
        return found


def _completed(view: GroupView, events: Sequence[EventFields]) -> GroupView:
    """The group with its last cause, its leader and its members' timeouts, as far as requests have shown them."""
    known: dict[str, Any] = {}
    timeouts: dict[str, EventFields] = {}
    for event in events:
        name = event["event"]
        if name in _STARTS:
            known["rebalance_cause"] = event.get("cause")
        elif name == "join_phase_ended":
            known["leader"] = event.get("leader")
        elif name == "group_state_changed":
            known["previous_state"] = event.get("previous_state") or ""
            known["state_since"] = event["at_ms"] if event.get("state") == view.state else UNKNOWN
        elif name in ("member_joined", "member_rejoined") and event.get("member_id"):
            timeouts[event["member_id"]] = event
    if known.get("rebalance_cause") == "unknown":
        known["rebalance_cause"] = None
    if known.get("leader") not in {each.member_id for each in view.members}:
        known["leader"] = None
    members = [_with_timeouts(each, timeouts.get(each.member_id, {}), known["leader"]) for each in view.members]
    return view.model_copy(update={**known, "members": members})


def _with_timeouts(member: MemberView, seen: Mapping[str, Any], leader: str | None) -> MemberView:
    found = {name: seen.get(name) for name in ("session_timeout_ms", "rebalance_timeout_ms", "topics")}
    update = {name: value for name, value in found.items() if value is not None}
    return member.model_copy(update={**update, "is_leader": member.member_id == leader})


def _shown(view: GroupView | OffsetView) -> dict[str, Any]:
    """The view as JSON, with null for numbers and words that are not known."""
    return {name: _or_null(name, value) for name, value in view.model_dump(mode="json").items()}


def _or_null(name: str, value: Any) -> Any:
    if name == "members":
        return [{part: _or_null(part, of) for part, of in member.items()} for member in value]
    return None if value == UNKNOWN or (value == "" and name in ("previousState", "memberState")) else value
