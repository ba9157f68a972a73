"""What goes wrong within rebalances, in the offsets log and by rollouts, from the logs of brokers of four versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from benchmarks.recovered_from_logs import read, run, written
from rejoin.pipeline.reading.broker_logs.reconstruction import partition_events
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.vocabulary import BROKER_LOG
from rejoin.simulation.scenario.reading import scenario_from
from tests.pipeline.events import events_here
from tests.pipeline.findings.tables import findings_of
from tests.pipeline.gallery import OWN

VERSIONS: Final = ((2, 8), (3, 9), (4, 0), (4, 4))
SCENARIOS: Final = ("phases", "stores", "rollouts", "thrash")
EXPECTED: Final = {
    "phases": {
        "loop/rejoin-loop",
        "slow-leader/sync-held-up",
        "dead-leader/sync-held-up",
        "stuck/rebalance-still-open",
    },
    "stores": {"unstored/offsets-partition-cannot-be-written", "loaded/slow-load", "stored/slow-load"},
    "rollouts": {"renamed/changing-instance-ids"},
    "thrash": {"orders-app/thrashing-autoscaler"},
}
NAMES: Final = {key.partition("/")[2] for keys in EXPECTED.values() for key in keys}


def logged(name: str) -> Iterator[dict[str, Any]]:
    """The events that each version's logs of one run give."""
    emitted = run(name, scenario_from(OWN[name]), requests=False).emitted
    for version in VERSIONS:
        logs = written(emitted, version)
        found, broken = read(logs, {})
        assert broken == 0
        for node, lines in logs.items():
            statements = LogFile(f"broker-{node}.log", str(node)).statements(lines)
            found += partition_events(each for each in statements if isinstance(each, Statement) and each.group is None)
        about = {"run_id": f"{name} {version[0]}.{version[1]}", "source": BROKER_LOG}
        found = [{"group_id": None} | event for event in found]
        for event in sorted(found, key=lambda each: (each["order_ms"], each["line"])):
            yield {key: value for key, value in event.items() if key != "order_ms"} | about


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    rows = [event for name in SCENARIOS for event in logged(name)]
    events = events_here(rows)
    got: dict[str, set[str]] = {}
    made = ("rebalances", "member_sessions")
    for row in findings_of(events, made):
        for group in row["groups"]:
            got.setdefault(row["run_id"], set()).add(f"{group}/{row['finding']}")
    return got


@pytest.mark.parametrize("version", [f"{major}.{minor}" for major, minor in VERSIONS])
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_logs_of_each_version_show_it_and_nothing_of_the_kind_beside(
    found: dict[str, set[str]], name: str, version: str
) -> None:
    of_the_kind = {key for key in found[f"{name} {version}"] if key.partition("/")[2] in NAMES}
    assert of_the_kind == EXPECTED[name]
