"""The types of columns, and the columns that journals fill in the table of events.

Which those are is in :mod:`rejoin.pipeline.event_fields`. Maps of the journal become lists of rows: SQL can explode
those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from rejoin.journal.events import client, coordinator
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.pipeline.event_fields import FIELDS_AS_JSON, HINTS, columns_of_fields

STRING: Final = StringType()
INT: Final = IntegerType()
LONG: Final = LongType()
DOUBLE: Final = DoubleType()
BOOLEAN: Final = BooleanType()
STRINGS: Final = ArrayType(STRING)


def struct(**fields: DataType) -> StructType:
    """A struct with these fields."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def column(name: str, kind: DataType, comment: str) -> StructField:
    """A column with its comment, which travels into Parquet."""
    return StructField(name, kind, True, {"comment": comment})


def table(*columns: StructField) -> StructType:
    """A table with these columns."""
    return StructType(list(columns))


PARTITIONS: Final = ArrayType(struct(topic=STRING, partition=INT))
OWNERSHIP: Final = ArrayType(struct(member_id=STRING, topic=STRING, partition=INT))
RANGES: Final = ArrayType(struct(topic=STRING, partition=INT, start=LONG, end=LONG))
OFFSETS: Final = ArrayType(struct(topic=STRING, partition=INT, offset=LONG))

_SIMPLE: Final[dict[str, DataType]] = {
    "STRING": STRING,
    "INT": INT,
    "BIGINT": LONG,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
}
_LISTED: Final[dict[Any, DataType]] = {
    list[str]: STRINGS,
    PartitionsByTopic: PARTITIONS,
    coordinator.Ownership: OWNERSHIP,
    client.Offsets: OFFSETS,
    list[coordinator.CommittedOffset]: OFFSETS,
    list[client.Range]: RANGES,
}


def event_columns() -> Iterator[StructField]:
    """The columns of all fields."""
    for name, field, comment in columns_of_fields():
        yield column(name, STRING if field is None else _type(field), comment)


def _type(field: str) -> DataType:
    hint = HINTS[field]
    return _LISTED[hint] if hint in _LISTED else _SIMPLE[FIELDS_AS_JSON[field]]
