"""What `rejoin consume` says in the end: how much was read, and what kept it from reading."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rejoin.coordinator.testing import running_in_thread
from rejoin.coordinator.testing.blocking import BlockingGroupCoordinator


@pytest.fixture(scope="module")
def coordinator() -> Iterator[BlockingGroupCoordinator]:
    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with running_in_thread(topics={"orders": 3}, settings=settings) as started:
        yield BlockingGroupCoordinator(started)


def consumed(bootstrap: str, duration: str, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and log of a run."""
    command = [sys.executable, "-m", "rejoin", "consume", "--group", "g", "--bootstrap", bootstrap]
    done = subprocess.run(
        [*command, "--duration", duration, *options], capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


def test_the_last_line_counts_the_records_and_closing_asks_for_no_rejoin(
    coordinator: BlockingGroupCoordinator,
) -> None:
    for partition, records in ((1, 1), (2, 2)):
        coordinator.produce("orders", partition, records)
    code, log = consumed(coordinator.bootstrap_servers, "8s", "--topic", "orders")
    assert code == 0
    summary = log[-1]
    assert (summary["event"], summary["consumers"], summary["records"], summary["partitions"]) == ("summary", 1, 3, 2)
    assert [line["event"] for line in log[-3:]] == ["group_left", "consumer_closed", "summary"]


def test_a_topic_that_does_not_exist_is_named(coordinator: BlockingGroupCoordinator) -> None:
    code, log = consumed(coordinator.bootstrap_servers, "8s", "--topic", "nosuch")
    assert code == 0
    warned = [line for line in log if line["event"] == "topics_not_found"]
    assert [(line["level"], line["topics"]) for line in warned] == [
        ("warning", {"nosuch": "UNKNOWN_TOPIC_OR_PARTITION"})
    ]


def test_without_a_coordinator_it_fails_and_says_what_to_do(unused_tcp_port: int) -> None:
    server = f"http://127.0.0.1:{unused_tcp_port}"
    code, log = consumed(server, "1h", "--topic", "orders", "--wait", "1s")
    assert code == 1
    (advice,) = (line for line in log if line["event"] == "no_coordinator")
    assert re.fullmatch(
        rf"no coordinator at {server} \(FindCoordinator: {server}: cannot connect: .*\); "
        "rejoin serve starts one, --bootstrap-server names another address",
        advice["problem"],
    )
    problems = [line["problem"] for line in log if line["event"] == "coordinator_not_found"]
    assert problems[0].startswith(f"FindCoordinator: {server}: cannot connect: Connect call failed")
    assert "ssl" not in problems[0]
    assert "rejoin_requested" not in [line["event"] for line in log]


@pytest.mark.parametrize(
    ("server", "options", "advice"),
    [
        ("{http}", (), "write http://{http}"),
        ("http://{kafka}", (), "write {kafka}"),
        ("{kafka}", ("-c", "security.protocol=SSL"), "set security.protocol to PLAINTEXT or SASL_PLAINTEXT"),
    ],
)
def test_an_address_of_another_protocol_ends_it_at_the_first_connection(
    coordinator: BlockingGroupCoordinator, server: str, options: tuple[str, ...], advice: str
) -> None:
    """It would run for longer than this test may take."""
    places = {"http": coordinator.url.removeprefix("http://"), "kafka": coordinator.bootstrap_servers}
    code, log = consumed(server.format(**places), "1h", "--topic", "orders", *options)
    assert code == 1
    (stopped,) = (line for line in log if line["event"] == "consumer_stopped")
    assert stopped["error"] == "WrongProtocolError"
    assert stopped["problem"].endswith(f"; {advice.format(**places)}")
