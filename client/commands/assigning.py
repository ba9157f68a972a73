"""Computes and prints the output of `rejoin assign`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rejoin.client.assignors import BadAssignment, Partition
from rejoin.client.assignors.registry import KAFKA_ASSIGNORS, UnknownAssignor
from rejoin.client.assignors.whatif import MOST_PARTITIONS, Outcome, WhatIf, in_order, partitions_from
from rejoin.console import VisibleConsole
from rejoin.error_lines import refuse
from rejoin.output import print_json
from rejoin.protocol.printable import printable

_BAR = 20
_MOST_COLUMNS = 4


def run(topics: str, members: str, assignor: str, steps: Sequence[str], *, compare: bool, as_json: bool) -> int:
    """Print the table or the JSON of the command's options, and return the exit code."""
    names = list(KAFKA_ASSIGNORS) if compare else [assignor]
    if compare and assignor not in names:
        names.append(assignor)
    try:
        runs = {name: _run(name, topics, members, steps) for name in names}
    except (ValueError, UnknownAssignor, BadAssignment) as error:
        return refuse(error)
    if as_json:
        shown = [_run_as_json(name, outcomes) for name, outcomes in runs.items()]
        print_json(shown if compare else shown[0], indent=2)
        return 0
    console = VisibleConsole(highlight=False, markup=False, emoji=False)
    if compare:
        console.print(compared(runs, console.width))
    else:
        console.print(walked(assignor, list(parse_topics(topics)), runs[assignor]))
    return 0


def _run(assignor: str, topics: str, members: str, steps: Sequence[str]) -> list[Outcome]:
    group = WhatIf(assignor, parse_topics(topics))
    return [group.start(parse_members(members)), *map(group.run, steps)]


def parse_topics(text: str) -> dict[str, int]:
    """`orders:12,clicks:6` as a mapping; raises ValueError for anything else."""
    found: dict[str, int] = {}
    for part in text.split(","):
        topic, colon, count = (piece.strip() for piece in part.rpartition(":"))
        partitions = partitions_from(count)
        if not (colon and topic and partitions is not None):
            problem = f"--topics: {part[:80]!r} is not TOPIC:PARTITIONS"
            raise ValueError(f"{problem} with 0 to {MOST_PARTITIONS} partitions, as orders:12")
        if topic in found:
            raise ValueError(f"--topics: {topic} is given twice")
        found[topic] = partitions
    return found


def parse_members(text: str) -> dict[str, list[str] | None]:
    """`a,b:orders+clicks` as member → topics, None for all; raises ValueError for a member named twice."""
    found: dict[str, list[str] | None] = {}
    for part in text.split(","):
        name, colon, topics = part.partition(":")
        member_id = name.strip()
        if not member_id:
            raise ValueError(f"--members {text!r}: a member has no name; expected a,b,c or a:orders+clicks")
        if member_id in found:
            raise ValueError(f"--members: {member_id} is given twice")
        found[member_id] = [topic.strip() for topic in topics.split("+")] if colon else None
    return found


# One assignor, step by step


def walked(assignor: str, topics: Sequence[str], outcomes: Sequence[Outcome]) -> RenderableType:
    """Every step as a table of members, with what changed and how even it is."""
    parts: list[RenderableType] = []
    for number, outcome in enumerate(outcomes):
        parts.append(_heading(number, outcome.step, None if number else assignor))
        parts.append(_members_table(topics, outcome))
        parts.append(_summary(number, outcome))
        parts.append(Text())
    return Group(*parts[:-1])


def _heading(number: int, step: str, assignor: str | None = None) -> Text:
    text = Text(f"{number}  ", style="dim")
    text.append(printable(step_in_words(step)), style="bold")
    if assignor is not None:
        text.append(f"  {assignor}", style="dim")
    return text


def step_in_words(step: str) -> str:
    """`leave:b` as `b leaves`."""
    match step.split(":"):
        case ["leave", member_id]:
            return f"{member_id} leaves"
        case ["join", member_id]:
            return f"{member_id} joins"
        case ["join", member_id, topics]:
            return f"{member_id} joins for {topics.replace('+', ', ')}"
        case ["subscribe", member_id, topics]:
            return f"{member_id} now wants {topics.replace('+', ', ')}"
        case ["grow", topic, count]:
            return f"{topic} grows to {count} partitions"
    return step


