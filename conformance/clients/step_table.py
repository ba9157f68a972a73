"""Results of clients in a few steps of their own: a line for each client in a file, a table in a document."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conformance.clients.programs import CLIENTS
from conformance.clients.results import DOCUMENT, ROOT


def play(command: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """Run the program of a client: its steps, each with the problem that it had or none, and what it counts."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{' '.join(command)} printed no step: {(done.stdout + done.stderr)[-2000:]}")
    return lines


@dataclass(frozen=True, slots=True)
class StepTable:
    """The table that a make target writes, the file with its results, and the steps that are its rows."""

    target: str
    heading: str
    steps: tuple[str, ...]
    results: Path
    counts: tuple[str, ...] = ()
    """Counters of programs, each a row beside the steps."""
    words: tuple[str, str] = ("passed", "**failed**")
    """Cells of a step without a problem and of one with a problem."""

    @property
    def begin(self) -> str:
        """Marker before the table in the document."""
        return f"<!-- written by make {self.target} -->\n"

    @property
    def end(self) -> str:
        """Marker behind the table."""
        return f"<!-- end of what make {self.target} writes -->\n"

    def read(self) -> list[dict[str, Any]]:
        """The results of each client, which are by the names of the steps."""
        return [json.loads(line) for line in self.results.read_text().splitlines()] if self.results.exists() else []

    def keep(
        self, client: str, version: str, problems: dict[str, str], counts: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Replace the results of a client."""
        day = datetime.now(UTC).date().isoformat()
        kept = [each for each in self.read() if each["client"] != client]
        counted = {"counts": dict(counts)} if counts else {}
        kept.append({"client": client, "version": version, "day": day, "problems": problems} | counted)
        kept.sort(key=lambda each: each["client"].lower())
        self.results.write_text("".join(f"{json.dumps(each)}\n" for each in kept))

    def text(self) -> str:
        """The steps of all clients beside each other, and what did not pass."""
        kept = self.read()
        rows = [[self.heading, *(each["client"] for each in kept)], ["---"] * (len(kept) + 1)]
        rows += [[title, *(each[title] for each in kept)] for title in ("version", "day")]
        rows += [[name, *(self._cell(each["problems"].get(name)) for each in kept)] for name in self.steps]
        rows += [[name, *(str(each.get("counts", {}).get(name, "–")) for each in kept)] for name in self.counts]
        text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        failed = [(each["client"], *pair) for each in kept for pair in each["problems"].items() if pair[1]]
        if failed:
            text += "\n" + "".join(f"- {client}, {name}: {problem}\n" for client, name, problem in failed)
        return text

    def write(self) -> None:
        """Put the table into the document."""
        before, rest = DOCUMENT.read_text().split(self.begin)
        DOCUMENT.write_text(f"{before}{self.begin}\n{self.text()}\n{self.end}{rest.split(self.end)[1]}")

    def run(self, module: str, programs: Iterable[str], run_client: Callable[[str, str], bool]) -> int:
        """Run the clients that the command line names, or all, and write the table; 1 if a step failed."""
        known = list(programs)
        parser = argparse.ArgumentParser(prog=f"python -m {module}")
        parser.add_argument("client", nargs="*", choices=[*known, []], metavar="CLIENT", help="all without any")
        wanted = parser.parse_args().client or known
        good = [run_client(client.name, client.version) for client in CLIENTS if client.name in wanted]
        self.write()
        return 0 if all(good) else 1

    def _cell(self, problem: str | None) -> str:
        return "–" if problem is None else self.words[bool(problem)]
