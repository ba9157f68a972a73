"""OAUTHBEARER: a token of an authorization server (RFC 7628). Kafka: OAuthBearerSaslServer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rejoin.protocol.sasl.exchange import AuthenticationFailed, InvalidCredentials, UnreadableToken

_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_GIVEN_UP: Final = b"\x01"
_INVALID_TOKEN: Final = '{"status":"invalid_token"}'


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token that is valid: whose it is, and until when."""

    name: str
    expires_at: int
    """In milliseconds since 1970."""


class OAuthBearerServer:
    """The broker's side. ``validate`` gives the token, or none for one that is not valid."""

    def __init__(self, validate: Callable[[str], BearerToken | None]) -> None:
        self._validate = validate
        self._error: str | None = None
        self.is_complete = False
        self.name = ""
        self.expires_at: int | None = None
        self.by_token = False

    def evaluate(self, token: bytes) -> bytes:
        if token == _GIVEN_UP and self._error is not None:
            raise AuthenticationFailed(self._error)
        self._error = None
        message = _FIRST.fullmatch(token.decode("utf-8", "replace"))
        if message is None:
            raise InvalidCredentials("the client's first message is malformed")
        pairs = dict(pair.split("=", 1) for pair in message["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None:
            raise InvalidCredentials("the client's first message has no token")
        if auth["scheme"].lower() != "bearer":
            raise UnreadableToken(f"a token of scheme {auth['scheme'][:32]}; expected Bearer")
        found = self._validate(auth["token"])
        if found is None:
            self._error = _INVALID_TOKEN
            return self._error.encode()
        if message["authzid"] not in {None, found.name}:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({message['authzid']}) that is "
                f"different from the token's principal name ({found.name})"
            )
        self.is_complete, self.name, self.expires_at = True, found.name, found.expires_at
        return b""


class OAuthBearerClient:
    """The client's side."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._refusal: str | None = None

    def first(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        # The broker has refused; it says so in the answer to this.
        return _GIVEN_UP
