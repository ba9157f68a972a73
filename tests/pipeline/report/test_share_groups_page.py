"""The page's part about share groups: windows as charts without a script, and records that came late."""

from __future__ import annotations

from pathlib import Path

from rejoin.pipeline.report.page import render
from rejoin.pipeline.report.run import make_report
from tests.pipeline.share_groups import lives
from tests.pipeline.share_groups.lives import RecordedShares, lines_of


def page_of(life: object, folder: Path) -> str:
    journal = folder / "run.jsonl"
    journal.write_text(lines_of(life))  # type: ignore[arg-type]
    return render(make_report([journal], folder / "out"))


def test_deliveries_are_bars_by_their_end(tmp_path: Path) -> None:
    page = page_of(lives.slow_handler, tmp_path)
    assert 'aria-label="jobs-0: window ' in page
    assert page.count('<rect class="t-hanging"') == 5
    assert "<title>record 0, delivery 5, a: lock-expired, 30 s " in page
    assert "5 runs of records that came late, by deliveries" in page
    assert "No rebalance." not in page


def test_names_of_members_are_escaped(tmp_path: Path) -> None:
    def life(node: RecordedShares) -> None:
        node.joins("<b>x")
        node.writes(1)
        node.acquires("<b>x")
        node.driver.elapse(31_000)

    page = page_of(life, tmp_path)
    assert "&lt;b&gt;x: lock-expired" in page
    assert "<b>x:" not in page
