"""CreateDelegationToken (key 38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

A delegation token stands for its owner until it expires (KIP-48). Create v3 adds an owner other than the requester, and
Describe v3 the requester (KIP-373). Instants are milliseconds since 1970.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Bytes, In, Int32, Int64

NO_TIMESTAMP = -1
_ANONYMOUS = "ANONYMOUS"
_USER = "User"


class CreatableRenewer(Struct):
    """A principal that may renew and expire the token as well as its owner."""

    principal_type: str
    principal_name: str


class CreateDelegationTokenRequest(Request):
    """Make a token. Without an owner it is the requester's own; a lifetime of 0 or less is the longest."""

    owner_principal_type: Annotated[str | None, In(3)] = None
    owner_principal_name: Annotated[str | None, In(3)] = None
    renewers: tuple[CreatableRenewer, ...]
    max_lifetime_ms: Int64

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return CreateDelegationTokenResponse(
            error_code=error,
            principal_type=_USER,
            principal_name=_ANONYMOUS,
            token_requester_principal_type=_USER,
            token_requester_principal_name=_ANONYMOUS,
            issue_timestamp_ms=NO_TIMESTAMP,
            expiry_timestamp_ms=NO_TIMESTAMP,
            max_timestamp_ms=NO_TIMESTAMP,
        )


class CreateDelegationTokenResponse(Response):
    """The token: its id is the user name of a login by SCRAM, and its HMAC in base64 the password."""

    error_code: ErrorCode = ErrorCode.NONE
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, In(3)] = ""
    token_requester_principal_name: Annotated[str, In(3)] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: str = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0


class RenewDelegationTokenRequest(Request):
    """Let a token expire later, at the end of its longest lifetime at most; a period of 0 or less is the default."""

    hmac: Bytes
    renew_period_ms: Int64

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return RenewDelegationTokenResponse(error_code=error)


class RenewDelegationTokenResponse(Response):
    """The instant at which the token expires."""

    error_code: ErrorCode = ErrorCode.NONE
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0


class ExpireDelegationTokenRequest(Request):
    """Let a token expire at another time; a period below 0 removes it at once."""

    hmac: Bytes
    expiry_time_period_ms: Int64

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ExpireDelegationTokenResponse(error_code=error)


class ExpireDelegationTokenResponse(Response):
    """The instant at which the token expires."""

    error_code: ErrorCode = ErrorCode.NONE
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0


class DescribeDelegationTokenOwner(Struct):
    """A principal whose tokens are asked for."""

    principal_type: str
    principal_name: str


class DescribeDelegationTokenRequest(Request):
    """List tokens that these principals own, requested or may renew; null stands for all, an empty list for none."""

    owners: tuple[DescribeDelegationTokenOwner, ...] | None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DescribeDelegationTokenResponse(error_code=error)


class DescribedDelegationTokenRenewer(Struct):
    """A principal that may renew the token."""

    principal_type: str
    principal_name: str


class DescribedDelegationToken(Struct):
    """A token with the HMAC by which its users log in."""

    principal_type: str
    principal_name: str
    token_requester_principal_type: Annotated[str, In(3)] = ""
    token_requester_principal_name: Annotated[str, In(3)] = ""
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: str
    hmac: Bytes
    renewers: tuple[DescribedDelegationTokenRenewer, ...]


class DescribeDelegationTokenResponse(Response):
    """The tokens that the client may see."""

    error_code: ErrorCode = ErrorCode.NONE
    tokens: tuple[DescribedDelegationToken, ...] = ()
    throttle_time_ms: Int32 = 0
