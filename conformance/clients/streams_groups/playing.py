"""Plays lives on one broker, and keeps for each step its problem, what it saw and how long it took."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.clients.programs import BUILT
from conformance.clients.streams_groups.lives import LIVES, Step
from conformance.clients.streams_groups.stage import streams_stage
from conformance.members.proxy import ProxiedExchange


@dataclass
class StreamsPlay:
    """The outcome on a broker."""

    broker: str
    problems: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    exchanges: list[ProxiedExchange] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    """Lines of the node's log that no client should cause."""


async def played(broker: str, jars: str, lives: Iterable[str]) -> StreamsPlay:
    """Play lives on a broker of its own: ``kafka``, ``rejoin`` or ``proxied``.

    Logs of failed lives stay in out/clients.
    """
    outcome = StreamsPlay(broker)

    async def play(name: str, step: Step) -> None:
        began = time.monotonic()
        try:
            # As JSON has it: it is compared, and written into files.
            outcome.seen[name] = json.loads(json.dumps(await step()))
            outcome.problems[name] = ""
        except (AssertionError, TimeoutError, OSError, LookupError, TypeError) as problem:
            outcome.problems[name] = str(problem) or type(problem).__name__
        said = outcome.problems[name] or "passed"
        print(f"{broker}: {name}: {said} ({time.monotonic() - began:.0f} s)", flush=True)

    with tempfile.TemporaryDirectory(prefix="streams-") as made:
        folder = Path(made)
        async with streams_stage(broker, jars, folder) as stage:
            for life in lives:
                await LIVES[life](stage, play)
            outcome.exchanges = stage.proxy.exchanges
        outcome.defects = stage.defects
        if any(outcome.problems.values()):
            kept = BUILT / f"streams-logs-{broker}"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            for log in folder.glob("*.log"):
                shutil.copy(log, kept)
    return outcome
