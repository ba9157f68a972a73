"""A server-side assignor of one's own: the example of the documentation, by its path and by an entry point."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from rejoin.coordinator.core.groups.consumer.assignors.registry import UnknownServerAssignor, assignors_of
from rejoin.protocol import plugins
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.groups.consumer_node import ConsumerNode
from tests.docs.texts import python_blocks

PATH = "my_package_one:OneForAllAssignor"


@pytest.fixture(autouse=True)
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class of the documentation in a module."""
    blocks = python_blocks("docs/assignors.md")
    module = ModuleType("my_package_one")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(next(block for block in blocks if "ServerAssignor" in block), vars(module))


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that declares it."""
    found = EntryPoints([EntryPoint("one-for-all", PATH, "rejoin.server_assignors")])
    monkeypatch.setattr(plugins, "entry_points", lambda group: found.select(group=group))


def assigned(node: ConsumerNode, assignor: str) -> list[list[int]]:
    """What two members have in the end that ask for an assignor."""
    node.heartbeat("a", 0, server_assignor=assignor)
    answers = [node.heartbeat("b", 0, server_assignor=assignor), node.heartbeat("a", 2, 0, 1, 2, 3)]
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 2
    group = node.shard().kinds.consumer.group("g")
    return [[n for held in member.current.assigned.values() for n in held] for member in group.members.values()]


def test_by_its_path() -> None:
    node = ConsumerNode(group_consumer_assignors=f"uniform,{PATH}")
    assert assigned(node, "one-for-all") == [[0, 1, 2, 3], []]


@pytest.mark.usefixtures("declared")
def test_by_an_entry_point() -> None:
    node = ConsumerNode(group_consumer_assignors="uniform,one-for-all")
    assert assigned(node, "one-for-all") == [[0, 1, 2, 3], []]


def test_a_name_that_no_package_declares_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UnknownServerAssignor, match=r"one-for-all.*uniform"):
        assignors_of("one-for-all")


def test_an_assignor_that_raises_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    node = ConsumerNode(group_consumer_assignors=PATH)
    node.heartbeat("a", 0)
    before = len(node.log)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sys.modules["my_package_one"].OneForAllAssignor, "assign", fails)
    assert node.heartbeat("b", 0).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(node.log) == before
    assert list(node.shard().kinds.consumer.group("g").members) == ["a"]
