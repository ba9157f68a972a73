"""The control API in front of a cluster, which is a broker of ours in this process."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.proxy.control.control import ProxyControl
from rejoin.proxy.control.http import ControlListener
from rejoin.proxy.control.running import controlled_proxy, started
from rejoin.proxy.service import Proxy, ProxyOptions
from tests.proxy.test_other_groups import TOPOLOGY
from tests.proxy.wire import FrameClient

AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
STREAMS = {
    "groupId": "words",
    "memberId": "b" * 22,
    "memberEpoch": 0,
    "endpointInformationEpoch": -1,
    "topology": TOPOLOGY,
    "processId": "p-1",
    "rebalanceTimeoutMs": 60_000,
    "activeTasks": [],
    "standbyTasks": [],
    "warmupTasks": [],
    "clientTags": [],
}
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@dataclass
class Controlled:
    """A cluster, a proxy in front of it, and the proxy's control API."""

    cluster: GroupCoordinator
    proxy: Proxy
    control: ProxyControl
    url: str
    http: aiohttp.ClientSession
    stack: AsyncExitStack

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        url = f"{self.url}/control{path}"
        json = (body or {}) if method == "POST" else None
        async with self.http.request(method, url, headers=headers, json=json) as answer:
            kind = answer.content_type
            return answer.status, await (answer.json() if "json" in kind else answer.text())

    async def client(self) -> FrameClient:
        client = await FrameClient.connect(self.proxy.port)
        self.stack.push_async_callback(client.close)
        return client


@asynccontextmanager
async def controlled(token: str | None = None) -> AsyncIterator[Controlled]:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(running(topics={"orders": 3}, settings=AT_ONCE))
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        proxy, control = await started(stack, ProxyOptions(bootstrap=((host, int(port)),)))
        listener = ControlListener(control, "127.0.0.1", 0, token)
        await listener.start()
        stack.push_async_callback(listener.stop)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)))
        yield Controlled(cluster, proxy, control, listener.url, http, stack)


async def joined(client: FrameClient) -> tuple[str, int]:
    """The id and generation of a member that is alone in its group."""
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    first = await client.ask(join)
    answer = await client.ask(join.model_copy(update={"member_id": first.member_id}))
    return answer.member_id, answer.generation_id


async def test_rules_are_made_listed_waited_for_and_removed() -> None:
    async with controlled() as stand:
        status, made = await stand.ask("POST", "/faults", {"keys": "Heartbeat", "error": "NOT_COORDINATOR", "count": 2})
        assert (status, made["id"], made["hits"]) == (200, "1", 0)
        client = await stand.client()
        waits = asyncio.create_task(stand.ask("POST", "/faults/1/wait", {"hits": 1, "timeout_ms": 10_000}))
        assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.NOT_COORDINATOR
        assert (await waits)[1]["hits"] == 1
        assert [each["id"] for each in (await stand.ask("GET", "/faults"))[1]["faults"]] == ["1"]
        assert (await stand.ask("DELETE", "/faults/1"))[0] == 200
        assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
        status, problem = await stand.ask("GET", "/faults/1")
        assert (status, problem["type"]) == (404, "urn:rejoin:problem:unknown-fault")
        status, problem = await stand.ask("POST", "/faults", {"keys": "Heartbeet"})
        assert status == 400
        assert "is it Heartbeat?" in problem["detail"]


