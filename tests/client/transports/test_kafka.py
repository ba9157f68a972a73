"""The transport of Kafka's protocol: versions, order, lost connections, and addresses."""

from __future__ import annotations

import asyncio

import pytest

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError, UnsupportedVersionError
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.kafka.address import BrokerAddress, broker_address
from rejoin.client.transports.kafka.broker import Security
from rejoin.client.transports.kafka.connection import BrokerConnection
from rejoin.client.transports.kafka.transport import KafkaTransport
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.registry import API_VERSIONS, FIND_COORDINATOR, HEARTBEAT, METADATA
from tests.client.transports.scripted_broker import Asked, HangUp, ScriptedBroker

ALL_TOPICS = MetadataRequest(topics=None)
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="a")


async def ask(
    transport: KafkaTransport, request: Request, version: int, to: Endpoint | None = None, timeout_ms: int = 60_000
) -> Response:
    return await transport.send(to, request, version, timeout_ms=timeout_ms, client_id="test")


async def failure(
    transport: KafkaTransport, request: Request, version: int, timeout_ms: int = 60_000
) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await ask(transport, request, version, timeout_ms=timeout_ms)
    return caught.value


def answer(asked: Asked) -> Response:
    return MetadataResponse() if asked.api is METADATA else HeartbeatResponse(throttle_time_ms=asked.version)


async def test_a_request_is_sent_in_the_newest_version_that_the_broker_speaks() -> None:
    async with ScriptedBroker(answer, {METADATA.key: (0, 9)}) as broker, KafkaTransport([broker.address]) as transport:
        await ask(transport, ALL_TOPICS, METADATA.max_version)
        await ask(transport, BEAT, HEARTBEAT.max_version)
        assert transport.versions == {METADATA: 9}
    assert [(asked.api, asked.version) for asked in broker.asked] == [(METADATA, 9), (HEARTBEAT, 4)]


async def test_a_request_that_an_older_version_cannot_carry_fails_once_the_versions_are_known() -> None:
    many = FindCoordinatorRequest(coordinator_keys=("g",))
    one = FindCoordinatorRequest(key="g")
    async with (
        ScriptedBroker(lambda _: FindCoordinatorResponse(), {FIND_COORDINATOR.key: (0, 3)}) as broker,
        KafkaTransport([broker.address]) as transport,
    ):
        problem = await failure(transport, many, FIND_COORDINATOR.max_version)
        assert problem.failure is Failure.DISCONNECT
        assert "up to v3" in problem.detail
        await ask(transport, one, transport.versions[FIND_COORDINATOR])
    assert [asked.request for asked in broker.asked] == [one]


async def test_an_old_broker_is_asked_for_its_versions_again_in_its_own() -> None:
    old = {API_VERSIONS.key: (0, 0), METADATA.key: (0, 1)}
    async with ScriptedBroker(answer, old) as broker, KafkaTransport([broker.address]) as transport:
        await ask(transport, ALL_TOPICS, 1)
        assert transport.versions[METADATA] == 1


async def test_a_broker_without_a_version_of_ours_is_an_error_that_names_both() -> None:
    async with (
        ScriptedBroker(answer, {HEARTBEAT.key: (5, 6)}) as broker,
        KafkaTransport([broker.address]) as transport,
    ):
        with pytest.raises(UnsupportedVersionError, match="speaks versions 5 to 6 of Heartbeat; expected 4 or older"):
            await ask(transport, BEAT, HEARTBEAT.max_version)


async def test_answers_belong_to_their_requests_in_order() -> None:
    async with ScriptedBroker(answer) as broker, KafkaTransport([broker.address]) as transport:
        versions = [0, 4, 1, 3, 2, 4]
        answers = await asyncio.gather(*(ask(transport, BEAT, version) for version in versions))
        # Version 0 has no throttle time.
        assert [each.throttle_time_ms for each in answers if isinstance(each, HeartbeatResponse)] == versions
        assert broker.connections == 1


