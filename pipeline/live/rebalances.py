"""Rebalances as they happen: Spark keeps what is known of each group between batches, and finished ones come out.

:class:`GroupFollower` runs under ``transformWithState``, keyed by run, group, source and node, without timers and
without a watermark: clocks of different groups (simulated ones, too) have nothing to do with each other, and a
watermark would drop rows that are late. Rows of a batch come in any order and are put in order here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, Row, StringType, StructField, StructType

from rejoin.pipeline.schemas import REBALANCES
from rejoin.pipeline.tables.groups.group_rebalances import (
    GroupRebalances,
    JoinPhase,
    MembershipChanges,
    Rebalance,
    RebalanceEnd,
)
from rejoin.pipeline.tables.groups.rebalance_events import FOLLOWED, READS
from rejoin.pipeline.tables.groups.rows import event_of

FINISHED: Final = "finished"
STANDING: Final = "standing"
KEY: Final = ("run_id", "group_id", "source", "node")

_OF_ALL_COORDINATORS: Final = ("number", "episode", "chain", "chain_length")
"""Columns of ``rebalances`` that take events of other coordinators, or later ones, to know."""
COLUMNS: Final = tuple(name for name in REBALANCES.fieldNames() if name not in _OF_ALL_COORDINATORS)
"""Columns of ``rebalances`` that are settled when a rebalance ends."""

LIVE: Final = StructType(
    [
        StructField("what", StringType(), True, {"comment": "finished (a rebalance) | standing (of a group, now)."}),
        *[REBALANCES[name] for name in COLUMNS],
        StructField("state", StringType(), True, {"comment": "Standing: the group's state."}),
        StructField("since_ms", LongType(), True, {"comment": "Standing: when it got into that state."}),
        StructField("at_ms", LongType(), True, {"comment": "Standing: the newest event about it."}),
        StructField("generation", IntegerType(), True, {"comment": "Standing: the generation."}),
        StructField("members", IntegerType(), True, {"comment": "Standing: how many members it has."}),
    ]
)
"""Rows that a batch gives: rebalances that it finished, and the state of its groups after it.

A standing also has the columns of the rebalance that goes on, if there is one.
"""

_STATE: Final = StructType([StructField("group", StringType())])
"""A :class:`GroupRebalances` as JSON: one value is one question to the state store, whatever is in it."""


class GroupFollower(StatefulProcessor):
    """Keeps one group of one run at one coordinator."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("group", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Rows for the finished rebalances of this batch, in order, and one for how the group stands then."""
        events = [event_of(row.asDict()) for row in rows]
        where = {name: getattr(events[0], name) for name in KEY}
        group = restored(self._state.get())
        for rebalance in group.follow(events):
            yield _live(FINISHED, where | rebalance.row())
        self._state.update((orjson.dumps(asdict(group)).decode(),))
        going_on = {} if group.open is None else group.open.row() | {"outcome": None}
        standing = {name: getattr(group, name) for name in ("state", "since_ms", "at_ms", "generation", "members")}
        yield _live(STANDING, where | going_on | standing)

    def close(self) -> None:
        """Nothing is held beyond the state."""


def follow(events: DataFrame) -> DataFrame:
    """A stream of events (:data:`READS` at least) as a stream of :data:`LIVE`."""
    followed = events.where(fn.col("group_id").isNotNull() & fn.col("event").isin(*FOLLOWED)).select(*READS)
    return followed.groupBy(*KEY).transformWithState(
        statefulProcessor=GroupFollower(), outputStructType=LIVE, outputMode="Append", timeMode="None"
    )


def restored(state: Any) -> GroupRebalances:
    """A group as it was kept; a new one where nothing was."""
    if state is None:
        return GroupRebalances()
    known = orjson.loads(state[0])
    current = known["current"]
    if current is not None:
        for name, part in (("changes", MembershipChanges), ("target", JoinPhase), ("completion", RebalanceEnd)):
            current[name] = current[name] and part(**current[name])
        known["current"] = Rebalance(**current)
    return GroupRebalances(**known | {"ahead": MembershipChanges(**known["ahead"])})


def _live(what: str, values: dict[str, Any]) -> Row:
    return Row(**{name: values.get(name) for name in LIVE.fieldNames()} | {"what": what})
