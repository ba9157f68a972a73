"""What a compacted log holds: records with a key, and the ends of transactions.

Both sides of a record are structs with the version they are written in; without a value it is a tombstone. Its JSON
is what Kafka's console formatter prints: ``{"version": 1, "data": {...}}`` for the key and for the value.
"""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int16, Int64, ProducerId

Data = TypeVar("Data", bound=Struct)
Key = TypeVar("Key", bound=Struct)
Value = TypeVar("Value", bound=Struct)


class Versioned(Struct, Generic[Data]):
    """A key or a value, and the version that it is written in. A key's version also says which type of record it is."""

    version: Int16
    data: Data

    def as_json(self) -> str:
        """Version and data, with exactly the fields that this version carries."""
        return f'{{"version":{self.version},"data":{self.data.to_json(self.version).decode()}}}'


class KeyedRecord(Struct, Generic[Key, Value]):
    """A record of a compacted log: the last one of a key counts. With a producer id it is part of a transaction."""

    key: Versioned[Key]
    value: Versioned[Value] | None = None
    producer_id: Int64 = -1


class TransactionMarker(Struct):
    """The end of a producer's transaction in this partition. Kafka keeps it as a control batch."""

    producer_id: ProducerId
    producer_epoch: Int16
    committed: bool


Record: TypeAlias = KeyedRecord[Any, Any] | TransactionMarker
"""One entry of a compacted log: a record of a type in the table, or the end of a transaction."""
