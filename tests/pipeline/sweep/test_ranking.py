"""The answer: order, words, spread; and the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.commands import sweep as command
from rejoin.pipeline.commands.parser import sweep
from rejoin.pipeline.sweep.code import code_version
from rejoin.pipeline.sweep.grid import Grid, grid_from
from rejoin.pipeline.sweep.page import render
from rejoin.pipeline.sweep.ranking import (
    Spread,
    amount,
    brackets,
    criterion,
    format_answer,
    name_of,
    rank,
    shown,
    spread_of,
    words,
)
from rejoin.pipeline.sweep.runner import SweepProgress
from rejoin.pipeline.sweep.store import SweepStore
from rejoin.pipeline.sweep.tables import COUNTS, MEASURES
from tests.pipeline.sweep.sweeps import GRID, SCENARIO, grid, swept

ROW: dict[str, Any] = {measure.name: 0 for measure in MEASURES} | {name: [] for name, _, _ in COUNTS}


def stored(folder: Path, what: Grid, numbers: Mapping[str, Sequence[int | None]]) -> SweepStore:
    """A store with these rebalances, by the point's name, for the seeds in order; None: failed. 10 s stopped each."""
    store = SweepStore(folder, "v", journals=False)
    for run in what.runs():
        count = numbers[name_of(what, what.points[run.point])][run.seed - 1]
        row = {"run_key": run.key, "seed": run.seed, "status": "ok", "error": None, "code_version": "v", "groups": []}
        if count is None:
            row |= {"status": "failed", "error": "broken"}
        else:
            row |= ROW | {"rebalances": count, "stopped_ms": 10_000 * count, "first_owned_ms": 3_000}
        store.add([row])
    return store


def test_settings_are_in_the_order_of_their_medians_with_the_spread(tmp_path: Path) -> None:
    asked = grid_from(f"{SCENARIO}\nparameters:\n  assignor: [range, sticky, roundrobin]\nseeds: 3")
    store = stored(tmp_path, asked, {"range": [5, 4, 60], "sticky": [0, 0, 0], "roundrobin": [6, 6, None]})
    assert format_answer(asked, rank(asked, store)) == [
        "  1* sticky: 0 rebalances, 0 consumer-seconds stopped",
        "  2. range: 5 rebalances (4 to 60), 50.0 consumer-seconds stopped (40.0 to 600)",
        "  3. roundrobin: 6 rebalances, 60.0 consumer-seconds stopped; 1 of 3 runs failed",
    ]
    store.close()


def measured(folder: Path, what: Grid, numbers: Mapping[str, dict[str, int]]) -> SweepStore:
    """A store with these measures for every seed, by the point's name."""
    store = SweepStore(folder, "v", journals=False)
    for run in what.runs():
        row = {"run_key": run.key, "seed": run.seed, "status": "ok", "error": None, "code_version": "v", "groups": []}
        measures = {"first_owned_ms": 3_000, **numbers[name_of(what, what.points[run.point])]}
        store.add([row | ROW | measures])
    return store


def test_the_criterion_is_chosen_and_said_and_what_no_other_beats_is_marked(tmp_path: Path) -> None:
    asked = grid_from(f"{SCENARIO}\nparameters:\n  assignor: [range, sticky, roundrobin]\nseeds: 1")
    numbers = {
        "range": {"rebalances": 1, "late": 655},
        "sticky": {"rebalances": 9, "late": 55},
        "roundrobin": {"rebalances": 9, "late": 700},
    }
    store = measured(tmp_path, asked, numbers)
    by_rebalances, by_late = rank(asked, store), rank(replace(asked, rank_by=("late",)), store)
    store.close()
    assert [each.name for each in by_rebalances] == ["range", "sticky", "roundrobin"]
    assert [each.name for each in by_late] == ["sticky", "range", "roundrobin"]
    assert [each.name for each in by_rebalances if each.unbeaten] == ["range", "sticky"]
    assert criterion(asked).startswith("Ranked by rebalances, then by consumer-seconds stopped; --by chooses")
    assert criterion(replace(asked, rank_by=("late",))).startswith("Ranked by records late; --by")


