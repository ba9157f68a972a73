"""How a record is kept: the JSON of its key and of its value, as Kafka's console formatter prints them, and a checksum.

Kafka: ApiMessageFormatter, and the fields that each version of OffsetCommitValue and GroupMetadataValue has.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from pydantic import ValidationError

from rejoin.protocol.records.consumer_offsets import (
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitValue,
    OffsetRecord,
    Record,
    TransactionMarker,
)

_NOTHING: Final = "\0"

PLAIN: Final = -1
"""The producer id of what no transaction wrote."""


class Entry(NamedTuple):
    """A record as it is kept. Without a value it is a tombstone; without a key, the end of a producer's transaction."""

    producer_id: int
    key: str | None
    value: str | None


Row: TypeAlias = tuple[int, int, int, str | None, str | None]
"""Position, producer id, checksum, key, value."""


class Unreadable(Exception):
    """What is kept is not what was written; the text says where and why."""


def encode(record: Record) -> Entry:
    """How a record is kept."""
    if isinstance(record, OffsetRecord):
        key = record.key.data
        value = None
        if record.value is not None:
            value = _json(record.value.version, _offset_fields(record.value.version, record.value.data))
        where = {"group": key.group, "topic": key.topic, "partition": key.partition}
        return Entry(record.producer_id, _json(record.key.version, where), value)
    if isinstance(record, GroupRecord):
        value = None
        if record.value is not None:
            value = _json(record.value.version, _group_fields(record.value.version, record.value.data))
        return Entry(PLAIN, _json(record.key.version, {"group": record.key.data.group}), value)
    ended = {"producerEpoch": record.producer_epoch, "committed": record.committed}
    return Entry(record.producer_id, None, orjson.dumps(ended).decode())


def decode(entries: Iterable[tuple[int, str | None, str | None]]) -> tuple[Record, ...]:
    """The records out of (producer id, key, value) of each. Raises :class:`Unreadable` for what is not one."""
    found: list[Record] = []
    read_offset = OffsetRecord.__pydantic_validator__.validate_json
    for producer_id, key, value in entries:
        try:
            if key is None:
                found.append(TransactionMarker.model_validate({"producer_id": producer_id, **_marker(value)}))
            elif key.startswith('{"version":2,'):
                found.append(GroupRecord.model_validate_json(f'{{"key":{key},"value":{value or "null"}}}'))
            else:
                text = f'{{"key":{key},"value":{value or "null"},"producerId":{producer_id}}}'
                found.append(read_offset(text))
        except (ValidationError, ValueError, TypeError) as problem:
            raise Unreadable(f"it is no record: {key} {value}: {_first_line(problem)}") from problem
    return tuple(found)


def checksum(partition: int, position: int, entry: Sequence[Any]) -> int:
    """A CRC-32 of an entry and its place; of a row's last three after the position."""
    producer_id, key, value = entry
    # A value that is missing must not look like one that is empty.
    text = f"{partition} {position} {producer_id}{'' if key is None else key}{_NOTHING if value is None else value}"
    return zlib.crc32(text.encode())


def check(partition: int, rows: Iterable[Row]) -> None:
    """Raise :class:`Unreadable` at the first row that is not what was written."""
    for position, producer_id, kept, key, value in rows:
        if checksum(partition, position, (producer_id, key, value)) != kept:
            raise Unreadable(f"partition {partition}, position {position}: the checksum does not fit the record")


def _json(version: int, data: dict[str, Any]) -> str:
    return orjson.dumps({"version": version, "data": data}).decode()


def _offset_fields(version: int, value: OffsetCommitValue) -> dict[str, Any]:
    fields: dict[str, Any] = {"offset": value.offset}
    if version >= 3:
        fields["leaderEpoch"] = value.leader_epoch
    fields["metadata"] = value.metadata
    fields["commitTimestamp"] = value.commit_timestamp
    if version == 1:
        fields["expireTimestamp"] = value.expire_timestamp
    return fields


def _group_fields(version: int, value: GroupMetadataValue) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
    }
    if version >= 2:
        fields["currentStateTimestamp"] = value.current_state_timestamp
    members = []
    for member in value.members:
        each: dict[str, Any] = {"memberId": member.member_id}
        if version >= 3:
            each["groupInstanceId"] = member.group_instance_id
        each["clientId"] = member.client_id
        each["clientHost"] = member.client_host
        if version >= 1:
            each["rebalanceTimeout"] = member.rebalance_timeout
        each["sessionTimeout"] = member.session_timeout
        each["subscription"] = base64.b64encode(member.subscription).decode()
        each["assignment"] = base64.b64encode(member.assignment).decode()
        members.append(each)
    fields["members"] = members
    return fields


def _marker(value: str | None) -> dict[str, Any]:
    fields = orjson.loads(value or "")
    return {"producer_epoch": fields["producerEpoch"], "committed": fields["committed"]}


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0]
