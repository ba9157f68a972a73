"""All rules, and the findings of one group in the order of their weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import floor, log10
from typing import Any, Final

from rejoin.pipeline.findings.causes import Causes, separate
from rejoin.pipeline.findings.clients.advice import for_clients_of
from rejoin.pipeline.findings.finding import RANK, Finding, severity_of, with_trade_offs
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.known_bugs.rule import known_bug
from rejoin.pipeline.findings.rules.assignments import (
    eager_assignor,
    half_migrated_assignor,
    idle_members,
    inconsistent_protocols,
    two_applications,
    unbalanced_assignor,
    uneven_topic,
)
from rejoin.pipeline.findings.rules.autoscaling import thrashing_autoscaler
from rejoin.pipeline.findings.rules.brokers import coordinator_failover, flapping_racks
from rejoin.pipeline.findings.rules.commits import (
    assigned_and_subscribed,
    commit_storm,
    expired_offsets,
    refused_commits,
)
from rejoin.pipeline.findings.rules.consumer_groups import (
    epoch_fencing_loop,
    migration_blocked,
    session_timeout_of_the_broker,
    stuck_reconciliation,
)
from rejoin.pipeline.findings.rules.groups import lost_records, membership_changed, subscription_changed, topic_growth
from rejoin.pipeline.findings.rules.offsets_log import load_failed, offsets_partition_cannot_be_written, slow_load
from rejoin.pipeline.findings.rules.own_words.memberships import (
    coordinator_lost_again,
    rejoined_by_its_own_log,
    session_expired,
)
from rejoin.pipeline.findings.rules.own_words.subscriptions import assigned_nothing, topic_unavailable
from rejoin.pipeline.findings.rules.own_words.tasks import corrupted_tasks, slow_restoration
from rejoin.pipeline.findings.rules.phases import rebalance_still_open, rejoin_loop, sync_held_up
from rejoin.pipeline.findings.rules.polls import join_held_up, max_poll_exceeded, owned_not_moving
from rejoin.pipeline.findings.rules.readiness import ready_for_the_consumer_protocol
from rejoin.pipeline.findings.rules.restarts import (
    changing_instance_ids,
    duplicate_instance_id,
    flapping_member,
    rolling_restart,
)
from rejoin.pipeline.findings.rules.share_groups import share_partitions_not_initialized
from rejoin.pipeline.findings.rules.silence import died_without_leaving, fell_silent, session_too_short
from rejoin.pipeline.findings.rules.storms import storm

Rule = Callable[[Causes], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    lost_records,
    share_partitions_not_initialized,
    owned_not_moving,
    duplicate_instance_id,
    rolling_restart,
    changing_instance_ids,
    thrashing_autoscaler,
    session_too_short,
    topic_unavailable,
    max_poll_exceeded,
    session_expired,
    coordinator_lost_again,
    assigned_nothing,
    corrupted_tasks,
    slow_restoration,
    rejoined_by_its_own_log,
    flapping_member,
    join_held_up,
    rejoin_loop,
    sync_held_up,
    rebalance_still_open,
    died_without_leaving,
    fell_silent,
    flapping_racks,
    topic_growth,
    subscription_changed,
    coordinator_failover,
    offsets_partition_cannot_be_written,
    load_failed,
    slow_load,
    stuck_reconciliation,
    epoch_fencing_loop,
    migration_blocked,
    session_timeout_of_the_broker,
    expired_offsets,
    refused_commits,
    commit_storm,
    assigned_and_subscribed,
    two_applications,
    inconsistent_protocols,
    half_migrated_assignor,
    eager_assignor,
    unbalanced_assignor,
    uneven_topic,
    membership_changed,
    storm,
    idle_members,
    ready_for_the_consumer_protocol,
    known_bug,
)
"""Causes before what only makes them cost more."""

MEASURES: Final[frozenset[Rule]] = frozenset(
    {
        *(owned_not_moving, thrashing_autoscaler, session_too_short, flapping_member, join_held_up, rejoin_loop),
        *(
            sync_held_up,
            rebalance_still_open,
            coordinator_failover,
            slow_load,
            stuck_reconciliation,
            epoch_fencing_loop,
        ),
        *(expired_offsets, commit_storm, storm, rolling_restart),
    }
)
"""Rules that rest on how long something took, or how often it came in a time: silent for logs without times."""

NAMES: Final = tuple(rule.__name__.replace("_", "-") for rule in RULES)
"""Of the rules, as the column ``finding`` has them."""

PARTS: Final = (
    "rolling-restart",
    "changing-instance-ids",
    "thrashing-autoscaler",
    "flapping-racks",
    "session-too-short",
    "max-poll-exceeded",
    "flapping-member",
    "died-without-leaving",
    "coordinator-failover",
    "offsets-partition-cannot-be-written",
    "rejoin-loop",
    "topic-growth",
    "subscription-changed",
    "membership-changed",
)
"""Rules that name what a storm came from."""


def judge(history: GroupHistory) -> list[Finding]:
    """Findings of all rules, the worst first."""
    causes = separate(history)
    rules = [rule for rule in RULES if not (history.is_untimed and rule in MEASURES)]
    found = with_trade_offs([finding for rule in rules for finding in rule(causes)])
    weighed = sorted((_below_its_parts(each, found) for each in found), key=lambda each: order(each.row()))
    return for_clients_of(history, weighed)


def order(row: Mapping[str, Any], over_ms: int = 1) -> tuple[int, float, int, str, str, str]:
    """The key by which rows of findings are in order, the worst first, of one group or of many.

    Severity, costs (roughly), causes before symptoms, then run, group and title. ``over_ms``: how long the group was
    seen, where findings of several groups are compared; their costs in equal times count then.
    """
    score = (row["score"] or 0.0) / over_ms
    rough = round(score, 1 - floor(log10(score))) if score > 0 else 0.0
    name = row["finding"]
    nth = NAMES.index(name) if name in NAMES else len(NAMES)
    return RANK.get(row["severity"], 3), -rough, nth, row.get("run_id") or "", row.get("group_id") or "", row["title"]


def _below_its_parts(finding: Finding, others: list[Finding]) -> Finding:
    """A storm that comes behind the findings that name its parts."""
    if finding.finding != "storm":
        return finding
    mine = set(finding.rebalances)
    parts = [each for each in others if each.finding in PARTS and mine & set(each.rebalances)]
    if not parts:
        return finding
    severities = [each.severity or severity_of(each.cost_s) for each in (*parts, finding)]
    lowest = max(severities, key=lambda each: RANK[each])
    titles = "; ".join(dict.fromkeys(each.title for each in parts))
    return replace(
        finding,
        severity=lowest,
        cost_s=min(finding.cost_s, *(each.cost_s for each in parts)),
        advice=f"{finding.advice} See: {titles}.",
    )
