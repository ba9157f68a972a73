"""The records of ``__transaction_state`` in an answer to Fetch, with their keys and values field by field."""

from __future__ import annotations

import base64
from typing import Any, Final

from rejoin.conform.records.described_records import bytes_of, described_batches
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TransactionLogValue
from rejoin.protocol.wire.state_topics.transaction_state import key_bytes, read_key, read_value, value_bytes

PRODUCER_IDS: Final = ("previousProducerId", "nextProducerId")
"""Fields of a value with producer ids, beside ``producerId``."""


def with_transactions(answer: Any) -> Any:
    """An answer whose records of the transaction log are described; the rest is as it was."""
    if not isinstance(answer, dict) or "responses" not in answer:
        return answer
    return answer | {"responses": [_topic(each) for each in answer["responses"]]}


def _topic(topic: dict[str, Any]) -> dict[str, Any]:
    if topic.get("topic") != TRANSACTION_STATE_TOPIC or "partitions" not in topic:
        return topic
    return topic | {"partitions": [_described(each) for each in topic["partitions"]]}


def batches_of(answer: Any) -> list[dict[str, Any]]:
    """The batches in an answer that has one partition of the transaction log."""
    found: dict[str, Any] = _described(answer["responses"][0]["partitions"][0])
    return list(found["records"]["batches"]) if found["records"] else []


def _described(partition: dict[str, Any]) -> dict[str, Any]:
    if not partition.get("records"):
        return partition
    found = described_batches(base64.b64decode(partition["records"]))
    for batch in found["batches"]:
        for record in batch["records"]:
            record["key"] = _key(bytes_of(record["key"]))
            record["value"] = _value(bytes_of(record["value"]))
    return partition | {"records": found}


def _key(data: bytes | None) -> str:
    transactional_id = read_key(data or b"")
    assert transactional_id is not None, f"no key of a transactional id: {data!r}"
    assert key_bytes(transactional_id) == data, f"the key of {transactional_id} has other bytes"
    return transactional_id


def _value(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    value, version = read_value(data), int.from_bytes(data[:2], "big")
    assert len(value_bytes(value, version)) == len(data), f"a value of version {version} has other fields"
    return {"version": version, **_fields(value)}


def _fields(value: TransactionLogValue) -> dict[str, Any]:
    partitions = {each.topic: sorted(each.partition_ids) for each in value.transaction_partitions or ()}
    return {
        "producerId": value.producer_id,
        "previousProducerId": value.previous_producer_id,
        "nextProducerId": value.next_producer_id,
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.transaction_timeout_ms,
        "transactionStatus": value.transaction_status,
        "transactionPartitions": partitions if value.transaction_partitions is not None else None,
        "transactionLastUpdateTimestampMs": value.transaction_last_update_timestamp_ms,
        "transactionStartTimestampMs": value.transaction_start_timestamp_ms,
        "clientTransactionVersion": value.client_transaction_version,
    }
