"""Share groups step by step have the rows and findings of a report over the whole journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.incremental.streams import cut, differing, read, taken_in, whole, written
from tests.pipeline.share_groups import lives
from tests.pipeline.share_groups.lives import RecordedShares, lines_of
from tests.suite.long_runs import in_long_runs


def long_life(node: RecordedShares) -> None:
    """Most lives one after the other, with quiet times in which rows are settled."""
    lives.held_window(node)
    node.driver.elapse(40_000)
    node.writes(3)
    for _ in range(6):
        node.handles("a")
        node.driver.elapse(41_000)
    node.writes(1)
    while node.acquires("a"):
        node.driver.elapse(41_000)
    node.writes(2)
    node.acquires("b")
    node.driver.elapse(20_000)


@pytest.mark.parametrize("restart_every", in_long_runs(0, always=[3]))
def test_steps_come_to_the_rows_of_the_whole(tmp_path: Path, restart_every: int) -> None:
    events = read(lines_of(long_life).splitlines())
    steps = cut(events, 12, seed=3)
    tables = taken_in(tmp_path, steps, restart_every=restart_every)
    assert differing(whole(events), written(tmp_path)) == {}
    assert tables.kept["share_groups"].num_rows < events.num_rows / 2
