"""The logs of Java's share consumers, of 4.4: what they say of members, and what follows from none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.paths import GOLDEN
from tests.pipeline.findings.tables import findings_of
from tests.pipeline.recorded import events_of_logs

FOLDER: Final = GOLDEN / "share-group-logs"
LOGS: Final = sorted(FOLDER.glob("billing-*.log"))


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = events_of_logs(LOGS).to_pylist()
    return found


def test_members_come_and_go(events: list[dict[str, Any]]) -> None:
    came = [row["client_id"] for row in events if row["event"] == "member_joined"]
    gone = [(row["client_id"], row["cause"]) for row in events if row["event"] == "member_removed"]
    assert came == ["billing-1", "billing-1", "billing-2", "billing-3", "billing-4"]
    assert gone == [("billing-1", "left"), ("billing-2", "left"), ("billing-4", "left")]
    assert {row["kind"] for row in events if row["event"] == "member_joined"} == {"share"}


def test_an_epoch_begins_no_rebalance(events: list[dict[str, Any]]) -> None:
    names = {row["event"] for row in events}
    assert not {"rebalance_started", "join_phase_ended", "rebalance_completed", "group_emptied"} & names


def test_two_members_have_one_partition(events: list[dict[str, Any]]) -> None:
    given = {row["client_id"]: row["partitions"] for row in events if row["event"] == "partitions_assigned"}
    assert given["billing-1"] == given["billing-2"] == [{"topic": "invoices", "partition": 0}]


def test_a_member_that_waits_for_partitions_is_sent_to_the_brokers(tmp_path: Path) -> None:
    lines = LOGS[0].read_text().splitlines(keepends=True)
    ends = next(nth for nth, line in enumerate(lines) if "PREPARE_LEAVING" in line)
    (tmp_path / "a.log").write_text("".join(lines[:ends]))
    found = {row["finding"]: row for row in findings_of(events_of_logs([tmp_path / "a.log"]))}
    assert "share.coordinator.state.topic.replication.factor" in found["assigned-nothing"]["advice"]
    assert "one owner" not in found["assigned-nothing"]["text"]


@pytest.mark.parametrize("how", ["reversed", "wrapped", "cut"])
def test_other_forms_of_the_lines_claim_no_more(tmp_path: Path, how: str, events: list[dict[str, Any]]) -> None:
    for log in LOGS:
        lines = log.read_text().splitlines(keepends=True)
        made = {
            "reversed": lines[::-1],
            "wrapped": [f"app-1  | {line}" for line in lines],
            "cut": [line[: len(line) // 2] + "\n" for line in lines[1::2]],
        }[how]
        (tmp_path / log.name).write_text("".join(made))
    read = events_of_logs(sorted(tmp_path.iterdir())).to_pylist()
    known = {(row["event"], row["client_id"], row["cause"]) for row in events}
    about = ("member_joined", "member_removed", "rebalance_started", "rebalance_completed")
    assert {(row["event"], row["client_id"], row["cause"]) for row in read if row["event"] in about} <= known
