"""Runs ``Walk.java`` on a graph of paths."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from conformance.explored.graph import PathGraph

HERE: Final = Path(__file__).parent
WORLDS: Final = HERE / "worlds"
JAVA: Final = ("java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:CICompilerCount=2", "-Dlog4j2.level=OFF")
SECONDS: Final = 3_600


def worlds() -> list[Path]:
    """The files of all worlds, by name."""
    return sorted(WORLDS.glob("*.yaml"), key=attrgetter("stem"))


def walked(graph: PathGraph, jars: str, *, records: bool = False) -> Iterator[Any]:
    """The differences of a graph's paths, and at the end the counts; or, recorded, what Kafka answers on each path."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        file = Path(folder) / "paths.jsonl"
        with file.open("w") as out:
            out.writelines(f"{line}\n" for line in graph.lines())
        command = (*JAVA, "-cp", jars, str(HERE / "Walk.java"), str(file), *(("record",) if records else ()))
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, text=True)
    if done.returncode:
        raise SystemExit(f"Walk.java ended with {done.returncode}: {done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith(("{", "[{", "[]")):
            yield json.loads(line)
        else:
            print(line, file=sys.stderr)  # what Kafka logs
