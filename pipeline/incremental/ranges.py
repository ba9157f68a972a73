"""Records that were processed, and commits, as far as later rows of ``records`` need them: few instead of very many.

Ranges of a partition that touch or overlap become two, the first one and another for the rest, which has the consumer
of the last part; where none was processed stays as it is. Of positions the lowest is kept, of commits the highest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.schemas import EVENTS
from rejoin.pipeline.tables.common import PARTITION, exploded
from rejoin.pipeline.tables.groups.rows import date_of
from rejoin.pipeline.vocabulary import EXACT

_SCHEMA: Final = EVENTS
_WHO: Final = ("at_ms", "member_id", "client_id", "generation")
_FROM: Final = ("source", "node", "seq")

Partition = tuple[str, str, str, int]
Who = tuple[Any, ...]
"""Of an event: :data:`_WHO` and :data:`_FROM`."""
Key = tuple[str, str, str, Who]
"""Of an event to make: run, group, name, who."""


def condensed(events: pa.Table, before_ms: Mapping[str, int]) -> pa.Table:
    """The events that ``records`` reads, those before an instant of their run condensed.

    Raises KeyError for a run without an instant.
    """
    limits = pa.array([before_ms[run_id] for run_id in events["run_id"].to_pylist()], pa.int64())
    is_old = pc.and_(pc.less(events["at_ms"], limits), pc.not_equal(events["event"], "records_in_hand"))
    old = events.filter(is_old)
    if not old.num_rows:
        return events
    lists: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    _add_ranges(old, lists)
    _add_offsets(old, "positions_found", 1, lists)
    _add_offsets(old, "commit_succeeded", -1, lists)
    made = pa.Table.from_pylist([_event(*key, values) for key, values in lists.items()], _SCHEMA)
    return pa.concat_tables([made, events.filter(pc.invert(is_old))])


def _add_ranges(events: pa.Table, lists: dict[Key, list[dict[str, Any]]]) -> None:
    """Ranges that touch as two: the first as it is, since it says who went on behind a gap, and all others."""
    processed = events.filter(pc.equal(events["event"], "records_processed"))
    pieces: dict[Partition, list[tuple[int, int, Who]]] = defaultdict(list)
    fresh: set[Partition] = set()
    """Partitions whose last piece is the first behind a gap."""
    for row in sorted(_rows(processed, "ranges", "start", "end"), key=lambda row: (row[:4], row[-2], row[4])):
        at, who, (start, end) = row[:4], row[4:-2], row[-2:]
        ours = pieces[at]
        if not ours or start > ours[-1][1]:
            ours.append((start, end, who))
            fresh.add(at)
        elif at in fresh and end > ours[-1][1]:
            ours.append((ours[-1][1], end, who))
            fresh.discard(at)
        elif at not in fresh and (end, who[0]) >= (ours[-1][1], ours[-1][2][0]):
            ours[-1] = ours[-1][0], end, who
    for (run_id, group_id, topic, partition), ours in pieces.items():
        for start, end, who in ours:
            values = {"topic": topic, "partition": partition, "start": start, "end": end}
            lists[run_id, group_id, "records_processed", who].append(values)


def _add_offsets(events: pa.Table, name: str, sign: int, lists: dict[Key, list[dict[str, Any]]]) -> None:
    """Of each partition the lowest offset (sign 1), or the highest (-1)."""
    named = events.filter(pc.equal(events["event"], name))
    best: dict[Partition, tuple[int, Who]] = {}
    for row in _rows(named, "offsets", "offset"):
        at, who, offset = row[:4], row[4:-1], row[-1]
        if at not in best or (sign * offset, sign * who[0]) < (sign * best[at][0], sign * best[at][1][0]):
            best[at] = offset, who
    for (run_id, group_id, topic, partition), (offset, who) in best.items():
        lists[run_id, group_id, name, who].append({"topic": topic, "partition": partition, "offset": offset})


def _rows(events: pa.Table, of_list: str, *values: str) -> Iterable[tuple[Any, ...]]:
    known = events.select([*PARTITION[:2], *_WHO, *_FROM, of_list])
    known = known.set_column(1, "group_id", pc.fill_null(known["group_id"], ""))
    each = exploded(known, of_list)
    return zip(*(each.column(name).to_pylist() for name in (*PARTITION, *_WHO, *_FROM, *values)), strict=True)


def _event(run_id: str, group_id: str, name: str, who: Who, values: list[dict[str, Any]]) -> dict[str, Any]:
    known = dict(zip((*_WHO, *_FROM), who, strict=True)) | {"run_id": run_id, "group_id": group_id, "event": name}
    of_list = {"ranges" if name == "records_processed" else "offsets": values}
    return {"day": date_of(who[0]), "confidence": EXACT, **known, **of_list}
