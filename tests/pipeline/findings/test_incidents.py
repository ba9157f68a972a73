"""Findings against ledgers: real consumers on a real broker, several troubles at a time, and what is made of the logs.

``make incident`` records such incidents. What was done must be found, with its members; nothing else may be named; and
no two findings may contradict each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import READS, findings
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.broker_logs.tables import read_logs
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.tables.member_sessions import member_sessions
from rejoin.pipeline.tables.pauses import pauses
from rejoin.pipeline.tables.rebalances import rebalances
from tests import paths

INCIDENTS = sorted(folder.name for folder in paths.INCIDENTS.iterdir())
CAUSES = (
    "rolling-restart",
    "flapping-member",
    "session-too-short",
    "max-poll-exceeded",
    "died-without-leaving",
    "fell-silent",
    "membership-changed",
    "topic-growth",
    "duplicate-instance-id",
)
"""Findings that say what was done to a group; all others say what it was like."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """An action of the ledger, as the findings are to have it."""

    group: str
    finding: str
    members: tuple[str, ...]
    from_ms: int
    to_ms: int


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[Row]]:
    """Findings of each incident, the worst first."""
    logs = [read_logs(spark, find([paths.INCIDENTS / name]), run_id=name).events for name in INCIDENTS]
    events = logs[0]
    for each in logs[1:]:
        events = events.unionByName(each)
    events = events.persist()
    tables = {name: spark.createDataFrame([], schemas.TABLES[name]) for name in READS}
    tables["rebalances"] = rebalances(events).persist()
    tables["member_sessions"] = member_sessions(events, tables["rebalances"]).persist()
    tables["pauses"] = pauses(events, tables["rebalances"])
    rows = sorted((row.asDict(recursive=True) for row in findings(tables, events).collect()), key=order)
    return {name: [row for row in rows if row["run_id"] == name] for name in INCIDENTS}


def ledger(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((paths.INCIDENTS / name / "ledger.json").read_text())
    return read


def session_ms(group: Row) -> int:
    return int(group["settings"].get("session.timeout.ms", 10_000))


def expected(name: str) -> Iterator[Expected]:
    """What was done to groups, as findings name it; a static restart within its session leaves no trace."""
    read = ledger(name)
    killed: set[str] = set()
    for each in read["done"]:
        members = [*each.get("members", ()), *each.get("topics", ())]
        if not members:
            continue
        group_id = members[0].rsplit("-", 1)[0] if each["do"] != "grow" else members[0]
        group = read["groups"][group_id]
        finding = {
            "rolling-restart": "session-too-short" if group.get("static") else "rolling-restart",
            "crash-loop": "flapping-member",
            "slow-handler": "max-poll-exceeded",
            "pause": "session-too-short",
            "kill": "died-without-leaving",
            "start": "membership-changed",
            "stop": "membership-changed",
            "grow": "topic-growth",
            "duplicate": "duplicate-instance-id",
        }[each["do"]]
        if each["do"] == "rolling-restart" and group.get("static") and each["away"] * 1_000 < session_ms(group):
            continue
        if each["do"] == "kill":
            killed.update(members)
        if each["do"] == "start" and killed.intersection(members):
            continue
        named = () if group.get("nameless") or each["do"] == "grow" else tuple(members)
        yield Expected(group_id, finding, named, each["from_ms"], each["to_ms"])


def test_there_is_a_recording() -> None:
    assert INCIDENTS


@pytest.mark.parametrize("name", INCIDENTS)
def test_what_was_done_is_found_with_its_members_and_its_time(found: dict[str, list[Row]], name: str) -> None:
    missing = []
    for each in expected(name):
        rows = [
            row
            for row in found[name]
            if (row["group_id"], row["finding"]) == (each.group, each.finding)
            and set(each.members) <= set(row["members"])
            and row["from_ms"] <= each.to_ms + 30_000
            and row["to_ms"] >= each.from_ms
        ]
        if not rows:
            missing.append(each)
    assert not missing


@pytest.mark.parametrize("name", INCIDENTS)
def test_nothing_is_named_that_was_not_done(found: dict[str, list[Row]], name: str) -> None:
    done = list(expected(name))
    invented = []
    for row in found[name]:
        own = [each for each in done if (each.group, each.finding) == (row["group_id"], row["finding"])]
        nameless = any(not each.members for each in own)
        named = {member for each in own for member in each.members}
        if row["finding"] in CAUSES and not (own and (nameless or set(row["members"]) <= named)):
            invented.append((row["group_id"], row["finding"], row["members"], row["title"]))
    assert not invented


@pytest.mark.parametrize("name", INCIDENTS)
def test_a_broker_that_was_away_is_one_finding_with_its_groups_and_its_length(
    found: dict[str, list[Row]], name: str
) -> None:
    rows = [row for row in found[name] if row["finding"] == "coordinator-failover"]
    away = [each for each in ledger(name)["done"] if each["do"] == "broker-restart"]
    assert len(rows) == len(away) == 1
    row = rows[0]
    assert set(row["groups"]) == set(ledger(name)["groups"])
    assert row["group_id"] is None
    assert abs(row["numbers"]["away_ms"] - (away[0]["to_ms"] - away[0]["from_ms"])) < 5_000
    assert "moved" not in row["title"]


@pytest.mark.parametrize("name", INCIDENTS)
def test_each_rebalance_has_one_cause_at_the_most(found: dict[str, list[Row]], name: str) -> None:
    causes: dict[str, list[str]] = {}
    for row in found[name]:
        if row["finding"] in (*CAUSES, "coordinator-failover"):
            for rebalance in row["rebalances"]:
                causes.setdefault(rebalance, []).append(f"{row['finding']} {row['members']}")
    assert not {rebalance: names for rebalance, names in causes.items() if len(names) > 1}


@pytest.mark.parametrize("name", INCIDENTS)
def test_no_advice_is_for_another_client_or_protocol(found: dict[str, list[Row]], name: str) -> None:
    for row in found[name]:
        if row["group_id"] is None:
            continue
        group = ledger(name)["groups"][row["group_id"]]
        said = f"{row['setting']} {row['advice']}"
        cooperative = "ooperative" in group["settings"].get("partition.assignment.strategy", "")
        modern = group["settings"].get("group.protocol") == "consumer"
        if cooperative or modern:
            assert "ooperative" not in said, row["title"]
            assert row["finding"] != "eager-assignor"
        if modern:
            assert " session.timeout.ms" not in f" {said}", row["title"]
        if group["library"] != "java":
            assert "org.apache.kafka" not in said, row["title"]
        if group.get("static"):
            assert "set group.instance.id" not in said, row["title"]
        assert "kafka-request.log" not in said
        assert "since Kafka 2.5" not in row["text"]


@pytest.mark.parametrize("name", INCIDENTS)
def test_a_storm_names_its_parts_and_comes_behind_them(found: dict[str, list[Row]], name: str) -> None:
    for nth, row in enumerate(found[name]):
        if row["finding"] != "storm":
            continue
        assert row["setting"] is None, "no group was empty after its start"
        parts = [
            (place, other)
            for place, other in enumerate(found[name])
            if other["group_id"] == row["group_id"]
            and other["finding"] in CAUSES
            and set(other["rebalances"]) & set(row["rebalances"])
        ]
        assert parts, row["text"]
        assert all(place < nth for place, _ in parts), row["title"]


@pytest.mark.parametrize("name", INCIDENTS)
def test_a_process_that_died_of_its_twin_is_among_the_worst(found: dict[str, list[Row]], name: str) -> None:
    severities = [row["severity"] for row in found[name] if row["finding"] == "duplicate-instance-id"]
    assert severities == ["high"]
