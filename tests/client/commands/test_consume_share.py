"""`rejoin consume --share`: processes that read as members of a share group."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rejoin.client.commands.consume import ConsumeOptions
from rejoin.client.commands.consumer_processes import run
from rejoin.coordinator.testing import running_in_thread
from rejoin.coordinator.testing.blocking import BlockingGroupCoordinator
from tests.coordinator.control.samples import parse

GROUP = "workers"


@pytest.fixture
def coordinator() -> Iterator[BlockingGroupCoordinator]:
    settings = {
        "group.share.assignment.interval.ms": 0,
        "group.share.min.heartbeat.interval.ms": 50,
        "group.share.heartbeat.interval.ms": 200,
    }
    with running_in_thread(topics={"jobs": 2}, settings=settings) as started:
        made = BlockingGroupCoordinator(started)
        values = [{"name": "share.auto.offset.reset", "configOperation": 0, "value": "earliest"}]
        resource = {"resourceType": 32, "resourceName": GROUP, "configs": values}
        made.call(parse("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False}))
        yield made


def test_it_accepts_what_it_processes(coordinator: BlockingGroupCoordinator) -> None:
    for partition in (0, 1):
        coordinator.produce("jobs", partition, 5)
    command = [sys.executable, "-m", "rejoin", "consume", "--share", "--group", GROUP, "--topic", "jobs"]
    command += ["--bootstrap", coordinator.bootstrap_servers, "--consumers", "2", "--duration", "8s"]
    done = subprocess.run([*command, "--commit", "sync"], capture_output=True, text=True, check=False, timeout=300)
    log: list[dict[str, Any]] = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 0, log
    assert (log[-1]["event"], log[-1]["records"], log[-1]["partitions"]) == ("summary", 10, 2)
    asked = {"groups": [{"groupId": GROUP, "topics": None}]}
    answer: Any = coordinator.call(parse("DescribeShareGroupOffsets", asked))
    (topic,) = answer.groups[0].topics
    assert [(each.partition_index, each.lag) for each in topic.partitions] == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"assignor": ["range"]}, "--assignor"),
        ({"static": True}, "--static"),
        ({"pattern": ".*"}, "--pattern"),
        ({"setting": ["isolation.level=read_committed"]}, "share.isolation.level of the group"),
        ({"setting": ["share.acquire.mode=none"]}, "expected 'batch_optimized' or 'record_limit'"),
    ],
)
def test_options_of_other_groups_are_refused(
    options: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(ConsumeOptions(group=GROUP, topic=["jobs"], share=True, **options)) == 2
    assert problem in capsys.readouterr().err
