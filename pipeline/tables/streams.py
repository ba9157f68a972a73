"""Whether each journal is whole: rows missing, out of order, or written after the clock stepped back."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import STREAMS
from rejoin.pipeline.tables.common import conform


def streams(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.STREAMS` from the events.

    ``missing`` counts from the first row of the stream: its journal may have been cut off at the beginning on purpose.
    """
    stream = ["run_id", "source", "node"]
    in_file = Window.partitionBy(*stream).orderBy("file", "line")
    placed = events.select(*stream, "seq", "at_ms", "file", "line")
    seen = placed.select(
        *stream,
        "seq",
        "at_ms",
        fn.lag("seq").over(in_file).alias("seq_before"),
        fn.lag("at_ms").over(in_file).alias("at_before"),
    )
    later = fn.col("seq") > fn.col("seq_before")
    return conform(
        seen.groupBy(*stream)
        .agg(
            fn.count("*").alias("rows"),
            fn.min("seq").alias("first_seq"),
            fn.max("seq").alias("last_seq"),
            fn.count(fn.when(~later, 1)).alias("out_of_order"),
            fn.min("at_ms").alias("first_at_ms"),
            fn.max("at_ms").alias("last_at_ms"),
            fn.count(fn.when(later & (fn.col("at_ms") < fn.col("at_before")), 1)).alias("clock_steps"),
        )
        .select("*", (fn.col("last_seq") - fn.col("first_seq") + 1 - fn.col("rows")).alias("missing")),
        STREAMS,
    )
