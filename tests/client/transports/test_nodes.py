"""Nodes that cannot be reached: a program that waits for one is warned."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator

import pytest

from rejoin.client.consumer import Consumer
from rejoin.client.producer import Producer
from rejoin.client.transports.nodes import LOGGER, NodeState, ReconnectBackoff


@pytest.fixture(autouse=True)
def warnings(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What clients say; the command for consumers turns it off."""
    monkeypatch.setattr(LOGGER, "disabled", False)
    caplog.set_level(logging.WARNING, LOGGER.name)
    return caplog


@pytest.fixture
def unused_server() -> Iterator[str]:
    """An address at which nothing listens, nor will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_node_that_has_never_answered_is_warned_of_now_and_then(warnings: pytest.LogCaptureFixture) -> None:
    node = NodeState()
    for _ in range(20):
        node.fail(ReconnectBackoff.of_ms(1, 1), "refused")
    assert [message.split("(")[1].split(";")[0] for message in warnings.messages] == [
        f"tried {times} times" for times in (4, 8, 16)
    ]
    node.succeed()
    for _ in range(20):
        node.fail(ReconnectBackoff.of_ms(1, 1), "refused")
    assert len(warnings.messages) == 3


@pytest.mark.parametrize("scheme", ["", "http://"])
async def test_a_consumer_without_a_server_says_so(
    unused_server: str, scheme: str, warnings: pytest.LogCaptureFixture
) -> None:
    server = scheme + unused_server
    async with asyncio.timeout(20), Consumer("orders", bootstrap_servers=server, group_id="g") as consumer:
        while not warnings.messages:
            await consumer.poll(50)
    assert unused_server in warnings.messages[0]
    assert "rejoin serve starts a server" in warnings.messages[0]


async def test_a_producer_without_a_server_says_so(unused_server: str, warnings: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(20):
        producer = Producer(bootstrap_servers=unused_server)
        sending = asyncio.ensure_future(producer.send_and_wait("orders", b"a"))
        while not warnings.messages:  # noqa: ASYNC110 - until the client has tried some times
            await asyncio.sleep(0.01)
        await producer.close(0)
        await asyncio.gather(sending, return_exceptions=True)
    assert unused_server in warnings.messages[0]
