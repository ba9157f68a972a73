"""Section of a group about metrics that its clients pushed: by client instance, beside the coordinator's own view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rejoin.pipeline.findings.formatting import count, span
from rejoin.pipeline.findings.observed_rows import short
from rejoin.pipeline.report.data import Row
from rejoin.pipeline.report.page.markup import escaped, moment, table

MOST_REPORTS: Final = 200
"""Reports that the page shows, the newest; the table client_metrics has all."""
_HEAD: Final = (
    *("member", "client instance", "#reports", "#longest poll", "#allowed", "#longest rebalance, client"),
    *("#coordinator", "#fetches/s", "#partitions, client", "#coordinator"),
)
_HEAD_OF_REPORTS: Final = (
    *("at", "member", "#poll, average", "#longest", "#rebalance, client", "#coordinator", "#fetches/s"),
    *("#lag", "#partitions, client", "#coordinator"),
)


def section(rows: Sequence[Row]) -> Iterable[str]:
    """Clients by instance and member, and below them each report."""
    by_instance: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        by_instance[row["client_instance_id"], row["member_id"]].append(row)
    yield "<details data-client-metrics>"
    yield f"<summary>Metrics of {count(len(by_instance), 'client')}, as clients measured them</summary>"
    yield table(_HEAD, [_instance(instance, found) for (instance, _), found in by_instance.items()])
    newest = rows[-MOST_REPORTS:]
    if len(rows) > len(by_instance):
        shown = "each report" if len(newest) == len(rows) else f"the newest {len(newest)} of {len(rows):,} reports"
        yield f'<p class="soft">Over time, {shown}:</p>'
        yield table(_HEAD_OF_REPORTS, [_report(row) for row in newest])
    yield "</details>"


def _instance(instance: str, rows: Sequence[Row]) -> list[str]:
    last = rows[-1]
    limit = last["rebalance_timeout_ms"]
    longest = _most(rows, "poll_interval_max_ms")
    is_late = longest is not None and limit is not None and longest > limit
    return [
        _who(last),
        f"<code>{escaped(instance)}</code>",
        f"{len(rows):,}",
        f'<b class="high">{_span(longest)}</b>' if is_late else _span(longest),
        _span(limit),
        _span(_most(rows, "rebalance_latency_max_ms")),
        _span(_most(rows, "rebalance_max_ms")),
        _number(next((row["fetch_rate"] for row in reversed(rows) if row["fetch_rate"] is not None), None)),
        *_partitions(last),
    ]


def _report(row: Row) -> list[str]:
    return [
        escaped(moment(row["at_ms"])),
        _who(row),
        _span(row["poll_interval_avg_ms"]),
        _span(row["poll_interval_max_ms"]),
        _span(row["rebalance_latency_max_ms"]),
        _span(row["rebalance_max_ms"]),
        _number(row["fetch_rate"]),
        _number(row["records_lag_max"]),
        *_partitions(row),
    ]


def _who(row: Row) -> str:
    name = row["group_instance_id"] or row["client_id"] or short(row["member_id"])
    return f'<span title="{escaped(row["member_id"])}">{escaped(name)}</span>'


def _partitions(row: Row) -> tuple[str, str]:
    """Partitions as both count them, marked where they differ."""
    own, coordinator = row["assigned_partitions"], row["owned_partitions"]
    differs = own is not None and coordinator is not None and own != coordinator
    return (f'<b class="medium">{own:,}</b>' if differs else _number(own)), _number(coordinator)


def _most(rows: Sequence[Row], name: str) -> int | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)


def _span(ms: int | None) -> str:
    return "" if ms is None else escaped(span(ms))


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
