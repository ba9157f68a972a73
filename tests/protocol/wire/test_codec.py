"""What is written can be read again, and bytes that are no message are refused with the field and what it should be."""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random
from typing import Any, cast

import pytest

from rejoin.protocol.limits import MAX_ENTRIES
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsResponse
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.records.fetch import FetchablePartitionResponse, FetchableTopicResponse, FetchResponse
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from rejoin.protocol.registry import API_VERSIONS, DEFINED, FETCH, HEARTBEAT, METADATA, PRODUCE, Api
from rejoin.protocol.wire.codec import codec_of, read_request_header, unsupported_api_versions_frame
from rejoin.protocol.wire.errors import SchemaError
from tests.protocol.wire.messages import SIDES, codec, random_message

HEARTBEAT_1 = HeartbeatRequest(group_id="orders", generation_id=3, member_id="m-1")


@pytest.mark.parametrize("api", DEFINED.values(), ids=lambda api: api.name)
def test_what_is_written_can_be_read(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        random = Random(f"{api.name} {version}")
        ours = codec(api, version)
        for _ in range(3):
            request = random_message(api.request, version, random)
            response = random_message(api.response, version, random)
            assert ours.read_request(ours.write_request(request), 0) == request
            assert ours.read_response(ours.write_response(response), 0) == response


@pytest.mark.parametrize("api", DEFINED.values(), ids=lambda api: api.name)
def test_a_message_that_is_cut_short_is_refused_and_what_stands_behind_a_request_is_ignored(api: Api) -> None:
    for whole, read, random in samples(api):
        sizes = {0, len(whole) - 1, *random.choices(range(len(whole)), k=8)} if whole else set()
        for size in sorted(sizes):
            with pytest.raises(SchemaError):
                read(whole[:size], 0)
        if isinstance(message := read(whole, 0), Request):
            # Kafka: librdkafka 2.16 sends three bytes too many in Metadata 12, and is answered.
            assert read(whole + b"\0", 0) == message
        else:
            with pytest.raises(SchemaError, match="trailing bytes: 1"):
                read(whole + b"\0", 0)


@pytest.mark.parametrize("api", DEFINED.values(), ids=lambda api: api.name)
def test_a_message_that_was_changed_is_read_or_refused(api: Api) -> None:
    for whole, read, random in samples(api):
        for _ in range(20 if whole else 0):
            changed = bytearray(whole)
            for _ in range(random.choice((1, 1, 4))):
                changed[random.randrange(len(whole))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            with suppress(SchemaError):
                read(bytes(changed), 0)


def samples(api: Api) -> list[tuple[bytes, Any, Random]]:
    """A random request and response of each version, as bytes, and what reads them."""
    found = []
    for version in range(api.min_version, api.max_version + 1):
        ours = codec(api, version)
        for side in SIDES:
            random = Random(f"{api.name} {version} {side}")
            message = random_message(getattr(api, side), version, random)
            found.append((getattr(ours, f"write_{side}")(message), getattr(ours, f"read_{side}"), random))
    return found


def read_request(api: Api, version: int, data: str) -> Any:
    return codec(api, version).read_request(bytes.fromhex(data), 0)


@pytest.mark.parametrize(
    ("api", "version", "data", "text"),
    [
        (HEARTBEAT, 0, "0001 67 0000", "generationId: the bytes end; expected int32"),
        (HEARTBEAT, 0, "0001 67 00000003", "memberId: the bytes end; expected string"),
        (HEARTBEAT, 0, "0001 67 00000003 0009 6d", "memberId: length 9, but 1 left; expected string"),
        (HEARTBEAT, 0, "ffff", "groupId: length -1, but 0 left; expected string"),
        (HEARTBEAT, 0, "0002 67ff 00000003 0000", "groupId: invalid UTF-8 at byte 1; expected a string"),
        (HEARTBEAT, 4, "ffffffffff7f", "groupId: an unsigned varint of more than five bytes; expected string"),
        (HEARTBEAT, 4, "ffff7f", "groupId: length 2,097,150; expected string"),
        (HEARTBEAT, 4, "01 00000003 01 00 01 05 09 00", "(tagged fields): a tagged field of length 9, but 1 left"),
        (METADATA, 1, "00000002 0000 0001", "topics[1].name: length 1, but 0 left; expected string"),
        (METADATA, 1, "7fffffff 0000", "topics: 2,147,483,647 entries, but bytes left: 2; expected an array"),
        (METADATA, 1, "fffffffe", "topics: -2 entries, but bytes left: 0; expected an array"),
        (METADATA, 0, "ffffffff", "topics: -1 entries, but bytes left: 0; expected an array"),
        (FETCH, 12, "ffffffff 00000000 00000000 00000000 00 00000000 00000000 01 01 01 01 00 02 05 00", "clusterId"),
    ],
)
def test_a_refusal_says_where_and_what(api: Api, version: int, data: str, text: str) -> None:
    with pytest.raises(SchemaError) as refused:
        read_request(api, version, data)
    assert text in str(refused.value)


def test_the_path_has_the_indexes_of_nested_arrays() -> None:
    partitions = [PartitionProduceData(index=index, records=b"batch") for index in range(3)]
    topics = tuple(TopicProduceData(name=name, partition_data=tuple(partitions)) for name in ("a", "b"))
    whole = codec(PRODUCE, 7).write_request(ProduceRequest(acks=1, timeout_ms=1, topic_data=topics))
    with pytest.raises(SchemaError) as refused:
        codec(PRODUCE, 7).read_request(whole[:-1], 0)
    assert refused.value.field == "topicData[1].partitionData[2].records"


def test_entries_are_bounded_before_anything_is_made_of_them() -> None:
    names = struct.pack(">i", MAX_ENTRIES + 1) + b"\0\0" * (MAX_ENTRIES + 1)
    with pytest.raises(SchemaError, match=r"topics: too many entries; expected at most 20,000 entries in one request"):
        codec(METADATA, 1).read_request(names, 0)
    read = codec(METADATA, 1).read_request(struct.pack(">i", MAX_ENTRIES) + b"\0\0" * MAX_ENTRIES, 0)
    assert len(read.topics) == MAX_ENTRIES


def test_an_unknown_error_code_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"errorCode: unknown error code 12345; expected one of Kafka's error codes"):
        codec(HEARTBEAT, 1).read_response(struct.pack(">ih", 0, 12_345), 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    whole = codec(HEARTBEAT, 4).write_request(HEARTBEAT_1)
    tagged = whole[:-1] + bytes.fromhex("02 00 03 616263 8101 00")
    assert codec(HEARTBEAT, 4).read_request(tagged, 0) == HEARTBEAT_1
    answer = ApiVersionsResponse(finalized_features_epoch=7)
    assert codec(API_VERSIONS, 3).write_response(answer).hex() == "0000 01 00000000 01 01 08 0000000000000007".replace(
        " ", ""
    )
    later = bytes.fromhex("0000 01 00000000 02 01 08 0000000000000007 09 02 ffff")
    assert codec(API_VERSIONS, 3).read_response(later, 0) == answer


def test_a_tagged_field_has_the_length_that_it_says() -> None:
    whole = bytes.fromhex("0000 01 00000000 01 01 09 0000000000000007 00")
    with pytest.raises(SchemaError, match=r"finalizedFeaturesEpoch: shorter or longer than its tagged field"):
        codec(API_VERSIONS, 3).read_response(whole, 0)


@pytest.mark.parametrize("count", ["8001", "ffffffff07"])
def test_tagged_fields_are_bounded(count: str) -> None:
    """Each costs a step and may have two bytes, so that a large frame could hold millions."""
    many = bytes.fromhex(count) + b"\x63\x00" * 200
    with pytest.raises(SchemaError, match="more than 127 tagged fields"):
        codec(HEARTBEAT, 4).read_request(codec(HEARTBEAT, 4).write_request(HEARTBEAT_1)[:-1] + many, 0)
    with pytest.raises(SchemaError, match="more than 127 tagged fields"):
        codec(API_VERSIONS, 3).read_response(bytes.fromhex("0000 01 00000000") + many, 0)
    with pytest.raises(SchemaError, match="more than 127 tagged fields"):
        read_request_header(struct.pack(">hhih", 12, 4, 7, 0) + many)


@pytest.mark.parametrize(
    ("api", "version", "response", "field"),
    [
        (METADATA, 11, MetadataResponse(topics=(MetadataResponseTopic(name=None),)), "topics.name"),
        (METADATA, 11, MetadataResponse(topics=(MetadataResponseTopic(name="x" * 40_000),)), "topics.name"),
        (METADATA, 1, MetadataResponse(topics=(MetadataResponseTopic(name="x" * 40_000),)), "topics.name"),
        (METADATA, 1, MetadataResponse(topics=(MetadataResponseTopic(name="\ud800"),)), "topics.name"),
    ],
)
def test_what_a_version_cannot_carry_is_not_written(api: Api, version: int, response: Any, field: str) -> None:
    with pytest.raises(SchemaError) as refused:
        codec(api, version).write_response(response)
    assert field in refused.value.field


def test_a_nullable_struct_says_whether_it_is_there() -> None:
    ours = codec(DEFINED[75], 0)
    without = DescribeTopicPartitionsRequest(topics=())
    assert ours.write_request(without).hex() == "01000007d0ff00"
    with_cursor = DescribeTopicPartitionsRequest(topics=(), cursor=Cursor(topic_name="t", partition_index=5))
    assert ours.write_request(with_cursor).hex() == "01000007d0" + "01" + "0274" + "00000005" + "00" + "00"
    assert ours.read_request(ours.write_request(with_cursor), 0) == with_cursor


# --- records


def test_record_batches_are_not_copied() -> None:
    log = bytes(1_000)
    batches = memoryview(log)[100:600]
    topic = FetchableTopicResponse(topic="t", partitions=(FetchablePartitionResponse(records=batches),))
    parts = codec(FETCH, 12).response_parts(1, FetchResponse(responses=(topic,)))
    assert [part for part in parts if isinstance(part, memoryview)] == [batches]
    assert b"".join(cast(list[bytes], parts)) == codec(FETCH, 12).response_frame(1, FetchResponse(responses=(topic,)))

    data = (TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=log),)),)
    frame = codec(PRODUCE, 9).write_request(ProduceRequest(acks=1, timeout_ms=1, topic_data=data))
    read = codec(PRODUCE, 9).read_request(frame, 0).topic_data[0].partition_data[0].records
    assert isinstance(read, memoryview)
    assert read.obj is frame
    assert read == log


