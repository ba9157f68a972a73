"""240 random sequences that Kafka's own group coordinator played replay here: replies, records, groups and timers."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import orjson
import pytest

from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.groups.consumer_traces import CATEGORIES, TraceNode, traces

IGNORED: Final = frozenset({"errorMessage", "topicId_", "version_"})
REPLACED: Final = (25, 27, 82)
TOMBSTONES_IN_ANY_ORDER: Final = frozenset({5, 7, 8})


def normal(value: Any) -> Any:
    """A value in which what has no order is sorted."""
    if isinstance(value, dict):
        shown = {key: normal(each) for key, each in value.items() if key not in IGNORED and each != []}
        for name in ("assignment", "memberAssignment"):
            if isinstance(shown.get(name), str):
                shown[name] = shown_assignment(shown[name])
        return shown
    if isinstance(value, list):
        return in_order([normal(each) for each in value])
    return value


def in_order(values: list[Any]) -> list[Any]:
    """Sorted by their JSON, as nothing else orders values of all kinds."""
    return sorted(values, key=as_json) if len(values) > 1 else values


def as_json(value: Any) -> bytes:
    return orjson.dumps(value, default=list, option=orjson.OPT_SORT_KEYS)


def shown_assignment(encoded: str) -> Any:
    """The assignment of a classic member, whose topics come in the order of a hash table."""
    data = base64.b64decode(encoded)
    try:
        return [data[:2].hex(), sorted(decode_assignment(data).partitions)]
    except ValueError:
        return encoded


def shown_record(record: dict[str, Any]) -> dict[str, Any]:
    value = record["value"]
    if value is not None and record["type"] == 8:
        value = {
            **value,
            **{
                name: [
                    {
                        "topicId": each["topicId"],
                        "of": sorted(zip(each["partitions"], each["assignmentEpochs"], strict=True)),
                    }
                    for each in value[name]
                ]
                for name in ("assignedPartitions", "partitionsPendingRevocation")
            },
        }
    if value is not None:
        # Tagged fields with their default are not written here; Kafka's JSON has them.
        defaults = {"classicMemberMetadata": None, "assignmentTimestamp": 0, "timestamp": 0, "version": 0}
        value = {
            key: each
            for key, each in value.items()
            if defaults.get(key, 1) != each and key not in ("version", "topicId")
        }
    return {"type": record["type"], "key": record["key"], "value": normal(value)}


def normal_records(records: list[dict[str, Any]]) -> list[Any]:
    """Records in order, but for those whose order follows a hash table."""
    runs: list[tuple[Any, list[Any]]] = []
    for record in records:
        is_tombstone = record["value"] is None
        kind = (
            ("tombstones",)
            if is_tombstone and record["type"] in TOMBSTONES_IN_ANY_ORDER
            else (record["type"], is_tombstone)
        )
        if not runs or runs[-1][0] != kind:
            runs.append((kind, []))
        runs[-1][1].append(shown_record(record))
    return [[kind, in_order(run)] for kind, run in runs]


def shown_reply(entry: dict[str, Any], versions: dict[int, int]) -> Any:
    """A reply; what is no protocol is written in two ways, and as the layer above Kafka's coordinator does."""
    body = dict(entry["body"])
    if entry["api"] == "JoinGroup":
        body["protocolName"] = body.get("protocolName") or None
        if versions[entry["request"]] < 7:
            body.pop("protocolType", None)
    return normal({**entry, "body": body})


def without_idle_timers(step: dict[str, Any], refused: set[str]) -> dict[str, int]:
    """The timers of a step, but for those of classic members that were refused because the group is full.

    Differs: Kafka leaves them, and they do nothing when they fire.
    """
    what = step["do"]
    errors = {entry.get("request"): entry["body"].get("errorCode") for entry in step["out"] if entry["kind"] == "reply"}
    is_classic = (step["group"] or {}).get("type") == "classic"
    if (
        is_classic
        and what.get("api") == "JoinGroup"
        and errors.get(what["request"]) == ErrorCode.GROUP_MAX_SIZE_REACHED
    ):
        refused.add(what["body"]["memberId"])
    members = {each["member_id"] for each in (step["group"] or {}).get("members", ())}
    idle = {f"heartbeat-g-{member_id}" for member_id in refused - members}
    return {name: left for name, left in step["timers"].items() if name not in idle}


def check(trace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.coordinator.core.offsets.deletion.OffsetDeletions.delete_topics", lambda *_: None)
    monkeypatch.setattr(
        "rejoin.coordinator.core.transactions.apis.txn_offset_commits.TxnOffsetCommits._verifies", lambda *_: False
    )
    node = TraceNode(trace)
    versions: dict[int, int] = {}
    refused: set[str] = set()
    answered = {entry["request"] for step in trace["steps"] for entry in step["out"] if "request" in entry}
    for number, step in enumerate(trace["steps"]):
        where = f"{trace['id']} step {number}: {json.dumps(step['do'])}"
        node.do(step)
        if step["do"]["op"] == "request":
            versions[step["do"]["request"]] = step["do"]["version"]
        replies = [shown_reply(entry, versions) for entry in step["out"] if entry["kind"] == "reply"]
        extra = [entry for entry in node.out if entry["request"] not in answered]
        # Kafka leaves requests waiting that another one has replaced; here each is answered.
        assert all(entry["body"]["errorCode"] in REPLACED for entry in extra), where
        ours = [shown_reply(entry, versions) for entry in node.out if entry not in extra]
        assert in_order(ours) == in_order(replies), where
        assert normal_records(node.written()) == normal_records(step["records"]), where
        assert normal(node.group_picture()) == normal(step["group"]), where
        assert node.timers() in (step["timers"], without_idle_timers(step, refused)), where
        assert [f"{task.group_id}-regex" for task in node.background] == step["background"], where


@pytest.mark.parametrize("category", CATEGORIES)
def test_replays_as_on_kafka(category: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {}
    for trace in traces(category):
        try:
            check(trace, monkeypatch)
        except Exception as problem:
            failed[trace["id"]] = problem
    assert not failed
