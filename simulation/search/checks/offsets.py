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


def offsets_of_a_topic_that_is_gone_stay(observed: Observations) -> Iterator[str]:
    """A leader that served when a topic was deleted, or one after it, has offsets of that topic.

    Kafka: a TxnOffsetCommit is still written if its topic goes while its transaction is verified.
    """
    if not observed.topics:
        return
    simulation = observed.simulation
    for group_id, group in simulation.scenario.groups.items():
        if group.commit == "transaction":
            continue
        node = simulation.cluster.leader_of(group_id)
        shard = None if node is None else node.shard(group_id)
        if node is None or node.core is None or shard is None or not shard.is_active or shard.appends_in_flight:
            continue
        gone = observed.topics.forgotten(shard.partition, shard.epoch)
        for each in node.core.describe_offsets(group_id, simulation.world.now):
            if each.topic in gone:
                yield f"{group_id}: {each.offset} of {each.topic}-{each.partition}"


def a_non_member_commits(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(OffsetCommitResponse):
        request = request_of(exchange, OffsetCommitRequest)
        error = observed.commit_verdicts.pop(exchange, NONE)
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        if error is not NONE and NONE in codes:
            yield f"{request.member_id} of generation {request.generation_id_or_member_epoch}, which is {error.name}"
