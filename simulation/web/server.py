"""Serves the laboratory's page on this machine: it plays scenarios in a thread, and answers for any instant of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiohttp import hdrs, web

from rejoin import pages
from rejoin.coordinator.service.http.access import Access, check_content_type
from rejoin.coordinator.service.http.problems import Problem
from rejoin.simulation.laboratory.exports import NotExported, pytest_of, transcript_of
from rejoin.simulation.laboratory.lag import lag_between
from rejoin.simulation.laboratory.lessons import read_lessons
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.laboratory.scenario_edits import with_event, with_value
from rejoin.simulation.laboratory.settings import controls_of
from rejoin.simulation.laboratory.state import state_at
from rejoin.simulation.laboratory.words import sentences
from rejoin.simulation.scenario.reading import BadScenario, read_scenario, scenario_from

ASSETS: Final = "rejoin.pages.laboratory"
KEPT_RUNS: Final = 6
"""Number of runs that are kept; those that were not looked at for longest are forgotten."""

MOST_BYTES: Final = 5_000_000

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_TYPES: Final = {".js": "text/javascript", ".css": "text/css"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FirstScenario(NamedTuple):
    """The scenario that the page opens with."""

    name: str
    text: str
    seed: int | None


class PlayedRun:
    """A run that a page looks at. Only one thread at a time is in it."""

    def __init__(self, run: LaboratoryRun, text: str) -> None:
        self.run = run
        self.text = text
        self._pieces = run.play()
        self._lock = asyncio.Lock()

    async def next_piece(self) -> dict[str, Any] | None:
        """Play on a bit; none at the end."""
        async with self._lock:
            return await asyncio.to_thread(next, self._pieces, None)

    async def state(self, at: int) -> dict[str, Any]:
        """The state of an instant, and the sentences for it."""
        async with self._lock:
            return await asyncio.to_thread(_state, self.run, at)

    async def lag(self, group_id: str, first: int, last: int, points: int) -> dict[str, Any]:
        """The lag of a group in so many instants, and its commits between the first and the last."""
        async with self._lock:
            run = self.run
            return await asyncio.to_thread(lag_between, run.simulation, run.commits, group_id, first, last, points)

    async def export(self, kind: str, group_id: str) -> str:
        """The run as a transcript or as a test. Raises :class:`NotExported`."""
        async with self._lock:
            if kind == "transcript":
                return await asyncio.to_thread(transcript_of, self.run.scenario, self.run.simulation.seed, group_id)
            return pytest_of(self.run, self.text)


def _state(run: LaboratoryRun, at: int) -> dict[str, Any]:
    state = state_at(run, at)
    return {**state, "words": {group_id: sentences(run, group_id, state) for group_id in run.scenario.groups}}


class LaboratoryServer:
    """Serves the page, its files and its API."""

    def __init__(self, first: FirstScenario, gallery: Path) -> None:
        self._first = first
        self._gallery = gallery
        self._access = Access()
        self._runs: dict[str, PlayedRun] = {}
        self._count = 0

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
        app.router.add_get("/api/gallery", self._list_gallery)
        app.router.add_get("/api/lessons", self._list_lessons)
        app.router.add_get("/api/gallery/{name}", self._show_scenario)
        app.router.add_post("/api/runs", self._play)
        app.router.add_get("/api/runs/{run}/state", self._show_state)
        app.router.add_get("/api/runs/{run}/{kind:transcript|pytest}", self._export)
        app.router.add_get("/api/runs/{run}/lag", self._show_lag)
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
        except web.HTTPException as refused:
            return _refusal(refused.status, refused.reason)

    # -- the page

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(text=pages.render(ASSETS, "page.html"), content_type="text/html")

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        known = {each.name: each for each in files(ASSETS).iterdir() if Path(each.name).suffix in _TYPES}
        if name not in known:
            raise web.HTTPNotFound(reason="there is no such file")
        return web.Response(text=known[name].read_text("utf-8"), content_type=_TYPES[Path(name).suffix])

    # -- scenarios

    async def _start(self, _: web.Request) -> web.Response:
        return web.json_response(self._first._asdict())

    async def _list_gallery(self, _: web.Request) -> web.Response:
        found = [(path.stem, read_scenario(path)) for path in sorted(self._gallery.glob("*.yaml"))]
        return web.json_response(
            [{"name": name, "title": name.replace("_", " "), "question": each.question} for name, each in found]
        )

    async def _list_lessons(self, _: web.Request) -> web.Response:
        return web.json_response([each.model_dump() for each in read_lessons()])

    async def _show_scenario(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in {path.stem for path in self._gallery.glob("*.yaml")}:
            raise web.HTTPNotFound(reason="the gallery has no such scenario")
        return web.json_response({"name": name, "text": (self._gallery / f"{name}.yaml").read_text("utf-8")})

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
        run = await asyncio.to_thread(_new_run, body["text"], body["seed"])
        self._count += 1
        name = f"{self._count}"
        played = self._runs[name] = PlayedRun(run, body["text"])
        for old in list(self._runs)[:-KEPT_RUNS]:
            del self._runs[old]
        response = web.StreamResponse(headers={**HEADERS, hdrs.CONTENT_TYPE: "application/x-ndjson"})
        # A page that is closed or reloaded wants no more of the run.
        with suppress(ConnectionError):
            await response.prepare(request)
            await response.write(_line({"run": name, **_head(run)}))
            while (piece := await played.next_piece()) is not None:
                await response.write(_line(piece))
            await response.write_eof()
        return response

    def _played(self, request: web.Request) -> PlayedRun:
        name = request.match_info["run"]
        played = self._runs.pop(name, None)
        if played is None:
            raise web.HTTPNotFound(reason="this run is forgotten; run the scenario again")
        self._runs[name] = played  # the one that was looked at last
        return played

    async def _export(self, request: web.Request) -> web.Response:
        played = self._played(request)
        group_id = _group_of(request, played)
        try:
            return web.Response(text=await played.export(request.match_info["kind"], group_id))
        except NotExported as problem:
            raise web.HTTPConflict(reason=str(problem)) from None

    async def _show_lag(self, request: web.Request) -> web.Response:
        played = self._played(request)
        first, last, points = (_whole(request, name) for name in ("from", "to", "points"))
        return web.json_response(await played.lag(_group_of(request, played), first, last, points))

    async def _show_state(self, request: web.Request) -> web.Response:
        return web.json_response(await self._played(request).state(_whole(request, "at")))


def _whole(request: web.Request, name: str) -> int:
    """A whole number of the query, such as milliseconds."""
    text = request.query.get(name, "")
    if not (text.isdecimal() and text.isascii() and len(text) < 16):
        raise web.HTTPBadRequest(reason=f"{name}: expected a whole number")
    return int(text)


def _group_of(request: web.Request, played: PlayedRun) -> str:
    group_id = request.query.get("group", "")
    if group_id not in played.run.scenario.groups:
        raise web.HTTPBadRequest(reason="group: there is no such group")
    return group_id


def _new_run(text: str, seed: int | None) -> LaboratoryRun:
    return LaboratoryRun(scenario_from(text), seed)


def _head(run: LaboratoryRun) -> dict[str, Any]:
    """What a page has to know of a run before its first piece."""
    scenario = run.scenario
    return {
        "seed": run.simulation.seed,
        "horizon": scenario.horizon,
        "question": scenario.question,
        "answer": scenario.answer,
        "title": f"{', '.join(scenario.groups)}: {len(scenario.events)} events",
        "groups": list(scenario.groups),
        "topics": {topic: each.partitions for topic, each in scenario.topics.items()},
        "controls": controls_of(scenario),
    }


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
async def running(first: FirstScenario, gallery: Path, port: int = 0) -> AsyncIterator[str]:
    """A server that runs meanwhile, by its address. Raises OSError where the port cannot be used."""
    runner = web.AppRunner(LaboratoryServer(first, gallery).app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def serve(first: FirstScenario, gallery: Path, port: int, ready: Callable[[str], None]) -> None:
    """Serve until the task is cancelled. ``ready`` gets the address."""
    async with running(first, gallery, port) as address:
        ready(address)
        await asyncio.Event().wait()
