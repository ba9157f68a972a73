"""The pages of a proxy over HTTP, with the paths that those of a node have."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import orjson
from aiohttp import web

from rejoin.client.core.errors import CodedError, KafkaError
from rejoin.coordinator.service.http.parameters import parameters
from rejoin.coordinator.service.http.problems import Problem
from rejoin.coordinator.service.http.streaming.event_views import EventViews
from rejoin.coordinator.service.http.streaming.recording import RecordingViews, live_page
from rejoin.proxy.control.groups import ClusterGroups
from rejoin.proxy.live.events import SeenEvents, read_row
from rejoin.proxy.live.groups import GroupsOnPage

CONTROLS: Final = ("faults",)
"""Paths of the control API that the page offers: a real cluster takes no more."""
_ASSETS: Final = "/assets/"


class ProxyPages:
    """Answers GET for pages and their data."""

    def __init__(self, groups: ClusterGroups, now_ms: Callable[[], float]) -> None:
        self.events = SeenEvents(uuid.uuid4().hex, now_ms)
        self._groups = GroupsOnPage(groups, self.events.of_groups, now_ms)
        self._rows = EventViews(self.events.feed, self.events.stream)
        self._drawn = RecordingViews(
            self._groups,
            self.events.feed,
            self._groups.now(),
            title="Groups of the cluster behind this proxy, live",
            control=CONTROLS,
            read=read_row,
        )

    async def show(self, path: str, query: str, request: web.BaseRequest) -> web.StreamResponse | None:
        """The answer, or none where a path is no page's."""
        if path.startswith(_ASSETS):
            return self._drawn.asset(path.removeprefix(_ASSETS))
        found = getattr(self, _PATHS.get(path, ""), None)
        if found is None:
            return None
        self.events.looked()
        try:
            answer: web.StreamResponse = await found(query, request)
        except KafkaError as error:
            reason = error.error.name if isinstance(error, CodedError) else str(error)
            raise Problem(503, "not-answered", f"the cluster does not answer: {reason}") from None
        return answer

    async def _page(self, _: str, __: web.BaseRequest) -> web.Response:
        return self._drawn.page()

    async def _list(self, _: str, __: web.BaseRequest) -> web.Response:
        return web.Response(text=live_page(), content_type="text/html", charset="utf-8")

    async def _start(self, _: str, __: web.BaseRequest) -> web.Response:
        with suppress(KafkaError):
            await self._groups.all()
        await self.events.update()
        return self._drawn.start()

    async def _recorded(self, query: str, request: web.BaseRequest) -> web.StreamResponse:
        return await self._drawn.stream(request, parameters(query, ("group",)).get("group", ""))

    async def _shares(self, query: str, _: web.BaseRequest) -> web.Response:
        return self._drawn.shares(parameters(query, ("group",)).get("group", ""))

    async def _events(self, query: str, request: web.BaseRequest) -> web.StreamResponse:
        return await self._rows.show(query, request)

    async def _all(self, query: str, _: web.BaseRequest) -> web.Response:
        given = parameters(query, ("id",))
        if "id" not in given:
            return _json({"groups": await self._groups.all()})
        found = await self._groups.one(given["id"])
        if found is None:
            raise Problem(404, "unknown-group", f"the cluster has no group {given['id'][:249]!r}")
        return _json(found)

    async def stop(self) -> None:
        """End the streams."""
        await self.events.stop()


_PATHS: Final = {
    "/": "_page",
    "/list": "_list",
    "/api/start": "_start",
    "/api/recorded": "_recorded",
    "/api/shares": "_shares",
    "/events": "_events",
    "/groups": "_all",
}


def _json(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
