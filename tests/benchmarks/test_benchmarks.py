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

from benchmarks import __main__ as command
from benchmarks import simulation
from benchmarks.recovered_from_logs import SOURCES
from rejoin.client.log_writer.libraries import LIBRARIES
from rejoin.pipeline.spark.session import session
from tests.pipeline.quick import INTERPRETED

TINY: dict[str, dict[str, Any]] = {
    "node_step": {"GROUPS": (1, 2), "MEMBERS": 3, "BEATS": 100, "ROUNDS": 1},
    "kafka.codec": {"MEMBERS": 2, "PARTITIONS": 3, "SECONDS": 0.001, "ROUNDS": 1},
    "large_requests": {"MEMBERS": 3, "PARTITIONS": 4, "COMMITS": 5, "NAMES": 4, "ROUNDS": 1},
    "start_up": {"ROUNDS": 1, "PROCESSES": 1, "COMPARED": 1, "HELP": ("why",), "HELP_ROUNDS": 1, "WARM_UP": 0}
    | {"AT_MOST": 1_000.0, "COMPILES": False},
    "simulation": {"HOURS": (1,), "CONSUMERS": 40, "PARTITIONS": 400, "GROUPS": (2, 1), "BARE_STEPS": 1_000}
    | {"BUSY_MINUTES": 1},
    "heartbeats.http": {"ROUNDS": 1, "SECONDS": 0.1},
    "heartbeats.kafka": {"ROUNDS": 1, "SECONDS": 0.1, "FAILS_ABOVE": {}},
    "kafka.connections": {"IDLE": 50, "PARKED": (10, 20), "IDLE_BYTES": 2**30, "GROWTH": 1_000.0},
    "kafka.consuming": {"RECORDS": 300, "ROUNDS": 1, "CLIENTS": ("ours",)},
    "kafka.producers": {"RECORDS": 200, "ROUNDS": 1, "AT_MOST": 1_000.0},
    "kafka.share_peers": {"RECORDS": 2_000, "WARM_UP": 1_000, "OTHERS": ()},
    "kafka.throughput": {"RECORDS": 2_000, "OTHERS": ()},
    "kafka.authorization": {"ACLS": 10, "ROUNDS": 1, "REPEATS": 3, "AT_MOST": 1_000.0},
    "kafka.batches": {"ROUNDS": 1, "SIZES": {"2 kB": (2_048, 5)}},
    "kafka.share_groups": {"FETCHES": 2, "ROUNDS": 1, "BOUND": 1_000.0},
    "explorer.states": {"STATES": 8},
    "explorer.memory": {"QUICK_STATES": 2_000, "QUICK_KEPT": 4, "BOUND_GB": 1_000.0},
    "proxy.speed": {"QUICK_SET_UPS": 1, "ROUNDS": 1, "SECONDS": 0.02, "MANY": 20, "WAVES": 1, "FAILS_BEYOND": 1e9}
    | {"OURS": ("--journal",), "AIMED": ("--journal",)},
    "parked_joins": {"SIZES": (20,)},
    "transactions.markers": {"PARTITIONS": (40, 400), "ROUNDS": 4},
    "transactions.aborted": {"ABORTED": 10_000, "SIZES": (1_000,), "POSITIONS": {"the middle": 0.5}, "ROUNDS": 1},
    "transactions.rate": {"SECONDS": 0.1, "ROUNDS": 1, "CPU_BOUNDS": {"memory": 0.0, "SQLite": 0.0}},
    "commits": {"SECONDS": 0.1, "QUICK_ROUNDS": 2, "CPU_BOUND": 0.0},
    "report.page": {"PARTITIONS": 8, "REBALANCES": 5, "CONSUMERS": 2, "ROUNDS": 1, "BROWSERS": ()},
    "report.time": {"SIZES": (60,), "ROUNDS": 1, "APART": False},
    "assignors": {"REPEATS": 1, "ONLY": "small range fresh"},
    "server_assignors": {"PARTITIONS": 40, "MEMBERS": 4, "TOPICS": (4,), "ROUNDS": 1, "JAVA": False, "AIM": 1_000.0},
    "assignors.tasks": {"MEMBERS": 8, "TASKS": 40, "ROUNDS": 1, "JAVA": False},
    "heartbeats.consumer": {"GROUPS": (1, 2), "BEATS": 20, "ROUNDS": 1, "SIZES": (3, 5), "JOINS": 2, "AIM": 1_000.0}
    | {"GROWTH": 1_000.0, "STREAMS_AIM": 1_000.0},
    "recovered.from_client_logs": {"SETS": ("python",)},
    "recovered.from_written_client_logs": {"SEEDS": 1, "LIBRARIES": {"aiokafka": LIBRARIES["aiokafka"]}},
    "recovered.from_excerpts": {"SIZES": (1_000,), "DENSE": (2_000,)},
    "sweep": {"ROUNDS": 1, "WARM_UP": 1, "CASES": {}},
    "recovered_from_logs": {"SEEDS": 1, "GALLERY": Path("/nowhere"), "SOURCES": SOURCES[-1:]},
    "load": {"GROUPS": 5},
    # tests/pipeline/tables/test_tables_in_duckdb.py checks that the rows are DuckDB's.
    "pipeline_tables": {"SCENARIOS": ("eager_scale_out",), "EVENTS": 1, "WARM_UP": 0, "ROUNDS": 1, "EVERYTHING": False}
    | {"must_be_the_same": lambda _: None},
    "report.watch": {"BEFORE": (30,), "BATCH": 20, "ROUNDS": 1, "WARM_UP": 0, "GROWTH": 1_000.0},
}
"""Benchmark to constants of its module.

Tiny rounds measure nothing, so every bound on a ratio is set to a value that cannot be missed.
"""

