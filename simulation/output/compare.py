"""Variants of one scenario, compared in a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import BaseModel
from rich.table import Table

from rejoin.protocol.printable import printable
from rejoin.simulation.output.produced_records import PRODUCER_ROWS
from rejoin.simulation.output.share_records import SHARE_ROWS
from rejoin.simulation.output.streams_tasks import STREAMS_ROWS
from rejoin.simulation.output.summary import ROWS, Summary
from rejoin.simulation.output.transformed_records import READER_ROWS, TRANSACTION_ROWS
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import GroupSpec, Scenario
from rejoin.simulation.scenario.reading import BadScenario, checked
from rejoin.simulation.scenario.share_groups import ShareSpec
from rejoin.simulation.scenario.streams.groups import StreamsSpec, applications
from rejoin.simulation.scenario.writers import ProducerSpec, ReaderSpec, TransformSpec


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
    there = [*scenario.groups, *scenario.producers, *scenario.readers]
    if group and group not in there:
        raise BadScenario(f"--compare {text}", None, f"there is no group {group!r}; there are {', '.join(there)}")
    specs = _specs(scenario, group)
    if all(key not in spec.model_fields for spec in specs):
        known = ", ".join(dict.fromkeys(name for spec in specs for name in spec.model_fields))
        kind = "a group has" if GroupSpec in specs else "readers have" if specs == [ReaderSpec] else "producers have"
        raise BadScenario(f"--compare {text}", None, f"{kind} no key {key!r}; known are {known}")
    return VariantAxis(group or None, key, tuple(value.strip() for value in values.split(",")))


def _specs(scenario: Scenario, name: str) -> list[type[BaseModel]]:
    """The kinds of parts that an axis may set a key of."""
    found = dict.fromkeys(spec for part, spec, _ in _parts(scenario.model_dump()) if name in ("", part))
    return list(found) or [GroupSpec]


def _parts(data: dict[str, Any]) -> Iterator[tuple[str, type[BaseModel], dict[str, Any]]]:
    """Part of a scenario whose keys can be compared: its name, its kind and its values."""
    for name, group in data["groups"].items():
        yield name, GroupSpec, group
        if group.get("transform") is not None:
            yield name, TransformSpec, group["transform"]
        if group.get("share") is not None:
            yield name, ShareSpec, group["share"]
        if group.get("streams") is not None:
            yield name, StreamsSpec, group["streams"]
    for name, producers in data.get("producers", {}).items():
        yield name, ProducerSpec, producers
    for name, reader in data.get("readers", {}).items():
        yield name, ReaderSpec, reader


def variant(scenario: Scenario, chosen: list[tuple[VariantAxis, str]]) -> Scenario:
    """The scenario with these values. Raises :class:`BadScenario` when a value cannot be taken."""
    data = scenario.model_dump(by_alias=True, exclude_unset=True)  # a key that is there was given on purpose
    for axis, value in chosen:
        done: set[str] = set()
        for name, spec, given in _parts(data):
            # A group's own key comes before that of its transform.
            if axis.key in spec.model_fields and axis.group in (None, name) and name not in done:
                done.add(name)
                given[axis.key] = _typed(spec, axis.key, value)
    events = data.get("events", ())
    data["events"] = [{name: what for name, what in event.items() if what is not None} for event in events]
    return checked(Scenario, data, {}, "--compare")


def with_protocol(scenario: Scenario, protocol: str) -> Scenario:
    """The scenario with another protocol of its Kafka Streams applications. Raises :class:`BadScenario`."""
    there = applications(scenario)
    if not there:
        raise BadScenario("--protocol", None, "the scenario has no Kafka Streams application")
    return variant(scenario, [(VariantAxis(name, "protocol", (protocol,)), protocol) for name in there])


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
    chosen = list(product(*(axis.values for axis in axes)))
    # All are read before the first is played: a value that cannot be taken is not found after minutes.
    variants = [variant(scenario, list(zip(axes, values, strict=True))) for values in chosen]
    return [(list(values), play(each, seed)[1]) for values, each in zip(chosen, variants, strict=True)]


def table(axes: list[VariantAxis], results: list[tuple[list[str], Summary]]) -> Table:
    """Rows of the summary that differ between the variants, one column for each variant."""
    shown = Table(show_edge=False, pad_edge=False)
    shown.add_column("")
    names = [axis.key if axis.group is None else f"{axis.group}.{axis.key}" for axis in axes]
    for values, _ in results:
        shown.add_column(
            "\n".join(printable(f"{name}={value}") for name, value in zip(names, values, strict=True)), justify="right"
        )
    lines = list(_lines([summary for _, summary in results]))
    several = len({name for name, _, _ in lines}) > 1
    for group_id, name, cells in lines:
        if len(set(cells)) > 1:
            shown.add_row(f"{printable(group_id)}: {name.strip()}" if several else name.strip(), *cells)
    if not shown.rows:
        shown.add_row("nothing differs", *("" for _ in results))
    return shown


def _lines(summaries: list[Summary]) -> Iterator[tuple[str, str, list[str]]]:
    """Every line of the summaries: whose it is, its name, and its value in each."""
    first = summaries[0]
    for part in first.groups:
        for label, value in ROWS:
            yield part, label, [str(value(summary.groups[part])) for summary in summaries]
        if any(part in summary.shares for summary in summaries):
            for label, shared in SHARE_ROWS:
                yield part, label, [str(shared(summary.shares[part])) for summary in summaries]
        if any(part in summary.applications for summary in summaries):
            for label, of_tasks in STREAMS_ROWS:
                yield part, label, [str(of_tasks(summary.applications[part])) for summary in summaries]
        if any(part in summary.transactions for summary in summaries):
            for label, count in TRANSACTION_ROWS:
                found = [summary.transactions.get(part) for summary in summaries]
                yield part, label, ["-" if each is None else str(count(each)) for each in found]
    for part in first.producers:
        for label, of_producer in PRODUCER_ROWS:
            yield part, label, [str(of_producer(summary.producers[part])) for summary in summaries]
    for part in first.readers:
        for label, of_reader in READER_ROWS:
            yield part, label, [str(of_reader(summary.readers[part])) for summary in summaries]