async def test_the_coordinator_has_a_connection_of_its_own() -> None:
    async with ScriptedBroker(answer) as broker, KafkaTransport([broker.address]) as transport:
        data = Endpoint(1, "127.0.0.1", broker.port)
        await ask(transport, BEAT, 4, to=data)
        await ask(transport, BEAT, 4, to=data._replace(is_coordinator=True))
    assert [asked.connection for asked in broker.asked] == [0, 1]


async def test_a_lost_connection_fails_what_waits_and_the_next_request_connects_again() -> None:
    hang_up = True

    def script(asked: Asked) -> Response | None:
        if asked.api is HEARTBEAT:
            return None
        if hang_up:
            raise HangUp
        return answer(asked)

    async with (
        ScriptedBroker(script) as broker,
        KafkaTransport([broker.address], reconnect_backoff_ms=1) as transport,
    ):
        lost = await asyncio.gather(ask(transport, BEAT, 4), ask(transport, ALL_TOPICS, 13), return_exceptions=True)
        assert [each.failure for each in lost if isinstance(each, TransportError)] == [Failure.DISCONNECT] * 2
        hang_up = False
        assert await ask(transport, ALL_TOPICS, 13) == MetadataResponse()
        assert broker.connections == 2


async def test_a_timeout_ends_the_connection_as_nothing_behind_would_be_answered() -> None:
    async with (
        ScriptedBroker(lambda asked: None if asked.api is HEARTBEAT else answer(asked)) as broker,
        KafkaTransport([broker.address], reconnect_backoff_ms=1) as transport,
    ):
        await ask(transport, ALL_TOPICS, 13)
        behind = asyncio.ensure_future(ask(transport, BEAT, 4))
        problem = await failure(transport, BEAT, 4, timeout_ms=20)
        assert problem.failure is Failure.TIMEOUT
        with pytest.raises(TransportError, match="no answer within 20 ms"):
            await behind
        await ask(transport, ALL_TOPICS, 13)
        assert broker.connections == 2


async def test_a_cancelled_request_leaves_the_connection_to_the_others() -> None:
    async with ScriptedBroker(answer) as broker, KafkaTransport([broker.address]) as transport:
        await ask(transport, BEAT, 4)
        cancelled = asyncio.ensure_future(transport.send(None, BEAT, 4, timeout_ms=60_000, client_id="test"))
        cancelled.cancel()
        assert await ask(transport, ALL_TOPICS, 13) == MetadataResponse()
        assert broker.connections == 1


async def test_the_nodes_of_the_cluster_are_asked_once_they_are_known(unused_tcp_port: int) -> None:
    def described(asked: Asked) -> Response:
        node = MetadataResponseBroker(node_id=7, host="127.0.0.1", port=second.port)
        return MetadataResponse(brokers=(node,)) if asked.api is METADATA else HeartbeatResponse()

    async with ScriptedBroker(described) as first, ScriptedBroker(described) as second:
        servers = [f"127.0.0.1:{unused_tcp_port}", first.address]
        async with KafkaTransport(servers) as transport:
            assert (await failure(transport, ALL_TOPICS, 13)).failure is Failure.DISCONNECT
            await ask(transport, ALL_TOPICS, 13)
            await ask(transport, BEAT, 4)
    assert [asked.api for asked in first.asked] == [METADATA]
    assert [asked.api for asked in second.asked] == [HEARTBEAT]


