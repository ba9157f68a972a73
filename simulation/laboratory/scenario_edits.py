"""Edits of a scenario's text: an action that is taken now becomes one more of its events."""

from __future__ import annotations

import yaml

from rejoin.protocol.units import format_duration
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.reading import scenario_from

_WHERE = "scenario"


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