def test_records_of_nothing_are_empty_and_not_null() -> None:
    topic = FetchableTopicResponse(topic="t", partitions=(FetchablePartitionResponse(),))
    assert codec(FETCH, 4).write_response(FetchResponse(responses=(topic,))).endswith(struct.pack(">i", 0))


# --- headers


def test_the_header_of_a_request() -> None:
    frame = codec(HEARTBEAT, 3).request_frame(7, "größe", HEARTBEAT_1)
    header = read_request_header(frame[4:])
    assert header[:4] == (12, 3, 7, "größe")
    assert codec(HEARTBEAT, 3).read_request(frame[4:], header.body_at) == HEARTBEAT_1
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4


def test_a_flexible_header_has_tagged_fields_and_an_old_client_id() -> None:
    head = struct.pack(">hhihB", 12, 4, 7, 1, ord("c"))
    assert read_request_header(head + b"\0").body_at == len(head) + 1
    assert read_request_header(head + bytes.fromhex("01 05 02 ffff") + b"rest").body_at == len(head) + 5
    with pytest.raises(SchemaError, match="header"):
        read_request_header(head)


@pytest.mark.parametrize("key", [12, 18, 999])
def test_a_null_client_id_is_empty(key: int) -> None:
    assert read_request_header(struct.pack(">hhih", key, 0, -5, -1)) == (key, 0, -5, "", 10)


