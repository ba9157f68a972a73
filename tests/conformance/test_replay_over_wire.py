"""The recordings over connections of Kafka's own protocol: every field of every answer, as through the core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.replay.replay import BrokerDriver, Emulator
from rejoin.conform.comparison.compare import RecordedExchange
from rejoin.protocol.message import Request, Response
from tests.conformance.golden import PATHS, differing, name_of, recording, unexplained
from tests.conformance.wire import WireExchange
from tests.suite.cases import for_each


class OverWire(Emulator):
    """Each request comes in by a connection of its own, and its response leaves by that."""

    def hand_in(self, broker: BrokerDriver, asked: RecordedExchange, request: Request) -> None:
        exchange = self._exchanges[asked.number] = WireExchange(request, asked.version, asked.client)
        broker.request(asked, exchange.request, exchange.context)

    def show(self, asked: RecordedExchange, response: Response) -> dict[str, Any]:
        return self._exchanges[asked.number].receive(response)

    def play(self) -> dict[int, Any]:
        self._exchanges: dict[int, WireExchange] = {}
        return super().play()


@for_each("path", PATHS, ids=name_of, parts=4)
def test_the_listener_answers_as_kafka_did(path: Path) -> None:
    played = recording(path)
    assert unexplained(differing(played, OverWire(played).play())) == []
