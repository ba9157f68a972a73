"""Nodes on one store whose HTTP needs a login and a certificate: transactions span them, as they log in too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pydantic import SecretStr

from rejoin.client import Consumer, Producer, TopicPartition
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options, StartFailed
from tests.coordinator.leadership.nodes import settings
from tests.coordinator.service.security.conftest import Certificates

TOPIC, PARTITIONS = "orders", 4
SECRET = "peers-secret"


def secured(node_id: int, certificates: Certificates, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "ssl_keystore_location": str(certificates.server.keystore),
        "ssl_truststore_location": certificates.authority.location.as_posix(),
        "emulator_users": SecretStr(f"{{alice: alice-secret, node: {SECRET}}}"),
        "emulator_peers_username": "node",
        "ssl_client_auth": "required",
        "transaction_state_log_num_partitions": 4,
    }
    return settings(node_id, **(given | more))


async def start(stack: AsyncExitStack, store: str, given: Settings) -> App:
    topics = (InitialTopic(TOPIC, PARTITIONS, None),)
    return await stack.enter_async_context(
        App(Options(settings=given, port=0, kafka_port=0, store=store, topics=topics))
    )


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not reached():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_transaction_spans_nodes_that_need_a_login(postgres: str, certificates: Certificates) -> None:
    async with AsyncExitStack() as stack:
        apps = [await start(stack, postgres, secured(node_id, certificates)) for node_id in (1, 2)]
        await until(lambda: all(len(app.runtime.leading) == 3 for app in apps))
        login: dict[str, Any] = {
            "bootstrap_servers": ",".join(app.bootstrap_servers for app in apps),
            "security_protocol": "SASL_SSL",
            "ssl_truststore_location": str(certificates.authority.location),
            "ssl_keystore_location": str(certificates.client.keystore),
            "sasl_username": "alice",
            "sasl_password": "alice-secret",
        }
        async with Producer(**login, transactional_id="shop-1", linger_ms=0) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                for partition in range(PARTITIONS):
                    await producer.send(TOPIC, f"{partition}", partition=partition)
        reading: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        found: set[bytes] = set()
        async with Consumer(**login, **reading) as consumer:
            await consumer.assign([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)])
            async with asyncio.timeout(90):
                while len(found) < PARTITIONS:
                    found |= {record.value for record in await consumer.poll(200)}
        leaders = {app.runtime.node.leaders[partition] for app in apps for partition in app.runtime.leading}
        assert len(leaders) == 2


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"emulator_peers_username": "mallory"},
            "expected its password in the users file",
        ),
        ({"ssl_truststore_location": "/no/such/file"}, "ssl.truststore.location /no/such/file"),
    ],
)
async def test_a_login_that_cannot_work_is_refused_at_the_start(
    more: dict[str, Any], problem: str, certificates: Certificates
) -> None:
    with pytest.raises(StartFailed, match=problem):
        App(Options(settings=secured(1, certificates, **more), port=0, store="postgresql://u:p@127.0.0.1:1/d"))
