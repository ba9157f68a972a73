"""Tests handed to the worker processes of pytest-xdist, cheaply enough for twenty thousand of them.

xdist's own scheduler sends each test alone and, for each that ends, looks through all that its worker has had, which is
quadratic. Here neighbours of a module go together, and what has ended is forgotten.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

NEIGHBOURS: Final = 10
"""How many tests of a module without a group go to a worker together."""
WORTH_SENDING_S: Final = 0.005
"""Setting up and tearing down take at least so long to be sent: `--durations` leaves out what is quicker, too."""


class Neighbours(LoadGroupScheduling):  # type: ignore[misc]
    """Groups as `--dist loadgroup` has them, and tests without one in runs of neighbours."""

    _scopes: dict[str, str]
    _places: dict[str, int]

    def schedule(self) -> None:
        """Hand out the first tests, or more of them to workers that came late."""
        if self.collection is None:
            collected = next(iter(self.registered_collections.values()))
            self._scopes = {}
            seen: Counter[str] = Counter()
            for nodeid in collected:
                scope = super()._split_scope(nodeid)
                if scope == nodeid:
                    module = nodeid.partition("::")[0]
                    scope = f"{module}#{seen[module] // NEIGHBOURS}"
                    seen[module] += 1
                self._scopes[nodeid] = scope
            self._places = {nodeid: place for place, nodeid in enumerate(collected)}
        super().schedule()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a run of tests of which this was the last, and hand out the next when few are left."""
        del duration
        assert self.collection is not None
        nodeid = self.collection[item_index]
        units = self.assigned_work[node]
        unit = units[self._scopes[nodeid]]
        unit[nodeid] = True
        if all(unit.values()):
            del units[self._scopes[nodeid]]
        self._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        return self._scopes[nodeid]

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._places[nodeid] for nodeid, ended in unit.items() if not ended])


def send_less(config: pytest.Config) -> None:
    """Let a worker send what is shown: of a quick test that passes, its call and that it has ended."""
    worker: Any = next(
        (each for each in config.pluginmanager.get_plugins() if type(each).__name__ == "WorkerInteractor"), None
    )
    if worker is None or config.getoption("xmlpath", None):
        return
    send = worker.sendevent

    def sendevent(name: str, **content: Any) -> None:
        if name in ("logstart", "logfinish"):
            return
        if name == "testreport":
            report = content["data"]
            if report["when"] != "call" and report["outcome"] == "passed" and report["duration"] < WORTH_SENDING_S:
                return
        send(name, **content)

    worker.sendevent = sendevent
