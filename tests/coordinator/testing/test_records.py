"""The other side of a test: records that it writes and reads, requests that clients sent, and committed offsets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition as ConfluentPartition

from rejoin.coordinator.control.topic_records import MOST_RECORDS
from rejoin.coordinator.testing import GroupCoordinator, NotReached, OperationRefused, running
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.partitioner import murmur2, partition_for
from rejoin.protocol.types import TopicPartition
from tests.coordinator.control.conftest import start
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.control.samples import beat

__all__ = ["start"]

LONG_AGO = 1_700_000_000_000


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as started:
        yield started


def commit(offset: int, group: str = "g") -> OffsetCommitRequest:
    """A commit from outside of the group, as tools send it."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=(topic,))


async def test_records_are_read_as_they_were_written(coordinator: GroupCoordinator) -> None:
    written: list[Any] = [
        "plain",
        b"\xff\x00",
        ("key", None),
        {"key": b"k", "value": "v", "headers": {"source": "web"}, "timestamp": LONG_AGO},
        {"value": "v", "headers": [("a", "1"), ("a", None)]},
    ]
    view = await coordinator.produce("orders", 1, written)
    assert view.end_offsets == [0, 5, 0]
    records = await coordinator.records("orders")
    assert [(record.partition, record.offset) for record in records] == [(1, offset) for offset in range(5)]
    assert [(record.key, record.value) for record in records[:4]] == [
        (None, b"plain"),
        (None, b"\xff\x00"),
        (b"key", None),
        (b"k", b"v"),
    ]
    assert [record.timestamp for record in records] == [coordinator.now_ms] * 3 + [LONG_AGO, coordinator.now_ms]
    assert [record.headers for record in records[3:]] == [[("source", b"web")], [("a", b"1"), ("a", None)]]


