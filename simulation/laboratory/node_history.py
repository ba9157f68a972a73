"""The cores of the nodes in any instant of a run: copies of them now and then, and all that they took in between."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rejoin.coordinator.core.effects import Append, Effect
from rejoin.coordinator.core.inputs import Input, Stored
from rejoin.coordinator.core.node import Node
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.kernel import Millis

COPY_EVERY: Final = 500
"""A core is copied after so many inputs, as soon as no append of it is in flight."""


class RecordedIds:
    """Ids that a node was given, in order. A copy that takes the same inputs again is given the same ids."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._made: list[str] = []
        self._next: int | None = None

    def __call__(self) -> str:
        if self._next is None:
            self._made.append(self._new_id())
            return self._made[-1]
        self._next += 1
        return self._made[self._next - 1]

    @property
    def position(self) -> int:
        """How many ids were given so far."""
        return len(self._made) if self._next is None else self._next

    def replay(self, position: int | None) -> None:
        """Give the ids from a position on again; none: make new ones."""
        self._next = position


class CoreCopy(NamedTuple):
    """A core as it was before the input of this number."""

    inputs: int
    ids: int
    node: Node


@dataclass(slots=True, eq=False)
class NodeHistory:
    """One node. An input that is none ends an incarnation."""

    ids: RecordedIds
    times: list[Millis] = field(default_factory=list)
    inputs: list[Input | None] = field(default_factory=list)
    copies: list[CoreCopy] = field(default_factory=list)
    incarnation: int = 0
    appends_in_flight: int = 0
    latest: CoreCopy | None = None
    """The core that was asked for last; the next instant is often one soon after it."""

    def at(self, instant: Millis) -> Node | None:
        """The core after all inputs by an instant; none while the node was down."""
        count = bisect_right(self.times, instant)
        if not count or self.inputs[count - 1] is None:
            return None
        base = next(copy for copy in reversed(self.copies) if copy.inputs < count)
        latest = self.latest
        if latest is None or not base.inputs <= latest.inputs <= count:
            latest = base._replace(node=base.node.copy(_same))
        self.ids.replay(latest.ids)
        try:
            for index in range(latest.inputs, count):
                what = self.inputs[index]
                assert what is not None, "a core is copied when its incarnation begins"
                latest.node.step(what, self.times[index])
            self.latest = CoreCopy(count, self.ids.position, latest.node)
        finally:
            self.ids.replay(None)
        return latest.node


class NodeHistories(Watcher):
    """Watches all nodes of a run."""

    def __init__(self, nodes: list[NodeActor]) -> None:
        self.by_name: dict[str, NodeHistory] = {}
        self.on_start: Callable[[], None] | None = None
        """Called when a node has started."""
        for node in nodes:
            node.new_id = ids = RecordedIds(node.new_id)
            self.by_name[node.name] = NodeHistory(ids)
            node.watchers.append(self)

    def before(self, node: NodeActor, what: Input) -> None:
        history, core = self.by_name[node.name], node.core
        assert core is not None, "only a node that is up takes an input"
        count = len(history.inputs)
        is_new = history.incarnation != node.incarnation
        if is_new:
            history.incarnation = node.incarnation
            history.appends_in_flight = 0
            if self.on_start is not None:
                self.on_start()
        since = count - (history.copies[-1].inputs if history.copies else 0)
        if is_new or (since >= COPY_EVERY and not history.appends_in_flight):
            history.copies.append(CoreCopy(count, history.ids.position, core.copy(_same)))
        history.times.append(node.world.now)
        history.inputs.append(what)
        if isinstance(what, Stored):
            history.appends_in_flight -= 1

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        history = self.by_name[node.name]
        history.appends_in_flight += sum(isinstance(effect, Append) for effect in effects)

    def ended(self, node: NodeActor) -> None:
        """A node is down."""
        history = self.by_name[node.name]
        if history.inputs and history.inputs[-1] is not None:
            history.times.append(node.world.now)
            history.inputs.append(None)


def _same(token: object) -> object:
    return token
