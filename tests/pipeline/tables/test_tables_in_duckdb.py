"""The same questions asked once more, in DuckDB and in another way: brute force instead of windows.

The queries that the benchmark measures Spark against are compared with it here as well, row by row and in every column.

The events have planted faults: owners at the same time, nested in one another, gaps, equal instants, records twice and
never, rebalances that interrupt each other, and runs of the same group whose clocks have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from benchmarks.pipeline_sql import OWNERSHIP, REBALANCES
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.schemas import EVENTS
from rejoin.pipeline.tables.group_tables import ownership, rebalances
from rejoin.pipeline.tables.groups.incarnations import INCARNATION_EVENTS
from rejoin.pipeline.tables.records import progress, ranges_by_partition
from tests.pipeline.events import consumer, coordinator, events_table
from tests.pipeline.simulated import play_one

CLOCKS = {"virtual": 0, "real": 1_763_000_000_000, "other-real": 1_763_000_000_007}
GROUPS = ("g", "h")

INTERVALS = """
with changes as (
    select run_id, group_id, node || '/' || client_id as owner, event, at_ms, seq, partitions from events
    where event in ('partitions_assigned', 'partitions_revoked', 'partitions_lost', 'consumer_closed')
), touched as (
    select * exclude (partitions), unnest(partitions).topic as topic, unnest(partitions).partition as partition
    from changes where event != 'consumer_closed'
), horizon as (select run_id, max(at_ms) as ends from events group by all)
select a.run_id, a.group_id, a.topic, a.partition, a.owner, a.at_ms as from_ms, coalesce((
    select min_by(e.at_ms, e.seq) from (
        select owner, run_id, group_id, topic, partition, at_ms, seq from touched
        union all by name select owner, run_id, group_id, at_ms, seq from changes where event = 'consumer_closed'
    ) e where e.owner = a.owner and e.run_id = a.run_id and e.group_id = a.group_id and e.seq > a.seq
      and (e.topic is null or (e.topic = a.topic and e.partition = a.partition))
), ends) as to_ms
from touched a join horizon using (run_id) where a.event = 'partitions_assigned'
"""

OVERLAPS = """
select b.run_id, b.group_id, b.partition, b.owner, b.from_ms, b.to_ms, coalesce(max(
    greatest(0, least(a.to_ms, b.to_ms) - b.from_ms)
) filter (a.owner is not null), 0) as overlap_ms
from intervals b left join intervals a on a.run_id = b.run_id and a.group_id = b.group_id and a.topic = b.topic
    and a.partition = b.partition and (a.from_ms, a.to_ms, a.owner) < (b.from_ms, b.to_ms, b.owner)
group by all
"""

GAPS = """
with steps as (
    select run_id, group_id, partition, from_ms as moment, 1 as step from intervals
    union all select run_id, group_id, partition, to_ms, -1 from intervals
), changes as (
    select run_id, group_id, partition, moment, sum(step) as change from steps group by all
), held as (
    select *, sum(change) over (partition by run_id, group_id, partition order by moment) as owners,
        lead(moment) over (partition by run_id, group_id, partition order by moment) as until
    from changes
)
select run_id, group_id, partition, moment, until from held where owners = 0 and until > moment
"""

STARTS = """
with s as (select *, row_number() over (partition by run_id, group_id order by at_ms, node, seq) as n from events
           where event = 'rebalance_started')
select s.run_id, s.group_id, s.n, coalesce(
    (select case min_by(e.event, e.seq) when 'rebalance_completed' then 'completed'
                                     when 'group_emptied' then 'emptied' end from events e
     where e.run_id = s.run_id and e.group_id = s.group_id and e.node = s.node and e.seq > s.seq
       and e.event in ('rebalance_completed', 'group_emptied')
       and not exists (from events o where o.run_id = s.run_id and o.group_id = s.group_id and o.node = s.node
                       and o.event = 'rebalance_started' and o.seq > s.seq and o.seq < e.seq)),
    case when exists (from events o where o.run_id = s.run_id and o.group_id = s.group_id and o.node = s.node
                      and o.event = 'rebalance_started' and o.seq > s.seq) then 'superseded' else 'open' end) as outcome
from s
"""

RECORDS = """
with handled as (
    select run_id, group_id, p.partition, unnest(generate_series(p.start, p."end" - 1)) as record from (
        select run_id, group_id, unnest(ranges) as p from events where event = 'records_processed')
), times as (select run_id, group_id, partition, record, count(*) as times from handled group by all)
select run_id, group_id, partition, count(*) as processed, sum(times - 1)::bigint as twice,
       (max(record) - min(record) + 1 - count(*))::bigint as lost
