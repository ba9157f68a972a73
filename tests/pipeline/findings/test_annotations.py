"""What happened around a group: files of it, and whether its rebalances lie in rollouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rejoin.pipeline.commands.parser import report, why
from rejoin.pipeline.findings.annotations import Annotation, BadAnnotations, during_rollouts, read_annotations, rollouts
from rejoin.pipeline.report.annotations import annotate, keep_annotations
from rejoin.pipeline.report.data import GroupReport, Report
from rejoin.pipeline.report.page import render
from tests.pipeline.why.test_answer import DAY, rebalance

EVENTS = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "kind": "Event",
            "reason": "Killing",
            "message": "Stopping container\nworker",
            "lastTimestamp": "2026-03-01T00:10:00Z",
            "involvedObject": {"kind": "Pod", "name": "orders-app-7d9f8b6c5d-x2x4z"},
        },
        {
            "kind": "Event",
            "reason": "ScalingReplicaSet",
            "note": "Scaled up",
            "lastTimestamp": None,
            "eventTime": "2026-03-01T00:09:30.250000Z",
            "regarding": {"kind": "Deployment", "name": "orders-app"},
        },
        {
            "kind": "Event",
            "reason": "Started",
            "metadata": {"creationTimestamp": "2026-03-01T01:00:00Z"},
            "involvedObject": {"kind": "Pod", "name": "mail-0"},
        },
    ],
}


def written(folder: Path, text: str) -> list[Path]:
    file = folder / "around"
    file.write_text(text)
    return [file]


def test_events_of_kubernetes(tmp_path: Path) -> None:
    found = read_annotations(written(tmp_path, json.dumps(EVENTS)))
    assert found == [
        Annotation(DAY + 570_250, "Deployment/orders-app: ScalingReplicaSet Scaled up", "orders-app"),
        Annotation(DAY + 600_000, "Pod/orders-app-7d9f8b6c5d-x2x4z: Killing Stopping container worker", "orders-app"),
        Annotation(DAY + 3_600_000, "Pod/mail-0: Started", "mail"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "2026-03-01T00:10:00Z deploy 42",
        "2026-03-01 00:10:00 deploy 42",
        "2026-03-01T01:10:00+01:00,deploy 42",
        "2026-03-01 00:10\tdeploy 42",
        f"{(DAY + 600_000) // 1_000} deploy 42",
        f"{DAY + 600_000}; deploy 42",
    ],
)
def test_lines_of_text(line: str, tmp_path: Path) -> None:
    found = read_annotations(written(tmp_path, f"# deployments\n\n{line}\n"))
    assert found == [Annotation(DAY + 600_000, "deploy 42", "deploy 42")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-03-01T00:10:00Z ok\nsometime deploy", ":2: 'sometime deploy' has no instant; expected the JSON"),
        ("2026-13-01T00:10:00Z deploy", ":1"),
        ("{", "is no list of events"),
        ('{"items": 7}', "is no list of events"),
        ('{"items": [{"reason": "x"}]}', "event 1: has no timestamp"),
    ],
)
def test_what_cannot_be_placed_is_said(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadAnnotations, match=said):
        read_annotations(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text("x")
    missing = tmp_path / "nowhere"
    assert why("g", tmp_path, annotations=(missing,)) == 2
    assert "nowhere: no such file" in capsys.readouterr().err
    assert report([tmp_path / "log"], out=tmp_path / "out", annotations=(missing,)) == 2


# -- the rule


def deploys(*minutes: int) -> list[Annotation]:
    """A rollout of three pods at each of these minutes."""
    return [
        Annotation(DAY + minute * 60_000 + pod * 20_000, f"pod {pod}", "orders-app")
        for minute in minutes
        for pod in range(3)
    ]


HOUR = (DAY, DAY + 4_000_000)


def at(*seconds: int) -> list[dict[str, Any]]:
    return [rebalance(number, DAY + second * 1_000, initial=False) for number, second in enumerate(seconds)]


def test_annotations_that_lie_close_together_are_a_rollout() -> None:
    found = rollouts(deploys(10, 60))
    assert [(each.from_ms - DAY, each.to_ms - DAY, each.subjects) for each in found] == [
        (600_000, 640_000, ("orders-app",)),
        (3_600_000, 3_640_000, ("orders-app",)),
    ]


def test_each_rebalance_lies_in_a_rollout() -> None:
    (found,) = during_rollouts("orders-app", at(605, 625, 645, 3_605, 3_625, 3_645), deploys(10, 60), HOUR)
    assert found.title == "each of the 6 rebalances lies in one of 2 rollouts of orders-app"
    assert found.severity == "medium"
    assert len(found.rebalances) == 6
    assert found.setting == "group.instance.id"


@pytest.mark.parametrize(
    ("member", "protocol", "setting", "says"),
    [
        ("kafkajs-7f0c", "RoundRobinAssigner", None, "KafkaJS has no static membership"),
        ("ruby-kafka-7f0c", "roundrobin", None, "ruby-kafka has no static membership"),
        ("sarama-7f0c", "range", "Consumer.Group.InstanceId", "That needs sarama 1.34 or newer"),
        ("kafka-python-2.0.2-7f0c", "range", "group_instance_id", "That needs kafka-python 2.3 or newer"),
        ("till@h1/<0.7.0>-7f0c", "roundrobin_v2", "group_instance_id", "That needs brod 4.4.2 or newer"),
        ("kgo-7f0c", "cooperative-sticky", "kgo.InstanceID", "Give each member a kgo.InstanceID, and"),
        ("rdkafka-7f0c", "range", "group.instance.id", "Give each member a group.instance.id, and"),
        ("till-7f0c", "range", "group.instance.id", "docs/client-settings.md has its name"),
    ],
)
def test_the_advice_is_one_that_the_groups_clients_can_follow(
    member: str, protocol: str, setting: str | None, says: str
) -> None:
    rows = [{**row, "members_before": [member], "protocol": protocol} for row in at(605, 625, 645)]
    (found,) = during_rollouts("orders-app", rows, deploys(10), HOUR)
    assert found.setting == setting
    assert says in str(found.advice)
    assert setting is not None or "session timeout" not in str(found.advice)


def test_some_that_lie_elsewhere_are_counted() -> None:
    (found,) = during_rollouts("orders-app", at(605, 625, 645, 2_000), deploys(10), HOUR)
    assert found.title == "3 of 4 rebalances lie in a rollout of orders-app"


@pytest.mark.parametrize(
    ("seconds", "minutes"),
    [
        ((605, 625), (10,)),
        ((605, 625, 645, 2_000, 2_100, 2_200, 2_300), (10,)),
        ((1_000, 2_000, 3_000, 4_000), (10, 60)),
        (tuple(range(0, 4_000, 200)), tuple(range(0, 66, 6))),
        ((605, 625, 645), tuple(range(0, 70, 2))),
    ],
    ids=["too few", "most lie elsewhere", "all lie elsewhere", "rollouts very often", "one rollout all the time"],
)
def test_what_comes_close_and_is_no_finding(seconds: tuple[int, ...], minutes: tuple[int, ...]) -> None:
    assert list(during_rollouts("orders-app", at(*seconds), deploys(*minutes), HOUR)) == []


def test_the_first_rebalance_of_a_group_does_not_count() -> None:
    rows = [{**row, "initial": number == 0} for number, row in enumerate(at(605, 625, 645))]
    assert list(during_rollouts("orders-app", rows, deploys(10), HOUR)) == []


def test_without_the_time_that_was_watched_it_is_that_from_the_first_rebalance_to_the_last() -> None:
    assert list(during_rollouts("orders-app", at(605, 625, 645), deploys(10))) == []
    first = {**rebalance(99, DAY), "initial": True}
    (found,) = during_rollouts("orders-app", [first, *at(605, 625, 645)], deploys(10))
    assert found.title == "each of the 3 rebalances lies in a rollout of orders-app"


# -- the page


def test_the_page_has_them_on_the_timeline_and_among_the_findings() -> None:
    rows = [
        {**row, "source": "broker-log", "stopped_ms": 0, "stopped": 0, "regained": 0, "who": "w"}
        for row in at(605, 625, 645)
    ]
    group = GroupReport("logs", "orders-app", DAY, DAY + 3_600_000, rows)
    hostile = "</script><script>alert(1)</script>"
    annotate(shown := Report("r", [group]), [*deploys(10), Annotation(DAY + 700_000, hostile, hostile)])
    assert [row["finding"] for row in group.findings] == ["during-rollouts"]
    page = render(shown)
    assert "each of the 3 rebalances lies in a rollout of orders-app" in page
    assert f'"annotations":[[{DAY + 600_000},"pod 0"]' in page
    assert hostile not in page


def test_annotations_are_a_table_beside_the_others(tmp_path: Path) -> None:
    given = [
        Annotation(1_772_373_720_000, "Scaled up <b>", "orders-app"),
        Annotation(1_772_460_120_000, "deploy 42", ""),
    ]
    keep_annotations(given, tmp_path / "annotations")
    rows = pq.read_table(tmp_path / "annotations").to_pylist()
    assert [(row["at_ms"], row["text"], row["subject"]) for row in rows] == given
    assert [str(row["day"]) for row in rows] == ["2026-03-01", "2026-03-02"]
