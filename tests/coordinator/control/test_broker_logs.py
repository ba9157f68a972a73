"""What happened, in the words of Kafka's own logs, by version."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rejoin.coordinator.control.broker_log_writer.versions import kafka_version
from rejoin.coordinator.control.errors import InvalidArgument
from rejoin.journal.kafka_logs.request_lines import key_name
from rejoin.protocol.registry import APIS
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.service.helpers import join, sync

LINE = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (INFO|WARN|ERROR) (.*) \(([\w.$]+)\)")
SCALA = "kafka.coordinator.group.GroupCoordinator"
JAVA = "org.apache.kafka.coordinator.group.GroupMetadataManager"


async def log_of(node: ControlledNode, kafka: str) -> list[tuple[str, str]]:
    """Messages with their loggers; every line has a broker's layout."""
    text = await node.control("GET", f"/broker-log?kafka={kafka}")
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [(match[3], match[4]) for match in found if match is not None]


async def story(node: ControlledNode) -> str:
    """A member joins, gets its partitions and leaves again; its id."""
    first = await node.stable()
    await node.call(
        "LeaveGroup", {"groupId": "g", "members": [{"memberId": first, "groupInstanceId": None, "reason": "done"}]}
    )
    return first


@pytest.mark.parametrize(
    ("kafka", "lines"),
    [
        (
            "2.0",
            [
                "Preparing to rebalance group g with old generation 0 (__consumer_offsets-3)",
                "Stabilized group g generation 1 (__consumer_offsets-3)",
                "Assignment received from leader for group g for generation 1",
                "Preparing to rebalance group g with old generation 1 (__consumer_offsets-3)",
                "Group g with generation 2 is now empty (__consumer_offsets-3)",
            ],
        ),
        (
            "2.4",
            [
                "Preparing to rebalance group g in state PreparingRebalance with old generation 0 "
                "(__consumer_offsets-3) (reason: Adding new member M with group instanceid None)",
                "Stabilized group g generation 1 (__consumer_offsets-3)",
                "Assignment received from leader for group g for generation 1",
                "Member[group.instance.id None, member.id M] in group g has left, removing it from the group",
                "Preparing to rebalance group g in state PreparingRebalance with old generation 1 "
                "(__consumer_offsets-3) (reason: removing member M on LeaveGroup)",
                "Group g with generation 2 is now empty (__consumer_offsets-3)",
            ],
        ),
        (
            "2.8.1",
            [
                "Dynamic Member with unknown member id joins group g in Empty state. Created a new "
                "member id M for this member and add to the group.",
                "Preparing to rebalance group g in state PreparingRebalance with old generation 0 "
                "(__consumer_offsets-3) (reason: Adding new member M with group instance id None)",
                "Stabilized group g generation 1 (__consumer_offsets-3) with 1 members",
                "Assignment received from leader for group g for generation 1. The group has 1 "
                "members, 0 of which are static.",
                "Member[group.instance.id None, member.id M] in group g has left, removing it from the group",
                "Preparing to rebalance group g in state PreparingRebalance with old generation 1 "
                "(__consumer_offsets-3) (reason: removing member M on LeaveGroup)",
                "Group g with generation 2 is now empty (__consumer_offsets-3)",
            ],
        ),
        (
            "3.9",
            [
                "Dynamic member with unknown member id joins group g in Empty state. Created a new "
                "member id M and request the member to rejoin with this id.",
                "Preparing to rebalance group g in state PreparingRebalance with old generation 0 "
                "(__consumer_offsets-3) (reason: Adding new member M with group instance id None; client reason: not "
                "provided)",
                "Stabilized group g generation 1 (__consumer_offsets-3) with 1 members",
                "Assignment received from leader M for group g for generation 1. The group has 1 "
                "members, 0 of which are static.",
                "Member MemberMetadata(memberId=M, groupInstanceId=None, clientId=app, "
                "clientHost=/127.0.0.1, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, "
                "supportedProtocols=List(range)) has left group g through explicit `LeaveGroup`; client reason: done",
                "Preparing to rebalance group g in state PreparingRebalance with old generation 1 "
                "(__consumer_offsets-3) (reason: Removing member M on LeaveGroup; client reason: done)",
                "Group g with generation 2 is now empty (__consumer_offsets-3)",
            ],
        ),
        (
            "4.0",
            [
                "Dynamic member with unknown member id joins "
                "group g in Empty state. Created a new member id M and requesting the member to rejoin with this id.",
                "Pending dynamic member with id M joins group g in Empty state. Adding to the group now.",
                "Preparing to rebalance group g in state "
                "PreparingRebalance with old generation 0 (reason: Adding new member M with group instance id null; "
                "client reason: not provided).",
                "Stabilized group g generation 1 with 1 members.",
                "Assignment received from leader M for "
                "group g for generation 1. The group has 1 members, 0 of which are static.",
                "[Group g] Member M has left group through explicit `LeaveGroup` request; client reason: done",
                "Preparing to rebalance group g in state "
                "PreparingRebalance with old generation 1 (reason: explicit `LeaveGroup` request for (M) members.).",
                "Group g with generation 2 is now empty.",
            ],
        ),
    ],
)
async def test_one_life_in_the_words_of_each_version(node: ControlledNode, kafka: str, lines: list[str]) -> None:
    member_id = await story(node)
    found = await log_of(node, kafka)
    prefix = (
        "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] " if kafka == "4.0" else "[GroupCoordinator 1]: "
    )
    assert all(message.startswith(prefix) for message, _ in found)
    assert [message.removeprefix(prefix).replace(member_id, "M") for message, _ in found] == lines
    assert {logger for _, logger in found} == {JAVA if kafka == "4.0" else SCALA}


