"""How long requests took, how long they were parked, and which errors they were answered with.

From request logs. Journals have no requests; what a consumer says of its wait for a generation is shown as JOIN_GROUP,
``inferred``: nearly all of that wait is for the other members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.schemas import REQUESTS
from rejoin.pipeline.tables.groups.rows import RowValues
from rejoin.pipeline.tables.whole_groups import Rows, batch_of, events_of_groups, made_of_groups, values_of
from rejoin.pipeline.vocabulary import INFERRED, REQUEST

_WAITED: Final = "generation_joined"
_KEY: Final = ("run_id", "day", "group_id", "api", "source")
_VALUES: Final = ("ms", "parked", "error", "client_id", "confidence")
_READS: Final = (
    *("day", "source", "event", "api", "total_ms", "waited_ms", "parked_ms", "error"),
    *("client_id", "confidence"),
)
_SHARES: Final = (50, 95, 99)


def requests(events: Rows) -> Rows:
    """:data:`rejoin.pipeline.schemas.REQUESTS` from the events."""
    return made_of_groups(events_of_groups(events, (REQUEST, _WAITED), _READS), _requests_of, REQUESTS)


def _requests_of(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of the table from all requests of some groups."""
    waited = pc.equal(rows["event"], _WAITED)
    known = {name: rows[name] for name in ("run_id", "day", "group_id", "source", "client_id")} | {
        "api": pc.if_else(waited, "JOIN_GROUP", rows["api"]),
        "ms": pc.coalesce(rows["total_ms"].cast(pa.float64()), rows["waited_ms"].cast(pa.float64())),
        "parked": pc.coalesce(rows["parked_ms"].cast(pa.float64()), rows["waited_ms"].cast(pa.float64())),
        "error": rows["error"],
        "confidence": pc.if_else(waited, INFERRED, rows["confidence"]),
    }
    table = pa.table({name: known[name] for name in (*_KEY, *_VALUES)})
    found: dict[RowValues, list[RowValues]] = defaultdict(list)
    for row in values_of(table):
        found[row[: len(_KEY)]].append(row[len(_KEY) :])
    yield batch_of([_row(key, values) for key, values in found.items()], REQUESTS)


def _row(key: RowValues, values: list[RowValues]) -> RowValues:
    """The row about all requests of one kind. Those that are about no group have none."""
    run_id, day, group_id, api, source = key
    took, parked, errors, clients, confidences = zip(*values, strict=True)
    failures = Counter(error for error in errors if error not in (None, "NONE"))
    waits = [wait for wait in parked if wait is not None]
    half, _, most = _percentiles(waits)
    return (
        *(run_id, day, group_id or None, api, source, len(values), failures.total()),
        sorted(failures.items()),
        *_percentiles(took),
        max((ms for ms in took if ms is not None), default=None),
        sum(waits) if waits else None,
        *(half, most, max(waits, default=None)),
        len({client for client in clients if client is not None}),
        max((each for each in confidences if each is not None), default=None),
    )


def _percentiles(values: Iterable[float | None]) -> list[Any]:
    known = [value for value in values if value is not None]
    return np.percentile(known, _SHARES).tolist() if known else [None] * len(_SHARES)
