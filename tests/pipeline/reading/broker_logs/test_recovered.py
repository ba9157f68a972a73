"""How much of a simulated run can be recovered from the logs of each version."""

from __future__ import annotations

import pytest

from benchmarks.recovered_from_logs import ROWS, SOURCES, Run, Score, Source, runs, score, table
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.statements import LogFile

SEEDS = range(200, 224)
ALL = ("rebalances", "join_end", "completed")
"""What every version reports of every rebalance."""

FLOORS: dict[str, dict[str, float]] = {
    # No reasons are printed: only what an expired session or an empty group makes certain.
    "2.0": {"cause": 0.40, "previous": 0.90},
    # Reasons; a leader that rejoins is known only by its id.
    "2.2": {"cause": 0.85, "member": 1.0, "previous": 0.95},
    "2.5": {"cause": 0.85, "member": 1.0, "previous": 0.95, "members": 0.85, "joined": 0.98},
    "2.8": {"cause": 1.0, "member": 1.0, "previous": 0.95, "members": 0.97, "joined": 0.97, "removed": 1.0},
    "3.9": {
        "cause": 1.0,
        "member": 1.0,
        "reason": 1.0,
        "previous": 0.95,
        "members": 0.92,
        "leader": 1.0,
        "removed": 1.0,
    },
    "4.0": {
        "cause": 1.0,
        "member": 1.0,
        "reason": 1.0,
        "previous": 0.95,
        "members": 0.92,
        "leader": 1.0,
        "joined": 1.0,
    },
    # With the request log: who owns what, and when exactly it was stored.
    "2.8+r": {"cause": 1.0, "in_time": 1.0, "length": 0.95, "members": 0.97, "leader": 0.97, "owned": 0.97},
    "4.0+r": {"cause": 1.0, "in_time": 1.0, "length": 0.95, "members": 0.97, "leader": 0.97, "owned": 0.97},
}


@pytest.fixture(scope="module")
def played() -> list[Run]:
    return list(runs(SEEDS, gallery=False))


@pytest.fixture(scope="module")
def scores(played: list[Run]) -> dict[str, Score]:
    wanted = [source for source in SOURCES if str(source) in FLOORS or source == Source(None, True)]
    return {str(source): result for source, result in score(played, wanted).items()}


@pytest.mark.parametrize("source", FLOORS)
def test_the_truth_comes_back(scores: dict[str, Score], source: str) -> None:
    result = scores[source]
    floors = dict.fromkeys(ALL, 1.0) | FLOORS[source]
    short = {
        name: (str(result.shares[name]), [missed for missed in result.missed if missed[0] == name][:3])
        for name, floor in floors.items()
        if result.shares[name].value < floor
    }
    assert short == {}
    assert result.shares["rebalances"].of > 80


@pytest.mark.parametrize("source", FLOORS)
def test_nothing_is_made_up_and_every_line_is_read(scores: dict[str, Score], source: str) -> None:
    assert scores[source].broken == 0
    assert scores[source].shares["not_invented"].value == 1.0


def test_requests_alone_show_generations_and_most_causes(scores: dict[str, Score]) -> None:
    shares = scores["req"].shares
    for name, floor in {"completed": 1.0, "in_time": 1.0, "members": 0.97, "owned": 0.97, "cause": 0.65}.items():
        assert shares[name].value >= floor, name


def test_a_version_never_reports_less_than_the_one_before(scores: dict[str, Score]) -> None:
    for name in ("cause", "member", "reason"):
        values = [scores[source].shares[name].value for source in ("2.0", "2.2", "2.5", "2.8", "3.9", "4.0")]
        assert values == sorted(values), name


def test_the_table_has_a_line_for_everything(scores: dict[str, Score]) -> None:
    lines = table({Source((4, 0)): scores["4.0"]})
    assert len(lines) == len(ROWS) + 2
    assert lines[1].split() == ["rebalances", "found", "100.0"]


def test_a_request_log_alone_is_read_without_a_broken_line(played: list[Run]) -> None:
    for run in played[:3]:
        for node, lines in run.requests.items():
            log = LogFile("kafka-request.log", str(node))
            assert not [found for found in log.statements(lines) if isinstance(found, BrokenLine)]
            assert log.counts.requests + log.counts.other == len(lines)
