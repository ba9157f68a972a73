"""Files of logs as they are: many layouts, local times, stack traces, and what becomes of files on disks."""

from __future__ import annotations

import io
from zoneinfo import ZoneInfo

import pytest

from rejoin.pipeline.reading.broker_logs.lines import BrokenLine, Lines, Record
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.reading.limits import LONGEST

AT = 1_704_110_400_123
"""2024-01-01 12:00:00,123 UTC."""

FAILED = "[GroupCoordinator 1]: Member m in group g has failed, removing it from the group"
LOGGER = "kafka.coordinator.group.GroupCoordinator"


def records(*lines: str | bytes, zone: str = "UTC") -> list[Record | BrokenLine]:
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    return list(Lines(ZoneInfo(zone)).records(io.BytesIO(b"\n".join(raw) + b"\n")))


def statements(*lines: str | bytes, node: str = "?") -> tuple[list[Statement], list[BrokenLine], LogFile]:
    log = LogFile("server.log", node)
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    found = list(log.statements(io.BytesIO(b"\n".join(raw) + b"\n")))
    return (
        [each for each in found if isinstance(each, Statement)],
        [each for each in found if isinstance(each, BrokenLine)],
        log,
    )


@pytest.mark.parametrize(
    "line",
    [
        f"[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})",
        f"[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER}:66)",
        f"2024-01-01 12:00:00,123 INFO {FAILED} ({LOGGER})",
        f"2024-01-01 12:00:00,123 INFO {FAILED} ({LOGGER}) [group-metadata-manager-0]",
        f"2024-01-01T12:00:00.123Z INFO {FAILED} ({LOGGER})",
        f"2024-01-01T13:00:00.123+01:00 INFO {FAILED} ({LOGGER})",
        f"2024-01-01 12:00:00.123456 INFO {FAILED} ({LOGGER})",
        f"2024-01-01 12:00:00,123 [data-plane-kafka-request-handler-1] INFO {LOGGER} - {FAILED}",
        f"kafka_1  | [2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})",
        f"2024-01-01T12:00:01.5Z stdout F [2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})",
        f"\x1b[32m[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})\x1b[0m",
        f"[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})\r",
        f'{{"@timestamp":"2024-01-01T12:00:00.123Z","level":"INFO","logger_name":"{LOGGER}","message":"{FAILED}"}}',
        f'{{"timeMillis":{AT},"level":"INFO","loggerName":"{LOGGER}","message":"{FAILED}"}}',
        f'{{"instant":{{"epochSecond":1704110400,"nanoOfSecond":123000000}},"level":"INFO","loggerName":"{LOGGER}",'
        f'"message":"{FAILED}"}}',
        f'broker-1 | {{"time":"2024-01-01 12:00:00,123","severity":"info","logger":"{LOGGER}","msg":"{FAILED}"}}',
    ],
)
def test_every_layout_says_the_same(line: str) -> None:
    found, broken, _ = statements(line)
    assert broken == []
    assert [(statement.kind, statement.group, statement.at_ms, statement.node) for statement in found] == [
        ("failed", "g", AT, "1")
    ]


def test_a_layout_without_loggers_is_read_by_the_prefix() -> None:
    found, broken, _ = statements(f"[2024-01-01 12:00:00,123] INFO {FAILED}")
    assert (len(found), broken) == (1, [])


def test_a_stack_trace_belongs_to_its_record() -> None:
    found = records(
        f"[2024-01-01 12:00:00,123] ERROR [GroupCoordinator 1]: Failed to invoke join callback ({LOGGER})",
        "java.lang.IllegalStateException: it was not to be",
        "\tat kafka.coordinator.group.GroupCoordinator.onJoin(GroupCoordinator.scala:1)",
        "Caused by: java.io.IOException: disk",
        "\t... 3 more",
        f"[2024-01-01 12:00:00,124] INFO {FAILED} ({LOGGER})",
    )
    assert [len(each.more) if isinstance(each, Record) else each for each in found] == [4, 0]