SHOWN: dict[str, list[str]] = {
    "node_step": [r"1 +│ +3 +│ +3 +│ +[\d.]+ +│ +1\.00", r"2 +│ +6 +│ +6 +│"],
    "kafka.authorization": [r"Heartbeat +│ +[\d.]+ +│ +[\d.]+ +│ +[\d.]+", r"Produce +│"],
    "kafka.codec": [
        r"read a Heartbeat request +│ +[\d.]+ +│ +[\d.]+ +│ +[\d.]+",
        r"Fetch response of 1 MiB +│ +[\d.]+",
    ],
    "large_requests": [
        r"OffsetFetch of many partitions +│ +4 +│ +[\d,]+ +│",
        r"JoinGroup of many members +│ +3 +│",
        r"FindCoordinator of many keys +│ +4 +│",
        r"DescribeGroups of many names +│ +4 +│",
        r"CreateTopics of many topics +│ +4 +│",
    ],
    "start_up": [
        r"rejoin serve --control, until HTTP +│ +[\d.]+",
        r"why +│ +\d+",
        r"modules of rejoin serve when it listens: \d+",
        r"ratio [\d.]+, .*: (met|kept)",
    ],
    "simulation": [r"1 h +[\d.]+ s +\d+ steps", r"bare heapq loop: [\d,]+ steps/s", r"40 consumers.*, aim < 15: met"],
    "heartbeats.http": [rf"{server} +│ +[\d.]+ +│ +[\d,]+" for server in ("constant", "messages", "service")],
    "kafka.connections": [r"echo +│ +-?[\d.]+ │", r"Kafka +│ +-?[\d.]+ │", r"10 │ +[\d.]+ │", r"20 │ +[\d.]+ │"],
    "kafka.consuming": [r"ours +│ +[\d.]+ +│ +1\.00"],
    "kafka.producers": [r"with keys, idempotent +│ +[\d.]+ +│"],
    "kafka.share_peers": [r"Rejoin +│ +[\d.]+ │ +[\d,]+ │ +[\d.]+ × │ +1\.00 ×"],
    "kafka.throughput": [rf"{store} +│ +[\d.]+ │ +[\d,]+ │" for store in ("memory", "--data")],
    "kafka.batches": [rf"{request} +│ 2 kB +│ +[\d,]+ │" for request in ("Produce", "Fetch")],
    "heartbeats.kafka": [rf"{server} +│ +[\d.]+ +│ +[\d,]+" for server in ("echo", "HTTP", "Kafka")],
    "kafka.share_groups": [r"implicit: ShareFetch +│ +[\d,]+ │ +[\d.]+ │", r"the bound is 1000"],
    "explorer.states": [r"classic, 2 members +│", r"share, 2 members +│"],
    "explorer.memory": [r"2,000 states, 4,000 edges +│ +\d+ +│ +\d+ +│", r"8 kept: [\d.]+ GB, bound 1000 GB: kept"],
    "proxy.speed": [
        *(rf"{api} +│ {name} +│ +[\d.]+ │" for api in ("Heartbeat", "Fetch") for name in ("no proxy", "--journal")),
        r"copying +│ +[\d.]+ │ +[\d.]+ │ +-?[\d.]+ │ +[\d.]+ │",
        r"--journal: heartbeat, CPU ÷ copying: [\d.]+, aim ≤ 2\.00: (met|missed)",
    ],
    "parked_joins": [r"20 +│ +-?\d+ MB +│"],
    "transactions.markers": [r"40 +│ +[\d.]+ +│ +[\d.]+ +│ +1\.00", r"400 +│ +[\d.]+ +│", "× one among few: met"],
    "transactions.aborted": [
        *(rf"{log} +│ the middle +│ +1,000 │ +[89] │" for log in ("after the other", "one more")),
        r"aim ≤ 10 × read_uncommitted: [\d.]+, met",
    ],
    "transactions.rate": [
        *(rf"{what} +│ +[\d,]+ +│ +[\d.]+" for what in ("bare writes", "refused", "memory", "SQLite")),
        "every bound is kept",
    ],
    "commits": [
        *(
            rf"{store} +│ +{what} +│ +[\d,]+"
            for store in ("SQLite", "PostgreSQL")
            for what in ("bare", "answered", "node")
        ),
        r"node on SQLite, CPU, bound .*: [\d.]+, kept",
    ],
    "report.page": [r"intervals of ownership +│ +\d+", r"page, kB +│ +\d+"],
    "report.time": [r"a report on 60 rows +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+"],
    "assignors": [r"small .*range .*fresh .*rejoin"],
    "assignors.tasks": [r"4 +1 +one joins +[\d.]+", r"Kafka's own is left out"],
    "heartbeats.consumer": [
        r"2 +[\d.]+ +[\d.]+ +[\d.]+",
        r"× a classic one, aim ≤ 1000",
        r"× one of a consumer group, aim ≤ 1000",
        r"5 +\d+ +\d+ +[\d.]+",
    ],
    "server_assignors": [
        r"4 +equal +uniform +one leaves +[\d.]+",
        r"uniform, equal subscriptions: [\d.]+ × floor",
        r"Kafka's own are left out",
    ],
    "recovered.from_client_logs": [r"python +kafka-python +\d+ +\d+%, 0 invented +\d+%, 0 invented +0"],
    "recovered.from_written_client_logs": [r"aiokafka 0\.14 +\d+ +100\.0% +0 +0"],
    "recovered.from_excerpts": [
        r"kafkajs +│ +\d+ │ +\d+ │ +\d+ │ +0 │",
        r"sparse +│ +1,\d+ B │ +[\d.]+ │ +[\d.]+ │ +[\d.]+ │ yes",
        "dense",
    ],
    "sweep": [r"pool / sweep", r"until Spark and the pool were up"],
    "recovered_from_logs": [r"\d+ rebalances, \d+ completed"],
    "load": [rf"{store} +│ +{rounds} +│" for store in ("SQLite", "PostgreSQL") for rounds in ("once", "compacted")],
    "pipeline_tables": [r"rebalances +[\d,]+ +[\d.]+ s", r"ownership +[\d,]+ +[\d.]+ s", r"events, \d+ MB"],
    "report.watch": [r"30 +[\d.]+ s +[\d.]+ s +[\d.]+ s +1\.00", r"batches of 20 events, .*: met"],
}
"""Benchmark to patterns that its output has."""


