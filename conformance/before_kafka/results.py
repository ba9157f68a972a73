"""Results of programs directly on Kafka and behind the proxy: lines of a file, and a table in docs/proxy.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from conformance.clients.results import ROOT

RESULTS: Final = Path(__file__).parent / "results.jsonl"
DOCUMENT: Final = ROOT / "docs" / "proxy.md"
BEGIN: Final = "<!-- written by make clients-proxied -->\n"
END: Final = "<!-- end of what make clients-proxied writes -->\n"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class ProxiedResult:
    """Steps of a program with their problems, which are empty where they passed: directly, and behind the proxy.

    One that passed whole behind the proxy needs not be played directly.
    """

    name: str
    version: str
    directly: dict[str, str]
    behind: dict[str, str]
    defects: list[str] = field(default_factory=list)
    """Complaints of the proxy, of its journal or of a broker."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Counts of the play behind the proxy."""
    day: str = field(default_factory=_today)

    @property
    def is_alike(self) -> bool:
        """Whether each step that passes directly passes behind the proxy too, and nothing was wrong besides."""
        steps = dict.fromkeys((*self.directly, *self.behind))
        failed = (step for step in steps if self.behind.get(step, "not played"))
        return not self.defects and all(self.directly.get(step) for step in failed)

    def failures(self) -> Iterator[str]:
        """The steps that failed, by where they did, and what was wrong besides."""
        failed = {
            "directly and behind the proxy": [
                step for step in self.directly if self.directly[step] and self.behind.get(step)
            ],
            "only directly": [step for step in self.directly if self.directly[step] and not self.behind.get(step)],
            "only behind the proxy": [
                step for step in self.behind if self.behind[step] and not self.directly.get(step)
            ],
        }
        for where, steps in failed.items():
            if steps:
                names = ", ".join(f"`{step.rpartition('::')[2]}`" for step in steps)
                yield f"failed {where}: {names}"
        yield from (f"defect: {each}" for each in self.defects)

    def lines(self) -> Iterator[str]:
        """The result in words, a line for each step that is not alike or did not pass."""
        yield f"{_passed(self.behind)} behind the proxy, directly {_passed(self.directly)}"
        for step in dict.fromkeys((*self.directly, *self.behind)):
            without, through = self.directly.get(step, "not played"), self.behind.get(step, "not played")
            if through or (without and self.directly):
                yield f"{step}: directly {without or 'passed'}; behind the proxy {through or 'passed'}"
        yield from (f"defect: {each}" for each in self.defects)


def _passed(steps: dict[str, str]) -> str:
    return f"{sum(not problem for problem in steps.values())} of {len(steps)}" if steps else "–"


def read() -> list[ProxiedResult]:
    """All results, by name."""
    return [ProxiedResult(**json.loads(line)) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def keep(result: ProxiedResult) -> None:
    """Put a result in the place of the last one of its name, and write the table anew."""
    kept = sorted([*(each for each in read() if each.name != result.name), result], key=lambda each: each.name.lower())
    RESULTS.write_text("".join(f"{json.dumps(asdict(each), ensure_ascii=False)}\n" for each in kept))
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table(kept)}\n{END}{rest.split(END)[1]}")


def table(results: list[ProxiedResult]) -> str:
    """How many steps passed in both ways, and those that did not."""
    text = "| client | version | day | behind the proxy | directly |\n|---|---|---|---|---|\n"
    for each in results:
        text += f"| {each.name} | {each.version} | {each.day} | {_passed(each.behind)} | {_passed(each.directly)} |\n"
    for each in results:
        text += "".join(f"\n- {each.name}, {line}" for line in each.failures())
        if each.numbers:
            text += f"\n- {each.name}: {'; '.join(f'{name} {number:,}' for name, number in each.numbers.items())}"
    return text if text.endswith("\n") else f"{text}\n"
