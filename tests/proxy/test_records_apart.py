"""Messages with records, read while they pass: what is kept is the message with empty records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.records.fetch import (
    AbortedTransaction,
    FetchablePartitionResponse,
    FetchableTopicResponse,
    FetchResponse,
)
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.share.share_fetch import (
    AcquiredRecords,
    ShareFetchablePartition,
    ShareFetchableTopic,
    ShareFetchResponse,
)
from rejoin.protocol.registry import FETCH, PRODUCE, SHARE_FETCH
from rejoin.protocol.wire.codec import Codec, codec_of
from rejoin.proxy.records_apart import RecordsApart

ENDPOINT = NodeEndpoint(node_id=7, host="broker-7.example", port=9_092)


def fetched(records: bytes) -> FetchResponse:
    return FetchResponse(
        session_id=5,
        responses=(
            FetchableTopicResponse(
                topic="orders",
                topic_id="AAAAAAAAAAAAAAAAAAAAAQ",
                partitions=(
                    FetchablePartitionResponse(partition_index=3, high_watermark=90, records=records),
                    FetchablePartitionResponse(
                        partition_index=4,
                        aborted_transactions=(AbortedTransaction(producer_id=1, first_offset=2),),
                        records=records,
                    ),
                ),
            ),
        ),
        node_endpoints=(ENDPOINT,),
    )


def shared(records: bytes) -> ShareFetchResponse:
    partition = ShareFetchablePartition(
        partition_index=1, records=records, acquired_records=(AcquiredRecords(last_offset=4, delivery_count=1),)
    )
    return ShareFetchResponse(
        responses=(ShareFetchableTopic(partitions=(partition, partition)),), node_endpoints=(ENDPOINT,)
    )


def produced(records: bytes) -> ProduceRequest:
    partitions = (PartitionProduceData(index=0, records=records), PartitionProduceData(index=1, records=None))
    topic = TopicProduceData(name="orders", partition_data=partitions)
    return ProduceRequest(transactional_id="tx", acks=-1, timeout_ms=30_000, topic_data=(topic,))


def codec(key: int, version: int) -> Codec:
    found = codec_of(key, version)
    assert found is not None
    return found


def written(codec: Codec, message: Any) -> bytes:
    if isinstance(message, Request):
        return codec.write_request(message)
    assert isinstance(message, Response)
    return codec.response_frame(0, message)[9 if codec.is_flexible else 8 :]


CASES = [
    *((FETCH.key, version, fetched) for version in (4, 7, 11, 12, 13, 16, 18)),
    *((SHARE_FETCH.key, version, shared) for version in (1, 2)),
    *((PRODUCE.key, version, produced) for version in (3, 8, 9, 12)),
]


@pytest.mark.parametrize(("key", "version", "message"), CASES)
@pytest.mark.parametrize("piece", [1, 7, 1_000_000])
def test_records_are_left_out(key: int, version: int, message: Any, piece: int) -> None:
    form = codec(key, version)
    body = written(form, message(b"r" * 5_000))
    model = form.api.request if key == PRODUCE.key else form.api.response
    apart = RecordsApart(model, form, len(body), held_after="responses")
    in_front = sum(apart.feed(body[at : at + piece]) for at in range(0, len(body), piece))
    assert (apart.problem, apart.is_complete) == ("", True)
    assert apart.record_bytes == (5_000 if key == PRODUCE.key else 10_000)
    if key == PRODUCE.key:
        kept: Any = form.read_request(apart.kept, 0)
        assert [partition.records for partition in kept.topic_data[0].partition_data] == [b"", b""]
        return
    assert apart.kept == written(form, message(b""))
    empty = {FETCH.key: 1, SHARE_FETCH.key: 2}[key] * form.is_flexible
    endpoints: Any = form.api.response
    endpoint_bytes = len(written(form, endpoints(node_endpoints=(ENDPOINT,)))) - len(written(form, endpoints()))
    assert len(body) - in_front == empty + endpoint_bytes


def test_the_head_of_the_first_batch_is_kept() -> None:
    form = codec(PRODUCE.key, 9)
    body = form.write_request(produced(bytes(range(256)) * 10))
    apart = RecordsApart(ProduceRequest, form, len(body), most_records=61)
    for at in range(0, len(body), 100):
        apart.feed(body[at : at + 100])
    kept: Any = form.read_request(apart.kept, 0)
    assert bytes(kept.topic_data[0].partition_data[0].records) == bytes(range(61))


@given(data=st.data())
def test_one_wrong_byte_is_a_problem_or_another_message(data: st.DataObject) -> None:
    form = codec(FETCH.key, 13)
    body = bytearray(written(form, fetched(b"r" * 50)))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] = data.draw(st.integers(0, 255))
    apart = RecordsApart(FetchResponse, form, len(body), held_after="responses")
    for start in range(0, len(body), 13):
        apart.feed(bytes(body[start : start + 13]))
    assert apart.is_complete or apart.problem or len(apart.kept) < len(body)


def test_a_count_of_more_entries_than_bytes_is_a_problem() -> None:
    form = codec(FETCH.key, 13)
    apart = RecordsApart(FetchResponse, form, 40)
    apart.feed(bytes(10) + b"\xff\xff\xff\xff\x07" + bytes(25))
    assert "entries, but" in apart.problem
