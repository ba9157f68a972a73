"""Drawing a group costs no more than its members: work is counted in calls, not measured by a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    Cause,
    JoinPhaseEnded,
    MemberJoined,
    MemberRejoined,
    MemberRemoved,
    RebalanceCompleted,
    RebalanceStarted,
    StaticMemberReplaced,
)
from rejoin.journal.recording.as_scenario import ScenarioWriter
from rejoin.journal.recording.event_recorder import EventRecorder

FEW, MANY = 40, 400


class CountedName(str):
    """A member id that counts how often it is compared and hashed."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def members(number: int) -> list[str]:
    return [CountedName(f"svc-{at:08x}-0000-0000-0000-000000000000") for at in range(number)]


def joined(member_id: str, **fields: Any) -> MemberJoined:
    values = {
        "group_id": "app", "member_id": member_id, "group_instance_id": None, "client_id": "svc",
        "client_host": "/127.0.0.1", "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000,
        "protocols": ["range"], "topics": ["orders"], "state": "Empty", "client_reason": None,
    }  # fmt: skip
    return MemberJoined(**values | fields)


def rebalance(ids: list[str]) -> Iterator[Event]:
    """A join phase to which all come, and of which half are said to be absent; and what all own then."""
    cause = Cause(cause="join-new", member_id=ids[-1], group_instance_id=None, client_reason=None)
    yield RebalanceStarted(
        group_id="app", generation=1, previous_state="Stable", cause=cause, initial=False, join_timeout_ms=300_000,
        members=ids,
    )  # fmt: skip
    for each in ids:
        yield MemberRejoined(
            group_id="app", member_id=each, group_instance_id=None, protocols=["range"], topics=["orders"],
            state="PreparingRebalance", changed=False, client_reason=None,
        )  # fmt: skip
    yield JoinPhaseEnded(
        group_id="app", generation=2, leader=ids[0], protocol="range", members=ids,
        absent=[CountedName(f"{each}-absent") for each in ids], did_not_rejoin=[], join_ms=3,
    )  # fmt: skip
    owned = {each: {"orders": [at]} for at, each in enumerate(ids)}
    yield RebalanceCompleted(
        group_id="app", generation=2, cause=cause, attempts=1, rebalance_ms=4, join_ms=3, sync_ms=1, leader=ids[0],
        previous_leader=None, protocol="range", members_before=ids, members_after=ids, owned_before=owned,
        owned_after=owned, moved=0, regained=0,
    )  # fmt: skip


def one_client_id(number: int) -> Iterator[Event]:
    """Members with one client id, so that each has a lane with a name of its own."""
    ids = members(number)
    yield from (joined(each) for each in ids)
    yield from rebalance(ids)
    for each in ids:
        yield MemberRemoved(
            group_id="app", member_id=each, group_instance_id=None, client_id="svc", client_host="",
            cause="session-expiry", state="Stable", client_reason=None,
        )  # fmt: skip
    yield from (joined(CountedName(f"{each}-again"), client_id=f"svc-{each}") for each in ids)


def static_members(number: int) -> Iterator[Event]:
    """Static members that all restart."""
    ids = members(number)
    for at, each in enumerate(ids):
        yield joined(each, client_id=f"svc-{at}", group_instance_id=f"svc-{at}")
    yield from rebalance(ids)
    for at, each in enumerate(ids):
        yield StaticMemberReplaced(
            group_id="app", group_instance_id=f"svc-{at}", old_member_id=each, member_id=f"{each}-again",
            rebalance=False, state="Stable", client_reason=None,
        )  # fmt: skip


def work(act: Callable[[], object]) -> int:
    """How many calls, of Python and of C, and comparisons of member ids an action makes."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    before, CountedName.compared = sys.getprofile(), 0
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return calls + CountedName.compared


@pytest.mark.parametrize("scene", [one_client_id, static_members])
def test_work_grows_with_the_members_of_a_group_and_no_faster(scene: Callable[[int], Iterator[Event]]) -> None:
    def drawn(number: int) -> int:
        recorder, scenario, events = EventRecorder(), ScenarioWriter("app"), list(scene(number))

        def draw() -> None:
            for now, event in enumerate(events):
                recorder.on_event("1", event, now)
                scenario.on_event(event, now)
            scenario.text(len(events))

        return work(draw)

    drawn(FEW)  # what is made once
    assert drawn(MANY) < 1.5 * MANY / FEW * drawn(FEW)
