"""Where a report's tables lie: in Parquet below its folder and, if they are small, as rows in this process as well.

A table is made once. What comes after it reads it from disk or, in a report on little data, from the rows that were
collected to write it: a job of Spark's then takes longer than all its rows. Both ways write the same folders.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

Keep = Callable[[DataFrame, StructType, Path, Sequence[str]], DataFrame]
"""Write a table anew, in folders by these columns, and give it back as it was written."""

OnStep = Callable[[str], None]
"""Called with what is done next."""

FOLDERS_BY: Final = ("day", "group_id")
"""Columns by which tables lie in folders, as far as they have them."""
MOST_ROWS: Final = 10_000
"""Tables up to this size stay in this process; all their rows travel with each job that reads them."""
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


def on_disk(table: DataFrame, schema: StructType, folder: Path, by: Sequence[str]) -> DataFrame:
    """For tables of any size: Spark's tasks write them."""
    writer = table.write.mode("overwrite").option("partitionOverwriteMode", "static")
    (writer.partitionBy(*by) if by else writer).parquet(str(folder))
    return _read(table.sparkSession, schema, folder)


def in_process(table: DataFrame, schema: StructType, folder: Path, by: Sequence[str]) -> DataFrame:
    """For small tables: their rows are collected once."""
    return rows_in_process(table.sparkSession, table.toArrow(), schema, folder, by)


def rows_in_process(
    spark: SparkSession, rows: pa.Table, schema: StructType, folder: Path, by: Sequence[str]
) -> DataFrame:
    """For small tables whose rows are in this process already."""
    rows = as_read(rows, by)
    write_rows(rows, schema, folder, by)
    if rows.num_rows > MOST_ROWS:
        return _read(spark, schema, folder).coalesce(1)
    return local(spark, rows, schema)


def write_rows(rows: pa.Table, schema: StructType, folder: Path, by: Sequence[str]) -> None:
    """Write rows of this process anew, in folders by these columns."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _write(rows, schema, folder, by)


def local(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Rows of this process as a table, in one part: to sort, group or join it, nothing need be moved."""
    # Spark takes no rows at all from a table of several pieces of which the first is empty.
    return spark.createDataFrame(rows.select(schema.fieldNames()).combine_chunks(), schema).coalesce(1)


def _read(spark: SparkSession, schema: StructType, folder: Path) -> DataFrame:
    return spark.read.schema(schema).parquet(str(folder)).select(*schema.fieldNames())


def stored(schema: StructType, folder: Path | None) -> ds.Dataset:
    """The rows below a folder, for readers without Spark."""
    arrow = to_arrow_schema(schema)
    by = ds.partitioning(pa.schema([arrow.field(name) for name in FOLDERS_BY if name in arrow.names]), flavor="hive")
    return ds.dataset(str(folder), arrow, format="parquet", partitioning=by)


def as_read(rows: pa.Table, by: Iterable[str]) -> pa.Table:
    """An empty text cannot be the name of a folder: it is read back as null."""
    for name in by:
        column = rows.column(name)
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _write(rows: pa.Table, schema: StructType, folder: Path, by: Sequence[str]) -> None:
    kept = StructType([field for field in schema.fields if field.name not in by])
    whole = rows.select(kept.fieldNames()).replace_schema_metadata({_ROW_METADATA: kept.json()})
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


def _folder(value: Any) -> str:
    """A value as part of a folder's name, as Spark writes it."""
    if value is None:
        return _NONE
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in str(value))
