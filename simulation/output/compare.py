"""The same scenario in variants: a table of what differs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.table import Table

from rejoin.protocol.printable import printable
from rejoin.simulation.output.summary import ROWS, Summary
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import GroupSpec, Scenario
from rejoin.simulation.scenario.reading import BadScenario, checked


@dataclass(frozen=True, slots=True)
class VariantAxis:
    """A key of every group, or of one, with the values to try."""

    group: str | None
    key: str
    values: tuple[str, ...]


def parse_axis(text: str, scenario: Scenario) -> VariantAxis:
    """``assignor=range,sticky`` or ``GROUP.assignor=...``. Raises :class:`BadScenario` saying what was expected."""
    name, equals, values = text.partition("=")
    group, _, key = name.rpartition(".")
    if not equals or not values:
        raise BadScenario(f"--compare {text}", None, "expected KEY=VALUE,VALUE,... or GROUP.KEY=VALUE,...")
    if key not in GroupSpec.model_fields:
        known = ", ".join(GroupSpec.model_fields)
        raise BadScenario(f"--compare {text}", None, f"a group has no key {key!r}; known are {known}")
    if group and group not in scenario.groups:
        raise BadScenario(
            f"--compare {text}", None, f"there is no group {group!r}; there are {', '.join(scenario.groups)}"
        )
    return VariantAxis(group or None, key, tuple(value.strip() for value in values.split(",")))


def variant(scenario: Scenario, chosen: list[tuple[VariantAxis, str]]) -> Scenario:
    """The scenario with these values. Raises :class:`BadScenario` when a value cannot be taken."""
    data = scenario.model_dump(by_alias=True)
    for axis, value in chosen:
        for group_id, group in data["groups"].items():
            if axis.group is None or axis.group == group_id:
                group[axis.key] = _typed(axis.key, value)
    data["events"] = [{name: what for name, what in event.items() if what is not None} for event in data["events"]]
    return checked(Scenario, data, {}, "--compare")


def _typed(key: str, value: str) -> Any:
    lowered = value.lower()
    if GroupSpec.model_fields[key].annotation is bool:
        return {"true": True, "false": False, "yes": True, "no": False}.get(lowered, value)
    if GroupSpec.model_fields[key].annotation is int and value.isdecimal():
        return int(value)
    return tuple(value.split("+")) if key in ("assignor", "topics") else value


def compare(scenario: Scenario, axes: list[VariantAxis], seed: int | None) -> list[tuple[list[str], Summary]]:
    """Play every combination with the same seed: the values, and the summary."""
    results = []
    for values in product(*(axis.values for axis in axes)):
        _, summary = play(variant(scenario, list(zip(axes, values, strict=True))), seed)
        results.append((list(values), summary))
    return results


def table(axes: list[VariantAxis], results: list[tuple[list[str], Summary]]) -> Table:
    """Rows of the summary that differ between the variants, one column for each variant."""
    shown = Table(show_edge=False, pad_edge=False)
    shown.add_column("")
    names = [axis.key if axis.group is None else f"{axis.group}.{axis.key}" for axis in axes]
    for values, _ in results:
        shown.add_column(
            "\n".join(printable(f"{name}={value}") for name, value in zip(names, values, strict=True)), justify="right"
        )
    groups = list(results[0][1].groups)
    for group_id in groups:
        for name, value in ROWS:
            cells = [str(value(summary.groups[group_id])) for _, summary in results]
            if len(set(cells)) > 1:
                label = name.strip() if len(groups) == 1 else f"{printable(group_id)}: {name.strip()}"
                shown.add_row(label, *cells)
    if not shown.rows:
        shown.add_row("nothing differs", *("" for _ in results))
    return shown
