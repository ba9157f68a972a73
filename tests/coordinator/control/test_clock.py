"""Time over the network: it stands still until it is advanced, and the answer says what happened on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from rejoin.coordinator.control import clocks
from rejoin.coordinator.control.clocks import RunningClock, VirtualClock, clock_named
from tests.coordinator.control.conftest import Start
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.service.helpers import join, sync


async def test_time_stands_still_until_it_is_advanced(node: ControlledNode) -> None:
    before = await node.control("GET", "/clock")
    assert before["clock"] == "virtual"
    answer = await node.advance(45_000)
    assert (answer["now_ms"], answer["advanced_ms"]) == (before["now_ms"] + 45_000, 45_000)
    assert (await node.control("GET", "/clock"))["now_ms"] == answer["now_ms"]


async def test_the_initial_delay_of_three_seconds_costs_nothing(node: ControlledNode) -> None:
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joining = node.asking("JoinGroup", join("g", member_id))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    answer = await node.advance(2_999)
    assert answer["fired"] == []
    assert not joining.done()
    answer = await node.advance(1)
    (fired,) = answer["fired"]
    assert (fired["timer"], fired["group"], fired["after_ms"]) == ("join", "g", 1)
    assert (await joining)["generationId"] == 1


async def test_a_member_that_says_nothing_for_its_session_timeout_is_out(node: ControlledNode) -> None:
    member_id = await node.stable()
    answer = await node.advance(45_000)
    assert [(each["timer"], each["member"]) for each in answer["fired"]] == [("session", member_id)]
    assert f"g  {member_id} removed (no heartbeat in time)" in [each["text"] for each in answer["events"]]
    assert await node.beat(member_id) == 25


async def test_a_heartbeat_in_between_keeps_it_in(node: ControlledNode) -> None:
    member_id = await node.stable()
    for _ in range(5):
        assert (await node.advance(44_000))["fired"] == []
        assert await node.beat(member_id) == 0


async def test_parked_requests_stay_parked_while_time_stands_still(node: ControlledNode) -> None:
    member_id = await node.stable()
    other = (await node.call("JoinGroup", join("g"), client_id="other"))["memberId"]
    joining = node.asking("JoinGroup", join("g", other), "other")
    await node.control("POST", "/groups/wait", group="g", state="PreparingRebalance", waiting=1)
    assert await node.beat(member_id) == 27
    assert not joining.done()
    rejoining = node.asking("JoinGroup", join("g", member_id))
    assert (await joining)["generationId"] == (await rejoining)["generationId"] == 2


async def test_a_year_passes_over_what_is_not_due(node: ControlledNode) -> None:
    """Old offsets are looked for where there are groups: until the last one is gone, seven days after its session."""
    year_ms = 365 * 86_400_000
    assert (await node.advance(year_ms))["fired"] == []
    await node.stable()
    answer = await node.advance(year_ms)
    fired = [each for each in answer["fired"] if each["timer"] == "expiry"]
    assert len(fired) <= 7 * 24 * 6 + 2
    assert {each["partitions"] for each in fired} == {1}
    assert (await node.control("GET", "/clock"))["next_in_ms"] is None


async def test_until_next_goes_to_the_next_timer_and_no_further(node: ControlledNode) -> None:
    await node.stable()
    answer = await node.control("POST", "/clock", until="next")
    assert answer["advanced_ms"] == 45_000
    assert [each["timer"] for each in answer["fired"]] == ["session"]


async def test_until_next_goes_no_further_than_it_may(node: ControlledNode) -> None:
    await node.stable()
    answer = await node.control("POST", "/clock", until="next", at_most_ms=1_000)
    assert (answer["reached"], answer["fired"], answer["advanced_ms"]) == (False, [], 0)


async def test_until_idle_goes_on_until_only_the_look_at_old_offsets_is_left(node: ControlledNode) -> None:
    await node.stable()
    await node.stable("h", sessionTimeoutMs=60_000)
    answer = await node.control("POST", "/clock", until="idle")
    assert answer["reached"]
    assert [(each["timer"], each["group"]) for each in answer["fired"]] == [("session", "g"), ("session", "h")]
    assert (await node.group())["state"] == "Empty"
    assert (await node.control("POST", "/clock", until="idle"))["advanced_ms"] == 0


async def test_looks_at_logs_and_producers_do_not_keep_the_clock_going(node: ControlledNode) -> None:
    producing = {"transactionalId": None, "transactionTimeoutMs": 1_000, "producerId": -1, "producerEpoch": -1}
    await node.call("InitProducerId", producing, version=4)
    await node.control("POST", "/topics", topic="real", partitions=1)
    await node.control("POST", "/topics/produce", topic="real", partition=0, records=["a"])
    answer = await node.control("POST", "/clock", until="idle")
    assert (answer["reached"], answer["advanced_ms"]) == (True, 0)
    # They still come when the clock is moved by so much.
    assert [each["timer"] for each in (await node.advance(300_000))["fired"]] == ["cleaning"]


async def test_a_consumer_that_waits_for_records_does_not_keep_the_clock_going(node: ControlledNode) -> None:
    partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1}
    topics = [{"topic": "orders", "partitions": [partition]}]
    body = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0, "topics": topics, "replicaId": -1}
    waiting = asyncio.ensure_future(node.call("Fetch", body, version=4))
    async with asyncio.timeout(60):
        while not node.app.runtime.node.waiting():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert (await node.control("POST", "/clock", until="idle"))["advanced_ms"] == 0
    answer = await node.control("POST", "/clock", until="next", at_most_ms=1_000)
    assert (answer["reached"], answer["fired"]) == (False, [])
    assert (await waiting)["responses"][0]["partitions"][0]["errorCode"] == 0


async def test_clients_can_be_given_time_to_react_on_the_way(node: ControlledNode) -> None:
    async def client() -> None:
        member_id = (await node.call("JoinGroup", join("g")))["memberId"]
        answer = await node.call("JoinGroup", join("g", member_id))
        given = sync("g", member_id, answer["generationId"], {member_id: {"orders": [0]}})
        await node.call("SyncGroup", given)

    began = (await node.control("GET", "/clock"))["now_ms"]
    living = asyncio.ensure_future(client())
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    await node.control("POST", "/clock", advance_ms=47_999, settle_ms=200)
    await living
    group = await node.group()
    assert (group["state"], group["stateSince"]) == ("Stable", began + 3_000), "it synced on the way, at three seconds"


async def test_forty_five_seconds_five_minutes_and_seven_days(node: ControlledNode) -> None:
    """Session timeout, rebalance timeout (which is max.poll.interval.ms) and retention, each at its very instant."""
    crashed = await node.stable()
    await node.advance(44_999)
    assert (await node.group())["state"] == "Stable"
    await node.advance(1)
    assert (await node.group())["state"] == "Empty"

    leader = await node.stable("h")
    slow = (await node.call("JoinGroup", join("h"), client_id="slow"))["memberId"]
    joining = node.asking("JoinGroup", join("h", slow), "slow")
    await node.control("POST", "/groups/wait", group="h", waiting=1)
    assert (await node.call("JoinGroup", join("h", leader)))["generationId"] == 2
    await joining
    await node.call("SyncGroup", sync("h", leader, 2, {leader: {"orders": [0, 1]}, slow: {"orders": [2]}}))
    again = node.asking("JoinGroup", join("h", leader))
    await node.control("POST", "/groups/wait", group="h", waiting=1)
    for millis in (40_000,) * 7 + (19_999,):
        await node.advance(millis)
        assert await node.beat(slow, "h", 2, client_id="slow") == 27
    assert not again.done()
    assert [each["timer"] for each in (await node.advance(1))["fired"]] == ["join"]
    assert (await again)["generationId"] == 3
    assert [member["memberId"] for member in (await node.group("h"))["members"]] == [leader]

    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}
    commit = {"groupId": "batch", "memberId": "", "topics": [{"name": "orders", "partitions": [partition]}]}
    await node.call("OffsetCommit", commit)
    week = 7 * 24 * 3_600_000
    await node.advance(week - 600_000)
    assert (await node.group("batch"))["offsets"]
    await node.advance(1_200_000)
    assert await node.group("batch") is None
    assert await node.group() is None, f"the group of {crashed} was Empty for as long"


async def test_a_running_clock_can_be_pushed_on_too(start: Start) -> None:
    node = await start("real")
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joining = node.asking("JoinGroup", join("g", member_id))
    await node.control("POST", "/groups/wait", group="g", waiting=1)
    assert "join" in [each["timer"] for each in (await node.advance(3_000))["fired"]]
    assert (await joining)["generationId"] == 1


async def test_a_fast_clock_runs_by_itself(start: Start) -> None:
    node = await start("fast:600")
    member_id = (await node.call("JoinGroup", join("g")))["memberId"]
    joined = await node.until(node.call("JoinGroup", join("g", member_id)))
    assert joined["generationId"] == 1
    await node.call("SyncGroup", sync("g", member_id, 1, {member_id: {}}))
    await node.control("POST", "/groups/wait", group="g", state="Empty")
    transcript = await node.control("GET", "/transcript")
    assert "+3000ms" in transcript, "timers fire at their instants, however fast the clock is"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "expected exactly one of advance_ms and until"),
        ({"advance_ms": 1, "until": "next"}, "expected exactly one of advance_ms and until"),
        ({"advance_ms": -1}, "advance_ms"),
        ({"advance_ms": "1"}, "advance_ms"),
        ({"until": "tomorrow"}, "until: expected 'next' or 'idle'"),
        ({"advance": 1}, "there is no field advance; is it advance_ms?"),
    ],
)
async def test_a_wrong_order_is_reported_in_full(node: ControlledNode, body: dict[str, object], words: str) -> None:
    status, detail = await node.refused("POST", "/clock", **body)
    assert (status, words in detail) == (400, True), detail


@pytest.mark.parametrize(
    ("name", "kind"), [("real", "real"), ("virtual", "virtual"), ("fast:60", "fast:60"), ("fast:0.5", "fast:0.5")]
)
def test_clocks_go_by_their_names(name: str, kind: str) -> None:
    assert clock_named(name).kind == kind


@pytest.mark.parametrize("name", ["", "slow", "fast", "fast:", "fast:x", "fast:0", "fast:-1", "fast:nan", "virtual:1"])
def test_what_is_no_clock_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected real, virtual, or fast:SPEED"):
        clock_named(name)


def test_alarms_ring_in_order_and_at_their_instants() -> None:
    clock = VirtualClock(1_000)
    rung: list[tuple[int, int]] = []

    def ring(when: int) -> None:
        rung.append((when, clock.now()))

    for when in (1_300, 1_100, 1_200):
        clock.call_at(when, partial(ring, when))
    taken_back = clock.call_at(1_150, partial(ring, 0))
    taken_back.cancel()
    while (due := clock.next_alarm()) is not None:
        clock.jump(due)
        clock.catch_up()
    assert rung == [(1_100, 1_100), (1_200, 1_200), (1_300, 1_300)]


async def test_a_late_alarm_rings_at_the_instant_it_was_set_for() -> None:
    clock, rung = RunningClock(1_000.0, start=0), []
    clock.call_at(500, lambda: rung.append(clock.now()))
    while clock.now() < 700:  # the loop is busy elsewhere meanwhile
        pass
    clock.catch_up()
    assert rung == [500]
    assert clock.now() >= 700
    clock.stop()


async def test_a_clock_that_runs_leaves_out_the_time_for_which_the_process_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "STALLED_SECONDS", 0.0)
    clock, rung = RunningClock(1_000.0, start=0), []
    let_in: asyncio.Future[Callable[[], None]] = asyncio.get_running_loop().create_future()
    clock.let_in = let_in.set_result
    clock.call_at(500, lambda: rung.append(clock.now()))
    go_on = await asyncio.wait_for(let_in, 60)
    clock.catch_up()
    assert (clock.now(), rung) == (500, []), "what arrives now arrives in time"
    monkeypatch.setattr(clocks, "STALLED_SECONDS", 60.0)
    go_on()
    assert rung == [500]
    assert clock.now() >= 500
    clock.stop()


async def test_a_clock_can_be_pushed_on_while_it_waits_for_what_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "STALLED_SECONDS", 0.0)
    clock, rung = RunningClock(1_000.0, start=0), []
    let_in: asyncio.Future[Callable[[], None]] = asyncio.get_running_loop().create_future()
    clock.let_in = let_in.set_result
    clock.call_at(500, lambda: rung.append(clock.now()))
    go_on = await asyncio.wait_for(let_in, 60)
    monkeypatch.setattr(clocks, "STALLED_SECONDS", 60.0)
    clock.jump(5_000)
    clock.catch_up()
    go_on()
    assert rung == [500]
    assert clock.now() >= 5_000
    clock.stop()


async def test_an_alarm_for_this_instant_rings_without_time_passing() -> None:
    clock, rung = VirtualClock(), asyncio.Event()
    clock.call_at(clock.now(), rung.set)
    assert not rung.is_set()
    await asyncio.wait_for(rung.wait(), 60)