@pytest.fixture(autouse=True)
def _process_as_it_was() -> Iterator[None]:
    """Benchmarks are made for a process of their own."""
    cores, handler, threshold = os.sched_getaffinity(0), signal.getsignal(signal.SIGTERM), gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGTERM, handler)


ON_SPARK = ("report.time", "sweep", "pipeline_tables", "report.watch")


@pytest.fixture(scope="module")
def _spark() -> Iterator[None]:
    """One session for all of them; and that of other tests, if this process has one."""
    with session("local[2]", fast=True, settings=INTERPRETED):
        yield


def test_every_benchmark_is_run() -> None:
    assert TINY.keys() == SHOWN.keys() == {*command.SHORT, *command.LONG}


def runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in TINY[name].items():
        monkeypatch.setattr(module, constant, value)
    assert command.main(["--quick", name]) == 0
    out, err = capfd.readouterr()
    assert re.search(rf"^{name}: \d+ s, \d+ s of CPU$", err, re.MULTILINE)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    for pattern in SHOWN[name]:
        assert re.search(pattern, plain), f"{pattern!r} is not in\n{plain}"


@pytest.mark.parametrize("name", [name for name in TINY if name not in ON_SPARK])
def test_runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    runs_to_its_end(name, monkeypatch, capfd)


