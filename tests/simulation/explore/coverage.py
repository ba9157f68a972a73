"""The parts of a coordinator that were reached: by state of a group and kind of request, the errors of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest
from pydantic import BaseModel

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Received
from rejoin.coordinator.core.node import Node

Reached: TypeAlias = tuple[str, str, str]
"""State of the group before the step, API of the answer, error."""


@contextmanager
def recorded() -> Iterator[set[Reached]]:
    """Collect all that the nodes of this process reach meanwhile."""
    found: set[Reached] = set()
    right = Node.step

    def step(self: Node, what: Any, now: int, **how: Any) -> list[Any]:
        group_id = getattr(what.request, "group_id", None) if isinstance(what, Received) else None
        state = "no request" if group_id is None else _state(self, group_id)
        effects = right(self, what, now, **how)
        for effect in effects:
            if isinstance(effect, Reply):
                response = effect.response
                api = type(response).__name__.removesuffix("Response")
                found.update((state, api, code) for code in _codes(response))
        return effects

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "step", step)
        yield found


def _state(node: Node, group_id: str) -> str:
    group = node.group(group_id)
    if group is not None:
        return f"classic {group.state}"
    modern = node.consumer_group(group_id)
    return "no group" if modern is None else f"consumer {modern.state}"


def _codes(value: object) -> Iterator[str]:
    """The errors in an answer; NONE where it has only that."""
    if isinstance(value, BaseModel):
        for name, each in value.__dict__.items():
            if name == "error_code":
                yield each.name
            else:
                yield from _codes(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _codes(each)
