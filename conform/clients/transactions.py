"""Troubles of a program that consumes, transforms and produces in transactions: its acts and checks."""

from __future__ import annotations

from typing import Any, Final

from rejoin.conform.clients.checks import failed, not_applicable
from rejoin.conform.clients.observed import ClientLife, ClientOutcome, ClientVerdict, is_accepted, only
from rejoin.conform.clients.stage import OTHER, TroubleStage
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest

OF_TRANSACTIONS: Final = (
    "Produce",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
    "InitProducerId",
)
FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
MOST_AFTER_FENCING: Final = 8
"""Requests of a fenced producer that were in flight (Kafka: five at most), or that try to abort its transaction."""

_TRANSACTION_TIMEOUT_MS: Final = 60_000
_NONE: Final = "it uses no transactions"


async def fence_producer(stage: TroubleStage) -> None:
    """Another producer begins with the transactional id of the client, which is fenced by that."""

    def has_committed(life: ClientLife) -> bool:
        return any(map(is_accepted, only(life.requests, "EndTxn")))

    transactional_id = await _used_by(stage)
    if transactional_id is None or not await stage.until(has_committed, stage.limits.meeting):
        return
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS)
    for _ in range(100):
        answer: Any = await stage.coordinator.call(request, client_id=OTHER)
        if answer.error_code is ErrorCode.NONE:
            break
        await stage.until(lambda _: False, 0.1)
    await stage.until(lambda life: fenced_at(life) is not None, stage.limits.meeting)


async def refuse_offsets(stage: TroubleStage) -> None:
    """Answer a TxnOffsetCommit as one that comes from a member of an older generation."""
    if await _used_by(stage) is not None:
        fault = await stage.coordinator.add_fault(keys="TxnOffsetCommit", error="ILLEGAL_GENERATION")
        await stage.until(lambda _: fault.hits > 0, stage.limits.meeting)


def stays_fenced(life: ClientLife) -> ClientVerdict:
    """Ends for good: another producer has its transactional id now."""
    if _transactional_id(life.requests) is None:
        return not_applicable(_NONE)
    hit = fenced_at(life)
    if hit is None:
        return not_applicable("it sent nothing as a producer after it was fenced")
    rest = list(only(life.after(hit), *OF_TRANSACTIONS))
    again = [each for each in only(rest, "InitProducerId") if is_accepted(each)]
    if again:
        return failed("began anew with its transactional id, and so fences the other producer", again)
    if len(rest) > MOST_AFTER_FENCING:
        return failed(f"sent {len(rest)} more requests as the producer that was fenced", rest)
    return ClientVerdict(ClientOutcome.PASSED)


def aborts(life: ClientLife) -> ClientVerdict:
    """Aborts the transaction whose offsets were refused."""
    if _transactional_id(life.requests) is None:
        return not_applicable(_NONE)
    hit = life.index_of(ErrorCode.ILLEGAL_GENERATION, ("TxnOffsetCommit",))
    if hit is None:
        return not_applicable("it commits no offsets in its transactions")
    ends: list[Any] = [each.request for each in only(life.after(hit), "EndTxn")]
    if not ends:
        return failed("did not abort the transaction", life.requests[hit:])
    if ends[0].committed:
        return failed("committed the transaction without its offsets", life.requests[hit:])
    return ClientVerdict(ClientOutcome.PASSED)


def fenced_at(life: ClientLife) -> int | None:
    """Index of the first request that was refused since another producer has the transactional id."""
    found = [index for error in FENCED if (index := life.index_of(error, OF_TRANSACTIONS)) is not None]
    return min(found, default=None)


async def _used_by(stage: TroubleStage) -> str | None:
    """The transactional id of the client; some begin with their producer after they have joined."""

    def is_known(life: ClientLife) -> bool:
        commits_alone = any(map(is_accepted, only(life.requests, "OffsetCommit")))
        return commits_alone or _transactional_id(life.requests) is not None

    await stage.until(is_known, stage.limits.meeting)
    return _transactional_id((await stage.life()).requests)


def _transactional_id(requests: tuple[RecordedRequest, ...]) -> str | None:
    ids: list[Any] = [each.request for each in only(requests, "InitProducerId")]
    return next((each.transactional_id for each in ids if each.transactional_id is not None), None)
