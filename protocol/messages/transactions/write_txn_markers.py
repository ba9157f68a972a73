"""WriteTxnMarkers (key 27): end a transaction on some partitions. Brokers send it to each other; here a test may."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Int16, Int32, Int64, Request, Response, Struct


class WritableTxnMarkerTopic(Struct):
    """Partitions of one topic."""

    name: str
    partition_indexes: tuple[Int32, ...]


class WritableTxnMarker(Struct):
    """The end of one producer's transaction: true commits, false aborts."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: bool
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: Int32


class WriteTxnMarkersRequest(Request):
    """Write transaction markers."""

    markers: tuple[WritableTxnMarker, ...]


class WritableTxnMarkerPartitionResult(Struct):
    """The result for one partition."""

    partition_index: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE


class WritableTxnMarkerTopicResult(Struct):
    """Partitions of one topic."""

    name: str = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


class WritableTxnMarkerResult(Struct):
    """The results for one producer."""

    producer_id: Int64 = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


class WriteTxnMarkersResponse(Response):
    """A result for each marker and partition."""

    markers: tuple[WritableTxnMarkerResult, ...] = ()
