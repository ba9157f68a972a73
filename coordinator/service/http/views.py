"""The read-only views: groups, topics, events, health, metrics, and the live page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import orjson
from aiohttp import web

from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.service.driver import Runtime
from rejoin.coordinator.service.feed import EventRange, FeedRow, RowsNotRetained
from rejoin.coordinator.service.http.cluster_views import cluster, readiness
from rejoin.coordinator.service.http.problems import Problem, one_error
from rejoin.coordinator.service.http.streaming.streams import EventRenderer, gather_seconds, open_stream
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.publisher import Publisher
from rejoin.coordinator.service.writability import disk_problem
from rejoin.journal.envelope import JournalLine
from rejoin.journal.segments import segments

if TYPE_CHECKING:
    from rejoin.coordinator.service.http.streaming.recording import RecordingViews

ROUTES: Final = (
    "/",
    "/list",
    "/groups",
    "/groups/{groupId}",
    "/topics",
    "/topics/{name}",
    "/events",
    "/cluster",
    "/healthz",
    "/readyz",
    "/metrics",
)

MOST_ROWS: Final = 10_000
_LARGEST_NUMBER: Final = 2**63 - 1
_DEFAULT_ROWS: Final = 1_000
_STREAMED_ROWS: Final = 256
_IDLE_SECONDS: Final = 15.0
_STALLED_SECONDS: Final = 10.0
_AT_ONCE: Final = 200
_COMPARED: Final = 1_000
"""So many names are compared with one that is not there: it takes 20 µs each."""
_SUMMARY: Final = {
    "groupId",
    "partition",
    "state",
    "previousState",
    "stateSince",
    "generation",
    "groupEpoch",
    "assignmentEpoch",
    "protocolType",
    "protocol",
    "leader",
    "rebalanceCause",
    "rebalances",
}


_NAMED: Final = (
    ("/groups/", "/groups/{groupId}"),
    ("/topics/", "/topics/{name}"),
    ("/assets/", "/assets/{name}"),
)


class RouteMatch(NamedTuple):
    """A route, and the name in the path that matched it."""

    route: str
    name: str
    query: str


class Views:
    """The responses to GET."""

    def __init__(
        self,
        runtime: Runtime,
        publisher: Publisher,
        metrics: Metrics,
        store: str = "memory",
        folders: Sequence[Path] = (),
    ) -> None:
        """``folders`` are those that the node writes to."""
        self.is_starting = True
        self._store = store
        self._folders = folders
        self._runtime = runtime
        self._publisher = publisher
        self._renderer = EventRenderer()
        self._metrics = metrics
        self.has_control = False
        self._began = runtime.clock.now()
        self._handlers: dict[str, Callable[[RouteMatch], web.Response]] = {
            "/": lambda _: self._recording.page(),
            "/list": self._page,
            "/api/start": lambda _: self._recording.start(),
            "/assets/{name}": lambda match: self._recording.asset(match.name),
            "/groups/{groupId}": self._group,
            "/topics": self._topics,
            "/topics/{name}": self._topic,
            "/cluster": self._cluster,
            "/healthz": self._health,
            "/readyz": self._readiness,
        }

    def match(self, raw_path: str) -> RouteMatch | None:
        """The view that a path names, if any."""
        path, _, query = raw_path.partition("?")
        if path in self._handlers or path in {"/events", "/groups", "/metrics", "/api/recorded", "/api/shares"}:
            return RouteMatch(path, "", query)
        for prefix, route in _NAMED:
            if path.startswith(prefix) and len(path) > len(prefix):
                return RouteMatch(route, unquote(path[len(prefix) :]), query)
        return None

    @cached_property
    def _recording(self) -> RecordingViews:
        # Most services never show the page that draws their groups.
        from rejoin.coordinator.service.http.streaming.recording import RecordingViews  # noqa: PLC0415

        return RecordingViews(self._runtime, self._publisher, self._began, has_control=self.has_control)

    async def show(self, match: RouteMatch, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a GET."""
        if match.route == "/events":
            return await self._events(match, request)
        if match.route == "/api/recorded":
            return await self._recording.stream(request, _parameters(match, ("group",)).get("group", ""))
        if match.route == "/api/shares":
            return self._recording.shares(_parameters(match, ("group",)).get("group", ""))
        # A group called .. has no path of its own in a browser.
        given = _parameters(match, ("id",) if match.route == "/groups" else ())
        if "id" in given:
            match = RouteMatch("/groups/{groupId}", given["id"], "")
        if match.route == "/groups":
            return await self._groups()
        if match.route == "/metrics":
            return await self._metrics_page()
        return self._handlers[match.route](match)

    def stop(self) -> None:
        """End the streams."""
        self._publisher.feed.close()

    def _page(self, match: RouteMatch) -> web.Response:
        return web.Response(text=_live_page(), content_type="text/html", charset="utf-8")

    async def _groups(self) -> web.Response:
        node = self._runtime.node
        summaries = []
        for number, group_id in enumerate(node.group_ids(), 1):
            view = node.summarize_group(group_id)
            if view is not None:
                summaries.append(_summary(view))
            if number % _AT_ONCE == 0:
                # Heartbeats do not wait for a list of many thousand groups.
                await asyncio.sleep(0)
        return _json({"groups": summaries})

    def _group(self, match: RouteMatch) -> web.Response:
        now = self._runtime.clock.now()
        node = self._runtime.node
        view = node.describe_group(match.name)
        if view is None:
            raise _not_found("group", match.name, node.group_ids())
        offsets = [offset.model_dump(mode="json") for offset in node.describe_offsets(match.name, now)]
        return _json({**view.model_dump(mode="json"), "offsets": offsets})

    def _topics(self, match: RouteMatch) -> web.Response:
        topics = self._runtime.node.describe_topics(self._runtime.clock.now())
        return _json({"topics": [topic.model_dump(mode="json") for topic in topics]})

    def _topic(self, match: RouteMatch) -> web.Response:
        topics = {topic.topic: topic for topic in self._runtime.node.describe_topics(self._runtime.clock.now())}
        if match.name not in topics:
            raise _not_found("topic", match.name, list(topics))
        return _json(topics[match.name].model_dump(mode="json"))

    def _health(self, match: RouteMatch) -> web.Response:
        node = self._runtime.node.describe()
        states = [partition.state.lower() for partition in node.partitions]
        counts = {state: states.count(state) for state in sorted(set(states))}
        # Always 200: the process is alive. /readyz says whether to send requests here.
        status = "starting" if self.is_starting else "ok" if all(state == "active" for state in states) else "loading"
        return _json({"status": status, "nodeId": node.node_id, "partitions": counts})

    def _readiness(self, match: RouteMatch) -> web.Response:
        is_shared = self._runtime.leadership.lease_ms is not None
        disk = disk_problem(self._folders, self._metrics.store, self._publisher, is_shared=is_shared)
        ready, body = readiness(self._runtime, is_starting=self.is_starting, disk_problem=disk)
        return _json(body, 200 if ready else 503)

    def _cluster(self, match: RouteMatch) -> web.Response:
        return _json(cluster(self._runtime, self._store))

    async def _metrics_page(self) -> web.Response:
        self._metrics.leases = self._runtime.leadership.counts
        node = self._runtime.node.describe()
        feed = self._publisher.feed
        # 56 ms, of use to scrapers only.
        from rejoin.coordinator.service import exposition  # noqa: PLC0415
        from rejoin.coordinator.service.http.group_metrics import group_gauges  # noqa: PLC0415

        groups = await group_gauges(self._runtime.node, self._runtime.clock.now())
        text = exposition.page(self._metrics, node, feed.listeners, feed.head, self._runtime.core_failures, groups)
        return web.Response(body=text, headers={"Content-Type": exposition.CONTENT_TYPE})

    async def _events(self, match: RouteMatch, request: web.BaseRequest) -> web.StreamResponse:
        given = _parameters(match, ("after", "limit", "group"))
        group_id = given.get("group")
        feed = self._publisher.feed
        if "text/event-stream" in request.headers.get("Accept", "") and request.method == "GET":
            last = request.headers.get("Last-Event-ID")
            if last is not None:
                after = _whole("Last-Event-ID", last, _LARGEST_NUMBER)
            else:
                after = _whole("after", given["after"], _LARGEST_NUMBER) if "after" in given else feed.head
            return await self._stream(request, after, group_id)
        after = _whole("after", given.get("after", "0"), _LARGEST_NUMBER)
        limit = _whole("limit", given.get("limit", str(_DEFAULT_ROWS)), MOST_ROWS)
        # Events that a client has seen must survive a kill, so they are flushed first.
        self._publisher.flush()
        # limit=0 asks for the position of the stream, which is valid for any ``after``.
        entries, behind = await self._range(after, limit, group_id) if limit else EventRange([], after)
        rows = b",".join(entry.text for entry in entries)
        tail = f'],"next":{behind},"head":{feed.head},"first":{self._first()},"stream":'
        stream = orjson.dumps(self._publisher.stream)
        return web.Response(body=b'{"events":[' + rows + tail.encode() + stream + b"}", content_type="application/json")

    def _first(self) -> int:
        """The oldest row that can be asked for: in the journal where there is one, else in memory."""
        journal = self._publisher.journal
        if journal is None:
            return self._publisher.feed.first
        kept = [segment.first for segment in segments(journal.directory) if segment.stream == journal.stream]
        return min(kept, default=self._publisher.feed.first)

    async def _range(self, after: int, limit: int, group_id: str | None) -> EventRange:
        """Rows from memory, or from the journal where they are older."""
        head = self._publisher.feed.head
        if after > head:
            detail = f"there is no event {after} yet, the newest is {head}: another run of the coordinator has begun"
            raise Problem(410, "events-gone", detail, one_error("after", f"expected at most {head}", after))
        try:
            return self._publisher.feed.range(after, limit, group_id)
        except RowsNotRetained:
            first = self._first()
            if after + 1 < first or self._publisher.journal is None:
                detail = f"the events behind {after} are no longer kept; the oldest is {first}"
                raise Problem(
                    410, "events-gone", detail, one_error("after", f"expected {first - 1} or more", after)
                ) from None
        self._publisher.flush()
        return await asyncio.to_thread(self._read_journal, after, limit, group_id)

    def _read_journal(self, after: int, limit: int, group_id: str | None) -> EventRange:
        # Most services are never asked for events that old.
        from rejoin.journal.reader import read_lines  # noqa: PLC0415

        journal = self._publisher.journal
        assert journal is not None
        source, node = journal.stream
        found: list[FeedRow] = []
        for line in read_lines(journal.directory, after, source=source, node=node):
            entry = _entry(line)
            if group_id is None or entry.group_id == group_id:
                found.append(entry)
            after = entry.seq
            if len(found) == limit:
                break
        return EventRange(found, after)

    async def _stream(self, request: web.BaseRequest, after: int, group_id: str | None) -> web.StreamResponse:
        with open_stream(self._publisher.feed):
            return await self._stream_counted(request, after, group_id)

    async def _stream_counted(self, request: web.BaseRequest, after: int, group_id: str | None) -> web.StreamResponse:
        """Server-sent events: the same rows as they are written. A client that stalls is disconnected."""
        feed = self._publisher.feed
        if after > feed.head:
            # A listener of an earlier run with higher numbers: all events of this run are new to it.
            after = feed.first - 1
        entries, after = await self._range(after, _STREAMED_ROWS, group_id)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
        )
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"retry: 1000\n\n")
        with suppress(TimeoutError, Problem):
            while True:
                async with asyncio.timeout(_STALLED_SECONDS):
                    if entries:
                        await response.write(self._renderer.render(entries))
                if after >= feed.head:
                    if feed.closed:
                        break
                    await self._wait(response, after)
                    if pause := gather_seconds(feed):
                        await asyncio.sleep(pause)
                entries, after = await self._range(after, _STREAMED_ROWS, group_id)
            return response
        # Too slow, or its position is no longer kept: it reconnects with its last id and learns what it missed.
        if request.transport is not None:
            request.transport.abort()
        return response

    async def _wait(self, response: web.StreamResponse, after: int) -> None:
        try:
            async with asyncio.timeout(_IDLE_SECONDS):
                await self._publisher.feed.wait(after)
        except TimeoutError:
            async with asyncio.timeout(_STALLED_SECONDS):
                await response.write(b": still here\n\n")


