"""Streams groups step by step have the rows and findings of a report over the whole journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.incremental.streams import cut, differing, read, taken_in, whole, written
from tests.pipeline.streams_groups import lives
from tests.pipeline.streams_groups.lives import RecordedStreams
from tests.suite.long_runs import in_long_runs


def long_life(node: RecordedStreams) -> None:
    """Most lives one after the other, with quiet times in which rows are settled."""
    lives.standby_never_ready(node)
    for number in range(6):
        node.closes("a" if number == 0 else f"a{number - 1}")
        node.rounds(12, 15_000)
        node.starts(f"a{number}")
        node.rounds(60, 15_000)
    for number in range(6):
        node.beats("b", rebalance_timeout_ms=50_000 + number)
        node.rounds(1)
    node.dies("b")
    node.rounds(20, 5_000)


@pytest.mark.parametrize("restart_every", in_long_runs(0, always=[3]))
def test_steps_come_to_the_rows_of_the_whole(tmp_path: Path, restart_every: int) -> None:
    node = RecordedStreams(group_streams_num_standby_replicas=1)
    long_life(node)
    events = read(node.journal().splitlines())
    steps = cut(events, 12, seed=3)
    tables = taken_in(tmp_path, steps, restart_every=restart_every)
    assert differing(whole(events), written(tmp_path)) == {}
    assert tables.kept["streams_groups"].num_rows < events.num_rows / 2
