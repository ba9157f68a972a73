"""What was recorded, as a scenario: played, it gives the same rebalances."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rejoin.journal.recording.as_scenario import ScenarioWriter
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.web.journal import JournalRecording
from tests.journal.few_records import of_the_gallery
from tests.journal.recording.test_event_recorder import joined


@pytest.mark.parametrize(
    "name",
    [
        "dynamic_rolling_deploy",
        "flapping_consumer",
        "topic_growth",
        "static_rolling_deploy_too_slow",
        "stuck_handler_holds_up_a_rebalance",
    ],
)
def test_the_scenario_of_a_journal_has_the_same_rebalances(name: str, tmp_path: Path) -> None:
    scenario = of_the_gallery(name)
    (group_id,) = scenario.groups
    _, before = play(scenario, journal=tmp_path / "run.jsonl")
    text = JournalRecording(tmp_path / "run.jsonl").piece(group_id)["scenario"]
    _, after = play(scenario_from(text))
    assert after.groups[group_id].rebalances == before.groups[group_id].rebalances
    assert after.groups[group_id].removed == before.groups[group_id].removed


def test_what_is_not_known_is_said() -> None:
    writer = ScenarioWriter("app")
    writer.on_event(joined("m-1", "m"), 0)
    text = writer.text(60_000)
    assert "# - how many partitions orders has: taken for 4\n" in text
    assert yaml.safe_load(text)["topics"] == {"orders": {"partitions": 4, "records_per_second": 1}}
    assert ScenarioWriter("app").text(60_000) == ""


@pytest.mark.parametrize("group_id", ["yes", "12", "a: {b", "#", "<img src=x onerror=alert(1)>", "ä", "null"])
def test_a_group_of_any_name_stays_a_name(group_id: str) -> None:
    writer = ScenarioWriter(group_id)
    writer.on_event(joined("m-1", "m"), 0)
    assert [*yaml.safe_load(writer.text(60_000))["groups"]] == [group_id]
