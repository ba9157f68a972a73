"""Causes that are easily mistaken for each other: all members crash, single restarts, changed subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.findings.test_causes import SECOND, SIX, Group, event
from tests.pipeline.findings.test_findings_rules import MARCH_3


def crashing(clients: list[str], times: int = 5) -> Group:
    """Each crashes on its own, and its new process is there before the old one is missed."""
    group = Group(clients)
    for nth, client in enumerate(clients):
        for crash in range(times):
            group.is_silent(client, 100 + 7 * nth + crash * (27 + 2 * nth), -6)
    return group


@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_group_in_which_every_member_crashes_names_each(size: int) -> None:
    clients = SIX[:size]
    found = crashing(clients).found()
    assert sorted(row["members"][0] for row in found["flapping-member"]) == clients
    assert all(row["numbers"]["returns"] == 5 for row in found["flapping-member"])
    assert "rolling-restart" not in found
    assert "died-without-leaving" not in found
    assert all(f"by {client}" in found["storm"][0]["text"] for client in clients[:5])


def test_members_that_all_crash_may_have_one_reason() -> None:
    advice = [row["advice"] for row in crashing(SIX[:3]).found()["flapping-member"]]
    assert all("look for what they share" in each for each in advice)
    assert "look for what they share" not in crashing(SIX[:1]).found()["flapping-member"][0]["advice"]


def test_four_deploys_one_after_the_other_are_deploys() -> None:
    group = Group(SIX)
    for deploy in range(4):
        for nth, client in enumerate(SIX):
            group.is_silent(client, 100 + deploy * 300 + nth * 15, 5)
    found = group.found()
    assert found["rolling-restart"][0]["numbers"]["deploys"] == 4
    assert "flapping-member" not in found


def test_single_troubles_of_several_members_are_no_deploy() -> None:
    group = Group(SIX[:4])
    group.restarts("orders-1", 100, 9)
    group.is_silent("orders-2", 190, 6)
    group.is_silent("orders-3", 230, 27)
    found = group.found()
    assert "rolling-restart" not in found
    assert found["session-too-short"][0]["members"] == ["orders-2", "orders-3"]


def test_a_member_that_a_deploy_had_to_kill_is_part_of_it() -> None:
    group = Group(SIX)
    for nth, client in enumerate(SIX[:5]):
        if nth == 2:
            group.is_silent(client, 100 + nth * 20 + 10, 4)
        else:
            group.restarts(client, 100 + nth * 20)
    found = group.found()
    assert found["rolling-restart"][0]["members"] == SIX[:5]
    assert "1 of them silently" in found["rolling-restart"][0]["text"]
    assert not {"session-too-short", "died-without-leaving"} & set(found)


def test_a_pause_in_the_midst_of_a_deploy_is_not_part_of_it() -> None:
    group = Group(SIX)
    for nth, client in enumerate(SIX[:5]):
        group.restarts(client, 100 + nth * 20)
    group.is_silent("orders-6", 153, 4)
    found = group.found()
    assert found["rolling-restart"][0]["members"] == SIX[:5]
    assert found["session-too-short"][0]["members"] == ["orders-6"]


def test_two_deploys_and_two_pauses_of_one_client_are_no_crash_loop() -> None:
    group = Group(SIX)
    for deploy in (0, 200):
        for nth, client in enumerate(SIX[:5]):
            group.restarts(client, 100 + deploy + nth * 11)
    for at in (500, 530):
        group.is_silent("orders-1", at, 6)
    found = group.found()
    assert "flapping-member" not in found
    assert found["rolling-restart"][0]["numbers"]["deploys"] == 2
    assert found["session-too-short"][0]["numbers"]["expired"] == 2


def test_a_session_of_unknown_length_that_ended_later_than_the_others_was_not_ended_by_the_outage() -> None:
    group = Group(SIX, session_timeout_ms=None)
    group.events += [event("broker_stopped", 100), event("broker_started", 146), event("group_loaded", 147)]
    for client in SIX[:2]:
        group.is_silent(client, 157, 1)
    group.is_silent("orders-3", 185, 6)
    found = group.found()
    assert found["session-too-short"][0]["members"] == ["orders-3"]
    assert found["coordinator-failover"][0]["numbers"]["rebalances_after"] == 4


def test_members_that_say_so_changed_their_subscription() -> None:
    group = Group(SIX)
    for nth, member in enumerate(("orders-3-3", "orders-5-5", "orders-3-3")):
        at = MARCH_3 + (100 + 40 * nth) * SECOND
        group.began(at, "rejoin-metadata", member, client_reason="subscription has changed")
    row = group.found()["subscription-changed"][0]
    assert row["title"] == "orders-3 and orders-5 subscribed to other topics"
    assert row["numbers"]["changes"] == 3
    assert row["severity"] == "low"


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_changed_metadata_without_a_reason_is_probably_a_subscription(protocol: str) -> None:
    group = Group(SIX, protocol)
    group.began(MARCH_3 + 100 * SECOND, "rejoin-metadata", "orders-3-3")
    row = group.found()["subscription-changed"][0]
    assert row["title"].startswith("Probably: orders-3 ")
    assert row["confidence"] == "inferred"


def undisturbed(protocol: str, **more: Any) -> Group:
    group = Group(SIX, protocol)
    group.began(MARCH_3 + 100 * SECOND, "rejoin-metadata", "orders-3-3", **more)
    return group


def test_changed_metadata_that_something_else_explains_is_no_subscription() -> None:
    assert "subscription-changed" not in undisturbed("sticky").found()
    assert "subscription-changed" not in undisturbed("range", client_reason="rebalance failed").found()
    grown = undisturbed("range")
    grown.events.append(event("topic_grown", 95, topic="orders", partition_count=16, previous_partition_count=12))
    found = grown.found()
    assert "topic-growth" in found
    assert "subscription-changed" not in found
    halves = Group(SIX, "cooperative-sticky")
    halves.restarts("orders-2", 100)
    halves.began(MARCH_3 + 109 * SECOND, "rejoin-metadata", "orders-1-1")
    assert "subscription-changed" not in halves.found()


def outage(group: Group) -> Group:
    group.events += [event("broker_stopped", 100), event("broker_started", 146), event("group_loaded", 147)]
    return group


def test_a_process_that_was_started_while_the_broker_was_away_crashed() -> None:
    group = outage(Group(SIX))
    for client in SIX[:3]:
        group.is_silent(client, 157, -1)
    for at in (90, 157.5, 200):
        group.is_silent("orders-4", at, 2, same_process_as="")
    found = group.found()
    assert [row["members"] for row in found["flapping-member"]] == [["orders-4"]]
    assert found["flapping-member"][0]["numbers"]["returns"] == 3


def test_clients_that_count_their_requests_anew_were_not_all_started_while_the_broker_was_away() -> None:
    group = outage(Group(SIX))
    for client in SIX:
        group.is_silent(client, 157, -1, same_process_as="")
    assert not {"died-without-leaving", "rolling-restart"} & set(group.found())


def test_polls_that_were_late_for_want_of_a_coordinator_are_part_of_the_outage() -> None:
    group = outage(Group(SIX, rebalance_timeout_ms=15_000))
    for client in SIX:
        group.leaves(client, 148, leave_reason="consumer poll timeout has expired.")
        group.joins(client, 149)
    found = group.found()
    assert "max-poll-exceeded" not in found
    assert found["coordinator-failover"][0]["numbers"]["rebalances_after"] == 12


def test_a_member_that_did_not_rejoin_was_late_with_its_poll() -> None:
    group = Group(SIX, rebalance_timeout_ms=20_000)
    group.leaves("orders-2", 100, "unknown", "did-not-rejoin")
    group.joins("orders-2", 107)
    found = group.found()
    assert found["max-poll-exceeded"][0]["members"] == ["orders-2"]
    assert "was removed from" in found["max-poll-exceeded"][0]["text"]
    assert "died-without-leaving" not in found


def test_a_static_member_that_is_late_with_its_poll_says_nothing_and_its_session_ends() -> None:
    group = Group(SIX)
    for row in group.sessions:
        row["group_instance_id"] = row["client_id"]
    late = event("poll_timeout_exceeded", 90, member_id="orders-2-2", group_instance_id="orders-2", timeout_ms=15_000)
    group.events.append(late | {"source": "client"})
    group.is_silent("orders-2", 100, 2, group_instance_id="orders-2")
    found = group.found()
    assert found["max-poll-exceeded"][0]["numbers"]["rebalances"] == 2
    assert "session-too-short" not in found


def test_growth_soon_after_an_outage_is_growth() -> None:
    group = outage(Group(SIX))
    group.events.append(event("topic_grown", 170, topic="orders", partition_count=16, previous_partition_count=12))
    group.began(MARCH_3 + 176 * SECOND, "rejoin-leader", "orders-1-1")
    found = group.found()
    assert found["topic-growth"][0]["rebalances"] == ["run/orders/1"]
    assert found["coordinator-failover"][0]["numbers"]["rebalances_after"] == 0


def test_members_without_names_that_were_paused_before_are_part_of_a_deploy() -> None:
    group = Group(["a", "b", "c"], "uniform", group_protocol="consumer", session_timeout_ms=None)
    for row in group.sessions:
        row["client_id"] = None
    paused = group.sessions[1]["member_id"]
    group.is_silent("b", 50, 5)
    group.sessions[-1]["member_id"] = group.rebalances[-1]["cause_member_id"] = paused
    for nth, client in enumerate(("a", "b", "c")):
        group.leaves(client, 200 + nth * 15)
        group.joins(f"new-{nth}", 205 + nth * 15)
        for row in group.sessions:
            row["client_id"] = None
    assert group.found()["rolling-restart"][0]["numbers"]["restarts"] == 3
