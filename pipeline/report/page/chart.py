"""The data of a group's chart, as the page's script reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rejoin.pipeline.findings.cause_texts import CAUSES, DEFAULT_REASONS
from rejoin.pipeline.findings.formatting import count, is_simulated, period
from rejoin.pipeline.report.data import GroupReport
from rejoin.pipeline.vocabulary import INFERRED

_REASON_CHARS: Final = 160


def chart_of(group: GroupReport) -> dict[str, Any]:
    """The data of one group's chart, as the script reads it."""
    causes = list(CAUSES)
    names: dict[str, int] = {}
    reasons: dict[str, int] = {}
    rebalances = []
    for row in group.rebalances:
        cause = row["cause"] if row["cause"] in CAUSES else "unknown"
        reason = str(row.get("client_reason") or "")[:_REASON_CHARS]
        if reason.startswith(DEFAULT_REASONS):
            reason = ""
        who, prepared, end = row.get("who") or "", row["prepared_at_ms"], row.get("ended_at_ms")
        rebalances.append(
            [
                prepared,
                prepared if end is None else end,
                causes.index(cause),
                names.setdefault(who, len(names)) if who else -1,
                row.get("outcome"),
                row.get("moved"),
                row.get("regained"),
                row.get("stopped_ms"),
                row.get("generation_to"),
                reasons.setdefault(reason, len(reasons)) if reason else -1,
                row.get("given_up"),
                int(row.get("confidence") == INFERRED),
            ]
        )
    return {
        "name": group.group_id,
        "label": f"{count(len(group.rebalances), 'rebalance')} {period(group.from_ms, group.to_ms)}, "
        f"{count(len(group.partitions), 'partition')}, {count(len(group.owners), 'owner')}",
        "from": group.from_ms,
        "to": max(group.to_ms, group.from_ms + 1),
        "simulated": is_simulated(group.from_ms),
        "owners": list(group.owners),
        "short": _without_beginning(group.owners, group.group_id),
        "names": list(names),
        "reasons": list(reasons),
        "partitions": [list(each) for each in group.partitions],
        "held": group.owned.encoded(group.from_ms),
        "members": list(group.members),
        "sessions": [list(each) for each in group.sessions],
        "overlaps": [list(each) for each in group.overlaps],
        "rebalances": rebalances,
        "annotations": [list(each) for each in group.annotations],
        "stops": [list(each) for each in group.stops],
        "lag": [list(point) for point in group.lag],
        "balance": [
            [
                row["at_ms"],
                group.to_ms if row["until_ms"] is None else row["until_ms"],
                row["least"],
                row["most"],
                round(row["partitions"] / row["members"], 2),
            ]
            for row in group.balance
            if row["least"] is not None and row["most"] is not None and row["members"]
        ],
    }


def _without_beginning(owners: Sequence[str], group_id: str) -> list[str]:
    """Owners as they fit into a bar: without what all of them begin with."""
    begins = (f"{group_id}-", f"consumer-{group_id}-")
    found = []
    for owner in owners:
        name = owner.rsplit("/", 1)[-1]
        begin = next((each for each in begins if name.startswith(each) and len(name) > len(each)), "")
        found.append(name[len(begin) :])
    return found if len(set(found)) == len(found) else list(owners)
