"""``rejoin serve`` for cyclopts: the same function, and what its signature does not say."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from rejoin.coordinator.commands.serve import run

__all__ = ["run"]

run.__annotations__ |= {
    "config": Annotated[tuple[str, ...], Parameter(name=("--config", "-c"), negative=())],
    "topic": Annotated[tuple[str, ...], Parameter(negative=())],
    "control": Annotated[bool, Parameter(negative=())],
}