@pytest.mark.parametrize(("down", "expected"), [((2, 4, 6, 8), []), ((2, 9, 6, 0), ["static", "deploy.down"])])
def test_two_parameters_that_depend_on_each_other_are_shown_as_a_table(
    down: tuple[int, int, int, int], expected: list[str], tmp_path: Path
) -> None:
    asked = grid_from(f"{SCENARIO}\nparameters:\n  static: [true, false]\n  deploy.down: [5s, 20s]\nseeds: 2")
    numbers = {name_of(asked, point): {"rebalances": count} for point, count in zip(asked.points, down, strict=True)}
    store = measured(tmp_path, asked, numbers)
    ranked = rank(asked, store)
    store.close()
    lines = format_answer(asked, ranked)
    shown_pairs = [line for line in lines if "depend on each other" in line]
    assert shown_pairs == [f"{' and '.join(expected)} depend on each other, median of rebalances:"] * bool(expected)
    if expected:
        assert lines[-2:] == ["    true    2    9", "    false   6    0"]


def test_progress_is_printed_at_the_ends_and_now_and_then_between() -> None:
    lines: list[str] = []
    now = 0.0
    progress = command.ProgressLines(lines.append, lambda: now)
    for played in range(61):
        now = float(played)
        progress.on_progress(SweepProgress(60, 0, played, failed=played // 60))
    assert lines[0] == "0 of 60 runs"
    assert lines[1] == "10 of 60 runs, about 50 s left"
    assert lines[-1] == "60 of 60 runs, 1 failed"
    assert len(lines) == 7


def test_an_estimate_says_how_many_runs_at_a_time_and_how_long() -> None:
    assert command.estimate(64, 3.0, 2) == "64 runs to play, 2 at a time; one took 3 s, so about 96 s"
    assert command.estimate(1, None, 2) == "1 run to play, 2 at a time"


def test_equal_settings_share_a_rank_and_failed_ones_come_last(tmp_path: Path) -> None:
    asked = grid_from(f"{SCENARIO}\nparameters:\n  assignor: [range, sticky, roundrobin]\nseeds: 2")
    store = stored(tmp_path, asked, {"range": [None, None], "sticky": [2, 2], "roundrobin": [2, 2]})
    ranked = rank(asked, store)
    assert [(each.rank, each.name) for each in ranked] == [(1, "sticky"), (1, "roundrobin"), (3, "range")]
    assert format_answer(asked, ranked)[2] == "  3. range: all 2 runs failed"
    store.close()


def test_a_group_that_never_got_anything_is_not_the_best(tmp_path: Path) -> None:
    """Its consumers are refused for their session timeout, so it never rebalances."""
    text = f"{SCENARIO.replace('session_timeout: 10s', '')}\nparameters:\n  session_timeout: [5s, 10s]\nseeds: 2"
    swept(grid(text), tmp_path)
    store = SweepStore(tmp_path, "v", journals=False)
    lines = format_answer(grid(text), rank(grid(text), store))
    store.close()
    assert lines[0].startswith("  1* session 10s: 6 rebalances")
    assert lines[1].startswith("  2. session 5s: 0 rebalances")
    assert lines[1].endswith("; in 2 of 2 runs no member ever owned a partition")


def test_what_a_grid_ranks_by_comes_first(tmp_path: Path) -> None:
    swept(grid(), tmp_path)
    store = SweepStore(tmp_path, "v", journals=False)
    by_rebalances = rank(grid(), store)
    by_owners = rank(grid(f"rank_by: [unowned]\n{GRID}"), store)
    store.close()
    assert by_rebalances[0].name == "static membership + down for 5s"
    assert by_rebalances[0].spreads["rebalances"].most == 0
    assert by_owners[0].name.startswith("dynamic membership")


@pytest.mark.parametrize(
    ("name", "label", "said"),
    [
        ("static", "true", "static membership"),
        ("groups.app.static", "false", "app: dynamic membership"),
        ("assignor", "range+cooperative-sticky", "range+cooperative-sticky"),
        ("session_timeout", "45s", "session 45s"),
        ("app.session_timeout", "45s", "app: session 45s"),
        ("deploy.down", "8s", "down for 8s"),
        ("events.0.crash.restart", "8s", "restart after 8s"),
        ("consumers", "6", "6 consumers"),
        ("topics.orders.partitions", "12", "12 partitions"),
        ("network.latency", "exp(2ms)", "latency exp(2ms)"),
    ],
)
def test_values_are_said_in_words(name: str, label: str, said: str) -> None:
    assert words(name, label) == said


def test_a_spread_is_given_by_percentiles_when_there_are_many() -> None:
    assert spread_of([3, 1, 2]) == Spread(2, 1, 3, 1, 3)
    assert spread_of(range(101)) == Spread(50, 10, 90, 0, 100)
    assert shown("rebalances", spread_of([4, 4])) == "4 rebalances"
    assert shown("stopped_ms", spread_of([0, 1_500, 250_000])) == "1.5 consumer-seconds stopped (0 to 250)"
    assert [amount("stopped_ms", value) for value in (0, 29, 999, 12_340)] == ["0", "0.029", "1", "12.3"]


def test_the_page_is_one_file_that_asks_no_network(tmp_path: Path) -> None:
    swept(grid(GRID.replace("What makes", "<script>What & makes")), tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert not re.findall(r"(?:src|href)=|@import|url\(|fetch\(", page)
    assert "@@" not in page
    assert "<title>&lt;script&gt;What &amp; makes" in page
    for measure in ("rebalances", "consumer-seconds stopped", "partition-seconds unowned"):
        for parameter in ("static", "deploy.down"):
            assert f'aria-label="{measure} against {parameter}"' in page
    assert page.count("<svg") == page.count("</svg>")
    assert "static = true: median 3 rebalances (0 to 6)" in page


def test_terminal_and_page_show_the_same_of_a_parameter(tmp_path: Path) -> None:
    text = f"{SCENARIO}\nparameters:\n  assignor: [range, sticky]\n  deploy.down: [5s, 12s]\nseeds: 3"
    asked = grid_from(text)
    # Medians of the settings: 2 and 60. Of the runs: 2, 2, 5, 6, 60, 61 and so 5.5; of the medians it would be 31.
    numbers: dict[str, list[int | None]] = {
        "range + down for 5s": [2, 2, 5],
        "range + down for 12s": [6, 60, 61],
        "sticky + down for 5s": [0, 0, 0],
        "sticky + down for 12s": [0, 0, None],
    }
    store = stored(tmp_path, asked, numbers)
    ranked = rank(asked, store)
    printed = format_answer(asked, ranked)
    points = {run.key: run.point for run in asked.runs()}
    page = render(asked, ranked, [row | {"point": points[key]} for key, row in store.rows.items()])
    store.close()
    head = "Each parameter by itself, median of all runs that have it (from the least to the most):"
    assert head in printed
    assert "    assignor = range: 5.5 rebalances (2 to 61), 55.0 consumer-seconds stopped (20.0 to 610)" in printed
    for line in printed[printed.index(head) + 1 : printed.index("", printed.index(head))]:
        name, _, numbers_told = line.strip().partition(": ")
        for measure in numbers_told.split(", "):
            assert f"<title>{name}: median {measure}, from " in page


def test_what_brackets_mean_is_said_by_the_number_of_seeds() -> None:
    assert brackets(4) == "from the least to the most"
    assert brackets(10) == "from the tenth to the ninetieth percentile"


class TestCommand:
    """What needs no Spark; test_executors.py and test_sweep.py have the rest."""

    def test_what_is_finished_needs_no_spark(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "grid.yaml").write_text(GRID)
        swept(grid(), tmp_path / "out", version=code_version())
        assert sweep(tmp_path / "grid.yaml", out=tmp_path / "out", master="spark://nowhere:1") == 0
        printed = capsys.readouterr().out.splitlines()
        assert printed[:2] == [
            "What makes a rolling deploy of three cheap?",
            "4 settings x 4 seeds, 16 runs finished before",
        ]
        assert printed[2].startswith("Ranked by rebalances, then by consumer-seconds stopped; --by chooses another of ")
        assert printed[3] == "Medians; in brackets from the least to the most of the seeds."
        assert printed[4].startswith("* No other setting is as good in every respect")
        assert printed[6].startswith("  1* static membership + down for 5s: 0 rebalances, 0 consumer-seconds stopped, ")
        assert printed[-1] == f"tables and plots: {tmp_path / 'out' / 'index.html'}"

    def test_a_bad_grid_is_reported_and_nothing_is_made(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "grid.yaml").write_text("scenario: topic_growth\nseeds: none\n")
        assert sweep(tmp_path / "grid.yaml", out=tmp_path / "out") == 2
        assert "grid.yaml:2: seeds: expected a number of seeds" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    def test_a_folder_in_use_is_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "grid.yaml").write_text(GRID)
        store = SweepStore(tmp_path / "out", "v", journals=False)
        assert sweep(tmp_path / "grid.yaml", out=tmp_path / "out") == 2
        store.close()
        assert "another sweep writes into this folder" in capsys.readouterr().err
