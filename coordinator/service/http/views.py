"""The read-only views: groups, topics, events, health, metrics, and the live page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import orjson
from aiohttp import web

from rejoin.coordinator.core.views import GroupView, ShareStateView
from rejoin.coordinator.service.driver import Runtime
from rejoin.coordinator.service.http.cluster_views import cluster, readiness
from rejoin.coordinator.service.http.parameters import parameters
from rejoin.coordinator.service.http.problems import Problem
from rejoin.coordinator.service.http.streaming.event_views import EventViews
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.publisher import Publisher
from rejoin.coordinator.service.writability import disk_problem

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


class NodeGroups:
    """The groups of a node, for the page that draws them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def now(self) -> int:
        """The time of the node's clock, ms since 1970."""
        return self._runtime.clock.now()

    def group_ids(self) -> list[str]:
        """The groups that the node leads."""
        return self._runtime.node.group_ids()

    def share_states(self, group_id: str) -> list[ShareStateView]:
        """The share-partitions of a group that the node leads."""
        return self._runtime.node.share_states(group_id, self.now())


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
        self._events = EventViews(publisher.feed, publisher.stream, publisher.journal, publisher.flush)
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

        return RecordingViews(
            NodeGroups(self._runtime),
            self._publisher.feed,
            self._began,
            title="Groups on this node, live",
            control=self.has_control,
        )

    async def show(self, match: RouteMatch, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a GET."""
        if match.route == "/events":
            return await self._events.show(match.query, request)
        if match.route == "/api/recorded":
            return await self._recording.stream(request, parameters(match.query, ("group",)).get("group", ""))
        if match.route == "/api/shares":
            return self._recording.shares(parameters(match.query, ("group",)).get("group", ""))
        # A group called .. has no path of its own in a browser.
        given = parameters(match.query, ("id",) if match.route == "/groups" else ())
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
        from rejoin.coordinator.service.http.streaming.recording import live_page  # noqa: PLC0415

        return web.Response(text=live_page(), content_type="text/html", charset="utf-8")

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


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _summary(view: GroupView) -> dict[str, Any]:
    summary = {name: value for name, value in view.model_dump(mode="json").items() if name in _SUMMARY}
    return {**summary, "members": len(view.members)}


def _not_found(what: str, name: str, known: list[str]) -> Problem:
    near = get_close_matches(name[:249], known[:_COMPARED], n=1)
    hint = f"; is it {near[0]}?" if near else ""
    return Problem(404, f"unknown-{what}", f"there is no {what} {name[:249]!r} on this node{hint}")
