"""The laboratory without a server: what its folder is made of, and that its worker answers as the server does."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import re2

from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario, journal_of
from rejoin.simulation.web.site import re2 as stand_in
from rejoin.simulation.web.site.build import HERE, NotBuilt, build
from rejoin.simulation.web.site.modules import ROOT, data_files, modules_from
from rejoin.simulation.web.worker import FIRST, LaboratoryWorker
from tests.journal.few_records import with_few_records

REFUSED = ("a(?=b)", "(?<!a)b", r"(a)\1", "(a)?(?(1)b)")
"""Expressions of Python that RE2 does not have."""
PLAYER = """
import sys
from rejoin.simulation.web.session import journal_of
sys.stdout.write(journal_of(sys.argv[1], 7))
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as the page has it; the first process compiles it for all."""
    folder = tmp_path_factory.mktemp("shipped")
    for path in [*modules_from().values(), *data_files()]:
        target = folder / "rejoin" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return folder


@pytest.mark.parametrize(
    "name", ["zombie_with_the_same_transactional_id", "coordinator_failover_in_mid_reconciliation"]
)
def test_the_shipped_modules_are_all_that_a_scenario_needs(shipped: Path, name: str) -> None:
    text = with_few_records((GALLERY / f"{name}.yaml").read_text("utf-8"))
    libraries = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    begin = f"import sys; sys.path[:0] = {[str(shipped), *libraries]!r}\n"
    command = [sys.executable, "-I", "-S", "-c", begin + PLAYER, text]  # without -S the installed package is found
    played = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert played == journal_of(text, 7)


def test_the_worker_answers_as_the_server_does() -> None:
    worker = LaboratoryWorker()

    def ask(question: str, *arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(worker.answer(question, json.dumps(arguments)))
        return found

    async def compare(session: aiohttp.ClientSession) -> None:
        async def get(path: str, **query: str) -> Any:
            async with session.get(path, params=query) as response:
                return await (response.text() if response.content_type == "text/plain" else response.json())

        async def post(path: str, /, **body: object) -> Any:
            async with session.post(path, json=body) as response:
                return await response.json()

        for question in ("start", "gallery", "lessons"):
            assert ask(question)["value"] == await get(f"/api/{question}")
        assert ask("galleryText", FIRST)["value"] == await get(f"/api/gallery/{FIRST}")
        text = ask("galleryText", "zombie_with_the_same_transactional_id")["value"]["text"]
        async with session.post("/api/runs", json={"text": text, "seed": 5}) as response:
            head, *pieces = [json.loads(line) for line in (await response.text()).splitlines()]
        assert ask("play", text, 5)["value"] == head
        run, group = head["run"], head["groups"][0]
        for piece in pieces:
            assert ask("nextPiece", run)["value"] == piece
        assert ask("nextPiece", run)["value"] is None
        at = head["horizon"] // 2
        assert ask("stateAt", run, at)["value"] == await get(f"/api/runs/{run}/state", at=f"{at}")
        lag = await get(f"/api/runs/{run}/lag", group=group, **{"from": "0", "to": f"{at}", "points": "9"})
        assert ask("lag", run, group, 0, at, 9)["value"] == lag
        for kind in ("transcript", "pytest", "journal"):
            assert ask("exported", run, kind, group)["value"] == await get(f"/api/runs/{run}/{kind}", group=group)
        action = f"crash: {{who: {group}-1}}"
        assert ask("withEvent", text, 900, action)["value"] == await post(
            "/api/events", text=text, at=900, action=action
        )
        path = head["controls"][group][0]["path"]
        assert ask("withValue", text, path, "9s")["value"] == await post(
            "/api/values", text=text, path=path, value="9s"
        )
        refusals = [
            (ask("play", "groups: [", None), await post("/api/runs", text="groups: [", seed=None)),
            (ask("galleryText", "nothing"), await get("/api/gallery/nothing")),
            (ask("stateAt", "99", 0), await get("/api/runs/99/state", at="0")),
            (ask("exported", run, "transcript", "nobody"), await get(f"/api/runs/{run}/transcript", group="nobody")),
        ]
        for there, here in refusals:
            assert there == {"problem": here["detail"], "line": here["line"]}

    async def serve() -> None:
        first = FirstScenario(FIRST, (GALLERY / f"{FIRST}.yaml").read_text("utf-8"), None)
        async with running(first, GALLERY) as address, aiohttp.ClientSession(address) as session:
            await compare(session)

    asyncio.run(serve())


def _exports(path: Path) -> set[str]:
    return set(re.findall(r"^export (?:async )?(?:const|function) (\w+)", path.read_text("utf-8"), re.MULTILINE))


def test_both_sources_of_the_page_have_the_same_functions() -> None:
    assert _exports(HERE / "source.js") - {"times"} == _exports(ROOT / "pages" / "laboratory" / "source.js")


@pytest.mark.parametrize(
    "expression",
    [
        "orders-.*",
        "a|b(c|d)*",
        "[a-c]{2,3}",
        "(?i)ORDERS",
        r"\d+",
        "^x$",
        "(",
        "a(?=b)",
        "(?<!a)b",
        r"(a)\1",
        "(a)?(?(1)b)",
        "",
    ],
)
def test_where_re2_cannot_be_had_the_same_expressions_match(expression: str) -> None:
    names = ["orders-1", "orders", "a", "bcd", "abc", "b", "x", "17", "٣", "aa", ""]

    def matches(module: Any) -> list[bool] | None:
        options = module.Options()
        options.log_errors = False
        try:
            compiled = module.compile(expression, options)
        except module.error:
            return None
        return [compiled.fullmatch(name) is not None for name in names]

    assert matches(stand_in) == matches(re2)


def test_what_is_fetched_is_pinned_as_here_and_names_no_host() -> None:
    pinned = dict(line.split(" ")[0].split("==") for line in (HERE / "wheels.txt").read_text().splitlines())
    assert pinned == {name: version(name) for name in ("pydantic-core", "xxhash")}
    lock = (HERE / "package-lock.json").read_text()
    assert "://" not in lock
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]["pyodide"]
    assert json.loads(lock)["packages"]["node_modules/pyodide"]["version"] == wanted


def test_without_node_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotBuilt, match=r"install Node\.js"):
        build(tmp_path / "site")
    assert not (tmp_path / "site").exists()
