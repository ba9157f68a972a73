"""Assignors are found by name, by entry point and by path."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from rejoin.client.assignors import Assignor, UnknownAssignor, assignor_named, assignor_names
from rejoin.client.assignors import registry as registry_module
from rejoin.client.assignors.range import RangeAssignor
from rejoin.protocol import plugins
from tests.client.assignors.groups import NAMES

NOT_AN_ASSIGNOR = "just text"


class Nameless(RangeAssignor):
    name = None  # type: ignore[assignment]


class Needy(RangeAssignor):
    name = "needy"

    def __init__(self, favourite: str) -> None:
        self.favourite = favourite


@pytest.mark.parametrize("name", NAMES)
def test_kafkas_four_are_known(name: str) -> None:
    found = assignor_named(name)
    assert isinstance(found, Assignor)
    assert found.name == name
    assert name in assignor_names()


def test_every_asking_makes_a_new_one() -> None:
    assert assignor_named("sticky") is not assignor_named("sticky")


def test_unknown_names_say_what_is_known() -> None:
    with pytest.raises(UnknownAssignor, match=r"'stikcy'; is it sticky[?] known are range, roundrobin, sticky"):
        assignor_named("stikcy")


def test_a_class_is_found_by_its_path() -> None:
    assert type(assignor_named("rejoin.client.assignors.range:RangeAssignor")) is RangeAssignor


def _declare(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    declared = EntryPoints([EntryPoint(name, value, registry_module.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(plugins, "entry_points", lambda group: declared.select(group=group))


def test_an_entry_point_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    _declare(monkeypatch, "weighted", "examples.custom_assignor:WeightedAssignor")
    assert assignor_named("weighted").name == "weighted"
    assert assignor_names() == [*NAMES, "weighted"]


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("zoned", "no.such.module:Zoned", "entry point zoned: no.such.module:Zoned cannot be loaded"),
        (
            "zoned",
            "rejoin.client.assignors.range:Zoned",
            "entry point zoned: rejoin.client.assignors.range:Zoned cannot be loaded",
        ),
        ("zoned", "rejoin.client.assignors.range:RangeAssignor", "calls itself 'range'; the two names must be equal"),
        ("zoned", f"{__name__}:NOT_AN_ASSIGNOR", "is not a subclass of rejoin.client.assignors.Assignor"),
        ("zoned", f"{__name__}:Nameless", "has no name"),
        ("needy", f"{__name__}:Needy", "cannot be made"),
    ],
)
def test_a_bad_declaration_is_explained(monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str) -> None:
    _declare(monkeypatch, name, value)
    with pytest.raises(UnknownAssignor, match=complaint):
        assignor_named(name)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (f"{__name__}:Nameless", f"{__name__}:Nameless has no name; give the class an attribute name = '...'"),
        ("no.such:Class", "no.such:Class cannot be loaded: No module named 'no'"),
    ],
)
def test_a_bad_class_is_named_once(name: str, complaint: str) -> None:
    with pytest.raises(UnknownAssignor) as problem:
        assignor_named(name)
    assert str(problem.value) == complaint
