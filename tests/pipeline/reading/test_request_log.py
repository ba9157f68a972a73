"""Kafka's request log: what each request and its answer say, and the history of a group that follows from them."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, generations_of, request_event
from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import LogFile
from rejoin.pipeline.reading.request_log import (
    LoggedExchange,
    decoded_assignment,
    decoded_subscription,
    error_of,
    group_of,
    leaving,
)
from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.types import TopicPartition


def packed(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def subscription(*topics: str, owned: tuple[tuple[str, int], ...] = (), version: int = 3) -> str:
    partitions = tuple(TopicPartition(*partition) for partition in owned)
    return packed(encode_subscription(Subscription(topics, owned_partitions=partitions), version))


def assignment(*partitions: tuple[str, int]) -> str:
    return packed(encode_assignment(Assignment(tuple(TopicPartition(*partition) for partition in partitions))))


def line(
    second: float, api: str, request: Any, response: Any, total: float = 1.5, client: str = "c-1", **more: Any
) -> str:
    """A line as Kafka writes it when an answer is sent; no space behind the colon."""
    key = BY_NAME["".join(word.capitalize() for word in api.split("_"))].key if "CONSUMER" not in api else 68
    envelope = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": key,
            "requestApiVersion": 9,
            "correlationId": 7,
            "clientId": client,
            "requestApiKeyName": api,
        },
        "request": request,
        "response": response,
        "connection": "172.18.0.3:9092-172.18.0.5:40122-3",
        "totalTimeMs": total,
        "requestQueueTimeMs": 0.125,
        "localTimeMs": 0.5,
        "remoteTimeMs": max(0.0, total - 1),
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.25,
        "sendTimeMs": 0.1,
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "3.9.0"},
    } | more
    stamp = f"2024-01-01 12:{int(second) // 60:02d}:{int(second) % 60:02d},{round(second * 1000) % 1000:03d}"
    return f"[{stamp}] DEBUG Completed request:{json.dumps(envelope, separators=(',', ':'))} (kafka.request.logger)"


def join(second: float, member: str, generation: int, leader: str, total: float = 3_000, **more: Any) -> str:
    """A JoinGroup that was answered with a generation; ``members`` for the leader's answer."""
    members = more.pop("members", ())
    metadata = more.pop("metadata", subscription("t"))
    request = {
        "groupId": "g",
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": more.pop("member_id", member),
        "groupInstanceId": more.pop("instance", None),
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
        "reason": more.pop("reason", ""),
    }
    response = {
        "throttleTimeMs": 0,
        "errorCode": more.pop("error", 0),
        "generationId": generation,
        "protocolType": "consumer",
        "protocolName": "range" if generation > 0 else None,
        "leader": leader,
        "skipAssignment": False,
        "memberId": member,
        "members": [{"memberId": each, "groupInstanceId": None, "metadata": subscription("t")} for each in members],
    }
    return line(second, "JOIN_GROUP", request, response, total, **more)


def sync(
    second: float, member: str, generation: int, gives: dict[str, list[tuple[str, int]]] | None = None, **more: Any
) -> str:
    given = {each: assignment(*partitions) for each, partitions in (gives or {}).items()}
    request = {
        "groupId": "g",
        "generationId": generation,
        "memberId": member,
        "groupInstanceId": None,
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [{"memberId": each, "assignment": raw} for each, raw in given.items()],
    }
    response = {"throttleTimeMs": 0, "errorCode": 0, "protocolName": "range", "assignment": given.get(member, "")}
    return line(second, "SYNC_GROUP", request, response, **more)


def beat(second: float, member: str, error: int = 0) -> str:
    request = {"groupId": "g", "generationId": 1, "memberId": member, "groupInstanceId": None}
    return line(second, "HEARTBEAT", request, {"throttleTimeMs": 0, "errorCode": error})


def read(*lines: str) -> tuple[list[LoggedExchange], list[BrokenLine], LogFile]:
    log = LogFile("kafka-request.log", "1")
    found = list(log.statements(io.BytesIO("\n".join(lines).encode() + b"\n")))
    exchanges = [each for each in found if isinstance(each, LoggedExchange)]
    return exchanges, [each for each in found if isinstance(each, BrokenLine)], log


