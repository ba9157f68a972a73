"""Files that may lie in a folder of journals: broken, foreign, hostile."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def row(seq: int, **changes: Any) -> dict[str, Any]:
    whole = {
        "schema_version": 2, "run_id": "r", "source": "coordinator", "node": "n1", "seq": seq, "at_ms": seq * 10,
        "event": "partition_elected", "topic": "__consumer_offsets", "partition": 3, "epoch": 1,
    }  # fmt: skip
    return {name: value for name, value in {**whole, **changes}.items() if value != "absent"}


def text(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


FILES: dict[str, bytes] = {
    "empty.jsonl": b"",
    "good.jsonl": text(row(1), row(2), row(3)),
    "coordinator-n2-000000000001.jsonl.open": text(row(1, node="n2")) + b'{"schema_version":1,"run_id":"r","sour',
    "half.jsonl": text(row(1, node="n3")) + b'{"schema_version":1,"run',
    "no_end.jsonl": text(row(1, node="n4"), row(2, node="n4")).removesuffix(b"\n"),
    "windows.jsonl": b"\xef\xbb\xbf" + text(row(1, node="n5"), row(2, node="n5")).replace(b"\n", b"\r\n"),
    "mixed.jsonl": b"\n".join(
        [
            json.dumps(row(1, node="m")).encode(),
            b"",
            b'2023-09-30 21:00:09,106 INFO started (kafka.server.KafkaServer)',
            b'{"schema_version":1,"run_id":"r",,}',
            b"[1, 2]",
            json.dumps(row(2, node="m")).encode() + json.dumps(row(3, node="m")).encode(),
            json.dumps(row(4, node="m", schema_version=3, flavour="new")).encode(),
            json.dumps(row(5, node="m", event="group_enchanted")).encode(),
            json.dumps(row(6, node="m", epoch="absent")).encode(),
            json.dumps(row(7, node="m", epoch="high")).encode(),
            json.dumps(row(8, node="m", at_ms="absent")).encode(),
            b'{"level":"info","msg":"some other program"}',
            b'{"schema_version":1,"run_id":"caf\xe9"}',
            json.dumps(row(9, node="m", at_ms=None)).encode(),
            json.dumps(row(10, node="m")).encode(),
            b"",
        ]
    ),
    "hostile.jsonl": b"\n".join(
        [
            json.dumps(row(1, node="h")).encode(),
            b'{"schema_version":2,"topic":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
            b'{"schema_version":1,"topic":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            json.dumps(row(4, node="h", epoch=10**20)).encode(),
            json.dumps(row(5, node="h", epoch=2**31 - 1)).encode(),
            json.dumps(row(6, node="h", at_ms=10**18)).encode(),
            json.dumps(row(7, node="h", at_ms=253_402_300_799_999)).encode(),
            json.dumps(row(2**63 - 1, node="h", at_ms=8)).encode(),
            b'{"schema_version":1,"event":"\\ud800","schema_version":"x"}',
            b'{"schema_version":2,"at_ms":' + b"9" * 5_000 + b"}",
            b"\x00\x01\x02\xff" * 64,
            json.dumps(row(12, node="h")).encode(),
            b"",
        ]
    ),
    "utf16.jsonl": json.dumps(row(1, node="u")).encode("utf-16"),
    "repeated.jsonl": text(*[row(seq, node="p") for seq in (2, 1, 2, 3)], row(3, node="p", epoch=9, at_ms=7)),
    "again.jsonl": text(row(1, node="p")),
    "packed.jsonl.gz": gzip.compress(text(row(1, node="z"), row(2, node="z"))),
    "torn.jsonl.gz": gzip.compress(text(*[row(n, node="t", partition=n * 7919 % 50) for n in range(1, 400)]))[:-40],
}  # fmt: skip


def write_foreign_tables(folder: Path) -> None:
    """Parquet of one row each that is no table of events, and one whose numbers are wider and narrower than ours."""
    named: dict[str, Any] = {
        "schema_version": pa.scalar(1, pa.int32()), "run_id": "r", "source": "s", "node": "n", "seq": 1, "at_ms": 5,
        "event": "e",
    }  # fmt: skip
    numbers = {"generation": 7_000_000_000, "epoch": pa.scalar(4, pa.int16())}
    tables: dict[str, dict[str, Any]] = {
        "foreign": {"id": 1, "name": "x"},
        "numbers": named | {"members": pa.scalar(3, pa.int32())},
        "words": named | {"seq": datetime(2026, 1, 1, tzinfo=UTC)},
        "lists": named | {"partitions": pa.scalar([1, 2], pa.list_(pa.int32()))},
        "wide": named | {"schema_version": 1} | numbers,
    }
    for name, values in tables.items():
        columns = {
            each: pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else pa.array([value])
            for each, value in values.items()
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
