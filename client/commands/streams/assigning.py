"""Computes and prints the output of `rejoin assign --streams`: tasks of a streams group, assigned by the broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rejoin.console import VisibleConsole
from rejoin.coordinator.core.groups.streams.assignors import (
    AssignedTasks,
    StickyTaskAssignor,
    SubtopologyTasks,
    TaskMember,
)
from rejoin.error_lines import refuse
from rejoin.output import print_json
from rejoin.protocol.java import hash_map_order
from rejoin.protocol.printable import printable

MOST_BYTES: Final = 1_000_000
MOST_TASKS: Final = 100_000
MOST_STANDBYS: Final = 20

STEPS_IN_WORDS: Final = "leave:MEMBER, join:MEMBER[@PROCESS], grow:SUBTOPOLOGY:TASKS or standbys:REPLICAS"

_Task = tuple[str, int]


class SubtopologyFile(BaseModel):
    """A subtopology: how many tasks it has, and whether these have state, and so standbys."""

    model_config = ConfigDict(extra="forbid")

    tasks: Annotated[int, Field(ge=0, le=MOST_TASKS)]
    stateful: bool = False


class TopologyFile(BaseModel):
    """A topology as `--streams` reads it, in YAML or JSON."""

    model_config = ConfigDict(extra="forbid")

    subtopologies: dict[str, SubtopologyFile]
    standbys: Annotated[int, Field(ge=0, le=MOST_STANDBYS)] = 0


@dataclass
class _Outcome:
    """The tasks of each member after a step, and how many of them it had to restore or could take over as they were."""

    step: str
    assignment: Mapping[str, AssignedTasks]
    processes: Mapping[str, str]
    moved: list[tuple[_Task, str, str]] = field(default_factory=list)
    """Active tasks that went from one member to another that is not new to them: task, from, to."""
    promoted: int = 0
    """Active tasks that went to a member which had them as standby."""
    stayed: int = 0


class _Tasks:
    """A group whose members have what they were assigned."""

    def __init__(self, topology: TopologyFile) -> None:
        self._subtopologies = dict(topology.subtopologies)
        self._standbys = topology.standbys
        self._processes: dict[str, str] = {}
        self._assigned: dict[str, AssignedTasks] = {}
        self._check_size()

    def start(self, members: Mapping[str, str]) -> _Outcome:
        """All members join at once; each with its process."""
        self._processes.update(members)
        return self._assign("start")

    def run(self, step: str) -> _Outcome:
        """Take one step; raises ValueError for one that makes no sense."""
        match step.split(":"):
            case ["leave", member_id]:
                if self._processes.pop(member_id, None) is None:
                    raise ValueError(f"{member_id} is not a member; members are {', '.join(self._processes) or 'none'}")
            case ["join", text]:
                for member_id, process in parse_members(text).items():
                    if member_id in self._processes:
                        raise ValueError(f"{member_id} is already a member")
                    self._processes[member_id] = process
            case ["grow", subtopology, count]:
                self._grow(subtopology, count)
            case ["standbys", count]:
                self._standbys = _number(count, MOST_STANDBYS)
            case _:
                raise ValueError(f"unknown step {step!r}; a step is {STEPS_IN_WORDS}")
        return self._assign(step)

    def _grow(self, subtopology: str, count: str) -> None:
        known = self._subtopologies.get(subtopology)
        if known is None:
            raise ValueError(f"{subtopology!r} is no subtopology here; there are {', '.join(self._subtopologies)}")
        tasks = _number(count, MOST_TASKS)
        if tasks <= known.tasks:
            raise ValueError(f"subtopology {subtopology} has {known.tasks} tasks and can only grow, not to {tasks}")
        self._subtopologies[subtopology] = known.model_copy(update={"tasks": tasks})
        self._check_size()

    def _check_size(self) -> None:
        if sum(each.tasks for each in self._subtopologies.values()) > MOST_TASKS:
            raise ValueError(f"a topology may have at most {MOST_TASKS:,} tasks here")

    def _assign(self, step: str) -> _Outcome:
        """Kafka: members come in the order of a hash table."""
        before = self._assigned
        members = {
            member_id: _member(self._processes[member_id], before.get(member_id))
            for member_id in hash_map_order([*self._processes])
        }
        subtopologies = {
            name: SubtopologyTasks(each.tasks, each.stateful) for name, each in self._subtopologies.items()
        }
        assigned = StickyTaskAssignor().assign(members, subtopologies, self._standbys)
        self._assigned = {member_id: assigned[member_id] for member_id in self._processes}
        return _compared(step, before, self._assigned, dict(self._processes))


def _member(process: str, before: AssignedTasks | None) -> TaskMember:
    return TaskMember(process) if before is None else TaskMember(process, before.active, before.standby)


def _compared(
    step: str, before: Mapping[str, AssignedTasks], after: Mapping[str, AssignedTasks], processes: Mapping[str, str]
) -> _Outcome:
    outcome = _Outcome(step, after, processes)
    owners = {task: member_id for member_id, tasks in before.items() for task in _each(tasks.active)}
    standbys = {(member_id, task) for member_id, tasks in before.items() for task in _each(tasks.standby)}
    for member_id, tasks in after.items():
        for task in _each(tasks.active):
            owner = owners.get(task)
            if owner == member_id:
                outcome.stayed += 1
            elif owner is not None:
                outcome.moved.append((task, owner, member_id))
                outcome.promoted += (member_id, task) in standbys
    return outcome


def _each(tasks: Mapping[str, Iterable[int]]) -> list[_Task]:
    return [(subtopology, number) for subtopology in sorted(tasks) for number in tasks[subtopology]]


def run(path: Path, members: str, steps: Sequence[str], *, as_json: bool) -> int:
    """Print the table or the JSON of the command's options, and return the exit code."""
    try:
        group = _Tasks(read_topology(path))
        outcomes = [group.start(parse_members(members)), *map(group.run, steps)]
    except ValueError as error:
        return refuse(error)
    if as_json:
        print_json({"assignor": StickyTaskAssignor.name, "steps": [_as_json(each) for each in outcomes]}, indent=2)
    else:
        VisibleConsole(highlight=False, markup=False, emoji=False).print(walked(outcomes))
    return 0


