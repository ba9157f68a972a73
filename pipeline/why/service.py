"""A running coordinator: its views, and the events that it keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import quote

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.watch.service import EventsGone, NotAService, ServiceClient, ServiceDown, Standing
from rejoin.pipeline.why.events import (
    READ_EVENTS,
    consumers_report,
    events_of,
    findings_of,
    rebalances_of,
    sessions_of,
    share_tables_of,
)
from rejoin.pipeline.why.rows import names_of
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, SourceProblem, unknown_group

_TIMEOUT_SECONDS: Final = 5.0
_AT_ONCE: Final = 10_000
_MOST_EVENTS: Final = 50_000
"""Up to so many events are read whole; of longer streams only those of the group."""
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

T = TypeVar("T")


class ServiceSource:
    """Coordinators at ``http://HOST:PORT``, the nodes of one cluster. Each group is asked for where it is."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._clients = [ServiceClient(url, timeout_seconds=_TIMEOUT_SECONDS) for url in urls]
        self._where = ", ".join(client.url for client in self._clients)

    def groups(self) -> list[GroupStatus]:
        """All groups of these nodes."""
        found = {
            view["groupId"]: _status(view)
            for client in self._clients
            for view in self._ask(client, lambda each: each.view("/groups"))["groups"]
        }
        return [found[group_id] for group_id in sorted(found)]

    def story(self, group_id: str) -> GroupStory:
        """All about one group."""
        view = self._view(group_id)
        events, notes = self._events(group_id)
        rebalances = rebalances_of(group_id, events)
        # Groups that stand still have no events: silence lasts until now.
        end_ms = max([int(time.time() * 1_000), *(row["at_ms"] for row in events)])
        findings = findings_of(group_id, events, rebalances, end_ms)
        shared = share_tables_of(group_id, events, end_ms)["share_partitions"]
        is_share_group = any(row["group_type"] == "share" for row in events if row["group_id"] == group_id)
        return GroupStory(
            replace(_status(view), group_type="share" if is_share_group else None),
            rebalances,
            findings,
            names_of(sessions_of(group_id, events)),
            notes,
            recorded=(min((row["at_ms"] for row in events), default=end_ms), end_ms),
            costs_are_upper_bounds=not consumers_report(group_id, events),
            share_partitions=shared,
        )

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        events, _ = self._events(None)
        end_ms = max([int(time.time() * 1_000), *(row["at_ms"] for row in events)])
        found: list[Row] = []
        for group_id in sorted({row["group_id"] for row in events if row["group_id"] is not None}):
            found += findings_of(group_id, events, rebalances_of(group_id, events), end_ms)
        return sorted(found, key=order)

    def _view(self, group_id: str) -> Row:
        for client in self._clients:
            listed = self._ask(client, lambda each: each.view("/groups"))["groups"]
            if any(each["groupId"] == group_id for each in listed):
                return self._ask(client, lambda each: each.view(f"/groups?id={quote(group_id, safe='')}"))
        raise unknown_group(group_id, [each.group_id for each in self.groups()], self._where)

    def _events(self, group_id: str | None) -> tuple[list[Row], list[str]]:
        """Events of all nodes by time, and what is missing."""
        lines: list[str] = []
        notes: list[str] = []
        for client in self._clients:
            standing = self._ask(client, ServiceClient.standing)
            wanted = group_id if standing.head - standing.first > _MOST_EVENTS else None
            if standing.first > 1:
                notes.append(f"{client.url} keeps its events from {standing.first} on; with --journal it keeps all")
            if group_id is not None or wanted is None:
                lines += map(_ENCODE, self._rows(client, standing, wanted))
        return events_of(lines)[0], notes

    def _rows(self, client: ServiceClient, standing: Standing, group_id: str | None) -> Iterator[dict[str, Any]]:
        after = standing.first - 1
        while after < standing.head:
            begin = after
            rows, after = self._ask(client, lambda each, begin=begin: each.events(begin, _AT_ONCE, group_id))  # type: ignore[misc]
            yield from (row for row in rows if row.get("event") in READ_EVENTS)

    def _ask(self, client: ServiceClient, ask: Callable[[ServiceClient], T]) -> T:
        try:
            with closing(client):
                return ask(client)
        except (ServiceDown, NotAService, EventsGone) as problem:
            raise SourceProblem(str(problem)) from None


def _status(view: Row) -> GroupStatus:
    lags = [offset["lag"] for offset in view.get("offsets", ()) if offset["lag"] is not None]
    ages = [age for offset in view.get("offsets", ()) if (age := offset.get("lagMs")) is not None]
    members = view["members"]
    return GroupStatus(
        view["groupId"],
        state=view["state"],
        since_ms=view["stateSince"],
        generation=view["generation"],
        members=members if isinstance(members, int) else len(members),
        protocol=view["protocol"],
        lag=sum(lags) if lags else None,
        lag_ms=max(ages) if ages else None,
        rebalances=view["rebalances"],
    )
