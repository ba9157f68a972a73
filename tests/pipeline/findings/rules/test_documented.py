"""Each finding has its row in the documents: what it means, and what to do."""

from __future__ import annotations

from typing import Final

import pytest

from rejoin.pipeline.findings.rules import NAMES
from rejoin.pipeline.share_groups.findings import NAMES as OF_SHARE_GROUPS
from rejoin.pipeline.streams_groups.findings import NAMES as OF_STREAMS_GROUPS
from rejoin.pipeline.transactions.findings import NAMES as OF_TRANSACTIONS
from tests.paths import ROOT

INCIDENTS: Final = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted({*NAMES, *OF_TRANSACTIONS, *OF_SHARE_GROUPS, *OF_STREAMS_GROUPS}))
def test_each_finding_is_explained(name: str) -> None:
    rows = [line for line in INCIDENTS.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1, f"docs/incidents.md has {len(rows)} rows that begin with `{name}`"
    assert len(rows[0].split("|")[2].split()) >= 4
