"""What ``rejoin serve`` has loaded when it listens: every module costs time that a test waits for its coordinator."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from benchmarks.start_up import modules_when_listening

OWN: Final = 245
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
    code = "import aiohttp.web, pydantic.main, sys; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    libraries = set(ended.stdout.split())
    own = {name for name in modules if name.partition(".")[0] == "rejoin"}
    assert len(own) <= OWN
    assert len(modules - own - libraries) <= OTHERS


def test_kafkas_listener_needs_nothing_of_the_http_side() -> None:
    modules = "rejoin.coordinator.commands.serve, rejoin.coordinator.service.kafka.listener, sys"
    ended = subprocess.run(
        [sys.executable, "-c", f"import {modules}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = set(ended.stdout.split())
    assert "rejoin.coordinator.service.app" in loaded
    assert not loaded & {"aiohttp", "multidict", "rejoin.coordinator.service.http"}
