"""The page that draws a group as its events come: lanes, partitions, and the group now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from rejoin.coordinator.core.views import ShareStateView
from rejoin.coordinator.service.feed import Feed, RowsNotRetained
from rejoin.coordinator.service.http.problems import Problem
from rejoin.coordinator.service.http.streaming.streams import open_stream
from rejoin.journal.envelope import JournalRow

ASSETS: Final = "rejoin.pages.laboratory"
MOST_GROUPS: Final = 1_000
"""So many groups can be chosen from."""
_ROWS_AT_ONCE: Final = 200
_PAUSE_S: Final = 0.2
"""Shortest time between two messages to a page."""
_IDLE_S: Final = 1.0
"""Time between two messages without rows, which carry the clock alone."""
_STALLED_S: Final = 10.0


class DrawnGroups(Protocol):
    """The groups of a page, and the time by which they live."""

    def now(self) -> int:
        """The time, ms since 1970."""

    def group_ids(self) -> Sequence[str]:
        """The groups that there are."""

    def share_states(self, group_id: str) -> Sequence[ShareStateView]:
        """The share-partitions of a group that are known, as they are now."""


class RecordingViews:
    """Serves the page, its files and its rows. ``origin_ms`` is where time begins on the page."""

    def __init__(
        self,
        groups: DrawnGroups,
        feed: Feed,
        origin_ms: int,
        *,
        title: str,
        control: bool | Sequence[str],
        read: Callable[[bytes], JournalRow] | None = None,
    ) -> None:
        """``control`` are the paths of the control API that the page may use, true for all.

        ``read`` reads a row of the feed; rows are those of a journal where it is not given.
        """
        self._groups = groups
        self._feed = feed
        self._origin = origin_ms
        self._title = title
        self._control = control
        self._read = read

    def page(self) -> web.Response:
        """The page."""
        # The page is imported on the first request, to keep startup fast.
        from rejoin import pages  # noqa: PLC0415
        from rejoin.pages.assets import POLICY  # noqa: PLC0415

        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return web.Response(
            text=pages.render(ASSETS, "page.html"), content_type="text/html", charset="utf-8", headers=headers
        )

    def asset(self, name: str) -> web.Response:
        """A script or style sheet of the page. Raises :class:`Problem`."""
        from rejoin.pages.assets import asset  # noqa: PLC0415

        found = asset(ASSETS, name)
        if found is None:
            raise Problem(404, "unknown-file", f"the page has no file {name[:100]}")
        headers = {"Cache-Control": "no-store"}
        return web.Response(text=found.text, content_type=found.content_type, headers=headers)

    def start(self) -> web.Response:
        """The first state of the page."""
        groups = sorted(self._groups.group_ids())[:MOST_GROUPS]
        head = {
            "recorded": True,
            "live": True,
            "title": self._title,
            "origin": self._origin,
            "groups": groups,
            "control": self._control,
        }
        return web.Response(body=orjson.dumps(head), content_type="application/json")

    def shares(self, group_id: str) -> web.Response:
        """The share-partitions of a group that are known, as they are now."""
        found = self._groups.share_states(group_id)
        body = orjson.dumps([each.model_dump(mode="json", by_alias=True) for each in found])
        return web.Response(body=body, content_type="application/json")

    async def stream(self, request: web.BaseRequest, group_id: str) -> web.StreamResponse:
        """The recording of a group as lines of JSON: kept events first, then new ones as they come."""
        with open_stream(self._feed):
            return await self._stream(request, group_id)

    async def _stream(self, request: web.BaseRequest, group_id: str) -> web.StreamResponse:
        # Most services never show the page.
        from rejoin.journal.recording.group_recording import GroupRecording  # noqa: PLC0415

        recording, feed = GroupRecording(group_id, self._origin), self._feed
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        after = feed.first - 1
        with suppress(TimeoutError, RowsNotRetained):
            while True:
                after = await self._take(recording, after, group_id)
                piece = orjson.dumps(recording.take(self._groups.now())) + b"\n"
                async with asyncio.timeout(_STALLED_S):
                    await response.write(piece)
                if feed.closed:
                    return response
                await asyncio.sleep(_PAUSE_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_IDLE_S):
                        await feed.wait(after)
        # Too slow, or its position is no longer kept: the page asks anew.
        if request.transport is not None:
            request.transport.abort()
        return response

    async def _take(self, recording: Any, after: int, group_id: str) -> int:
        """Take all rows behind a number; the number of the last. Requests are served in between."""
        from rejoin.journal.recording.group_recording import SCHEMA  # noqa: PLC0415

        feed, read = self._feed, self._read or SCHEMA.read
        while after < feed.head:
            entries, after = feed.range(after, _ROWS_AT_ONCE)
            for entry in entries:
                if entry.name in SCHEMA.events and entry.group_id in (None, group_id):
                    recording.add(read(entry.text))
            await asyncio.sleep(0)
        return after


@lru_cache(maxsize=1)
def live_page() -> str:
    """The page with all groups and events as text."""
    from rejoin import pages  # noqa: PLC0415 (the template engine is imported on the first request)

    return pages.render("rejoin.coordinator.service.pages", "live.html")
