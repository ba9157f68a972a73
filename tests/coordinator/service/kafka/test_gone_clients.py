"""Clients that go away while a request waits: a Fetch ends with its connection, and the JoinGroup of a member stays."""

from __future__ import annotations

import asyncio

from rejoin.coordinator.service.options import InitialTopic
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.protocol.registry import FETCH, SHARE_FETCH
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.kafka.frames import Peer, api_versions, join_group
from tests.coordinator.service.kafka.test_large_frames import TOPIC, frame

FOR_EVER = 2**31 - 1


async def test_a_fetch_that_waits_ends_with_its_connection(serve: Serve) -> None:
    node = await serve({"kafka_port": 0, "topics": (InitialTopic(TOPIC, 1, None),)})
    port = node.app.endpoints[0].port
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    topics = (FetchTopic(topic=TOPIC, partitions=(wanted,)),)
    fetch = frame(FETCH, 11, 1, FetchRequest(max_wait_ms=FOR_EVER, min_bytes=1, topics=topics))
    fetches = node.app.runtime.node._fetches
    async with Peer(port) as other, Peer(port) as staying:
        staying.send_bytes(fetch)
        peers = [Peer(port) for _ in range(5)]
        for peer in peers:
            await peer.__aenter__()
            peer.send_bytes(fetch)
        async with asyncio.timeout(10):
            while len(fetches.parked_tokens()) < 6:
                await other.ask(api_versions(0))
            for peer in peers:
                await peer.__aexit__(None, None, None)
            while len(fetches.parked_tokens()) > 1:
                await other.ask(api_versions(0))
        assert len(fetches.parked_tokens()) == 1


async def test_a_member_whose_connection_is_gone_still_joins(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    port = node.app.endpoints[0].port
    async with Peer(port) as other:
        async with Peer(port) as gone:
            gone.send(join_group("g"))
            async with asyncio.timeout(10):
                while not node.app.runtime.node.group_ids():
                    await other.ask(api_versions(0))
        for _ in range(10):
            await other.ask(api_versions(0))
        group = node.app.runtime.node.describe_group("g")
        assert group is not None
        assert len(group.members) == 1


async def test_a_share_session_ends_with_its_connection(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    port = node.app.endpoints[0].port
    opening = ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        topics=(),
        forgotten_topics_data=(),
    )
    next_one = opening.model_copy(update={"share_session_epoch": 1})
    async with Peer(port) as other:
        async with Peer(port) as gone:
            gone.send_bytes(frame(SHARE_FETCH, 1, 1, opening))
            assert _error_of(await gone.receive()) is ErrorCode.NONE
            other.send_bytes(frame(SHARE_FETCH, 1, 1, next_one))
            assert _error_of(await other.receive()) is ErrorCode.NONE, "the session is known by its member alone"
        next_one = opening.model_copy(update={"share_session_epoch": 2})
        async with asyncio.timeout(10):
            error = ErrorCode.NONE
            while error is not ErrorCode.SHARE_SESSION_NOT_FOUND:
                other.send_bytes(frame(SHARE_FETCH, 1, 1, next_one))
                error = _error_of(await other.receive())
                next_one = next_one.model_copy(update={"share_session_epoch": next_one.share_session_epoch + 1})


def _error_of(received: tuple[int, bytes]) -> ErrorCode:
    """The error of a ShareFetch response: tagged fields of the header, throttle time, error."""
    return ErrorCode(int.from_bytes(received[1][5:7], "big", signed=True))
