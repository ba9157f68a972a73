"""What ``rejoin serve`` has loaded when it listens: every module costs time that a test waits for its coordinator."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from benchmarks.start_up import modules_when_listening

OWN: Final = 310
OTHERS: Final = 65
"""Modules beyond the 365 of aiohttp's server and pydantic: structlog, uvloop, orjson and some of the library."""

UNNEEDED: Final = (
    "asyncpg",
    "cramjam",
    "cryptography",
    "cyclopts",
    "jwt",
    "prometheus_client",
    "pygments",
    "re2",
    "rejoin.client",
    "rejoin.coordinator.control",
    "rejoin.pipeline",
    "rejoin.simulation",
    "rejoin.transcript",
    "rich",
    "sqlite3",
)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return modules_when_listening(tmp_path_factory.mktemp("serve"))


@pytest.mark.parametrize("package", UNNEEDED)
def test_serving_does_not_load(package: str, modules: set[str]) -> None:
    assert not {name for name in modules if name == package or name.startswith(f"{package}.")}


def test_serving_loads_few_modules(modules: set[str]) -> None:
    libraries = printed("import aiohttp.web, pydantic.main, sys; print(*sys.modules)")
    own = {name for name in modules if name.partition(".")[0] == "rejoin"}
    assert len(own) <= OWN
    assert len(modules - own - libraries) <= OTHERS


def printed(code: str) -> set[str]:
    """The words that a program of its own prints."""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(ended.stdout.split())


def test_kafkas_listener_needs_nothing_of_the_http_side() -> None:
    modules = "rejoin.coordinator.commands.serve, rejoin.coordinator.service.kafka.listener, sys"
    loaded = printed(f"import {modules}; print(*sys.modules)")
    assert "rejoin.coordinator.service.app" in loaded
    assert not loaded & {"aiohttp", "multidict", "rejoin.coordinator.service.http"}


WITHOUT_METADATA: Final = """
import os, sys
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
from rejoin.__main__ import _without_metadata
with _without_metadata():
    from importlib.metadata import entry_points
    from pydantic import BaseModel
    class Model(BaseModel): pass
    print(*sys.modules)
"""


def test_pydantic_is_loaded_without_the_metadata_of_packages() -> None:
    assert not printed(WITHOUT_METADATA) & {"csv", "email.message", "zipfile"}


@pytest.mark.parametrize("indent", ["", "    "])
def test_what_stands_for_the_metadata_gives_what_they_have(indent: str) -> None:
    used = """
print(*(each.name for each in entry_points(group="rejoin.assignors")))
import importlib.metadata as metadata
print(metadata.version("rejoin-kafka") and "version", metadata.__name__)
"""
    code = WITHOUT_METADATA.replace("*sys.modules", "") + used.replace("\n", f"\n{indent}")
    assert printed(code) == {"range", "roundrobin", "sticky", "cooperative-sticky", "version", "importlib.metadata"}