def _members_table(topics: Sequence[str], outcome: Outcome) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("member", no_wrap=True)
    columns = list(topics) if len(topics) <= _MOST_COLUMNS else []
    for heading in columns or ["reads"]:
        table.add_column(printable(heading), overflow="fold")
    table.add_column("count", justify="right")
    table.add_column("", no_wrap=True)
    first = not outcome.before
    if not first:
        table.add_column("gained", style="green", overflow="fold")
        table.add_column("lost", style="red", overflow="fold")
    changes = outcome.changes()
    most = outcome.sizes[1]
    for member_id, partitions in outcome.owned.items():
        bar = Text("█" * _length(len(partitions), most), style="cyan")
        cells: list[RenderableType] = [printable(member_id)]
        if columns:
            cells += [", ".join(_spans(sorted(n for t, n in partitions if t == topic))) for topic in columns]
        else:
            cells.append(runs(partitions))
        cells += [str(len(partitions)), bar]
        if not first:
            gained, lost = changes[member_id]
            cells += [runs(gained), runs(lost)]
        table.add_row(*cells)
    return table


def _length(count: int, most: int) -> int:
    """Characters of a bar: in proportion once the longest would be too long, at least one for anything."""
    return count if most <= _BAR else -(-count * _BAR // most)


def runs(partitions: Iterable[Partition]) -> str:
    """Partitions as people write them, a line for each topic: `orders 0-3, 7`."""
    return "\n".join(f"{topic} {spans}" for topic, spans in _by_run(partitions))


def _by_run(partitions: Iterable[Partition]) -> Iterator[tuple[str, str]]:
    """By topic, its partitions as people write them: `0-3, 7`."""
    for topic, run in groupby(in_order(list(partitions)), key=lambda partition: partition[0]):
        yield printable(topic), ", ".join(_spans(number for _, number in run))


def _spans(numbers: Iterable[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        listed = [number for _, number in run]
        yield str(listed[0]) if len(listed) == 1 else f"{listed[0]}-{listed[-1]}"


def _summary(number: int, outcome: Outcome) -> Text:
    text = Text(evenness(outcome))
    if number:
        text.append(" · ")
        text.append(f"{len(outcome.moved)} moved", style="bold yellow" if outcome.moved else "bold green")
        text.append(f" · {outcome.stayed} stayed")
        if outcome.taken_over:
            gone = printable(", ".join(dict.fromkeys(owner for _, owner, _ in outcome.taken_over)))
            text.append(f" · {len(outcome.taken_over)} taken over from {gone}")
        if outcome.new:
            text.append(f" · {outcome.new} new")
    for done in outcome.rounds[:-1]:
        text.append(f"\ngeneration {done.generation} held back ", style="dim")
        text.append(runs(done.withheld).replace("\n", ", ") + " until the old owner had revoked it", style="dim")
    unread = outcome.rounds[-1].withheld
    if unread:
        text.append(f"\nnot read: {runs(unread).replace(chr(10), ', ')}", style="bold red")
    return text


def evenness(outcome: Outcome) -> str:
    """How many partitions the members have."""
    if not outcome.owned:
        return "no members"
    fewest, most = outcome.sizes
    if fewest == most:
        return f"{most} each"
    return f"{fewest} to {most} each" if most - fewest == 1 else f"{fewest} to {most} each, {most - fewest} apart"


# Side by side


def compared(runs_by_assignor: Mapping[str, Sequence[Outcome]], width: int) -> RenderableType:
    """Every step with all assignors, and the sums at the end: side by side where that fits into ``width`` columns."""
    steps = list(zip(*runs_by_assignor.values(), strict=True))
    names = list(runs_by_assignor)
    tables: list[RenderableType] = [_side_by_side(names, outcomes) for outcomes in steps]
    console = VisibleConsole(width=width)
    if any(Measurement.get(console, console.options.update(width=10_000), table).maximum > width for table in tables):
        tables = [_below_one_another(names, outcomes) for outcomes in steps]
    parts: list[RenderableType] = []
    for number, (outcomes, table) in enumerate(zip(steps, tables, strict=True)):
        parts += [_heading(number, outcomes[0].step), table, Text()]
    if len(steps) > 1:
        parts.append(_sums(runs_by_assignor))
    else:
        parts.pop()
    return Group(*parts)


def _side_by_side(names: Sequence[str], outcomes: Sequence[Outcome]) -> Table:
    """A column for each assignor. Every line is a row of its own, so that nothing slips out of its line."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("", no_wrap=True, style="dim")
    for name in names:
        table.add_column(name, no_wrap=True)
    for member_id in outcomes[0].owned:
        owned = [dict(_by_run(outcome.owned[member_id])) for outcome in outcomes]
        topics = sorted(dict.fromkeys(topic for read in owned for topic in read)) or [""]
        lines: list[list[str | Text]] = [[_of(read, topic) for read in owned] for topic in topics]
        changes = [_change(outcome, member_id) for outcome in outcomes]
        if any(changes):
            lines.append(list(changes))
        for number, line in enumerate(lines):
            table.add_row(Text("" if number else printable(member_id), style="not dim"), *line)
        table.add_row()
    table.add_row("balance", *map(evenness, outcomes))
    table.add_row("moved", *(str(len(outcome.moved)) for outcome in outcomes))
    table.add_row("rebalances", *(str(len(outcome.rounds)) for outcome in outcomes))
    return table


def _below_one_another(names: Sequence[str], outcomes: Sequence[Outcome]) -> RenderableType:
    """A row for each member and assignor, for terminals that have no room for columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("member", no_wrap=True)
    table.add_column("assignor", no_wrap=True)
    table.add_column("reads", overflow="fold")
    changed = any(_change(outcome, member_id) for outcome in outcomes for member_id in outcome.owned)
    if changed:
        table.add_column("change", no_wrap=True)
    for member_id in outcomes[0].owned:
        for number, (name, outcome) in enumerate(zip(names, outcomes, strict=True)):
            reads = "; ".join(f"{topic} {spans}" for topic, spans in _by_run(outcome.owned[member_id])) or "–"
            change = [_change(outcome, member_id)] if changed else []
            table.add_row("" if number else printable(member_id), name, reads, *change)
        table.add_section()
    sums = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    for heading in ("assignor", "balance", "moved", "rebalances"):
        sums.add_column(heading, no_wrap=heading == "assignor")
    for name, outcome in zip(names, outcomes, strict=True):
        sums.add_row(name, evenness(outcome), str(len(outcome.moved)), str(len(outcome.rounds)))
    return Group(table, Text(), sums)


def _of(read: Mapping[str, str], topic: str) -> str:
    return f"{topic} {read[topic]}" if topic in read else "" if read else "–"


def _change(outcome: Outcome, member_id: str) -> Text:
    text = Text()
    if outcome.before:
        gained, lost = outcome.changes()[member_id]
        if gained:
            text.append(f"+{len(gained)} ", style="green")
        if lost:
            text.append(f"-{len(lost)}", style="red")
    return text


def _sums(runs_by_assignor: Mapping[str, Sequence[Outcome]]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        header_style="dim",
        show_edge=False,
        title="In all",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("assignor")
    for heading in ("moved", "rebalances", "largest gap"):
        table.add_column(heading, justify="right")
    for name, outcomes in runs_by_assignor.items():
        table.add_row(
            name,
            str(sum(len(outcome.moved) for outcome in outcomes)),
            str(sum(len(outcome.rounds) for outcome in outcomes)),
            str(max(outcome.sizes[1] - outcome.sizes[0] for outcome in outcomes)),
        )
    return table


# JSON


def _run_as_json(assignor: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {"assignor": assignor, "steps": [_outcome_as_json(outcome) for outcome in outcomes]}


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    fewest, most = outcome.sizes
    return {
        "step": outcome.step,
        "rounds": [
            {
                "generation": done.generation,
                "assignment": {member_id: _by_topic(owned) for member_id, owned in done.owned.items()},
                "withheld": _by_topic(done.withheld),
            }
            for done in outcome.rounds
        ],
        "balance": {"fewest": fewest, "most": most},
        "stayed": outcome.stayed,
        "new": outcome.new,
        "moved": _transfers(outcome.moved),
        "takenOver": _transfers(outcome.taken_over),
    }


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


def _transfers(transfers: Iterable[tuple[Partition, str, str]]) -> list[dict[str, Any]]:
    return [{"topic": t, "partition": n, "from": giver, "to": taker} for (t, n), giver, taker in transfers]
