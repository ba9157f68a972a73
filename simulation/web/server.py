"""Serves the laboratory's page on this machine: it plays scenarios in a thread, and answers for any instant of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from aiohttp import hdrs, web

from rejoin import pages
from rejoin.coordinator.service.http.access import Access, check_content_type
from rejoin.coordinator.service.http.problems import Problem
from rejoin.pages.assets import POLICY, asset
from rejoin.simulation.laboratory.exports import NotExported
from rejoin.simulation.laboratory.scenario_edits import with_event, with_value
from rejoin.simulation.scenario.reading import BadScenario
from rejoin.simulation.web.journal import JournalRecording
from rejoin.simulation.web.session import Explain, FirstScenario, LaboratorySession, PlayedRun, UnknownName, run_of

ASSETS: Final = "rejoin.pages.laboratory"
MOST_BYTES: Final = 5_000_000
NO_SCENARIO: Final = FirstScenario("", "", None)
T = TypeVar("T")

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LaboratoryServer:
    """Serves the page, its files and its API."""

    def __init__(self, first: FirstScenario | JournalRecording, gallery: Path, explain: Explain | None = None) -> None:
        """``explain``: what finds the causes of a run's rebalances; without it none are."""
        self._explain = explain
        self._journal = first if isinstance(first, JournalRecording) else None
        self._session = LaboratorySession(NO_SCENARIO if isinstance(first, JournalRecording) else first, gallery)
        self._access = Access()
        self._locks: WeakKeyDictionary[PlayedRun, asyncio.Lock] = WeakKeyDictionary()

    def app(self) -> web.Application:
        """The application."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await self._guarded(request, handler)
            if not response.prepared:
                response.headers.update(HEADERS)
            return response

        app = web.Application(middlewares=[guard], client_max_size=MOST_BYTES)
        app.router.add_get("/", self._page)
        app.router.add_get("/assets/{name}", self._asset)
        app.router.add_get("/api/start", self._start)
        app.router.add_get("/api/recorded", self._recorded)
        app.router.add_get("/api/gallery", self._list_gallery)
        app.router.add_get("/api/lessons", self._list_lessons)
        app.router.add_get("/api/gallery/{name}", self._show_scenario)
        app.router.add_post("/api/runs", self._play)
        app.router.add_get("/api/runs/{run}/state", self._show_state)
        app.router.add_get("/api/runs/{run}/{kind:transcript|pytest|journal}", self._export)
        app.router.add_get("/api/runs/{run}/lag", self._show_lag)
        app.router.add_get("/api/runs/{run}/findings", self._show_findings)
        app.router.add_post("/api/events", self._add_event)
        app.router.add_post("/api/values", self._set_value)
        return app

    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse other sites, and say what was wrong as JSON."""
        try:
            self._access.check(request)
            if request.method == hdrs.METH_POST:
                check_content_type(request.headers.get(hdrs.CONTENT_TYPE))
            return await handler(request)
        except Problem as problem:
            return problem.response()
        except BadScenario as mistake:
            return _refusal(422, str(mistake), mistake.line)
        except UnknownName as problem:
            return _refusal(404, str(problem))
        except NotExported as problem:
            return _refusal(409, str(problem))
        except web.HTTPException as refused:
            return _refusal(refused.status, refused.reason)

    # -- the page

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(text=pages.render(ASSETS, "page.html"), content_type="text/html")

    async def _asset(self, request: web.Request) -> web.Response:
        found = asset(ASSETS, request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(reason="there is no such file")
        return web.Response(text=found.text, content_type=found.content_type)

    # -- scenarios

    async def _start(self, _: web.Request) -> web.Response:
        journal = self._journal
        return web.json_response(self._session.first._asdict() if journal is None else journal.head())

    async def _recorded(self, request: web.Request) -> web.Response:
        group_id = _group_of(request)
        if self._journal is None or group_id not in self._journal.groups:
            raise web.HTTPNotFound(reason="there is no such group")
        piece = await asyncio.to_thread(self._journal.piece, group_id)
        return web.Response(body=_line(piece), content_type="application/x-ndjson")

    async def _list_gallery(self, _: web.Request) -> web.Response:
        return web.json_response(self._session.gallery())

    async def _list_lessons(self, _: web.Request) -> web.Response:
        return web.json_response(self._session.lessons())

    async def _show_scenario(self, request: web.Request) -> web.Response:
        return web.json_response(self._session.gallery_text(request.match_info["name"]))

    async def _add_event(self, request: web.Request) -> web.Response:
        body = await _body(request, {"text": str, "at": int, "action": str})
        return web.json_response({"text": with_event(body["text"], max(0, body["at"]), body["action"])})

    async def _set_value(self, request: web.Request) -> web.Response:
        body = await _body(request, {"text": str, "path": list, "value": str})
        path = body["path"]
        if not path or not all(isinstance(key, str) for key in path):
            raise web.HTTPBadRequest(reason="path: expected the keys that lead to the value")
        return web.json_response({"text": with_value(body["text"], path, body["value"])})

    # -- runs

    async def _play(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request, {"text": str, "seed": (int, type(None))})
        run = await asyncio.to_thread(run_of, body["text"], body["seed"])
        played = self._session.new_run(body["text"], run)
        response = web.StreamResponse(headers={**HEADERS, hdrs.CONTENT_TYPE: "application/x-ndjson"})
        # A page that is closed or reloaded wants no more of the run.
        with suppress(ConnectionError):
            await response.prepare(request)
            await response.write(_line(played.head()))
            while (piece := await self._alone(played, played.next_piece)) is not None:
                await response.write(_line(piece))
            await response.write_eof()
        return response

    async def _alone(self, played: PlayedRun, ask: Callable[..., T], *arguments: object) -> T:
        """Ask a run in a thread, one call at a time."""
        async with self._locks.setdefault(played, asyncio.Lock()):
            return await asyncio.to_thread(ask, *arguments)

    def _played(self, request: web.Request) -> PlayedRun:
        return self._session.run(request.match_info["run"])

    async def _export(self, request: web.Request) -> web.Response:
        played = self._played(request)
        kind = request.match_info["kind"]
        return web.Response(text=await self._alone(played, played.export, kind, _group_of(request)))

    async def _show_lag(self, request: web.Request) -> web.Response:
        played = self._played(request)
        first, last, points = (_whole(request, name) for name in ("from", "to", "points"))
        return web.json_response(await self._alone(played, played.lag, _group_of(request), first, last, points))

    async def _show_findings(self, request: web.Request) -> web.Response:
        played, explain = self._played(request), self._explain
        found = None if explain is None else await self._alone(played, played.findings, explain, _group_of(request))
        return web.json_response(found)

    async def _show_state(self, request: web.Request) -> web.Response:
        played = self._played(request)
        return web.json_response(await self._alone(played, played.state, _whole(request, "at")))


def _group_of(request: web.Request) -> str:
    return request.query.get("group", "")


def _whole(request: web.Request, name: str) -> int:
    """A whole number of the query, such as milliseconds."""
    text = request.query.get(name, "")
    if not (text.isdecimal() and text.isascii() and len(text) < 16):
        raise web.HTTPBadRequest(reason=f"{name}: expected a whole number, 0 or more")
    return int(text)


async def _body(request: web.Request, expected: dict[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """The JSON of a request with just these keys. Raises for anything else."""
    try:
        body = json.loads(await request.text())
    except ValueError:
        raise web.HTTPBadRequest(reason="expected JSON") from None
    if not isinstance(body, dict) or body.keys() != expected.keys():
        raise web.HTTPBadRequest(reason=f"expected an object with {', '.join(expected)}")
    for key, kinds in expected.items():
        if not isinstance(body[key], kinds) or isinstance(body[key], bool):
            raise web.HTTPBadRequest(reason=f"{key}: has the wrong type")
    return body


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _refusal(status: int, detail: str, line: int | None = None) -> web.Response:
    return web.json_response({"detail": detail, "line": line}, status=status, content_type="application/problem+json")


@asynccontextmanager
async def running(
    first: FirstScenario | JournalRecording, gallery: Path, port: int = 0, explain: Explain | None = None
) -> AsyncIterator[str]:
    """A server that runs meanwhile, by its address. Raises OSError where the port cannot be used."""
    runner = web.AppRunner(LaboratoryServer(first, gallery, explain).app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def serve(
    first: FirstScenario | JournalRecording,
    gallery: Path,
    port: int,
    ready: Callable[[str], None],
    explain: Explain | None = None,
) -> None:
    """Serve until the task is cancelled. ``ready`` gets the address."""
    async with running(first, gallery, port, explain) as address:
        ready(address)
        await asyncio.Event().wait()