async def test_requests_are_recorded_with_the_answers_that_clients_got() -> None:
    async with controlled() as stand:
        client = await stand.client()
        await client.ask(HEARTBEAT, client_id="first")
        mark = (await stand.ask("GET", "/mark"))[1]["mark"]
        for rule in (
            {"keys": "Heartbeat", "error": "NOT_COORDINATOR"},
            {"keys": "Heartbeat", "error": "REBALANCE_IN_PROGRESS", "when": "after"},
            {"keys": "Heartbeat", "throttle_ms": 7},
            {"keys": "Heartbeat", "cut_after_bytes": 3},
            {"keys": "Heartbeat", "when": "drop_response"},
            {"keys": "Heartbeat", "when": "drop_request"},
        ):
            await stand.ask("POST", "/faults", rule)
        for _ in range(3):
            await client.ask(HEARTBEAT, client_id="second")
        for _ in range(3):
            client.send(HEARTBEAT, client_id="second")
            await client.at_end()
            client = await stand.client()
        requests = (await stand.ask("GET", f"/requests?api=Heartbeat&since={mark}"))[1]["requests"]
        assert {each["client_id"] for each in requests} == {"second"}
        answers = [each["response"] for each in requests]
        errors = [answer and ErrorCode(answer["errorCode"]).name for answer in answers]
        assert errors == ["NOT_COORDINATOR", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", None, None, None]
        assert answers[2]["throttleTimeMs"] == 7
        _, log = await stand.ask("GET", "/request-log")
        assert log.count('"requestApiKeyName":"HEARTBEAT"') >= 3
        _, text = await stand.ask("GET", f"/transcript?since={mark}")
        assert "Heartbeat v4" in text
        assert "REBALANCE_IN_PROGRESS" in text
        assert "first" not in text


async def test_a_group_is_waited_for_as_the_cluster_has_it() -> None:
    async with controlled() as stand:
        client = await stand.client()
        wanted = {"group": "g", "state": "Stable", "members": 1, "generation": 1, "timeout_ms": 5_000}
        waits = asyncio.create_task(stand.ask("POST", "/groups/wait", wanted))
        member, generation = await joined(client)
        await client.ask(SyncGroupRequest(group_id="g", generation_id=generation, member_id=member, assignments=()), 4)
        status, answer = await waits
        assert status == 200, answer
        assert (answer["group"]["state"], answer["group"]["generation"]) == ("Stable", 1)
        assert [each["client_id"] for each in answer["group"]["members"]] == ["c"]
        status, answer = await stand.ask("POST", "/groups/wait", {**wanted, "members": 2, "timeout_ms": 1})
        assert (status, answer["group"]["state"]) == (409, "Stable")
        assert answer["detail"].startswith(
            "group 'g' was not Stable in generation 1 or later with 2 members within 1 ms"
        )
        status, answer = await stand.ask("POST", "/groups/wait", {"group": "none", "state": "Dead"})
        assert (status, answer) == (200, {"group": None})


async def test_share_and_streams_groups_are_those_that_the_cluster_describes() -> None:
    async with controlled() as stand:
        client = await stand.client()
        share = ShareGroupHeartbeatRequest(
            group_id="jobs", member_id="a" * 22, member_epoch=0, subscribed_topic_names=("orders",)
        )
        assert (await client.ask(share)).error_code is ErrorCode.NONE
        wanted = {"group": "jobs", "members": 1, "timeout_ms": 5_000}
        status, answer = await stand.ask("POST", "/share-groups/wait", wanted)
        assert status == 200, answer
        status, answer = await stand.ask("POST", "/share-groups/wait", {**wanted, "members": 2, "timeout_ms": 1})
        assert (status, "did not have 2 members within 1 ms; it is Stable" in answer["detail"]) == (409, True), answer
        status, answer = await stand.ask("POST", "/share-groups/wait", {**wanted, "acquired": 1})
        assert (status, answer["type"]) == (409, "urn:rejoin:problem:real-cluster")
        assert "answers no request for them" in answer["detail"]
        streams = StreamsGroupHeartbeatRequest.parse(json.dumps(STREAMS), 1)
        assert (await client.ask(streams)).error_code is ErrorCode.NONE
        wanted = {"group": "words", "members": 1, "epoch": 1, "timeout_ms": 5_000}
        status, answer = await stand.ask("POST", "/streams-groups/wait", wanted)
        assert status == 200, answer
        group = answer["group"]
        assert [(each["process_id"], each["client_id"]) for each in group["members"]] == [("p-1", "c")]
        assert [each["source_topics"] for each in group["subtopologies"]] == [["orders"]]
        assert (await stand.ask("GET", "/streams-groups/state?group=words"))[1]["group"]["group_epoch"] >= 1
        status, answer = await stand.ask("GET", "/streams-groups/state?group=jobs")
        assert (status, answer["type"]) == (409, "urn:rejoin:problem:not-streams")
        for path, body in (
            ("/streams-groups/shut-down", {"group": "words"}),
            ("/share-groups/expire-lock", {"group": "jobs", "topic": "orders", "partition": 0, "offset": 1}),
        ):
            assert (await stand.ask("POST", path, body))[0] == 409


async def test_a_rule_that_observes_counts_and_changes_nothing() -> None:
    async with controlled() as stand:
        everything = (await stand.ask("POST", "/faults", {"when": "observe", "group": "g", "count": -1}))[1]["id"]
        await stand.ask("POST", "/faults", {"keys": "Heartbeat", "error": "NOT_COORDINATOR"})
        client = await stand.client()
        assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.NOT_COORDINATOR
        assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
        await client.ask(OffsetCommitRequest(group_id="h", topics=()))
        assert (await stand.ask("GET", f"/faults/{everything}"))[1]["hits"] == 2


async def test_what_needs_a_clock_or_a_state_of_ours_is_refused_with_the_reason() -> None:
    async with controlled() as stand:
        bodies: dict[str, Any] = {
            "/clock": {"advance_ms": 1},
            "/snapshot": {},
            "/reset": {},
            "/groups/expire": {"group": "g", "client_id": "c"},
            "/groups/kick": {"group": "g", "client_id": "c"},
            "/topics/produce": {"topic": "orders", "records": 1},
        }
        for path, body in bodies.items():
            status, problem = await stand.ask("POST", path, body)
            kind = "real-clock" if path == "/clock" else "real-cluster"
            assert (status, problem.get("type")) == (409, f"urn:rejoin:problem:{kind}"), (path, problem)
            assert "real cluster" in problem["detail"]
        status, described = await stand.ask("GET", "")
        assert (status, described["clock"], described["faults"]) == (200, "real", 0)
        assert described["bootstrap_servers"] == stand.proxy.bootstrap_servers


async def test_the_control_has_the_token_and_the_paths_of_serve() -> None:
    async with controlled("secret") as stand:
        assert (await stand.ask("GET", "/mark"))[0] == 401
        assert (await stand.ask("GET", "/mark", Authorization="Bearer secret"))[0] == 200
        async with stand.http.get(f"{stand.url}/groups") as answer:
            assert answer.status == 404


async def test_a_taken_port_is_refused_with_the_option_that_names_it() -> None:
    options = ProxyOptions(bootstrap=(("127.0.0.1", 1),))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with AsyncExitStack() as stack:
            with pytest.raises(ValueError, match=f"^--control-port {port}: cannot listen on 127.0.0.1:{port}: "):
                await controlled_proxy(stack, options, None, "127.0.0.1", port, None)
