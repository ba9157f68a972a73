"""Who may log in to a node, by mechanism: the same for both protocols."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.service.security.stored_credentials import StoredCredentials
from rejoin.coordinator.service.security.tokens import Tokens
from rejoin.coordinator.service.security.users import Users, users_from
from rejoin.protocol.sasl.exchange import MECHANISMS, OAUTHBEARER, PLAIN, SaslServer
from rejoin.protocol.sasl.oauthbearer import BearerToken, OAuthBearerServer
from rejoin.protocol.sasl.plain import PlainServer
from rejoin.protocol.sasl.scram import HASHES, ScramCredential, ScramServer, TokenCredential

_NONCE_BYTES: Final = 24


class Logins:
    """Makes the broker's side of a login. Raises ``ValueError`` for users, keys or mechanisms that cannot be used."""

    def __init__(self, settings: Settings, users: Users | None = None) -> None:
        self._users = users_from(settings) if users is None else users
        self._tokens = Tokens(settings)
        has_tokens = bool(settings.sasl_oauthbearer_jwks_endpoint_url or settings.emulator_oauthbearer_unsecured)
        self.mechanisms = _mechanisms(settings, has_users=bool(self._users), has_tokens=has_tokens)

    def server(self, mechanism: str, stored: StoredCredentials) -> SaslServer | None:
        """The broker's side of a new login; none for a mechanism that is not enabled."""
        if mechanism not in self.mechanisms:
            return None
        if mechanism == PLAIN:
            return PlainServer(self._users.verify)
        if mechanism == OAUTHBEARER:
            return OAuthBearerServer(lambda text: self._validated(text, stored.now))
        return ScramServer(
            mechanism,
            lambda name: self._credential(mechanism, name, stored),
            secrets.token_urlsafe(_NONCE_BYTES),
            lambda token_id: _token_credential(mechanism, token_id, stored),
        )

    def _credential(self, mechanism: str, name: str, stored: StoredCredentials) -> ScramCredential | None:
        if stored.scram.is_removed(mechanism, name):
            return None
        return stored.scram.credential(mechanism, name) or self._users.credential(mechanism, name)

    def _validated(self, text: str, now: Callable[[], Millis]) -> BearerToken | None:
        """A token of an authorization server. It ends by the machine's clock, which a node need not have."""
        found = self._tokens.validate(text)
        if found is None:
            return None
        return replace(found, expires_at=found.expires_at - int(time.time() * 1_000) + now())

    def verify(self, name: str, password: str) -> bool:
        """Whether a password is a user's, where passwords are enabled at all."""
        return any(each != OAUTHBEARER for each in self.mechanisms) and self._users.verify(name, password)

    def token(self, text: str) -> BearerToken | None:
        """A token that is valid, where tokens are enabled."""
        return self._tokens.validate(text) if OAUTHBEARER in self.mechanisms else None


def _token_credential(mechanism: str, token_id: str, stored: StoredCredentials) -> TokenCredential | None:
    keys = stored.tokens.credential(mechanism, token_id)
    if keys is None:
        return None
    token = stored.tokens.by_id[token_id]
    return TokenCredential(keys, token.owner.partition(":")[2], token.expires_at)


def _mechanisms(settings: Settings, *, has_users: bool, has_tokens: bool) -> tuple[str, ...]:
    wanted = [each.strip() for each in settings.sasl_enabled_mechanisms.split(",") if each.strip()]
    # Clients may make the users of SCRAM, so none need be there at the start.
    has_keys = {each: has_users or (each in HASHES and each in wanted) for each in MECHANISMS}
    possible = tuple(each for each in MECHANISMS if (has_tokens if each == OAUTHBEARER else has_keys[each]))
    for each in wanted:
        if each not in MECHANISMS:
            raise ValueError(f"sasl.enabled.mechanisms: {each}: expected some of {', '.join(MECHANISMS)}")
        if each not in possible:
            expected = (
                "sasl.oauthbearer.jwks.endpoint.url, or emulator.oauthbearer.unsecured=true"
                if each == OAUTHBEARER
                else "users (--users-file)"
            )
            raise ValueError(f"sasl.enabled.mechanisms: {each}: expected {expected} too")
    if not possible:
        raise ValueError("a listener has SASL, but no client could log in: expected users (--users-file) or tokens")
    return tuple(each for each in possible if not wanted or each in wanted)
