"""PLAIN: user and password in one token (RFC 4616). Kafka: PlainSaslServer."""

from __future__ import annotations

from collections.abc import Callable

from rejoin.protocol.sasl.exchange import AuthenticationFailed


class PlainServer:
    """The broker's side. ``verify`` says whether a password is that of a user."""

    def __init__(self, verify: Callable[[str, str], bool]) -> None:
        self._verify = verify
        self.is_complete = False
        self.name = ""
        self.expires_at: int | None = None
        self.by_token = False

    def evaluate(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", 4)[:4]
        if len(parts) != 3:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        if not self._verify(name, password):
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id not in {"", name}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.is_complete, self.name = True, name
        return b""


class PlainClient:
    """The client's side."""

    def __init__(self, name: str, password: str) -> None:
        self._token = f"\0{name}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def evaluate(self, challenge: bytes) -> bytes | None:
        return None
