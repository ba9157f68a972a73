"""What a broker's log says beside its coordinator, and what connections in the request log say of processes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.reading.request_log import LoggedExchange
from tests.pipeline.reading.broker_logs.reconstructed import reconstruct

Event = dict[str, Any]


def line(second: float, message: str, logger: str = "kafka.server.BrokerServer") -> bytes:
    minute, rest = divmod(second, 60)
    return (
        f"[2026-03-03 10:{int(minute):02}:{rest:06.3f}".replace(".", ",").encode()
        + f"] INFO {message} ({logger})".encode()
    )


def events_of(lines: Iterable[bytes], asked: Iterable[SourcedExchange] = ()) -> list[Event]:
    read = [each for each in LogFile("server.log", "log").statements(lines) if isinstance(each, Statement)]
    return complete(list(reconstruct(read)), list(asked))


def named(events: Iterable[Event], *names: str) -> list[Event]:
    return [event for event in events if event["event"] in names]


def created(second: float, number: int, topic: str = "orders") -> bytes:
    return line(
        second, f"[Broker id=1] Creating new partition {topic}-{number} with topic id aBc.", "state.change.logger"
    )


def test_partitions_that_a_broker_creates_show_that_a_topic_grew() -> None:
    lines = [*(created(1, number) for number in (2, 0, 1, 3)), created(60, 5), created(60.1, 4)]
    [grown] = named(events_of(lines), "topic_grown")
    assert (grown["topic"], grown["previous_partition_count"], grown["partition_count"]) == ("orders", 4, 6)
    assert grown["confidence"] == "exact"


def test_other_words_for_the_same() -> None:
    expected = line(
        60,
        "[Broker id=1] Expected partition orders-4 with topic id aBc to exist, but it was missing. Creating...",
        "state.change.logger",
    )
    log = line(60, "Created log for partition orders-4 in /data/orders-4 with properties {}", "kafka.log.LogManager")
    for words in (expected, log):
        lines = [*(created(1, number) for number in range(4)), words]
        assert [each["partition_count"] for each in named(events_of(lines), "topic_grown")] == [5]


def test_a_broker_that_starts_again_creates_no_new_partitions() -> None:
    lines = [created(at, number) for at in (1, 100, 200) for number in range(4)]
    assert not named(events_of(lines), "topic_grown")


def test_a_log_that_begins_later_has_the_number_before_from_the_new_ones() -> None:
    [grown] = named(events_of([created(60, 13), created(60, 12)]), "topic_grown")
    assert (grown["previous_partition_count"], grown["partition_count"], grown["confidence"]) == (12, 14, "inferred")


def test_a_topic_s_name_may_end_in_a_number() -> None:
    lines = [created(at, number, "orders-7") for at, number in ((1, 0), (60, 1))]
    assert [each["topic"] for each in named(events_of(lines), "topic_grown")] == ["orders-7"]


def state(second: float, change: str) -> bytes:
    return line(second, f"[BrokerServer id=1] Transition from {change}")


def test_a_broker_s_stop_and_start_are_events() -> None:
    lines = [
        state(0, "STARTING to STARTED"),
        state(60, "STARTED to SHUTTING_DOWN"),
        state(100, "SHUTDOWN to STARTING"),
        state(104, "STARTING to STARTED"),
    ]
    found = named(events_of(lines), "broker_stopped", "broker_started")
    assert [(each["event"], each["at_ms"] % 600_000 // 1_000, each["confidence"]) for each in found] == [
        ("broker_started", 0, "exact"),
        ("broker_stopped", 60, "exact"),
        ("broker_started", 104, "exact"),
    ]


def test_a_broker_that_was_killed_stopped_after_its_last_line() -> None:
    lines = [
        state(0, "STARTING to STARTED"),
        line(50, "[GroupCoordinator id=1] Startup complete.", "kafka.coordinator.group.GroupCoordinator"),
        state(100, "SHUTDOWN to STARTING"),
    ]
    [stopped] = named(events_of(lines), "broker_stopped")
    assert (stopped["at_ms"] % 600_000, stopped["confidence"]) == (50_000, "inferred")


# -- requests


AT = 1_772_532_000_000
"""10:00 on 3 March 2026."""


def exchange(
    second: float, api: str, request: Event, response: Event, connection: str = "c1", number: int = 1, **more: Any
) -> SourcedExchange:
    at = AT + round(second * 1_000)
    error = {0: None, 25: "UNKNOWN_MEMBER_ID", 79: "MEMBER_ID_REQUIRED"}[response.get("errorCode", 0)]
    made = LoggedExchange(
        1, api, 5, number, "one", "/10.0.0.1", None, at, at, 1.0, 0.0, 0.0, 0.0, 0.0, "orders", error, request,
        response, **{"connection": connection, **more},
    )  # fmt: skip
    return SourcedExchange(made, "1", "kafka-request.log")


def join(second: float, member: str, generation: int, **more: Any) -> SourcedExchange:
    request = {"groupId": "orders", "memberId": member, "rebalanceTimeoutMs": 14_000, "protocols": []}
    response = {"errorCode": 0, "generationId": generation, "memberId": member, "leader": member, "members": []}
    return exchange(second, "JOIN_GROUP", request, response, **more)


def leave(second: float, member: str, reason: str | None = None, **more: Any) -> SourcedExchange:
    request = {"groupId": "orders", "members": [{"memberId": member, "groupInstanceId": None, "reason": reason}]}
    response = {"errorCode": 0, "members": [{"memberId": member, "errorCode": 0}]}
    return exchange(second, "LEAVE_GROUP", request, response, **more)


def test_a_member_that_left_and_joins_by_the_same_connection_had_not_polled_in_time() -> None:
    asked = [join(0, "a", 1), leave(20, "a", number=9), join(30, "b", 2, number=12)]
    [late] = named(events_of([], asked), "poll_timeout_exceeded")
    assert (late["member_id"], late["timeout_ms"], late["at_ms"], late["confidence"]) == (
        "a",
        14_000,
        AT + 20_000,
        "inferred",
    )


def test_a_member_that_was_closed_had() -> None:
    another = [join(0, "a", 1), leave(20, "a", number=9), join(30, "b", 2, connection="c2")]
    says_why = [join(0, "a", 1), leave(20, "a", "the consumer is being closed", number=9), join(30, "b", 2, number=12)]
    at_once = [join(0, "a", 1), leave(5, "a", number=9), join(6, "b", 2, number=12)]
    for asked in (another, says_why, at_once):
        assert not named(events_of([], asked), "poll_timeout_exceeded")


def test_a_process_that_went_on_is_known_by_its_connection_or_by_its_count_of_requests() -> None:
    def former(connection: str, number: int) -> Any:
        asked = [join(0, "a", 1, number=8), join(60, "b", 2, connection=connection, number=number)]
        [joined] = [each for each in named(events_of([], asked), "member_joined") if each["member_id"] == "b"]
        return joined.get("other_member_id")

    assert former("c1", 300) == "a"
    assert former("c2", 300) == "a", "it connected anew and went on counting"
    assert former("c2", 5) == "", "a new process begins to count"
    assert former("c2", 90_000) is None


def heartbeat(second: float, member: str, epoch: int, error: int = 0) -> SourcedExchange:
    request = {
        "groupId": "orders",
        "memberId": member,
        "memberEpoch": epoch,
        "rebalanceTimeoutMs": 14_000,
        "subscribedTopicNames": ["orders"],
    }
    return exchange(second, "CONSUMER_GROUP_HEARTBEAT", request, {"errorCode": error, "memberEpoch": max(epoch, 0)})


def modern(second: float, message: str) -> bytes:
    logger = "org.apache.kafka.coordinator.group.GroupMetadataManager"
    return line(
        second, f"[GroupCoordinator id=1 topic=__consumer_offsets partition=0] [GroupId orders] {message}", logger
    )


def test_members_of_the_consumer_protocol_have_their_client_from_their_heartbeats() -> None:
    lines = [modern(0, "Member Xyz joins the consumer group using the consumer protocol.")]
    [joined] = named(events_of(lines, [heartbeat(0, "Xyz", 0)]), "member_joined")
    assert (joined["client_id"], joined["topics"]) == ("one", ["orders"])


def test_a_heartbeat_that_leaves_a_group_that_the_member_is_no_longer_in_is_no_late_poll() -> None:
    fenced = [heartbeat(0, "Xyz", 0), heartbeat(30, "Xyz", -1, 25), heartbeat(31, "Xyz", 0)]
    left = [heartbeat(0, "Xyz", 0), heartbeat(30, "Xyz", -1), heartbeat(38, "Xyz", 0)]
    assert not named(events_of([], fenced), "poll_timeout_exceeded")
    assert len(named(events_of([], left), "poll_timeout_exceeded")) == 1


def test_the_last_answer_before_a_load_is_when_the_coordinator_went_away() -> None:
    lines = [
        modern(0, "Member Xyz joins the consumer group using the consumer protocol."),
        line(
            100,
            "[GroupCoordinator id=1 topic=__consumer_offsets partition=0] Loaded consumer group orders with 1 members.",
            "org.apache.kafka.coordinator.group.GroupMetadataManager",
        ),
    ]
    asked = [heartbeat(second, "Xyz", 1) for second in (10, 20, 45, 99.5)]
    [stopped] = named(events_of(lines, asked), "broker_stopped")
    assert (stopped["at_ms"], stopped["group_id"]) == (AT + 45_000, "orders")
    assert json.dumps(stopped)


def test_the_coordinator_s_own_lines_show_both_ends_as_well() -> None:
    logger = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
    words = ((0, "Startup complete."), (60, "Shutting down."), (100, "Starting up."), (101, "Startup complete."))
    lines = [line(second, f"[GroupCoordinator id=1] {text}", logger) for second, text in words]
    found = named(events_of(lines), "broker_stopped", "broker_started")
    assert [(each["event"], each["at_ms"] % 600_000 // 1_000) for each in found] == [
        ("broker_started", 0),
        ("broker_stopped", 60),
        ("broker_started", 101),
    ]


def test_a_coordinator_that_was_killed_stopped_after_its_last_line() -> None:
    logger = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
    words = ((0, "Startup complete."), (100, "Starting up."), (101, "Startup complete."))
    lines = [line(second, f"[GroupCoordinator id=1] {text}", logger) for second, text in words]
    [stopped] = named(events_of(lines), "broker_stopped")
    assert (stopped["at_ms"] % 600_000, stopped["confidence"]) == (0, "inferred")
