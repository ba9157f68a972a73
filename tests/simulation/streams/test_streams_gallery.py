"""Scenarios of the gallery with Kafka Streams applications give the answers that their files state."""

from __future__ import annotations

import pytest

from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.laboratory.state import state_at
from rejoin.simulation.output.compare import with_protocol
from rejoin.simulation.output.streams_tasks import StreamsSummary
from rejoin.simulation.output.summary import Summary, show
from rejoin.simulation.scenario.reading import BadScenario, read_scenario
from tests.paths import GALLERY
from tests.simulation import test_gallery

pytestmark = pytest.mark.xdist_group("gallery")
"""Scenarios that other tests have played are not played again."""


def played(name: str) -> tuple[Summary, str]:
    found = test_gallery.played(name)
    assert found.summary.core_failures == 0
    return found.summary, "\n".join([*found.story, *show(found.summary)])


def tasks(name: str, group_id: str) -> StreamsSummary:
    return played(name)[0].applications[group_id]


def test_a_standby_spares_the_restoration_and_not_the_session() -> None:
    name = "streams_crash_with_and_without_standby"
    with_standby, without = tasks(name, "with-standby"), tasks(name, "without")
    assert with_standby.promotions == 2
    assert without.promotions == 0
    assert with_standby.unowned_ms == pytest.approx(without.unowned_ms, rel=0.05), "both wait for the session"
    assert without.restoring_ms - with_standby.restoring_ms == pytest.approx(20_000 + 40_000, rel=0.1)
    assert "standby promotions" in played(name)[1]
    for group in played(name)[0].groups.values():
        assert group.removed == {"session-expiry": 1}
        assert group.twice > 0
        assert group.lost == 0


def test_a_rolling_deploy_costs_a_session_for_each_instance_with_the_classic_protocol_alone() -> None:
    name = "streams_rolling_deploy_of_either_protocol"
    classic, streams = tasks(name, "classic-app"), tasks(name, "streams-app")
    summary = played(name)[0]
    assert summary.groups["classic-app"].removed == {"session-expiry": 3}
    assert summary.groups["streams-app"].removed == {"left": 3}
    assert classic.worst_ms == pytest.approx(45_000, abs=1_000)
    assert streams.worst_ms < 10_000
    assert classic.unowned_ms > 8 * streams.unowned_ms
    assert streams.promotions > classic.promotions == 0
    assert streams.targets > 0
    for group in summary.groups.values():
        assert group.twice == group.lost == 0


def test_a_new_instance_is_warmed_up_with_the_classic_protocol_alone() -> None:
    classic, streams = (tasks("streams_scale_out", group_id) for group_id in ("classic-app", "streams-app"))
    assert streams.restoring_ms - classic.restoring_ms == pytest.approx(20_000 + 40_000, rel=0.05)
    assert classic.unowned_ms < 10_000
    assert played("streams_scale_out")[0].groups["classic-app"].moved == 2
    assert "Scheduled probing rebalance" in played("streams_scale_out")[1]


def test_an_application_waits_for_its_source_topic_for_two_heartbeat_intervals() -> None:
    summary, story = played("streams_source_topic_missing")
    assert story.count("MissingSourceTopicError: Source topics are missing: lines") == 4
    assert "0:00:10.0" in next(line for line in story.splitlines() if "dies" in line)
    counts = summary.groups["counts"]
    assert counts.removed == {"session-expiry": 4}, "members that failed stay in the group"
    assert counts.processed > 1_000
    assert counts.lost == 0


def test_the_laboratory_shows_tasks_and_their_accounting() -> None:
    run = LaboratoryRun(read_scenario(GALLERY / "streams_source_topic_missing.yaml"))
    *_, last = run.play()
    rows = dict(last["summary"]["counts"])
    assert rows["tasks"] == "6"
    assert "standby promotions" in rows
    (led,) = state_at(run, 150_000)["groups"]["counts"]["led"]
    assert led["group"]["state"] == "Stable"
    tasks_of = [member["assignment"] for member in led["group"]["members"]]
    assert sum(len(indexes) for each in tasks_of for indexes in each.values()) == 6


def test_a_scenario_is_played_with_the_other_protocol_of_its_applications() -> None:
    scenario = read_scenario(GALLERY / "streams_crash_with_and_without_standby.yaml")
    assert {group.protocol for group in with_protocol(scenario, "classic").groups.values()} == {"classic"}
    with pytest.raises(BadScenario, match="no Kafka Streams application"):
        with_protocol(read_scenario(GALLERY / "cold_start.yaml"), "streams")
