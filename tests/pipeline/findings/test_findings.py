"""Each rule on a scenario that has what it is about, and on one that has not; all through the real tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rejoin.pipeline.findings.rules import NAMES
from rejoin.pipeline.schemas import FINDINGS
from tests.pipeline.gallery import found_in

Found = dict[tuple[str, str], dict[str, dict[str, Any]]]
APP = "orders-app"


@pytest.fixture(scope="module")
def found(gallery_report: Path) -> Found:
    return found_in(gallery_report)


HAS = [
    ("rolling-restart", "dynamic_rolling_deploy", "group.instance.id"),
    ("session-too-short", "static_rolling_deploy_too_slow", "session.timeout.ms"),
    ("session-too-short", "gc_pause_longer_than_the_session", "session.timeout.ms"),
    ("max-poll-exceeded", "stuck_handler", "max.poll.interval.ms"),
    ("max-poll-exceeded", "backlog_longer_than_max_poll", "max.poll.interval.ms"),
    ("join-held-up", "stuck_handler_holds_up_a_rebalance", "max.poll.interval.ms"),
    ("flapping-member", "flapping_consumer", "group.instance.id"),
    ("eager-assignor", "eager_scale_out", "partition.assignment.strategy"),
    ("unbalanced-assignor", "uneven/by-range", "partition.assignment.strategy"),
    ("duplicate-instance-id", "static_id_used_twice", "group.instance.id"),
    ("storm", "thrash", None),
    ("storm", "cold_start_without_delay", "group.initial.rebalance.delay.ms"),
    ("topic-growth", "topic_growth", "metadata.max.age.ms"),
    ("topic-growth", "static_leader_restarts_after_topic_growth", "metadata.max.age.ms"),
    ("subscription-changed", "subscribed", None),
    ("coordinator-failover", "coordinator_failover_in_stable", None),
    ("coordinator-failover", "coordinator_failover_in_mid_rebalance", None),
    ("membership-changed", "eager_scale_out", None),
    ("lost-records", "lost/before", "enable.auto.commit"),
    ("idle-members", "idle", None),
    ("died-without-leaving", "idle", "session.timeout.ms"),
    ("rejoin-loop", "phases/loop", None),
    ("sync-held-up", "phases/slow-leader", None),
    ("sync-held-up", "phases/dead-leader", "session.timeout.ms"),
    ("rebalance-still-open", "phases/stuck", "max.poll.interval.ms"),
    ("offsets-partition-cannot-be-written", "stores/unstored", "min.insync.replicas"),
    ("changing-instance-ids", "rollouts/renamed", "group.instance.id"),
    ("thrashing-autoscaler", "thrash", None),
    ("assigned-and-subscribed", "together/mixed", "group.id"),
    ("refused-commits", "together/late", "max.poll.interval.ms"),
    ("commit-storm", "commits/by-record", "enable.auto.commit"),
    ("uneven-topic", "uneven/by-topic", "partition.assignment.strategy"),
    ("two-applications", "together/two", "group.id"),
    ("half-migrated-assignor", "together/half", "partition.assignment.strategy"),
    ("expired-offsets", "together/away", "offsets.retention.minutes"),
    ("stuck-reconciliation", "member_that_never_acknowledges_a_revocation", "max.poll.interval.ms"),
    ("epoch-fencing-loop", "moving/fenced-often", None),
    ("migration-blocked", "barred/blocked", "group.consumer.migration.policy"),
    ("session-timeout-of-the-broker", "moving/brief", "group.consumer.session.timeout.ms"),
]

HAS_NOT = [
    ("rolling-restart", "static_rolling_deploy"),
    ("rolling-restart", "thrash"),
    ("rolling-restart", "flapping_consumer"),
    ("session-too-short", "dynamic_rolling_deploy"),
    ("session-too-short", "static_rolling_deploy"),
    ("max-poll-exceeded", "gc_pause_longer_than_the_session"),
    ("join-held-up", "eager_scale_out"),
    ("flapping-member", "dynamic_rolling_deploy"),
    ("eager-assignor", "cooperative_scale_out"),
    ("unbalanced-assignor", "uneven/by-sticky"),
    ("unbalanced-assignor", "cooperative_scale_out"),
    ("duplicate-instance-id", "static_rolling_deploy"),
    ("storm", "cold_start"),
    ("storm", "cooperative_scale_out"),
    ("topic-growth", "eager_scale_out"),
    ("subscription-changed", "topic_growth"),
    ("subscription-changed", "cooperative_scale_out"),
    ("coordinator-failover", "static_rolling_deploy"),
    ("membership-changed", "cooperative_scale_out"),
    ("membership-changed", "dynamic_rolling_deploy"),
    ("lost-records", "stuck_handler"),
    ("idle-members", "eager_scale_out"),
    ("died-without-leaving", "flapping_consumer"),
    ("died-without-leaving", "gc_pause_longer_than_the_session"),
    ("rejoin-loop", "phases/now-and-then"),
    ("rejoin-loop", "subscribed"),
    ("sync-held-up", "phases/brisk"),
    ("sync-held-up", "stuck_handler_holds_up_a_rebalance"),
    ("rebalance-still-open", "phases/begins"),
    ("offsets-partition-cannot-be-written", "stores/stored"),
    ("changing-instance-ids", "rollouts/kept"),
    ("changing-instance-ids", "static_rolling_deploy_too_slow"),
    ("thrashing-autoscaler", "rollouts/batches"),
    ("thrashing-autoscaler", "rollouts/grown"),
    ("thrashing-autoscaler", "dynamic_rolling_deploy"),
    ("assigned-and-subscribed", "together/once"),
    ("refused-commits", "together/whole"),
    ("commit-storm", "commits/by-poll"),
    ("uneven-topic", "uneven/by-sticky"),
    ("uneven-topic", "uneven/by-range"),
    ("two-applications", "together/one"),
    ("two-applications", "subscribed"),
    ("half-migrated-assignor", "together/whole"),
    ("expired-offsets", "together/whole"),
    ("stuck-reconciliation", "moving/slow"),
    ("epoch-fencing-loop", "moving/fenced-twice"),
    ("migration-blocked", "migration_with_a_downgrade_in_the_middle"),
    ("session-timeout-of-the-broker", "moving/usual"),
]


def key(run: str) -> tuple[str, str]:
    name, _, group = run.partition("/")
    return name, group or APP


@pytest.mark.parametrize(("finding", "run", "setting"), HAS)
def test_finds_it_where_it_is(found: Found, finding: str, run: str, setting: str | None) -> None:
    row = found[key(run)][finding]
    assert row["setting"] == setting
    assert row["confidence"] == "exact"
    assert row["from_ms"] <= row["to_ms"]
    assert row["title"]
    assert row["text"].endswith(".")
    assert row["advice"].endswith(".")


@pytest.mark.parametrize(("finding", "run"), HAS_NOT)
def test_does_not_find_it_where_it_is_not(found: Found, finding: str, run: str) -> None:
    assert finding not in found.get(key(run), {})


OWN_WORDS = {
    "assigned-nothing",
    "coordinator-lost-again",
    "corrupted-tasks",
    "rejoined-by-its-own-log",
    "session-expired",
    "slow-restoration",
    "topic-unavailable",
}
"""For logs of single consumers; see tests/pipeline/why/test_logs.py and reading/client_logs/test_subscriptions.py."""
ONLY_IN_LOGS = {"fell-silent", "known-bug", *OWN_WORDS}
"""For sources that do not report every join, and for lines that only logs have; see test_findings_from_logs.py and
rules/test_known_bugs.py."""
FROM_LOOKS = {"owned-not-moving"}
"""For snapshots of a cluster's offsets; see tests/pipeline/kafka_cluster."""
OF_SEVERAL = {"slow-load", "load-failed", "flapping-racks", "share-partitions-not-initialized"}
"""For what concerns several groups, or what only brokers log; see rules/test_offsets_log.py, test_restarts.py and
tests/pipeline/reading/broker_logs/test_share_groups.py."""
FROM_REQUESTS = {"ready-for-the-consumer-protocol", "inconsistent-protocols"}
"""For what only a request log has; see rules/test_readiness.py and rules/test_commits.py."""


