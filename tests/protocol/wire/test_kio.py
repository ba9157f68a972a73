"""Every message of every version is written byte for byte as an independent codec, kio, writes it."""

from __future__ import annotations

import json
from random import Random
from typing import Final, cast

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode as KafkaErrorCode

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import DEFINED, Api
from rejoin.protocol.wire.codec import Codec
from tests.protocol.wire.kio_codec import encode_body
from tests.protocol.wire.messages import NEWER_CODES, VERSIONS, random_message

GIVEN_UP: Final = {
    ("ListOffsets", 0),
    ("OffsetCommit", 0),
    ("OffsetCommit", 1),
    ("OffsetFetch", 0),
    ("CreateTopics", 0),
    ("CreateTopics", 1),
    ("DeleteTopics", 0),
    ("WriteTxnMarkers", 0),
    ("OffsetForLeaderEpoch", 0),
    ("OffsetForLeaderEpoch", 1),
    ("DescribeLogDirs", 0),
    ("DescribeAcls", 0),
    ("CreateAcls", 0),
    ("DeleteAcls", 0),
    ("AlterReplicaLogDirs", 0),
    ("CreateDelegationToken", 0),
    ("RenewDelegationToken", 0),
    ("ExpireDelegationToken", 0),
    ("DescribeDelegationToken", 0),
}
"""Versions that Kafka 4 has given up, and kio with it."""

NOT_IN_KIO: Final = GIVEN_UP | {
    ("ApiVersions", 5),
    ("TxnOffsetCommit", 6),
    ("DeleteGroups", 3),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("UnregisterController", 0),
}
"""The same, and what is newer than kio."""

NOT_SERVED: Final = {"OffsetCommit": 10, "OffsetFetch": 10}
"""The newest versions that are written, where no node serves them yet."""


def is_known(api: Api, version: int) -> bool:
    try:
        load_request_schema(api.key, version)
    except Exception:
        return False
    return True


def test_every_version_that_kafka_has_is_compared() -> None:
    assert {(api.name, version) for api, version in VERSIONS if not is_known(api, version)} == NOT_IN_KIO


def test_error_codes_are_kafkas() -> None:
    """Numbers, names, and whether a client may send the same request again."""
    kafkas = {each.name.upper(): (int(each.value), each.retriable) for each in KafkaErrorCode}
    ours = {each.name: (int(each), each.retriable) for each in ErrorCode if each not in NEWER_CODES}
    assert {name: error for name, error in ours.items() if kafkas.get(name) != error} == {}


@pytest.mark.parametrize("api", DEFINED.values(), ids=lambda api: api.name)
def test_messages_are_written_as_kio_writes_them(api: Api) -> None:
    for version in range(api.min_version, NOT_SERVED.get(api.name, api.max_version) + 1):
        if (api.name, version) in NOT_IN_KIO:
            continue
        random = Random(f"{api.name} {version}")
        ours = Codec(api, version)
        for _ in range(3):
            request = random_message(api.request, version, random)
            response = random_message(api.response, version, random)
            assert ours.write_request(request) == encode_body(
                api.key, version, json.loads(request.to_json(version)), True
            )
            theirs = encode_body(api.key, version, json.loads(response.to_json(version)), False)
            assert ours.write_response(response) == theirs
            assert b"".join(cast(list[bytes], ours.write_response_parts(response))) == theirs
            assert ours.read_response(theirs, 0) == response
