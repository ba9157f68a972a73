"""The same scenario in variants: a table of what differs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import BaseModel
from rich.table import Table

from rejoin.protocol.printable import printable
from rejoin.simulation.output.produced import PRODUCER_ROWS
from rejoin.simulation.output.summary import ROWS, Summary
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import GroupSpec, ProducerSpec, Scenario
from rejoin.simulation.scenario.reading import BadScenario, checked


@dataclass(frozen=True, slots=True)
class VariantAxis:
    """A key of every group and of all producers, or of one of them, with the values to try."""

    group: str | None
    key: str
    values: tuple[str, ...]


def parse_axis(text: str, scenario: Scenario) -> VariantAxis:
    """``assignor=range,sticky`` or ``GROUP.assignor=...``. Raises :class:`BadScenario` saying what was expected."""
    name, equals, values = text.partition("=")
    group, _, key = name.rpartition(".")
    if not equals or not values:
        raise BadScenario(f"--compare {text}", None, "expected KEY=VALUE,VALUE,... or GROUP.KEY=VALUE,...")
    there = [*scenario.groups, *scenario.producers]
    if group and group not in there:
        raise BadScenario(f"--compare {text}", None, f"there is no group {group!r}; there are {', '.join(there)}")
    specs = _specs(scenario, group)
    if all(key not in spec.model_fields for spec in specs):
        known = ", ".join(dict.fromkeys(name for spec in specs for name in spec.model_fields))
        kind = "a group has" if GroupSpec in specs else "producers have"
        raise BadScenario(f"--compare {text}", None, f"{kind} no key {key!r}; known are {known}")
    return VariantAxis(group or None, key, tuple(value.strip() for value in values.split(",")))


def _specs(scenario: Scenario, name: str) -> list[type[GroupSpec] | type[ProducerSpec]]:
    """The kinds of parts that an axis may set a key of."""
    specs: list[type[GroupSpec] | type[ProducerSpec]] = []
    if name in scenario.groups or (not name and scenario.groups):
        specs.append(GroupSpec)
    if name in scenario.producers or (not name and scenario.producers):
        specs.append(ProducerSpec)
    return specs or [GroupSpec]


def variant(scenario: Scenario, chosen: list[tuple[VariantAxis, str]]) -> Scenario:
    """The scenario with these values. Raises :class:`BadScenario` when a value cannot be taken."""
    data = scenario.model_dump(by_alias=True)
    for axis, value in chosen:
        for part, spec in (("groups", GroupSpec), ("producers", ProducerSpec)):
            for name, given in data[part].items():
                if axis.key in given and axis.group in (None, name):
                    given[axis.key] = _typed(spec, axis.key, value)
    data["events"] = [{name: what for name, what in event.items() if what is not None} for event in data["events"]]
    return checked(Scenario, data, {}, "--compare")


def _typed(spec: type[BaseModel], key: str, value: str) -> Any:
    lowered = value.lower()
    annotation = spec.model_fields[key].annotation
    if annotation in (bool, bool | None):
        return {"true": True, "false": False, "yes": True, "no": False}.get(lowered, value)
    if annotation is int and value.isdecimal():
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
    groups, producers = list(results[0][1].groups), list(results[0][1].producers)
    several = len(groups) + len(producers) > 1
    lines: list[tuple[str, str, list[str]]] = []
    for group_id in groups:
        lines += [
            (group_id, name, [str(value(summary.groups[group_id])) for _, summary in results]) for name, value in ROWS
        ]
    for group_id in producers:
        lines += [
            (group_id, name, [str(value(summary.producers[group_id])) for _, summary in results])
            for name, value in PRODUCER_ROWS
        ]
    for group_id, name, cells in lines:
        if len(set(cells)) > 1:
            shown.add_row(f"{printable(group_id)}: {name.strip()}" if several else name.strip(), *cells)
    if not shown.rows:
        shown.add_row("nothing differs", *("" for _ in results))
    return shown
