"""Each benchmark runs to its end with tiny sizes and prints its table, so that a change of its subject is noticed."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from benchmarks import __main__ as command
from benchmarks.recovered_from_logs import SOURCES

TINY: dict[str, dict[str, Any]] = {
    "node_step": {"GROUPS": (1, 2), "MEMBERS": 3, "BEATS": 100, "ROUNDS": 1},
    "start_up": {"ROUNDS": 1, "PROCESSES": 1, "COMPARED": 1},
    "simulation": {"HOURS": (1,), "BARE_STEPS": 1_000},
    "http_heartbeats": {"ROUNDS": 1, "SECONDS": 0.1},
    "parked_joins": {"SIZES": (20,)},
    "commits": {"COMMITTERS": 2, "SECONDS": 0.05, "ROUNDS": 1},
    "report_page": {"PARTITIONS": 8, "REBALANCES": 5, "CONSUMERS": 2, "ROUNDS": 1, "BROWSERS": ()},
    "assignors": {"REPEATS": 1, "ONLY": "small range fresh"},
    "sweep": {"ROUNDS": 1, "CASES": {}},
    "recovered_from_logs": {"SEEDS": 1, "GALLERY": Path("/nowhere"), "SOURCES": SOURCES[-1:]},
    "load": {"GROUPS": 5},
}
"""Benchmark to constants of its module. test_tables_in_duckdb.py runs the parts of pipeline_tables."""

SHOWN: dict[str, list[str]] = {
    "node_step": [r"1 +│ +3 +│ +[\d.]+ +│ +1\.00", r"2 +│ +6 +│"],
    "start_up": [r"rejoin serve --control +│ +[\d.]+", r"modules of rejoin serve when it listens: \d+"],
    "simulation": [r"1 h +[\d.]+ s +\d+ steps", r"bare heapq loop: [\d,]+ steps/s"],
    "http_heartbeats": [rf"{server} +│ +[\d.]+ +│ +[\d,]+" for server in ("constant", "messages", "service")],
    "parked_joins": [r"20 +│ +-?\d+ MB +│"],
    "commits": [rf"{store} +│ +{what} +│ +[\d,]+" for store in ("SQLite", "PostgreSQL") for what in ("bare", "node")],
    "report_page": [r"intervals of ownership +│ +\d+", r"page, kB +│ +\d+"],
    "assignors": [r"small .*range .*fresh .*rejoin"],
    "sweep": [r"pool / sweep", r"until Spark and the pool were up"],
    "recovered_from_logs": [r"\d+ rebalances, \d+ completed"],
    "load": [rf"{store} +│ +{rounds} +│" for store in ("SQLite", "PostgreSQL") for rounds in ("once", "compacted")],
}
"""Benchmark to patterns that its output has."""


@pytest.fixture(autouse=True)
def _process_as_it_was() -> Iterator[None]:
    """Benchmarks are made for a process of their own."""
    cores, handler, threshold = os.sched_getaffinity(0), signal.getsignal(signal.SIGTERM), gc.get_threshold()
    logging = structlog.get_config()
    yield
    structlog.configure(**logging)
    gc.set_threshold(*threshold)
    gc.unfreeze()
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGTERM, handler)


ELSEWHERE = {"pipeline_tables"}
"""It starts Spark once for each size; what it times is compared row by row in test_tables_in_duckdb."""


def test_every_benchmark_is_run() -> None:
    assert {*command.QUICK, *command.LONG} - TINY.keys() == ELSEWHERE


@pytest.mark.parametrize("name", TINY)
def test_runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in TINY[name].items():
        monkeypatch.setattr(module, constant, value)
    assert command.main([name]) == 0
    out, err = capfd.readouterr()
    assert re.search(rf"^{name}: \d+ s$", err, re.MULTILINE)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    for pattern in SHOWN[name]:
        assert re.search(pattern, plain), f"{pattern!r} is not in\n{plain}"


def test_an_unknown_name_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["parked_join"]) == 2
    assert capsys.readouterr().out == "there is no benchmark parked_join; is it parked_joins?\n"