def read_topology(path: Path) -> TopologyFile:
    """The topology in a file; raises ValueError where there is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path}: a topology has at most {MOST_BYTES:,} bytes")
        # An alias could stand for more than the file has, and is refused with anything else that is not plain.
        text = path.read_text("utf-8")
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ValueError(f"{path}: aliases are not read here")
        return TopologyFile.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; expected a file with a topology, in YAML or JSON") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{path}: {'.'.join(map(str, first['loc'])) or 'topology'}: {first['msg']}") from error
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is neither YAML nor JSON; expected a topology in one of them") from error


def parse_members(text: str) -> dict[str, str]:
    """`a@one,b@one,c` as member → process, its own where none is named; raises ValueError for anything else."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, process = part.partition("@")
        member_id = name.strip()
        if not member_id:
            raise ValueError(f"--members {text!r}: a member has no name; expected a,b,c or a@process")
        if member_id in found:
            raise ValueError(f"--members: {member_id} is given twice")
        found[member_id] = process.strip() or member_id
    return found


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
        raise ValueError(f"{text[:40]!r} is not a number from 0 to {most}")
    return int(text)


def walked(outcomes: Sequence[_Outcome]) -> RenderableType:
    """Every step as a table of members, with what moved."""
    parts: list[RenderableType] = []
    for number, outcome in enumerate(outcomes):
        heading = Text(f"{number}  ", style="dim")
        heading.append(printable(outcome.step), style="bold")
        if not number:
            heading.append(f"  {StickyTaskAssignor.name}", style="dim")
        parts += [heading, _table(outcome), _summary(number, outcome), Text()]
    return Group(*parts[:-1])


def _table(outcome: _Outcome) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    for column in ("member", "process"):
        table.add_column(column, no_wrap=True)
    for column in ("active", "standby"):
        table.add_column(column, overflow="fold")
    for member_id, tasks in outcome.assignment.items():
        names = (printable(member_id), printable(outcome.processes[member_id]))
        table.add_row(*names, _named(tasks.active), _named(tasks.standby))
    return table


def _named(tasks: Mapping[str, Iterable[int]]) -> str:
    """Tasks as Kafka Streams writes them: `0_1, 0_2`."""
    return ", ".join(f"{printable(subtopology)}_{number}" for subtopology, number in _each(tasks))


def _summary(number: int, outcome: _Outcome) -> Text:
    active = [sum(map(len, each.active.values())) for each in outcome.assignment.values()]
    if not active:
        return Text("no members")
    text = Text(
        f"{min(active)} to {max(active)} active each" if min(active) < max(active) else f"{active[0]} active each"
    )
    if number:
        text.append(f" · {len(outcome.moved)} moved", style="bold yellow" if outcome.moved else "bold green")
        if outcome.moved:
            text.append(f" ({outcome.promoted} to a standby)")
        text.append(f" · {outcome.stayed} stayed")
    return text


def _as_json(outcome: _Outcome) -> dict[str, Any]:
    return {
        "step": outcome.step,
        "assignment": {
            member_id: {
                "process": outcome.processes[member_id],
                "active": {name: list(numbers) for name, numbers in tasks.active.items()},
                "standby": {name: list(numbers) for name, numbers in tasks.standby.items()},
            }
            for member_id, tasks in outcome.assignment.items()
        },
        "moved": [
            {"task": f"{subtopology}_{number}", "from": giver, "to": taker}
            for (subtopology, number), giver, taker in outcome.moved
        ],
        "promoted": outcome.promoted,
        "stayed": outcome.stayed,
    }
