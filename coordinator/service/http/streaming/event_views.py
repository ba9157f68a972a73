"""The events over HTTP: ranges of rows that are kept, and a stream of server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson
from aiohttp import web

from rejoin.coordinator.service.feed import EventRange, Feed, FeedRow, RowsNotRetained
from rejoin.coordinator.service.http.parameters import parameters, whole
from rejoin.coordinator.service.http.problems import Problem, one_error
from rejoin.coordinator.service.http.streaming.streams import EventRenderer, gather_seconds, open_stream
from rejoin.journal.envelope import JournalLine
from rejoin.journal.segments import segments
from rejoin.journal.writer import JournalWriter

MOST_ROWS: Final = 10_000
_LARGEST_NUMBER: Final = 2**63 - 1
_DEFAULT_ROWS: Final = 1_000
_STREAMED_ROWS: Final = 256
_IDLE_SECONDS: Final = 15.0
_STALLED_SECONDS: Final = 10.0


class EventViews:
    """Serves the rows of a feed, and where there is a journal the older ones from there."""

    def __init__(
        self,
        feed: Feed,
        stream: Mapping[str, Any],
        journal: JournalWriter | None = None,
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        """``stream`` says whose the rows are, and ``flush`` writes the newest ones into the journal."""
        self._feed = feed
        self._stream_of = stream
        self._journal = journal
        self._flush = flush
        self._renderer = EventRenderer()

    async def show(self, query: str, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a GET: a range of rows, or the rows as they come."""
        given = parameters(query, ("after", "limit", "group"))
        group_id = given.get("group")
        feed = self._feed
        if "text/event-stream" in request.headers.get("Accept", "") and request.method == "GET":
            last = request.headers.get("Last-Event-ID")
            if last is not None:
                after = whole("Last-Event-ID", last, _LARGEST_NUMBER)
            else:
                after = whole("after", given["after"], _LARGEST_NUMBER) if "after" in given else feed.head
            return await self._stream(request, after, group_id)
        after = whole("after", given.get("after", "0"), _LARGEST_NUMBER)
        limit = whole("limit", given.get("limit", str(_DEFAULT_ROWS)), MOST_ROWS)
        # Events that a client has seen must survive a kill, so they are flushed first.
        self._flush()
        # limit=0 asks for the position of the stream, which is valid for any ``after``.
        entries, behind = await self._range(after, limit, group_id) if limit else EventRange([], after)
        rows = b",".join(entry.text for entry in entries)
        tail = f'],"next":{behind},"head":{feed.head},"first":{self._first()},"stream":'
        stream = orjson.dumps(self._stream_of)
        return web.Response(body=b'{"events":[' + rows + tail.encode() + stream + b"}", content_type="application/json")

    def _first(self) -> int:
        """The oldest row that can be asked for: in the journal where there is one, else in memory."""
        journal = self._journal
        if journal is None:
            return self._feed.first
        kept = [segment.first for segment in segments(journal.directory) if segment.stream == journal.stream]
        return min(kept, default=self._feed.first)

    async def _range(self, after: int, limit: int, group_id: str | None) -> EventRange:
        """Rows from memory, or from the journal where they are older."""
        head = self._feed.head
        if after > head:
            detail = f"there is no event {after} yet, the newest is {head}: another run of the coordinator has begun"
            raise Problem(410, "events-gone", detail, one_error("after", f"expected at most {head}", after))
        try:
            return self._feed.range(after, limit, group_id)
        except RowsNotRetained:
            first = self._first()
            if after + 1 < first or self._journal is None:
                detail = f"the events behind {after} are no longer kept; the oldest is {first}"
                raise Problem(
                    410, "events-gone", detail, one_error("after", f"expected {first - 1} or more", after)
                ) from None
        self._flush()
        return await asyncio.to_thread(self._read_journal, after, limit, group_id)

    def _read_journal(self, after: int, limit: int, group_id: str | None) -> EventRange:
        # Most services are never asked for events that old.
        from rejoin.journal.reader import read_lines  # noqa: PLC0415

        journal = self._journal
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
        with open_stream(self._feed):
            return await self._stream_counted(request, after, group_id)

    async def _stream_counted(self, request: web.BaseRequest, after: int, group_id: str | None) -> web.StreamResponse:
        """Server-sent events: the same rows as they are written. A client that stalls is disconnected."""
        feed = self._feed
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
                await self._feed.wait(after)
        except TimeoutError:
            async with asyncio.timeout(_STALLED_SECONDS):
                await response.write(b": still here\n\n")


def _entry(line: JournalLine) -> FeedRow:
    row = json.loads(line.text)
    return FeedRow(line.seq, row["event"], row.get("group_id"), line.text)
