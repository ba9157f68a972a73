"""What a real Kafka was asked and answered, asked again: every field of every answer, and when it came."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from conformance.departures import DEPARTURES, departure
from tests.conformance.golden import PATHS, name_of, recording, recordings, replayed, unexplained

SCRIPTS: Final = Path(__file__).parent.parent.parent / "conformance" / "scripts"


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_the_emulator_answers_as_kafka_did(path: Path) -> None:
    assert unexplained(replayed(recording(path))) == []


def test_there_is_much_to_compare() -> None:
    assert len(PATHS) >= 120
    assert sum(len(played.exchanges) for played in recordings()) >= 1_500


def test_every_recording_is_of_one_kafka_and_says_how_it_was_run() -> None:
    (version,) = {played.kafka for played in recordings()}
    assert version.startswith("4.")
    assert all(played.settings and played.topics for played in recordings())


def test_every_departure_departs() -> None:
    """An entry that explains nothing any more must go."""
    used = {known.name for played in recordings() for one in replayed(played) if (known := departure(one)) is not None}
    assert used == {known.name for known in DEPARTURES}


def test_a_departure_that_is_of_some_scripts_is_needed_in_each_of_them() -> None:
    needed = {
        (known.name, played.script)
        for played in recordings()
        for one in replayed(played)
        if (known := departure(one)) is not None and known.scripts
    }
    assert needed == {(known.name, script) for known in DEPARTURES for script in known.scripts}


def test_every_recording_is_called_as_its_file_is() -> None:
    assert [recording(path).script for path in PATHS] == [name_of(path) for path in PATHS]


def test_departures_have_different_names_and_a_reason() -> None:
    assert len({known.name for known in DEPARTURES}) == len(DEPARTURES)
    assert all(known.why.endswith(".") for known in DEPARTURES)


def test_every_script_is_recorded_and_every_recording_has_its_script() -> None:
    written = {
        (path.parent.name, path.stem, name)
        for path in SCRIPTS.glob("*/*.yaml")
        if path.name != "settings.yaml"
        for name in re.findall(r"^([a-z0-9-]+):", path.read_text(), re.MULTILINE)
    }
    recorded = {(path.parent.parent.name, path.parent.name, re.sub(r"-v\d+$", "-v", path.stem)) for path in PATHS}
    assert recorded == written


def test_what_the_brokers_logged_about_their_groups_is_kept() -> None:
    for folder in {path.parent.parent for path in PATHS}:
        lines = (folder / "group-coordinator.log").read_text().splitlines()
        assert any("GroupCoordinator id=1" in line for line in lines)
        assert not any("/tmp" in line for line in lines)
