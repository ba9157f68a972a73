"""Outputs of Kafka's ``kafka-streams-groups.sh`` at each stage of a group's life, and their comparison."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

from tests.paths import GOLDEN as FOLDER

GOLDEN: Final = FOLDER / "streams-groups" / "tool.jsonl"
"""Requests, and runs of the tool with what it printed, in their order. Written by conformance.clients.streams_tool."""

COORDINATOR: Final = re.compile(r"(127\.0\.0\.1|localhost):\d+ \(\d+\) *")


MESSAGE: Final = re.compile(r"(common\.errors\.\w+Exception): .*")
"""An error of a broker, in its own words behind the name of the exception."""


def arranged(output: str) -> str:
    """An output to compare: without the coordinator's address and the words of errors, rows of a group in order.

    Kafka's rows come in the order of its maps.
    """
    lines = [COORDINATOR.sub("HOST:PORT (ID)".ljust(26), line).rstrip() for line in output.splitlines()]
    lines = [MESSAGE.sub(r"\1: ...", line) for line in lines]
    runs = [(is_row, list(some)) for is_row, some in groupby(lines, lambda line: line.startswith(("app ", "waiting ")))]
    return "\n".join(line for is_row, some in runs for line in (sorted(some) if is_row else some)).rstrip("\n")
