"""SCRAM: a password is proven without being sent, and the broker has keys made of it (RFC 5802).

Kafka: ScramFormatter, ScramMessages, ScramSaslServer, ScramSaslClient.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rejoin.protocol.sasl.exchange import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    AuthenticationFailed,
    InvalidCredentials,
    UnreadableToken,
)

HASHES: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
MECHANISM_NUMBERS: Final = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
"""Kafka: ScramMechanism.type."""

ITERATIONS: Final = 4_096
MOST_ITERATIONS: Final = 16_384
"""As many as Kafka allows."""

TOKEN_LOGIN: Final = ",tokenauth=true"
"""The extension by which a client logs in with a delegation token. Kafka: ScramLoginModule.TOKEN_AUTH_CONFIG."""

_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_RESERVED: Final = rf"(?:m={_VALUE},)?"

_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,(?P<bare>{_RESERVED}n=(?P<name>{_SASLNAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = re.compile(
    rf"{_RESERVED}r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")
_CREDENTIAL: Final = re.compile(
    rf"salt=(?P<salt>{_BASE64}),stored_key=(?P<stored>{_BASE64}),server_key=(?P<server>{_BASE64}),"
    r"iterations=(?P<iterations>[0-9]{1,9})"
)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A broker's keys in place of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential(...)"

    def __str__(self) -> str:
        """The form in which Kafka keeps it."""
        salt, stored, server = map(_text, (self.salt, self.stored_key, self.server_key))
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"

    @classmethod
    def parse(cls, text: str) -> ScramCredential:
        """Read Kafka's form. Raises ``ValueError``, which does not show it."""
        found = _CREDENTIAL.fullmatch(text.strip())
        if found is None:
            raise ValueError("expected salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=NUMBER")
        iterations = int(found["iterations"])
        if not ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ValueError(f"iterations={iterations}: expected {ITERATIONS} to {MOST_ITERATIONS}")
        return cls(_bytes(found["salt"]), _bytes(found["stored"]), _bytes(found["server"]), iterations)

    @classmethod
    def of(cls, mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> ScramCredential:
        """The keys of a password."""
        return cls.of_salted(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
        """The keys of a salted password."""
        client_key, server_key = (_hmac(mechanism, salted, name) for name in (b"Client Key", b"Server Key"))
        return cls(salt, hashlib.new(HASHES[mechanism], client_key).digest(), server_key, iterations)

    def is_of(self, mechanism: str, password: str) -> bool:
        """Whether these are the keys of a password."""
        other = self.of(mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(self.stored_key, other.stored_key)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The hash of a password from which all keys are made (RFC 5802: Hi)."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """Keys of a delegation token: its id is the user, and a login is its owner's until it expires."""

    keys: ScramCredential
    owner: str
    expires_at: int
    """In milliseconds since 1970."""


def _no_token(_: str) -> None:
    return None


class ScramServer:
    """The broker's side. ``nonce`` is the broker's part of the nonce.

    ``credential_of`` has the keys of a user, and ``token_of`` those of a delegation token.
    """

    def __init__(
        self,
        mechanism: str,
        credential_of: Callable[[str], ScramCredential | None],
        nonce: str,
        token_of: Callable[[str], TokenCredential | None] = _no_token,
    ) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_of = token_of
        self._nonce = nonce
        self._credential: ScramCredential | None = None
        self._messages: tuple[str, str] | None = None
        self.is_complete = False
        self.name = ""
        self.expires_at: int | None = None
        self.by_token = False

    def evaluate(self, token: bytes) -> bytes:
        text = token.decode("utf-8", "replace")
        return (self._first(text) if self._messages is None else self._final(text)).encode()

    def _first(self, text: str) -> str:
        message = _CLIENT_FIRST.fullmatch(text)
        if message is None:
            raise InvalidCredentials("the client's first message is malformed")
        name = message["name"].replace("=2C", ",").replace("=3D", "=")
        self.by_token = _has_token(message["extensions"])
        found = self._token_of(name) if self.by_token else self._credential_of(name)
        if found is None:
            missing = "token has this id" if self.by_token else "user of this name has keys for this mechanism"
            raise InvalidCredentials(f"no {missing}")
        if message["authzid"] not in {None, name}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if isinstance(found, TokenCredential):
            self.name, self.expires_at, credential = found.owner, found.expires_at, found.keys
        else:
            self.name, credential = name, found
        self._credential, self._nonce = credential, message["nonce"] + self._nonce
        answer = f"r={self._nonce},s={_text(credential.salt)},i={credential.iterations}"
        self._messages = message["bare"], answer
        return answer

    def _final(self, text: str) -> str:
        message = _CLIENT_FINAL.fullmatch(text)
        assert self._credential is not None, "the first message came before"
        assert self._messages is not None, "the first message came before"
        if message is None:
            raise InvalidCredentials("the client's final message is malformed")
        # Kafka asks for the end only, so that a nonce with something ahead of it passes here; its proof would not.
        if not message["nonce"].endswith(self._nonce):
            raise InvalidCredentials("the nonce does not match")
        signed = ",".join((*self._messages, message["bare"])).encode()
        proof = _bytes(message["proof"])
        signature = _hmac(self._mechanism, self._credential.stored_key, signed)
        if len(proof) != len(signature):
            raise UnreadableToken(f"a proof of {len(proof)} bytes; expected {len(signature)}")
        stored_key = hashlib.new(HASHES[self._mechanism], _xor(proof, signature)).digest()
        if not hmac.compare_digest(stored_key, self._credential.stored_key):
            raise InvalidCredentials("the proof does not match the password")
        self.is_complete = True
        return f"v={_text(_hmac(self._mechanism, self._credential.server_key, signed))}"


def _has_token(extensions: str) -> bool:
    """Whether a client logs in by a token. Of two extensions of one name the last counts."""
    pairs = dict(pair.split("=", 1) for pair in extensions.split(",") if pair)
    return pairs.get("tokenauth", "").lower() == "true"


class ScramClient:
    """The client's side. ``nonce`` must be new for every exchange.

    ``extensions`` are pairs with a comma before each, as :data:`TOKEN_LOGIN`.
    """

    def __init__(
        self,
        mechanism: str,
        name: str,
        password: str,
        nonce: str,
        *,
        extensions: str = "",
        authorization_id: str = "",
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._header = f"n,{f'a={authorization_id}' if authorization_id else ''},"
        self._bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}{extensions}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return f"{self._header}{self._bare}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        text = challenge.decode("utf-8", "replace")
        if self._server_signature is not None:
            self._check_final(text)
            return None
        message = _SERVER_FIRST.fullmatch(text)
        if message is None or not message["nonce"].startswith(self._nonce):
            raise AuthenticationFailed(
                f"{self._mechanism}: the broker's first message is malformed or of another login"
            )
        iterations = int(message["iterations"])
        if not ITERATIONS <= iterations <= 1_000_000:
            raise AuthenticationFailed(f"{self._mechanism}: the broker asks for {iterations} iterations")
        salted = salted_password(self._mechanism, self._password, _bytes(message["salt"]), iterations)
        bare = f"c={_text(self._header.encode())},r={message['nonce']}"
        signed = f"{self._bare},{text},{bare}".encode()
        client_key, server_key = (_hmac(self._mechanism, salted, name) for name in (b"Client Key", b"Server Key"))
        stored_key = hashlib.new(HASHES[self._mechanism], client_key).digest()
        proof = _xor(client_key, _hmac(self._mechanism, stored_key, signed))
        self._server_signature = _hmac(self._mechanism, server_key, signed)
        return f"{bare},p={_text(proof)}".encode()

    def _check_final(self, text: str) -> None:
        message = _SERVER_FINAL.fullmatch(text)
        if message is None or message["error"] is not None:
            raise AuthenticationFailed(f"{self._mechanism}: the broker refused: {text[:200]}")
        assert self._server_signature is not None, "the first message came before"
        if not hmac.compare_digest(_bytes(message["signature"]), self._server_signature):
            raise AuthenticationFailed(f"{self._mechanism}: the broker does not know the password: its proof is wrong")


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=False))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidCredentials("this is not base64") from None
