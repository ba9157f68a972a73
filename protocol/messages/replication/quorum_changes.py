"""UnregisterBroker (key 64), AddRaftVoter (80), RemoveRaftVoter (81), UnregisterController (94): who is in the cluster.

AddRaftVoter v1 adds ``ackWhenCommitted``. KIP-500, KIP-853.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, In, Int32, KafkaUuid, UInt16


class UnregisterBrokerRequest(Request):
    """Forget a broker that does not run any more."""

    broker_id: BrokerId

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return UnregisterBrokerResponse(error_code=error, error_message=message)


class UnregisterBrokerResponse(Response):
    """The outcome."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class VoterListener(Struct):
    """A listener of a voter's controller."""

    name: str
    host: str
    port: UInt16


class AddRaftVoterRequest(Request):
    """Add a controller to the voters."""

    cluster_id: str | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: KafkaUuid
    listeners: tuple[VoterListener, ...]
    ack_when_committed: Annotated[bool, In(1)] = True

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return AddRaftVoterResponse(error_code=error, error_message=message)


class AddRaftVoterResponse(Response):
    """The outcome."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class RemoveRaftVoterRequest(Request):
    """Remove a controller from the voters."""

    cluster_id: str | None
    voter_id: Int32
    voter_directory_id: KafkaUuid

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return RemoveRaftVoterResponse(error_code=error, error_message=message)


class RemoveRaftVoterResponse(Response):
    """The outcome."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class UnregisterControllerRequest(Request):
    """Forget a controller that does not run any more."""

    controller_id: Int32

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return UnregisterControllerResponse(error_code=error, error_message=message)


class UnregisterControllerResponse(Response):
    """The outcome."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