ALL = ("1.1", "2.0", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "3.0", "3.2", "3.5", "3.9", "4.0")


@pytest.mark.parametrize("kafka", ALL)
async def test_static_members_failover_expiry_and_fencing_have_words_everywhere(
    node: ControlledNode, kafka: str
) -> None:
    async def join_static() -> str:
        joining = node.asking("JoinGroup", join("g", groupInstanceId="i-1"))
        await node.control("POST", "/groups/wait", group="g", members=1)
        await node.advance(3_000)
        member_id: str = (await joining)["memberId"]
        return member_id

    first = await join_static()
    await node.call("SyncGroup", sync("g", first, 1, {first: {"orders": [0]}}, groupInstanceId="i-1"))
    second = (await node.call("JoinGroup", join("g", groupInstanceId="i-1")))["memberId"]
    beat = {"groupId": "g", "generationId": 1, "memberId": first, "groupInstanceId": "i-1"}
    assert (await node.call("Heartbeat", beat))["errorCode"] == 82
    await node.control("POST", "/partitions/resign", group="g")
    await node.control("POST", "/partitions/elect", group="g")
    await node.advance(45_000)
    assert (await node.group())["state"] == "Empty"
    pending = (await node.call("JoinGroup", join("g")))["memberId"]
    await node.control("POST", "/groups/expire", group="g", member=pending)
    messages = [message for message, _ in await log_of(node, kafka)]
    text = "\n".join(messages)
    assert f"Member {second} in group g has failed, removing it from the group" in text
    if kafka == "4.0":
        assert "Request memberId=" in text
        assert "is fenced by existing memberId=" in text
        assert "Started unloading metadata for __consumer_offsets-3 with epoch OptionalInt[0]." in text
        assert "Loaded classic group g with 1 members." in text
    elif kafka >= "2.3":
        assert "will not trigger rebalance" in text
        assert "Loading group metadata for g with generation 1" in text
        assert ("Elected as the group coordinator for partition 3 in epoch 1" in text) == (kafka >= "2.8")
    if kafka >= "2.2":
        assert f"Pending member {pending} in group g has been removed after session timeout expiration." in text


async def test_since_a_mark_and_for_one_group(node: ControlledNode) -> None:
    await node.stable()
    mark = (await node.control("GET", "/mark"))["mark"]
    await node.stable("h")
    await node.advance(45_000)
    text = await node.control("GET", f"/broker-log?since={mark}&group=g")
    assert "Stabilized" not in text
    assert "group h" not in text
    assert "in group g has failed" in text


