"""180 random sequences of a share group that Kafka's own group coordinator played replay here, in every field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.coordinator.core.groups.share.share_traces import CATEGORIES, ShareTraceNode, traces
from tests.coordinator.core.groups.test_consumer_traces import in_order


def normal(value: Any) -> Any:
    """A value in which members, topics and partitions, which have no order, are sorted."""
    if isinstance(value, dict):
        return {key: normal(each) for key, each in value.items()}
    if isinstance(value, list):
        return in_order([normal(each) for each in value])
    return value


def normal_records(records: list[dict[str, Any]]) -> list[Any]:
    """Records in order, but for those of one type next to each other."""
    runs: list[tuple[Any, list[Any]]] = []
    for record in records:
        kind = [record["type"], record["value"] is None]
        if not runs or runs[-1][0] != kind:
            runs.append((kind, []))
        runs[-1][1].append(normal({key: record[key] for key in ("type", "key", "value")}))
    return [[kind, in_order(run)] for kind, run in runs]


def check(trace: dict[str, Any]) -> None:
    node = ShareTraceNode(trace)
    for number, step in enumerate(trace["steps"]):
        where = f"{trace['id']} step {number}: {json.dumps(step['do'])}"
        out = node.do(step)
        assert normal(out) == normal(step["out"]), where
        assert normal_records(node.written()) == normal_records(step.get("records", [])), where
        assert normal(node.group_picture()) == normal(step["group"]), where
        assert node.timers() == step["timers"], where
        assert len(node.persister.waiting) == step.get("initializing", 0), where


@pytest.mark.parametrize("category", CATEGORIES)
def test_replays_as_on_kafka(category: str) -> None:
    failed = {}
    for trace in traces(category):
        try:
            check(trace)
        except Exception as problem:
            failed[trace["id"]] = problem
    assert not failed
