"""WriteTxnMarkers (key 27): end a transaction on some partitions. Transaction coordinators and administrators send it.

v2 says for each marker which version of transactions it belongs to.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int8, Int16, Int32, PartitionIndex, ProducerId, TopicName


class WritableTxnMarkerTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partition_indexes: tuple[PartitionIndex, ...]


class WritableTxnMarker(Struct):
    """The end of one producer's transaction: true commits, false aborts."""

    producer_id: ProducerId
    producer_epoch: Int16
    transaction_result: bool
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, In(2)] = 0


class WriteTxnMarkersRequest(Request):
    """Write transaction markers."""

    markers: tuple[WritableTxnMarker, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        markers = (
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in self.markers
        )
        return WriteTxnMarkersResponse(markers=tuple(markers))


class WritableTxnMarkerPartitionResult(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE


class WritableTxnMarkerTopicResult(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


class WritableTxnMarkerResult(Struct):
    """The results for one producer."""

    producer_id: ProducerId = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


class WriteTxnMarkersResponse(Response):
    """A result for each marker and partition."""

    markers: tuple[WritableTxnMarkerResult, ...] = ()
