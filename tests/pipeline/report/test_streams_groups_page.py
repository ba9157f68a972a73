"""The page's part about streams groups: tasks of each process as charts without a script, and their moves."""

from __future__ import annotations

from pathlib import Path

from rejoin.pipeline.report.page import render
from rejoin.pipeline.report.run import make_report
from tests.pipeline.streams_groups import lives


def test_tasks_are_bars_by_process_with_their_moves(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    journal.write_text(lives.all_tables())
    page = render(make_report([journal], tmp_path / "out"))
    assert "<h4>Tasks</h4>" in page
    assert page.count('<figure class="lso tasks">') >= 2
    assert '<rect class="t-committed"' in page
    assert "active in " in page
    assert "moves of tasks</summary>" in page
    assert "as a member" in page
    assert "No rebalance." not in page