def asked(*lines: str) -> list[SourcedExchange]:
    return [SourcedExchange(exchange, "1", "kafka-request.log") for exchange in read(*lines)[0]]


def of(events: list[EventRow], name: str) -> list[EventRow]:
    return [event for event in events if event["event"] == name]


# --- one line


def test_a_request_has_its_times_and_its_content() -> None:
    owned = (("t", 0), ("t", 2))
    text = join(10, "a", 1, "a", members=("a", "b"), metadata=subscription("t", "u", owned=owned), reason="too lazy")
    (exchange,), _, _ = read(text)
    event = request_event(SourcedExchange(exchange, "1", "kafka-request.log"))
    assert event["at_ms"] == 1_704_110_410_000 - 3_000
    expected = {
        "event": "request",
        "source": "request-log",
        "api": "JOIN_GROUP",
        "api_version": 9,
        "group_id": "g",
        "member_id": "a",
        "client_id": "c-1",
        "client_host": "/172.18.0.5",
        "generation": 1,
        "total_ms": 3_000.0,
        "queue_ms": 0.375,
        "local_ms": 0.5,
        "parked_ms": 2_999.0,
        "software": "apache-kafka-java 3.9.0",
        "client_reason": "too lazy",
        "topics": ["t", "u"],
        "owned": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 2}],
        "protocol": "range",
        "confidence": "exact",
    }
    assert expected.items() <= event.items()
    assert "error" not in event


def test_errors_are_named_wherever_they_stand() -> None:
    (exchange,), _, _ = read(join(1, "a", -1, "", error=79, member_id="", total=1))
    assert exchange.error == "MEMBER_ID_REQUIRED"
    assert exchange.member_id == "a"
    assert (
        error_of({"errorCode": 0, "topics": [{"partitions": [{"errorCode": 0}, {"errorCode": 22}]}]})
        == "ILLEGAL_GENERATION"
    )
    assert error_of({"errorCode": 31_000}) == "ERROR_31000"
    assert error_of({"throttleTimeMs": 0}) is None


def test_groups_are_found_in_every_kind_of_request() -> None:
    assert group_of({"groupId": "g"}) == "g"
    assert group_of({"groups": [{"groupId": "g", "topics": None}]}) == "g"
    assert group_of({"groups": ["g"]}) == "g"
    assert group_of({"key": "g", "keyType": 0}) == "g"
    assert group_of({"groupsNames": ["g", "h"]}) is None


def test_who_left_is_read_from_old_and_new_requests() -> None:
    new, old = read(
        line(
            1,
            "LEAVE_GROUP",
            {
                "groupId": "g",
                "members": [
                    {"memberId": "a", "groupInstanceId": None, "reason": "closed"},
                    {"memberId": "x", "groupInstanceId": None, "reason": ""},
                ],
            },
            {"errorCode": 0, "members": [{"memberId": "a", "errorCode": 0}, {"memberId": "x", "errorCode": 25}]},
        ),
        line(1, "LEAVE_GROUP", {"groupId": "g", "memberId": "a"}, {"errorCode": 0}),
    )[0]
    assert leaving(new) == [("a", None, "closed")]
    assert leaving(old) == [("a", None, None)]


