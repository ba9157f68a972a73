"""The laboratory's gallery as journals, and one report over all of them that the tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rejoin.pipeline.report.run import make_report
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.journal.few_records import with_few_records

GALLERY = Path(__file__).parents[2] / "simulation" / "gallery"
"""What befalls the group does not depend on how many records there are; how long a test takes does."""
NEEDS_RECORDS = ("backlog_longer_than_max_poll",)
LEFT_OUT = ("autoscaler_thrash", "commit_before_processing")
"""Nothing happens in these without many records."""
SMALLER = {
    "migration_with_a_downgrade_in_the_middle": {
        "partitions: 400": "partitions: 40",
        "consumers: 200": "consumers: 20",
        "batch: 50": "batch: 5",
        "count: 100": "count: 10",
    },
}
"""Scenarios whose findings do not depend on how many members there are, and what is written in place of what."""
TRANSFORMS = "transform:"
"""In the text of scenarios about transactions, in which nothing is new to their groups."""

LOST = """
topics:
  orders: {partitions: 4, records_per_second: 10}
groups:
  before: {topics: orders, consumers: 2, assignor: range, commit: before, processing: 50ms, session_timeout: 10s}
horizon: 2m
events:
  - {at: 65s, crash: {who: before-1, down: 15s}}
"""
"""A consumer that commits before it processes dies in the middle of a batch."""

UNEVEN = """
topics:
  a: {partitions: 5, records_per_second: 0.2}
  b: {partitions: 5, records_per_second: 0.2}
  c: {partitions: 5, records_per_second: 0.2}
  large: {partitions: 4, records_per_second: 0.2}
  small: {partitions: 2, records_per_second: 0.2}
groups:
  by-range: {topics: [a, b, c], consumers: 4, assignor: range, commit: after, start: {every: 200ms}}
  by-sticky: {topics: [a, b, c], consumers: 4, assignor: sticky, commit: after, start: {every: 200ms}}
  by-topic: {topics: [large, small], consumers: 3, assignor: cooperative-sticky, commit: after, start: {every: 200ms}}
horizon: 2m
events:
  - {at: 20s, scale: {group: by-topic, to: 2}}
"""
"""The assignors share out partitions of several topics; one member gets most of one of them."""

COMMITS = """
topics:
  orders: {partitions: 2, records_per_second: 3}
groups:
  by-record: {topics: orders, consumers: 1, commit: after, max_poll_records: 1}
  by-poll: {topics: orders, consumers: 1, commit: after}
horizon: 150s
"""
"""A group that commits after each record, and one that commits after each poll."""

THRASH = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  orders-app: {topics: orders, consumers: 2, assignor: range, commit: after, start: {every: 200ms}}
horizon: 6m
events:
  - {at: 60s, scale: {group: orders-app, to: 6, every: 5s}}
  - {at: 100s, scale: {group: orders-app, to: 2, every: 5s}}
  - {at: 140s, scale: {group: orders-app, to: 6, every: 5s}}
  - {at: 180s, scale: {group: orders-app, to: 2, every: 5s}}
"""
"""The group is scaled up and down again and again."""

IDLE = """
topics:
  orders: {partitions: 2, records_per_second: 0.2}
groups:
  orders-app:
    {topics: orders, consumers: 4, assignor: range, commit: after, session_timeout: 10s, start: {every: 200ms}}
horizon: 2m
events:
  - {at: 60s, crash: {who: orders-app-1}}
"""
"""More consumers than partitions; one dies for good."""

SUBSCRIBED = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
  more: {partitions: 2, records_per_second: 0.2}
groups:
  orders-app: {topics: orders, consumers: 3, assignor: range, commit: after, start: {every: 200ms}}
horizon: 3m
events:
  - {at: 60s, subscribe: {who: orders-app-2, topics: [orders, more]}}
  - {at: 90s, subscribe: {who: orders-app-2, topics: orders}}
