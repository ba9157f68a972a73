"""``/metrics`` of groups under the names that dashboards use, and the dashboard in the repository on top of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.service.http import group_metrics
from rejoin.coordinator.service.options import InitialTopic
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.paths import ROOT

DASHBOARD: dict[str, Any] = json.loads((ROOT / "examples/grafana/consumer-groups.json").read_text())
Sample = tuple[dict[str, str], float]
Samples = dict[str, list[Sample]]

FUNCTIONS = {"sum", "max", "topk", "rate", "increase", "by", "bool"}
"""Words of PromQL in the dashboard that are no metrics."""
_SELECTOR = re.compile(r"([a-z_]+)(?:\{([^}]*)\})?(\[\$__rate_interval\])?")
_MATCHER = re.compile(r'([a-z_]+)=~"([^"]*)"')


async def commit(node: Harness, group: str, offset: int, partition: int = 0) -> None:
    each = {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": ""}
    body = {"groupId": group, "topics": [{"name": "orders", "partitions": [each]}], "memberId": ""}
    answer = await node.call("OffsetCommit", {**body, "generationIdOrMemberEpoch": -1}, 8)
    assert answer["topics"][0]["partitions"][0]["errorCode"] == 0


async def scrape(node: Harness) -> Samples:
    page = (await node.request("GET", "/metrics")).body.decode()
    found: Samples = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


@pytest.fixture
async def samples(serve: Serve) -> Samples:
    """Of a group with a member, and of one with a commit and a lag of ten records, of which five come in a second."""
    node = await serve({"topics": (InitialTopic("orders", 2, 5.0),)})
    await node.stable("reads")
    node.clock.advance(10_000)
    end = (await node.get("/topics/orders"))["endOffsets"][0]
    await commit(node, "lags", end - 10)
    return await scrape(node)


async def test_the_names_and_labels_of_kafka_exporter(samples: Samples) -> None:
    assert ({"consumergroup": "reads"}, 1.0) in samples["kafka_consumergroup_members"]
    labels = {"consumergroup": "lags", "topic": "orders", "partition": "0"}
    assert samples["kafka_consumergroup_lag"] == [(labels, 10.0)]
    ((where, committed),) = samples["kafka_consumergroup_current_offset"]
    assert where == labels
    assert samples["kafka_topic_partition_current_offset"] == [({"topic": "orders", "partition": "0"}, committed + 10)]
    sums = {"consumergroup": "lags", "topic": "orders"}
    assert samples["kafka_consumergroup_lag_sum"] == [(sums, 10.0)]
    assert samples["kafka_consumergroup_current_offset_sum"] == [(sums, committed)]


async def test_lag_in_seconds_and_the_state_as_a_number(samples: Samples) -> None:
    assert ({"group": "reads"}, 3.0) in samples["kafka_consumergroup_group_state"]
    assert ({"group": "lags"}, 5.0) in samples["kafka_consumergroup_group_state"]
    ((labels, seconds),) = samples["kafka_consumergroup_group_lag_seconds"]
    assert labels == {"group": "lags", "topic": "orders", "partition": "0"}
    assert 1.8 <= seconds <= 2.2
    assert samples["kafka_consumergroup_group_max_lag_seconds"] == [({"group": "lags"}, seconds)]


async def test_a_group_that_has_read_all_has_no_lag_in_seconds(node: Harness) -> None:
    await node.topic("orders", 1)
    await commit(node, "done", (await node.get("/topics/orders"))["endOffsets"][0])
    samples = await scrape(node)
    assert samples["kafka_consumergroup_group_max_lag_seconds"] == [({"group": "done"}, 0.0)]


async def test_names_of_groups_are_quoted(node: Harness) -> None:
    hostile = 'a"b\\c\nd</script>'
    await node.topic("orders", 1)
    await commit(node, hostile, 0)
    assert ({"consumergroup": hostile}, 0.0) in (await scrape(node))["kafka_consumergroup_members"]


async def test_the_number_of_series_is_bounded(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_metrics, "MOST_GROUPS", 3)
    monkeypatch.setattr(group_metrics, "MOST_PARTITIONS", 3)
    node = await serve()
    await node.topic("orders", 2)
    for group in "abcde":
        for partition in (0, 1):
            await commit(node, group, 0, partition)
    samples = await scrape(node)
    assert [labels["consumergroup"] for labels, _ in samples["kafka_consumergroup_members"]] == ["a", "b", "c"]
    assert len(samples["kafka_consumergroup_lag"]) == 2
    assert len(samples["kafka_consumergroup_lag_sum"]) == 3
    assert samples["rejoin_group_metrics_left_out"] == [({}, 2.0)]


def test_every_state_has_a_number() -> None:
    states = {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Assigning", "Reconciling"}
    assert states <= set(group_metrics.STATES)
    assert "state" in GroupView.model_fields


# -- the dashboard


def queries() -> Iterator[tuple[str, str, str]]:
    """Panel, query and legend."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]


async def test_every_query_of_the_dashboard_finds_something(samples: Samples) -> None:
    empty = []
    for title, query, _ in queries():
        assert query.count("(") == query.count(")")
        grouped = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"by \(([^)]*)\)", query))))
        # What is in quotes or between the labels of "by" is no metric.
        bare = re.sub(r"by \([^)]*\)", "", query)
        for name, matchers, _ in _SELECTOR.findall(bare):
            if name in FUNCTIONS:
                continue
            wanted = dict(_MATCHER.findall(matchers.replace("$group", ".*")))
            found = [
                labels
                for labels, _ in samples.get(name, ())
                if all(re.fullmatch(pattern, labels.get(label, "")) for label, pattern in wanted.items())
                and grouped | wanted.keys() <= labels.keys()
            ]
            if not found:
                empty.append((title, name))
    assert empty == []


def test_legends_name_labels_of_their_queries() -> None:
    for title, query, legend in queries():
        grouped = re.findall(r"[a-z_]+", " ".join(re.findall(r"by \(([^)]*)\)", query)))
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= set(grouped), title


def test_panels_lie_side_by_side_and_use_the_variable() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & mine, panel["title"]
        cells |= mine
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["description"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_states_of_the_dashboard_are_those_of_the_metric() -> None:
    (panel,) = [panel for panel in DASHBOARD["panels"] if panel["title"] == "States"]
    (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
    assert [mapping["options"][str(number)]["text"] for number in range(8)] == list(group_metrics.STATES)
