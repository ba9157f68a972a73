"""Where a report's tables lie: in Parquet below its folder, as Spark writes and reads it."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rejoin.pipeline.columns import metadata_of

OnStep = Callable[[str], None]
"""Called with what is done next."""

FOLDERS_BY: Final = ("day", "group_id")
"""Columns by which tables lie in folders, as far as they have them."""
_ROWS_AT_ONCE: Final = 16_384
"""Rows of a row group. Parquet knows what is in each, so where rows are sorted by event, few are read for one event."""
_KNOWN: Final = ("event", "at_ms", "run_id", "group_id")
"""Columns whose least and most Parquet keeps for each row group; each reader reads these of all columns first."""

_ROW_METADATA: Final = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps a table's schema in Parquet, with the comments of its columns."""
LONGEST_FOLDER: Final = 200
"""Bytes of a value in the name of a folder: file systems allow 255, with the name of its column."""
_NONE: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = {*map(chr, range(0x20)), *"\"#%'*/:=?\\{[]^\x7f"}
"""Characters that Spark does not write into the name of a folder."""


def write_rows(rows: pa.Table, schema: pa.Schema, folder: Path, by: Sequence[str]) -> None:
    """Write rows of this process anew, in folders by these columns."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _write(rows, schema, folder, by)


def stored(schema: pa.Schema, folder: Path | None) -> ds.Dataset:
    """The rows below a folder, for readers without Spark."""
    by = ds.partitioning(pa.schema([schema.field(name) for name in FOLDERS_BY if name in schema.names]), flavor="hive")
    return ds.dataset(str(folder), schema, format="parquet", partitioning=by)


def as_read(rows: pa.Table, by: Iterable[str]) -> pa.Table:
    """An empty text cannot be the name of a folder: it is read back as null."""
    for name in by:
        column = rows.column(name)
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _write(rows: pa.Table, schema: pa.Schema, folder: Path, by: Sequence[str]) -> None:
    kept = pa.schema([field for field in schema if field.name not in by])
    whole = rows.select(kept.names).cast(kept).replace_schema_metadata({_ROW_METADATA: columns_of_spark(kept)})
    places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    if by:
        for number, place in enumerate(zip(*(rows.column(name).to_pylist() for name in by), strict=True)):
            places[place].append(number)
    else:
        places[()] = list(range(rows.num_rows))
    if any(len(_folder(value).encode()) > LONGEST_FOLDER for place in places for value in place):
        # Without folders by this column its values stay within the files.
        texts = {name for name in by if pa.types.is_string(rows.schema.field(name).type)}
        _write(rows, schema, folder, [name for name in by if name not in texts])
        return
    for place, numbers in places.items():
        below = folder.joinpath(*(f"{name}={_folder(value)}" for name, value in zip(by, place, strict=True)))
        below.mkdir(parents=True, exist_ok=True)
        part = whole if len(numbers) == whole.num_rows else whole.take(numbers)
        pq.write_table(
            part,
            below / "part-00000.snappy.parquet",
            compression="snappy",
            row_group_size=_ROWS_AT_ONCE,
            write_statistics=[name for name in _KNOWN if name in part.column_names],
        )
    (folder / "_SUCCESS").touch()


def columns_of_spark(schema: pa.Schema) -> str:
    """A schema in JSON, as Spark keeps it in Parquet."""
    fields = [{**_field_of_spark(field), "metadata": metadata_of(field)} for field in schema]
    return json.dumps({"type": "struct", "fields": fields}, sort_keys=True, separators=(",", ":"))


def _field_of_spark(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "nullable": field.nullable, "metadata": {}, "type": _type_of_spark(field.type)}


def _type_of_spark(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "containsNull": True, "elementType": _type_of_spark(kind.value_type)}
    if pa.types.is_map(kind):
        of_both = {"keyType": _type_of_spark(kind.key_type), "valueType": _type_of_spark(kind.item_type)}
        return {"type": "map", "valueContainsNull": True, **of_both}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field_of_spark(each) for each in kind]}
    return _OF_SPARK[kind]


_OF_SPARK: Final = {
    pa.string(): "string",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


def _folder(value: Any) -> str:
    """A value as part of a folder's name, as Spark writes it."""
    if value is None:
        return _NONE
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in str(value))