@lru_cache(maxsize=1)
def _live_page() -> str:
    """The live page. The template engine is imported on the first request, to keep startup fast."""
    from rejoin import pages  # noqa: PLC0415

    return pages.render("rejoin.coordinator.service.pages", "live.html")


def _entry(line: JournalLine) -> FeedRow:
    row = json.loads(line.text)
    return FeedRow(line.seq, row["event"], row.get("group_id"), line.text)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _summary(view: GroupView) -> dict[str, Any]:
    summary = {name: value for name, value in view.model_dump(mode="json").items() if name in _SUMMARY}
    return {**summary, "members": len(view.members)}


def _not_found(what: str, name: str, known: list[str]) -> Problem:
    near = get_close_matches(name[:249], known[:_COMPARED], n=1)
    hint = f"; is it {near[0]}?" if near else ""
    return Problem(404, f"unknown-{what}", f"there is no {what} {name[:249]!r} on this node{hint}")


def _parameters(match: RouteMatch, known: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in match.query.split("&") if match.query else ():
        name, _, value = part.partition("=")
        name, value = unquote(name.replace("+", " ")), unquote(value.replace("+", " "))
        if name not in known:
            expected = "expected one of " + ", ".join(known) if known else "expected no parameters"
            raise _bad_parameter(name, f"unknown parameter; {expected}", value)
        given[name] = value
    return given


def _whole(name: str, given: str, largest: int) -> int:
    if given.isascii() and given.isdecimal() and len(given) < 20 and int(given) <= largest:
        return int(given)
    raise _bad_parameter(name, f"expected a whole number from 0 to {largest}", given)


def _bad_parameter(name: str, reason: str, given: str) -> Problem:
    return Problem(400, "invalid-parameter", f"{name[:64]}: {reason}", one_error(name[:64], reason, given))
