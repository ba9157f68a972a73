"""Records of the topics log that say who may do what, and who can log in: access control entries, SCRAM credentials.

Source: Kafka's ``AccessControlEntryRecord``, ``RemoveAccessControlEntryRecord``, ``UserScramCredentialRecord`` and
``RemoveUserScramCredentialRecord``, in the JSON of its log dump.
A further kind of state is a pair of classes here, and a place in the union at the end.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Bytes, Int8, Int32, KafkaUuid


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


AnySecurityRecord: TypeAlias = (
    AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
)
