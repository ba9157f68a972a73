"""The pytest plugin, found by its entry point: the fixture ``group_coordinator``, and evidence where a test failed.

Nothing of the coordinator is imported before a test asks for it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Generator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ExceptionRepr

if TYPE_CHECKING:
    from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator

MARKER = "group_coordinator"
OPTIONS = ("clock", "topics", "settings", "socket", "brokers", "principals", "acls", "quotas", "proxy")
TRANSCRIPTS = "group_coordinator_transcripts"
_LONGEST_NAME = 120
SECTION = "group coordinator: what happened"
_RUNNING: pytest.StashKey[BlockingGroupCoordinator] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where transcripts of failed tests go."""
    where = "directory for the transcripts of failed tests; - writes none (default: in pytest's cache directory)"
    parser.getgroup("group coordinator").addoption("--group-coordinator-transcripts", metavar="DIR", help=where)
    parser.addini(TRANSCRIPTS, where)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    known = ", ".join(f"{name}=..." for name in OPTIONS)
    config.addinivalue_line("markers", f"{MARKER}({known}): how the fixture of this name starts its coordinator")


@pytest.fixture
def group_coordinator(request: pytest.FixtureRequest) -> Generator[GroupCoordinator | BlockingGroupCoordinator]:
    """A coordinator of this test's own, on a free port. Its methods are ``async`` in an ``async`` test, else plain.

    The marker ``group_coordinator(clock=, topics=, settings=, socket=, brokers=, principals=, acls=, quotas=, proxy=)``
    on a test, class or module says how it starts.
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
    """Arguments of the markers, the nearest first."""
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

        found = failure_report(coordinator.behind, f"{item.name} failed.")
        text = found.text
        file = _transcript_file(item) if found.is_transcript else None
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            text += f"\n# This transcript is in {file}\n"
        if isinstance(report.longrepr, ExceptionRepr):
            # A part of the failure itself: reports such as JUnit's XML leave the other sections out.
            report.longrepr.addsection(SECTION, text)
        else:
            report.sections.append((SECTION, text))
    return report


def _transcript_file(item: pytest.Item) -> Path | None:
    """Where the transcript of a test goes, named after the test; none where it is not wanted, or nowhere."""
    wanted = item.config.getoption("--group-coordinator-transcripts") or item.config.getini(TRANSCRIPTS)
    if wanted == "-":
        return None
    if wanted:
        directory = item.config.rootpath / wanted
    else:
        cache = getattr(item.config, "cache", None)
        if cache is None:
            return None
        directory = cache.mkdir("group-coordinator")
    name = re.sub(r"[^A-Za-z0-9_.\-]+", "-", item.nodeid)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{sha256(item.nodeid.encode()).hexdigest()[:8]}"
    return Path(directory) / f"{name}.transcript"
