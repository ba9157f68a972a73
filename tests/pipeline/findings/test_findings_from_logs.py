"""Findings from brokers' logs against those from the journal of the same run: a log shows less, and never the contrary.

Scenarios of the gallery are played, and what their coordinators did is written down as brokers of four versions log it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.recovered_from_logs import read, run, written
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.vocabulary import BROKER_LOG
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests import paths
from tests.journal.few_records import with_few_records
from tests.pipeline.events import events_here
from tests.pipeline.findings.tables import findings_of
from tests.pipeline.gallery import GALLERY

VERSIONS = ((2, 0), (2, 4), (2, 8), (4, 0))
SCENARIOS = (
    "commit_before_processing",
    "dynamic_rolling_deploy",
    "flapping_consumer",
    "gc_pause_longer_than_the_session",
    "static_rolling_deploy_too_slow",
    "stuck_handler",
)
RECORDED = paths.RECORDED
"""Logs of real brokers."""
TELL_JOINS = ("2.8", "4.0")
DIRECTION = {"session-too-short": "longer", "died-without-leaving": "shorter"}
"""Findings that want session.timeout.ms changed, and which way."""
ONLY_IN_LOGS = {("gc_pause_longer_than_the_session", "orders-app/rolling-restart")}
"""Two members that paused together: only their own journals show that their processes went on."""

Found = dict[tuple[str, str], dict[str, dict[str, Any]]]
"""Findings by scenario and source (a version, or journal), each by group and rule: ``orders-app/storm``."""


def events_of_logs(name: str, scenario: Any) -> Iterable[dict[str, Any]]:
    events = run(name, scenario, requests=False).emitted
    for version in VERSIONS:
        found, broken = read(written(events, version), {})
        assert broken == 0
        about = {"run_id": f"{name} {version[0]}.{version[1]}", "source": BROKER_LOG}
        for event in sorted(found, key=lambda each: (each["order_ms"], each["line"])):
            yield {key: value for key, value in event.items() if key != "order_ms"} | about


def events_of_recorded_logs() -> Iterable[dict[str, Any]]:
    for path in sorted(RECORDED.glob("*/group-coordinator.log")):
        found, _ = read({1: path.read_bytes().splitlines()}, {})
        about = {"run_id": f"{path.parent.name} recorded", "source": BROKER_LOG}
        for event in sorted(found, key=lambda each: (each["order_ms"], each["line"])):
            yield {key: value for key, value in event.items() if key != "order_ms"} | about


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("journals")
    rows = list(events_of_recorded_logs())
    for name in SCENARIOS:
        text = (GALLERY / f"{name}.yaml").read_text()
        scenario = scenario_from(with_few_records(text))
        play(scenario, journal=folder / f"{name}.jsonl", run_id=f"{name} journal")
        rows += events_of_logs(name, scenario)
    journals = read_events(find([folder]), "UTC")
    events = pa.concat_tables([journals.events, events_here(rows)])
    # The consumers' own events do not matter here.
    made = findings_of(events, ("rebalances", "member_sessions"))
    got: Found = {}
    for row in made:
        name, source = row["run_id"].split()
        got.setdefault((name, source), {})[f"{row['group_id']}/{row['finding']}"] = row
    return got


def from_logs(found: Found) -> Iterable[tuple[str, str, str, dict[str, Any]]]:
    for (name, source), rows in found.items():
        if source not in ("journal", "recorded"):
            yield from ((name, source, key, row) for key, row in rows.items())


def test_a_setting_that_a_log_names_the_journal_names_too(found: Found) -> None:
    made_up = [
        (name, source, key, row["setting"])
        for name, source, key, row in from_logs(found)
        if row["setting"] is not None and key not in found[name, "journal"] and (name, key) not in ONLY_IN_LOGS
    ]
    assert made_up == []
    assert {source for _, source, _, row in from_logs(found) if row["setting"]} == {"2.4", *TELL_JOINS}


def test_a_log_wants_a_setting_changed_the_way_the_journal_does(found: Found) -> None:
    def ways(name: str, source: str) -> set[str]:
        return {DIRECTION[key.split("/")[1]] for key in found.get((name, source), {}) if key.split("/")[1] in DIRECTION}

    for name in SCENARIOS:
        for source in ("2.0", "2.4", *TELL_JOINS):
            assert ways(name, source) <= ways(name, "journal"), (name, source)
    assert ways("static_rolling_deploy_too_slow", "4.0") == {"longer"}


def test_without_the_session_timeout_no_value_is_named_and_what_is_named_would_do(found: Found) -> None:
    advised = [each for each in from_logs(found) if each[2].endswith("/session-too-short")]
    assert {source for _, source, *_ in advised} == {"2.4", *TELL_JOINS}
    for name, _, key, row in advised:
        assert not re.search(r"\d{4,}", row["advice"])
        assert "then passes" not in row["advice"]
        assert "longer than it is now, by at least" in row["advice"]
        assert "wanted_session_timeout_ms" not in row["numbers"]
        truth = found[name, "journal"][key]["numbers"]
        would_be = truth["session_timeout_ms"] + row["numbers"]["longer_by_ms"]
        assert would_be > truth["session_timeout_ms"] + row["numbers"]["most_missed_ms"]


def test_recorded_logs_without_the_session_timeout_lead_to_advice_without_a_value(found: Found) -> None:
    advised = [
        row
        for (_, source), rows in found.items()
        for key, row in rows.items()
        if source == "recorded" and key.endswith(("/session-too-short", "/rolling-restart"))
    ]
    assert advised
    for row in advised:
        assert "wanted_session_timeout_ms" not in row["numbers"]
        assert not re.search(r"[Ss]et session.timeout.ms to", row["advice"])


def test_where_joins_are_not_reported_no_member_is_said_not_to_have_come_back(found: Found) -> None:
    silent = {(name, source) for name, source, key, _ in from_logs(found) if key.endswith("/fell-silent")}
    assert silent >= {(name, "2.0") for name in SCENARIOS if any("too-short" in key for key in found[name, "journal"])}
    assert not [each for each in silent if each[1] in (*TELL_JOINS, "journal")]
    for _, _, key, row in from_logs(found):
        if key.endswith("/fell-silent"):
            assert (row["confidence"], row["setting"]) == ("inferred", None)
            assert "this source does not say" in row["text"]
            assert "did not come back" not in row["title"] + row["text"]


def test_a_log_that_reports_all_joins_finds_what_the_journal_finds(found: Found) -> None:
    for name in SCENARIOS:
        wanted = {key for key in found[name, "journal"] if key.endswith(("-restart", "-too-short", "-member"))}
        for source in TELL_JOINS:
            assert wanted <= set(found.get((name, source), ())), (name, source)
