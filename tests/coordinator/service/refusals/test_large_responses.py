"""A response that would be too large is an error and one line of the log; its connection and the node go on."""

from __future__ import annotations

import io
import json
import struct
from typing import Any, Final

from rejoin.coordinator.service import logs
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.registry import DESCRIBE_GROUPS, JOIN_GROUP, Api
from rejoin.protocol.wire.codec import codec_of
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.kafka.frames import Peer

METADATA: Final = bytes(2**20)
NAMES: Final = ("g",) * 200
UNKNOWN_SERVER_ERROR: Final = -1


async def ask(peer: Peer, api: Api, version: int, message: Any) -> Any:
    codec = codec_of(api.key, version)
    assert codec is not None
    peer.send_bytes(codec.request_frame(1, "test", message))
    correlation, body = await peer.receive()
    return codec.read_response_frame(struct.pack(">i", correlation) + body)[1]


async def test_too_much_in_one_response(serve: Serve) -> None:
    stream = io.StringIO()
    logs.configure("warning", stream)
    try:
        node = await serve({"kafka_port": 0, "clock": None}, group_initial_rebalance_delay_ms=0)
        async with Peer(node.app.endpoints[0].port) as peer:
            protocols = (JoinGroupRequestProtocol(name="range", metadata=METADATA),)
            join = JoinGroupRequest(
                group_id="g", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=protocols
            )
            joined = await ask(peer, JOIN_GROUP, 1, join.model_copy(update={"rebalance_timeout_ms": 10_000}))
            assert joined.error_code == 0
            synced = {"groupId": "g", "generationId": 1, "memberId": joined.member_id, "assignments": []}
            await node.call("SyncGroup", synced, 0)
            for _ in range(2):
                described = await ask(peer, DESCRIBE_GROUPS, 4, DescribeGroupsRequest(groups=NAMES))
                assert [group.error_code for group in described.groups] == [UNKNOWN_SERVER_ERROR] * len(NAMES)
            one = await ask(peer, DESCRIBE_GROUPS, 4, DescribeGroupsRequest(groups=("g",)))
            assert one.groups[0].members[0].member_metadata == METADATA
        over_http = await node.call("DescribeGroups", {"groups": NAMES, "includeAuthorizedOperations": False}, 4)
        assert {group["errorCode"] for group in over_http["groups"]} == {UNKNOWN_SERVER_ERROR}
    finally:
        logs.configure("critical")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    refused = [line for line in lines if line.get("api") == "DescribeGroups"]
    assert [line["event"] for line in refused] == ["request_refused"] * 2, "one line for each transport"
    assert {line["error"] for line in refused} == {"UNKNOWN_SERVER_ERROR"}
    assert {line["reason"] for line in refused} == {
        "the response is too large; expected at most 104,857,600 bytes; ask for less in one request"
    }
