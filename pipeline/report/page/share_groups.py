"""The page's part about a share group: its share-partitions, late records, and each window drawn over time.

The charts are SVG: instants from left to right, offsets from below. A bar is a run of records in the hands of a member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.formatting import count, period, span
from rejoin.pipeline.report.data import GroupReport, Row, ShareGroupReport
from rejoin.pipeline.report.page.markup import escaped, grouped, moment, table
from rejoin.pipeline.report.transactions import HEIGHT, WIDTH, LogScale, points
from rejoin.pipeline.share_groups.of_run import place_of
from rejoin.pipeline.share_groups.words import summary

MOST_CHARTS: Final = 6
MOST_BARS: Final = 600
MOST_SAMPLES: Final = 600
MOST_LATE: Final = 20
_LEAST_HEIGHT: Final = 3.0
"""Of a bar, in units of the drawing."""

_COLOURS: Final = (
    ("accepted", "t-committed"),
    ("released or given back", "t-aborted"),
    ("held when the journal ends", "t-open"),
    ("lock ran out, or rejected", "t-hanging"),
)
_CLASS_OF: Final = {"accept": 0, "gap": 0, "lock-expired": 3, "reject": 3, None: 2}
_LEGEND: Final = (
    '<div class="legend"><span><i class="l-end"></i>end of the window</span>'
    '<span><i class="l-lso"></i>its start: all below is done with</span><span><b>bars: deliveries</b> '
    + " ".join(f'<i class="{name}"></i>{words}' for words, name in _COLOURS)
    + "</span></div>"
)


def section(group: GroupReport, shares: ShareGroupReport) -> Iterator[str]:
    """All about the records of a share group."""
    yield f'<h4>Records</h4><p class="soft">{escaped(summary(shares.partitions))}.</p>'
    yield table(_HEAD, [_partition(row) for row in shares.partitions])
    drawn = list(_charts(group, shares))
    if drawn:
        yield _LEGEND
        yield from drawn
    if len(shares.partitions) > MOST_CHARTS:
        yield f'<p class="soft">{MOST_CHARTS} windows are drawn: see the table share_windows for the others.</p>'
    if shares.late:
        late = count(len(shares.late), "run")
        yield f"<details><summary>{late} of records that came late, by deliveries</summary>"
        yield table(_LATE_HEAD, [_late(row) for row in shares.late[:MOST_LATE]])
        if shares.late[MOST_LATE:]:
            yield f'<p class="soft">and {len(shares.late) - MOST_LATE:,} more: see the table share_deliveries.</p>'
        yield "</details>"


_SUMS: Final = ("acquired", "accepted", "released", "rejected", "expired", "archived", "dead_lettered")
_HEAD: Final = (
    *("partition", "#delivered", "#accepted", "#released", "#rejected", "#locks expired", "#archived"),
    *("#dead letters", "#most deliveries", "#longest held", "#start stood", "#window", "#full"),
)
_LATE_HEAD: Final = ("records", "#delivery", "member", "acquired", "#held", "end", "#renewals", "#next fetch")


def _partition(row: Row) -> list[str]:
    stood_ms = max(row["longest_stood_ms"] or 0, row["standing_ms"] or 0)
    is_known = row["start_offset"] is not None and row["end_offset"] is not None
    return [
        escaped(place_of(row)),
        *(grouped(row[name]) for name in _SUMS),
        grouped(row["most_deliveries"]),
        _length(row["longest_held_ms"]),
        span(stood_ms) if stood_ms else "",
        f"{row['start_offset']:,} to {row['end_offset']:,}" if is_known else "",
        grouped(row["full"]),
    ]


def _late(row: Row) -> list[str]:
    first, last = row["first_offset"], row["last_offset"]
    records = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    return [
        escaped(f"{place_of(row)} {records}"),
        grouped(row["delivery_count"]),
        escaped(row["member_id"]),
        escaped(moment(row["acquired_at_ms"])),
        _length(row["held_ms"]),
        escaped(row["end"] or "still held"),
        grouped(row["renewals"]) if row["renewals"] else "",
        _length(row["next_fetch_ms"]),
    ]


def _length(ms: int | None) -> str:
    return "" if ms is None else span(ms)


# --- drawn


def _charts(group: GroupReport, shares: ShareGroupReport) -> Iterator[str]:
    for row in shares.partitions[:MOST_CHARTS]:
        place = place_of(row)
        samples = [each for each in shares.windows if place_of(each) == place and each["start_offset"] is not None]
        bars = [each for each in shares.deliveries if place_of(each) == place and each["acquired_at_ms"] is not None]
        if samples and bars:
            yield _chart(group, place, samples, bars)


def _chart(group: GroupReport, place: str, samples: Sequence[Row], bars: Sequence[Row]) -> str:
    least = min(row["start_offset"] for row in samples)
    most = max([*(row["last_offset"] for row in bars), *(_end(row) for row in samples)]) + 1
    from_ms = min(group.from_ms, *(row["acquired_at_ms"] for row in bars))
    scale = LogScale(from_ms, max(group.to_ms, from_ms + 1), least, most)
    step = max(1, len(samples) // MOST_SAMPLES)
    kept = [row for number, row in enumerate(samples) if number % step == 0 or number == len(samples) - 1]
    starts = list(_steps(((row["at_ms"], row["start_offset"]) for row in kept), group.to_ms))
    ends = list(_steps(((row["at_ms"], _end(row)) for row in kept), group.to_ms))
    longest = sorted(bars, key=lambda row: -(row["held_ms"] or 0))[:MOST_BARS]
    last = samples[-1]
    label = (
        f"{place}: window {last['start_offset']:,} to {_end(last):,} at the end, {count(len(bars), 'run')} delivered"
    )
    return (
        f'<figure class="lso"><figcaption><b>{escaped(place)}</b> <span class="soft">window '
        f"{last['start_offset']:,} to {_end(last):,} at the end</span></figcaption>"
        f'<div class="axis"><span>{most:,}</span><span>{least:,}</span></div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" style="height:{HEIGHT}px" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(label)}"><line x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}"/>'
        f"{''.join(_bar(row, group.to_ms, scale) for row in longest)}"
        f'<polyline class="end" points="{points(ends, scale)}"/>'
        f'<polyline class="stable" points="{points(starts, scale)}"/></svg>'
        f'<div class="times"><span>{escaped(moment(from_ms))}</span><span>{escaped(moment(group.to_ms))}</span></div>'
        "</figure>"
    )


def _end(row: Row) -> int:
    """The offset behind the window."""
    end, start = row["end_offset"], row["start_offset"]
    if end is None:
        return int(start)
    return int(end + 1 if row["in_flight"] else end)


def _steps(samples: Iterable[tuple[int, int]], to_ms: int) -> Iterator[tuple[int, int]]:
    """A value over time that stays until the next one."""
    before: int | None = None
    for at_ms, value in samples:
        if before is not None:
            yield at_ms, before
        yield at_ms, value
        before = value
    if before is not None:
        yield to_ms, before


def _bar(row: Row, to_ms: int, scale: LogScale) -> str:
    begin, until = row["acquired_at_ms"], row["ended_at_ms"]
    end_ms = to_ms if until is None else until
    name = _COLOURS[_CLASS_OF.get(row["end"], 1)][1]
    width = max(1.5, float(scale.x(end_ms)) - float(scale.x(begin)))
    top, bottom = float(scale.y(row["last_offset"] + 1)), float(scale.y(row["first_offset"]))
    height = max(_LEAST_HEIGHT, bottom - top - 0.5)
    first, last = row["first_offset"], row["last_offset"]
    records = f"record {first:,}" if first == last else f"records {first:,} to {last:,}"
    text = (
        f"{records}, delivery {row['delivery_count']}, {row['member_id']}: {row['end'] or 'still held'}, "
        f"{_length(row['held_ms'])} {period(begin, end_ms)}"
    )
    return (
        f'<rect class="{name}" x="{scale.x(begin)}" y="{bottom - height:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"><title>{escaped(text)}</title></rect>'
    )
