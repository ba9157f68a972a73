"""The server of the laboratory's page: what it answers, and whom it refuses."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web

from rejoin.simulation.commands.actions import lab
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import KEPT_RUNS, FirstScenario
from rejoin.transcript.player import differences, play

SCENARIO: Final = """\
question: Who leaves?
horizon: 20s
topics:
  orders: {partitions: 2}
groups:
  app: {topics: orders, consumers: 2}
events:
  - {at: 10s, stop: {who: app-2}}
"""


def _served(check: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
    async def serve() -> None:
        async with (
            running(FirstScenario("mine", SCENARIO, 3), GALLERY) as address,
            aiohttp.ClientSession(address) as session,
        ):
            await check(session)

    asyncio.run(serve())


async def _play(session: aiohttp.ClientSession, text: str = SCENARIO, seed: int | None = None) -> list[dict[str, Any]]:
    async with session.post("/api/runs", json={"text": text, "seed": seed}) as response:
        assert response.status == 200
        return [json.loads(line) for line in (await response.text()).splitlines()]


def test_a_run_comes_in_pieces_and_answers_for_each_instant() -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        async with session.get("/api/start") as response:
            first = await response.json()
        head, *pieces = await _play(session, first["text"], first["seed"])
        assert (head["seed"], head["groups"], head["question"], head["horizon"]) == (3, ["app"], "Who leaves?", 20_000)
        assert [piece["until"] for piece in pieces] == sorted(piece["until"] for piece in pieces)
        assert len(pieces) > 100
        assert pieces[-1]["done"]
        async with session.get(f"/api/runs/{head['run']}/state?at=9000") as response:
            state = await response.json()
        assert state["words"]["app"] == ["app is Stable in generation 1, 2 members."]
        assert sorted(state["processes"]) == ["app-1", "app-2"]

    _served(check)


def test_without_the_rules_of_reports_nothing_is_said_of_findings() -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        run = (await _play(session))[0]["run"]
        async with session.get(f"/api/runs/{run}/findings", params={"group": "app"}) as response:
            assert await response.json() is None

    _served(check)


def test_a_page_that_goes_away_is_no_error(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    write = web.StreamResponse.write

    async def goes_away(response: web.StreamResponse, data: bytes) -> None:
        await write(response, data)
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")

    async def check(session: aiohttp.ClientSession) -> None:
        monkeypatch.setattr(web.StreamResponse, "write", goes_away)
        head = (await _play(session))[0]
        monkeypatch.undo()
        async with session.get(f"/api/runs/{head['run']}/state?at=0") as response:
            assert response.status == 200

    _served(check)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_a_mistake_in_a_scenario_is_answered_with_its_line() -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        wrong = SCENARIO.replace("consumers", "consumer")
        async with session.post("/api/runs", json={"text": wrong, "seed": None}) as response:
            assert (response.status, (await response.json())["line"]) == (422, 6)
        added = {"text": SCENARIO, "at": 5_000, "action": "crash: {who: app-7}"}
        async with session.post("/api/events", json=added) as response:
            assert (response.status, (await response.json())["line"]) == (422, 9)
        async with session.post("/api/events", json={**added, "action": "crash: {who: app-1}"}) as response:
            assert (await response.json())["text"] == SCENARIO + "  - {at: 5s, crash: {who: app-1}}\n"

    _served(check)


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/", {"headers": {"Host": "rebound.example"}}, 421),
        ("POST", "/api/events", {"json": {}, "headers": {"Origin": "http://other.example"}}, 403),
        ("POST", "/api/events", {"data": "{}", "headers": {"Content-Type": "text/plain"}}, 415),
        ("POST", "/api/events", {"data": "{", "headers": {"Content-Type": "application/json"}}, 400),
        ("POST", "/api/runs", {"json": {"text": SCENARIO, "seed": True}}, 400),
        ("POST", "/api/runs", {"json": [1]}, 400),
        ("GET", "/api/runs/7/state?at=1", {}, 404),
        ("GET", "/assets/page.html", {}, 404),
        ("GET", "/assets/..%2F__init__.py", {}, 404),
        ("GET", "/api/gallery/..%2Fgallery%2Fcold_start", {}, 404),
    ],
)
def test_what_is_not_for_the_page_is_refused(method: str, path: str, options: dict[str, Any], status: int) -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        async with session.request(method, path, **options) as response:
            assert response.status == status
            assert response.content_type == "application/problem+json"
            assert (await response.json())["detail"]

    _served(check)


def test_the_page_asks_nothing_of_other_machines() -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        async with session.get("/") as response:
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert "connect-src 'self'" in response.headers["Content-Security-Policy"]
        async with session.get("/api/gallery") as response:
            assert len(await response.json()) == len(list(GALLERY.glob("*.yaml")))

    _served(check)


def test_a_run_is_exported_as_a_test_and_as_a_transcript() -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        head = (await _play(session))[0]
        async with session.get(f"/api/runs/{head['run']}/pytest?group=app") as response:
            written = await response.text()
        names: dict[str, Any] = {}
        exec(compile(written, "test_scenario.py", "exec"), names)
        names["test_the_scenario"]()
        assert "summary.groups['app'].rebalances == {'join-new': 1, 'leave': 1}" in written
        async with session.get(f"/api/runs/{head['run']}/transcript?group=app") as response:
            transcript = await response.text()
        assert transcript.startswith("# Who leaves?\n")
        assert "b-2 removed (left)" in transcript
        assert list(differences(play(transcript))) == []

    _served(check)


def test_old_runs_are_forgotten() -> None:
    async def check(session: aiohttp.ClientSession) -> None:
        text = SCENARIO[: SCENARIO.index("events:")].replace("20s", "1s")
        first = (await _play(session, text))[0]["run"]
        for _ in range(KEPT_RUNS):
            last = (await _play(session, text))[0]["run"]
        for run, status in ((first, 404), (last, 200)):
            async with session.get(f"/api/runs/{run}/state?at=0") as response:
                assert response.status == status

    _served(check)


def test_the_command_says_why_it_cannot_serve(capsys: pytest.CaptureFixture[str]) -> None:
    assert lab(Path("cold_strat"), None, 0, browser=False) == 2
    assert "is it cold_start?" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert lab(Path("cold_start"), None, port, browser=False) == 2
    assert f"{port}" in capsys.readouterr().err
