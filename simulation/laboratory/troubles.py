"""Processes that are down, paused, stuck in their handler or cut off: since when, and until when."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from rejoin.journal.recording.recorder import Recorder
from rejoin.simulation.kernel import Millis
from rejoin.simulation.laboratory.node_history import NodeHistories
from rejoin.simulation.simulation import Simulation

ALWAYS: Final[Millis] = 1 << 62


class Trouble(NamedTuple):
    """Reason why a process does not work: ``paused``, ``stuck``, ``cut``."""

    kind: str
    start: Millis
    end: Millis


class Troubles:
    """Checks all processes after each action of the scenario."""

    def __init__(self, simulation: Simulation, recorder: Recorder, nodes: NodeHistories) -> None:
        self._simulation = simulation
        self._recorder = recorder
        self._nodes = nodes
        self._by_name: dict[str, list[Trouble]] = {}
        self._until: dict[tuple[str, str], Millis] = {}
        self._up: dict[str, bool] = {}
        nodes.on_start = partial(self.look, None)

    def of(self, name: str, instant: Millis) -> list[Trouble]:
        """Reasons why a process does not work at an instant."""
        return [each for each in self._by_name.get(name, []) if each.start <= instant < each.end]

    def look(self, _: object) -> None:
        """Note the changes since the last call."""
        simulation, now = self._simulation, self._simulation.world.now
        for consumer in simulation.consumers.values():
            self._note(consumer.name, "paused", consumer.paused_until)
            self._note(consumer.name, "stuck", consumer.stuck_until)
        for node in simulation.cluster.nodes:
            self._note(node.name, "paused", node.paused_until)
            if self._up.get(node.name) is not node.is_up:
                self._up[node.name] = node.is_up
                if node.is_up:
                    self._recorder.add("lives", now, node.name, "up", -1, "")
                else:
                    self._recorder.node_down(node.name, now)
                    self._nodes.ended(node)
        cut = {client for client, _ in simulation.network.blocked}
        for name in dict.fromkeys([*simulation.consumers, *(client for client, _ in simulation.network.blocked)]):
            is_known = (name, "cut") in self._until
            if name in cut and not is_known:
                self._note(name, "cut", ALWAYS)
            elif name not in cut and is_known:
                del self._until[name, "cut"]
                self._end(name, "cut", now)
                self._recorder.add("lives", now, name, "healed", -1, "")

    def ended(self, name: str, now: Millis) -> None:
        """A process has ended, and with it what kept it from its work."""
        for kind in ("paused", "stuck"):
            if self._until.pop((name, kind), 0) > now:
                self._end(name, kind, now)

    def _note(self, name: str, kind: str, until: Millis) -> None:
        now = self._simulation.world.now
        if until <= now or self._until.get((name, kind)) == until:
            return
        self._end(name, kind, now)
        self._until[name, kind] = until
        self._by_name.setdefault(name, []).append(Trouble(kind, now, until))
        self._recorder.add("lives", now, name, kind, -1 if until == ALWAYS else until, "")

    def _end(self, name: str, kind: str, now: Millis) -> None:
        found = self._by_name.get(name, [])
        for index, each in enumerate(found):
            if each.kind == kind and each.end > now:
                found[index] = each._replace(end=now)
