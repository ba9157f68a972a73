"""Which events the rules see one by one: each rule declares its own with :func:`reads`, and there is no other list.

A :data:`Where` selects rows of a table. Rows of Python, Arrow and Spark are selected by the same one; see
:mod:`rejoin.pipeline.findings.table`. Nothing here needs Spark or Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class AnyBut(NamedTuple):
    """Every known value except this one."""

    value: str | None


class AtLeast(NamedTuple):
    """Numbers from this one on."""

    value: int


KNOWN: Final = AnyBut(None)

Condition: TypeAlias = Sequence[str] | AnyBut | AtLeast
Where: TypeAlias = Sequence[Mapping[str, Condition]]
"""Alternatives, each with a condition for some columns. A plain sequence lists the values that a column may have."""


def matches(row: Mapping[str, Any], where: Where) -> bool:
    """Whether a row is selected."""
    return any(all(_meets(row.get(name), condition) for name, condition in each.items()) for each in where)


def _meets(value: Any, condition: Condition) -> bool:
    if isinstance(condition, AnyBut):
        return value is not None and value != condition.value
    if isinstance(condition, AtLeast):
        return value is not None and bool(value >= condition.value)
    return value in condition


_OF_GROUPS: Final[list[Mapping[str, Condition]]] = [
    # Outages, absences and late polls, which a group's history is made of; and the growth of topics, which is a cause.
    {"event": ("group_loaded", "poll_timeout_exceeded", "membership_reset", "subscribing", "topic_grown")},
]
_OF_ALL_GROUPS: Final[list[Mapping[str, Condition]]] = [{"event": ("broker_stopped", "broker_started")}]
_COLUMNS: Final[dict[str, None]] = {}


def reads(
    *events: str, columns: Sequence[str] = (), of_all_groups: bool = False, **conditions: Condition
) -> Callable[[_Rule], _Rule]:
    """Declare events that a rule sees in ``history.events``.

    ``conditions`` restrict them by their columns. ``columns`` are those the rule reads beyond the fields of
    ``ObservedEvent``; they are in ``event.more``. An event without a group is seen by the groups that read its topic,
    and with ``of_all_groups`` by every group of its run.
    """

    def declare(rule: _Rule) -> _Rule:
        (_OF_ALL_GROUPS if of_all_groups else _OF_GROUPS).append({"event": events, **conditions})
        _COLUMNS.update(dict.fromkeys(columns))
        return rule

    return declare


def read_of_all_groups() -> Where:
    """Events that may concern every group of a run."""
    return tuple(_OF_ALL_GROUPS)


def read_events() -> Where:
    """All events that rules see one by one."""
    restricted = [each for each in (*_OF_GROUPS, *_OF_ALL_GROUPS) if each.keys() != {"event"}]
    return ({"event": sorted(names_read_whole())}, *restricted)


def more_columns() -> tuple[str, ...]:
    """Columns of events beyond the fields of ``ObservedEvent``."""
    return tuple(_COLUMNS)


def names_read_whole() -> frozenset[str]:
    """Events of which the rules see every row."""
    return frozenset(
        name for each in (*_OF_GROUPS, *_OF_ALL_GROUPS) if each.keys() == {"event"} for name in names_of(each)
    )


def names_of(alternative: Mapping[str, Condition]) -> Sequence[str]:
    """The events that an alternative is about."""
    condition = alternative["event"]
    assert not isinstance(condition, (AnyBut, AtLeast)), "events are named"
    return condition


def with_more(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of events with the further columns that rules declare, as :class:`ObservedEvent` takes them."""
    names = more_columns()
    return [{**row, "more": {name: row.get(name) for name in names}} if names else row for row in rows]
