"""A recorded run with refusals plays again: its transcript has principals and ACLs."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.transcript.player import play

DENIED = "deny User:billing:READ:group=orders-app"


async def test_a_refused_commit_is_refused_when_it_is_played_again() -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=4, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    request = OffsetCommitRequest(
        group_id="orders-app", generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )
    settings = {"allow.everyone.if.no.acl.found": "true"}

    async def commit() -> ErrorCode:
        response: Any = await coordinator.call(request, 8, client_id="billing-1")
        error: ErrorCode = response.topics[0].partitions[0].error_code
        return error

    async with running(
        clock="virtual",
        topics={"orders": 1},
        socket=False,
        settings=settings,
        principals={"billing*": "User:billing"},
        acls=[DENIED],
    ) as coordinator:
        assert await commit() is ErrorCode.GROUP_AUTHORIZATION_FAILED
        await coordinator.set_acls(delete=[DENIED])
        assert await commit() is ErrorCode.NONE
        transcript = await coordinator.transcript()
    assert f"acl {DENIED}\n" in transcript
    assert f"acl gone {DENIED}\n" in transcript
    assert " principal User:billing\n" in transcript
    assert "GROUP_AUTHORIZATION_FAILED" in transcript
    assert not play(transcript).differing
