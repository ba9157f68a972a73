"""The tables that follow each group event by event, from events and rebalances with Spark or in this process.

How each row comes about is in :mod:`rejoin.pipeline.tables.groups`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline import schemas
from rejoin.pipeline.tables.groups import balance as balances
from rejoin.pipeline.tables.groups import member_sessions as sessions
from rejoin.pipeline.tables.groups import ownership as owners
from rejoin.pipeline.tables.groups import pauses as waits
from rejoin.pipeline.tables.groups import rebalances as of_rebalances
from rejoin.pipeline.tables.groups.rows import RebalanceOfGroup
from rejoin.pipeline.tables.runs import Runs
from rejoin.pipeline.tables.whole_groups import GroupTable, Rows, values_in


def rebalances(events: Rows) -> Rows:
    """:data:`rejoin.pipeline.schemas.REBALANCES` from :data:`rejoin.pipeline.schemas.EVENTS`."""
    # Nothing of a run matters to a rebalance.
    return _REBALANCES.of(events, {})


def member_sessions(events: Rows, rebalances: Rows, runs: Runs | None = None) -> Rows:
    """:data:`rejoin.pipeline.schemas.MEMBER_SESSIONS` from events and :data:`rejoin.pipeline.schemas.REBALANCES`."""
    return _MEMBER_SESSIONS.of(events, runs, rebalances)


def pauses(events: Rows, rebalances: Rows, runs: Runs | None = None) -> Rows:
    """:data:`rejoin.pipeline.schemas.PAUSES` from events and :data:`rejoin.pipeline.schemas.REBALANCES`."""
    return _PAUSES.of(events, runs, rebalances)


def balance(events: Rows, runs: Runs | None = None) -> Rows:
    """:data:`rejoin.pipeline.schemas.BALANCE` from the events."""
    return _BALANCE.of(events, runs)


def ownership(events: Rows, runs: Runs | None = None) -> Rows:
    """:data:`rejoin.pipeline.schemas.OWNERSHIP_TABLE` from the events."""
    return _OWNERSHIP.of(events, runs)


def _lengths(rows: pa.Table, name: str) -> list[range | None]:
    """Lists of which only the length matters, as ranges: to read the partitions takes longer than all else."""
    lengths = pc.list_value_length(rows[name]).to_pylist()
    return [None if length is None else range(length) for length in lengths]


def _owners(rows: pa.Table, name: str) -> list[Any]:
    """Partitions with their members where the event does not say how many moved, else only how many they are."""
    known = pc.and_(pc.is_valid(rows["moved"]), pc.is_valid(rows["regained"]))
    whole = values_in(pc.if_else(known, pa.scalar(None, rows[name].type), rows[name]).combine_chunks())
    return [length if owned is None else owned for length, owned in zip(_lengths(rows, name), whole, strict=True)]


_REBALANCES: Final = GroupTable(
    schemas.REBALANCES,
    of_rebalances.READS,
    of_rebalances.rebalances_of_group,
    read_otherwise={
        "partitions": partial(_lengths, name="partitions"),
        **{name: partial(_owners, name=name) for name in ("owned_before", "owned_after")},
    },
)
_MEMBER_SESSIONS: Final = GroupTable(
    schemas.MEMBER_SESSIONS,
    sessions.READS,
    sessions.sessions_of_group,
    of_rebalances=("prepared_at_ms", "ended_at_ms", "generation_to", "members_after", "cause_member_id"),
)
_PAUSES: Final = GroupTable(
    schemas.PAUSES, waits.READS, waits.pauses_of_group, of_rebalances=RebalanceOfGroup._fields[2:]
)
_BALANCE: Final = GroupTable(schemas.BALANCE, balances.READS, balances.balance_of_group)
_OWNERSHIP: Final = GroupTable(schemas.OWNERSHIP_TABLE, owners.READS, owners.ownership_of_group)

TABLES: Final = {
    "rebalances": _REBALANCES,
    "member_sessions": _MEMBER_SESSIONS,
    "pauses": _PAUSES,
    "balance": _BALANCE,
    "ownership": _OWNERSHIP,
}
"""By name, in the order in which they are made."""