"""
"""A member reads another topic for a while."""

MOVING = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  brief: {topics: orders, consumers: 2, commit: after, session_timeout: 10s}
  usual: {topics: orders, consumers: 2, commit: after}
  fenced-often: {topics: orders, consumers: 2, protocol: consumer, commit: after}
  fenced-twice: {topics: orders, consumers: 2, protocol: consumer, commit: after}
  slow: {topics: orders, consumers: 2, protocol: consumer, commit: after}
horizon: 4m
events:
  - {at: 60s, deploy: {group: brief, every: 20s, down: 2s, protocol: consumer}}
  - {at: 60s, deploy: {group: usual, every: 20s, down: 2s, protocol: consumer}}
  - {at: 60s, stale_heartbeats: {who: fenced-often-1, every: 5s, times: 6}}
  - {at: 60s, stale_heartbeats: {who: fenced-twice-1, every: 5s, times: 2}}
  - {at: 60s, stuck: {who: slow-1, for: 20s}}
  - {at: 61s, scale: {group: slow, to: 3}}
"""
"""Groups that move to the consumer protocol, or are there, with and without trouble."""

BLOCKED = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  blocked: {topics: orders, consumers: 3, commit: after}
coordinator: {settings: {group.consumer.migration.policy: disabled}}
horizon: 3m
events:
  - {at: 60s, deploy: {group: blocked, every: 20s, down: 2s, protocol: consumer, count: 1}}
"""
"""The brokers do not let a group move."""

PHASES = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  loop: {topics: orders, consumers: 3, assignor: range, commit: after}
  now-and-then: {topics: orders, consumers: 3, assignor: range, commit: after}
  slow-leader: {topics: orders, consumers: 3, assignor: range, commit: after}
  dead-leader: {topics: orders, consumers: 3, assignor: range, commit: after, session_timeout: 20s}
  brisk: {topics: orders, consumers: 3, assignor: range, commit: after}
  stuck: {topics: orders, consumers: 3, assignor: range, commit: after}
  begins: {topics: orders, consumers: 3, assignor: range, commit: after}
horizon: 5m
events:
  - {at: 60s, enforce: {who: loop-1, every: 20s, times: 8}}
  - {at: 60s, enforce: {who: now-and-then-1, every: 60s, times: 3}}
  - {at: 2990ms, pause: {who: [slow-leader-1, slow-leader-2, slow-leader-3], for: 12s}}
  - {at: 2990ms, pause: {who: [brisk-1, brisk-2, brisk-3], for: 3s}}
  - {at: 2990ms, crash: {who: [dead-leader-1, dead-leader-2, dead-leader-3], down: 40s}}
  - {at: 4m, stuck: {who: stuck-1, for: 10m}}
  - {at: 250s, scale: {group: stuck, to: 4}}
  - {at: 299s, stuck: {who: begins-1, for: 10m}}
  - {at: 299s, scale: {group: begins, to: 4}}
"""
"""What goes wrong within a rebalance."""

STORES = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  unstored: {topics: orders, consumers: 3, assignor: range, commit: none}
  stored: {topics: orders, consumers: 3, assignor: range, commit: after}
  loaded: {topics: orders, consumers: 3, assignor: range, commit: after}
coordinator: {nodes: 2}
horizon: 6m
events:
  - {at: 60s, slow_log: {error: NOT_ENOUGH_REPLICAS, for: 6s}}
  - {at: 61s, scale: {group: unstored, to: 4}}
  - {at: 150s, scale: {group: stored, to: 4}}
  - {at: 180s, slow_log: {slower: 15s, for: 40s}}
  - {at: 181s, failover: {group: loaded, down: 5s}}
  - {at: 300s, failover: {group: stored}}
"""
"""The offsets log cannot be written for a while, and then is slow to read."""

ROLLOUTS = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  renamed: {topics: orders, consumers: 3, static: true, commit: after, session_timeout: 10s}
  kept: {topics: orders, consumers: 3, static: true, commit: after, session_timeout: 30s}
  batches: {topics: orders, consumers: 6, assignor: range, commit: after}
  grown: {topics: orders, consumers: 2, assignor: range, commit: after}
horizon: 6m
events:
  - {at: 90s, deploy: {group: renamed, every: 20s, down: 5s, rename: true}}
  - {at: 90s, deploy: {group: kept, every: 20s, down: 5s}}
  - {at: 90s, deploy: {group: batches, batch: 2, every: 60s, down: 10s}}
  - {at: 90s, scale: {group: grown, to: 6}}
  - {at: 270s, scale: {group: grown, to: 2}}
"""
"""Deployments of static and dynamic members, and a group that follows its load."""

