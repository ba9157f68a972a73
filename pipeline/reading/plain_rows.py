"""Usual rows of journals as a table of Arrow: small inputs are done before Spark has planned for them.

Which rows are usual is in :mod:`rejoin.pipeline.reading.usual_lines`. :func:`rejoin.pipeline.reading.journals.parse`
gets all others, and alone decides whether something is wrong with one.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline.event_fields import MS_A_DAY
from rejoin.pipeline.reading.usual_lines import EventsOfKind, read_usual
from rejoin.pipeline.schemas import EVENTS, VERSION
from rejoin.pipeline.vocabulary import EXACT

_SCHEMA: Final = to_arrow_schema(EVENTS)


def read_plain(lines: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The events of usual rows (:data:`EVENTS`), and the lines of all others, which are for ``parse``."""
    found, others = read_usual(lines.column("text").to_pylist(), lines.column("problem").to_pylist())
    files = lines.select(["file", "line"]).combine_chunks()
    tables = [_table(kind, files.take(pa.array(kind.numbers, pa.int64()))) for kind in found]
    return pa.concat_tables([_SCHEMA.empty_table(), *tables]), lines.take(pa.array(others, pa.int64()))


def _table(kind: EventsOfKind, files: pa.Table) -> pa.Table:
    """Rows of one event."""
    columns, count = kind.columns, len(kind.numbers)
    made: dict[str, Any] = {name: files.column(name) for name in files.column_names}
    made["schema_version"] = pa.repeat(pa.scalar(VERSION, _SCHEMA.field("schema_version").type), count)
    made["confidence"] = pa.repeat(EXACT, count)
    made["day"] = pa.array([at_ms // MS_A_DAY for at_ms in columns["at_ms"]], pa.int32()).cast(pa.date32())
    return pa.Table.from_arrays(
        [
            made[field.name]
            if field.name in made
            else pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in _SCHEMA
        ],
        schema=_SCHEMA,
    )
