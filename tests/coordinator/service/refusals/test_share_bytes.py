"""Acknowledgements of a share group with one wrong byte, over the socket: one connection pays for it."""

from __future__ import annotations

import struct
from typing import Final

import pytest

from rejoin.coordinator.testing import GroupCoordinator, running
from tests.coordinator.service.kafka.frames import Peer, compact, request
from tests.coordinator.testing.share_member import ACCEPT, GROUP, TOPICS, member_of

SHARE_ACKNOWLEDGE: Final = 79
HELD: Final = 4


def share_acknowledge(topic_id: bytes, epoch: int) -> bytes:
    """ShareAcknowledge 1 of a member that has no session: every record of partition 0 that member a holds."""
    batch = struct.pack(">qq", 0, HELD - 1) + b"\2" + bytes([ACCEPT]) + b"\0"
    partition = struct.pack(">i", 0) + b"\2" + batch + b"\0"
    topic = topic_id + b"\2" + partition + b"\0"
    body = b"\0" + compact(GROUP) + compact("foreign") + struct.pack(">i", epoch) + b"\2" + topic + b"\0"
    return request(SHARE_ACKNOWLEDGE, 1, 1, body)


async def answered(coordinator: GroupCoordinator, data: bytes) -> bytes:
    """All that comes back before the connection ends."""
    async with Peer(coordinator.app.endpoints[0].port) as peer:
        peer.send(data)
        peer._writer.write_eof()
        return await peer.rest()


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
async def test_one_wrong_byte_disturbs_no_other_member(mask: int) -> None:
    async with running(clock="virtual", topics=TOPICS) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, HELD)
        assert await member.fetch() == [(0, HELD - 1, 1)]
        right = share_acknowledge(bytes(15) + b"\1", 1)
        frame_of_answer = await answered(coordinator, right)
        assert struct.unpack(">i", frame_of_answer[4:8]) == (1,), "a whole answer has the request's correlation id"
        for at in range(len(right)):
            wrong = bytearray(right)
            wrong[at] ^= mask
            data = await answered(coordinator, bytes(wrong))
            assert not data or len(data) == 4 + struct.unpack(">i", data[:4])[0], f"byte {at}: an answer or none"
        assert await member.acknowledge(0, HELD - 1, ACCEPT) == 0