def test_every_rule_is_among_them() -> None:
    assert (
        {finding for finding, *_ in HAS}
        == {finding for finding, _ in HAS_NOT}
        == set(NAMES) - ONLY_IN_LOGS - FROM_REQUESTS - FROM_LOOKS - OF_SEVERAL
    )


def test_a_journal_reports_all_joins(found: Found) -> None:
    assert not [key for key, rows in found.items() if ONLY_IN_LOGS & set(rows)]


def test_a_load_that_was_slow_names_the_groups_of_its_partition(found: Found) -> None:
    assert found["stores", "loaded"]["slow-load"]["numbers"]["load_ms"] > 10_000
    assert "slow-load" not in found["coordinator_failover_in_stable", APP]


def test_where_all_is_well_nothing_is_found(found: Found) -> None:
    for run in ("static_rolling_deploy", "cold_start", "cooperative_scale_out"):
        assert key(run) not in found


def test_a_deploy_is_reported_with_its_numbers(found: Found) -> None:
    row = found[key("dynamic_rolling_deploy")]["rolling-restart"]
    assert row["numbers"] == {
        **row["numbers"],
        "restarts": 6,
        "consumers": 6,
        "rebalances": 12,
        "rebalances_in_all": 13,
    }
    assert "12 of 13 rebalances of orders-app" in row["text"]
    assert "from 0:05:00" in row["text"]
    assert len(row["rebalances"]) == 12


