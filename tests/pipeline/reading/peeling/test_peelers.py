"""Wrappers come off, one at a time and several around each other, and what they say is kept."""

from __future__ import annotations

import inspect
import itertools

import pytest

from rejoin.pipeline.reading.peeling import prefixes, structured
from rejoin.pipeline.reading.peeling.peel import CSV, PEELERS, Peels
from rejoin.pipeline.reading.peeling.peeled import Peeled
from tests.pipeline.reading.peeling.wrappers import WRAPPERS

LINES = (
    "2025-03-09 07:05:03,250 INFO [billing-1] o.a.k.c.c.i.ConsumerCoordinator - [Consumer clientId=b, groupId=bills] x",
    "[2025-03-09 07:05:03,250] INFO [GroupCoordinator 4]: Stabilized group bills generation 8 (kafka.coordinator)",
    '%7|1741503903.250|JOIN|b#consumer-3| [thrd:main]: Group "bills": join with 1 subscribed topic(s)',
    '{"level":"WARN","timestamp":"2025-03-09T07:05:03.250Z","logger":"kafkajs","message":"[Runner] x","groupId":"b"}',
    "[sarama] 2025/03/09 07:05:03 consumer/broker/4 closed dead subscription to bills/0",
)

MORE = {
    'time="2025-03-09T07:05:03.250Z" level=info msg="joining group" group=bills': "joining group",
    'INFO [Runner] The group is rebalancing, re-joining {"timestamp":"2025-03-09T07:05:03.250Z","groupId":"bills"}': (
        "INFO [Runner] The group is rebalancing, re-joining"
    ),
    "billing-6d4c7-zq8lm worker 2025-03-09 07:05:03,250 INFO x": "2025-03-09 07:05:03,250 INFO x",
    "- `2025-03-09 07:05:03,250 INFO x`": "2025-03-09 07:05:03,250 INFO x",
    "``2025-03-09 07:05:03,250 INFO x``": "2025-03-09 07:05:03,250 INFO x",
}
"""Lines of single tools, each with the text around the line."""


def inside(text: str, without: tuple[str, ...] = ()) -> Peeled:
    return Peels(without).peel(text)


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("line", LINES, ids=["java", "broker", "librdkafka", "kafkajs", "sarama"])
def test_a_wrapper_comes_off_and_the_line_is_left(name: str, line: str) -> None:
    peels = Peels()
    for nth in range(3):
        assert peels.peel(WRAPPERS[name](line, nth)).text.strip() == inside(line).text


@pytest.mark.parametrize("line", LINES, ids=["java", "broker", "librdkafka", "kafkajs", "sarama"])
def test_two_wrappers_come_off_whichever_is_outside(line: str) -> None:
    left: dict[str, str] = {}
    for outer, inner in itertools.permutations(WRAPPERS, 2):
        if {outer, inner} & {"HTML", "CRLF"} or (outer, inner) in NEVER:
            continue
        text = inside(WRAPPERS[outer](WRAPPERS[inner](line, 1), 1)).text.strip()
        if text != inside(line).text:
            left[f"{outer} around {inner}"] = text[:60]
    assert not left


NEVER = {
    # A number at the beginning of an indented line, or before another number, may be anything.
    ("grep -n", "grep -n"),
    ("grep over files", "grep -n"),
    ("an indent", "grep -n"),
    ("an indent", "grep over files"),
}


@pytest.mark.parametrize("name", [CSV, *(name for name, _ in PEELERS)])
def test_without_a_peeler_something_stays_around_a_line(name: str) -> None:
    """So the tests above fail where any peeler is taken away."""
    examples = [wrap(line, 1) for wrap in WRAPPERS.values() for line in (*LINES, *MORE)]
    assert any(inside(each).text != inside(each, (name,)).text for each in examples)


@pytest.mark.parametrize(("line", "text"), MORE.items())
def test_what_is_around_a_few_layouts_comes_off(line: str, text: str) -> None:
    assert inside(line).text == text


def test_all_peelers_are_in_the_registry() -> None:
    written = {
        function
        for module in (prefixes, structured)
        for function in vars(module).values()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not function.__name__.startswith("_")
        and list(inspect.signature(function).parameters) == ["line"]
        and "Peeled" in str(inspect.signature(function).return_annotation)
    }
    assert written == {peeler for _, peeler in PEELERS}


def test_the_origin_names_pod_and_container_and_the_time_is_kept_for_lines_without_one() -> None:
    line = inside("[pod/billing-6d4c7-zq8lm/worker] 2025-03-09T07:05:03.250000000Z (Re-)joining group bills")
    assert line.origin == ("pod/billing-6d4c7-zq8lm/worker",)
    assert line.text == "(Re-)joining group bills"
    assert line.stamp is not None
    assert (line.stamp.date, line.stamp.time, line.stamp.zone) == ("2025-03-09", "07:05:03", "Z")


@pytest.mark.parametrize(
    "line",
    [
        "10:55:30.336 [main] INFO  Consumer - x",
        "2025-03-09 07:05:03.250 | INFO     | aiokafka.consumer:_perform:120 - (Re-)joining group g",
        "[2025-03-09 07:05:03,250] [11] [INFO] (Re-)joining group g",
        "\tat org.apache.kafka.clients.consumer.KafkaConsumer.poll(KafkaConsumer.java:1178)",
        "\tclient.id = consumer-bills-1",
        '{"orders": [1, 2]}',
        "Assignment: {consumer-1=Assignment(partitions=[orders-0])}",
        "12 partitions",
        "a-b",
        "",
    ],
)
def test_a_line_without_a_wrapper_is_left_as_it_is(line: str) -> None:
    assert inside(line).text == line
    assert inside(line).stamp is None


def test_a_csv_whose_header_names_the_message_reads_that_cell() -> None:
    peels = Peels()
    assert peels.peel("Date,Service,Message,Tags").text == ""
    row = peels.peel('"2025-03-09T07:05:03.250Z","billing","(Re-)joining group b","a,much,longer,cell,than,all,others"')
    assert (row.text, row.origin) == ("(Re-)joining group b", ("billing/a,much,longer,cell,than,all,others",))


def test_cells_beside_the_message_are_fields_of_the_record() -> None:
    """As in the table that Splunk exports of structured logs."""
    peels = Peels()
    assert peels.peel('"_time",host,level,msg,groupId,err').text == ""
    row = peels.peel('"2025-03-09T07:05:03.250+0000",app-1,info,"heartbeat errored",bills,""')
    assert (row.text, row.level, row.fields["groupId"], "err" in row.fields) == (
        *("heartbeat errored", "info"),
        *("bills", False),
    )


def test_lines_of_a_message_within_json_are_kept() -> None:
    line = inside('{"message": "first\\n\\tat second\\n\\tat third", "@timestamp": "2025-03-09T07:05:03Z"}')
    assert (line.text, line.more) == ("first", ("\tat second", "\tat third"))


def test_a_line_costs_no_more_than_its_length() -> None:
    for text in (
        '"' + "a" * 200_000 + '","b"',
        '{"a":' * 20_000,
        "[" * 50_000,
        "> " * 50_000,
        '"' * 50_000,
        "a/" * 50_000,
        "1:" * 50_000,
    ):
        assert len(inside(text).text) <= len(text)
