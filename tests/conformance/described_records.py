"""Records as the recordings describe them, field by field, and the records themselves."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import BatchHeader
from rejoin.protocol.wire.records import DefaultRecord, EndTransactionMarker, read_batch


def bytes_of(value: Any) -> bytes | None:
    """The bytes of a key or a value."""
    if isinstance(value, dict):
        return base64.b64decode(value["base64"]) if "base64" in value else value["repeat"].encode() * value["times"]
    return None if value is None else str(value).encode()


def record_of(described: dict[str, Any]) -> DefaultRecord:
    headers = tuple((header["key"], bytes_of(header["value"])) for header in described["headers"])
    return DefaultRecord(
        described["offsetDelta"],
        described["timestampDelta"],
        bytes_of(described["key"]),
        bytes_of(described["value"]),
        headers,
        described["attributes"],
    )


def described_records(batch: bytes, header: BatchHeader) -> Iterator[dict[str, Any]]:
    """The records of a batch as the recordings describe them."""
    try:
        records = read_batch(batch)
    except RecordsError:
        return
    for record in records:
        yield {
            "attributes": record.attributes,
            "timestampDelta": record.timestamp_delta,
            "offsetDelta": record.offset_delta,
            "key": text_of(record.key),
            "value": text_of(record.value),
            "headers": [{"key": key, "value": text_of(value)} for key, value in record.headers],
        } | ({"control": described_marker(record)} if header.is_control else {})


def described_marker(record: DefaultRecord) -> dict[str, Any]:
    """A control record as the recordings describe it."""
    marker = EndTransactionMarker.of(record)
    assert marker is not None, "only the ends of transactions are control records here"
    return {
        "version": 0,
        "type": marker.control_type.name,
        "valueVersion": 0,
        "coordinatorEpoch": marker.coordinator_epoch,
    }


def text_of(value: bytes | None) -> Any:
    if value is None:
        return None
    if len(value) > 256 and len(set(value)) == 1:
        return {"repeat": chr(value[0]), "times": len(value)}
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return text if "\0" not in text else {"base64": base64.b64encode(value).decode()}