async def test_without_a_partition_records_go_to_that_of_their_key(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("orders", None, [("a", "1"), ("b", "2"), ("a", "3"), "x", "y"])
    by_key = {record.key: record.partition for record in await coordinator.records("orders") if record.key}
    assert by_key == {key: (murmur2(key) & 0x7FFFFFFF) % 3 for key in (b"a", b"b")}
    assert len(await coordinator.records("orders", by_key[b"a"])) >= 2


async def test_a_number_of_records_is_written_to_each_partition(coordinator: GroupCoordinator) -> None:
    assert (await coordinator.produce("orders", None, 2)).end_offsets == [2, 2, 2]
    records = await coordinator.records("orders", 2, offset=1)
    assert [(record.offset, record.value) for record in records] == [(1, b"orders-2@1")]
    assert len(await coordinator.records("orders", limit=4)) == 4


async def test_records_written_by_number_are_distinct(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("orders", 1, ["first"])
    await coordinator.produce("orders", None, 2)
    await coordinator.produce("orders", None, 12_000, keys=True)
    records = [record for record in await coordinator.records("orders") if record.value != b"first"]
    assert all(record.value == b"%s-%d@%d" % (b"orders", record.partition, record.offset) for record in records)
    assert len({record.value for record in records}) == len(records) == 3 * 12_002
    assert [record.key for record in await coordinator.records("orders", 0, 1, 3)] == [None, b"key-2", b"key-3"]
    with pytest.raises(ValueError, match="keys needs a number of records"):
        await coordinator.produce("orders", 0, ["a"], keys=True)


async def test_no_more_records_are_written_at_once_than_a_test_can_want(coordinator: GroupCoordinator) -> None:
    expected = r"records: expected at most 1,000,000 in all partitions together.*, not 400,000 in each of 3"
    with pytest.raises(OperationRefused, match=expected):
        await coordinator.produce("orders", None, 400_000)
    assert await coordinator.records("orders") == []


async def test_synthetic_topics_are_read_but_take_no_list(coordinator: GroupCoordinator) -> None:
    await coordinator.set_topic("ticks", 1, records_per_second=10)
    await coordinator.advance(1_000)
    assert [record.value for record in await coordinator.records("ticks", limit=2)] == [b"ticks-0@0", b"ticks-0@1"]
    assert len(await coordinator.records("ticks")) == 10
    with pytest.raises(OperationRefused, match="the logs of 'ticks' are synthetic"):
        await coordinator.produce("ticks", 0, ["value"])
    await coordinator.produce("ticks", 0, MOST_RECORDS)
    with pytest.raises(OperationRefused, match="'ticks' has 100010 records"):
        await coordinator.records("ticks")


async def test_records_go_back_with_a_snapshot(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("orders", 0, ["kept"])
    kept = await coordinator.snapshot()
    await coordinator.produce("orders", 0, ["forgotten"])
    await coordinator.restore(kept)
    assert [record.value for record in await coordinator.records("orders")] == [b"kept"]
    await coordinator.produce("orders", 0, ["other"])
    assert [record.value for record in await coordinator.records("orders")] == [b"kept", b"other"]
    await coordinator.reset()
    assert await coordinator.records("orders") == []


@pytest.mark.parametrize(
    ("topic", "partition", "said"),
    [("order", None, "is it 'orders'?"), ("orders", 3, "no partition 3; expected 0 to 2")],
)
async def test_a_topic_that_is_not_there(
    coordinator: GroupCoordinator, topic: str, partition: int | None, said: str
) -> None:
    with pytest.raises(OperationRefused, match=said):
        await coordinator.records(topic, partition)
    with pytest.raises(OperationRefused, match=said):
        await coordinator.produce(topic, partition, ["value"])


FORMS = "expected a value, a pair of key and value, or a mapping with key, value, headers and timestamp, not"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([{"value": 7}], "records.0.value: expected text or bytes, not 7"),
        (["a", ("a", "b", "c")], f"records.1: {FORMS} ('a', 'b', 'c')"),
        ([5], f"records.0: {FORMS} 5"),
        ([{"value": "x", "headers": 5}], "records.0.headers: expected values by name, or a list of pairs of name and"),
        ([{"value": "x", "headers": ["ab"]}], "records.0.headers: expected values by name, or a list of pairs of name"),
        ([{"vaule": "x"}], "records.0: there is no field vaule; is it value?"),
        (1.5, "records: expected how many, or a list of records, not 1.5"),
        ("abc", "records: expected how many, or a list of records, not 'abc'"),
        (-1, "records: expected greater than or equal to 0, not -1"),
    ],
)
async def test_what_is_no_record_is_refused_in_one_sentence(coordinator: GroupCoordinator, bad: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        await coordinator.produce("orders", 0, bad)
    assert await coordinator.records("orders") == []


async def test_a_fetch_waits_by_the_machines_clock_where_time_stands_still(coordinator: GroupCoordinator) -> None:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topic = FetchTopic(topic="orders", partitions=(partition,))
    fetch = FetchRequest(max_wait_ms=20, min_bytes=1, topics=(topic,), forgotten_topics_data=())
    began = coordinator.now_ms
    answer: Any = await coordinator.call(fetch, version=12)
    assert answer.responses[0].partitions[0].high_watermark == 0
    assert coordinator.now_ms == began


async def test_requests_are_found_by_api_and_client(coordinator: GroupCoordinator) -> None:
    await coordinator.call(beat("m"), client_id="one")
    mark = await coordinator.mark()
    await coordinator.call(beat("m"), client_id="two")
    await coordinator.call(commit(3), client_id="two")
    beats = await coordinator.requests("Heartbeat")
    assert [(each.client_id, each.version) for each in beats] == [("one", 4), ("two", 4)]
    answer: Any = beats[0].response
    assert answer.error_code.name == "UNKNOWN_MEMBER_ID"
    assert [each.api for each in await coordinator.requests(client_id="two")] == ["Heartbeat", "OffsetCommit"]
    assert len(await coordinator.requests(12, since=mark)) == 1
    with pytest.raises(ValueError, match="there is no API 'Hartbeat'; is it Heartbeat"):
        await coordinator.requests("Hartbeat")


async def test_requests_that_a_fault_answered_or_lost_were_sent_too(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
    await coordinator.call(beat("m"))
    await coordinator.add_fault(keys="Heartbeat", when="drop_response")
    with pytest.raises(Exception, match="got no answer"):
        await coordinator.call(beat("m"))
    refused, lost = await coordinator.requests("Heartbeat")
    answer: Any = refused.response
    assert (answer.error_code.name, lost.response) == ("NOT_COORDINATOR", None)


async def test_what_the_coordinator_does_by_itself_is_no_request_of_a_client(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("orders", 0, ["a"])
    await coordinator.set_topic("payments", 1)
    assert await coordinator.requests() == []
    await coordinator.call(beat("m"), client_id="admin")
    await coordinator.call(beat("m"), client_id="")
    kept = await coordinator.snapshot()
    await coordinator.restore(kept)
    await coordinator.produce("orders", 0, ["b"])
    assert [(each.api, each.client_id) for each in await coordinator.requests()] == [
        ("Heartbeat", "admin"),
        ("Heartbeat", ""),
    ]


async def test_what_the_coordinator_writes_is_a_topic_too(coordinator: GroupCoordinator) -> None:
    assert await coordinator.records("__consumer_offsets") == []
    await coordinator.call(commit(4))
    (record,) = await coordinator.records("__consumer_offsets")
    assert record.partition == partition_for("g", 50)
    assert record.key is not None
    assert b"orders" in record.key
    assert await coordinator.records("__consumer_offsets", record.partition, record.offset, 1) == [record]
    with pytest.raises(OperationRefused, match="no partition 50; expected 0 to 49"):
        await coordinator.records("__consumer_offsets", 50)
    with pytest.raises(OperationRefused, match="'__consumer_offsets' is the coordinator's own and cannot be written"):
        await coordinator.produce("__consumer_offsets", 0, ["value"])


async def test_records_are_read_from_an_offset_on(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("orders", 0, ["a", "b", "c"])
    assert [record.value for record in await coordinator.records("orders", 0, 1, 1)] == [b"b"]
    with pytest.raises(ValueError, match=r"^offset: expected greater than or equal to 0, not -3$"):
        await coordinator.records("orders", 0, -3)


async def test_offsets_are_waited_for_as_a_client_library_lists_them(coordinator: GroupCoordinator) -> None:
    await coordinator.call(commit(7))
    wanted = [ConfluentPartition("orders", 0, 4)]
    assert await coordinator.wait_for_committed("g", wanted) == {TopicPartition("orders", 0): 7}
    with pytest.raises(ValueError, match=r"^offsets\.0\.offset: expected greater than or equal to 0, not -1001$"):
        await coordinator.wait_for_committed("g", [ConfluentPartition("orders", 0)])


@pytest.mark.parametrize("bad", [5, None, "orders", ["orders"], [TopicPartition("orders", 0)], {"orders": 5}])
async def test_offsets_in_no_form_are_refused(coordinator: GroupCoordinator, bad: Any) -> None:
    said = "offsets: expected offsets by (topic, partition), or a list of objects with topic, partition and offset, not"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        await coordinator.wait_for_committed("g", bad)


@pytest.mark.parametrize("nothing", [{}, []])
async def test_no_offsets_are_nothing_to_wait_for(coordinator: GroupCoordinator, nothing: Any) -> None:
    with pytest.raises(ValueError, match=r"^offsets: expected at least one offset to wait for$"):
        await coordinator.wait_for_committed("g", nothing)


async def test_a_wait_for_offsets_of_a_topic_that_there_is_not_says_so(coordinator: GroupCoordinator) -> None:
    with pytest.raises(
        NotReached, match=r"has not committed oders-0 to 5 .*; there is no topic 'oders'; is it 'orders'"
    ):
        await coordinator.wait_for_committed("g", {("oders", 0): 5}, timeout_ms=1)
    with pytest.raises(NotReached, match="committed: nothing; topic 'orders' has no partition 3: it has 3"):
        await coordinator.wait_for_committed("g", {("orders", 3): 5}, timeout_ms=1)
    with pytest.raises(NotReached, match=r"committed: nothing$"):
        await coordinator.wait_for_committed("g", {("__consumer_offsets", 3): 5}, timeout_ms=1)


async def test_committed_offsets_are_waited_for(coordinator: GroupCoordinator) -> None:
    wait = coordinator.wait_for_committed("g", {("orders", 0): 5})
    waiting = asyncio.ensure_future(wait)
    await coordinator.call(commit(4))
    assert not waiting.done()
    await coordinator.call(commit(7))
    assert await waiting == {TopicPartition("orders", 0): 7}
    assert await coordinator.wait_for_committed("g", {ConfluentPartition("orders", 0): 7}) != {}
    said = "group 'g' has not committed orders-1 to 1 within 1 ms; committed: orders-0=7"
    with pytest.raises(NotReached, match=said):
        await coordinator.wait_for_committed("g", {("orders", 1): 1, ("orders", 0): 7}, timeout_ms=1)


async def test_over_http(node: ControlledNode) -> None:
    some = [{"key": "k", "value": "v", "headers": {"h": "1"}}, {"value": None}]
    await node.control("POST", "/topics/produce", topic="orders", partition=0, records=some)
    binary = [{"value": "/wA="}]
    await node.control("POST", "/topics/produce", topic="orders", partition=1, records=binary, encoding="base64")
    found = (await node.control("GET", "/topics/records?topic=orders&partition=0"))["records"]
    now = (await node.control("GET", "/clock"))["now_ms"]
    assert found[0] == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": now,
        "key": "k",
        "value": "v",
        "headers": [["h", "1"]],
    }
    assert found[1]["value"] is None
    shown = await node.control("GET", "/topics/records?topic=orders&partition=1&encoding=base64")
    assert shown["records"][0]["value"] == "/wA="
    bad = [{"value": "%"}]
    refused = await node.refused("POST", "/topics/produce", topic="orders", records=bad, encoding="base64")
    assert refused[0] == 400
    assert "records.0.value: expected base64" in refused[1]
    sent = (await node.control("GET", "/requests?api=Produce"))["requests"]
    assert sent == [], "no client has sent anything"
    wanted = [{"topic": "orders", "partition": 0, "offset": 1}]
    assert (await node.refused("POST", "/offsets/wait", group="g", offsets=wanted, timeout_ms=1))[0] == 409


async def test_over_http_a_value_stands_for_a_record(node: ControlledNode) -> None:
    await node.control("POST", "/topics/produce", topic="orders", partition=0, records=["a", ["k", "b"], None])
    found = (await node.control("GET", "/topics/records?topic=orders"))["records"]
    assert [(each["key"], each["value"]) for each in found] == [(None, "a"), ("k", "b"), (None, None)]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            ["a", 5],
            "records.1: expected a value, a pair of key and value, or key, value, headers and timestamp by name",
        ),
        ([{"value": 5}], "records.0.value: expected a valid string"),
        ([{"headers": {"h": 5}}], "records.0.headers.0.1: expected a valid string"),
        ("a", "records: expected how many records, or a list of them, not 'a'"),
        (True, "records: expected how many records, or a list of them, not True"),
        (-1, "records: expected greater than or equal to 0"),
    ],
)
async def test_over_http_the_path_of_a_mistake_is_that_in_the_json(
    node: ControlledNode, records: Any, said: str
) -> None:
    status, detail = await node.refused("POST", "/topics/produce", topic="orders", records=records)
    assert (status, detail.partition("/control/topics/produce: ")[2].startswith(said)) == (400, True), detail


async def test_over_http_what_is_not_text_has_another_name(node: ControlledNode) -> None:
    binary = [{"key": "aw==", "value": "/wA=", "headers": {"h": "/w=="}}]
    await node.control("POST", "/topics/produce", topic="orders", partition=0, records=binary, encoding="base64")
    await node.control("POST", "/topics/produce", topic="orders", partition=0, records=["text"])
    odd, plain = (await node.control("GET", "/topics/records?topic=orders"))["records"]
    assert (odd["key"], odd["value_base64"], odd["headers_base64"]) == ("k", "/wA=", [["h", "/w=="]])
    assert not {"value", "headers"} & odd.keys()
    assert (plain["value"], plain["headers"]) == ("text", [])


async def test_over_http_an_answer_of_snapshot_is_what_restore_takes(node: ControlledNode) -> None:
    kept = await node.control("POST", "/snapshot")
    assert kept.keys() == {"snapshot", "at_ms", "mark"}
    restored = await node.control("POST", "/restore", **kept)
    assert await node.control("POST", "/restore", **restored) == restored == kept


async def test_over_http_no_offsets_are_refused(node: ControlledNode) -> None:
    refused = await node.refused("POST", "/offsets/wait", group="g", offsets=[])
    assert (refused[0], "offsets: expected at least one offset to wait for" in refused[1]) == (400, True)


@pytest.fixture
async def node(start: Any) -> ControlledNode:
    found: ControlledNode = await start()
    return found


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_keys_are_hashed_as_in_kafka(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32
