"""Fields of a fault rule in Python and in the documents, made from the rule; ``pytest --rewrite`` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Final, get_args, get_type_hints

import pytest
from pydantic import BaseModel

from rejoin.coordinator.control.fault_injection.fault_rules import ApiNames, Distribution, FaultRule, When, WrongValue
from rejoin.protocol.errors import ErrorCode
from tests.paths import ROOT

SPELLED: Final = {
    ApiNames: "Listed | Numbers",
    tuple[str, ...]: "Listed",
    tuple[int, ...]: "Numbers",
    When: "When",
    WrongValue: "WrongValue",
    ErrorCode: "str | int",
    Distribution: "Mapping[str, object]",
    NoneType: "None",
    float: "float",
    int: "int",
    bool: "bool",
}
"""By type of a field: what a caller in Python gives for it."""


def typed_arguments(rule: type[BaseModel]) -> str:
    """Fields as lines of ``FaultFields``."""
    exact = get_type_hints(rule, include_extras=True)
    plain = get_type_hints(rule)
    lines = []
    for name in rule.model_fields:
        if ApiNames in get_args(exact[name]):
            kinds: tuple[object, ...] = (ApiNames, NoneType)
        else:
            kinds = (plain[name],) if plain[name] in SPELLED else get_args(plain[name])
        lines.append(f"    {name}: {' | '.join(SPELLED[kind] for kind in kinds)}\n")
    return "".join(lines)


def signature(rule: type[BaseModel]) -> str:
    """Fields as ``add_fault`` is shown."""
    return f"`add_fault(*, {', '.join(rule.model_fields)})`"


PLACES: Final[dict[str, tuple[str, Callable[[type[BaseModel]], str]]]] = {
    "coordinator/control/fault_injection/fault_fields.py": (r"(?:^    \w+: .+\n)+", typed_arguments),
    "docs/testing.md": (r"`add_fault\(\*, [^)]*\)`", signature),
}
"""By file: the part of it that is made from the rule, and how."""


@pytest.mark.parametrize("place", PLACES)
def test_the_fields_are_those_of_the_rule(place: str, request: pytest.FixtureRequest) -> None:
    check_place(place, FaultRule, rewrite=request.config.getoption("--rewrite"))


def check_place(place: str, rule: type[BaseModel], *, rewrite: bool) -> None:
    pattern, make = PLACES[place]
    path: Path = ROOT / place
    text = path.read_text()
    [shown] = re.findall(pattern, text, re.MULTILINE)
    if rewrite:
        path.write_text(text.replace(shown, make(rule)))
    else:
        assert shown == make(rule)
