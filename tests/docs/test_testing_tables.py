"""The tables of docs/testing.md, checked against the code: conditions, what methods return, timers, transactions."""

from __future__ import annotations

import inspect
import re
import sys
from enum import IntEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

import rejoin.coordinator.core.node as node
from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.clock_driver import Advance
from rejoin.coordinator.control.waiting import GroupCondition, HitCount, OffsetsCondition
from rejoin.coordinator.core.transactions.shard import FENCE_MARKER_DELAY_MS
from rejoin.coordinator.core.views import (
    ConsumerGroupView,
    ConsumerMemberView,
    GroupView,
    MemberView,
    RecordRunView,
    StreamsGroupView,
    StreamsMemberView,
    TaskView,
)
from rejoin.coordinator.in_process_brokers.controlled_brokers import SESSION
from rejoin.coordinator.testing import EmittedEvent, FaultHandle, FiredTimer, GroupCoordinator, running
from tests.docs.texts import TEXTS, python_blocks
from tests.paths import ROOT

TESTING = TEXTS["docs/testing.md"]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = TESTING.partition(f"\n{heading}\n")[2]
    [table] = re.findall(r"\A\n((?:^\|.*\n)+)", section, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([\w.]+)`", cell)


def returned() -> dict[str, Any]:
    """What each method returns, by its name; those that return nothing are left out. A list is what it is of."""
    found = {}
    for name, method in inspect.getmembers(GroupCoordinator, inspect.isfunction):
        if name.startswith("_") or name == "do":
            continue
        kind = get_type_hints(inspect.unwrap(method))["return"]
        if isinstance(kind, UnionType):
            [kind] = [each for each in get_args(kind) if each is not type(None)]
        if get_origin(kind) is list:
            [kind] = get_args(kind)
        if kind is not type(None):
            found[name] = get_origin(kind) or kind
    return found


def fields_of(kind: type[Any]) -> list[str]:
    if kind in (ConsumerGroupView, ConsumerMemberView, StreamsGroupView, StreamsMemberView):
        return list(kind.__annotations__)  # beside those of its base
    if issubclass(kind, BaseModel):
        return list(kind.model_fields)
    if kind is FaultHandle:
        return [name for name, each in vars(kind).items() if isinstance(each, property)]
    return list(getattr(kind, "_fields", ()))


def test_the_types_have_these_fields_and_the_methods_return_them() -> None:
    shown = {names_in(name)[0]: (names_in(methods), fields) for name, methods, fields in rows("### Return values")}
    groups = (ConsumerGroupView, ConsumerMemberView, StreamsMemberView, TaskView)
    parts = (MemberView, *groups, RecordRunView, FiredTimer, EmittedEvent)
    kinds = {kind.__name__: kind for kind in (*returned().values(), *parts)}
    assert shown.keys() == kinds.keys()
    for name, kind in kinds.items():
        methods, fields = shown[name]
        if expected := fields_of(kind):
            assert names_in(fields) == expected, name
        if kind not in parts:
            assert sorted(methods) == sorted(each for each, made in returned().items() if made is kind), name
    assert shown["MemberView"][0] == shown["ConsumerMemberView"][0] == ["members"]
    assert "members" in GroupView.model_fields


def test_the_conditions_are_those_of_wait_for_group() -> None:
    shown = {name: words for cell, words in rows("### Conditions") for name in names_in(cell)}
    fields = GroupCondition.model_fields
    assert [*shown] == [name for name in fields if name not in ("group", "timeout_ms")]
    for name, words in shown.items():
        described = str(fields[name].description)
        assert ("exactly" in words) == described.startswith("exactly"), name
        assert ("or a later one" in words) == described.endswith("or a later one"), name
        is_least = described.endswith("or more") or described.startswith("at least")
        assert words.endswith("or more") == is_least, name
    [default] = {model.model_fields["timeout_ms"].default for model in (GroupCondition, OffsetsCondition, HitCount)}
    assert f"`timeout_ms` is {default:,} unless given" in TESTING


def test_every_timer_is_named() -> None:
    assert node.__name__ in sys.modules, "it imports all that has timers"
    core = [kind for kind in IntEnum.__subclasses__() if kind.__module__.startswith("rejoin.coordinator.core.")]
    timers = [each.name.lower() for kind in core if kind.__name__.endswith("Timer") for each in kind]
    assert len(timers) > len(set(timers)), "groups and transactional ids have an expiry each"
    shown = [name for cell, _ in rows("### Timers") for name in names_in(cell)]
    assert sorted(shown) == sorted({*timers, SESSION, "latency"})


@pytest.mark.parametrize("policy", ["delete", "compact"])
async def test_timers_that_always_come_back_are_not_waited_for(policy: str) -> None:
    [shown] = [names_in(cell) for cell, words in rows("### Timers") if "always come back" in words]
    async with running(clock="virtual", settings={"log.cleanup.policy": policy}, topics={"orders": 1}) as coordinator:
        for _ in range(2):
            await coordinator.produce("orders", 0, [("key", "value")])
            assert (await coordinator.advance_until_idle()).advanced_ms == 0
            assert (await coordinator.advance_to_next()).fired[0].timer in shown
    assert "periodic timers" in str(Advance.model_fields["until"].description)


def test_what_is_imported_is_there() -> None:
    for line in re.findall(r"`(from rejoin\.[^`]+ import [^`]+)`", TESTING):
        exec(line, {})


def test_a_transaction_is_aborted_after_its_timeout_and_a_look() -> None:
    looks_every_ms = Settings().transaction_abort_timed_out_transaction_cleanup_interval_ms
    assert f'`clock {{"advance_ms": {60_000 + looks_every_ms + FENCE_MARKER_DELAY_MS}}}`' in TESTING
    assert "after its `transaction.timeout.ms` (60 s" in TESTING
    assert (
        f"every {looks_every_ms // 1_000} s (`transaction.abort.timed.out.transaction.cleanup.interval.ms`)" in TESTING
    )
    assert f"is seen as decided for {FENCE_MARKER_DELAY_MS} ms" in TESTING


@pytest.mark.parametrize("story", python_blocks("docs/testing.md")[3:])
def test_the_stories_with_a_real_client_are_parts_of_examples(story: str) -> None:
    """But for their types."""
    examples = "\n".join(path.read_text() for path in sorted((ROOT / "examples" / "testing").glob("test_*.py")))
    flat = re.sub(r"(?m)^ +|: \w+(?=[,)])| -> None", "", examples)
    assert [part for part in story.split("\n\n") if re.sub(r"(?m)^ +", "", part.strip("\n")) not in flat] == []
