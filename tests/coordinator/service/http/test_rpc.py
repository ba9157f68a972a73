"""Kafka's requests over HTTP: paths, versions, headers, errors, waiting and going away."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import weakref
from typing import Any

import pytest

from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service import driver
from rejoin.protocol.registry import APIS, Api
from tests.coordinator.control.samples import sample
from tests.coordinator.service.helpers import START, Harness, join

HEARTBEAT = b'{"groupId":"g","generationId":1,"memberId":"m"}'


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_every_api_answers_its_own_message_at_its_path(node: Harness, api: Api) -> None:
    answered = await node.request("POST", api.path, sample(api.name, "m").to_json(api.default_version))
    assert answered.status == 200, answered.body
    assert answered.headers["Content-Type"] == "application/json"
    api.response.from_json(answered.body)
    has_error = "errorCode" in answered.json
    assert ("Kafka-Error" in answered.headers) is has_error


async def test_the_error_is_named_in_a_header(node: Harness) -> None:
    answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT)
    assert (answered.status, answered.headers["Kafka-Error"]) == (200, "UNKNOWN_MEMBER_ID")
    assert answered.json == {"throttleTimeMs": 0, "errorCode": 25}
    answered = await node.request("POST", "/v1/heartbeat", b'{"groupId":"","generationId":1,"memberId":"m"}')
    assert answered.headers["Kafka-Error"] == "INVALID_GROUP_ID"


async def test_an_answer_without_an_error_code_in_this_version_names_none(node: Harness) -> None:
    fetch = b'{"groupId":"g","topics":[]}'
    without = await node.request("POST", "/v1/offset-fetch", fetch, Kafka_Api_Version="1")
    assert "Kafka-Error" not in without.headers
    with_one = await node.request("POST", "/v1/offset-fetch", fetch, Kafka_Api_Version="2")
    assert with_one.headers["Kafka-Error"] == "NONE"


async def test_topics_have_ids_only_in_a_version_that_is_asked_for(node: Harness) -> None:
    partitions = [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}]
    commit: dict[str, Any] = {"groupId": "g", "memberId": ""}
    named = json.dumps(commit | {"topics": [{"name": "nowhere", "partitions": partitions}]}).encode()
    by_name = await node.request("POST", "/v1/offset-commit", named)
    assert by_name.json["topics"] == [{"name": "nowhere", "partitions": [{"partitionIndex": 0, "errorCode": 3}]}]
    unknown = json.dumps(commit | {"topics": [{"topicId": "B" * 22, "partitions": partitions}]}).encode()
    by_id = await node.request("POST", "/v1/offset-commit", unknown, Kafka_Api_Version="10")
    assert by_id.json["topics"] == [{"topicId": "B" * 22, "partitions": [{"partitionIndex": 0, "errorCode": 100}]}]


async def test_the_version_decides_what_is_read_and_written(node: Harness) -> None:
    answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT, Kafka_Api_Version="0")
    assert answered.json == {"errorCode": 25}
    static = b'{"groupId":"g","generationId":1,"memberId":"m","groupInstanceId":"i"}'
    refused = await node.request("POST", "/v1/heartbeat", static, Kafka_Api_Version="2")
    assert refused.status == 400
    assert refused.json["errors"][0]["field"] == "groupInstanceId"
    assert (await node.request("POST", "/v1/heartbeat", static, Kafka_Api_Version="3")).status == 200


@pytest.mark.parametrize("version", ["5", "-1", "99999", "4.0", "four", "", "04", "٤", "1e0"])
async def test_a_version_that_is_not_supported_is_a_problem_that_names_the_range(node: Harness, version: str) -> None:
    answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT, Kafka_Api_Version=version)
    assert answered.status == 400
    assert answered.headers["Content-Type"] == "application/problem+json"
    assert "0 to 4" in answered.json["detail"]
    assert answered.json["errors"][0]["field"] == "Kafka-Api-Version"


@pytest.mark.parametrize("number", ["0", "-1", "7", "2147483647", "-2147483648"])
async def test_the_correlation_id_comes_back(node: Harness, number: str) -> None:
    answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT, Kafka_Correlation_Id=number)
    assert answered.headers["Kafka-Correlation-Id"] == number
    refused = await node.request("POST", "/v1/heartbeat", b"{}", Kafka_Correlation_Id=number)
    assert (refused.status, refused.headers["Kafka-Correlation-Id"]) == (400, number)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Kafka-Correlation-Id", "2147483648"),
        ("Kafka-Correlation-Id", "seven"),
        ("Kafka-Correlation-Id", ""),
        ("Kafka-Principal", "alice"),
        ("Kafka-Principal", "User:"),
        ("Kafka-Principal", "Group:admins"),
        ("Kafka-Client-Id", "x" * 2_000),
    ],
)
async def test_headers_are_checked(node: Harness, header: str, value: str) -> None:
    answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT, **{header.replace("-", "_"): value})
    assert answered.status == 400
    assert answered.json["errors"][0]["field"] == header


async def test_client_id_and_host_are_the_members(node: Harness) -> None:
    body = json.dumps(join("g")).encode()
    answered = await node.request("POST", "/v1/join-group", body, Kafka_Client_Id="consumer-ü")
    assert answered.json["memberId"].startswith("consumer-ü-")
    events = (await node.get("/events?group=g"))["events"]
    handed_out = next(event for event in events if event["event"] == "member_id_handed_out")
    assert (handed_out["client_id"], handed_out["client_host"]) == ("consumer-ü", "/127.0.0.1")


async def test_a_principal_may_be_denied(serve: Any) -> None:
    node = await serve(emulator_deny=("User:mallory:READ:group=*",))
    for principal, error in (("User:mallory", "GROUP_AUTHORIZATION_FAILED"), ("User:alice", "UNKNOWN_MEMBER_ID")):
        answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT, Kafka_Principal=principal)
        assert answered.headers["Kafka-Error"] == error


async def test_api_versions_can_be_looked_at(node: Harness) -> None:
    versions = {entry["apiKey"]: entry for entry in (await node.get("/v1/api-versions"))["apiKeys"]}
    assert versions.keys() == {api.key for api in APIS}
    assert versions[12] == {"apiKey": 12, "minVersion": 0, "maxVersion": 4}


async def test_a_path_may_be_percent_encoded_or_have_a_query(node: Harness) -> None:
    for path in ("/v1/%68eartbeat", "/v1/heartbeat?verbose=1"):
        assert (await node.request("POST", path, HEARTBEAT)).headers["Kafka-Error"] == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"]
)
async def test_json_is_taken_under_its_names(node: Harness, kind: str) -> None:
    assert (await node.request("POST", "/v1/heartbeat", HEARTBEAT, Content_Type=kind)).status == 200


async def test_a_join_waits_for_the_end_of_the_join_phase(node: Harness) -> None:
    member_id = await node.member_id("g")
    joining = await node.parked("JoinGroup", join("g", member_id))
    assert (await node.get("/groups/g"))["members"][0]["awaitingJoin"] is True
    node.clock.advance(2_999)
    await asyncio.sleep(0)
    assert not joining.done()
    node.clock.advance(1)
    answer = await joining
    assert (answer["errorCode"], answer["generationId"], answer["leader"]) == (0, 1, member_id)
    assert [member["memberId"] for member in answer["members"]] == [member_id]


async def test_a_commit_is_answered_when_it_is_stored(node: Harness) -> None:
    await node.topic("orders", 1)
    node.log.hold_appends = True
    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}
    commit = {"groupId": "g", "memberId": "", "topics": [{"name": "orders", "partitions": [partition]}]}
    committing = await node.parked("OffsetCommit", commit)
    node.log.release()
    assert (await committing)["topics"][0]["partitions"][0]["errorCode"] == 0


async def test_a_requester_that_goes_away_leaves_nothing_behind(node: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: weakref.WeakSet[Any] = weakref.WeakSet()

    class Watched(PendingReply):
        def __init__(self) -> None:
            replies.add(self)

    member_id = await node.member_id("g")
    monkeypatch.setattr(driver, "PendingReply", Watched)
    joining = await node.parked("JoinGroup", join("g", member_id))
    joining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await joining
    (pending,) = replies
    async with asyncio.timeout(60):
        while not pending.future.cancelled():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    view = await node.get("/groups/g")
    assert view["members"][0]["awaitingJoin"] is True, "the coordinator cannot see that it is gone"
    node.clock.advance(3_000)
    assert (await node.get("/groups/g"))["generation"] == 1
    gone = weakref.ref(pending)
    del pending, joining
    await node.request("POST", "/v1/heartbeat", HEARTBEAT)
    gc.collect()
    assert gone() is None


async def test_a_connection_serves_several_requests_in_a_row(node: Harness) -> None:
    request = (
        b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (len(HEARTBEAT), HEARTBEAT)
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    writer.write(request * 3)
    for _ in range(3):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nDate: " in head
        length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
        assert json.loads(await reader.readexactly(length))["errorCode"] == 25
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("line", "header"),
    [(b"HTTP/1.0", b""), (b"HTTP/1.1", b"Connection: close\r\n"), (b"HTTP/1.0", b"Connection: keep-alive\r\n")],
)
async def test_old_and_closing_connections_get_the_same_answer(node: Harness, line: bytes, header: bytes) -> None:
    head = b"POST /v1/heartbeat %s\r\nHost: x\r\nContent-Type: application/json\r\nKafka-Correlation-Id: 9\r\n"
    head += b"%sContent-Length: %d\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    writer.write(head % (line, header, len(HEARTBEAT)) + HEARTBEAT)
    answer = await reader.readuntil(b"}")
    assert answer.startswith(line + b" 200 OK")
    for expected in (
        b"Kafka-Error: UNKNOWN_MEMBER_ID",
        b"Kafka-Correlation-Id: 9",
        b'{"throttleTimeMs":0,"errorCode":25}',
    ):
        assert expected in answer
    if header != b"Connection: keep-alive\r\n":
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_a_core_that_breaks_is_answered_too(node: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(what: object, now: int, **late: bool) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(node.app.runtime.node, "step", broken)
    answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT)
    assert (answered.status, answered.headers["Kafka-Error"]) == (200, "UNKNOWN_SERVER_ERROR")
    answered = await node.request("POST", "/v1/create-topics", b'{"topics":[]}')
    assert answered.status == 503
    assert b"Traceback" not in answered.body
    monkeypatch.undo()
    assert (await node.request("POST", "/v1/heartbeat", HEARTBEAT)).headers["Kafka-Error"] == "UNKNOWN_MEMBER_ID"


async def test_stopping_answers_everyone_who_is_parked(serve: Any) -> None:
    node = await serve()
    member_id = await node.member_id("g")
    joining = await node.parked("JoinGroup", join("g", member_id))
    await node.app.service.stop()
    assert (await joining)["errorCode"] == 16
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", node.port))


async def test_requests_that_come_while_stopping_are_turned_away(
    node: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node.app.service, "_serving", False)
    monkeypatch.setattr(node.app.service, "_stopping", True)
    for method, path in (("POST", "/v1/heartbeat"), ("GET", "/groups")):
        answered = await node.request(method, path, HEARTBEAT if method == "POST" else None)
        assert (answered.status, answered.json["type"]) == (503, "urn:rejoin:problem:shutting-down")


async def test_time_comes_from_the_clock(node: Harness) -> None:
    node.clock.advance(1_234)
    await node.topic("late", 1)
    events = (await node.get("/events"))["events"]
    assert events[0]["at_ms"] == START
    assert events[-1]["at_ms"] == START + 1_234
