"""The types of columns, and the columns that journals fill in the table of events.

Which those are is in :mod:`rejoin.pipeline.event_fields`. Maps of the journal become lists of rows: SQL can explode
those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from rejoin.journal.events import client, coordinator
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.pipeline.event_fields import FIELDS_AS_JSON, HINTS, columns_of_fields

STRING: Final = pa.string()
INT: Final = pa.int32()
LONG: Final = pa.int64()
DOUBLE: Final = pa.float64()
BOOLEAN: Final = pa.bool_()
DATE: Final = pa.date32()

_COMMENT: Final = b"SPARK::metadata::json"
"""Where Arrow's fields carry the metadata of Spark's columns: Spark reads and writes it."""


def list_of(kind: pa.DataType) -> pa.DataType:
    """Lists of values, with the names that Spark gives them."""
    return pa.list_(pa.field("element", kind))


def map_of(kind: pa.DataType) -> pa.DataType:
    """Text to values."""
    return pa.map_(STRING, pa.field("value", kind))


def struct(**fields: pa.DataType) -> pa.DataType:
    """A struct with these fields."""
    return pa.struct(list(fields.items()))


def column(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    """A column with its comment, which travels into Parquet."""
    return pa.field(name, kind, metadata={_COMMENT: json.dumps({"comment": comment})})


def table(*columns: pa.Field) -> pa.Schema:
    """A table with these columns."""
    return pa.schema(columns)


def metadata_of(field: pa.Field) -> dict[str, Any]:
    """Metadata of a column as Spark has it: ``comment``, where there is one."""
    found: dict[str, Any] = json.loads((field.metadata or {}).get(_COMMENT, "{}"))
    return found


STRINGS: Final = list_of(STRING)
PARTITIONS: Final = list_of(struct(topic=STRING, partition=INT))
OWNERSHIP: Final = list_of(struct(member_id=STRING, topic=STRING, partition=INT))
RANGES: Final = list_of(struct(topic=STRING, partition=INT, start=LONG, end=LONG))
OFFSETS: Final = list_of(struct(topic=STRING, partition=INT, offset=LONG))

_SIMPLE: Final[dict[str, pa.DataType]] = {
    "STRING": STRING,
    "INT": INT,
    "BIGINT": LONG,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
}
_LISTED: Final[dict[Any, pa.DataType]] = {
    list[str]: STRINGS,
    PartitionsByTopic: PARTITIONS,
    coordinator.Ownership: OWNERSHIP,
    client.Offsets: OFFSETS,
    list[coordinator.CommittedOffset]: OFFSETS,
    list[client.Range]: RANGES,
}


def event_columns() -> Iterator[pa.Field]:
    """The columns of all fields."""
    for name, field, comment in columns_of_fields():
        yield column(name, STRING if field is None else _type(field), comment)


def _type(field: str) -> pa.DataType:
    hint = HINTS[field]
    return _LISTED[hint] if hint in _LISTED else _SIMPLE[FIELDS_AS_JSON[field]]
