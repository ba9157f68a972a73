"""What is found of commits and of members that do not fit together, and what comes close and is nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.findings.rules.test_consumer_groups import event
from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, rebalance, session

Row = dict[str, Any]


def refused(at_ms: int, error: str, member: str | None = "m1", **more: Any) -> Row:
    return event(at_ms, "request", member, api="OFFSET_COMMIT", error=error, client_id="app", **more)


# --- refused commits


def test_refused_commits_are_named_with_their_reason_and_the_rebalance_behind_them() -> None:
    rows = found(
        session=[session("m1", MARCH_3, None, "open", "one")],
        rebalance=[rebalance(1, MARCH_3, "join-new", "m1"), rebalance(2, MARCH_3 + 5 * MINUTE, "session-expiry", "m1")],
        event=[refused(5 * MINUTE + nth * 1_000, "UNKNOWN_MEMBER_ID", generation=3) for nth in range(4)],
    )
    late = rows["refused-commits"]
    assert (late["numbers"]["refused"], late["members"], late["rebalances"]) == (4, ["one"], ["run/orders/2"])
    assert "4 times UNKNOWN_MEMBER_ID (the member had been removed before it committed)" in late["text"]
    assert late["setting"] == "max.poll.interval.ms"


def test_commits_that_can_never_be_taken_have_another_remedy() -> None:
    rows = found(event=[refused(nth, "OFFSET_METADATA_TOO_LARGE") for nth in range(3)])
    assert rows["refused-commits"]["setting"] == "offset.metadata.max.bytes"
    assert "repeating the commit does not help" in rows["refused-commits"]["advice"]


@pytest.mark.parametrize(
    "events",
    [
        [refused(nth, "ILLEGAL_GENERATION") for nth in range(2)],
        [refused(nth, "NOT_COORDINATOR") for nth in range(9)],
        [refused(nth, "COORDINATOR_LOAD_IN_PROGRESS") for nth in range(9)],
    ],
    ids=["two", "moved", "loading"],
)
def test_a_few_and_those_that_a_broker_has_to_do_with_are_none(events: list[Row]) -> None:
    assert "refused-commits" not in found(event=events)


def test_commits_of_a_client_that_is_no_member_are_assign_and_subscribe_mixed() -> None:
    rows = found(event=[refused(nth * MINUTE, "UNKNOWN_MEMBER_ID", None) for nth in range(3)])
    assert (rows["assigned-and-subscribed"]["members"], "refused-commits" in rows) == (["app"], False)


# --- commits again and again


def minute(number: int, commits: int, committers: int, offsets: int | None = None) -> Row:
    return {"minute": MARCH_3 // MINUTE + number, "commits": commits, "committers": committers, "offsets": offsets}


def test_commits_by_record_make_the_log_grow() -> None:
    storm = found(commits=[minute(nth, 60_000, 10, 120_000) for nth in range(5)])["commit-storm"]
    assert storm["title"] == "orders committed 1,000 times a second: up to 100 by each member"
    # 120 bytes for each offset, and the group id.
    assert storm["numbers"]["log_bytes_an_hour"] == 120_000 * 60 * (120 + len("orders"))
    assert "grow by about 907 MB an hour" in storm["text"]
    assert (storm["severity"], storm["confidence"], storm["setting"]) == ("low", "exact", "enable.auto.commit")
    assert found(commits=[minute(nth, 90_000, 10) for nth in range(5)])["commit-storm"]["confidence"] == "inferred"
    assert found(commits=[minute(0, 99_999, 9, 999_999)] * 2)["commit-storm"]["severity"] == "medium"


@pytest.mark.parametrize(
    "minutes",
    [
        [minute(nth, 12_000, 1_000) for nth in range(60)],
        [minute(0, 60_000, 10)],
        [minute(nth, 299, 1) for nth in (0, 1)],
    ],
    ids=["many members", "one minute", "each poll"],
)
def test_a_large_group_a_backlog_and_a_commit_for_each_poll_are_none(minutes: list[Row]) -> None:
    assert "commit-storm" not in found(commits=minutes)


# --- offsets that expired


def deleted(name: str, reason: str, **more: Any) -> Row:
    return event(5 * MINUTE, name, reason=reason, **more)


def test_offsets_that_expired_before_members_came_back_are_worst() -> None:
    back = session("m2", MARCH_3 + 9 * MINUTE, None, "open", "two")
    rows = found(event=[deleted("group_deleted", "expired", offset_count=6)], session=[back])["expired-offsets"]
    assert (rows["severity"], rows["members"], rows["confidence"]) == ("high", ["two"], "exact")
    unknown = found(event=[deleted("group_deleted", "expired")], session=[back])["expired-offsets"]
    assert unknown["title"] == "Probably: offsets of orders expired"


@pytest.mark.parametrize(
    "row",
    [
        deleted("group_deleted", "requested", offset_count=6),
        deleted("group_deleted", "expired", offset_count=0),
        deleted("group_deleted", "expired"),
        deleted("offsets_deleted", "topic-deleted"),
    ],
    ids=["by request", "without offsets", "not missed", "with its topic"],
)
def test_what_was_deleted_otherwise_is_none(row: Row) -> None:
    assert "expired-offsets" not in found(event=[row])


# --- members that do not fit together


def reader(name: str, topics: list[str], joined: int = 0, **more: Any) -> Row:
    return session(name, MARCH_3 + joined, None, "open", name, topics=topics, **more)


def test_members_that_read_disjoint_topics_are_two_applications() -> None:
    rows = found(session=[reader("a", ["orders"]), reader("b", ["clicks"]), reader("c", ["orders", "returns"])])
    apps = rows["two-applications"]
    assert apps["numbers"]["applications"] == 2
    assert "clicks (b)" in apps["text"]
    assert "orders and returns (a and c)" in apps["text"]


def test_subscriptions_that_overlap_or_follow_each_other_are_one() -> None:
    overlap = [reader("a", ["orders"]), reader("b", ["clicks"]), reader("c", ["orders", "clicks"])]
    assert "two-applications" not in found(session=overlap)
    before = reader("a", ["orders"]) | {"ended_at_ms": MARCH_3 + MINUTE, "end": "left"}
    assert "two-applications" not in found(session=[before, reader("b", ["clicks"], MINUTE)])


def test_a_group_that_stays_eager_as_some_members_lack_the_new_assignor_is_half_way() -> None:
    both = ["cooperative-sticky", "range"]
    members = [reader("a", ["orders"], protocols=both), reader("b", ["orders"], protocols=["range"])]
    half = found(session=members, rebalance=[rebalance(1, MARCH_3 + MINUTE, "join-new", "a")])["half-migrated-assignor"]
    assert (half["members"], half["numbers"]["rebalances"]) == (["b"], 1)
    late = [reader("a", ["orders"], 55 * MINUTE, protocols=both), members[1]]
    assert "half-migrated-assignor" not in found(session=late), "the deployment may go on"
    assert "half-migrated-assignor" not in found(session=[members[0], reader("c", ["orders"], protocols=both)])


def test_a_client_without_a_common_assignor_is_named() -> None:
    row = event(MINUTE, "request", api="JOIN_GROUP", error="INCONSISTENT_GROUP_PROTOCOL", client_id="new")
    rows = found(event=[row], session=[reader("a", ["orders"], protocols=["range"])])["inconsistent-protocols"]
    assert (rows["members"], rows["setting"]) == (["new"], "partition.assignment.strategy")
    assert "Its members list range." in rows["text"]
    other = row | {"error": "MEMBER_ID_REQUIRED"}
    assert "inconsistent-protocols" not in found(event=[other])
