"""The page's part about a streams group: tasks over time by process, moves with their causes, and restored state.

The charts are SVG: instants from left to right, a row for each task that the process ever had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.pipeline.findings.formatting import count, period, span
from rejoin.pipeline.findings.observed_rows import short
from rejoin.pipeline.report.data import GroupReport, Row, StreamsGroupReport
from rejoin.pipeline.report.page.markup import escaped, grouped, moment, table
from rejoin.pipeline.report.transactions import WIDTH
from rejoin.pipeline.streams_groups.of_run import task_of
from rejoin.pipeline.streams_groups.words import CAUSES, summary

MOST_CHARTS: Final = 12
MOST_BARS: Final = 600
"""Of one process."""
MOST_ROWS: Final = 50
MOST_NAMED: Final = 40
"""Tasks of one process that are drawn with their names."""
ROW: Final = 15
"""Height of a task with its name, in units of the drawing."""
_ACTIVE: Final = "t-committed"
_RESTORED: Final = "t-open"
_COPY: Final = "t-aborted"
_LOST: Final = "t-hanging"
_LEGEND: Final = (
    '<div class="legend"><span><b>bars: tasks of a process</b> '
    + " ".join(
        f'<i class="{name}"></i>{words}'
        for name, words in (
            (_ACTIVE, "active"),
            (_RESTORED, "its state is restored"),
            (_COPY, "standby or warm-up"),
            (_LOST, "no owner"),
        )
    )
    + "</span></div>"
)
_MOVES_HEAD: Final = ("task", "at", "from", "to", "cause", "#no owner", "standby there")
_RESTORES_HEAD: Final = ("task", "role", "member", "from", "#took", "#records", "state from", "#records missing")
_CHANGES_HEAD: Final = ("at", "what", "member", ":in words")
_EVENTS: Final = {
    "streams_topology_configured": "topology",
    "streams_internal_topics_created": "internal topics",
    "streams_member_described": "member changed",
    "streams_shutdown_requested": "shutdown requested",
    "streams_heartbeat_refused": "member refused",
}


def section(group: GroupReport, streams: StreamsGroupReport) -> Iterator[str]:
    """All about the tasks of a streams group."""
    tables = {"tasks": streams.tasks, "task_moves": streams.moves}
    yield f'<h4>Tasks</h4><p class="soft">{escaped(summary(tables))}.</p>'
    processes = _by_process(streams.tasks)
    if processes:
        yield _LEGEND
        ready = _ready_at(streams.restores)
        for name, rows in list(processes.items())[:MOST_CHARTS]:
            yield _chart(group, name, rows, ready)
    if len(processes) > MOST_CHARTS:
        yield f'<p class="soft">{MOST_CHARTS} processes are drawn: see the table tasks for the others.</p>'
    restored = [row for row in streams.restores if row["state_from"] != "none"]
    yield from _list("move", "of tasks", "task_moves", _MOVES_HEAD, [_move(row) for row in streams.moves])
    yield from _list("restore", "of state", "task_restores", _RESTORES_HEAD, [_restore(row) for row in restored])
    changes = [_change(row) for row in streams.changes]
    yield from _list("change", "to what lets the application run", "streams_changes", _CHANGES_HEAD, changes)


def _list(noun: str, of: str, of_table: str, head: Sequence[str], rows: Sequence[list[str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"<details><summary>{count(len(rows), noun)} {of}</summary>{table(head, rows[:MOST_ROWS])}"
    if rows[MOST_ROWS:]:
        yield f'<p class="soft">and {len(rows) - MOST_ROWS:,} more: see the table {of_table}.</p>'
    yield "</details>"


def _by_process(tasks: Sequence[Row]) -> dict[str, list[Row]]:
    """Tasks of each process, or of each member where its process is not known, in the order of their begin."""
    found: dict[str, list[Row]] = {}
    for row in tasks:
        found.setdefault(row["process_id"] or row["member_id"], []).append(row)
    return found


def _ready_at(restores: Sequence[Row]) -> dict[tuple[str, str, str, int], int | None]:
    """Instants at which active tasks of members were ready, by when they got them."""
    return {
        (row["member_id"], row["role"], task_of(row), row["begun_at_ms"]): row["ready_at_ms"]
        for row in restores
        if row["begun_at_ms"] is not None
    }


def _member(member_id: str | None) -> str:
    """A member by its name, with its whole id to point at."""
    return "" if not member_id else f'<span title="{escaped(member_id)}">{escaped(short(member_id))}</span>'


def _move(row: Row) -> list[str]:
    return [
        escaped(task_of(row)),
        escaped(moment(row["at_ms"])),
        _member(row["from_member_id"]),
        _member(row["member_id"]),
        escaped(CAUSES[row["cause"]] + (f": {short(row['cause_member_id'])}" if row["cause_member_id"] else "")),
        span(row["unowned_ms"]) if row["unowned_ms"] else "",
        "yes" if row["had_standby"] else "",
    ]


def _restore(row: Row) -> list[str]:
    begun_at = row["begun_at_ms"]
    return [
        escaped(task_of(row)),
        escaped(row["role"]),
        _member(row["member_id"]),
        "" if begun_at is None else escaped(moment(begun_at)),
        "" if row["restore_ms"] is None else span(row["restore_ms"]),
        grouped(row["records"]),
        escaped(row["state_from"]),
        grouped(row["last_lag"]),
    ]


def _change(row: Row) -> list[str]:
    said = [row["status"], row["reason"] or row["error"], ", ".join(row["topics"] or row["changed_fields"] or ())]
    lasted = f"for {span(row['to_ms'] - row['at_ms'])}" if row["to_ms"] is not None else ""
    words = "; ".join(each for each in (*said, lasted) if each)
    if not words and row["event"] == "streams_topology_configured":
        words = "it can run"
    return [
        escaped(moment(row["at_ms"])),
        escaped(_EVENTS[row["event"]]),
        _member(row["member_id"]),
        escaped(words),
    ]


# --- drawn


def _chart(
    group: GroupReport, name: str, rows: Sequence[Row], ready: Mapping[tuple[str, str, str, int], int | None]
) -> str:
    from_ms = min(group.from_ms, *(row["from_ms"] for row in rows))
    to_ms = max(group.to_ms, from_ms + 1, *(row["to_ms"] or 0 for row in rows))
    tasks = list(dict.fromkeys(task_of(row) for row in sorted(rows, key=lambda row: (row["subtopology"], row["task"]))))
    row_height = ROW if len(tasks) <= MOST_NAMED else 4
    chart = _Chart(from_ms, to_ms, row_height)
    bars = [each for row in rows[:MOST_BARS] for each in chart.bars(row, tasks.index(task_of(row)), ready)]
    height = row_height * len(tasks)
    members = ", ".join(dict.fromkeys(short(str(row["member_id"])) for row in rows))
    has = sum(row["to_ms"] is None for row in rows)
    words = f"{count(has, 'task')} at the end"
    names = "".join(f"<span>{escaped(each)}</span>" for each in tasks) if row_height == ROW else ""
    return (
        f'<figure class="lso tasks"><figcaption><b>{escaped(members)}</b> '
        f'<span class="soft">{words}{f", process {escaped(name)}" if name != members else ""}</span></figcaption>'
        f'<div class="axis">{names}</div>'
        f'<svg viewBox="0 0 {WIDTH} {height}" style="height:{height}px" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(f"{members}: {words}")}">{"".join(bars)}</svg>'
        f'<div class="times"><span>{escaped(moment(from_ms))}</span><span>{escaped(moment(to_ms))}</span></div>'
        "</figure>"
    )


@dataclass(frozen=True, slots=True)
class _Chart:
    """Instants and rows to places in the drawing."""

    from_ms: int
    to_ms: int
    row: int

    def bars(self, row: Row, index: int, ready: Mapping[tuple[str, str, str, int], int | None]) -> Iterator[str]:
        """A task of a process: until it was ready, from then on, and while no member had it afterwards."""
        begin, end = row["from_ms"], self.to_ms if row["to_ms"] is None else row["to_ms"]
        task = task_of(row)
        text = f"{task}, {row['role']} in {short(str(row['member_id']))} {period(begin, end)}"
        text += f": {row['end'] or 'still there at the end'}"
        if row["role"] != "active":
            yield self._rect(_COPY, begin, end, index, text)
            return
        key = row["member_id"], row["role"], task, begin
        if key in ready:
            ready_at = ready[key]
            until = end if ready_at is None else min(ready_at, end)
            if until > begin:
                yield self._rect(_RESTORED, begin, until, index, f"{text}; restored for {span(until - begin)}")
                begin = until
        if end > begin:
            yield self._rect(_ACTIVE, begin, end, index, text)
        if row["unowned_ms"]:
            free = f"{task}: no owner for {span(row['unowned_ms'])}"
            yield self._rect(_LOST, end, min(self.to_ms, end + row["unowned_ms"]), index, free)

    def _rect(self, name: str, begin: int, end: int, index: int, text: str) -> str:
        scale = WIDTH / max(1, self.to_ms - self.from_ms)
        x, width = (begin - self.from_ms) * scale, max(1.5, (end - begin) * scale)
        gap = 2 if self.row == ROW else 1
        return (
            f'<rect class="{name}" x="{x:.1f}" y="{index * self.row}" width="{width:.1f}" height="{self.row - gap}">'
            f"<title>{escaped(text)}</title></rect>"
        )
