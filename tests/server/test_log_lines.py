"""Log lines: pretty for people, JSON for the rest, long facts made short."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from coordinator.core.events import AppendFailed, Cause, RebalanceCompleted
from coordinator.server import logs

MANY = [f"member-{number}" for number in range(100)]
COMPLETED = RebalanceCompleted(
    group_id="g",
    generation=2,
    cause=Cause(cause="leave", member_id="b"),
    attempts=1,
    rebalance_ms=3,
    join_ms=1,
    sync_ms=2,
    leader="a",
    previous_leader=None,
    protocol="range",
    members_before=MANY,
    members_after=["a"],
    owned_before={member: {"orders": [1]} for member in MANY},
    owned_after={"a": {"orders": [0, 1], "payments": [3]}},
    moved=0,
    regained=1,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    logs.configure("critical")


def test_a_facts_line_shows_numbers_where_the_fact_has_many() -> None:
    line = logs.shortened(COMPLETED)
    assert line["members_before"] == "[100]"
    assert line["members_after"] == ["a"]
    assert line["owned_before"] == "{100}"
    assert line["owned_after"] == {"a": 3}
    assert line["cause"] == {"cause": "leave", "member_id": "b"}
    assert line.keys() == COMPLETED.model_dump().keys()


def test_trouble_is_louder() -> None:
    failed = AppendFailed(partition=1, epoch=0, records=2, error="KAFKA_STORAGE_ERROR")
    assert (logs.level_of(COMPLETED), logs.level_of(failed)) == ("info", "warning")


def test_lines_are_json_where_nobody_looks() -> None:
    out = io.StringIO()
    logs.configure("info", out)
    structlog.get_logger().info(COMPLETED.name, **logs.shortened(COMPLETED))
    structlog.get_logger().debug("unseen")
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["event"] == "rebalance_completed"
    assert json.loads(line)["owned_after"] == {"a": 3}


def test_lines_are_pretty_on_a_terminal() -> None:
    out = Terminal()
    logs.configure("debug", out)
    structlog.get_logger().debug("heartbeat", error="UNKNOWN_MEMBER_ID")
    (line,) = out.getvalue().splitlines()
    assert "heartbeat" in line
    assert "UNKNOWN_MEMBER_ID" in line
    assert not line.startswith("{")
