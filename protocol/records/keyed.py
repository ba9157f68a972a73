"""Entries of a compacted log: records with a key, and the ends of transactions.

Both sides of a record are structs with the version they are written in; without a value it is a tombstone. Its JSON
is what Kafka's console formatter prints: ``{"version": 1, "data": {...}}`` for the key and for the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.types import Int16

Data = TypeVar("Data", bound=RecordData)
Key = TypeVar("Key", bound=RecordData)
Value = TypeVar("Value", bound=RecordData)


@dataclass(slots=True, unsafe_hash=True)
class VersionedData(Generic[Data]):
    """A key or a value, and the version that it is written in. A key's version also says which type of record it is."""

    __pydantic_config__ = RecordData.__pydantic_config__

    version: Int16
    data: Data

    def as_json(self) -> str:
        """Version and data, with exactly the fields that this version carries."""
        return f'{{"version":{self.version},"data":{self.data.to_json(self.version)}}}'


@dataclass(slots=True)
class KeyedRecord(Generic[Key, Value]):
    """A record of a compacted log: the last one of a key counts. With a producer id it is part of a transaction."""

    key: VersionedData[Key]
    value: VersionedData[Value] | None = None
    producer_id: int = -1


@dataclass(slots=True, kw_only=True)
class TransactionMarker:
    """The end of a producer's transaction in this partition. Kafka keeps it as a control batch."""

    producer_id: int
    producer_epoch: int
    committed: bool


Record: TypeAlias = KeyedRecord[Any, Any] | TransactionMarker
"""One entry of a compacted log: a record of a type in the table, or the end of a transaction."""
