"""Rebalances as they happen: Spark keeps what is known of each group between batches, and finished ones come out.

:class:`GroupFollower` runs under ``transformWithState``, keyed by run, group, source and node, without timers and
without a watermark: clocks of different groups (simulated ones, too) have nothing to do with each other, and a
watermark would drop rows that are late. Rows of a batch come in any order and are put in order here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, fields
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, IntegerType, LongType, Row, StringType, StructField, StructType

from rejoin.pipeline.live.group_rebalances import (
    COLUMNS,
    FOLLOWED,
    READS,
    FollowedGroup,
    FollowedRebalance,
    MembershipChanges,
    as_row,
)
from rejoin.pipeline.schemas import REBALANCES

FINISHED: Final = "finished"
STANDING: Final = "standing"
KEY: Final = ("run_id", "group_id", "source", "node")

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
"""What comes out of a batch: rebalances that it finished, and how the groups of the batch stand behind it.

A standing also has the columns of the rebalance that goes on, if there is one.
"""

_STRINGS: Final = ArrayType(StringType())
_OPEN: Final = StructType([REBALANCES[each.name] for each in fields(FollowedRebalance)])
_GROUP: Final = StructType(
    [
        StructField("state", StringType()),
        StructField("generation", IntegerType()),
        StructField("members", IntegerType()),
        StructField("since_ms", LongType()),
        StructField("at_ms", LongType()),
        StructField("seen", LongType()),
        StructField("attempt", IntegerType()),
    ]
)
_COMINGS: Final = StructType(
    [
        StructField("joined", _STRINGS),
        StructField("left", _STRINGS),
        StructField("evicted", _STRINGS),
        StructField("replaced", _STRINGS),
        StructField("joins", IntegerType()),
        StructField("joins_at_ms", LongType()),
        StructField("slowest_at_ms", LongType()),
        StructField("slowest_member_id", StringType()),
    ]
)


class GroupFollower(StatefulProcessor):
    """Keeps one group of one run at one coordinator."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._group = handle.getValueState("group", _GROUP)
        self._open = handle.getValueState("open", _OPEN)
        self._here = handle.getValueState("here", _COMINGS)
        self._ahead = handle.getValueState("ahead", _COMINGS)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Rows for the finished rebalances of this batch, in order, and one for how the group stands then."""
        events = list(rows)
        where = tuple(events[0][name] for name in KEY)
        followed = self._load()
        done = list(followed.follow(events))
        self._keep(followed)
        for rebalance in done:
            yield _live(FINISHED, as_row(where, rebalance))
        standing = {
            "state": followed.state,
            "since_ms": followed.since_ms,
            "at_ms": followed.at_ms,
            "generation": followed.generation,
            "members": followed.members,
        }
        shown = dict(zip(KEY, where, strict=True)) if followed.open is None else as_row(where, followed.open)
        yield _live(STANDING, {**shown, **standing})

    def close(self) -> None:
        """Nothing is held beyond the state."""

    def _load(self) -> FollowedGroup:
        known = self._group.get()
        if known is None:
            return FollowedGroup()
        going_on = self._open.get()
        return FollowedGroup(
            **dict(zip(_GROUP.fieldNames(), known, strict=True)),
            open=None if going_on is None else FollowedRebalance(*map(_plain, going_on)),
            here=_membership_changes(self._here.get()),
            ahead=_membership_changes(self._ahead.get()),
        )

    def _keep(self, followed: FollowedGroup) -> None:
        self._group.update(tuple(getattr(followed, name) for name in _GROUP.fieldNames()))
        self._here.update(astuple(followed.here))
        self._ahead.update(astuple(followed.ahead))
        if followed.open is not None:
            self._open.update(astuple(followed.open))
        else:
            self._open.clear()


def follow(events: DataFrame) -> DataFrame:
    """A stream of events (the columns of :data:`READS` at least) as a stream of :data:`LIVE`."""
    followed = events.where(fn.col("group_id").isNotNull() & fn.col("event").isin(*FOLLOWED)).select(*READS)
    return followed.groupBy(*KEY).transformWithState(
        statefulProcessor=GroupFollower(), outputStructType=LIVE, outputMode="Append", timeMode="None"
    )


def _membership_changes(known: Any) -> MembershipChanges:
    return MembershipChanges() if known is None else MembershipChanges(*map(_plain, known))


def _plain(value: Any) -> Any:
    """A value of the state as it was put there: lists may come back as arrays."""
    return value if value is None or isinstance(value, str | int | bool) else list(value)


def _live(what: str, values: dict[str, Any]) -> Row:
    return Row(**{name: values.get(name) for name in LIVE.fieldNames()} | {"what": what})