def test_a_missed_session_is_reported_with_the_time_that_was_missing(found: Found) -> None:
    row = found[key("static_rolling_deploy_too_slow")]["session-too-short"]
    # Forty seconds away, less what was left of fifteen.
    assert 25_000 <= row["numbers"]["least_missed_ms"] <= row["numbers"]["most_missed_ms"] <= 31_000
    assert row["numbers"]["session_timeout_ms"] == 15_000
    assert row["numbers"]["wanted_session_timeout_ms"] >= 40_000


def test_the_one_that_hangs_is_named(found: Found) -> None:
    rows = found[key("stuck_handler_holds_up_a_rebalance")]
    assert rows["join-held-up"]["members"] == ["orders-app-2"]
    # Stuck since two minutes; the rebalance began after two and a half and could go on after five.
    assert rows["join-held-up"]["numbers"]["longest_ms"] == pytest.approx(150_000, abs=1_000)
    assert rows["max-poll-exceeded"]["members"] == ["orders-app-2"]


def test_a_storm_with_a_known_cause_only_points_there(found: Found) -> None:
    rows = found[key("flapping_consumer")]
    assert rows["storm"]["severity"] == "low"
    assert rows["flapping-member"]["title"] in rows["storm"]["advice"]
    assert next(iter(rows)) == "flapping-member"


def test_fencing_has_its_rows_as_evidence(found: Found, gallery_report: Path) -> None:
    row = found[key("static_id_used_twice")]["duplicate-instance-id"]
    lines = (gallery_report / "journals" / "static_id_used_twice.jsonl").read_text().splitlines()
    for evidence in row["evidence"]:
        assert f'"seq":{evidence["seq"]},' in lines[evidence["line"] - 1]
        assert '"event":"member_fenced"' in lines[evidence["line"] - 1]


def test_partitions_that_no_leader_noticed_are_worse_than_those_that_took_a_while(found: Found) -> None:
    late, never = found[key("topic_growth")], found[key("static_leader_restarts_after_topic_growth")]
    assert late["topic-growth"]["numbers"]["never_owned"] == 0
    assert late["topic-growth"]["numbers"]["longest_unread_ms"] <= 301_000
    assert never["topic-growth"]["numbers"]["never_owned"] == 6
    assert (never["topic-growth"]["severity"], late["topic-growth"]["severity"]) == ("high", "medium")


def test_partitions_that_wait_for_an_owner_stop_no_consumer(found: Found) -> None:
    row = found[key("topic_growth")]["topic-growth"]
    assert row["numbers"]["partition_seconds_unread"] > 100
    assert "partition-seconds" in row["text"]
    assert row["score"] < 30


def test_costs_are_those_of_the_pauses(found: Found, gallery_report: Path) -> None:
    pauses = pq.read_table(gallery_report / "out" / "tables" / "pauses", filters=[("run_id", "=", "eager_scale_out")])
    stopped = sum(
        ms or 0
        for ms, end in zip(*(pauses[n].to_pylist() for n in ("stopped_ms", "end")), strict=True)
        if end == "assigned"
    )
    assert found[key("eager_scale_out")]["eager-assignor"]["score"] == pytest.approx(stopped / 1_000)


def test_ids_of_rebalances_lead_into_their_table(found: Found, gallery_report: Path) -> None:
    known = set(
        pq.read_table(gallery_report / "out" / "tables" / "rebalances", columns=["rebalance_id"])[
            "rebalance_id"
        ].to_pylist()
    )
    for rows in found.values():
        for row in rows.values():
            assert set(row["rebalances"]) <= known


def test_the_table_has_its_columns(gallery_report: Path) -> None:
    table = pq.read_table(gallery_report / "out" / "tables" / "findings")
    assert set(table.column_names) == set(FINDINGS.names)