@pytest.mark.parametrize("text", ["", "3", "0.9", "9.9", "trunk", "3.x"])
def test_an_unknown_version_is_reported(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"expected a version from 1\.1 to 4\.4"):
        kafka_version(text)


# --- the request log


def envelopes(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"\[[-0-9 :,]{23}\] DEBUG Completed request:(\{.*\}) \(kafka\.request\.logger\)", line)
        assert match is not None, line
        found.append(json.loads(match[1]))
    return found


async def test_requests_and_answers_have_the_form_of_kafkas_request_log(node: ControlledNode) -> None:
    member_id = await node.stable()
    await node.beat(member_id)
    found = envelopes(await node.control("GET", "/request-log"))
    names = [each["requestHeader"]["requestApiKeyName"] for each in found]
    assert names == ["CREATE_TOPICS", "JOIN_GROUP", "JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT"]
    parked, beat = found[2], found[4]
    assert (parked["remoteTimeMs"], parked["totalTimeMs"] >= 3_000) == (3_000.0, True)
    assert list(beat) == [
        "isForwarded",
        "requestHeader",
        "request",
        "response",
        "connection",
        "totalTimeMs",
        "requestQueueTimeMs",
        "localTimeMs",
        "remoteTimeMs",
        "throttleTimeMs",
        "responseQueueTimeMs",
        "sendTimeMs",
        "securityProtocol",
        "principal",
        "listener",
        "clientInformation",
    ]
    assert beat["request"] == {"groupId": "g", "generationId": 1, "memberId": member_id, "groupInstanceId": None}
    assert beat["response"] == {"throttleTimeMs": 0, "errorCode": 0}
    header = beat["requestHeader"]
    assert (header["requestApiKey"], header["requestApiVersion"], header["clientId"]) == (12, 4, "app")


async def test_a_line_of_the_request_log_can_be_posted_as_it_is(node: ControlledNode) -> None:
    await node.stable()
    logged = envelopes(await node.control("GET", "/request-log"))
    await node.control("POST", "/reset")
    for each in logged:
        header = each["requestHeader"]
        api = next(api for api in APIS if api.key == header["requestApiKey"])
        version = str(header["requestApiVersion"])
        answered = await node.request("POST", api.path, each["request"], Kafka_Api_Version=version)
        assert answered.status == 200, answered.body


async def test_what_a_fault_answered_is_in_the_log_and_what_it_lost_is_not(node: ControlledNode) -> None:
    member_id = await node.stable()
    mark = (await node.control("GET", "/mark"))["mark"]
    await node.control("POST", "/faults", keys="Heartbeat", error=16)
    await node.control("POST", "/faults", keys="Heartbeat", when="after", error=27)
    await node.control("POST", "/faults", keys="Heartbeat", when="drop_request")
    assert [await node.beat(member_id), await node.beat(member_id)] == [16, 27]
    with pytest.raises(Exception, match="disconnected"):
        await node.beat(member_id)
    found = envelopes(await node.control("GET", f"/request-log?since={mark}"))
    assert [each["response"]["errorCode"] for each in found] == [16, 27]


@pytest.mark.parametrize(("kafka", "marked"), [("3.6", False), ("3.7", True), ("3.9", True), ("4.0", False)])
async def test_versions_that_go_away_are_marked_where_kafka_does(
    node: ControlledNode, kafka: str, marked: bool
) -> None:
    body = {**join("g", "x"), "rebalanceTimeoutMs": -1}
    del body["reason"]
    await node.call("JoinGroup", body, 0)
    (asked,) = envelopes(await node.control("GET", f"/request-log?kafka={kafka}&group=g"))
    assert asked["requestHeader"].get("requestApiVersionDeprecated", False) is marked


async def test_request_logs_before_they_were_json_are_refused(node: ControlledNode) -> None:
    status, detail = await node.refused("GET", "/request-log?kafka=2.7")
    assert (status, detail) == (
        400,
        "kafka: expected a version from 2.8 to 4.4, not 2.7; older request logs are not JSON",
    )


def test_names_of_apis_in_capitals() -> None:
    assert key_name("JoinGroup") == "JOIN_GROUP"
    assert key_name("TxnOffsetCommit") == "TXN_OFFSET_COMMIT"
