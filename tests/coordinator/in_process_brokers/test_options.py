"""What several brokers in one process can be started with, and the address that each of them advertises."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.config import Settings, settings_from
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.options import Options, StartFailed


@pytest.mark.parametrize(
    ("pairs", "environment", "problem"),
    [
        (["broker.id=0"], {}, r"--brokers 3 with broker\.id=0: expected one of the two; .* have the ids 1 to 3"),
        (["broker.id=1"], {}, r"broker\.id=1"),
        ([], {"REJOIN_BROKER_ID": "7"}, r"broker\.id=7"),
        (["listeners=PLAINTEXT://127.0.0.1:1"], {}, "with listeners: expected --kafka-port"),
        (
            ["advertised.listeners=PLAINTEXT://proxy:65534"],
            {},
            r"advertised\.listeners 65534 with --brokers 3: expected",
        ),
    ],
)
async def test_settings_of_one_broker_are_refused(pairs: list[str], environment: dict[str, str], problem: str) -> None:
    options = Options(settings=settings_from(pairs, environment), port=0, kafka_port=0)
    with pytest.raises(StartFailed, match=problem):
        BrokerCluster(options, 3)


@pytest.mark.parametrize(
    ("given", "host", "first"),
    [("PLAINTEXT://proxy:19092", "proxy", 19_092), ("PLAINTEXT://proxy:0", "proxy", None), ("", "127.0.0.1", None)],
)
async def test_ports_that_are_advertised_count_up(given: str, host: str, first: int | None) -> None:
    options: dict[str, Any] = {"port": 0, "kafka_port": 0, "settings": Settings(advertised_listeners=given)}
    async with BrokerCluster(Options(**options), 3) as cluster:
        shown = [(endpoint.host, endpoint.port) for endpoint in cluster.endpoints]
        bound = [app.bound_ports["PLAINTEXT"] for app in cluster.apps]
        assert shown == [(host, bound[at] if first is None else first + at) for at in range(3)]
