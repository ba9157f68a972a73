"""The order in which a rebalance listener is called, with its quirks."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import ListenerError, WakeupError
from rejoin.client.core.inputs import RebalanceEnforced
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.lab import Lab


def member(*assigned: str, assignor: str = "range", **settings: Any) -> Lab:
    """A stable member whose positions are known; its poll goes on."""
    settings.setdefault("enable_auto_commit", False)
    lab = Lab(assignors=[assignor], topics={"t": 4, "u": 2}, **settings)
    lab.auto |= {"Heartbeat"}
    return lab.stable(*assigned)


EAGER = "range"
COOPERATIVE = "cooperative-sticky"


@pytest.mark.parametrize(
    ("assignor", "before", "after", "calls"),
    [
        (EAGER, ["t-0", "t-1"], ["t-1", "t-2"], ["revoked [t-0 t-1]", "assigned [t-1 t-2]"]),
        (EAGER, ["t-0"], ["t-0"], ["revoked [t-0]", "assigned [t-0]"]),
        (EAGER, [], [], ["revoked []", "assigned []"]),
        (EAGER, ["t-0"], [], ["revoked [t-0]", "assigned []"]),
        (COOPERATIVE, ["t-0"], ["t-0"], ["assigned []"]),
        (COOPERATIVE, [], [], ["assigned []"]),
        (COOPERATIVE, ["t-0"], ["t-0", "t-1"], ["assigned [t-1]"]),
        (COOPERATIVE, ["t-0", "t-1"], ["t-0"], ["revoked [t-1]", "assigned []", "and joins again"]),
        (COOPERATIVE, ["t-0", "t-1"], ["t-1", "t-2"], ["revoked [t-0]", "assigned [t-2]", "and joins again"]),
    ],
)
def test_a_rebalance(assignor: str, before: list[str], after: list[str], calls: list[str]) -> None:
    lab = member(*before, assignor=assignor)
    lab.step(RebalanceEnforced("for the test"))
    lab.rejoin(*after, generation=2)
    said = {"JoinGroup 'm' reason='need to revoke partitions and re-join'": "and joins again"}
    seen = [said.get(line, line.removeprefix("on_partitions_")) for line in lab.take()]
    assert [line for line in seen if not line.startswith(("JoinGroup", "SyncGroup"))] == calls
    assert [f"{topic}-{partition}" for topic, partition in lab.core.assignment()] == after


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
@pytest.mark.parametrize(("error", "member_id"), [(E.UNKNOWN_MEMBER_ID, "''"), (E.ILLEGAL_GENERATION, "'m'")], ids=str)
def test_whoever_was_thrown_out_has_lost_everything(assignor: str, error: E, member_id: str) -> None:
    lab = member("t-0", "t-1", assignor=assignor)
    lab.auto.discard("Heartbeat")
    lab.advance(3_000)
    lab.take()
    lab.answer("Heartbeat", error)
    assert lab.take() == [
        "on_partitions_lost [t-0 t-1]",
        f"JoinGroup {member_id} reason='encountered {error.name} from HEARTBEAT response'",
    ]
    lab.rejoin("t-0", generation=2)
    assert lab.take() == ["SyncGroup gen=2 assignments=0", "on_partitions_assigned [t-0]"]


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_nothing_is_lost_by_whoever_had_nothing(assignor: str) -> None:
    lab = member(assignor=assignor)
    lab.auto.discard("Heartbeat")
    lab.advance(3_000)
    lab.take()
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    assert lab.take() == ["JoinGroup '' reason='encountered UNKNOWN_MEMBER_ID from HEARTBEAT response'"]


def test_a_cooperative_member_gives_up_unsubscribed_topics_before_it_joins() -> None:
    lab = Lab(assignors=[COOPERATIVE], topics={"t": 2, "u": 2}, enable_auto_commit=False)
    lab.stable("t-0", "u-0", topics=["t", "u"])
    lab.subscribe("t")
    assert lab.take() == [
        "on_partitions_revoked [u-0]",
        "JoinGroup 'm' reason='subscription has changed'",
    ]
    assert lab.core.assignment() == [("t", 0)]


def test_a_cooperative_member_reads_on_while_it_joins() -> None:
    lab = Lab(assignors=[COOPERATIVE], ends={"t-0": 10}, enable_auto_commit=False, max_poll_records=4)
    lab.committed["t-0"] = 0
    lab.stable("t-0")
    lab.step(RebalanceEnforced())
    lab.poll(1_000)
    lab.poll(1_000)
    assert [line for line in lab.take() if "poll" in line or "Join" in line] == [
        "JoinGroup 'm' reason='rebalance enforced by user'",
        "poll -> t-0[4,8)",
        "poll -> t-0[8,10)",
    ]


def test_an_eager_member_reads_nothing_while_it_joins() -> None:
    lab = Lab(ends={"t-0": 10}, committed={"t-0": 0}, enable_auto_commit=False, max_poll_records=4)
    lab.stable("t-0")
    lab.step(RebalanceEnforced())
    lab.poll(1_000)
    lab.advance(1_000)
    assert lab.take() == [
        "on_partitions_revoked [t-0]",
        "JoinGroup 'm' reason='rebalance enforced by user'",
        "poll -> nothing",
    ]


# -- a listener that raises


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_what_assigned_raises_comes_from_poll_and_the_partitions_are_owned(assignor: str) -> None:
    lab = Lab(assignors=[assignor], enable_auto_commit=False)
    lab.listener_raises["assigned"] = RuntimeError("oops")
    lab.stable("t-0")
    error = lab.raised[0]
    assert isinstance(error, ListenerError)
    assert isinstance(error.__cause__, RuntimeError)
    assert lab.core.assignment() == [("t", 0)]
    lab.listener_raises.clear()
    lab.poll(0)
    # Kafka: the join future is kept until complete ends well, so it runs once more, now with nothing new.
    assert lab.take() == ["on_partitions_assigned []", "poll -> nothing"]
    lab.poll(0)
    assert lab.take() == ["poll -> nothing"]


def test_what_revoked_raises_before_a_join_comes_from_poll_and_is_not_called_again() -> None:
    lab = member("t-0")
    lab.listener_raises["revoked"] = RuntimeError("oops")
    lab.step(RebalanceEnforced("again"))
    assert lab.take() == ["on_partitions_revoked [t-0]", "poll raised ListenerError"]
    assert lab.core.assignment() == []
    lab.poll(0)
    assert lab.take() == ["JoinGroup 'm' reason='again'", "poll -> nothing"]


def test_what_revoked_raises_after_a_cooperative_sync_does_not_keep_assigned_from_being_called() -> None:
    lab = member("t-0", "t-1", assignor=COOPERATIVE)
    lab.listener_raises["revoked"] = RuntimeError("oops")
    lab.step(RebalanceEnforced())
    lab.take()
    lab.rejoin("t-0", "t-2", generation=2)
    assert lab.take() == [
        "SyncGroup gen=2 assignments=0",
        "on_partitions_revoked [t-1]",
        "on_partitions_assigned [t-2]",
        "poll raised ListenerError",
    ]
    assert lab.core.assignment() == [("t", 0), ("t", 2)]
    lab.poll(0)
    assert lab.take() == [
        "on_partitions_assigned []",
        "JoinGroup 'm' reason='need to revoke partitions and re-join'",
        "poll -> nothing",
    ]


def test_a_wakeup_inside_a_listener_stops_the_step_which_is_done_again() -> None:
    lab = member("t-0", "t-1", assignor=COOPERATIVE)
    lab.listener_raises["revoked"] = WakeupError("stop")
    lab.step(RebalanceEnforced())
    lab.take()
    lab.rejoin("t-0", generation=2)
    assert lab.take()[1:] == ["on_partitions_revoked [t-1]", "poll raised WakeupError"]
    assert lab.core.assignment() == [("t", 0), ("t", 1)]
    lab.listener_raises.clear()
    lab.poll(0)
    assert lab.take()[:2] == ["on_partitions_revoked [t-1]", "on_partitions_assigned []"]
    assert lab.core.assignment() == [("t", 0)]


def test_heartbeats_go_on_while_the_listener_takes_its_time() -> None:
    lab = Lab(enable_auto_commit=False)
    lab.hold_listener = True
    lab.stable("t-0")
    lab.advance(3_000)
    assert lab.take() == ["Heartbeat gen=1"]


def test_a_listener_may_commit_what_it_is_about_to_lose() -> None:
    lab = member("t-0")
    lab.in_listener = lambda kind: lab.later(lambda: lab.commit("last", {"t-0": 9})) if kind == "revoked" else None
    lab.hold_listener = True
    lab.step(RebalanceEnforced("again"))
    lab.run_later()
    assert lab.take() == ["on_partitions_revoked [t-0]", "OffsetCommit gen=1 t-0@9"]
    lab.answer("OffsetCommit")
    assert lab.take() == ["commit last -> ok"]
    lab.listener_done()
    assert lab.take() == ["JoinGroup 'm' reason='again'"]
