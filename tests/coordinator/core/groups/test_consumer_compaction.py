"""A consumer group that is loaded from a compacted log is what it is when it is loaded from the whole log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from rejoin.coordinator.storage.compaction import compacted
from tests.coordinator.core.driver import PARTITION
from tests.coordinator.core.groups.consumer_traces import CATEGORIES, TraceNode, traces
from tests.coordinator.core.groups.test_consumer_traces import normal

TRACES: Final = 2
STEPS: Final = 60
EVERY: Final = 15
"""Steps between two reloads."""


def loaded_group(node: TraceNode) -> Any:
    """The group after a reload, but for when its topics are looked at again, which is in no record."""
    node.do_reload({})
    picture = node.group_picture() or {}
    picture.pop("refresh_deadline", None)
    return normal(picture)


def first_traces() -> Iterator[dict[str, Any]]:
    """The first sequences of each category."""
    seen: Counter[str] = Counter()
    for trace in traces():
        seen[trace["category"]] += 1
        if seen[trace["category"]] <= TRACES:
            yield trace
    assert set(seen) == set(CATEGORIES)


def test_a_compacted_log_loads_the_same_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.coordinator.core.offsets.deletion.OffsetDeletions.delete_topics", lambda *_: None)
    monkeypatch.setattr(
        "rejoin.coordinator.core.transactions.apis.txn_offset_commits.TxnOffsetCommits._verifies", lambda *_: False
    )
    for trace in first_traces():
        node = TraceNode(trace)
        removed = 0
        for number, step in enumerate(trace["steps"][:STEPS], 1):
            node.do(step)
            if number % EVERY or node.background:
                continue
            log = node.logs.of(PARTITION).records
            whole = list(log)
            expected = loaded_group(node)
            log[:] = compacted(whole)
            removed += len(whole) - len(log)
            assert loaded_group(node) == expected, f"{trace['id']} step {number}"
            log[:] = whole
            node.do_reload({})
        assert removed, trace["id"]
