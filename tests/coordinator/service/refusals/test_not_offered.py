"""Requests that are not offered, one of each: their connections end, and the log names the client."""

from __future__ import annotations

import struct

from conformance.api_versions.page import ONLY_WITH, own_versions, recorded, versions_of
from conformance.api_versions.record import API_VERSIONS, STOCK, not_offered, refusal
from rejoin.coordinator.service.kafka.other_apis import OTHER_APIS
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import BY_KEY, DEFINED, GET_TELEMETRY_SUBSCRIPTIONS
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.kafka.frames import api_versions, request
from tests.coordinator.service.kafka.test_connection import connect, logged

ZEROS = bytes(18)
"""Tags of a flexible header, and a body."""


async def test_each_ends_its_connection_and_is_logged_once_with_the_name_of_the_client(serve: Serve) -> None:
    elsewhere = {key for kind in ONLY_WITH for key in versions_of(kind)} - versions_of(STOCK).keys()
    known = BY_KEY.keys() | OTHER_APIS.keys()
    asked = [each for each in not_offered(own_versions()) if each[0] in known - elsewhere - {API_VERSIONS}]
    async with logged() as lines:
        node = await serve({"kafka_port": 0})
        for _ in range(2):
            for key, version in asked:
                async with connect(node) as peer:
                    await peer.ask(api_versions(3, name="a-client", software="1.2"))
                    peer.send(request(key, version, 2, ZEROS, client_id="billing"))
                    assert await peer.rest() == b"", (key, version)
    found = lines()
    assert len(asked) > len(own_versions())
    assert [int(line["version"]) for line in found] == [version for _, version in asked]
    assert {line["event"] for line in found} == {"kafka_request_refused"}
    assert {(line["client"], line["client_id"]) for line in found} == {("a-client 1.2", "billing")}
    for line, (key, _) in zip(found, asked, strict=True):
        expected = (BY_KEY[key].name, True) if key in BY_KEY else (OTHER_APIS[key], False)
        assert (line["api"], line["offered"] != "no version") == expected


async def test_telemetry_is_answered_though_it_is_not_listed(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    async with connect(node) as peer:
        answer = await peer.ask(request(GET_TELEMETRY_SUBSCRIPTIONS.key, 0, 7, ZEROS))
    _, throttle_ms, error = struct.unpack_from(">bih", answer)
    assert (throttle_ms, error) == (0, ErrorCode.NONE)


async def test_keys_of_no_api_end_their_connections_and_share_a_line_of_the_log(serve: Serve) -> None:
    keys = [key for key, _ in not_offered(own_versions()) if key not in OTHER_APIS.keys() | DEFINED.keys()]
    async with logged() as lines:
        node = await serve({"kafka_port": 0})
        for key in [*keys, 32_767, -1]:
            async with connect(node) as peer:
                peer.send(request(key, 0, 1, ZEROS))
                assert await peer.rest() == b"", key
    (line,) = lines()
    assert f"API key {keys[0]}, which is not offered" in line["reason"]


async def test_an_unknown_version_of_api_versions_is_answered_as_by_kafka(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    async with connect(node) as peer:
        answer = await peer.ask(request(API_VERSIONS, 6, 1, ZEROS))
    recorded_answer = recorded()["refused"][f"{API_VERSIONS} 6"]
    assert refusal(API_VERSIONS, struct.pack(">i", 1) + answer) == recorded_answer
