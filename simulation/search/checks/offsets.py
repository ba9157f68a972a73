"""Commits are taken from members only, and acknowledged when they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of

NONE: Final = ErrorCode.NONE


def a_commit_is_acknowledged_before_it_is_stored(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(OffsetCommitResponse):
        request = request_of(exchange, OffsetCommitRequest)
        wanted = {(t.name, p.partition_index): p.committed_offset for t in request.topics for p in t.partitions}
        for topic in response.topics:
            for partition in topic.partitions:
                key = (topic.name, partition.partition_index)
                if partition.error_code is NONE and wanted[key] not in observed.written(request.group_id, *key):
                    yield f"{topic.name}-{partition.partition_index}={wanted[key]} is not in the log"


def a_non_member_commits(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(OffsetCommitResponse):
        request = request_of(exchange, OffsetCommitRequest)
        error = observed.commit_verdicts.pop(exchange, NONE)
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        if error is not NONE and NONE in codes:
            yield f"{request.member_id} of generation {request.generation_id_or_member_epoch}, which is {error.name}"
