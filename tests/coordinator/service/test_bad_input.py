"""What is not a request: a problem that names the field, never a 500, and the groups stay as they are."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoin.protocol.registry import APIS
from tests.coordinator.service.helpers import Harness, HttpAnswer, join, subscription, sync

JOIN = json.dumps(join("g")).encode()
ROUTES = [*(api.path for api in APIS), "/", "/groups", "/groups/g", "/topics", "/topics/orders", "/events", "/metrics"]


def changed(field: str, value: Any) -> bytes:
    return json.dumps({**join("g"), field: value}).encode()


def assert_problem(answered: HttpAnswer, status: int = 400) -> dict[str, Any]:
    assert answered.status == status, answered.body
    assert answered.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = answered.json
    assert problem["status"] == status
    assert problem["type"].startswith("urn:rejoin:problem:")
    assert problem["title"]
    assert problem["detail"]
    assert b"Traceback" not in answered.body
    return problem


@pytest.mark.parametrize(
    ("body", "field", "word"),
    [
        (b"", "", "JSON"),
        (b"{", "", "JSON"),
        (b"[]", "", "object"),
        (b"null", "", "object"),
        (b'"' + b"x" * 5_000 + b'"', "", "object"),
        (b"\xff\xfe{}", "", "JSON"),
        (b'{"groupId": "\xc3\x28"}', "", "JSON"),
        (JOIN + b"{}", "", "JSON"),
        (b"[" * 100_000, "", "JSON"),
        (changed("groupId", None), "groupId", "string"),
        (changed("groupId", 7), "groupId", "string"),
        (changed("groupId", "x" * 32_768), "groupId", "at most 32,767 bytes"),
        (changed("protocols", [{"name": "r", "metadata": ""}] * 20_001), "protocols", "at most 20,000 entries"),
        (JOIN.replace(b'"g"', b'"\\ud800"'), "", "JSON"),
        (changed("sessionTimeoutMs", 2**31), "sessionTimeoutMs", "less than"),
        (changed("sessionTimeoutMs", -(2**31) - 1), "sessionTimeoutMs", "greater than"),
        (changed("sessionTimeoutMs", 10**5_00), "sessionTimeoutMs", "less than"),
        (changed("sessionTimeoutMs", 1.5), "sessionTimeoutMs", "integer"),
        (changed("sessionTimeoutMs", "6000"), "sessionTimeoutMs", "integer"),
        (changed("sessionTimeoutMs", True), "sessionTimeoutMs", "integer"),
        (changed("group_id", "g"), "group_id", "unknown field"),
        (changed("colour", "red"), "colour", "unknown field"),
        (changed("protocols", {}), "protocols", "array"),
        (changed("protocols", [{"name": "range"}]), "protocols.0.metadata", "missing"),
        (changed("protocols", [{"name": "range", "metadata": "%%%"}]), "protocols.0.metadata", "base64"),
        (changed("protocols", [{"name": "range", "metadata": "AAA"}]), "protocols.0.metadata", "base64"),
        (changed("protocols", [{"name": "range", "metadata": "-_8="}]), "protocols.0.metadata", "base64"),
        (changed("protocols", [{"name": "r", "metadata": "", "x": 1}]), "protocols.0.x", "unknown field"),
    ],
)
async def test_a_body_that_is_not_the_message_is_a_problem_that_names_the_field(
    node: Harness, body: bytes, field: str, word: str
) -> None:
    problem = assert_problem(await node.request("POST", "/v1/join-group", body))
    assert field in [error["field"] for error in problem["errors"]]
    error = next(error for error in problem["errors"] if error["field"] == field)
    assert word in error["problem"]
    assert len(json.dumps(error["given"])) < 400
    assert (await node.get("/groups"))["groups"] == []


async def test_a_field_of_another_version_is_named(node: Harness) -> None:
    body = json.dumps({"groupId": "g", "memberId": "m"}).encode()
    problem = assert_problem(await node.request("POST", "/v1/leave-group", body))
    assert problem["errors"] == [{"field": "memberId", "problem": problem["errors"][0]["problem"], "given": None}]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/v1/heart-beat", "; the nearest is /v1/heartbeat"),
        ("/group", "; the nearest is /groups"),
        ("/x/y/z", ""),
        ("/%2e%2e/%2e%2e/etc/passwd", ""),
    ],
)
async def test_an_unknown_route_names_one_that_is_near(node: Harness, path: str, hint: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        problem = assert_problem(await node.request(method, path), 404)
        assert problem["detail"] == f"there is no {problem['errors'][0]['given']}{hint}"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/heartbeat", "POST"),
        ("PUT", "/v1/join-group", "POST"),
        ("DELETE", "/v1/api-versions", "GET, HEAD, POST"),
        ("POST", "/groups", "GET, HEAD"),
        ("DELETE", "/groups/g", "GET, HEAD"),
        ("OPTIONS", "/events", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_answered_with_the_allowed(node: Harness, method: str, path: str, allowed: str) -> None:
    answered = await node.request(method, path)
    assert_problem(answered, 405)
    assert answered.headers["Allow"] == allowed


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "x"]
)
async def test_a_wrong_content_type_is_refused(node: Harness, kind: str) -> None:
    assert_problem(await node.request("POST", "/v1/heartbeat", b"{}", Content_Type=kind), 415)


async def test_a_body_over_the_limit_is_refused_however_it_comes(serve: Any) -> None:
    node = await serve({"max_body_bytes": 2_000})
    large = changed("groupId", "g" * 3_000)

    async def in_pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(large), 500):
            yield large[start : start + 500]
            await asyncio.sleep(0)

    for body in (large, in_pieces(), gzip.compress(large)):
        headers = {"Content_Encoding": "gzip"} if isinstance(body, bytes) and body[:2] == b"\x1f\x8b" else {}
        assert_problem(await node.request("POST", "/v1/join-group", body, **headers), 413)
    assert (await node.request("POST", "/v1/join-group", JOIN)).status == 200
    assert len((await node.get("/groups"))["groups"]) == 1


async def test_a_compressed_body_is_read(node: Harness) -> None:
    answered = await node.request("POST", "/v1/join-group", gzip.compress(JOIN), Content_Encoding="gzip")
    assert (answered.status, answered.headers["Kafka-Error"]) == (200, "MEMBER_ID_REQUIRED")


@pytest.mark.parametrize("path", ["/v1/join-group", "/groups", "/nowhere"])
@pytest.mark.parametrize(
    "body",
    [b"this is no gzip", gzip.compress(JOIN, mtime=0)[:50], b""],
    ids=["no gzip at all", "cut short", "empty"],
)
async def test_a_body_that_is_not_compressed_as_it_says_is_the_senders_mistake(
    node: Harness, caplog: pytest.LogCaptureFixture, path: str, body: bytes
) -> None:
    answered = await node.request("POST", path, body, Content_Encoding="gzip")
    problem = assert_problem(answered, {"/v1/join-group": 400, "/groups": 405, "/nowhere": 404}[path])
    assert problem["detail"]
    assert (await node.request("POST", "/v1/join-group", JOIN)).status == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("after=-1", "after"),
        ("after=x", "after"),
        ("after=99999999999999999999", "after"),
        (f"after={2**63}", "after"),
        ("limit=-1", "limit"),
        ("limit=10001", "limit"),
        ("limit=", "limit"),
        ("befor=1", "befor"),
    ],
)
async def test_query_parameters_are_checked(node: Harness, query: str, name: str) -> None:
    problem = assert_problem(await node.request("GET", f"/events?{query}"))
    assert problem["errors"][0]["field"] == name
    if name == "after":
        assert problem["detail"] == "after: expected a whole number from 0 to 9223372036854775807"


async def test_views_take_no_parameters(node: Harness) -> None:
    assert_problem(await node.request("GET", "/groups?state=Stable"))


async def raw(node: Harness, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What a bare socket gets back until the service closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    "data",
    [
        b"HELO example\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: many\r\n\r\n{}",
        b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"POST /v1/heartbeat HTTP/1.1\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\na",
    ],
)
async def test_what_is_not_http_is_a_problem_too(node: Harness, data: bytes) -> None:
    answer = await raw(node, data)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), answer
    assert b"application/problem+json" in answer
    assert (await node.get("/groups"))["groups"] == []


POST = b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (
            b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n",
            "the request line or a header is too long; expected at most 8190",
        ),
        (POST + b"X: " + b"y" * 9_000 + b"\r\n\r\n", "the request line or a header is too long; expected at most 8190"),
        (POST + b"Content-Length: many\r\n\r\n{}", "this is not valid HTTP: invalid character in Content-Length"),
        (b"GET / HTTP/9.9\r\n\r\n", "this is not valid HTTP: the request line does not end with HTTP/1.0 or HTTP/1.1"),
        (b"GET http://[x HTTP/1.1\r\nHost: x\r\n\r\n", "this is not valid HTTP: the request line has no path or URL"),
        (POST + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n{}{}{}{}{", "the body cannot be read: "),
    ],
)
async def test_what_is_not_http_is_described_in_one_sentence(node: Harness, data: bytes, detail: str) -> None:
    answer = await raw(node, data)
    problem: str = json.loads(answer.partition(b"\r\n\r\n")[2])["detail"]
    assert problem.startswith(detail), problem
    assert not problem.endswith((":", ".", " "))
    assert problem.isprintable()
    assert "bytearray" not in problem


@pytest.mark.parametrize(
    "header", [b"Kafka-Client-Id: caf\xe9", b"Kafka-Client-Id: a\x1fb", b"Kafka-Principal: User:\xff\xfe"]
)
async def test_headers_that_are_not_text_are_refused(node: Harness, header: bytes) -> None:
    head = (
        b"POST /v1/join-group HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n" + header
    )
    answer = await raw(node, head + b"\r\nContent-Length: %d\r\n\r\n" % len(JOIN) + JOIN)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), answer
    assert (await node.get("/groups"))["groups"] == []


async def test_a_request_may_come_byte_by_byte(node: Harness) -> None:
    request = b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    request += b"Content-Length: 47\r\n\r\n"
    request += b'{"groupId":"g","generationId":1,"memberId":"m"}'
    answer = await raw(node, *(request[index : index + 1] for index in range(len(request))))
    assert b"Kafka-Error: UNKNOWN_MEMBER_ID" in answer


async def test_a_body_that_never_comes_is_given_up(serve: Any) -> None:
    node = await serve({"body_seconds": 0.05})
    answer = await raw(
        node,
        b"POST /v1/join-group HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        + JOIN[:40],
    )
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert (await node.get("/groups"))["groups"] == []


async def test_half_a_request_changes_nothing(node: Harness) -> None:
    for whole in (
        b"POST /v1/join-gr",
        b"POST /v1/join-group HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n" + JOIN[:40],
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(whole)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    assert (await node.get("/groups"))["groups"] == []


async def test_an_announced_body_is_asked_for(node: Harness) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    head = (
        b"POST /v1/join-group HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(JOIN)
    )
    writer.write(head)
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(JOIN)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
    writer.close()
    await writer.wait_closed()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({info.alias or name for api in APIS for name, info in api.request.model_fields.items()})
NEARLY = st.dictionaries(
    st.sampled_from(FIELDS), st.just("g") | st.just([]) | st.integers(-2, 2**40) | JSON, min_size=1, max_size=6
)


async def _try_everywhere(node: Harness, bodies: Any, examples: int) -> None:
    """Post bodies to every route of a node with a Stable group; nothing may break, and the group stays."""
    await node.topic("orders", 2)
    await node.stable("steady")
    before = await node.get("/groups/steady")
    loop = asyncio.get_running_loop()

    async def post(body: bytes) -> None:
        for path in ROUTES:
            answered = await node.request("POST", path, body)
            assert answered.status in {200, 400, 405}, (path, answered.status, answered.body)
            if answered.status == 200:
                assert b'"errorCode":-1' not in answered.body, (path, answered.body)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(bodies)
    def attempt(body: bytes) -> None:
        asyncio.run_coroutine_threadsafe(post(body), loop).result(30)

    await asyncio.to_thread(attempt)
    assert await node.get("/groups/steady") == before
    assert node.app.metrics.events["core_failed"] == 0


async def test_random_bytes_at_every_route(node: Harness) -> None:
    await _try_everywhere(node, st.binary(max_size=64), 40)


async def test_random_json_at_every_route(node: Harness) -> None:
    await _try_everywhere(node, JSON.map(lambda value: json.dumps(value).encode()), 40)


async def test_nearly_right_messages_at_every_route(node: Harness) -> None:
    await _try_everywhere(node, NEARLY.map(lambda value: json.dumps(value).encode()), 60)


async def test_lone_surrogates_come_in_nowhere(node: Harness) -> None:
    for path in (api.path for api in APIS):
        answered = await node.request("POST", path, b'{"groupId":"\\udc80","memberId":"\\ud83d"}')
        assert_problem(answered)


async def test_opaque_bytes_come_back_as_they_were(node: Harness) -> None:
    await node.topic("orders", 1)
    member_id = await node.member_id("g")
    metadata = "+/7/AA=="
    protocols = [{"name": "range", "metadata": metadata}, {"name": "other", "metadata": subscription("orders")}]
    joining = await node.parked("JoinGroup", join("g", member_id, protocols=protocols))
    node.clock.advance(3_000)
    assert (await joining)["members"][0]["metadata"] == metadata
    body = sync("g", member_id, 1, {})
    body["assignments"] = [{"memberId": member_id, "assignment": metadata}]
    assert (await node.call("SyncGroup", body))["assignment"] == metadata
