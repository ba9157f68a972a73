"""120 random sequences of a streams group that Kafka's own group coordinator played replay here, in every field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.coordinator.core.groups.streams.streams_traces import CATEGORIES, StreamsTraceNode, traces
from tests.coordinator.core.groups.test_consumer_traces import in_order, normal

REPLACED = (25, 27, 82)
TAGGED = {
    "validatedTopologyEpoch": -1,
    "storedDescriptionTopologyEpoch": -1,
    "failedDescriptionTopologyEpoch": -1,
    "assignmentTimestamp": 0,
}


def shown_record(record: dict[str, Any]) -> Any:
    value = record["value"]
    if value is not None:
        value = {name: each for name, each in value.items() if name not in TAGGED or each != TAGGED[name]}
    return {"type": record["type"], "key": record["key"], "value": normal(value)}


def normal_records(records: list[dict[str, Any]]) -> list[Any]:
    """Records in order, but for the targets of several members, which follow a hash table."""
    runs: list[tuple[Any, list[Any]]] = []
    for record in records:
        kind = (record["type"], record["value"] is None)
        if not runs or runs[-1][0] != kind:
            runs.append((kind, []))
        runs[-1][1].append(shown_record(record))
    return [[kind, in_order(run)] for kind, run in runs]


def shown_reply(entry: dict[str, Any]) -> Any:
    """A reply; details of statuses are sentences, of which a sequence has only the names."""
    body = dict(entry["body"])
    if entry["api"] == "JoinGroup":
        body["protocolName"] = body.get("protocolName") or None
    if body.get("status"):
        body["status"] = [each["statusCode"] for each in body["status"]]
    return normal({"request": entry["request"], "api": entry["api"], "body": body})


def check(trace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.coordinator.core.offsets.deletion.OffsetDeletions.delete_topics", lambda *_: None)
    monkeypatch.setattr(
        "rejoin.coordinator.core.transactions.apis.txn_offset_commits.TxnOffsetCommits._verifies", lambda *_: False
    )
    # A broker refuses partitions that are not there before it asks the group. The sequences have groups alone.
    monkeypatch.setattr("rejoin.coordinator.core.offsets.requests.OffsetRequests.refused", lambda *_: ({}, True))
    # In the sequences internal topics appear as a step of their own.
    monkeypatch.setattr("rejoin.coordinator.core.topics.requests.TopicRequests.create_for", lambda *_: None)
    node = StreamsTraceNode(trace)
    answered = {entry["request"] for step in trace["steps"] for entry in step["out"] if "request" in entry}
    for number, step in enumerate(trace["steps"]):
        where = f"{trace['id']} step {number}: {json.dumps(step['do'])}"
        node.do(step)
        replies = [shown_reply(entry) for entry in step["out"] if entry["kind"] == "reply"]
        extra = [entry for entry in node.out if entry["request"] not in answered]
        assert all(entry["body"]["errorCode"] in REPLACED for entry in extra), where
        ours = [shown_reply(entry) for entry in node.out if entry not in extra]
        assert in_order(ours) == in_order(replies), where
        assert normal_records(node.written()) == normal_records(step["records"]), where
        assert normal(node.group_picture()) == normal(step["group"]), where
        assert node.timers() == step["timers"], where


@pytest.mark.parametrize("category", CATEGORIES)
def test_replays_as_on_kafka(category: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {}
    for trace in traces(category):
        try:
            check(trace, monkeypatch)
        except Exception as problem:
            failed[trace["id"]] = problem
    assert not failed
