"""What the methods of the kit take in several forms."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, TypeAlias

Data: TypeAlias = str | bytes | None
Written: TypeAlias = Data | tuple[Data, Data] | Mapping[str, Any]
"""A record to be written: a value, a pair of key and value, or a mapping with key, value, headers and timestamp."""


def written(record: Written) -> dict[str, Any]:
    """A record as the control API takes it, in base64."""
    if isinstance(record, tuple):
        key, value = record
        record = {"key": key, "value": value}
    elif not isinstance(record, Mapping):
        record = {"value": record}
    found = dict(record)
    for name in ("key", "value"):
        if name in found:
            found[name] = _base64(found[name])
    headers = found.get("headers") or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found["headers"] = tuple((name, _base64(value)) for name, value in pairs)
    return found


def _base64(data: Data) -> str | None:
    if data is None:
        return None
    if not isinstance(data, (str, bytes)):
        raise ValueError(f"records: expected text or bytes, not {data!r}")
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode("ascii")


def wanted_offsets(offsets: Mapping[Any, int]) -> tuple[dict[str, Any], ...]:
    """Offsets by partition as the control API takes them."""
    wanted = []
    for key, offset in offsets.items():
        topic, partition = key if isinstance(key, tuple) else (key.topic, key.partition)
        wanted.append({"topic": topic, "partition": partition, "offset": offset})
    return tuple(wanted)
