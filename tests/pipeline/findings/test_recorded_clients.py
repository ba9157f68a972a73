"""Findings from the logs of real consumers alone, against what was done to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from benchmarks.recovered.from_client_logs import GOLDEN, SETS
from tests.pipeline.recorded import Row, tables_of_recording

UPSETS = {"pause": 15_000, "slow-handler": 15_000, "kill": 30_000, "duplicate": 15_000, "broker-restart": 60_000}
"""After what was done a consumer may own what it should not, until so long after its end."""
WITHOUT_ENDS = ("sarama",)
"""Clients whose logs show too little of when an assignment ends."""


@cache
def ledger(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((GOLDEN / name / "ledger.json").read_text())
    return read


def upsets(name: str, group: str) -> Iterator[tuple[int, int]]:
    for each in ledger(name)["done"]:
        of_group = [member for member in each.get("members", ()) if member.rsplit("-", 1)[0] == group]
        if each["do"] in UPSETS and (of_group or each["do"] == "broker-restart"):
            yield each["from_ms"] - 1_000, each["to_ms"] + UPSETS[each["do"]]


def said(name: str, group: str, finding: str) -> list[Row]:
    rows = tables_of_recording(name)["findings"]
    return [row for row in rows if row["group_id"] == group and row["finding"] == finding]


@pytest.mark.parametrize("name", SETS)
def test_no_two_consumers_own_a_partition_where_all_of_them_were_well(name: str) -> None:
    rows = [row for row in tables_of_recording(name)["ownership"] if row["overlap_ms"]]
    found = [
        (row["topic"], row["partition"], row["overlaps_owner"], row["owner"], row["from_ms"], row["overlap_ms"])
        for row in rows
        if row["group_id"] not in WITHOUT_ENDS
        and not any(begin <= row["from_ms"] <= end for begin, end in upsets(name, row["group_id"]))
    ]
    assert found == []


def slow_handlers(name: str) -> Iterator[str]:
    for each in ledger(name)["done"]:
        if each["do"] == "slow-handler":
            yield from each["members"]


@pytest.mark.parametrize(
    ("name", "group"), [(name, group) for name in SETS for group in ledger(name)["groups"] if "aiokafka" in group]
)
def test_a_late_poll_of_aiokafka_is_named_with_its_member_and_that_it_came_back(name: str, group: str) -> None:
    late = {member for member in slow_handlers(name) if member.rsplit("-", 1)[0] == group}
    assert late
    rows = said(name, group, "max-poll-exceeded")
    assert {member for row in rows for member in row["members"]} == late
    assert all("polled again" in row["text"] for row in rows)


def done_to(name: str, what: str, group: str = "") -> set[str]:
    """The members to which something was done."""
    members = (member for each in ledger(name)["done"] if each["do"] == what for member in each["members"])
    return {member for member in members if member.rsplit("-", 1)[0].startswith(group)}


@pytest.mark.parametrize("name", [name for name in SETS if done_to(name, "duplicate")])
def test_two_processes_with_one_instance_id_are_found(name: str) -> None:
    found = [row for row in tables_of_recording(name)["findings"] if row["finding"] == "duplicate-instance-id"]
    assert {member for row in found for member in row["members"]} == done_to(name, "duplicate")


@pytest.mark.parametrize("name", ["rdkafka", "drawn-rdkafka"])
def test_a_paused_consumer_of_librdkafka_gives_one_finding(name: str) -> None:
    group = "rdkafka-debug"
    paused = done_to(name, "pause", group)
    assert paused
    called = {
        finding: {member for row in said(name, group, finding) for member in row["members"]}
        for finding in ("session-too-short", "died-without-leaving", "max-poll-exceeded", "fell-silent")
    }
    assert called["session-too-short"] == paused
    assert not called["fell-silent"] & paused
    assert called["died-without-leaving"] & paused <= done_to(name, "kill", group)
    assert called["max-poll-exceeded"] & paused <= done_to(name, "slow-handler", group)


@pytest.mark.parametrize("name", SETS)
def test_no_member_is_called_by_a_missing_instance_id(name: str) -> None:
    called = {member for row in tables_of_recording(name)["findings"] for member in row["members"]}
    assert not {each for each in called if each.startswith(("Optional", "null", "None"))}
