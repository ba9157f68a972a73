"""The pytest plugin, found by its entry point: the fixture ``group_coordinator``, and evidence where a test failed.

Nothing of the coordinator is imported before a test asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator

MARKER = "group_coordinator"
OPTIONS = ("clock", "topics", "settings", "socket", "brokers")
_RUNNING: pytest.StashKey[BlockingGroupCoordinator] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    known = ", ".join(f"{name}=..." for name in OPTIONS)
    config.addinivalue_line("markers", f"{MARKER}({known}): how the fixture of this name starts its coordinator")


@pytest.fixture
def group_coordinator(request: pytest.FixtureRequest) -> Generator[GroupCoordinator | BlockingGroupCoordinator]:
    """A coordinator of this test's own, on a free port. Its methods are ``async`` in an ``async`` test, else plain.

    The marker ``group_coordinator(clock=, topics=, settings=, socket=, brokers=)`` on a test, class or module says how
    it starts.
    """
    from rejoin.coordinator.testing import BlockingGroupCoordinator, running_in_thread  # noqa: PLC0415

    with ExitStack() as stack:
        try:
            coordinator = stack.enter_context(running_in_thread(**_options(request)))
        except ValueError as problem:
            raise pytest.fail.Exception(f"@pytest.mark.{MARKER}: {problem}", pytrace=False) from None
        blocking = BlockingGroupCoordinator(coordinator)
        request.node.stash[_RUNNING] = blocking
        try:
            yield coordinator if inspect.iscoroutinefunction(request.function) else blocking
        finally:
            del request.node.stash[_RUNNING]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test that forgot an ``await``; if it has failed for another reason, add a note."""
    try:
        result = yield
    except BaseException as error:
        if forgotten := _forgotten(pyfuncitem):
            error.add_note(forgotten)
        raise
    if forgotten := _forgotten(pyfuncitem):
        pytest.fail(forgotten, pytrace=False)
    return result


def _forgotten(item: pytest.Item) -> str | None:
    coordinator = item.stash.get(_RUNNING, None)
    found = None if coordinator is None else coordinator.behind.calls.take_forgotten()
    return None if found is None else f"{MARKER}: {found}"


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the markers say, the nearest first."""
    options: dict[str, Any] = {}
    for marker in request.node.iter_markers(MARKER):
        unknown = [name for name in marker.kwargs if name not in OPTIONS]
        if unknown or marker.args:
            given = ", ".join([*map(repr, marker.args), *unknown])
            raise ValueError(f"expected {', '.join(OPTIONS)}, by name; not {given}")
        options = {**marker.kwargs, **options}
    return options


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what happened to the report of a test that failed."""
    report = yield
    coordinator = item.stash.get(_RUNNING, None)
    if coordinator is not None and report.when == "call" and report.failed:
        from rejoin.coordinator.testing.failure_report import failure_report  # noqa: PLC0415

        text = failure_report(coordinator.behind, f"{item.name} failed.")
        report.sections.append(("group coordinator: what happened", text))
    return report
