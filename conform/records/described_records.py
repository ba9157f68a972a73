"""Batches and records as the recordings describe them, field by field, and their bytes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import HEADER_SIZE, BatchHeader, crc_of, parse_header
from rejoin.protocol.wire.records import DefaultRecord, EndTransactionMarker, read_batch, write_records


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
        } | ({"control": described_marker(record)} if header.is_control and record.key else {})


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


HEADER: Final = {
    "baseOffset": "base_offset",
    "batchLength": "batch_length",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "magic": "magic",
    "attributes": "attributes",
    "lastOffsetDelta": "last_offset_delta",
    "baseTimestamp": "base_timestamp",
    "maxTimestamp": "max_timestamp",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "recordsCount": "records_count",
}
"""The fields of a batch but the checksum, in the recordings and here."""


def batch_of(described: dict[str, Any]) -> bytes:
    """The bytes of a batch that is described field by field."""
    header = BatchHeader(crc=0, **{ours: described[name] for name, ours in HEADER.items()})
    if "compressed" in described:
        payload = base64.b64decode(described["compressed"])
    elif "raw" in described:
        payload = base64.b64decode(described["raw"])
    else:
        payload = write_records(record_of(record) for record in described["records"])
    batch = header.pack() + payload
    crc = crc_of(batch) ^ (described["crc"] != "valid")
    return header._replace(crc=crc).pack() + payload


def described_batches(data: bytes) -> dict[str, Any]:
    """All whole batches of a log or a request, and what follows them."""
    batches, at = [], 0
    while len(data) - at >= HEADER_SIZE:
        header = parse_header(data, at)
        if not HEADER_SIZE <= header.size <= len(data) - at:
            break
        batch = data[at : at + header.size]
        described = {name: getattr(header, ours) for name, ours in HEADER.items()}
        described["crc"] = "valid" if crc_of(batch) == header.crc else "invalid"
        described["records"] = list(described_records(batch, header))
        if header.codec:
            described["compressed"] = base64.b64encode(batch[HEADER_SIZE:]).decode()
        elif header.size > HEADER_SIZE and not described["records"]:
            described["raw"] = base64.b64encode(batch[HEADER_SIZE:]).decode()
        batches.append(described)
        at += header.size
    return {"batches": batches} | ({"rest": base64.b64encode(data[at:]).decode()} if at < len(data) else {})
