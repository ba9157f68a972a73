"""Where ``rejoin why`` gets its answer: a folder of a report, a running coordinator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.commands.parser import why
from rejoin.pipeline.why.events import events_of, findings_of, rebalances_of, sessions_of
from rejoin.pipeline.why.service import ServiceSource
from rejoin.pipeline.why.story import SourceProblem
from rejoin.pipeline.why.tables import TablesSource
from rejoin.simulation.run import play
from tests.journal.few_records import of_the_gallery
from tests.pipeline.gallery import found_in
from tests.pipeline.simulated import lines_of
from tests.pipeline.watch.services import serving

COORDINATORS = ("rolling", "too_slow", "flapping", "topic_growth", "stuck")
ONLY_FROM_CONSUMERS = {
    # Pauses and records are in the journals of consumers alone.
    *("lost-records", "eager-assignor", "max-poll-exceeded", "stuck-reconciliation"),
    # The costs of storms and of members that are changed are upper bounds without pauses.
    "storm",
}


@pytest.fixture(scope="module")
def tables(gallery_report: Path) -> TablesSource:
    return TablesSource(gallery_report / "out")


def test_groups_of_a_report(tables: TablesSource) -> None:
    groups = {each.group_id: each for each in tables.groups()}
    assert "orders-app" in groups
    assert groups["orders-app"].state is not None
    assert [each.group_id for each in tables.groups()] == sorted(groups)


def test_the_findings_of_a_report_are_those_of_its_page(tables: TablesSource, gallery_report: Path) -> None:
    on_page = {
        (run, group, name) for (run, group), rules in found_in(gallery_report).items() for name in rules if group
    }
    read = {(row["run_id"], row["group_id"], row["finding"]) for row in tables.findings() if row["group_id"]}
    assert on_page <= read


def test_a_group_that_the_report_does_not_have(gallery_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders-ap", gallery_report / "out") == 2
    assert "there is no group 'orders-ap'; is it 'orders-app'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run", "run.jsonl"])
def test_a_journal_is_explained_without_spark(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = of_the_gallery("static_rolling_deploy_too_slow")
    _, summary = play(scenario, journal=tmp_path / name)
    assert why("orders-app", tmp_path / name) == 0
    lines = capsys.readouterr().out.splitlines()
    started = summary.groups["orders-app"].started
    assert lines[0] == "group    orders-app: Stable since 0:15:42, generation 13, 6 members, range"
    assert lines[1].startswith(f"so far   {started} rebalances from 0:00:00 to ")
    assert "missed the session by" in " ".join(" ".join(lines).split())
    assert why("orders-ap", tmp_path / name) == 2
    assert "there is no group 'orders-ap'; is it 'orders-app'?" in capsys.readouterr().err


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text("hello\n")
    assert why("orders-app", tmp_path / "x.jsonl") == 2
    assert "its rows are none of a journal of this version" in capsys.readouterr().err
    (tmp_path / "y.jsonl").write_bytes(b"\xff\n")
    assert why("orders-app", tmp_path / "y.jsonl") == 2
    assert "y.jsonl" in capsys.readouterr().err


def test_the_answer_on_a_terminal(gallery_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders-app", gallery_report / "out") == 0
    lines = capsys.readouterr().out.splitlines()
    assert 5 <= len(lines) <= 10
    assert lines[0].startswith("group    orders-app: ")


def test_the_answer_as_json(gallery_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders-app", gallery_report / "out", json=True) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"]["group_id"] == "orders-app"
    assert answer["rebalances"][0]["cause"] == "join-new"


def test_a_folder_without_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("g", tmp_path) == 2
    assert "no report in there; expected the folder that was --out" in capsys.readouterr().err


def test_a_folder_that_is_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert why("g", Path("localhost:9092")) == 2
    assert "for a cluster say --bootstrap-server localhost:9092" in capsys.readouterr().err


def test_an_instant_that_is_none(gallery_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders-app", gallery_report / "out", at="soon") == 2
    assert "--at soon: no instant" in capsys.readouterr().err


def events_from(gallery_report: Path, scenario: str) -> list[dict[str, Any]]:
    lines = [
        json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        for row in lines_of(gallery_report / "journals" / f"{scenario}.jsonl")
        if row["node"].startswith("node") or row["node"] == "outside"
    ]
    rows, others = events_of(lines)
    assert others == []
    return rows


SCENARIOS = (
    "static_rolling_deploy_too_slow",
    "dynamic_rolling_deploy",
    "flapping_consumer",
    "cold_start_without_delay",
    "coordinator_failover_in_stable",
    "static_id_used_twice",
    "idle",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_coordinators_events_give_what_a_report_on_them_finds(gallery_report: Path, scenario: str) -> None:
    events = events_from(gallery_report, scenario)
    reported = found_in(gallery_report)
    for (run, group_id), rules in reported.items():
        if run != scenario:
            continue
        rebalances = rebalances_of(group_id, events)
        found = {row["finding"]: row for row in findings_of(group_id, events, rebalances, events[-1]["at_ms"])}
        wanted = {name for name in rules if name not in ONLY_FROM_CONSUMERS}
        assert wanted <= found.keys()
        assert found.keys() - ONLY_FROM_CONSUMERS <= rules.keys()
        for name in wanted:
            assert len(found[name]["rebalances"]) == len(rules[name]["rebalances"])


def test_processes_that_paused_together_are_no_rolling_restart_by_any_journal(gallery_report: Path) -> None:
    scenario = "gc_pause_longer_than_the_session"
    events = events_from(gallery_report, scenario)
    rebalances = rebalances_of("orders-app", events)
    found = {row["finding"] for row in findings_of("orders-app", events, rebalances, events[-1]["at_ms"])}
    assert "session-too-short" in found
    assert "rolling-restart" not in found
    row = found_in(gallery_report)[scenario, "orders-app"]
    assert "rolling-restart" not in row
    assert row["session-too-short"]["numbers"]["consumers"] == 3
    assert "is shorter than the pause." in row["session-too-short"]["text"]


def test_sessions_are_those_of_the_table(gallery_report: Path, tables: TablesSource) -> None:
    events = events_from(gallery_report, "static_rolling_deploy_too_slow")
    ends = [row["end"] for row in sessions_of("orders-app", events)]
    assert ends.count("session-expiry") == 6
    assert ends.count("open") == 6


def test_a_running_coordinator(gallery_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as service:
        assert ServiceSource([service.url]).groups() == []
        with pytest.raises(SourceProblem, match="there is no group 'orders'; it has none"):
            ServiceSource([service.url]).story("orders")
        assert why("orders", bootstrap_server=service.url) == 2
        assert "there is no group 'orders'" in capsys.readouterr().err


def test_a_file_where_a_folder_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders", Path(__file__)) == 2
    assert f"{__file__}: nothing about consumer groups in there" in capsys.readouterr().err


def test_a_coordinator_that_is_not_there(unused_tcp_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders", bootstrap_server=f"http://127.0.0.1:{unused_tcp_port}") == 2
    assert "does not answer: connection refused" in capsys.readouterr().err


def test_a_group_whose_first_rebalance_goes_on(gallery_report: Path) -> None:
    events = events_from(gallery_report, "flapping_consumer")
    until = next(number for number, row in enumerate(events) if row["event"] == "rebalance_completed")
    rows = rebalances_of("orders-app", events[:until])
    assert [row["outcome"] for row in rows] == ["open"]
    assert findings_of("orders-app", events[:until], rows, events[until]["at_ms"]) == []
