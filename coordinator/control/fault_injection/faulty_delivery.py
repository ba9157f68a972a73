"""Faulty delivery of an answer: slow, cut short at the end of its connection, or with a wrong value."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, cast

from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule, WrongValue
from rejoin.coordinator.control.sent_requests import RequestsQuery, sent_requests
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.protocol.records.batch_run import whole
from rejoin.protocol.wire.record_batch import size_at
from rejoin.transcript.steps import StepRecorder

_STEP_MS: Final = 100
"""The shortest time between two pieces of a slow answer."""
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class FaultyDelivery:
    """Delivers the answers that a rule applies to. ``sleep`` waits on the node's clock."""

    def __init__(self, rule: FaultRule, sleep: Callable[[Millis], Awaitable[None]]) -> None:
        self._rule = rule
        self._sleep = sleep

    @property
    def is_cut(self) -> bool:
        """Whether the connection ends with the answer."""
        return self._rule.cut_after_bytes is not None

    async def write(self, answer: bytes, transport: asyncio.WriteTransport) -> bool:
        """Write an answer, or what is left of it; returns whether the connection goes on."""
        rule = self._rule
        left = answer[: rule.cut_after_bytes]
        if rule.bytes_per_second is None:
            transport.write(left)
        else:
            for piece, wait_ms in _paced(left, rule.bytes_per_second):
                await self._sleep(wait_ms)
                if transport.is_closing():
                    return False
                transport.write(piece)
        if not self.is_cut:
            return True
        if rule.reset:
            _reset(transport)
        else:
            transport.close()
        return False


def _paced(data: bytes, bytes_per_second: int) -> Iterator[tuple[bytes, Millis]]:
    """The pieces of an answer, each with the time that passes before it."""
    size = max(1, bytes_per_second * _STEP_MS // 1_000)
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        yield piece, round(len(piece) * 1_000 / bytes_per_second)


def _reset(transport: asyncio.WriteTransport) -> None:
    """End a connection with RST instead of FIN."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()


def with_wrong_value(wrong: WrongValue, request: Request, response: Response, recorder: StepRecorder) -> Response:
    """An answer as a broker with a bug has given it."""
    match wrong:
        case "offset_zero":
            return cast(Response, _changed(response, {"offset": lambda _: 0, "committed_offset": lambda _: 0}))
        case "older_epoch":
            older = _changed(response, dict.fromkeys(("leader_epoch", "committed_leader_epoch"), _one_less))
            return cast(Response, older)
        case "stale_leader":
            assert isinstance(response, MetadataResponse), "the rule is for Metadata only"
            return _with_other_leaders(response)
        case "old_assignment":
            assert isinstance(request, SyncGroupRequest), "the rule is for SyncGroup only"
            return _with_old_assignment(request, response, recorder)
        case "flipped_bit":
            assert isinstance(response, FetchResponse), "the rule is for Fetch only"
            return _with_flipped_bit(response)


def _changed(part: Any, changes: dict[str, Callable[[int], int]]) -> Any:
    """A struct with some of its fields changed, at any depth."""
    updated: dict[str, Any] = {}
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name in changes and isinstance(value, int):
            updated[name] = changes[name](value)
        elif isinstance(value, tuple) and value and hasattr(value[0], "model_copy"):
            updated[name] = tuple(_changed(each, changes) for each in value)
    return part.model_copy(update=updated) if updated else part


def _with_other_leaders(response: MetadataResponse) -> MetadataResponse:
    """Every partition is led by the next broker, in the epoch before: as it may have been before a failover."""
    brokers = [broker.node_id for broker in response.brokers]

    def before(leader: int) -> int:
        return brokers[(brokers.index(leader) + 1) % len(brokers)] if leader in brokers else leader

    stale: MetadataResponse = _changed(response, {"leader_id": before, "leader_epoch": _one_less})
    return stale


def _one_less(epoch: int) -> int:
    """The epoch before; the first, or one that is unknown, stays."""
    return epoch - 1 if epoch > 0 else epoch


def _with_old_assignment(request: SyncGroupRequest, response: Response, recorder: StepRecorder) -> Response:
    """Assignment of the member in the previous generation, if it was in that."""
    before = [
        sent.response
        for sent in sent_requests(recorder.all(), RequestsQuery(api="SyncGroup"))
        if isinstance(sent.request, SyncGroupRequest)
        and (sent.request.group_id, sent.request.member_id) == (request.group_id, request.member_id)
        and sent.request.generation_id < request.generation_id
        and isinstance(sent.response, SyncGroupResponse)
        and sent.response.error_code is ErrorCode.NONE
    ]
    last = before[-1] if before else None
    if last is None or not isinstance(response, SyncGroupResponse) or response.error_code is not ErrorCode.NONE:
        return response
    return response.model_copy(update={"assignment": last.assignment})


def _with_flipped_bit(response: FetchResponse) -> FetchResponse:
    """The last bit of the first batch is another one, so that its checksum is wrong; batches behind it are whole."""
    topics = []
    is_done = False
    for topic in response.responses:
        partitions = []
        for partition in topic.partitions:
            records = whole(partition.records or b"")
            if records and not is_done:
                is_done = True
                data = bytearray(records)
                data[min(size_at(records), len(data)) - 1] ^= 1
                partition = partition.model_copy(update={"records": bytes(data)})  # noqa: PLW2901
            partitions.append(partition)
        topics.append(topic.model_copy(update={"partitions": tuple(partitions)}))
    return response.model_copy(update={"responses": tuple(topics)})
