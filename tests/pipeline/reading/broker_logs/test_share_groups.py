"""A share group that gets no partitions, in the log of its broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.sources import open_source
from tests.paths import GOLDEN
from tests.pipeline.findings.tables import findings_of
from tests.pipeline.recorded import events_of_logs

LINES = (GOLDEN / "share-group-logs" / "server.log").read_text().splitlines(keepends=True)
NAME = "share-partitions-not-initialized"


def found(folder: Path, lines: list[str]) -> dict[str, dict[str, Any]]:
    (folder / "server.log").write_text("".join(lines))
    return {row["finding"]: row for row in findings_of(events_of_logs([folder / "server.log"]))}


def test_a_state_topic_with_too_few_brokers_is_named(tmp_path: Path) -> None:
    row = found(tmp_path, LINES)[NAME]
    assert (row["severity"], row["setting"]) == ("high", "share.coordinator.state.topic.replication.factor")
    assert row["numbers"]["times"] > 1


def test_it_is_none_once_the_topic_can_be_created(tmp_path: Path) -> None:
    begun = next(nth for nth, line in enumerate(LINES) if "Loaded share group" in line)
    assert NAME not in found(tmp_path, LINES[begun:])


def test_it_is_none_of_consumer_groups(tmp_path: Path) -> None:
    lines = [line.replace("share group", "consumer group") for line in LINES]
    assert NAME not in found(tmp_path, lines)


@pytest.mark.parametrize("how", ["reversed", "wrapped", "indented"])
def test_it_is_named_in_logs_that_were_reversed_or_wrapped(tmp_path: Path, how: str) -> None:
    lines = {
        "reversed": LINES[::-1],
        "wrapped": [f"kafka-1  | {line}" for line in LINES],
        "indented": [f"    {line}" for line in LINES],
    }[how]
    assert found(tmp_path, lines)[NAME]["numbers"]["times"] > 1


def test_the_answer_names_its_epoch() -> None:
    said = " ".join(answer(open_source(GOLDEN / "share-group-logs" / "server.log").story("billing")))
    assert "billing: epoch 11, simple" in said
    assert "generation" not in said
