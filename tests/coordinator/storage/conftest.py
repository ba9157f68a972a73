"""The stores that the contract is about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.coordinator.storage.helpers import Memory, Postgres, Sqlite, Store

KINDS = ("memory", "sqlite", "postgres")
DURABLE = ("sqlite", "postgres")


def made(kind: str, request: pytest.FixtureRequest) -> Store:
    folder: Path = request.getfixturevalue("tmp_path")
    if kind == "memory":
        return Memory()
    if kind == "postgres":
        return Postgres(request.getfixturevalue("postgres"))
    return Sqlite(folder / "data")


@pytest.fixture
def log_lines() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged, whatever another test has made of logging before."""
    before = structlog.get_config()
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as lines:
        yield lines
    structlog.configure(**before)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A log of each kind, started."""
    kept = made(request.param, request)
    await kept.start()
    yield kept
    await kept.close()


@pytest.fixture(params=DURABLE)
async def durable(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A log of each kind that outlives its process, started."""
    kept = made(request.param, request)
    await kept.start()
    yield kept
    await kept.close()