def test_a_wrapped_message_is_put_together() -> None:
    found, broken, _ = statements(
        "[2024-01-01 12:00:00,123] INFO [GroupCoordinator 1]: Preparing to rebalance group g in state",
        f"PreparingRebalance with old generation 1 (__consumer_offsets-3) (reason: removing member m on LeaveGroup) "
        f"({LOGGER})",
    )
    assert broken == []
    assert [(statement.kind, statement.values["cause"]) for statement in found] == [("preparing", "leave")]


def test_other_software_is_counted_and_not_broken() -> None:
    found, broken, log = statements(
        '10.0.0.1 - - [01/Jan/2024:12:00:00 +0000] "GET / HTTP/1.1" 200 5',
        "Jan  1 12:00:00 host sshd[1]: Accepted publickey",
        "[2024-01-01 12:00:00,000] INFO [Log partition=t-0, dir=/data] Rolled new log segment (kafka.log.Log)",
        "[2024-01-01 12:00:00,001] INFO KafkaConfig values:",
        "\tgroup.max.size = 5",
        '{"@timestamp":"2024-01-01T12:00:00Z","message":"a web server"}',
        "",
        f"[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})",
    )
    assert (len(found), broken) == (1, [])
    counted = log.counts.statements + log.counts.other + log.read.continuations + log.read.unrelated + log.read.blank
    assert counted == log.read.lines == 8


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        (["[2024-01-01 12:00:00,123] INFO [GroupCoordinator 1]: Preparing to reb"], 1, "no known version prints"),
        (
            [
                f"[2024-01-01 12:00:00,122] INFO {FAILED} ({LOGGER})",
                "[2024-01-01 12:00:00,123] INFO [GroupCoordinator 1]: Stabilized group g generation 1",
                f"[2024-01-01 12:00:00,124] INFO {FAILED} ({LOGGER})",
            ],
            2,
            "the end of the line is missing",
        ),
        (["rdinator 1]: Preparing to rebalance group g with old generation 1 (x)"], 1, "the beginning of the line"),
        (
            [
                f"[2024-01-01 12:00:00,122] INFO {FAILED} ({LOGGER})",
                "or 1]: Stabilized group g generation 1 (__consumer_offsets-3) with 1 members",
            ],
            2,
            "the beginning of the line",
        ),
        (["[2024-01-01 12:00:00,123] INF [GroupCoordinator 1]: Stabilized group"], 1, "no level"),
        ([f"[2024-02-31 12:00:00,123] INFO {FAILED} ({LOGGER})"], 1, "no such time"),
        ([f"[2024-01-01 12:61:00,123] INFO {FAILED} ({LOGGER})"], 1, "no such time"),
        (["\x00\x00\x00\x00"], 1, "no text"),
        (['{"message":"[GroupCoordinator 1]: Stabilized gro'], 1, "not JSON"),
        (['{"message":"[GroupCoordinator 1]: Stabilized group g generation 1"}'], 1, "without a time"),
    ],
)
def test_a_broken_line_is_reported_with_its_number(lines: list[str], line: int, reason: str) -> None:
    _, broken, log = statements(*lines)
    assert [each.line for each in broken] == [line]
    assert reason in broken[0].reason
    assert log.counts.broken == 1


def test_a_file_may_end_in_the_midst_of_a_line_or_be_empty() -> None:
    log = LogFile("server.log", "1")
    text = (
        f"[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})\n[2024-01-01 12:00:01,000] INFO [GroupCoordinator 1]: Mem"
    )
    found = list(log.statements(io.BytesIO(text.encode())))
    assert sorted(type(each).__name__ for each in found) == ["BrokenLine", "Statement"]
    assert statements("")[:2] == ([], [])
    assert list(LogFile("empty.log", "1").statements(io.BytesIO(b""))) == []


def test_bytes_that_are_no_utf8_are_read_all_the_same() -> None:
    latin = f"[2024-01-01 12:00:00,123] INFO {FAILED.replace('group g', 'group bücher')} ({LOGGER})".encode("latin-1")
    found, broken, log = statements(latin)
    assert ([statement.group for statement in found], broken, log.read.not_utf8) == (["bücher"], [], 1)


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    endless = b"x" * (2 * LONGEST + 5)
    _, broken, _ = statements(endless, f"[2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})")
    assert [(each.line, each.reason) for each in broken] == [(1, f"longer than {LONGEST} bytes")]