@pytest.mark.parametrize(
    "data", ["", "0012", "0012 0000 00000007 0005 61", "0012 0000 00000007 fffe", "0012 0000 00000007 0001 ff"]
)
def test_a_header_that_is_none_is_refused(data: str) -> None:
    with pytest.raises(SchemaError):
        read_request_header(bytes.fromhex(data))


def test_only_flexible_responses_have_tagged_fields_in_their_header() -> None:
    assert codec(HEARTBEAT, 3).response_frame(7, HeartbeatResponse()).hex() == "0000000a" + "00000007" + "000000000000"
    flexible = "0000000c" + "00000007" + "00" + "000000000000" + "00"
    assert codec(HEARTBEAT, 4).response_frame(7, HeartbeatResponse()).hex() == flexible
    assert codec(HEARTBEAT, 4).read_response_frame(bytes.fromhex(flexible)[4:]) == (7, HeartbeatResponse())


@pytest.mark.parametrize("version", range(API_VERSIONS.max_version + 1))
def test_api_versions_is_answered_with_the_old_header(version: int) -> None:
    ours = codec(API_VERSIONS, version)
    frame = ours.response_frame(7, ApiVersionsResponse())
    assert frame[4:8] == struct.pack(">i", 7)
    assert frame[8:] == ours.write_response(ApiVersionsResponse())
    assert ours.read_response_frame(frame[4:]) == (7, ApiVersionsResponse())


def test_an_unsupported_version_of_api_versions_is_refused_in_version_0() -> None:
    """Byte for byte as Kafka 4.4 refuses it."""
    assert unsupported_api_versions_frame(7, 0, 5).hex() == "00000010" + "00000007002300000001001200000005"


def test_the_header_of_a_future_api_versions_can_be_read() -> None:
    header = read_request_header(struct.pack(">hhihBB", 18, 99, 7, 1, ord("c"), 0) + b"whatever")
    assert header == (18, 99, 7, "c", 12)


def test_versions_that_are_not_known_have_no_codec() -> None:
    assert codec_of(999, 0) is None
    assert codec_of(HEARTBEAT.key, HEARTBEAT.max_version + 1) is None
    assert codec_of(PRODUCE.key, 2) is None
    assert codec_of(HEARTBEAT.key, -1) is None


def test_models_that_were_read_are_like_others() -> None:
    read = codec(HEARTBEAT, 4).read_request(codec(HEARTBEAT, 4).write_request(HEARTBEAT_1), 0)
    assert read == HEARTBEAT_1
    assert hash(read) == hash(HEARTBEAT_1)
    assert read.to_json(4) == HEARTBEAT_1.to_json(4)
    assert read.model_copy(update={"generation_id": 4}) == HEARTBEAT_1.model_copy(update={"generation_id": 4})
    left = LeaveGroupRequest(group_id="g", members=())
    assert codec(DEFINED[13], 5).read_request(codec(DEFINED[13], 5).write_request(left), 0).members == ()
