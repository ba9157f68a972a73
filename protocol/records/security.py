"""Records of the topics log that say who may do what: access control entries.

Source: Kafka's ``AccessControlEntryRecord`` and ``RemoveAccessControlEntryRecord``, in the JSON of its log dump.
A further kind of state is a pair of classes here, and a place in the union at the end.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int8, KafkaUuid


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


AnySecurityRecord: TypeAlias = AccessControlEntryRecord | RemoveAccessControlEntryRecord
