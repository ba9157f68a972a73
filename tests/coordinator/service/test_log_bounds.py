"""What clients can make a node log is bounded, over all addresses and for every event."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from rejoin.coordinator.service import logs
from rejoin.coordinator.service.log_lines import log_bounds
from rejoin.coordinator.service.logs import LoggedReasons
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.publisher import Publisher
from rejoin.journal.events.coordinator import GroupCreated

LONG = "x" * 30_000


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(logs, "LineBudget", lambda: log_bounds.LineBudget(clock=clock))
    return clock


@pytest.fixture
def written(clock: Time) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    logs.configure("critical")


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_refusals_of_many_addresses_are_bounded_together(clock: Time, written: io.StringIO) -> None:
    logged, log = LoggedReasons("m"), structlog.get_logger("coordinator")
    count = 0
    for _ in range(10):
        for name in range(100):
            for address in range(7):
                count += 1
                reason = logged.to_log(f"client-{address}-{name}", "a request of key 99", "", f"127.0.0.{address}")
                if reason is not None:
                    log.warning("kafka_request_refused", client_id=f"client-{name}", reason=reason)
    found = lines(written)
    assert count > len(found) == log_bounds.MOST_LINES + 1
    assert found[-1]["event"] == log_bounds.LEFT_OUT
    # Other levels have lines of their own, and the next minute says what was left out.
    log.error("core_failed")
    clock.now = 61.0
    log.warning("kafka_request_refused")
    events = [(line["event"], line.get("lines")) for line in lines(written)[len(found) :]]
    left_out = count - log_bounds.MOST_LINES
    assert events == [("core_failed", None), (log_bounds.LEFT_OUT, left_out), ("kafka_request_refused", None)]


def test_events_are_bounded_as_refusals_are(clock: Time, written: io.StringIO) -> None:
    publisher = Publisher("r", "n", Metrics())
    for number in range(log_bounds.MOST_LINES + 500):
        publisher.publish(GroupCreated(group_id=f"g{number}", offsets_partition=0, simple=False), 0)
    assert len(lines(written)) == log_bounds.MOST_LINES + 1


@pytest.mark.parametrize("value", [LONG, [LONG] * 3, {"a": LONG}, {LONG: 1}, [{"a": [LONG]}], (LONG,)])
def test_texts_are_cut_wherever_they_stand(written: io.StringIO, value: object) -> None:
    structlog.get_logger("coordinator").info("some_event", about=value, reason=LONG)
    assert len(written.getvalue()) < 4_000
    assert "30,000 characters" in written.getvalue()


def test_the_trace_of_a_failure_is_not_cut(written: io.StringIO) -> None:
    try:
        raise ValueError(LONG)
    except ValueError:
        structlog.get_logger("coordinator").error("core_failed", exc_info=True)
    assert LONG in written.getvalue()
