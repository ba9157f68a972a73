"""Delegation tokens: each stands for its owner, who may give it to others, until it expires (KIP-48).

Records have no HMAC: it is computed from the id and the secret of the settings, so a node with another secret knows the
tokens by other HMACs. Kafka: DelegationTokenCache, DelegationTokenManager.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis, TopicsRecords
from rejoin.coordinator.core.security.recorded_state import RecordedState
from rejoin.protocol.message import Struct
from rejoin.protocol.records.security import (
    DelegationTokenData,
    DelegationTokenRecord,
    RemoveDelegationTokenData,
    RemoveDelegationTokenRecord,
)
from rejoin.protocol.sasl.scram import ScramCredential

_SALT_BYTES: Final = 16


class SweepTimer(IntEnum):
    """Due when expired tokens are looked for."""

    EXPIRED_TOKENS = 8_100


class DelegationToken(NamedTuple):
    """A token. Principals are texts such as ``User:alice``; instants are milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at: Millis
    max_at: Millis
    """The end of its longest lifetime: it cannot be renewed beyond."""
    expires_at: Millis

    def has_expired(self, now: Millis) -> bool:
        """True once its time is over; at the very instant it is not."""
        return self.expires_at < now or self.max_at < now

    def may_be_renewed_by(self, principal: str) -> bool:
        """Whether a principal may renew it, and let it expire."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Whether a principal owns it, has asked for it, or may renew it."""
        return principal == self.requester or self.may_be_renewed_by(principal)


class DelegationTokens(RecordedState):
    """The tokens of the cluster, in the order in which they were made."""

    RECORDS: ClassVar[tuple[type[Struct], ...]] = (DelegationTokenRecord, RemoveDelegationTokenRecord)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.by_id: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether there is a secret. Without it no token is made, and none is of use."""
        return bool(self._secret)

    def hmac(self, token_id: str) -> bytes:
        """The HMAC of a token. Kafka: DelegationTokenManager.createHmac."""
        return hmac.digest(self._secret, token_id.encode(), hashlib.sha512)

    def with_hmac(self, of: bytes) -> DelegationToken | None:
        """The token that has this HMAC."""
        token_id = self._ids.get(of)
        return None if token_id is None else self.by_id[token_id]

    def credential(self, mechanism: str, token_id: str) -> ScramCredential | None:
        """Keys for a login by SCRAM with the id as the user and the HMAC in base64 as the password."""
        if not self.is_enabled or token_id not in self.by_id:
            return None
        key = (mechanism, token_id)
        found = self._credentials.get(key)
        if found is None:
            # Differs: Kafka draws a salt. Here the core draws nothing, and a hash of the HMAC is as hard to guess.
            salt = hmac.digest(self.hmac(token_id), b"salt", hashlib.sha256)[:_SALT_BYTES]
            password = base64.b64encode(self.hmac(token_id)).decode()
            found = self._credentials[key] = ScramCredential.of(mechanism, password, salt)
        return found

    def replay(self, record: DelegationTokenRecord | RemoveDelegationTokenRecord) -> None:
        data = record.data
        if isinstance(data, RemoveDelegationTokenData):
            self._remove(data.token_id)
            return
        self.by_id[data.token_id] = DelegationToken(
            data.token_id,
            data.owner,
            data.requester,
            data.renewers,
            data.issue_timestamp,
            data.max_timestamp,
            data.expiration_timestamp,
        )
        if self.is_enabled:
            self._ids[self.hmac(data.token_id)] = data.token_id

    def _remove(self, token_id: str) -> None:
        if self.by_id.pop(token_id, None) is None or not self.is_enabled:
            return
        del self._ids[self.hmac(token_id)]
        for key in [key for key in self._credentials if key[1] == token_id]:
            del self._credentials[key]

    def records(self) -> TopicsRecords:
        return tuple([stored(token) for token in self.by_id.values()])

    def clear(self) -> None:
        self.by_id.clear()
        self._ids.clear()
        self._credentials.clear()


def stored(token: DelegationToken) -> DelegationTokenRecord:
    """The record of a token, new or changed."""
    data = DelegationTokenData(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issued_at,
        max_timestamp=token.max_at,
        expiration_timestamp=token.expires_at,
        token_id=token.token_id,
    )
    return DelegationTokenRecord(data=data)


def removal(token_id: str) -> RemoveDelegationTokenRecord:
    """The record that removes a token."""
    return RemoveDelegationTokenRecord(data=RemoveDelegationTokenData(token_id=token_id))
