"""The log of one member of a real group: nothing is said of members whose log is not there."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.recovered.from_client_logs import GOLDEN, SETS
from rejoin.pipeline import schemas
from rejoin.pipeline.audits.violations import violations
from tests.pipeline.incremental.streams import whole
from tests.pipeline.recorded import Row, events_of_logs

GROUPS = [
    f"{name}/{each.name}" for name in SETS if "drawn" in name for each in (GOLDEN / name).iterdir() if each.is_dir()
]
OF_SILENT_MEMBERS = ("died-without-leaving", "fell-silent", "session-too-short")


@cache
def tables(group: str, member: int | None) -> dict[str, list[Row]]:
    """The tables of a group's logs, or of one of them, with the violations."""
    files = sorted((GOLDEN / group).glob("*.log.gz"))
    events = events_of_logs(files if member is None else files[member : member + 1])
    made = whole(events)
    names = ("rebalances", "ownership", "member_sessions")
    parts = (pa.Table.from_pylist(made[name], schemas.TABLES[name]) for name in names)
    found: Any = violations(events, *parts)
    return made | {"violations": found.to_pylist()}


@pytest.mark.parametrize(
    ("group", "member"),
    [(group, 1) for group in GROUPS]
    + [(group, None) for group in GROUPS if group.endswith(("kafkajs", "sarama", "debug"))],
)
def test_logs_of_consumers_prove_no_owner(group: str, member: int | None) -> None:
    found = [row["text"] for row in tables(group, member)["violations"] if row["kind"] != "owner-after-removal"]
    assert found == []


@pytest.mark.parametrize("group", GROUPS)
def test_only_the_member_whose_log_is_there_may_have_died(group: str) -> None:
    rows = [row for row in tables(group, 1)["findings"] if row["finding"] in OF_SILENT_MEMBERS]
    named = {member.rsplit("/", 1)[-1].partition("#")[0] for row in rows for member in row["members"]}
    assert named <= {f"{group.rsplit('/', 1)[-1]}-2"}
    assert not [row["title"] for row in rows if " 0 ms" in row["title"]]


@pytest.mark.parametrize("group", GROUPS)
def test_new_partitions_that_another_member_may_have_are_not_called_unread(group: str) -> None:
    rows = [row for row in tables(group, 1)["findings"] if row["finding"] == "topic-growth"]
    assert not [row["title"] for row in rows if "not read" in row["title"]]
    assert not [row["text"] for row in rows if "partition-seconds" in row["text"]]
