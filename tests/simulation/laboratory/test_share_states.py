"""Share-partitions of a run in any instant, and what can be done to the records that are in flight."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.simulation.laboratory import node_history
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.laboratory.scenario_edits import with_event
from rejoin.simulation.laboratory.state import state_at
from rejoin.simulation.scenario.reading import BadScenario, scenario_from

SCENARIO = """\
horizon: 40s
coordinator: {{nodes: {nodes}}}
topics:
  orders: {{partitions: 1, records_per_second: 2}}
groups:
  workers:
    topics: orders
    consumers: 2
    protocol: share
    processing: 1s
    share: {{acknowledge: explicit}}
    settings: {{share.record.lock.duration.ms: 15000}}
"""


def played(text: str) -> tuple[LaboratoryRun, list[list[Any]]]:
    """A run that is played to its end, with the rows of its share-partitions."""
    run = LaboratoryRun(scenario_from(text))
    rows = [row for piece in run.play() for row in piece.get("shares", [])]
    return run, rows


def shares_at(run: LaboratoryRun, at: int) -> list[dict[str, Any]]:
    return list(state_at(run, at)["groups"]["workers"].get("shares", []))


@pytest.mark.parametrize(("nodes", "copy_every"), [(1, 500), (1, 20), (3, 15)])
def test_a_copy_of_a_core_has_the_share_partitions_that_the_core_had(
    nodes: int, copy_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_history, "COPY_EVERY", copy_every)
    run = LaboratoryRun(scenario_from(SCENARIO.format(nodes=nodes)))
    seen = {}
    for _ in run.play():
        now = run.simulation.world.now
        cores = [(node.name, node.core) for node in run.simulation.cluster.nodes]
        seen[now] = {name: core.share_states("workers", now) for name, core in cores if core is not None}
        state_at(run, now // 2)  # what is looked at meanwhile changes nothing
    assert any(any(states.values()) for states in seen.values())
    for now, states in seen.items():
        for name, history in run.nodes.by_name.items():
            copied = history.at(now)
            assert copied is not None
            assert copied.share_states("workers", now) == states[name], (now, name)


def test_looking_at_a_run_while_it_is_played_changes_nothing() -> None:
    text = SCENARIO.format(nodes=1)
    run, looked = LaboratoryRun(scenario_from(text)), []
    for piece in run.play():
        looked += piece.get("shares", [])
        state_at(run, piece["until"])
    assert looked == played(text)[1]


def acquired(rows: list[list[Any]]) -> list[Any]:
    """The first acquisition of more than one record."""
    return next(row for row in rows if row[4] == "acquired" and row[5] < row[6])


@pytest.mark.parametrize(("kind", "what"), [("expire_lock", "expired"), ("release", "release")])
def test_a_record_in_flight_is_given_back_by_an_action(kind: str, what: str) -> None:
    text = SCENARIO.format(nodes=1)
    at, _, topic, partition, _, _, last, *_ = acquired(played(text)[1])
    action = f"{kind}: {{group: workers, topic: {topic}, partition: {partition}, offset: {last}}}"
    run, rows = played(with_event(text, at + 10, action))
    found = [row for row in rows if row[4] == what and row[5] <= last <= row[6]]
    assert found
    assert at + 10 <= found[0][0] < at + 1_000
    assert shares_at(run, at + 5)[0]["records"][0]["state"] == "ACQUIRED"


def test_only_a_share_group_has_records_in_flight() -> None:
    text = SCENARIO.format(nodes=1).replace("protocol: share", "protocol: consumer")
    text = text.replace("    share: {acknowledge: explicit}\n", "")
    text = "\n".join(line for line in text.splitlines() if "settings:" not in line) + "\n"
    action = "expire_lock: {group: workers, topic: orders, partition: 0, offset: 0}"
    with pytest.raises(BadScenario, match="group workers is no share group, and holds no records"):
        scenario_from(with_event(text, 1_000, action))
