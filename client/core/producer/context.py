"""The context of every function of the producer's core: the step, and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rejoin.client.core.base_context import BaseContext
from rejoin.client.core.effects import Endpoint, Send
from rejoin.client.core.producer.effects import ProducerEffect
from rejoin.client.core.producer.state import ProducerCoreState, SentRequest
from rejoin.client.producer_config import ProducerConfig
from rejoin.protocol.message import Request
from rejoin.protocol.registry import ADD_PARTITIONS_TO_TXN, BY_REQUEST, END_TXN, PRODUCE, TXN_OFFSET_COMMIT, Api
from rejoin.protocol.wire.compression import CompressionType

_LAST_VERSIONS: Final[Mapping[Api, int]] = {
    # Later versions name topics by their ids only.
    PRODUCE: 12,
    TXN_OFFSET_COMMIT: 5,
    # Later versions are for brokers.
    ADD_PARTITIONS_TO_TXN: 3,
}

_LAST_WITHOUT_EPOCH_BUMPS: Final[Mapping[Api, int]] = {PRODUCE: 11, TXN_OFFSET_COMMIT: 4, END_TXN: 4}
"""Later versions are for transaction.version 2 (KIP-890)."""


class ProducerContext(BaseContext[ProducerEffect]):
    """A step of a producer."""

    __slots__ = ("codec", "config", "delivery_timeout_ms", "most_bytes")

    def __init__(self, config: ProducerConfig, random: Callable[[], float], versions: Mapping[Api, int]) -> None:
        super().__init__(config.retry_backoff_ms, config.retry_backoff_max_ms, random, versions)
        self.config = config
        self.codec = CompressionType[config.compression_type.upper()]
        self.delivery_timeout_ms = config.effective_delivery_timeout_ms
        self.most_bytes = min(config.max_request_size, config.buffer_memory)

    def version(self, api: Api) -> int:
        spoken = super().version(api)
        return min(spoken, _LAST_VERSIONS.get(api, spoken))

    def send(self, state: ProducerCoreState, request: Request, sent: SentRequest, to: Endpoint | None = None) -> int:
        """Send a request to a node, or to any (None), and return its id."""
        api = BY_REQUEST[type(request)]
        state.last_request_id = request_id = state.last_request_id + 1
        state.requests[request_id] = sent
        version = self.version(api)
        if state.transaction is not None and not state.transaction.bumps_epochs:
            version = min(version, _LAST_WITHOUT_EPOCH_BUMPS.get(api, version))
        self.emit(Send(request_id, to, request, version, self.config.request_timeout_ms))
        return request_id
