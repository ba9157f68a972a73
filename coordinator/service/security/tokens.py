"""Validates bearer tokens (JWT): signed by a key of a JWK set, or unsecured where that is allowed.

Kafka: OAuthBearerValidatorCallbackHandler, OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from rejoin.coordinator.config import Settings
from rejoin.files import read_text
from rejoin.protocol.sasl.oauthbearer import BearerToken

if TYPE_CHECKING:
    from jwt import PyJWKSet

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms with a public key: the file alone is not enough to make a token."""


class Tokens:
    """Validates tokens by the settings. Raises ``ValueError`` for keys that cannot be used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        url = settings.sasl_oauthbearer_jwks_endpoint_url
        self._keys = _keys_from(url) if url else None

    def validate(self, text: str) -> BearerToken | None:
        """The token, or none for one that is not valid."""
        if not text.isascii():
            return None
        head = _decoded(text.partition(".")[0])
        if head is None:
            return None
        if head.get("alg") == "none":
            claims = _unsecured_claims(text) if self._settings.emulator_oauthbearer_unsecured else None
        else:
            claims = self._signed_claims(text, head)
        return None if claims is None else self._token(claims)

    def _token(self, claims: dict[str, Any]) -> BearerToken | None:
        skew = self._settings.sasl_oauthbearer_clock_skew_seconds if self._keys is not None else 0
        name = claims.get(self._settings.sasl_oauthbearer_sub_claim_name)
        expires, issued = _number(claims.get("exp")), _number(claims.get("iat", 0))
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            return None
        if expires is None or issued is None:
            return None
        now = time.time()
        if expires + skew <= now or issued - skew > now or issued > expires:
            return None
        return BearerToken(name, int(min(expires, 2**40) * 1_000))

    def _signed_claims(self, text: str, head: dict[str, Any]) -> dict[str, Any] | None:
        if self._keys is None:
            return None
        import jwt  # noqa: PLC0415 (an extra)

        settings, key_id = self._settings, head.get("kid")
        audience = [each.strip() for each in settings.sasl_oauthbearer_expected_audience.split(",") if each.strip()]
        for key in self._keys.keys:
            if key_id is not None and key.key_id not in (None, key_id):
                continue
            try:
                claims: dict[str, Any] = jwt.decode(
                    text,
                    key,
                    algorithms=_ALGORITHMS,
                    audience=audience or None,
                    issuer=settings.sasl_oauthbearer_expected_issuer or None,
                    leeway=settings.sasl_oauthbearer_clock_skew_seconds,
                    options={"require": ["exp"], "verify_aud": bool(audience), "verify_sub": False},
                )
            except jwt.InvalidTokenError:
                continue
            return claims
        return None


def _keys_from(url: str) -> PyJWKSet:
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise ValueError(f"{_URL}={url}: expected the URL of a file, as file:/etc/keys.json")
    try:
        import cryptography  # noqa: F401, PLC0415 (PyJWT does without it, but knows no public keys then)
        import jwt  # noqa: PLC0415
    except ImportError:
        raise ValueError(f"{_URL}: needs PyJWT and cryptography: pip install 'rejoin-kafka[security]'") from None
    try:
        return jwt.PyJWKSet.from_json(read_text(unquote(parts.path)))
    except OSError as problem:
        raise ValueError(f"{_URL}={url}: {problem.strerror}") from None
    except (jwt.PyJWTError, ValueError, AttributeError):
        expected = 'expected a JWK set, as {"keys": [...]}, with a public key'
        raise ValueError(f"{_URL}={url}: {expected}") from None


def _unsecured_claims(text: str) -> dict[str, Any] | None:
    parts = text.split(".")
    return _decoded(parts[1]) if len(parts) == 3 and not parts[2] else None


def _decoded(part: str) -> dict[str, Any] | None:
    try:
        found = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars="-_", validate=True))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**60
    return float(value) if is_number else None  # type: ignore[arg-type]
