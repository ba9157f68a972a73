"""What the rules conclude from rows of one group, for sources and cases that the gallery has not."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.findings.formatting import at_least, count, names, period, seconds, span, spans
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules import judge

MARCH_3 = 1_772_496_000_000
"""3 March 2026, midnight in UTC."""
MINUTE = 60_000


def rebalance(number: int, at_ms: int, cause: str, member: str | None, **more: Any) -> dict[str, Any]:
    row = {
        "rebalance_id": f"run/orders/{number}",
        "prepared_at_ms": at_ms,
        "ended_at_ms": at_ms + 2_000,
        "generation_to": number,
        "outcome": "completed",
        "cause": cause,
        "cause_member_id": member,
        "initial": False,
        "members_before": ["m1", "m2", "m3"],
        "protocol": "range",
        "owned_before": 12,
        "unavailable_ms": 2_000,
        "confidence": "exact",
    }
    return row | more


def session(member: str, joined: int | None, ended: int | None, end: str, client: str, **more: Any) -> dict[str, Any]:
    row = {
        "member_id": member,
        "client_id": client,
        "client_host": "/10.0.0.1",
        "joined_at_ms": joined,
        "ended_at_ms": ended,
        "end": end,
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "topics": ["orders"],
        "confidence": "exact",
    }
    return row | more


def found(**rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    history = GroupHistory.of(RunContext("run", MARCH_3 + 60 * MINUTE), "orders", rows)
    return {finding.finding: finding.row() for finding in judge(history)}


def restarts(
    clients: list[str], away_ms: int, every_ms: int = 2 * MINUTE, **more: Any
) -> dict[str, list[dict[str, Any]]]:
    """Each client leaves and is back, one after the other."""
    sessions, rebalances = [], [rebalance(0, MARCH_3, "join-new", f"{clients[0]}-0", initial=True)]
    for number, client in enumerate(clients):
        gone = MARCH_3 + (number + 1) * every_ms
        old, new = f"{client}-0", f"{client}-1"
        sessions += [
            session(old, MARCH_3, gone, "left", client, **more),
            session(new, gone + away_ms, None, "open", client, **more),
        ]
        rebalances += [
            rebalance(2 * number + 1, gone, "leave", old),
            rebalance(2 * number + 2, gone + away_ms, "join-new", new),
        ]
    return {"session": sessions, "rebalance": rebalances}


def test_restarts_one_after_the_other_are_a_deploy() -> None:
    row = found(**restarts(["a", "b", "c"], 20_000))["rolling-restart"]
    assert row["setting"] == "group.instance.id"
    assert row["numbers"]["rebalances"] == 6
    assert row["numbers"]["longest_away_ms"] == 20_000
    assert "6 of 7 rebalances of orders" in row["text"]
    assert "on 3 March" in row["text"]
    assert "30000 (30 s)" in row["advice"]
    assert row["confidence"] == "exact"
    assert row["rebalances"] == [f"run/orders/{number}" for number in range(1, 7)]


def test_one_restart_is_no_deploy() -> None:
    assert "rolling-restart" not in found(**restarts(["a"], 20_000))


def test_clients_that_share_an_id_are_paired_by_their_order_and_only_probably() -> None:
    rows = restarts(["a", "b", "c"], 20_000)
    for each in rows["session"]:
        each["client_id"] = "consumer-1"
    row = found(**rows)["rolling-restart"]
    assert row["confidence"] == "inferred"
    assert row["title"].startswith("Probably: ")


def test_new_hosts_at_each_start_are_paired_too() -> None:
    rows = restarts(["a", "b", "c"], 20_000)
    for number, each in enumerate(rows["session"]):
        each["client_host"] = f"/10.0.0.{number}"
    assert found(**rows)["rolling-restart"]["confidence"] == "inferred"


def test_without_pauses_a_cost_is_the_most_that_it_can_be_and_says_so() -> None:
    rows = restarts(["a", "b", "c"], 20_000)
    row = found(**rows)["eager-assignor"]
    assert row["numbers"]["consumer_seconds"] == 6 * 3 * 2
    assert "up to 36 s" in row["text"]
    assert row["confidence"] == "inferred"


def test_pauses_that_consumers_report_are_the_cost() -> None:
    rows = restarts(["a", "b", "c"], 20_000)
    rows["pauses"] = [
        {
            "generation_to": 1,
            "kind": "stop-the-world",
            "pauses": 2,
            "stopped_ms": 3_500,
            "ended_at_ms": MARCH_3 + 5 * MINUTE,
        }
    ]
    row = found(**rows)["eager-assignor"]
    assert row["score"] == 3.5
    assert row["confidence"] == "exact"


def missed(away_ms: list[int], **more: Any) -> dict[str, list[dict[str, Any]]]:
    """One instance whose session ends, and that is back so much later, each time."""
    sessions, rebalances, joined = [], [], MARCH_3
    for number, away in enumerate(away_ms):
        gone = joined + 10 * MINUTE
        sessions.append(session(f"m-{number}", joined, gone, "session-expiry", "one", **more))
        rebalances.append(rebalance(2 * number + 1, gone, "session-expiry", f"m-{number}"))
        joined = gone + away
        rebalances.append(rebalance(2 * number + 2, joined, "join-new", f"m-{number + 1}"))
    sessions.append(session(f"m-{len(away_ms)}", joined, None, "open", "one", **more))
    return {"session": sessions, "rebalance": rebalances}


def test_a_member_that_is_back_just_after_its_session_ended_missed_it() -> None:
    row = found(**missed([400, 2_000]))["session-too-short"]
    assert row["setting"] == "session.timeout.ms"
    assert "0.4 to 2 s" in row["title"]
    assert "4 of 4 rebalances of orders" in row["text"]
    assert "45 s" in row["text"]
    assert "group.instance.id is not set" in row["text"]
    assert row["numbers"]["wanted_session_timeout_ms"] >= 47_000


def test_a_static_member_s_restart_that_missed_it_is_called_too_long() -> None:
    row = found(**missed([400, 2_000], group_instance_id="one"))["session-too-short"]
    assert "shorter than the restart" in row["text"]
    assert "is not set" not in row["text"]


def test_a_member_that_stays_away_did_not_just_miss_its_session() -> None:
    assert "session-too-short" not in found(**missed([8 * MINUTE]))


def test_without_the_session_timeout_only_the_difference_is_advised() -> None:
    row = found(**missed([26_000], session_timeout_ms=None, group_instance_id="one"))["session-too-short"]
    assert "longer than it is now, by at least 45 s" in row["advice"]
    assert "then passes" not in row["advice"]
    assert "45000" not in row["advice"]
    assert row["numbers"]["longer_by_ms"] == 45_000
    assert not {"session_timeout_ms", "wanted_session_timeout_ms"} & set(row["numbers"])


def test_processes_killed_and_back_before_they_were_missed_took_what_their_session_had_not_yet_counted() -> None:
    def killed(timeout: int | None) -> dict[str, list[dict[str, Any]]]:
        rows = restarts(["a", "b", "c"], -20_000, session_timeout_ms=timeout)
        for each in rows["session"]:
            if each["end"] == "left":
                each["end"] = "session-expiry"
        for each in rows["rebalance"]:
            if each["cause"] == "leave":
                each["cause"] = "session-expiry"
        return rows

    row = found(**killed(45_000))["rolling-restart"]
    assert "at least 30000 (30 s) here" in row["advice"]
    assert "before the old process was missed" in row["text"]
    unknown = found(**killed(None))["rolling-restart"]["advice"]
    assert "longer than a restart takes. " in unknown


def silent(*others: dict[str, Any], source: str | None = "broker-log") -> dict[str, dict[str, Any]]:
    """One member whose session ended, and the other sessions of the group."""
    gone = MARCH_3 + 10 * MINUTE
    dead = session("m-0", None, gone, "session-expiry", "one", session_timeout_ms=None)
    began = rebalance(1, gone, "session-expiry", "m-0", source=source, protocol=None)
    return found(session=[dead, *others], rebalance=[began])


def test_no_member_is_taken_for_dead_where_joins_are_not_reported() -> None:
    assert set(silent()) == {"fell-silent"}
    row = silent()["fell-silent"]
    assert (row["setting"], row["confidence"]) == (None, "inferred")
    # Brokers that report no other join report one that begins a rebalance.
    began = session("m-1", MARCH_3, None, "open", "two")
    rows = {
        "session": [session("m-0", None, MARCH_3 + MINUTE, "session-expiry", "one"), began],
        "rebalance": [rebalance(1, MARCH_3, "join-new", "m-1")],
    }
    assert "died-without-leaving" not in found(**rows)


def test_a_member_without_a_later_join_is_dead_where_joins_are_reported() -> None:
    other = session("m-1", MARCH_3, None, "open", "two")
    assert set(silent(other)) == set(silent(source="coordinator")) == {"died-without-leaving"}
    assert silent(other)["died-without-leaving"]["confidence"] == "exact"
    unsure = silent({**other, "confidence": "inferred"})["died-without-leaving"]
    assert unsure["confidence"] == "inferred"
    assert unsure["title"].startswith("Probably")


def test_a_static_member_s_restart_does_not_show_that_joins_are_reported() -> None:
    old = session("s-0", None, MARCH_3 + MINUTE, "replaced", "two", group_instance_id="s")
    new = session("s-1", MARCH_3 + MINUTE, None, "open", "two", group_instance_id="s")
    assert "died-without-leaving" not in silent(old, new)


def test_a_client_that_expires_three_times_in_a_short_while_flaps() -> None:
    rows = missed([1_000, 1_000, 1_000, 1_000])
    others = [session(f"other-{n}", MARCH_3, None, "open", f"other-{n}") for n in range(3)]
    rows["session"] += others
    names_found = found(**rows)
    assert names_found["flapping-member"]["members"] == ["one"]
    assert "session-too-short" not in names_found


def test_a_poll_timeout_is_known_from_what_the_client_said() -> None:
    gone = MARCH_3 + 10 * MINUTE
    rows = {
        "session": [
            session("m-0", MARCH_3, gone, "left", "one", leave_reason="consumer poll timeout has expired."),
            session("m-1", gone + 4 * MINUTE, None, "open", "one"),
        ],
        "rebalance": [
            rebalance(1, gone, "leave", "m-0", client_reason="consumer poll timeout has expired."),
            rebalance(2, gone + 4 * MINUTE, "join-new", "m-1"),
        ],
    }
    row = found(**rows)["max-poll-exceeded"]
    assert row["setting"] == "max.poll.interval.ms"
    assert row["numbers"]["longest_batch_ms"] == 9 * MINUTE
    assert "max.poll.records" in row["advice"]
    assert "rolling-restart" not in found(**rows)


def test_a_late_member_holds_up_the_others() -> None:
    row = rebalance(
        1,
        MARCH_3,
        "join-new",
        "m4",
        join_ms=30_000,
        slowest_member_id="m2",
        slowest_ms=29_900,
        members_waiting_ms=55_000,
    )
    row = found(rebalance=[row], session=[session("m2", MARCH_3, None, "open", "slow")])["join-held-up"]
    assert row["members"] == ["slow"]
    assert row["setting"] == "max.poll.interval.ms"
    assert "30 s" in row["title"]


def test_a_join_phase_of_a_heartbeat_is_as_it_should_be() -> None:
    row = rebalance(1, MARCH_3, "join-new", "m4", join_ms=3_000, slowest_member_id="m2", slowest_ms=3_000)
    assert "join-held-up" not in found(rebalance=[row])


def test_a_fenced_process_has_died_and_only_several_instances_at_once_look_like_a_deploy() -> None:
    def fenced(at_ms: int, instance: str = "i") -> dict[str, Any]:
        return {
            "source": "coordinator",
            "node": "n",
            "seq": at_ms,
            "at_ms": at_ms,
            "event": "member_fenced",
            "group_instance_id": instance,
        }

    once = found(event=[fenced(MARCH_3)])["duplicate-instance-id"]
    twice = found(event=[fenced(MARCH_3), fenced(MARCH_3 + MINUTE)])["duplicate-instance-id"]
    assert (once["severity"], twice["severity"]) == ("high", "high")
    assert "now has a fatal error" in once["title"]
    deploy = found(event=[fenced(MARCH_3), fenced(MARCH_3 + MINUTE, "j")])["duplicate-instance-id"]
    assert deploy["severity"] == "medium"
    assert [each["seq"] for each in twice["evidence"]] == [MARCH_3, MARCH_3 + MINUTE]


def test_an_assignor_that_gives_one_three_times_its_share() -> None:
    balance = {
        "at_ms": MARCH_3,
        "generation": 3,
        "protocol": "range",
        "members": 4,
        "partitions": 8,
        "least": 0,
        "most": 6,
        "most_member_id": "m1",
    }
    row = found(balance=[balance], session=[session("m1", MARCH_3, None, "open", "a", topics=["a", "b"])])[
        "unbalanced-assignor"
    ]
    assert row["severity"] == "high"
    assert "shares out each of the 2 topics apart" in row["text"]
    one_more = balance | {"least": 2, "most": 3, "partitions": 9}
    assert "unbalanced-assignor" not in found(balance=[one_more])


def test_members_with_other_subscriptions_may_have_more() -> None:
    balance = {"at_ms": MARCH_3, "protocol": "sticky", "members": 2, "partitions": 8, "least": 1, "most": 7}
    sessions = [session("m1", MARCH_3, None, "open", "a"), session("m2", MARCH_3, None, "open", "b", topics=["other"])]
    assert "unbalanced-assignor" not in found(balance=[balance], session=sessions)


def test_nothing_is_found_where_nothing_happened() -> None:
    assert found() == {}
    assert found(rebalance=[rebalance(1, MARCH_3, "join-new", "m1", initial=True)]) == {}


def test_a_broker_log_knows_growth_only_from_the_leader_s_reason() -> None:
    row = rebalance(1, MARCH_3, "rejoin-leader", "m1", client_reason="cached metadata has changed", protocol=None)
    row = found(rebalance=[row])["topic-growth"]
    assert row["title"].startswith("Probably")
    assert row["confidence"] == "inferred"


def test_the_worst_comes_first() -> None:
    rows = restarts(["a", "b", "c"], 20_000) | {
        "loss": [
            {"topic": "orders", "partition": 1, "records": 5, "ranges": 1, "first_ms": MARCH_3, "last_ms": MARCH_3}
        ]
    }
    order = list(found(**rows))
    assert order[0] == "lost-records"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (400, "400 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (45_000, "45 s"),
        (119_999, "120 s"),
        (150_000, "2.5 min"),
        (7_199_000, "120 min"),
        (7_200_000, "2 h"),
        (90_000_000, "25 h"),
    ],
)
def test_lengths(ms: int, text: str) -> None:
    assert span(ms) == text


def test_words() -> None:
    assert (count(1, "rebalance"), count(1_600, "rebalance")) == ("1 rebalance", "1,600 rebalances")
    assert (names([]), names("a"), names("ab"), names("abcd"), names("abcde")) == (
        "none", "a", "a and b", "a, b, c and d", "a, b, c and 2 more",
    )  # fmt: skip
    assert spans([400, 2_000]) == "0.4 to 2 s"
    assert spans([2_000, 150_000]) == "2 s to 2.5 min"
    assert spans([20, 20]) == "20 ms"
    assert (seconds(1_234_567), seconds(40)) == ("1,235", "0.04")
    assert (at_least(1), at_least(45_001), at_least(3_600_001)) == (1_000, 60_000, 7_200_000)


def test_periods() -> None:
    assert period(300_000, 620_000) == "from 0:05:00 to 0:10:20"
    assert period(300_000, 300_400) == "at 0:05:00"
    assert period(MARCH_3, MARCH_3) == "on 3 March at 00:00:00"
    assert period(MARCH_3, MARCH_3 + MINUTE) == "on 3 March from 00:00:00 to 00:01:00"
    assert period(MARCH_3, MARCH_3 + 2 * 86_400_000) == "from 3 March to 5 March 2026"
    assert period(None, 3) == "at an unknown time"


def test_pauses_that_were_only_concluded_are_an_upper_bound() -> None:
    rows = restarts(["a", "b", "c"], 20_000)
    pauses = {
        "generation_to": 1,
        "kind": "stop-the-world",
        "pauses": 3,
        "stopped_ms": 6_000,
        "ended_at_ms": MARCH_3 + 5 * MINUTE,
    }
    concluded = found(**rows, pauses=[pauses | {"guessed": True}])["rolling-restart"]
    row = found(**rows, pauses=[pauses | {"guessed": False}])["rolling-restart"]
    assert concluded["score"] == row["score"] == 6.0
    assert "stood still for up to 6 s" in concluded["text"]
    assert "stood still for 6 s" in row["text"]
