"""The order in which a rebalance listener is called, with its quirks."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import ListenerError, WakeupError
from rejoin.client.core.inputs import RebalanceEnforced
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.bench import Bench


def member(*assigned: str, assignor: str = "range", **settings: Any) -> Bench:
    """A stable member whose positions are known; its poll goes on."""
    settings.setdefault("enable_auto_commit", False)
    bench = Bench(assignors=[assignor], topics={"t": 4, "u": 2}, **settings)
    bench.auto |= {"Heartbeat"}
    return bench.stable(*assigned)


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
    bench = member(*before, assignor=assignor)
    bench.step(RebalanceEnforced("for the test"))
    bench.rejoin(*after, generation=2)
    said = {"JoinGroup 'm' reason='need to revoke partitions and re-join'": "and joins again"}
    seen = [said.get(line, line.removeprefix("on_partitions_")) for line in bench.take()]
    assert [line for line in seen if not line.startswith(("JoinGroup", "SyncGroup"))] == calls
    assert [f"{topic}-{partition}" for topic, partition in bench.core.assignment()] == after


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
@pytest.mark.parametrize(("error", "member_id"), [(E.UNKNOWN_MEMBER_ID, "''"), (E.ILLEGAL_GENERATION, "'m'")], ids=str)
def test_a_removed_member_has_lost_all_partitions(assignor: str, error: E, member_id: str) -> None:
    bench = member("t-0", "t-1", assignor=assignor)
    bench.auto.discard("Heartbeat")
    bench.advance(3_000)
    bench.take()
    bench.answer("Heartbeat", error)
    assert bench.take() == [
        "on_partitions_lost [t-0 t-1]",
        f"JoinGroup {member_id} reason='encountered {error.name} from HEARTBEAT response'",
    ]
    bench.rejoin("t-0", generation=2)
    assert bench.take() == ["SyncGroup gen=2 assignments=0", "on_partitions_assigned [t-0]"]


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_a_removed_member_without_partitions_has_lost_none(assignor: str) -> None:
    bench = member(assignor=assignor)
    bench.auto.discard("Heartbeat")
    bench.advance(3_000)
    bench.take()
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    assert bench.take() == ["JoinGroup '' reason='encountered UNKNOWN_MEMBER_ID from HEARTBEAT response'"]


def test_a_cooperative_member_gives_up_unsubscribed_topics_before_it_joins() -> None:
    bench = Bench(assignors=[COOPERATIVE], topics={"t": 2, "u": 2}, enable_auto_commit=False)
    bench.stable("t-0", "u-0", topics=["t", "u"])
    bench.subscribe("t")
    assert bench.take() == [
        "on_partitions_revoked [u-0]",
        "JoinGroup 'm' reason='subscription has changed'",
    ]
    assert bench.core.assignment() == [("t", 0)]


def test_a_cooperative_member_reads_on_while_it_joins() -> None:
    bench = Bench(assignors=[COOPERATIVE], ends={"t-0": 10}, enable_auto_commit=False, max_poll_records=4)
    bench.committed["t-0"] = 0
    bench.stable("t-0")
    bench.step(RebalanceEnforced())
    bench.poll(1_000)
    bench.poll(1_000)
    assert [line for line in bench.take() if "poll" in line or "Join" in line] == [
        "JoinGroup 'm' reason='rebalance enforced by user'",
        "poll -> t-0[4,8)",
        "poll -> t-0[8,10)",
    ]


def test_an_eager_member_reads_nothing_while_it_joins() -> None:
    bench = Bench(ends={"t-0": 10}, committed={"t-0": 0}, enable_auto_commit=False, max_poll_records=4)
    bench.stable("t-0")
    bench.step(RebalanceEnforced())
    bench.poll(1_000)
    bench.advance(1_000)
    assert bench.take() == [
        "on_partitions_revoked [t-0]",
        "JoinGroup 'm' reason='rebalance enforced by user'",
        "poll -> nothing",
    ]


# -- a listener that raises


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_what_assigned_raises_comes_from_poll_and_the_partitions_are_owned(assignor: str) -> None:
    bench = Bench(assignors=[assignor], enable_auto_commit=False)
    bench.listener_raises["assigned"] = RuntimeError("oops")
    bench.stable("t-0")
    error = bench.raised[0]
    assert isinstance(error, ListenerError)
    assert isinstance(error.__cause__, RuntimeError)
    assert bench.core.assignment() == [("t", 0)]
    bench.listener_raises.clear()
    bench.poll(0)
    # Kafka: the join future is kept until complete ends well, so it runs once more, now with nothing new.
    assert bench.take() == ["on_partitions_assigned []", "poll -> nothing"]
    bench.poll(0)
    assert bench.take() == ["poll -> nothing"]


def test_what_revoked_raises_before_a_join_comes_from_poll_and_is_not_called_again() -> None:
    bench = member("t-0")
    bench.listener_raises["revoked"] = RuntimeError("oops")
    bench.step(RebalanceEnforced("again"))
    assert bench.take() == ["on_partitions_revoked [t-0]", "poll raised ListenerError"]
    assert bench.core.assignment() == []
    bench.poll(0)
    assert bench.take() == ["JoinGroup 'm' reason='again'", "poll -> nothing"]


def test_what_revoked_raises_after_a_cooperative_sync_does_not_keep_assigned_from_being_called() -> None:
    bench = member("t-0", "t-1", assignor=COOPERATIVE)
    bench.listener_raises["revoked"] = RuntimeError("oops")
    bench.step(RebalanceEnforced())
    bench.take()
    bench.rejoin("t-0", "t-2", generation=2)
    assert bench.take() == [
        "SyncGroup gen=2 assignments=0",
        "on_partitions_revoked [t-1]",
        "on_partitions_assigned [t-2]",
        "poll raised ListenerError",
    ]
    assert bench.core.assignment() == [("t", 0), ("t", 2)]
    bench.poll(0)
    assert bench.take() == [
        "on_partitions_assigned []",
        "JoinGroup 'm' reason='need to revoke partitions and re-join'",
        "poll -> nothing",
    ]


def test_a_wakeup_inside_a_listener_stops_the_step_which_is_done_again() -> None:
    bench = member("t-0", "t-1", assignor=COOPERATIVE)
    bench.listener_raises["revoked"] = WakeupError("stop")
    bench.step(RebalanceEnforced())
    bench.take()
    bench.rejoin("t-0", generation=2)
    assert bench.take()[1:] == ["on_partitions_revoked [t-1]", "poll raised WakeupError"]
    assert bench.core.assignment() == [("t", 0), ("t", 1)]
    bench.listener_raises.clear()
    bench.poll(0)
    assert bench.take()[:2] == ["on_partitions_revoked [t-1]", "on_partitions_assigned []"]
    assert bench.core.assignment() == [("t", 0)]


def test_heartbeats_go_on_while_the_listener_takes_its_time() -> None:
    bench = Bench(enable_auto_commit=False)
    bench.hold_listener = True
    bench.stable("t-0")
    bench.advance(3_000)
    assert bench.take() == ["Heartbeat gen=1"]


def test_a_listener_may_commit_what_it_is_about_to_lose() -> None:
    bench = member("t-0")
    bench.in_listener = lambda kind: (
        bench.later(lambda: bench.commit("last", {"t-0": 9})) if kind == "revoked" else None
    )
    bench.hold_listener = True
    bench.step(RebalanceEnforced("again"))
    bench.run_later()
    assert bench.take() == ["on_partitions_revoked [t-0]", "OffsetCommit gen=1 t-0@9"]
    bench.answer("OffsetCommit")
    assert bench.take() == ["commit last -> ok"]
    bench.listener_done()
    assert bench.take() == ["JoinGroup 'm' reason='again'"]
