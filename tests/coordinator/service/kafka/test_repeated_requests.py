"""Heartbeats that are alike but for their correlation id: each is served, and answered as the group is then."""

from __future__ import annotations

import struct

from rejoin.coordinator.testing.starting import running
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import Peer, framed, heartbeat, join_group, request, string

NONE = struct.pack(">h", 0)
REBALANCE_IN_PROGRESS = struct.pack(">h", 27)
UNKNOWN_MEMBER_ID = struct.pack(">h", 25)


async def _serve(serve: Serve) -> Harness:
    """A node whose clock runs, so that a group can be formed."""
    return await serve({"kafka_port": 0, "clock": None}, group_initial_rebalance_delay_ms=0)


def _connect(node: Harness) -> Peer:
    return Peer(node.app.endpoints[0].port)


async def join_alone(peer: Peer, group: str) -> str:
    """Join alone, and get the assignment; returns the member id."""
    joined = await peer.ask(join_group(group))
    error, generation = struct.unpack_from(">hi", joined)
    assert (error, generation) == (0, 1)
    member = joined[13:].partition(b"test-")[2]
    member_id = "test-" + member[:36].decode()
    assignment = struct.pack(">i", 1) + string(member_id) + struct.pack(">i", 0)
    synced = await peer.ask(request(14, 0, 2, string(group) + struct.pack(">i", 1) + string(member_id) + assignment))
    assert synced[:2] == NONE
    return member_id


async def test_the_answer_changes_with_the_group(serve: Serve) -> None:
    node = await _serve(serve)
    async with _connect(node) as peer, _connect(node) as other:
        member_id = await join_alone(peer, "g")
        for correlation in (3, 70_000, -1):
            peer.send(heartbeat("g", member_id, correlation=correlation))
            assert await peer.receive() == (correlation, NONE)
        other.send(join_group("g"))
        while (await peer.ask(heartbeat("g", member_id))) == NONE:
            """Until the other member has come."""
        assert await peer.ask(heartbeat("g", member_id)) == REBALANCE_IN_PROGRESS
        left = await peer.ask(request(13, 0, 4, string("g") + string(member_id)))
        assert left == NONE
        assert await peer.ask(heartbeat("g", member_id)) == UNKNOWN_MEMBER_ID
        assert await peer.ask(heartbeat("g", member_id, generation=2)) == UNKNOWN_MEMBER_ID


async def test_pieces_and_neighbours_are_no_repetition(serve: Serve) -> None:
    node = await _serve(serve)
    async with _connect(node) as peer:
        member_id = await join_alone(peer, "g")
        assert await peer.ask(heartbeat("g", member_id)) == NONE
        peer.send(*(heartbeat("g", member_id, correlation=number) for number in (5, 6, 7)))
        assert [await peer.receive() for _ in range(3)] == [(5, NONE), (6, NONE), (7, NONE)]
        whole = framed(heartbeat("g", member_id, correlation=8))
        for cut in (3, 9, len(whole) - 1):
            peer.send_bytes(whole[:cut])
            # What is answered in between shows that the first piece has arrived by itself.
            async with _connect(node) as other:
                await other.ask(heartbeat("g", "nobody"))
            peer.send_bytes(whole[cut:])
            assert await peer.receive() == (8, NONE)
        assert await peer.ask(heartbeat("g", member_id + "x")) == UNKNOWN_MEMBER_ID
        assert await peer.ask(heartbeat("h", member_id)) == UNKNOWN_MEMBER_ID


async def test_each_is_counted(serve: Serve) -> None:
    node = await _serve(serve)
    async with _connect(node) as peer:
        member_id = await join_alone(peer, "g")
        for _ in range(5):
            assert await peer.ask(heartbeat("g", member_id)) == NONE
    async with node.session.get(node.app.url + "/metrics") as response:
        shown = await response.text()
    assert 'requests_total{error="NONE",request="Heartbeat"} 5' in shown
    assert 'total_time_ms_count{request="Heartbeat"} 5' in shown


async def test_each_is_recorded() -> None:
    async with running(clock="virtual") as coordinator, Peer(coordinator.app.endpoints[0].port) as peer:
        for _ in range(3):
            assert await peer.ask(heartbeat("g", "m")) == UNKNOWN_MEMBER_ID
        assert len(await coordinator.requests("Heartbeat")) == 3
