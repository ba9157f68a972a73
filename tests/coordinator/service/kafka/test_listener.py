"""The listeners of a node: addresses, limits, the release that they pass for, and faults."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from contextlib import AsyncExitStack

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options, StartFailed
from rejoin.coordinator.testing.starting import running
from rejoin.protocol.brokers.releases import newest_versions
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.wire.codec import codec_of
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import (
    Peer,
    api_versions,
    find_coordinator,
    heartbeat,
    join_group,
    request,
    string,
)
from tests.protocol.wire.messages import random_message

UNKNOWN_MEMBER_ID = struct.pack(">h", 25)


def brokers(body: bytes) -> list[tuple[int, str, int]]:
    """The nodes in a Metadata 0 response."""
    count, at = struct.unpack_from(">i", body)[0], 4
    found = []
    for _ in range(count):
        node_id, length = struct.unpack_from(">ih", body, at)
        host = body[at + 6 : at + 6 + length].decode()
        (port,) = struct.unpack_from(">i", body, at + 6 + length)
        found.append((node_id, host, port))
        at += 10 + length
    return found


def metadata() -> bytes:
    return request(3, 0, 1, struct.pack(">i", 1) + string("nothing"))


async def test_each_listener_sends_its_clients_to_itself(serve: Serve) -> None:
    node = await serve(
        {"kafka_port": 9},
        listeners="PLAINTEXT://127.0.0.1:0,DOCKER://127.0.0.1:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,DOCKER:PLAINTEXT",
        advertised_listeners="DOCKER://broker.example:29092",
    )
    plain, docker = node.app.endpoints
    assert plain.port > 0, "the port that was bound"
    for listener, port, address in (
        (plain, plain.port, ("127.0.0.1", plain.port)),
        (docker, node.app.bound_ports["DOCKER"], ("broker.example", 29_092)),
    ):
        async with Peer(port) as peer:
            assert brokers(await peer.ask(metadata())) == [(1, *address)], listener
            found = await peer.ask(find_coordinator("g"))
            assert found == struct.pack(">hi", 0, 1) + string(address[0]) + struct.pack(">i", address[1])
    cluster = await node.get("/cluster")
    assert cluster["nodes"][0]["listeners"] == {"PLAINTEXT": plain.address, "DOCKER": "broker.example:29092"}
    assert (await node.call("FindCoordinator", {"key": "g", "keyType": 0}, 1))["port"] == node.app.port
    assert await described(node) == f"{plain},DOCKER://broker.example:29092"


async def described(node: Harness) -> str:
    """The node's advertised.listeners, as DescribeConfigs shows it."""
    resource = {"resourceType": 4, "resourceName": "1", "configurationKeys": ["advertised.listeners"]}
    body = {"resources": [resource], "includeSynonyms": False, "includeDocumentation": False}
    value: str = (await node.call("DescribeConfigs", body))["results"][0]["configs"][0]["value"]
    return value


async def test_the_settings_of_a_node_show_the_port_that_clients_are_sent_to(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    assert await described(node) == f"PLAINTEXT://{node.app.bootstrap_servers}"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listeners": "127.0.0.1:9092"}, "expected NAME://HOST:PORT"),
        ({"listeners": "A://:1,A://:2"}, "A is named twice"),
        ({"listeners": "HTTP://:1"}, "HTTP is the name of the HTTP service"),
        ({"listeners": "A://:9092,B://:9092"}, "A and B have the same port, 9092; expected a port of its own"),
        ({"advertised.listeners": "A://0.0.0.0:1"}, "0.0.0.0 stands for every address of this machine"),
        ({"listeners": "A://:70000"}, "expected NAME://HOST:PORT"),
        ({"emulator.as.kafka": "2.81"}, "there is no release '2.81': expected 0.11.0, 1.0 or 1.1"),
    ],
)
def test_settings_that_name_no_listener_are_refused(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match="(?s).*" + problem.replace(".", r"\.")):
        Settings.model_validate(settings)


