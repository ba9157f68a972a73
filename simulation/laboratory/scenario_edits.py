"""Edits of a scenario's text, which leave all else as it is: one more event, or another value of a key."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import yaml

from rejoin.protocol.units import format_duration
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.reading import BadScenario, scenario_from

_WHERE: Final = "scenario"
_PLAIN: Final = re.compile(r"[\w.-]+")


def with_event(text: str, at: Millis, action: str) -> str:
    """The text of a scenario with one more event, such as ``crash: {who: app-1, down: 30s}``, as its last line.

    What is there stays as it is, comments included: events that happened before ``at`` happen again in the same way.
    Raises :class:`~rejoin.simulation.scenario.reading.BadScenario` if the text is no scenario, or would become none.
    """
    scenario_from(text, _WHERE)
    line = f"{{at: {format_duration(at)}, {action}}}"
    found = _events_of(text)
    if found is None:
        changed = f"{text.rstrip()}\nevents:\n  - {line}\n"
    elif not found.value:
        changed = f"{text[: found.start_mark.index]}[{line}]{text[found.end_mark.index :]}"
    elif found.flow_style:
        end = found.end_mark.index - 1
        changed = f"{text[:end].rstrip().rstrip(',')}, {line}{text[end:]}"
    else:
        last = _end_of(found.value[-1])
        changed = _after_line(text, last, f"{' ' * found.start_mark.column}- {line}")
    scenario_from(changed, _WHERE)
    return changed


def with_value(text: str, path: Sequence[str], value: str) -> str:
    """The text of a scenario with another value of a key, such as ``20s`` of ``groups``, ``orders-app``, ``poll``.

    A key that is not there is added behind the last one of what it belongs to.
    Raises :class:`~rejoin.simulation.scenario.reading.BadScenario` if the text is no scenario, or would become none.
    """
    scenario_from(text, _WHERE)
    found: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    mapping, missing = None, list(path)
    while missing and found is not None:
        if not isinstance(found, yaml.MappingNode):
            raise BadScenario(
                _WHERE, found.start_mark.line + 1, f"{'.'.join(path)}: there are no keys in {found.value}"
            )
        mapping = found
        found = next((each for key, each in mapping.value if key.value == missing[0]), None)
        missing = missing[1:] if found is not None else missing
    if found is not None:
        changed = f"{text[: found.start_mark.index]}{value}{text[found.end_mark.index :]}"
    else:
        assert mapping is not None, "a scenario has keys"
        changed = _with_keys(text, mapping, missing, value)
    scenario_from(changed, _WHERE)
    return changed


def _with_keys(text: str, node: yaml.MappingNode, keys: list[str], value: str) -> str:
    """The text with one more key in a mapping, and further keys below it."""
    quoted = [key if _PLAIN.fullmatch(key) else json.dumps(key) for key in keys]
    line = f"{quoted[0]}: {value}"
    if len(quoted) > 1:
        line = f"{quoted[0]}: {{{': {'.join(quoted[1:])}: {value}{'}' * (len(quoted) - 1)}"
    if node.flow_style:
        end = node.end_mark.index - 1
        before = text[:end].rstrip()
        return f"{before}{'' if before.endswith('{') else ', '}{line}{text[end:]}"
    # The mapping itself may begin at its anchor, on another line.
    column = node.value[0][0].start_mark.column
    return _after_line(text, _end_of(node.value[-1][1]), f"{' ' * column}{line}")


def _events_of(text: str) -> yaml.SequenceNode | None:
    """The list of events in a scenario's text."""
    tree = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(tree, yaml.MappingNode), "it was read as a scenario before"
    for key, value in tree.value:
        if key.value == "events" and isinstance(value, yaml.SequenceNode):
            return value
    return None


def _end_of(node: yaml.Node) -> int:
    """Where the text of a node ends; the end of a block is behind the comments that follow it."""
    if node.value and isinstance(node, yaml.MappingNode) and not node.flow_style:
        return _end_of(node.value[-1][1])
    if node.value and isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return _end_of(node.value[-1])
    return int(node.end_mark.index)


def _after_line(text: str, index: int, line: str) -> str:
    """The text with a line after the one in which an index is."""
    end = text.find("\n", index)
    return f"{text}\n{line}\n" if end == -1 else f"{text[: end + 1]}{line}\n{text[end + 1 :]}"