def test_bodies_that_cannot_be_decoded_leave_the_rest_readable() -> None:
    assert decoded_subscription("no base64!") == (None, None)
    assert decoded_subscription(packed(b"\x00\x01\xff")) == (None, None)
    assert decoded_subscription(subscription("t", version=0)) == (("t",), None)
    assert decoded_assignment("") == ()
    assert decoded_assignment(packed(b"\xff")) is None
    (exchange,), broken, _ = read(join(1, "a", 1, "a", metadata=packed(b"custom")))
    assert broken == []
    assert "topics" not in request_event(SourcedExchange(exchange, "1", "f"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[2024-01-01 12:00:00,000] DEBUG Completed request:{"isForwarded":false,"requestHeader":{', "cut short"),
        ('[2024-01-01 12:00:00,000] DEBUG Completed request:{"x":1} (kafka.request.logger)', "no requestHeader"),
        (
            "[2024-01-01 12:00:00,000] DEBUG Completed request:RequestHeader(apiKey=JOIN_GROUP, apiVersion=5) -- "
            "{},response:{} "
            "from connection 1;totalTime:5.0 (kafka.request.logger)",
            "before Kafka 2.8",
        ),
        (line(1, "JOIN_GROUP", {}, {}).replace('"totalTimeMs":1.5,', ""), "no totalTimeMs"),
        ("[2024-01-01 12:00:00,000] DEBUG Completed request:gibberish (kafka.request.logger)", "no JSON"),
    ],
)
def test_a_broken_line_is_reported(text: str, reason: str) -> None:
    exchanges, broken, log = read(text, beat(2, "a"))
    assert len(exchanges) == 1
    assert [each.line for each in broken] == [1]
    assert reason in broken[0].reason
    assert log.counts.broken == 1


def test_what_is_not_about_groups_is_counted() -> None:
    produce = beat(1, "a").replace("HEARTBEAT", "PRODUCE")
    old = "[2024-01-01 12:00:00,000] DEBUG Completed request:RequestHeader(apiKey=FETCH) -- {} (kafka.request.logger)"
    exchanges, broken, log = read(produce, old, beat(2, "a"))
    assert (len(exchanges), broken, log.counts.other) == (1, [], 2)


def test_bodies_may_be_missing() -> None:
    (exchange,), broken, _ = read(line(1, "HEARTBEAT", "", ""))
    assert (exchange.group_id, exchange.error, broken) == (None, None, [])


# --- a group


TWO = (
    join(1, "a", -1, "", error=79, member_id="", total=1),
    join(2, "b", -1, "", error=79, member_id="", total=1),
    join(4, "a", 1, "a", members=("a", "b"), total=2_900),
    join(4, "b", 1, "a", total=1_900),
    sync(4.05, "a", 1, {"a": [("t", 0)], "b": [("t", 1)]}, total=30),
    sync(4.05, "b", 1, total=40),
)


def test_two_members_become_a_group() -> None:
    events = complete([], asked(*TWO))
    (started,), (ended,), (done,) = (
        of(events, name) for name in ("rebalance_started", "join_phase_ended", "rebalance_completed")
    )
    assert (started["cause"], started["cause_member_id"], started["previous_state"]) == ("join-new", "a", "Empty")
    assert started["confidence"] == "inferred"
    assert (ended["leader"], ended["members"], ended["protocol"]) == ("a", ["a", "b"], "range")
    assert (done["rebalance_ms"], done["join_ms"], done["sync_ms"], done["confidence"]) == (2_950, 2_900, 50, "exact")
    assert done["owned_after"] == [
        {"member_id": "a", "topic": "t", "partition": 0},
        {"member_id": "b", "topic": "t", "partition": 1},
    ]
    assert (done["moved"], done["regained"]) == (0, 2)
    joined = of(events, "member_joined")
    assert [event["member_id"] for event in joined] == ["a", "b"]
    assert joined[0]["topics"] == ["t"]
    assert joined[0]["session_timeout_ms"] == 45_000


def test_one_leaves_and_its_partition_goes_to_the_other() -> None:
    left = line(
        60,
        "LEAVE_GROUP",
        {
            "groupId": "g",
            "members": [{"memberId": "b", "groupInstanceId": None, "reason": "the consumer is being closed"}],
        },
        {"errorCode": 0, "members": [{"memberId": "b", "errorCode": 0}]},
    )
    again = (
        beat(61, "a", 27),
        join(62, "a", 2, "a", members=("a",), total=5),
        sync(62.1, "a", 2, {"a": [("t", 0), ("t", 1)]}),
    )
    events = complete([], asked(*TWO, left, *again))
    started = of(events, "rebalance_started")[1]
    assert (started["cause"], started["cause_member_id"], started["client_reason"]) == (
        "leave",
        "b",
        "the consumer is being closed",
    )
    assert started["at_ms"] - of(events, "rebalance_started")[0]["at_ms"] == 60_000 - 1_100
    done = of(events, "rebalance_completed")[1]
    assert (done["moved"], done["regained"], done["members_before"]) == (0, 1, ["a", "b"])
    assert [(event["member_id"], event["cause"]) for event in of(events, "member_removed")] == [("b", "left")]


def test_a_heartbeat_that_is_answered_with_rebalance_in_progress_shows_that_a_member_is_gone() -> None:
    again = (
        beat(61, "a", 27),
        join(62, "a", 2, "a", members=("a",), total=5),
        sync(62.1, "a", 2, {"a": [("t", 0), ("t", 1)]}),
    )
    events = complete([], asked(*TWO, *again))
    started = of(events, "rebalance_started")[1]
    assert (started["cause"], started["cause_member_id"]) == ("session-expiry", "b")
    assert of(events, "member_removed")[0]["confidence"] == "inferred"


def test_a_static_member_returns_within_a_generation() -> None:
    first = join(4, "i-1", 1, "i-1", members=("i-1",), instance="i", member_id="")
    back = join(50, "i-2", 1, "i-1", instance="i", member_id="", total=3)
    events = complete([], asked(first, sync(4.1, "i-1", 1, {"i-1": [("t", 0)]}), back))
    assert len(of(events, "rebalance_started")) == 1
    (returned,) = of(events, "static_member_replaced")
    assert (returned["other_member_id"], returned["member_id"], returned["rebalance"]) == ("i-1", "i-2", False)


def test_what_a_coordinator_logged_is_completed_and_not_repeated() -> None:
    logged: list[EventRow] = [
        {
            "event": "rebalance_started",
            "at_ms": 1_704_110_401_000,
            "group_id": "g",
            "generation": 0,
            "cause": "join-new",
        },
        {
            "event": "member_joined",
            "at_ms": 1_704_110_401_000,
            "group_id": "g",
            "member_id": "a",
            "confidence": "exact",
        },
        {"event": "join_phase_ended", "at_ms": 1_704_110_404_000, "group_id": "g", "generation": 1, "member_count": 2},
        {
            "event": "rebalance_completed",
            "at_ms": 1_704_110_404_020,
            "order_ms": 1_704_110_404_020,
            "group_id": "g",
            "generation": 1,
            "rebalance_ms": 3_020,
            "sync_ms": 20,
            "members_before": [],
            "confidence": "inferred",
        },
    ]
    for event in logged:
        event |= {"node": "7", "order_ms": event["at_ms"]}
    late = join(4, "late", 1, "a", total=500)
    events = complete(logged, asked(*TWO, late))
    assert len(of(events, "rebalance_started")) == len(of(events, "rebalance_completed")) == 1
    done = of(events, "rebalance_completed")[0]
    assert (done["at_ms"], done["rebalance_ms"], done["sync_ms"]) == (1_704_110_404_050, 3_050, 50)
    assert (done["confidence"], done["leader"], len(done["owned_after"])) == ("exact", "a", 2)
    assert of(events, "join_phase_ended")[0]["members"] == ["a", "b"]
    joined = {event["member_id"]: event for event in of(events, "member_joined")}
    # Who came behind the beginning stands behind it, as one more event of the same coordinator.
    assert (joined["late"]["source"], joined["late"]["node"], joined["late"]["state"]) == (
        "broker-log",
        "7",
        "PreparingRebalance",
    )
    assert (joined["a"]["topics"], joined["b"]["topics"]) == (["t"], ["t"])


def test_a_generation_number_that_comes_again_is_another_generation() -> None:
    later = [text.replace("2024-01-01", "2024-01-02") for text in TWO]
    rounds = generations_of(asked(*TWO, *later))
    assert [each.generation for each in rounds] == [1, 1]
    again = join(70, "a", 2, "a", members=("a",))
    assert [each.generation for each in generations_of(asked(*TWO, again, *later))] == [1, 2, 1]


def test_followers_show_their_part_when_the_leader_asked_another_broker() -> None:
    alone = sync(5, "b", 1).replace('"assignment":""', f'"assignment":"{assignment(("t", 1))}"')
    (current,) = generations_of(asked(*TWO[:4], alone))
    assert current.assigned is None
    assert current.given == {"b": (("t", 1),)}
