"""Options of the whole test run."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Generator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from rejoin.coordinator.service import logs
from tests.coordinator.ports import free_port
from tests.postgres import postgres as postgres
from tests.postgres import postgres_server as postgres_server
from tests.simulation.web.browser import CHROMIUM
from tests.suite import cases, scheduling

# The same examples on every run, and no clock: a failure here must be one that anybody can repeat. HYPOTHESIS_PROFILE
# set to "search" looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The tests start hundreds of processes, and each would compile all modules again, where the environment has asked that
# what is compiled be thrown away.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# One JVM runs the plans of many tests, and a gigabyte is not enough for what it keeps of them.
os.environ.setdefault("REJOIN_SPARK_MEMORY", "3g")
# Each JVM starts with the classes that `make test` has archived, if it has.
os.environ.setdefault("REJOIN_SPARK_CLASSES", os.path.join(sys.prefix, "spark-classes"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
if settings.get_current_profile_name() == "repeatable":
    # Hypothesis draws constants of those of our modules that are loaded by then, which depends on the tests before.
    providers._get_local_constants = Constants


# What a coordinator logs in a test is seen only where the test asks for it.
logs.configure("critical", sys.__stderr__)

# Thousands of tests are collected, and nothing of that is garbage.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what transcripts now give into their files")
    parser.addoption("--case", default="", help="run those cases of a test alone whose names have this text")


def pytest_configure(config: pytest.Config) -> None:
    scheduling.send_less(config)
    cases.Wanted.text = config.getoption("case")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.Neighbours | None:
    return scheduling.Neighbours(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Configure logging again where a test did, such as by a command: its stream is closed when the test has ended."""
    before = structlog.get_config()
    try:
        return (yield)
    finally:
        if structlog.get_config()["logger_factory"] is not before["logger_factory"]:
            structlog.configure(**before)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a group run in one process: pytest 9.2 does not read the ids that pytest-xdist 3.8 writes."""
    for item in items:
        with_group = getattr(item, "_nodeid", item.nodeid)
        if with_group != item.nodeid:
            item._id = item.id.parse(with_group)


@pytest.fixture
def unused_tcp_port() -> int:
    """A port that is free, and still is when a test comes to use it."""
    return free_port()


def pytest_collection_finish() -> None:
    """Leave the tests themselves, which live until the end, out of each garbage collection from here on.

    Collections are rare, too: hardly any garbage of a test needs them, and they took a tenth of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """After a module's last test, leave out what lives on, too, if a full collection has just had to look at it.

    Caches and fixtures of a session come to millions of objects in a worker, and each full collection took seconds: a
    benchmark that asks for one a round took 48 s in a whole run, and 0.2 s alone.
    """
    try:
        return (yield)
    finally:
        if (nextitem is None or nextitem.path != item.path) and full_collections() > Frozen.at:
            gc.collect()
            gc.freeze()
            Frozen.at = full_collections()


def full_collections() -> int:
    """Full collections of garbage in this process until now, automatic or asked for."""
    collections: int = gc.get_stats()[2]["collections"]
    return collections


class Frozen:
    """The number of full collections at the time of the last freeze."""

    at = 0


def pytest_report_header() -> list[str]:
    missing = [name for name in ("curl", "node") if shutil.which(name) is None]
    header = [f"examples/testing, helpers: not played here, for want of {', '.join(missing)}"] if missing else []
    if CHROMIUM is None:
        header.append("pages: not looked at here, for want of chromium")
    return header
