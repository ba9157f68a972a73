"""The recordings, and what the emulator makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from conformance.replay.known_differences import known_difference
from conformance.replay.replay import Emulator, Recording, is_served, read
from rejoin.conform.comparison.compare import Difference, RecordedAnswer, differences
from rejoin.coordinator.core.node import Node
from rejoin.protocol.registry import BY_KEY
from tests import paths

GOLDEN: Final = paths.RECORDED
PATHS: Final = sorted(GOLDEN.glob("*/*/*.jsonl"))


def name_of(path: Path) -> str:
    return str(path.relative_to(GOLDEN).with_suffix(""))


@cache
def recording(path: Path) -> Recording:
    return read(path)


@cache
def recordings() -> tuple[Recording, ...]:
    return tuple(recording(path) for path in PATHS)


def named(name: str) -> Recording:
    """One recording by set, subject and name."""
    return recording(GOLDEN / f"{name}.jsonl")


@cache
def broker_versions() -> dict[str, range]:
    """The versions of the recorded broker, from its own answer."""
    (asked,) = named("plain/looking/which-versions-there-are-in-version-v4").exchanges
    assert asked.answer is not None
    return {
        BY_KEY[entry["apiKey"]].name: range(entry["minVersion"], entry["maxVersion"] + 1)
        for entry in asked.answer.body["apiKeys"]
        if entry["apiKey"] in BY_KEY
    }


def replayed(played: Recording, node: Callable[..., Node] = Node) -> list[Difference]:
    """Every difference to the emulator."""
    return differing(played, Emulator(played, node).play())


def differing(played: Recording, answers: dict[int, RecordedAnswer]) -> list[Difference]:
    """Every difference to these answers."""
    return [
        one
        for asked in played.exchanges
        if is_served(asked)
        for one in differences(asked, answers.get(asked.number), script=played.script)
    ]


def unexplained(found: list[Difference]) -> list[str]:
    """The differences that no entry explains, as text."""
    return [str(one) for one in found if known_difference(one) is None]