def test_a_folder_of_excerpts_is_answered_where_no_findings_are_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("benchmarks.recovered.from_excerpts")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(module, "SIZES", ())
    monkeypatch.setattr(module, "DENSE", ())
    (tmp_path / "a.log").write_text(module.LATE.read_text())
    (tmp_path / "b.log").write_text("nothing\n")
    assert command.main(["recovered.from_excerpts", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"a\.log +│ bills │ b-1 did not poll in time, once", out)
    assert re.search(r"b\.log +│ +│ refused: ", out)
    assert command.main([str(tmp_path)]) == 2
    assert "expected one of recovered.from_excerpts before it" in capsys.readouterr().out


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("_spark")
@pytest.mark.parametrize("name", ON_SPARK)
def test_runs_to_its_end_on_spark(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    runs_to_its_end(name, monkeypatch, capfd)


def test_the_day_of_many_consumers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``make bench-day``, with a few consumers."""
    for constant, value in {"CONSUMERS": 8, "PARTITIONS": 16, "GROUPS": (2, 1)}.items():
        monkeypatch.setattr(simulation, constant, value)
    assert simulation.main(["--day", "--hours", "1"]) == 0
    assert simulation.main(["--same", "--minutes", "6"]) == 0
    lines = capsys.readouterr().out.splitlines()
    day, same = lines[:4], lines[4:]
    assert [line.partition(":")[0] for line in day] == [
        f"1 h of 8 {kind} consumers in {groups} and 16 partitions"
        for kind in ("static", "dynamic")
        for groups in ("2 groups", "1 group")
    ]
    assert [line.split(", ")[0] for line in same] == ["6 min"] * 3
    assert all("every heartbeat: the same" in line for line in same)


def test_a_day_of_either_protocol(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``make bench-protocols``, with a few consumers: the deploys of dynamic members rebalance under each protocol."""
    for constant, value in {"CONSUMERS": 8, "PARTITIONS": 16, "GROUPS": (2, 1)}.items():
        monkeypatch.setattr(simulation, constant, value)
    assert simulation.main(["--protocols", "--hours", "1"]) == 0
    heading, _, *rows = capsys.readouterr().out.splitlines()
    table = {cells[0]: dict(zip(cells_of(heading), cells, strict=True)) for cells in map(cells_of, rows)}
    assert list(table) == [
        f"{kind}, {members}" for members in ("dynamic", "static") for kind in ("classic", "consumer")
    ]
    for kind in ("classic", "consumer"):
        dynamic, static = table[f"{kind}, dynamic"], table[f"{kind}, static"]
        assert int(dynamic["rebalances"]) > int(static["rebalances"]) >= 2, "each of two groups, when it started"
        assert dynamic["twice"] == static["twice"] == "0"


def cells_of(row: str) -> list[str]:
    """A row of a table in Markdown."""
    return [cell.strip() for cell in row.split("|")[1:-1]]


def test_an_unknown_name_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["parked_join"]) == 2
    assert capsys.readouterr().out == "there is no benchmark parked_join; is it parked_joins?\n"
