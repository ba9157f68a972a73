"""Waits for a topic before the first record goes to it, and says soon why that takes long.

`Producer.send` waits for metadata as Java's does, and silently. A command has a user who looks at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rejoin.client.core import requests
from rejoin.client.core.errors import InvalidTopicError, KafkaTimeoutError, TopicAuthorizationError
from rejoin.client.producer_config import ProducerConfig
from rejoin.client.transports.addresses import open_transport
from rejoin.client.transports.base import Transport, TransportError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.registry import METADATA

CLIENT_ID: Final = "rejoin-produce"
NOTICE_SECONDS: Final = 2.0
"""After so long without an answer, a line on the standard error says so."""


class TopicLookup:
    """Finds how many partitions a topic has, over a connection of its own."""

    def __init__(self, topic: str, config: ProducerConfig, notify: Callable[[str], object]) -> None:
        self._topic = topic
        self._config = config
        self._notify = notify
        self._problem = f"no answer from {', '.join(config.bootstrap_servers)}"

    async def partitions(self) -> int:
        """Ask until the topic is there. Raises KafkaTimeoutError after ``max.block.ms``.

        Raises KafkaError at once where waiting would not help, as with an address that speaks the other protocol.
        """
        config = self._config
        transport = open_transport(
            config.bootstrap_servers,
            reconnect_backoff_ms=config.reconnect_backoff_ms,
            reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
            security=config,
        )
        notice = asyncio.get_running_loop().call_later(NOTICE_SECONDS, self._notify_of_waiting)
        try:
            async with asyncio.timeout(config.max_block_ms / 1_000):
                while True:
                    count = await self._ask(transport)
                    if count:
                        return count
                    await asyncio.sleep(config.retry_backoff_ms / 1_000)
        except TimeoutError:
            after = f"after {config.max_block_ms} ms (max.block.ms)"
            raise KafkaTimeoutError(f"topic {self._topic} not present in metadata {after}: {self._problem}") from None
        finally:
            notice.cancel()
            await transport.close()

    def _notify_of_waiting(self) -> None:
        longest = self._config.max_block_ms / 1_000
        waits = f"waiting for up to {longest:g} s (max.block.ms)"
        self._notify(f"topic {self._topic} not found yet: {self._problem}; {waits}")

    async def _ask(self, transport: Transport) -> int | None:
        """The number of partitions, or None after a problem that may pass."""
        version = min(transport.versions.get(METADATA, METADATA.default_version), METADATA.default_version)
        request = requests.metadata([self._topic], create=True, version=version)
        try:
            response = await transport.send(
                None, request, version, timeout_ms=self._config.request_timeout_ms, client_id=CLIENT_ID
            )
        except TransportError as problem:
            self._problem = problem.detail
            return None
        assert isinstance(response, MetadataResponse)
        return self._read(response)

    def _read(self, response: MetadataResponse) -> int | None:
        for topic in response.topics:
            match topic.error_code:
                case ErrorCode.NONE:
                    return len(topic.partitions)
                case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise TopicAuthorizationError([self._topic])
                case ErrorCode.INVALID_TOPIC_EXCEPTION:
                    raise InvalidTopicError(f"invalid topic: {self._topic!r}")
                case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self._problem = "it does not exist (UNKNOWN_TOPIC_OR_PARTITION)"
                case error:
                    self._problem = error.name
        return None
