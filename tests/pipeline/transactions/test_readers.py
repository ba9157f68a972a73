"""What readers got of the records that went into transforms: a row, a word for it, and findings."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.page import render
from rejoin.pipeline.transactions.readers import COUNTS, reader_findings, rows_of
from rejoin.pipeline.transactions.schemas import READERS


def compared(reader: str, mode: str, isolation: str = "read_committed", **counts: int) -> dict[str, Any]:
    """An event of the laboratory about 640 records."""
    envelope = {"run_id": "run-1", "source": "simulation", "node": "outside", "seq": 9, "at_ms": 120_000}
    about = {"reader": reader, "isolation_level": isolation, "topics": ["results"]}
    transforms = {"transform_groups": ["app"], "commit_modes": [mode]}
    named = {f"records_{name}": value for name, value in counts.items()}
    return envelope | about | transforms | dict.fromkeys(COUNTS, 0) | {"records_in": 640, "records_read": 640} | named


DELIVERIES: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "exactly once": (compared("r", "transaction"), []),
    "at least once": (
        compared("r", "after", read=752, twice=112),
        [("output-repeated", "medium", "112 records of app came out again")],
    ),
    "at most once": (
        compared("r", "before", read=543, lost=97),
        [("output-lost", "high", "97 records of app never came out")],
    ),
    "neither": (
        compared("r", "auto", read=640, lost=7, twice=7),
        [
            ("output-lost", "high", "7 records of app never came out"),
            ("output-repeated", "medium", "7 records of app came out again"),
        ],
    ),
}


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_counts_come_to_a_delivery_and_to_findings(delivery: str) -> None:
    event, findings = DELIVERIES[delivery]
    (row,) = rows_of([event])
    assert set(row) == set(READERS.names)
    assert (row["delivery"], row["records_in"]) == (delivery, 640)
    found = reader_findings([row])
    assert [(each["finding"], each["severity"], each["title"]) for each in found] == findings
    assert {each["group_id"] for each in found} <= {"app"}
    assert all(
        each["setting"] == "transactional.id" and "send_offsets_to_transaction" in each["advice"] for each in found
    )


def test_results_of_aborted_transactions_are_no_repetition() -> None:
    rows = rows_of([compared("r", "transaction", "read_uncommitted", read=791, twice=151, aborted=151)])
    (found,) = reader_findings(rows)
    assert (found["finding"], found["setting"]) == ("aborted-records-read", "isolation.level")
    assert found["title"] == "r read 151 records of aborted transactions"


def test_the_page_has_a_row_for_each_reader() -> None:
    rows = rows_of([compared("<b>", "before", lost=97, read=543), compared("all", "transaction")])
    page = render(Report("t", readers=rows))
    assert "What came out of transforms" in page
    assert "app (commit: before)" in page
    assert '<td class="high">at most once</td><td class="n">640</td><td class="n">543</td>' in page
    assert '<td class="good">exactly once</td>' in page
    assert "<b>" not in page.split("What came out of transforms")[1].split("</section>")[0]
    assert "What came out of transforms" not in render(Report("t"))
