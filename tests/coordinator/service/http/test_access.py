"""No page of another site changes anything, and what needs the token is not done without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rejoin.coordinator.service.options import ControlOptions
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness, create_topics
from tests.coordinator.service.test_bad_input import raw

TOPIC = json.dumps(create_topics("orders", 1)).encode()
RESIGN = "/cluster/partitions/1/resign"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "localhost:9095"}, 200),
        ({"Host": "[::1]:9095"}, 200),
        ({"Host": "192.0.2.7"}, 200),
        ({"Host": "coordinator:9095"}, 200),
        ({"Host": "rejoin.default.svc.cluster.local"}, 200),
        ({"Host": "broker.example.com:9095"}, 200),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
async def test_who_may_change_something(serve: Serve, headers: dict[str, str], status: int) -> None:
    node = await serve({"advertised_host": "broker.example.com", "control": ControlOptions(), "clock": None})
    named: dict[str, Any] = {name.replace("-", "_"): value for name, value in headers.items()}
    for path, body in (
        ("/v1/create-topics", TOPIC),
        ("/control/faults", b'{"keys":"Heartbeat","error":"NOT_COORDINATOR"}'),
        (RESIGN, b""),
    ):
        assert (await node.request("POST", path, body, **named)).status == status, path
    if status != 200:
        assert ((await node.get("/topics"))["topics"], (await node.get("/control"))["faults"]) == ([], 0)


async def test_the_page_itself_may(node: Harness) -> None:
    assert (await node.request("POST", RESIGN, b"", Origin=node.app.url)).status == 200


async def test_nothing_is_shown_to_a_page_that_only_claims_to_be_here(node: Harness) -> None:
    answered = await node.request("GET", "/groups", None, Host="rebound.example")
    assert answered.status == 421
    assert "rebound.example is not this node; start it with --advertised-host" in answered.json["detail"]
    assert (await node.request("GET", "/groups", None, Sec_Fetch_Site="cross-site")).status == 200, (
        "a link may lead here"
    )


@pytest.mark.parametrize(
    ("given", "status"),
    [("", 401), ("Bearer wrong", 401), ("secret", 401), ("Bearer secret", 200), ("bearer secret", 200)],
)
async def test_resigning_needs_the_token(serve: Serve, given: str, status: int) -> None:
    for options in ({"token": "secret"}, {"control": ControlOptions(token="secret"), "clock": None}):
        node = await serve(options)
        assert (await node.request("POST", RESIGN, b"", Authorization=given)).status == status


async def test_beyond_this_machine_no_partition_is_resigned_without_a_token(serve: Serve) -> None:
    node = await serve({"host": "0.0.0.0"}, emulator_insecure=True)
    answered = await node.request("POST", RESIGN, b"", Host="127.0.0.1")
    assert (answered.status, "start it with --control-token-file" in answered.json["detail"]) == (403, True)


async def test_a_token_of_other_bytes_is_a_wrong_one(serve: Serve) -> None:
    node = await serve({"control": ControlOptions(token="secret"), "clock": None})
    for given in (b"Bearer \xff\xfe", b"Bearer caf\xc3\xa9", b"\xff"):
        answer = await raw(node, b"GET /control HTTP/1.0\r\nHost: x\r\nAuthorization: " + given + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.0 401 "), answer
