"""DescribeCluster (key 60): the nodes (KIP-700). v1 adds the endpoint type (KIP-919), v2 fenced nodes."""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, In, Int8, Int32


class DescribeClusterRequest(Request):
    """Describe the cluster; endpoint type 1 means its brokers, 2 its controllers."""

    include_cluster_authorized_operations: bool
    endpoint_type: Annotated[Int8, In(1)] = 1
    include_fenced_brokers: Annotated[bool, In(2, needed=True)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DescribeClusterResponse(error_code=error, error_message=error.name)


class DescribeClusterBroker(Struct):
    """A node."""

    broker_id: BrokerId = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None
    is_fenced: Annotated[bool, In(2)] = False


class DescribeClusterResponse(Response):
    """The nodes."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    endpoint_type: Annotated[Int8, In(1)] = 1
    cluster_id: str = ""
    controller_id: BrokerId = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: Int32 = -2147483648
