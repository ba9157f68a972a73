"""Replays the requests to a real Kafka: every field of every answer, and when it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.replay.known_differences import KNOWN_DIFFERENCES, known_difference
from conformance.steps.language import load_all, script_header
from rejoin.conform.steps.player import COMMANDS
from rejoin.protocol.registry import BY_NAME
from tests.conformance.golden import PATHS, broker_versions, name_of, recording, recordings, replayed, unexplained
from tests.suite.cases import for_each


@for_each("path", PATHS, ids=name_of, parts=4)
def test_the_emulator_answers_as_kafka_did(path: Path) -> None:
    assert unexplained(replayed(recording(path))) == []


def test_there_is_much_to_compare() -> None:
    assert len(PATHS) >= 120
    assert sum(len(played.exchanges) for played in recordings()) >= 1_500


def test_every_recording_is_of_one_kafka_and_says_how_it_was_run() -> None:
    (version,) = {played.kafka for played in recordings()}
    assert version.startswith("4.")
    assert all(played.settings and played.topics for played in recordings())


def test_every_known_difference_is_seen() -> None:
    """An entry that explains nothing any more must go."""
    used = {
        known.name
        for played in recordings()
        for one in replayed(played)
        if (known := known_difference(one)) is not None
    }
    assert used == {known.name for known in KNOWN_DIFFERENCES}


def test_a_known_difference_of_some_scripts_is_seen_in_each_of_them() -> None:
    needed = {
        (known.name, played.script)
        for played in recordings()
        for one in replayed(played)
        if (known := known_difference(one)) is not None and known.scripts
    }
    assert needed == {(known.name, script) for known in KNOWN_DIFFERENCES for script in known.scripts}


def test_every_recording_is_called_as_its_file_is() -> None:
    assert [recording(path).script for path in PATHS] == [name_of(path) for path in PATHS]


def test_known_differences_have_names_and_reasons() -> None:
    assert len({known.name for known in KNOWN_DIFFERENCES}) == len(KNOWN_DIFFERENCES)
    assert all(known.why.endswith(".") for known in KNOWN_DIFFERENCES)


def test_every_recording_is_of_its_script_as_it_is_written_now() -> None:
    """Otherwise: ``make record SETS=...`` with the name of the set."""
    written = {header["script"]: header for header in headers()}
    assert {played.script for played in recordings()} == set(written)
    outdated = [
        played.script
        for played in recordings()
        if any(getattr(played, name) != value for name, value in written[played.script].items())
    ]
    assert outdated == []


def headers() -> list[dict[str, Any]]:
    """The header of each script as it is now, in JSON."""
    return [json.loads(json.dumps(script_header(each, script))) for each in load_all() for script in each.scripts()]


NEWEST = {"ListOffsets": 10, "Metadata": 12, "TxnOffsetCommit": 5, "DeleteGroups": 2}
"""The newest version when the recordings were made, where a newer one is offered now."""


def test_every_request_was_sent_in_the_version_that_its_step_means() -> None:
    """A step without a version means the newest one that both sides have."""
    broker = broker_versions()
    outdated = []
    for played in recordings():
        steps = [step for step in played.steps if not COMMANDS & step.keys()]
        for asked, step in zip(played.exchanges, steps, strict=True):
            if asked.api in BY_NAME:
                newest = NEWEST.get(asked.api, min(BY_NAME[asked.api].default_version, broker[asked.api][-1]))
                if asked.version != step.get("claims", step.get("version", newest)):
                    outdated.append(f"{played.script}: {asked.number} {asked.api} v{asked.version}")
    assert outdated == []


def test_what_the_brokers_logged_about_their_groups_is_kept() -> None:
    for folder in {path.parent.parent for path in PATHS}:
        lines = (folder / "group-coordinator.log").read_text().splitlines()
        assert any("GroupCoordinator id=1" in line for line in lines)
        assert not any("/tmp" in line for line in lines)
