"""The layouts in which clients' loggers write: each is read, and what is of no known layout is reported."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from rejoin.pipeline.reading.limits import LONGEST
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.vocabulary import instant_of_line
from tests.pipeline.reading.client_logs.logs import GENERATION, java, kinds, read

JOINED = java(f"Successfully joined group with generation {GENERATION}")
AT_MS = 1_700_000_000_123
IN_UTC = "2023-11-14 22:13:20"
LOGGER = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


@pytest.mark.parametrize(
    "line",
    [
        f"[{IN_UTC},123] INFO {JOINED} ({LOGGER})",
        f"[{IN_UTC},123] INFO [orders-sink|task-0] {JOINED} ({LOGGER}:666)",
        f"{IN_UTC}.123 [main] INFO  {LOGGER} - {JOINED}",
        f"2023-11-14T22:13:20.123Z  INFO 4711 --- [orders] [       main] o.a.k.c.c.i.ConsumerCoordinator : {JOINED}",
        f"2023-11-14T23:13:20.123+01:00  INFO 4711 --- [main] o.a.k.c.c.i.ConsumerCoordinator : {JOINED}",
        f"orders-1  | {IN_UTC}.123 INFO {JOINED}",
        f"2023-11-14T22:13:21.000000000Z stdout F {IN_UTC},123 INFO {JOINED}",
        '{"@timestamp":"2023-11-14T22:13:20.123Z","level":"INFO","logger_name":"'
        + LOGGER
        + f'","message":"{JOINED}"}}',
        f'{{"instant":{{"epochSecond":1700000000,"nanoOfSecond":123000000}},"loggerName":"x","message":"{JOINED}"}}',
    ],
)
def test_java_is_read_in_every_layout(line: str) -> None:
    statements, broken = read(line)
    assert not broken
    (joined,) = statements
    assert (joined.kind, joined.at_ms, joined.group) == ("generation_joined", AT_MS, "orders")
    assert (joined.values["client_id"], joined.values["generation"]) == ("orders-1", 7)


@pytest.mark.parametrize(
    "layout",
    [
        "{date},123 INFO {logger}: {text}",
        "{date},123 - {logger} - INFO - {text}",
        "{date},123 [INFO] {logger}: {text}",
        "INFO {date},123 {logger} {text}",
        '{{"asctime": "{date},123", "levelname": "INFO", "name": "{logger}", "message": "{text}"}}',
    ],
)
def test_python_is_read_in_the_layouts_that_people_give_it(layout: str) -> None:
    member = "orders-1-0b6ae9a5-6a36-4f1d-9d0c-4ac1b2f3c111"
    text = f"Joined group 'orders' (generation 7) with member_id {member}"
    line = layout.format(date=IN_UTC, logger="aiokafka.consumer.group_coordinator", text=text)
    (joined,) = read(line)[0]
    assert (joined.kind, joined.at_ms, joined.group) == ("generation_joined", AT_MS, "orders")
    assert joined.values["client_id"] == "orders-1"


LATE_POLL = (
    "Application maximum poll interval (300000ms) exceeded by 88ms (adjust max.poll.interval.ms for long-running "
    "message processing): leaving group"
)


@pytest.mark.parametrize(
    "layout",
    [
        "%4|1700000000.123|MAXPOLL|orders-1#consumer-1| [thrd:{thread}]: {text}",
        "{date},123 WARNING consumer MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
        "{date},123 WARNING [consumer] MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
        "{date},123 [WARNING] [app.consumer] MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
        "{date},123 WARNING [MainThread] [consumer] MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
        "{date},123 WARNING [consumer:42]: MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
        "{date},123 - consumer - WARNING - MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
        "WARNING {date},123 [consumer] MAXPOLL [orders-1#consumer-1] [thrd:{thread}]: {text}",
    ],
)
@pytest.mark.parametrize("thread", ["main", "[::1]:9092/1"])
def test_librdkafka_is_read_from_standard_error_and_through_pythons_logger(layout: str, thread: str) -> None:
    statements, broken = read(layout.format(date=IN_UTC, thread=thread, text=LATE_POLL))
    assert not broken
    (late,) = statements
    assert (late.kind, late.at_ms, late.group) == ("poll_timeout_exceeded", AT_MS, None)
    assert (late.values["client_id"], late.values["rebalance_timeout_ms"]) == ("orders-1", 300_000)


def test_a_text_of_librdkafka_is_enough_however_its_wrapper_signs_it() -> None:
    (late,), broken = read(f"{IN_UTC},123 maxpoll (orders-1#consumer-1] {LATE_POLL}")
    assert (late.kind, late.values["client_id"], late.values["rebalance_timeout_ms"], broken) == (
        *("poll_timeout_exceeded", "orders-1", 300_000),
        [],
    )


def test_a_line_that_librdkafka_signed_and_no_version_prints_is_reported() -> None:
    statements, broken = read(f"{IN_UTC},123 maxpoll (orders-1#consumer-1] Application polls")
    assert not statements
    (line,) = broken
    assert "no known version prints" in line.reason


def test_settings_below_each_other_belong_to_the_line_before_them() -> None:
    statements, broken = read(
        f"[{IN_UTC},123] INFO ConsumerConfig values: ",
        "\tclient.id = orders-1",
        "\tgroup.id = orders",
        "\tgroup.instance.id = null",
        "\tmax.poll.interval.ms = 300000",
        "\tsession.timeout.ms = 45000",
        "",
        " (org.apache.kafka.clients.consumer.ConsumerConfig)",
        f"[{IN_UTC},200] INFO {JOINED}",
    )
    assert not broken
    assert kinds(statements) == ["consumer_started", "generation_joined"]
    assert [statements[1].values[name] for name in ("session_timeout_ms", "rebalance_timeout_ms")] == [45_000, 300_000]


def test_two_clients_in_one_file_are_kept_apart() -> None:
    statements, _ = read(
        f"[{IN_UTC},123] INFO {java('(Re-)joining group')}",
        f"{IN_UTC},124 INFO kafka.coordinator: (Re-)joining group payments",
        f"[{IN_UTC},125] INFO {java('(Re-)joining group', client='audit', group='audits')}",
        "%4|1700000000.126|SESSTMOUT|billing#consumer-1| [thrd:main]: Consumer group session timed out (in join-state "
        "steady) after 45003 ms without a successful response from the group coordinator (broker 1, last error was "
        "Success): revoking assignment and rejoining group",
    )
    found = {(each.values["family"], each.group, each.values["client_id"]) for each in statements}
    assert found == {
        ("java", "orders", "orders-1"),
        ("java", "audits", "audit"),
        ("kafka-python", "payments", None),
        ("librdkafka", None, "billing"),
    }


def test_half_lines_and_lines_that_are_too_long_are_reported_and_all_others_read() -> None:
    statements, broken = read(
        f"[{IN_UTC},123] INFO {JOINED}",
        f"[{IN_UTC},124] INFO [Consumer clientId=orders-1, groupId=orders] Successfully joined group with gen",
        '{"@timestamp":"2023-11-14T22:13:20.125Z","message":"[Consumer clientId=orders-1, gro',
        f"[2023-02-30 22:13:20,126] INFO {JOINED}",
        f"[{IN_UTC},127] INFO {java('(Re-)joining group')}",
    )
    assert kinds(statements) == ["generation_joined", "join_sent"]
    assert sorted((each.line, each.reason.split(":")[0]) for each in broken) == [
        (2, "a consumer's line about its group that no known version prints, or one that is cut short"),
        (3, "not JSON, though it begins like it"),
        (4, "no such time"),
    ]


def test_a_line_over_the_limit_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text(f"[{IN_UTC},123] INFO {JOINED}\n[{IN_UTC},124] INFO {'x' * LONGEST}\n[{IN_UTC},125] INFO {JOINED}\n")
    rows = list(read_file(str(log)))
    assert sorted(row["what"] for row in rows) == ["broken", "client", "client", "file"]
    assert any(f"longer than {LONGEST} bytes" in row["body"] for row in rows)


def test_a_file_of_no_known_layout_is_reported_with_its_first_line_and_what_is_known(
    tmp_path: Path,
) -> None:
    log = tmp_path / "consumer.log"
    log.write_text("\nthe group of orders rebalances\nand again\n")
    rows = list(read_file(str(log)))
    assert [row["what"] for row in rows] == ["broken", "file"]
    assert rows[0]["line"] == 2
    for words in (
        "layout is not known",
        "the group of orders rebalances",
        "Spring Boot",
        "librdkafka",
    ):
        assert words in rows[0]["body"]


def test_lines_without_any_time_keep_their_order(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    lines = ("(Re-)joining group orders", "done", "Leaving consumer group (orders).")
    log.write_text("".join(f"INFO:kafka.coordinator:{line}\n" for line in lines))
    clients = [orjson.loads(row["body"]) for row in read_file(str(log)) if row["what"] == "client"]
    assert [(each["kind"], each["group"], each["at_ms"]) for each in clients] == [
        ("join_sent", "orders", instant_of_line(1)),
        ("group_left", "orders", instant_of_line(3)),
    ]


def test_names_are_taken_as_they_are() -> None:
    statements, _ = read(f"[{IN_UTC},123] INFO {java('(Re-)joining group', client='=1+1', group='<b>x</b>')}")
    assert (statements[0].group, statements[0].values["client_id"]) == ("<b>x</b>", "=1+1")