from times group by all
"""


def planted(random: Random, run_id: str, group_id: str, clock: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    about = {"run_id": run_id, "group_id": group_id}
    for number in range(6):
        owner, now = f"{group_id}-{number}", clock + random.randint(0, 50)
        held: list[int] = []
        for _ in range(14):
            now += random.choice((0, 0, 1, 7, 30))
            if held and random.random() < 0.5:
                given = random.sample(held, random.randint(1, len(held)))
                event = random.choice(("partitions_revoked", "partitions_lost"))
                held = [index for index in held if index not in given]
            else:
                given = random.sample(
                    [index for index in range(4) if index not in held], random.randint(0, 4 - len(held))
                )
                event = "partitions_assigned"
                held += given
            events.append(consumer(owner, now, event, *given, **about))
            start = random.randint(0, 400)
            done = [
                {"topic": "t", "partition": random.randint(0, 1), "start": start, "end": start + random.randint(1, 30)}
            ]
            events.append(consumer(owner, now, "records_processed", ranges=done, **about))
        if random.random() < 0.5:
            events.append(consumer(owner, now, "consumer_closed", **about))
    now = clock
    state = "Stable"
    for generation in range(20):
        now += random.choice((0, 0, 3, 100_000))
        started = {"generation": generation, "cause": "join-new", "members": ["m"], "previous_state": state}
        events.append(coordinator(now, "rebalance_started", **started, **about))
        end = random.choice(("rebalance_completed", "group_emptied", None))
        state = "CompletingRebalance"
        if end is not None:
            now += random.choice((0, 5))
            events.append(coordinator(now, end, generation=generation + 1, leader="m", members=["m"], **about))
            state = "Stable"
    return events


@pytest.fixture(scope="module")
def scenes(spark: SparkSession) -> Any:
    random = Random("planted")
    events = [
        event
        for run_id, clock in CLOCKS.items()
        for group_id in GROUPS
        for event in planted(random, run_id, group_id, clock)
    ]
    return events_table(spark, events)


@pytest.fixture(scope="module")
def duck(scenes: Any) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("events", scenes.toArrow())
    connection.execute(f"create table intervals as {INTERVALS}")
    return connection


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(query).fetchall())


def test_ownership_overlaps_and_gaps(scenes: Any, duck: duckdb.DuckDBPyConnection) -> None:
    found = ownership(scenes).collect()
    owned = sorted(
        (row.run_id, row.group_id, row.partition, row.owner, row.from_ms, row.to_ms, row.overlap_ms)
        for row in found
        if row.kind == "owned"
    )
    expected = sorted((*row[:6], row[6]) for row in duck.execute(OVERLAPS).fetchall())
    # Equal rows count once in DuckDB's grouping.
    assert sorted(set(owned)) == expected
    assert sum(row[-1] > 0 for row in expected) > 50
    gaps = sorted(
        (row.run_id, row.group_id, row.partition, row.from_ms, row.to_ms)
        for row in found
        if row.kind == "gap" and row.end == "between"
    )
    assert gaps == rows(duck, GAPS)
    assert len(gaps) > 5


def test_rebalances(scenes: Any, duck: duckdb.DuckDBPyConnection) -> None:
    found = rebalances(scenes).select("run_id", "group_id", "number", "outcome").collect()
    expected = rows(duck, STARTS)
    assert sorted(tuple(row) for row in found) == expected
    assert {row[3] for row in expected} >= {"completed", "emptied", "superseded"}


def test_records(scenes: Any, duck: duckdb.DuckDBPyConnection) -> None:
    columns = ("run_id", "group_id", "partition", "processed", "twice", "lost")
    found = progress(ranges_by_partition(scenes)).select(*columns).collect()
    expected = rows(duck, RECORDS)
    assert sorted(tuple(row) for row in found) == expected
    assert min(row[4] for row in expected) > 0
    assert max(row[5] for row in expected) > 0


@pytest.fixture(scope="module")
def journals(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Simulations; and the same as a service's journals without any of its consumers', and as those of real consumers.

    Real ones have a process each, and many of them end without an event.
    """
    folder = tmp_path_factory.mktemp("journals")
    for seed in range(4, 14):
        play_one(folder, seed)
    read = read_events(find([str(folder)]), "UTC").events
    simulated = spark.createDataFrame(read.combine_chunks(), from_arrow_schema(EVENTS)).persist()

    def known_from(source: str | Column, name: str) -> DataFrame:
        return simulated.withColumn("source", fn.lit(source)).withColumn("run_id", fn.concat(fn.lit(name), "run_id"))

    consumers = fn.col("event").isin(*INCARNATION_EVENTS)
    without = known_from("coordinator", "without-").where(~consumers)
    real = known_from(fn.when(consumers, "client").otherwise("coordinator"), "real-")
    # One process has one stream; a simulation writes starts and crashes into another one.
    one_stream = fn.col("at_ms") * 100_000 + fn.col("seq") * 2 + fn.col("event").startswith("consumer_").cast("long")
    real = real.withColumn("seq", one_stream).withColumn(
        "node", fn.when(consumers, fn.col("client_id")).otherwise(fn.col("node"))
    )
    silent = fn.col("event").startswith("consumer_") & (fn.col("at_ms") % 3 > 0)
    together = simulated.unionByName(without).unionByName(real.where(~silent))
    return together.persist()


@pytest.mark.parametrize("source", ["scenes", "journals"])
@pytest.mark.parametrize(("make", "query"), [(rebalances, REBALANCES), (ownership, OWNERSHIP)])
def test_the_queries_that_spark_is_measured_against_give_the_same_rows(
    request: pytest.FixtureRequest, source: str, make: Callable[[DataFrame], DataFrame], query: str
) -> None:
    events = request.getfixturevalue(source)
    connection = duckdb.connect()
    connection.register("events", events.toArrow())
    connection.register("spark", make(events).toArrow())
    columns = ", ".join(f'"{column[0]}"' for column in connection.execute("describe spark").fetchall())
    connection.execute(f"create table duck as select {columns} from ({query})")
    assert connection.execute("from spark except all from duck").fetchall() == []
    assert connection.execute("from duck except all from spark").fetchall() == []
    [[rows]] = connection.execute("select count(*) from duck").fetchall()
    assert rows > 100
