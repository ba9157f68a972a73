"""Topics of a scenario are the operator's: they may have more partitions than a client could ask for."""

from __future__ import annotations

from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario

SCENARIO = {
    "horizon": "2s",
    "topics": {"orders": {"partitions": 10_001, "records_per_second": 0}, "payments": {"partitions": 1}},
    "groups": {"pay": {"topics": "payments", "consumers": 1}},
}


def test_every_node_has_a_topic_that_no_client_could_make() -> None:
    simulation, _ = play(Scenario.model_validate(SCENARIO))
    cores = [node.core for node in simulation.cluster.nodes]
    topics = [
        {topic.topic: topic.partitions for topic in core.describe_topics(0)} for core in cores if core is not None
    ]
    assert [each["orders"] for each in topics] == [10_001] * len(cores)
