"""What a request costs grows as its entries do, so that one of many entries does not hold up the node."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.limits import MAX_ENTRIES
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from tests.coordinator.core.driver import DrivenNode

NAMES = tuple(f"group-{number}" for number in range(MAX_ENTRIES))


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_creating_topics_compares_no_name_with_all_others() -> None:
    names = [CountedName(f"topic-{number}") for number in range(500)]
    topics = tuple(
        CreatableTopic.model_construct(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        for name in names
    )
    driven = DrivenNode()
    CountedName.compared = 0
    answer = driven.ask(CreateTopicsRequest.model_construct(topics=topics, timeout_ms=1, validate_only=False), 5)
    assert len(answer.topics) == len(names)
    assert CountedName.compared < 20 * len(names)


def cpu_of(request: Request, version: int) -> float:
    driven = DrivenNode()
    began = time.process_time()
    driven.effects_of(Received("token", request, Context(version)))
    return time.process_time() - began


def test_deleting_many_groups_costs_little_more_than_describing_them() -> None:
    """It once looked through all results for each group, which took seventeen times as long."""
    described = min(cpu_of(DescribeGroupsRequest(groups=NAMES), 6) for _ in range(2))
    deleted = min(cpu_of(DeleteGroupsRequest(groups_names=NAMES), 2) for _ in range(2))
    assert deleted < 6 * described
