"""Advice about timeouts: none that cannot be followed, and none that contradicts other advice and does not say so."""

from __future__ import annotations

from typing import Any

from tests.pipeline.findings.rules.test_consumer_groups import event
from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, rebalance, session

Row = dict[str, Any]

SECOND = 1_000


def died(at_ms: int, client: str, session_ms: int, **more: Any) -> dict[str, list[Row]]:
    """A member that falls silent and is removed a session later."""
    gone = at_ms + session_ms
    member = f"{client}-old"
    row = session(member, MARCH_3, gone, "session-expiry", client, session_timeout_ms=session_ms, **more)
    return {"session": [row], "rebalance": [rebalance(1, gone, "session-expiry", member, source="coordinator")]}


def back(rows: dict[str, list[Row]], client: str, at_ms: int, session_ms: int) -> None:
    rows["session"].append(session(f"{client}-new", at_ms, None, "open", client, session_timeout_ms=session_ms))
    rows["rebalance"].append(rebalance(len(rows["session"]) + 10, at_ms, "join-new", f"{client}-new"))


def of_client(at_ms: int, name: str, client: str) -> Row:
    return event(at_ms - MARCH_3, name, source="client", client_id=client, member_id=f"{client}-old")


def test_no_shorter_session_is_advised_where_it_is_the_shortest_that_brokers_take() -> None:
    row = found(**died(MARCH_3 + 20 * MINUTE, "one", 6_000))["died-without-leaving"]
    assert "finds out sooner" not in row["advice"]
    assert "would need a lower group.min.session.timeout.ms of the broker, too" in row["advice"]
    assert row["setting"] is None
    modern = found(**died(MARCH_3 + 20 * MINUTE, "one", 45_000, group_protocol="consumer"))["died-without-leaving"]
    assert "finds out sooner" not in modern["advice"]
    assert "would need a lower group.consumer.min.session.timeout.ms of the broker, too" in modern["advice"]
    longer = found(**died(MARCH_3 + 20 * MINUTE, "one", 45_000))["died-without-leaving"]
    assert "a shorter session.timeout.ms finds out sooner" in longer["advice"]
    assert longer["setting"] == "session.timeout.ms"


def test_a_process_that_is_back_before_its_session_ends_needs_an_instance_id_and_no_shorter_session() -> None:
    at_ms = MARCH_3 + 20 * MINUTE
    rows = died(at_ms, "one", 10_000)
    back(rows, "one", at_ms + 5_900, 10_000)
    row = found(**rows)["died-without-leaving"]
    assert "5.9 s after the last sign" in row["text"]
    assert row["setting"] == "group.instance.id"
    assert "without any rebalance" in row["advice"]
    assert "finds out sooner" not in row["advice"]


def silent_for_28_s(*, noticed: bool) -> dict[str, dict[str, Any]]:
    """A member that is back 18 s after its session of 10 s has ended, with its own journal."""
    at_ms = MARCH_3 + 20 * MINUTE
    rows = died(at_ms, "one", 10_000)
    back(rows, "one", at_ms + 28_000, 10_000)
    rows["event"] = [
        of_client(MARCH_3, "subscribing", "one"),
        of_client(at_ms + 27_900, "membership_reset" if noticed else "subscribing", "one"),
    ]
    return found(**rows)


def test_a_consumer_s_own_journal_decides_between_a_pause_and_a_restart() -> None:
    paused = silent_for_28_s(noticed=True)["session-too-short"]
    assert "session.timeout.ms is shorter than the pause." in paused["text"]
    assert "restart" not in paused["advice"]
    restarted = silent_for_28_s(noticed=False)
    assert "session-too-short" not in restarted
    assert "came back as a new process, 28 s after the last sign" in restarted["died-without-leaving"]["text"]


def test_opposite_advice_on_the_session_names_the_trade_off_in_both_findings() -> None:
    at_ms = MARCH_3 + 20 * MINUTE
    rows = died(at_ms, "one", 10_000)
    gone = died(at_ms + 10 * MINUTE, "two", 10_000)
    gone["rebalance"][0]["rebalance_id"] = "run/orders/9"
    back(rows, "one", at_ms + 28_000, 10_000)
    rows["event"] = [of_client(at_ms + 27_900, "membership_reset", "one")]
    both = found(**{kind: rows[kind] + gone.get(kind, []) for kind in rows})
    raised, lowered = both["session-too-short"], both["died-without-leaving"]
    assert f'"{lowered["title"]}" asks for a shorter session.timeout.ms' in raised["advice"]
    assert f'"{raised["title"]}" asks for a longer session.timeout.ms' in lowered["advice"]
    assert "a pause passes without a rebalance" in lowered["advice"]
    assert "trade-off" not in silent_for_28_s(noticed=True)["session-too-short"]["advice"]


def test_opposite_advice_on_the_poll_interval_names_the_trade_off_in_both_findings() -> None:
    at_ms = MARCH_3 + 20 * MINUTE
    about = {"rebalance_timeout_ms": 180_000}
    left = at_ms + 150 * SECOND
    late = session("m-1", MARCH_3, left, "left", "slow", leave_reason="consumer poll timeout has expired.", **about)
    again = session("m-2", left + 5 * MINUTE, None, "open", "slow", **about)
    held_up = rebalance(1, at_ms, "join-new", "n", join_ms=150 * SECOND, left=["m-1"], ended_at_ms=left + 10)
    joined = rebalance(2, left + 5 * MINUTE, "join-new", "m-2")
    both = found(session=[late, again], rebalance=[held_up, joined])
    shorter, longer = both["join-held-up"], both["max-poll-exceeded"]
    assert "lower max.poll.interval.ms" in shorter["advice"]
    assert f'"{longer["title"]}" asks for a longer max.poll.interval.ms' in shorter["advice"]
    assert f'"{shorter["title"]}" asks for a shorter max.poll.interval.ms' in longer["advice"]
    assert "no record is processed twice, but a rebalance waits that long" in longer["advice"]


def test_members_are_counted_once_however_often_they_fell_silent() -> None:
    first, again, other = (
        died(MARCH_3 + minute * MINUTE, client, 10_000)
        for minute, client in ((20, "fraud-5"), (40, "fraud-5"), (41, "fraud-3"))
    )
    again["session"][0] |= {"member_id": "fraud-5-later", "joined_at_ms": MARCH_3 + 35 * MINUTE}
    row = found(session=[*first["session"], *again["session"], *other["session"]])["died-without-leaving"]
    assert "2 members (fraud-5 and fraud-3) sent no heartbeat for a whole session, 3 times" in row["text"]