async def test_an_address_of_no_listener_cannot_be_advertised() -> None:
    settings = Settings(advertised_listeners="DOCKER://broker:1")
    with pytest.raises(StartFailed, match=r"there is no listener DOCKER; there are: PLAINTEXT"):
        await App(Options(settings=settings, port=0, kafka_port=0)).start()


async def test_a_port_that_is_taken_is_said_with_the_way_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(StartFailed, match=rf"Kafka's protocol: cannot listen on 127\.0\.0\.1:{port}.*--kafka-port"):
            await App(Options(port=0, kafka_port=port)).start()


async def test_a_port_belongs_to_a_node_from_the_moment_it_is_bound() -> None:
    first = App(Options(port=0, kafka_port=0))
    try:
        first.bind()
        second = App(Options(port=0, kafka_port=first.endpoints[0].port))
        with pytest.raises(StartFailed, match=r"Address already in use.*--kafka-port"):
            await second.start()
        await first.start()
        async with Peer(first.endpoints[0].port) as peer:
            assert await peer.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
    finally:
        await first.stop()


async def test_kafka_clients_are_answered_while_the_http_side_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(Options(port=0, kafka_port=0))
    answers = []

    async def load(*_: str) -> None:
        async with Peer(app.endpoints[0].port) as peer:
            answers.append(await peer.ask(heartbeat("g", "m")))

    monkeypatch.setattr("rejoin.coordinator.service.app._load", load)
    async with app:
        assert answers == [UNKNOWN_MEMBER_ID]


async def test_one_connection_too_many_waits_until_another_is_closed(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, max_connections=2)
    port = node.app.endpoints[0].port
    async with Peer(port) as one:
        async with Peer(port) as two:
            for peer in (one, two):
                assert await peer.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
            three = await Peer(port).__aenter__()
            waiting = asyncio.ensure_future(three.ask(heartbeat("g", "m")))
            assert await one.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
            assert not waiting.done()
        assert await asyncio.wait_for(waiting, 10) == UNKNOWN_MEMBER_ID
        await three.__aexit__(None, None, None)


async def test_one_connection_too_many_of_an_address_is_closed(serve: Serve) -> None:
    overrides = {"max_connections_per_ip": 0, "max_connections_per_ip_overrides": "localhost:1"}
    node = await serve({"kafka_port": 0}, **overrides)
    port = node.app.endpoints[0].port
    async with Peer(port) as one:
        assert await one.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        async with Peer(port) as two:
            assert await two.rest() == b""
        assert node.app.metrics.refused["none"] == 1
        assert await one.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID


async def test_an_idle_connection_is_closed_and_one_that_waits_for_an_answer_too(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, connections_max_idle_ms=400)
    port = node.app.endpoints[0].port
    async with Peer(port) as idle, Peer(port) as waiting:
        assert await idle.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        waiting.send(join_group("g"))
        assert await idle.rest() == b""
        assert await waiting.rest() == b"", "as Kafka does: nothing is received while a request waits"


async def test_an_address_above_its_rate_is_cut_off_after_a_while(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    entity = {"entityType": "ip", "entityName": "127.0.0.1"}
    limit = {"key": "connection_creation_rate", "value": 1.0, "remove": False}
    body = json.dumps({"entries": [{"entity": [entity], "ops": [limit]}], "validateOnly": False}).encode()
    answer = await node.request("POST", "/v1/alter-client-quotas", body, Kafka_Api_Version="1")
    assert answer.status == 200
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(Peer(node.app.endpoints[0].port)) for _ in range(12)]
        for peer in peers[:10]:
            assert await peer.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        for peer in peers[10:]:
            assert await peer.rest() == b""
        assert await peers[0].ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
    assert node.app.metrics.refused["none"] == 2


async def test_with_a_negative_time_no_connection_is_idle_for_too_long(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, connections_max_idle_ms=-1)
    listener = node.app.kafka
    assert listener is not None
    async with Peer(node.app.endpoints[0].port) as idle:
        assert await idle.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        assert listener._look is None, "nothing looks for idle connections"


