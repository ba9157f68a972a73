"""The login of one connection of Kafka's protocol: frames in, answers out, without I/O.

Kafka: SaslServerAuthenticator. Until it is complete only ApiVersions, SaslHandshake and SaslAuthenticate are served, in
this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from rejoin.coordinator.service.security.logins import Logins
from rejoin.coordinator.service.security.stored_credentials import NOTHING_STORED, StoredCredentials
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rejoin.protocol.registry import API_VERSIONS, SASL_HANDSHAKE
from rejoin.protocol.sasl.exchange import AuthenticationFailed, InvalidCredentials, SaslServer, UnreadableToken
from rejoin.protocol.wire.codec import Codec, RequestHeader, codec_of, read_request_header
from rejoin.protocol.wire.errors import SchemaError

_LENGTH_BYTES: Final = 4
TOO_MANY_FAILED: Final = "Too many logins from this address have failed; try again in a minute"
_FIRST_WITH_HEADERS: Final = 1
"""The version of SaslHandshake from which on tokens come as SaslAuthenticate."""


class Verdict(Enum):
    """Whether a connection goes on."""

    GOES_ON = auto()
    SERVE_API_VERSIONS = auto()
    LOGGED_IN = auto()
    REFUSED = auto()
    """The answer is held back for a while; then the connection ends."""
    CLOSED = auto()
    """At once, as after any request that cannot be read."""


class LoginStep(NamedTuple):
    """The next step after a frame. The reason is for the log."""

    verdict: Verdict
    answer: bytes = b""
    reason: str = ""


class _State(Enum):
    INITIAL = auto()
    HANDSHAKE = auto()
    """ApiVersions was served, so a handshake must follow."""
    AUTHENTICATE = auto()
    WRONG_MECHANISM = auto()
    COMPLETE = auto()


@dataclass(frozen=True, slots=True)
class Login:
    """A login that is complete. ``lifetime_ms`` is how long it lasts; none: as long as the connection."""

    mechanism: str
    name: str
    lifetime_ms: int | None
    by_token: bool = False
    """True where it was by a delegation token."""

    @property
    def principal(self) -> str:
        return f"User:{self.name}"


class Authenticator:
    """The server's side of one login. With ``before`` it is a further one on a connection, by the same principal."""

    def __init__(
        self,
        logins: Logins,
        max_lifetime_ms: int,
        before: Login | None = None,
        stored: StoredCredentials = NOTHING_STORED,
    ) -> None:
        self._logins = logins
        self._stored = stored
        self._max_lifetime_ms = max_lifetime_ms
        self._before = before
        self._state = _State.INITIAL
        self._has_headers = False
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._is_limited = False
        self.login: Login | None = None
        self.has_failed = False
        """Whether the client's credentials were wrong."""

    def receive(self, frame: bytes, now_ms: int, *, is_limited: bool = False) -> LoginStep:
        """Take the next frame of the client. ``now_ms`` is the time since 1970, by the node's clock.

        With ``is_limited`` too many logins of its address have failed, so a first login fails whatever it shows.
        """
        self._is_limited = is_limited and self._before is None
        match self._state:
            case _State.INITIAL | _State.HANDSHAKE:
                return self._handshake(frame)
            case _State.AUTHENTICATE:
                return self._authenticate(frame, now_ms) if self._has_headers else self._token(frame, now_ms)
        assert self._before is not None, "only a further login can have the wrong mechanism"
        return LoginStep(Verdict.REFUSED, reason=f"a new login with another mechanism than {self._before.mechanism}")

    # --- the handshake

    def _handshake(self, frame: bytes) -> LoginStep:
        try:
            header = read_request_header(frame)
        except SchemaError as problem:
            return LoginStep(Verdict.REFUSED, reason=f"expected a login, received no readable request: {problem}")
        if header.api_key == API_VERSIONS.key and self._before is None:
            return self._api_versions(header)
        if header.api_key != SASL_HANDSHAKE.key:
            # Kafka: IllegalSaslStateException, without an answer.
            return LoginStep(Verdict.REFUSED, reason=f"request {header.api_key} before a login by SASL")
        try:
            codec = _codec(header)
            request = codec.read_request(frame, header.body_at)
        except SchemaError as problem:
            return LoginStep(Verdict.CLOSED, reason=f"SaslHandshake: {problem}")
        assert isinstance(request, SaslHandshakeRequest)
        return self._choose(request.mechanism, codec, header)

    def _api_versions(self, header: RequestHeader) -> LoginStep:
        if self._state is _State.HANDSHAKE:
            return LoginStep(Verdict.CLOSED, reason="a second ApiVersions before the login")
        if API_VERSIONS.supports(header.api_version):
            self._state = _State.HANDSHAKE
        return LoginStep(Verdict.SERVE_API_VERSIONS)

    def _choose(self, mechanism: str, codec: Codec, header: RequestHeader) -> LoginStep:
        self._server = self._logins.server(mechanism, self._stored)
        mechanisms = self._logins.mechanisms
        if self._server is None:
            refused = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms)
            # Kafka: in a further login this ends the connection without an answer.
            answer = b"" if self._before is not None else codec.response_frame(header.correlation_id, refused)
            return LoginStep(Verdict.REFUSED, answer, f"mechanism {mechanism[:64]}: expected {', '.join(mechanisms)}")
        self._mechanism, self._has_headers = mechanism, header.api_version >= _FIRST_WITH_HEADERS
        is_same = self._before is None or self._before.mechanism == mechanism
        self._state = _State.AUTHENTICATE if is_same else _State.WRONG_MECHANISM
        response = SaslHandshakeResponse(mechanisms=mechanisms)
        return LoginStep(Verdict.GOES_ON, codec.response_frame(header.correlation_id, response))

    # --- tokens

    def _token(self, frame: bytes, now_ms: int) -> LoginStep:
        """A token without a header, which is answered by one."""
        try:
            answer, _ = self._evaluate(bytes(frame), now_ms)
        except AuthenticationFailed as problem:
            return LoginStep(Verdict.REFUSED, reason=f"{self._mechanism}: {problem}")
        except (InvalidCredentials, UnreadableToken) as problem:
            return LoginStep(Verdict.CLOSED, reason=f"{self._mechanism}: {problem}")
        return LoginStep(self._verdict, len(answer).to_bytes(_LENGTH_BYTES, "big") + answer)

    def _authenticate(self, frame: bytes, now_ms: int) -> LoginStep:
        try:
            header = read_request_header(frame)
            codec = _codec(header)
            request = codec.read_request(frame, header.body_at)
        except SchemaError as problem:
            return LoginStep(Verdict.CLOSED, reason=f"no SaslAuthenticate: {problem}")

        def answered(verdict: Verdict, response: Response, reason: str = "") -> LoginStep:
            return LoginStep(verdict, codec.response_frame(header.correlation_id, response), reason)

        if not isinstance(request, SaslAuthenticateRequest):
            refused = request.error_response(header.api_version, ErrorCode.ILLEGAL_SASL_STATE)
            return answered(Verdict.REFUSED, refused, f"{codec.api.name} in the middle of a login by SASL")
        try:
            answer, lifetime_ms = self._evaluate(bytes(request.auth_bytes), now_ms)
        except (AuthenticationFailed, InvalidCredentials) as problem:
            text = str(problem) if isinstance(problem, AuthenticationFailed) else self._invalid_credentials
            failed = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text)
            return answered(Verdict.REFUSED, failed, f"{self._mechanism}: {problem}")
        except UnreadableToken as problem:
            return LoginStep(Verdict.CLOSED, reason=f"{self._mechanism}: {problem}")
        response = SaslAuthenticateResponse(error_message="", auth_bytes=answer, session_lifetime_ms=lifetime_ms or 0)
        return answered(self._verdict, response)

    @property
    def _verdict(self) -> Verdict:
        return Verdict.GOES_ON if self.login is None else Verdict.LOGGED_IN

    @property
    def _invalid_credentials(self) -> str:
        # Kafka: no more than this, so that it cannot be found out which users there are.
        during = "authentication" if self._before is None else "re-authentication"
        return f"Authentication failed during {during} due to invalid credentials with SASL mechanism {self._mechanism}"

    def _evaluate(self, token: bytes, now_ms: int) -> tuple[bytes, int | None]:
        """The broker's token, and how long the login lasts if it is complete."""
        server = self._server
        assert server is not None, "a mechanism is chosen"
        if self._is_limited:
            # Differs: Kafka has no such limit; it only answers each failed login late.
            raise AuthenticationFailed(TOO_MANY_FAILED)
        try:
            answer = server.evaluate(token)
        except (AuthenticationFailed, InvalidCredentials, UnreadableToken):
            self.has_failed = True
            raise
        if not server.is_complete:
            return answer, None
        before = self._before
        if before is not None and before.name != server.name:
            text = f"Cannot change principals during re-authentication from User.{before.name}: User.{server.name}"
            raise AuthenticationFailed(text)
        left = [] if server.expires_at is None else [max(0, server.expires_at - now_ms)]
        if self._max_lifetime_ms:
            left.append(self._max_lifetime_ms)
        lifetime_ms = min(left, default=None)
        self.login = Login(self._mechanism, server.name, lifetime_ms, server.by_token)
        self._state = _State.COMPLETE
        return answer, lifetime_ms


def _codec(header: RequestHeader) -> Codec:
    codec = codec_of(header.api_key, header.api_version)
    if codec is None:
        raise SchemaError("header", f"request {header.api_key} in version {header.api_version}", "one that is offered")
    return codec
