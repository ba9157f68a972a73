"""Requests that are recorded as bytes: read when they are asked for, and no more of them than are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from rejoin.coordinator.control.errors import StepsNotKept
from rejoin.coordinator.control.sent_requests import RequestsQuery
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from rejoin.proxy.control.control import ProxyControl
from rejoin.proxy.control.running import started
from rejoin.proxy.service import ProxyOptions
from tests.proxy.costs.bare import ANSWER, HEARTBEAT, BareConnection


@asynccontextmanager
async def recorded() -> AsyncIterator[tuple[ProxyControl, BareConnection]]:
    async with AsyncExitStack() as stack:
        proxy, control = await started(stack, ProxyOptions(bootstrap=(("127.0.0.1", 1),), port=0))
        yield control, BareConnection(proxy)


def heartbeat(number: int) -> HeartbeatRequest:
    return HEARTBEAT.model_copy(update={"generation_id": number})


async def test_what_passes_is_decoded_when_it_is_asked_for_and_once() -> None:
    async with recorded() as (control, connection):
        for number in range(3):
            connection.exchange(heartbeat(number), ANSWER, 4)
        encoded = [step.encoded is not None for step in control.recorder.keep().steps]
        assert encoded == [True] * 6
        found = control.evidence.requests(RequestsQuery())
        assert [each.request for each in found] == [heartbeat(number) for number in range(3)]
        assert [each.response for each in found] == [ANSWER] * 3
        assert [each.mark for each in found] == [1, 3, 5]
        again = control.evidence.requests(RequestsQuery())
        assert all(one.request is other.request for one, other in zip(found, again, strict=True))
        assert control.group_ids() == ["g"]


async def test_decoding_keeps_to_the_bound_of_memory_and_drops_the_oldest() -> None:
    async with recorded() as (control, connection):
        names = OffsetFetchRequest(
            group_id="g", topics=tuple(OffsetFetchRequestTopic(name="", partition_indexes=()) for _ in range(2_000))
        )
        for number in range(20):
            connection.exchange(heartbeat(number), None, 4)
            connection.exchange(names, None, 7)
        recorder = control.recorder
        recorder.kept_bytes = 1 << 20
        assert recorder.size < recorder.kept_bytes
        assert recorder.first == 0
        with pytest.raises(StepsNotKept, match="mark 0 is not kept"):
            control.evidence.requests(RequestsQuery())
        assert recorder.size <= recorder.kept_bytes
        assert 0 < recorder.first < recorder.mark == 40
        found = control.evidence.requests(RequestsQuery(since=recorder.first))
        assert [each.mark for each in found] == list(range(recorder.first + 1, 41))
        assert found[-1].request == names


async def test_a_request_that_waits_is_known_by_its_group() -> None:
    async with recorded() as (control, connection):
        sync = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=())
        connection.exchange(heartbeat(1), None, 4)
        connection.exchange(sync, None, 3)
        assert control.recording.parked("g") == [sync]
        assert control.recording.parked("other") == []


async def test_bytes_that_are_no_message_are_recorded_as_nothing() -> None:
    async with recorded() as (control, connection):
        connection.exchange(heartbeat(1), None, 4)
        frame = bytearray(connection.to_broker.written[0])
        # The group's name becomes longer than the frame.
        frame[frame.index(b"\x02g")] = 0x7F
        connection.relay.client.data_received(bytes(frame))
        assert [each.request for each in control.evidence.requests(RequestsQuery())] == [heartbeat(1)]
