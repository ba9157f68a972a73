"""What the gallery says of groups of the consumer protocol, and the table of it in the documentation."""

from __future__ import annotations

import pytest

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import OffsetsDeleted, TopicDeleted
from rejoin.simulation.output.summary import causes
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.paths import ROOT
from tests.simulation.test_gallery import group, story

pytestmark = pytest.mark.xdist_group("gallery")
"""Scenarios that other tests have played are not played again."""

PAGE = (ROOT / "docs" / "laboratory.md").read_text(encoding="utf-8")


def row(name: str, group_id: str = "orders-app") -> str:
    """A group's row of the table in the documentation."""
    found = group(name, group_id)
    shown = f"`{name}`" if group_id == "orders-app" else f"`{name}`, {group_id}"
    cells = (
        shown,
        f"{found.started}: {causes(found.rebalances)}",
        f"{found.stopped_ms / 1_000:.1f}",
        f"{found.unowned_ms / 1_000:.1f}",
        f"{found.late:,}",
        f"{found.twice}",
    )
    return f"| {' | '.join(cells)} |"


def test_a_rolling_deploy_takes_as_many_rebalances_and_moves_less() -> None:
    name = "rolling_deploy_of_either_protocol"
    classic, consumer = group(name, "classic-app"), group(name, "consumer-app")
    assert 10 * consumer.stopped_ms < classic.stopped_ms
    assert consumer.moved < classic.moved
    assert consumer.started <= group(name, "cooperative-app").started


def test_static_members_migrate_and_go_back_without_a_rebalance() -> None:
    moved = group("migration_with_a_downgrade_in_the_middle")
    assert moved.started == 1, "only the first one"
    assert moved.static_returns == 400
    assert moved.moved == moved.lost == moved.twice == 0
    assert "group.protocol=classic from then on" in story("migration_with_a_downgrade_in_the_middle")


def test_only_the_new_member_waits_for_one_that_gives_nothing_up() -> None:
    held = group("member_that_never_acknowledges_a_revocation")
    assert held.longest_rebalance_ms > 180_000
    assert held.worst_unowned_ms <= 10_000, "the others read on"
    assert held.stopped_ms < 1_000


def test_a_topic_that_a_regular_expression_matches_is_read_at_once() -> None:
    matched = group("regex_begins_to_match")
    assert matched.rebalances["regex-resolved"] == 2
    assert matched.worst_unowned_ms <= 10_000
    assert matched.late == 0


DELETED = """
horizon: 3m
topics:
  orders: {partitions: 4, records_per_second: 1}
  payments: {partitions: 2, records_per_second: 1}
groups:
  classic-app: {topics: [orders, payments], consumers: 2, commit: none}
  consumer-app: {topics: [orders, payments], consumers: 2, protocol: consumer, commit: after}
  share-app: {topics: [orders, payments], consumers: 2, protocol: share, commit: after}
  late-app: {topics: orders, consumers: 1, commit: auto, max_poll_interval: 30s, start: {after: 2m}}
coordinator: {nodes: 2}
events:
  - {at: 1m, delete_topic: {topic: orders}}
  - {at: 90s, restart: {nodes: node-1, down: 5s}}
"""


def test_every_kind_of_group_gives_up_a_topic_that_is_deleted() -> None:
    events: list[Event] = []
    simulation, summary = play(scenario_from(DELETED), listeners=[lambda _, event, now: events.append(event)])
    assert [event.topic for event in events if isinstance(event, TopicDeleted)] == ["orders"]
    (gone,) = [event for event in events if isinstance(event, OffsetsDeleted)]
    assert (gone.group_id, gone.reason, {each.topic for each in gone.offsets}) == (
        "consumer-app",
        "topic-deleted",
        {"orders"},
    )
    assert summary.groups["classic-app"].rebalances["rejoin-metadata"] == 1, "within seconds, not after five minutes"
    assert summary.groups["consumer-app"].rebalances["topic-metadata"] == 1
    assert summary.groups["late-app"].processed == 0
    for name, found in summary.groups.items():
        assert found.lost == 0, name
        assert found.behind < 10, name
    for consumer in simulation.consumers.values():
        assert consumer.core is not None
        assert {each.topic for each in consumer.core.assignment()} <= {"payments"}


def test_a_failover_in_mid_reconciliation_loses_nothing() -> None:
    failed_over = group("coordinator_failover_in_mid_reconciliation")
    assert failed_over.rebalances["failover"] == 1
    assert failed_over.lost == failed_over.twice == 0
    assert not failed_over.removed


def test_a_disabled_policy_keeps_classic_members_of_a_mixed_group_out() -> None:
    mixed = group("disabled_policy_leaves_a_group_mixed")
    assert mixed.removed["session-expiry"] + mixed.removed.get("did-not-rejoin", 0) == 3
    lines = story("disabled_policy_leaves_a_group_mixed").splitlines()
    refused = [line for line in lines if "INCONSISTENT_GROUP_PROTOCOL" in line]
    assert {line.split()[2] for line in refused} == {"orders-app-4", "orders-app-5", "orders-app-6"}


def test_a_group_may_have_a_session_timeout_of_its_own() -> None:
    lines: list[str] = []
    text = """
horizon: 200s
topics: {orders: {partitions: 4}}
groups:
  own: {topics: orders, consumers: 2, protocol: consumer, settings: {consumer.session.timeout.ms: 90000}}
  later: {topics: orders, consumers: 2, protocol: consumer}
  others: {topics: orders, consumers: 2, protocol: consumer}
coordinator: {nodes: 2, settings: {group.consumer.max.session.timeout.ms: 90000}}
events:
  - {at: 30s, configure: {group: later, settings: {consumer.session.timeout.ms: 60000}}}
  - {at: 45s, restart: {down: 2s}}
  - {at: 70s, crash: {who: [own-1, later-1, others-1]}}
"""
    play(scenario_from(text), print_line=lines.append)
    removed = [line.split() for line in lines if "removed (no heartbeat in time)" in line]
    assert [(line[1], line[0][:6]) for line in removed] == [
        ("others", "0:01:5"),
        ("later", "0:02:0"),
        ("own", "0:02:3"),
    ], "each after its own session timeout, also where its node was started again since"


@pytest.mark.parametrize(
    ("name", "group_id"),
    [
        ("rolling_deploy_of_either_protocol", "classic-app"),
        ("rolling_deploy_of_either_protocol", "cooperative-app"),
        ("rolling_deploy_of_either_protocol", "consumer-app"),
        ("migration_with_a_downgrade_in_the_middle", "orders-app"),
        ("member_that_never_acknowledges_a_revocation", "orders-app"),
        ("regex_begins_to_match", "orders-app"),
        ("coordinator_failover_in_mid_reconciliation", "orders-app"),
        ("disabled_policy_leaves_a_group_mixed", "orders-app"),
    ],
)
def test_the_documentation_has_its_numbers(name: str, group_id: str) -> None:
    assert row(name, group_id) in PAGE, f"expected in docs/laboratory.md: {row(name, group_id)}"
