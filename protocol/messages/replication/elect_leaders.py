"""ElectLeaders (key 43): let preferred replicas lead, or any replica where none in sync is alive (KIP-183, KIP-460).

v1 adds unclean elections and an error for the whole response.
"""

from enum import IntEnum
from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int8, Int32, PartitionIndex, TopicName


class ElectionType(IntEnum):
    """Kinds of elections: for the preferred leader, or for any live replica where a partition has no leader."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectedTopicPartitions(Struct):
    """Partitions of one topic."""

    topic: TopicName
    partitions: tuple[PartitionIndex, ...]


class ElectLeadersRequest(Request):
    """Elect leaders; null stands for all partitions. Types: 0 preferred, 1 unclean."""

    election_type: Annotated[Int8, In(1)] = 0
    topic_partitions: tuple[ElectedTopicPartitions, ...] | None
    timeout_ms: Int32 = 60_000

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        results = tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionElectionResult(partition_id=index, error_code=error, error_message=message)
                    for index in topic.partitions
                ),
            )
            for topic in self.topic_partitions or ()
        )
        return ElectLeadersResponse(error_code=error, replica_election_results=results)


class PartitionElectionResult(Struct):
    """The outcome for one partition."""

    IS_REPEATED = True

    partition_id: PartitionIndex
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReplicaElectionResult(Struct):
    """Outcomes for partitions of one topic."""

    IS_REPEATED = True

    topic: TopicName
    partition_result: tuple[PartitionElectionResult, ...]


class ElectLeadersResponse(Response):
    """Outcomes by topic; for all partitions, only those that had another leader than the preferred one."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[ErrorCode, In(1)] = ErrorCode.NONE
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
