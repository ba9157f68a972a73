"""How long requests took, how long they were parked, and which errors they were answered with.

From request logs. Journals have no requests; what a consumer says of its wait for a generation is shown as JOIN_GROUP,
``inferred``: nearly all of that wait is for the other members.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import INFERRED, REQUEST, REQUESTS
from rejoin.pipeline.tables.common import conform, is_one_of, of

_KEY: Final = ("run_id", "day", "group_id", "api", "source")
_SHARES: Final = (0.5, 0.95, 0.99)


def requests(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.REQUESTS` from the events."""
    waited = is_one_of("generation_joined")
    rows = of(events, REQUEST, "generation_joined").select(
        "run_id",
        "day",
        "group_id",
        fn.when(waited, "JOIN_GROUP").otherwise(fn.col("api")).alias("api"),
        "source",
        fn.coalesce("total_ms", "waited_ms").cast("double").alias("ms"),
        fn.coalesce("parked_ms", "waited_ms").cast("double").alias("parked"),
        fn.nullif("error", fn.lit("NONE")).alias("error"),
        "client_id",
        fn.when(waited, INFERRED).otherwise(fn.col("confidence")).alias("confidence"),
    )
    times = rows.groupBy(*_KEY).agg(
        fn.count("*").alias("requests"),
        fn.count("error").alias("failed"),
        fn.percentile("ms", fn.array(*[fn.lit(share) for share in _SHARES])).alias("latency"),
        fn.max("ms").alias("max_ms"),
        fn.sum("parked").alias("parked_ms"),
        fn.percentile("parked", fn.array(*[fn.lit(share) for share in _SHARES])).alias("waits"),
        fn.max("parked").alias("parked_max_ms"),
        fn.count_distinct("client_id").alias("clients"),
        fn.max("confidence").alias("confidence"),
    )
    errors = (
        rows.where("error IS NOT NULL")
        .groupBy(*_KEY, "error")
        .agg(fn.count("*").alias("times"))
        .groupBy(*[fn.col(name).alias(f"{name}_") for name in _KEY])
        .agg(fn.map_from_entries(fn.array_sort(fn.collect_list(fn.struct("error", "times")))).alias("errors"))
    )
    # Requests that are about no group have none, and are counted all the same.
    same = [fn.col(name).eqNullSafe(fn.col(f"{name}_")) for name in _KEY]
    found = times.join(fn.broadcast(errors), same, "left").select(
        "*",
        fn.col("latency")[0].alias("p50_ms"),
        fn.col("latency")[1].alias("p95_ms"),
        fn.col("latency")[2].alias("p99_ms"),
        fn.col("waits")[0].alias("parked_p50_ms"),
        fn.col("waits")[2].alias("parked_p99_ms"),
    )
    none = fn.create_map().cast("map<string,bigint>")
    return conform(found.withColumn("errors", fn.coalesce("errors", none)), REQUESTS)