def test_a_debugging_broker_says_more_than_is_known() -> None:
    found, broken, log = statements(
        f"[2024-01-01 12:00:00,123] DEBUG [GroupCoordinator 1]: Something about g ({LOGGER})"
    )
    assert (found, broken, log.counts.other) == ([], [], 1)


def test_several_brokers_in_one_file_are_known_by_their_containers() -> None:
    found, _, _ = statements(
        f"kafka-1  | [2024-01-01 12:00:00,123] INFO {FAILED} ({LOGGER})",
        f"kafka-2  | [2024-01-01 12:00:00,123] INFO {FAILED.replace('Coordinator 1', 'Coordinator 2')} ({LOGGER})",
        "kafka-1  | [2024-01-01 12:00:01,123] INFO Loaded member x (kafka.coordinator.group.GroupMetadata$)",
        "kafka-1  | [2024-01-01 12:00:01,123] INFO Group g transitioned to Dead in generation 2 "
        "(kafka.coordinator.group.GroupMetadata)",
    )
    assert [statement.node for statement in found] == ["1", "2", "1"]


# --- clocks


def lines_at(*times: str) -> list[str]:
    return [
        f"[{time}] INFO {FAILED.replace('Member m', f'Member m{index}')} ({LOGGER})" for index, time in enumerate(times)
    ]


def test_local_times_are_of_the_zone_that_is_given() -> None:
    (found,) = records(*lines_at("2024-07-01 14:00:00,000"), zone="Europe/Berlin")
    assert isinstance(found, Record)
    assert found.at_ms == 1_719_835_200_000


def test_the_hour_that_passes_twice_passes_twice() -> None:
    times = ["2024-10-27 02:30:00,000", "2024-10-27 02:59:00,000", "2024-10-27 02:10:00,000", "2024-10-27 03:01:00,000"]
    found = records(*lines_at(*times), zone="Europe/Berlin")
    assert [each.at_ms for each in found if isinstance(each, Record)] == [
        1_729_989_000_000,
        1_729_990_740_000,
        1_729_991_400_000,
        1_729_994_460_000,
    ]


def order(*times: str) -> list[int]:
    """Places in time, as ms since the first."""
    found, _, _ = statements(*lines_at(*times))
    return [statement.order_ms - found[0].order_ms for statement in found]


def test_a_clock_that_is_set_back_does_not_turn_the_order_round() -> None:
    day = "2024-01-01"
    times = [f"{day} 12:00:0{second},000" for second in range(5)] + [
        f"{day} 11:00:0{second},000" for second in range(5)
    ]
    found, _, log = statements(*lines_at(*times))
    places = [statement.order_ms for statement in found]
    assert places == sorted(places)
    assert places[-1] - places[5] == 4_000
    assert log.counts.clock_set_back == 1


def test_lines_that_a_shipper_has_shuffled_are_put_back() -> None:
    assert order(
        "2024-01-01 12:00:00,000",
        "2024-01-01 12:00:10,000",
        "2024-01-01 12:00:05,000",
        "2024-01-01 12:00:11,000",
        "2024-01-01 12:00:12,000",
    ) == [0, 10_000, 5_000, 11_000, 12_000]


def test_threads_that_overtake_each_other_keep_the_order_of_the_file() -> None:
    assert order("2024-01-01 12:00:00,003", "2024-01-01 12:00:00,001", "2024-01-01 12:00:00,004") == [0, 0, 1]


def test_one_time_far_ahead_is_not_believed() -> None:
    times = ["2024-01-01 12:00:00,000", "2094-01-01 12:00:00,000", *(f"2024-01-01 12:00:0{n},000" for n in range(1, 6))]
    assert order(*times) == [0, 0, 1_000, 2_000, 3_000, 4_000, 5_000]