TOGETHER = """
topics:
  orders: {partitions: 6, records_per_second: 0.2}
  clicks: {partitions: 6, records_per_second: 0.2}
groups:
  mixed: {topics: orders, consumers: 2, assignor: range, commit: after}
  once: {topics: orders, consumers: 2, assignor: range, commit: after}
  two: {topics: orders, consumers: 4, assignor: range, commit: after}
  one: {topics: [orders, clicks], consumers: 4, assignor: range, commit: after}
  half: {topics: orders, consumers: 4, assignor: range, commit: after}
  whole: {topics: orders, consumers: 4, assignor: range, commit: after}
  away: {topics: orders, consumers: 2, assignor: range, commit: after}
  late: {topics: orders, consumers: 3, assignor: range, session_timeout: 10s, auto_commit_interval: 1s, poll: 100ms}
coordinator: {settings: {offsets.retention.minutes: 2, offsets.retention.check.interval.ms: 10000}}
horizon: 15m
events:
  - {at: 60s, outside_commits: {group: mixed, every: 10s, times: 4}}
  - {at: 60s, outside_commits: {group: once, every: 10s, times: 1}}
  - {at: 60s, subscribe: {who: [two-3, two-4], topics: clicks}}
  - {at: 60s, subscribe: {who: [one-3, one-4], topics: clicks}}
  - {at: 2m, deploy: {group: half, every: 20s, down: 5s, count: 2, assignor: [cooperative-sticky, range]}}
  - {at: 2m, deploy: {group: whole, every: 20s, down: 5s, assignor: [cooperative-sticky, range]}}
  - {at: 3m, stop: {who: [away-1, away-2], down: 5m}}
  - {at: 5m, pause: {who: [late-1, late-2], for: 15s}}
  - {at: 6m, pause: {who: [late-1, late-2], for: 15s}}
  - {at: 7m, pause: {who: [late-1, late-2], for: 15s}}
  - {at: 8m, pause: {who: [late-1, late-2], for: 15s}}
"""
"""Members that do not fit together, and offsets that are away for longer than the brokers keep them."""

OWN = {
    "together": TOGETHER,
    "rollouts": ROLLOUTS,
    "stores": STORES,
    "phases": PHASES,
    "lost": LOST,
    "uneven": UNEVEN,
    "commits": COMMITS,
    "thrash": THRASH,
    "idle": IDLE,
    "subscribed": SUBSCRIBED,
    "moving": MOVING,
    "barred": BLOCKED,
}


def write_gallery(folder: Path) -> list[str]:
    """Play all scenarios; the run's id is the scenario's name."""
    texts = {path.stem: path.read_text() for path in sorted(GALLERY.glob("*.yaml")) if path.stem not in LEFT_OUT}
    texts = {name: smaller(name, text) for name, text in texts.items() if TRANSFORMS not in text}
    for name, text in (texts | OWN).items():
        rare = text if name in (*NEEDS_RECORDS, *OWN) else with_few_records(text)
        play(scenario_from(rare), journal=folder / f"{name}.jsonl", run_id=name)
    return [*texts, *OWN]


def smaller(name: str, text: str) -> str:
    """A scenario's text with fewer members, if it is one of those that have many."""
    for old, new in SMALLER.get(name, {}).items():
        assert old in text, f"{name} has no {old}"
        text = text.replace(old, new)
    return text


def report_on_gallery(folder: Path) -> None:
    """Journals of the gallery, one of them with broken lines, and the report on them."""
    journals = folder / "journals"
    write_gallery(journals)
    broken = journals / "topic_growth.jsonl"
    lines = broken.read_text().splitlines()
    broken.write_text("\n".join([*lines[:5], '{"schema_version":1,"run_id"', "no JSON at all", *lines[5:]]) + "\n")
    report = make_report([journals], folder / "out", most_groups=100)
    found = [
        {
            "run_id": group.run_id,
            "group_id": group.group_id,
            **{key: value for key, value in row.items() if key != "day"},
        }
        for group in report.groups
        for row in group.findings
    ]
    (folder / "findings.json").write_text(json.dumps(found))


def found_in(folder: Path) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """Findings by run and group, each by its rule."""
    rows: list[dict[str, Any]] = json.loads((folder / "findings.json").read_text())
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["run_id"], row["group_id"]), {}).setdefault(row["finding"], row)
    return found
