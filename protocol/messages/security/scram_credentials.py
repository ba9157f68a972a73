"""AlterUserScramCredentials (key 51) and DescribeUserScramCredentials (50): the users of SCRAM (KIP-554).

Mechanisms are numbers: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512. A client sends the salted password and never the password.
"""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Bytes, Int8, Int32


class ScramCredentialDeletion(Struct):
    """A credential to remove."""

    name: str
    mechanism: Int8


class ScramCredentialUpsertion(Struct):
    """A credential to add, or to replace."""

    name: str
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


class AlterUserScramCredentialsRequest(Request):
    """Change credentials. With an error for one change of a user, none of that user's changes is made."""

    deletions: tuple[ScramCredentialDeletion, ...]
    upsertions: tuple[ScramCredentialUpsertion, ...]

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        names = dict.fromkeys([*(each.name for each in self.deletions), *(each.name for each in self.upsertions)])
        results = [
            AlterUserScramCredentialsResult(user=name, error_code=error, error_message=message) for name in names
        ]
        return AlterUserScramCredentialsResponse(results=tuple(results))


class AlterUserScramCredentialsResult(Struct):
    """The result for one user."""

    IS_REPEATED = True

    user: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class AlterUserScramCredentialsResponse(Response):
    """Results by user."""

    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...] = ()


class ScramUserName(Struct):
    """A user to describe."""

    name: str


class DescribeUserScramCredentialsRequest(Request):
    """List mechanisms and iterations of users; null and an empty list stand for all users."""

    users: tuple[ScramUserName, ...] | None

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        # Kafka: each result has the error and no name. Differs: Kafka does not answer at all where the list is null.
        result = DescribeUserScramCredentialsResult(user="", error_code=error, error_message=message)
        results = (result,) * len(self.users or ())
        return DescribeUserScramCredentialsResponse(error_code=error, error_message=message, results=results)


class ScramCredentialInfo(Struct):
    """A credential without its keys."""

    IS_REPEATED = True

    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    """Credentials of one user, or an error for it."""

    IS_REPEATED = True

    user: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    credential_infos: tuple[ScramCredentialInfo, ...] = ()


class DescribeUserScramCredentialsResponse(Response):
    """Results by user."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
