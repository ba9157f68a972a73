"""DescribeQuorum (key 55): leader, voters and observers of the metadata quorum (KIP-595).

v1 adds times (KIP-836); v2 adds directories, nodes and messages (KIP-853).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, BrokerId, In, Int32, Int64, KafkaUuid, PartitionIndex, TopicName, UInt16


class DescribeQuorumPartition(Struct):
    """A partition to describe."""

    partition_index: PartitionIndex


class DescribeQuorumTopic(Struct):
    """Partitions of one topic."""

    topic_name: TopicName
    partitions: tuple[DescribeQuorumPartition, ...]


class DescribeQuorumRequest(Request):
    """Describe partitions; only ``__cluster_metadata`` has a quorum."""

    topics: tuple[DescribeQuorumTopic, ...]

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return DescribeQuorumResponse(error_code=error, error_message=message)


class QuorumReplicaState(Struct):
    """How far a replica has got."""

    replica_id: BrokerId
    replica_directory_id: Annotated[KafkaUuid, In(2)] = ZERO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, In(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, In(1)] = -1


class QuorumPartition(Struct):
    """A partition's quorum."""

    partition_index: PartitionIndex
    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(2)] = ""
    leader_id: BrokerId = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: tuple[QuorumReplicaState, ...] = ()
    observers: tuple[QuorumReplicaState, ...] = ()


class QuorumTopic(Struct):
    """Partitions of one topic."""

    topic_name: TopicName
    partitions: tuple[QuorumPartition, ...]


class QuorumListener(Struct):
    """A listener of a voter's controller."""

    name: str
    host: str
    port: UInt16


class QuorumNode(Struct):
    """A voter's listeners."""

    node_id: BrokerId
    listeners: tuple[QuorumListener, ...]


class DescribeQuorumResponse(Response):
    """The quorum, and the listeners of its voters."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(2)] = ""
    topics: tuple[QuorumTopic, ...] = ()
    nodes: Annotated[tuple[QuorumNode, ...], In(2)] = ()
