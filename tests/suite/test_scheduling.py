"""Workers get groups whole and other tests beside their neighbours, each once; they send hardly more than is shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.suite.scheduling import NEIGHBOURS, Neighbours, send_less

COLLECTED = [
    *(f"a.py::test[{number}]" for number in range(3 * NEIGHBOURS + 1)),
    "b.py::test_one",
    "b.py::test_of_a_group@group",
    "c.py::test_of_a_group@group",
    "c.py::test_one",
]


class Worker:
    """A worker that runs what it is sent when it is asked to."""

    def __init__(self) -> None:
        self.gateway, self.id = self, "worker"
        self.shutting_down = False
        self.queue: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def started(request: pytest.FixtureRequest) -> tuple[Neighbours, list[Worker]]:
    """Two workers that have collected the same."""
    scheduler, workers = Neighbours(request.config), [Worker(), Worker()]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, COLLECTED)
    scheduler.schedule()
    return scheduler, workers


def test_each_test_runs_once_beside_its_group_or_its_neighbours(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request.config.option, "tx", ["2*popen"], raising=False)
    scheduler, workers = started(request)
    ran: list[list[str]] = [[], []]
    while any(worker.queue for worker in workers):
        for worker, done in zip(workers, ran, strict=True):
            if worker.queue:
                index = worker.queue.pop(0)
                done.append(COLLECTED[index])
                scheduler.mark_test_complete(worker, index)
    assert sorted(ran[0] + ran[1]) == sorted(COLLECTED)
    assert scheduler.tests_finished
    assert not scheduler.has_pending
    assert all(worker.shutting_down for worker in workers)
    grouped = {"b.py::test_of_a_group@group", "c.py::test_of_a_group@group"}
    assert {len(grouped & set(done)) for done in ran} == {0, 2}
    for first in range(0, 3 * NEIGHBOURS, NEIGHBOURS):
        neighbours = {f"a.py::test[{number}]" for number in range(first, first + NEIGHBOURS)}
        assert {len(neighbours & set(done)) for done in ran} == {0, NEIGHBOURS}


def test_what_a_worker_had_not_run_when_it_died_is_run_by_another(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request.config.option, "tx", ["2*popen"], raising=False)
    scheduler, (dying, living) = started(request)
    ended = dying.queue.pop(0)
    scheduler.mark_test_complete(dying, ended)
    crashed = scheduler.remove_node(dying)
    assert crashed == COLLECTED[dying.queue[0]]
    ran = [COLLECTED[ended]]
    while living.queue:
        ran.append(COLLECTED[living.queue[0]])
        scheduler.mark_test_complete(living, living.queue.pop(0))
    assert sorted(ran) == sorted(COLLECTED)


def report(when: str, outcome: str = "passed", duration: float = 0.0) -> dict[str, Any]:
    return {"data": {"when": when, "outcome": outcome, "duration": duration}}


def test_a_worker_sends_calls_failures_and_what_took_long() -> None:
    sent: list[tuple[str, Any]] = []

    class WorkerInteractor:
        def sendevent(self, name: str, **content: Any) -> None:
            sent.append((name, content))

    class Config:
        pluginmanager = None

        def getoption(self, name: str, default: object) -> object:
            return default

    worker, config = WorkerInteractor(), Config()
    config.pluginmanager = type("Plugins", (), {"get_plugins": lambda self: [worker]})()
    send_less(config)  # type: ignore[arg-type]
    kept = [report("call"), report("setup", "failed"), report("setup", "skipped"), report("teardown", duration=1.0)]
    for content in [report("setup"), *kept, report("teardown")]:
        worker.sendevent("testreport", **content)
    worker.sendevent("logstart", nodeid="a.py::test")
    worker.sendevent("runtest_protocol_complete", item_index=1)
    assert sent == [*(("testreport", content) for content in kept), ("runtest_protocol_complete", {"item_index": 1})]