@pytest.mark.parametrize("release", ["0.11.0", "2.8", "4.2"])
async def test_a_node_passes_for_an_older_broker(serve: Serve, release: str) -> None:
    node = await serve({"kafka_port": 0}, emulator_as_kafka=release)
    newest = newest_versions(release)
    async with Peer(node.app.endpoints[0].port) as peer:
        body = await peer.ask(api_versions(0))
        offered = {}
        for at in range(6, len(body), 6):
            key, _, last = struct.unpack_from(">hhh", body, at)
            offered[key] = last
        assert offered.keys() <= newest.keys()
        assert all(last <= newest[key] for key, last in offered.items())
    async with Peer(node.app.endpoints[0].port) as peer:
        peer.send(request(12, newest[12] + 1, 1, b"\0"))
        assert await peer.rest() == b"", "what the release does not know ends the connection"
    problem = await node.request("POST", "/v1/heartbeat", b"{}", Kafka_Api_Version=str(newest[12] + 1))
    assert problem.status == 400, "nor does HTTP know it"


GIVEN_UP = {
    "ListOffsets": (0,),
    "OffsetCommit": (0, 1),
    "OffsetFetch": (0,),
    "CreateTopics": (0, 1),
    "DeleteTopics": (0,),
    "OffsetForLeaderEpoch": (0, 1),
    "WriteTxnMarkers": (0,),
    "DescribeLogDirs": (0,),
}
"""Versions that Kafka 4 has not any more (KIP-896)."""


@pytest.mark.parametrize("name", GIVEN_UP)
@pytest.mark.parametrize("release", ["", "4.0", "3.9"])
async def test_versions_that_kafka_4_gave_up_are_those_of_older_releases(serve: Serve, release: str, name: str) -> None:
    node = await serve({"kafka_port": 0}, emulator_as_kafka=release)
    api = BY_NAME[name]
    first = GIVEN_UP[name][-1] + 1
    for version in (*GIVEN_UP[name], first):
        codec = codec_of(api.key, version)
        assert codec is not None
        asked = random_message(api.request, version, random.Random(name))
        is_refused = version < first and release != "3.9"
        async with Peer(node.app.endpoints[0].port) as peer:
            peer.send_bytes(codec.request_frame(7, "old", asked))
            if is_refused:
                assert await peer.rest() == b""
            else:
                assert (await peer.receive())[0] == 7
        found = await node.request("POST", api.path, asked.to_json(version), Kafka_Api_Version=str(version))
        assert found.status == (400 if is_refused else 200), found.body
        assert (f"{name} is supported in versions {first} to ".encode() in found.body) is is_refused


async def test_faults_are_those_of_http() -> None:
    async with running(clock="virtual") as coordinator:
        port = coordinator.app.endpoints[0].port
        assert coordinator.bootstrap_servers == f"127.0.0.1:{port}"
        async with Peer(port) as peer:
            await coordinator.add_fault(keys="Heartbeat", error="COORDINATOR_LOAD_IN_PROGRESS", count=1)
            assert await peer.ask(heartbeat("g", "m")) == struct.pack(">h", 14)
            delay = await coordinator.add_fault(keys="Heartbeat", when="delay", latency_ms=500, count=1)
            peer.send(heartbeat("g", "m", correlation=2), api_versions(0, 3))
            await delay.wait()
            await coordinator.advance(500)
            assert await peer.receive() == (2, UNKNOWN_MEMBER_ID)
            assert (await peer.receive())[0] == 3
            await coordinator.add_fault(keys="Heartbeat", when="drop_response", count=1)
            peer.send(heartbeat("g", "m"))
            assert await peer.rest() == b"", "a lost answer is a lost connection"


async def test_a_service_that_stops_closes_its_connections(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    async with Peer(node.app.endpoints[0].port) as peer:
        assert await peer.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        await node.app.stop()
        assert await peer.rest() == b""
