"""Records of the topics log that say who may do what, who can log in, and how much clients may send.

Source: Kafka's ``AccessControlEntryRecord``, ``RemoveAccessControlEntryRecord``, ``UserScramCredentialRecord``,
``RemoveUserScramCredentialRecord``, ``DelegationTokenRecord``, ``RemoveDelegationTokenRecord`` and
``ClientQuotaRecord``, in the JSON of its log dump.
A further kind of state is a pair of classes here, and a place in the union at the end.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Bytes, Int8, Int32, Int64, KafkaUuid


class AccessControlEntryData(Struct):
    """An access control entry (ACL); its fields are numbers and texts as in CreateAcls."""

    id: KafkaUuid
    resource_type: Int8
    resource_name: str
    pattern_type: Int8
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryData(Struct):
    """The entry that is gone."""

    id: KafkaUuid


class AccessControlEntryRecord(Struct):
    """An access control entry is there."""

    type: Literal["ACCESS_CONTROL_ENTRY_RECORD"] = "ACCESS_CONTROL_ENTRY_RECORD"
    version: Literal[0] = 0
    data: AccessControlEntryData


class RemoveAccessControlEntryRecord(Struct):
    """An access control entry is gone."""

    type: Literal["REMOVE_ACCESS_CONTROL_ENTRY_RECORD"] = "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"
    version: Literal[0] = 0
    data: RemoveAccessControlEntryData


class ClientQuotaEntityData(Struct):
    """One part of the entity that a quota holds for; no name is the default of its type."""

    entity_type: str
    entity_name: str | None


class ClientQuotaData(Struct):
    """A limit of an entity, set or removed."""

    entity: tuple[ClientQuotaEntityData, ...]
    key: str
    value: float
    remove: bool


class ClientQuotaRecord(Struct):
    """A quota is set or removed."""

    type: Literal["CLIENT_QUOTA_RECORD"] = "CLIENT_QUOTA_RECORD"
    version: Literal[0] = 0
    data: ClientQuotaData


class UserScramCredentialData(Struct):
    """The keys of a user for a mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: str
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class RemoveUserScramCredentialData(Struct):
    """The user and the mechanism whose keys are gone."""

    name: str
    mechanism: Int8


class UserScramCredentialRecord(Struct):
    """A user has these keys for a mechanism."""

    type: Literal["USER_SCRAM_CREDENTIAL_RECORD"] = "USER_SCRAM_CREDENTIAL_RECORD"
    version: Literal[0] = 0
    data: UserScramCredentialData


class RemoveUserScramCredentialRecord(Struct):
    """A user has no keys for a mechanism any more."""

    type: Literal["REMOVE_USER_SCRAM_CREDENTIAL_RECORD"] = "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"
    version: Literal[0] = 0
    data: RemoveUserScramCredentialData


class DelegationTokenData(Struct):
    """A delegation token without its HMAC; instants are milliseconds since 1970, principals as ``User:alice``."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: str


class RemoveDelegationTokenData(Struct):
    """The token that is gone."""

    token_id: str


class DelegationTokenRecord(Struct):
    """A delegation token is there, or has changed."""

    type: Literal["DELEGATION_TOKEN_RECORD"] = "DELEGATION_TOKEN_RECORD"
    version: Literal[0] = 0
    data: DelegationTokenData


class RemoveDelegationTokenRecord(Struct):
    """A delegation token is gone."""

    type: Literal["REMOVE_DELEGATION_TOKEN_RECORD"] = "REMOVE_DELEGATION_TOKEN_RECORD"
    version: Literal[0] = 0
    data: RemoveDelegationTokenData


AnySecurityRecord: TypeAlias = (
    AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | ClientQuotaRecord
)