async def test_a_connection_to_an_address_that_a_node_has_left_is_closed() -> None:
    ports: list[int] = []

    def described(asked: Asked) -> Response:
        node = MetadataResponseBroker(node_id=7, host="127.0.0.1", port=ports[-1])
        return MetadataResponse(brokers=(node,)) if asked.api is METADATA else HeartbeatResponse()

    async with (
        ScriptedBroker(described) as old,
        ScriptedBroker(described) as new,
        KafkaTransport([old.address]) as transport,
    ):
        ports.append(old.port)
        await ask(transport, ALL_TOPICS, 13)
        await ask(transport, BEAT, 4)
        assert old.open_connections == 2
        ports.append(new.port)
        await ask(transport, ALL_TOPICS, 13)
        await ask(transport, BEAT, 4)
        assert new.open_connections == 1
        async with asyncio.timeout(30):
            while old.open_connections > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_client_logs_in_again_on_its_connection_before_a_login_ends() -> None:
    # Kafka: KIP-368. The next request after most of the login's time begins it.
    logins: list[BrokerConnection] = []

    async def authenticate(connection: BrokerConnection) -> int:
        logins.append(connection)
        await connection.ask(HEARTBEAT, BEAT, 4)
        return 1

    async def refuse(connection: BrokerConnection) -> int:
        if logins:
            raise KafkaError("the password has changed")
        return await authenticate(connection)

    async with ScriptedBroker(answer) as broker:
        async with KafkaTransport([broker.address], security=Security(authenticate=authenticate)) as transport:
            async with asyncio.timeout(30):
                while len(logins) < 3:
                    answers = await asyncio.gather(*(ask(transport, ALL_TOPICS, 13) for _ in range(3)))
                    assert answers == [MetadataResponse()] * 3
        assert broker.connections == 1
        logins.clear()
        async with KafkaTransport([broker.address], security=Security(authenticate=refuse)) as transport:

            async def ask_until_it_is_refused() -> None:
                while True:
                    await ask(transport, ALL_TOPICS, 13)

            with pytest.raises(KafkaError, match="the password has changed"):
                await asyncio.wait_for(ask_until_it_is_refused(), 30)


async def test_the_authenticator_comes_before_everything_else() -> None:
    async def authenticate(connection: BrokerConnection) -> int:
        await connection.ask(HEARTBEAT, BEAT, 4)
        return 0

    async def refuse(connection: BrokerConnection) -> int:
        raise KafkaError("wrong password")

    async with ScriptedBroker(answer) as broker:
        async with KafkaTransport([broker.address], security=Security(authenticate=authenticate)) as transport:
            await ask(transport, ALL_TOPICS, 13)
        assert [asked.api for asked in broker.asked] == [HEARTBEAT, METADATA]
        async with KafkaTransport([broker.address], security=Security(authenticate=refuse)) as transport:
            with pytest.raises(KafkaError, match="wrong password"):
                await ask(transport, ALL_TOPICS, 13)
        assert len(broker.asked) == 2


@pytest.mark.parametrize(
    ("server", "address"),
    [("node:9", ("node", 9)), ("node", ("node", 9092)), ("[::1]:9", ("::1", 9)), ("127.0.0.1:9", ("127.0.0.1", 9))],
)
def test_addresses(server: str, address: tuple[str, int]) -> None:
    assert broker_address(server) == BrokerAddress(*address)


@pytest.mark.parametrize("server", ["", ":9", "node:0", "node:99999", "node:x", "node:9/path", "me@node:9"])
def test_what_is_no_address(server: str) -> None:
    with pytest.raises(ValueError, match="not a server"):
        broker_address(server)


async def test_a_broker_that_is_not_there_is_named_once_with_what_was_wrong(unused_tcp_port: int) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    async with KafkaTransport([address], reconnect_backoff_ms=1) as transport:
        await failure(transport, ALL_TOPICS, 13)
        for timeout_ms in (1, 2):
            problem = await failure(transport, ALL_TOPICS, 13, timeout_ms=timeout_ms)
            assert problem.detail.count(f"{address}: ") == 1
            assert "Connect call failed" in problem.detail


async def test_a_host_that_is_no_name_is_a_lost_connection() -> None:
    async with KafkaTransport(["a..b:9092"]) as transport:
        assert (await failure(transport, ALL_TOPICS, 13)).detail.startswith("a..b:9092: ")
